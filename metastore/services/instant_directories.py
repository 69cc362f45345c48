"""Where the directories of instants are, and what the paths of a lake table's files are relative to."""

DIRECTORY = ".instants"
"""Below a table's: the directories of its instants. Readers of directories pass over names that begin with a dot."""


def own_directory(timestamp: str, begun_as: str) -> str:
    """The directory of an instant, relative to its table's base."""
    return f"{DIRECTORY}/{timestamp}.{begun_as}"


def base_of(location: str) -> str:
    """What the paths of a table's files are relative to: its location, or what that was until it was relocated.

    A table without partition keys that was overwritten lies in the directory of the instant that did it.
    """
    before, found, own = location.rpartition(f"/{DIRECTORY}/")
    return before if found and "/" not in own else location


def below(place: str, name: str) -> str:
    """A path of two, either of which may be empty."""
    return f"{place}/{name}" if place and name else place or name
