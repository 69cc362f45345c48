"""Which places a caller may name as the location of a table, a partition, a database or a function's files."""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

from metastore.warehouse.errors import WarehouseError
from metastore.warehouse.locations import Location

_FORM = re.compile(r"(?:(?P<kind>database|role):(?P<name>[^=]+)=)?(?P<root>.+)")


class AllowedRoot(NamedTuple):
    """A directory below which places may be named: by everybody, in one database, or by the members of a role."""

    root: Location
    database: str | None
    role: str | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `root`, `database:NAME=root` or `role:NAME=root`. Raises ValueError."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError("expected a directory, database:NAME=DIRECTORY or role:NAME=DIRECTORY")
        kind, name = found["kind"], found["name"]
        try:
            root = place(found["root"])
        except WarehouseError as error:
            raise ValueError(str(error)) from None
        return cls(root, name.lower() if kind == "database" else None, name if kind == "role" else None)


class AllowedLocations:
    """The roots that the operator allows."""

    def __init__(self, roots: Sequence[AllowedRoot]) -> None:
        self._roots = roots

    def include(self, location: str, database: str, roles: Collection[str]) -> bool:
        """Whether one of the roots allows a location, in that database, to a member of these roles.

        Raises WarehouseError for a malformed one.
        """
        wanted = place(location)
        return any(
            (each.database is None or each.database == database)
            and (each.role is None or each.role in roles)
            and (wanted == each.root or wanted.relative_to(each.root) is not None)
            for each in self._roots
        )


def place(location: str) -> Location:
    """A location as it is compared: a path without a scheme is a local one. Raises WarehouseError."""
    parsed = Location.parse(location)
    return parsed if parsed.scheme else Location("file", "", parsed.path)


def has_credentials(location: str) -> bool:
    """Whether a location carries a user's name or password before its host (`s3a://key:secret@bucket/…`)."""
    try:
        parsed = Location.parse(location)
    except WarehouseError:
        return "@" in location.split("/", 3)[2] if location.count("/") > 1 and "://" in location else False
    return "@" in parsed.authority and parsed.scheme not in _WITH_ACCOUNT


_WITH_ACCOUNT = ("abfs", "abfss", "wasb", "wasbs")  # container@account is how these name a place
