"""Which events a subscriber wants."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eventbus.events import EventType


class BadFilter(ValueError):
    """A filter that can't be understood; the message says what is expected."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Names of tables: `*` stands for any characters. Without a catalog it is one of the catalog `hive`."""

    catalog: str
    database: str
    table: str

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Reads `database.table` or `catalog.database.table`. Raises BadFilter."""
        parts = text.strip().lower().split(".")
        if len(parts) not in (2, 3) or not all(parts):
            raise BadFilter(f"{text!r} is no pattern of tables: expected database.table, with * for any characters")
        return cls(parts[0] if len(parts) == 3 else "hive", parts[-2], parts[-1])

    def matches(self, catalog: str | None, database: str | None, table: str | None) -> bool:
        """Whether these names are meant; without a table they are a database's, or a function's in it."""
        return (
            _like(catalog, self.catalog)
            and _like(database, self.database)
            and (self.table == "*" if table is None else _like(table, self.table))
        )


@dataclass(frozen=True, slots=True)
class Filter:
    """What a subscriber wants; what is empty does not restrict. Events of a database match where the table is `*`."""

    tables: Sequence[Pattern] = ()
    types: Sequence[EventType] = ()

    @classmethod
    def parse(cls, tables: Sequence[str], types: Sequence[str]) -> "Filter":
        """Reads patterns and names of types. Raises BadFilter."""
        known = {type.value: type for type in EventType}
        for name in types:
            if name.strip().upper() not in known:
                raise BadFilter(f"{name!r} is no type of events; they are {', '.join(known)}")
        return cls([Pattern.parse(each) for each in tables], [known[name.strip().upper()] for name in types])

    def lets_pass(self, type: str, catalog: str | None, database: str | None, table: str | None) -> bool:
        """Whether an event of this type and about these names is wanted."""
        if self.types and type not in self.types:
            return False
        return not self.tables or any(pattern.matches(catalog, database, table) for pattern in self.tables)


def _like(name: str | None, pattern: str) -> bool:
    if "*" not in pattern:
        return name == pattern
    return name is not None and re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
