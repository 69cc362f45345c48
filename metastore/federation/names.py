"""The names of databases, as clients of all versions of Hive write them."""

import re
from typing import NamedTuple

from lake.protocol.hive import MetaException

DEFAULT_CATALOG = "hive"
"""The catalog that clients mean who name none."""


CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""Control characters, which no name has."""


class Name(NamedTuple):
    """A database, in lower case."""

    catalog: str
    database: str

    def __str__(self) -> str:
        return self.database if self.catalog == DEFAULT_CATALOG else f"{self.catalog}.{self.database}"

    @property
    def spelled(self) -> str:
        """The database as calls name it that have no field for a catalog."""
        return self.database if self.catalog == DEFAULT_CATALOG else joined(self.catalog, self.database)


def split(database: str | None) -> tuple[str | None, str | None]:
    """Splits `@catalog#name`, the form of Hive 3 and later, into catalog and name. A missing part is None.

    Raises MetaException for a `@catalog` without the `#`.
    """
    if database is None or not database.startswith("@"):
        return None, database
    catalog, separator, name = database[1:].partition("#")
    if not separator:
        raise MetaException(f"{database!r} is no database name: after @catalog a # must follow")
    return catalog, "" if name == "!" else name or None


def joined(catalog: str, database: str) -> str:
    """The inverse of `split`."""
    return f"@{catalog}#{database}"


def normal(name: str) -> str:
    """A name as metastores keep it (Hive's normalizeIdentifier)."""
    return name.strip().lower()


def check_text(name: str) -> str:
    """A name as it is. Raises MetaException for one with control characters.

    Metastores in Java take some of them away at a name's ends. To the front it would be the name of another database.
    """
    if CONTROL.search(name):
        raise MetaException(f"{name!r} is no name: it has a control character")
    return name


def in_words(text: str) -> Name:
    """The database that people write as `db` or `catalog.db`."""
    catalog, _, database = normal(text).rpartition(".")
    return Name(catalog or DEFAULT_CATALOG, database)
