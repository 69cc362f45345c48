"""Where the files of a streaming writer's batch are staged: `<table>/.staging/<writer>/<batch>/<attempt>`.

Staged files are hidden from readers. They move into partitions once the batch is accepted.
"""

STAGING = ".staging"
"""Directory below a table's in which writers stage files; readers pass over names that begin with a dot."""


def directory_of(table_location: str) -> str:
    """The directory in which all writers of a table stage files."""
    return f"{table_location}/{STAGING}"


def writer_directory(table_location: str, writer: str) -> str:
    """The directory in which one writer of a table stages files."""
    return f"{directory_of(table_location)}/{writer}"


def location(table_location: str, writer: str, batch: int, attempt: str) -> str:
    """The directory for the files of one attempt to write a batch."""
    return f"{writer_directory(table_location, writer)}/{batch}/{attempt}"


def parse(staging_location: str) -> tuple[str, int]:
    """The writer's directory and the batch's number. Raises ValueError for a location of another form."""
    directory, batch, _attempt = staging_location.rstrip("/").rsplit("/", 2)
    if directory.split("/")[-2] != STAGING:
        raise ValueError(f"{staging_location} is no staging location")
    return directory, int(batch)
