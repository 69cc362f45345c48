"""The directories of instants, and the base of the relative paths of a lake table's files."""

import re

from metastore.services.instant_rules.states import PUBLISH
from metastore.store.timeline.instants import InstantRow

DIRECTORY = ".instants"
"""The directory below a table's for its instants. Readers of directories ignore names that begin with a dot."""


_ATTEMPT = "attempt-"
_OWN = re.compile(rf"[^/]*(/{_ATTEMPT}\d+)?")
_OF_PUBLISH = re.compile(rf"{DIRECTORY}/[^/]+\.{PUBLISH}(/.+)?")
_OF_ATTEMPT = re.compile(rf"({DIRECTORY}/[^/]+/{_ATTEMPT}\d+)/.*")


def own_directory(timestamp: str, begun_as: str) -> str:
    """The directory of an instant, relative to its table's base, with those of all attempts."""
    return f"{DIRECTORY}/{timestamp}.{begun_as}"


def directory_of(instant: InstantRow) -> str:
    """The directory for an instant's files, relative to its table's base. Each attempt at a plan has one of its own."""
    return directory_of_attempt(instant, instant.attempt)


def directory_of_attempt(instant: InstantRow, attempt: int) -> str:
    """The same for an earlier attempt, too."""
    own = own_directory(instant.timestamp, instant.begun_as)
    return f"{own}/{_ATTEMPT}{attempt}" if instant.planned and attempt else own


def is_of_other_attempt(instant: InstantRow, path: str) -> bool:
    """Whether a path, relative to the table's base, lies in the directory of another attempt at an instant's plan."""
    found = _OF_ATTEMPT.fullmatch(path)
    own = own_directory(instant.timestamp, instant.begun_as)
    return bool(
        instant.planned
        and instant.attempt
        and found
        and found[1].startswith(f"{own}/")
        and found[1] != directory_of(instant)
    )


def is_of_publish(path: str) -> bool:
    """Whether a path, relative to the table's base, is the directory of a publish, or lies in one."""
    return _OF_PUBLISH.fullmatch(path) is not None


def base_of(location: str) -> str:
    """The base of a table's relative paths: its location, without an instant's directory at its end.

    An overwritten unpartitioned table has the directory of the overwriting instant as its location.
    """
    before, found, own = location.rpartition(f"/{DIRECTORY}/")
    return before if found and _OWN.fullmatch(own) else location


def is_of_instant(location: str) -> bool:
    """Whether a location is an instant's directory, which `base_of` takes for one of the table around it."""
    return base_of(location) != location


def below(place: str, name: str) -> str:
    """Joins two paths, either of which may be empty."""
    return f"{place}/{name}" if place and name else place or name
