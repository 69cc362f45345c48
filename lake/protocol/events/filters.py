"""Filters of events: by patterns of table names and by event types."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from lake.protocol.events import wildcards
from lake.protocol.events.types import EventType

MAX_PATTERNS = 1_000
"""Patterns in one filter."""
MAX_WILD_PATTERNS = 100
"""Patterns with a `*` in one filter. Each is matched by itself; exact patterns are looked up in a set."""
MAX_LENGTH = 1_024
"""Characters of one pattern."""
MAX_STARS = 16
"""`*` characters in one pattern."""


class BadFilter(ValueError):
    """A filter that can't be understood; the message says what is expected."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of table names. `*` matches any characters. The default catalog is `hive`."""

    catalog: str
    database: str
    table: str

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Parses `database.table` or `catalog.database.table`. Raises BadFilter for a wrong form or beyond a limit."""
        if len(text) > MAX_LENGTH:
            raise BadFilter(f"a pattern of {len(text)} characters is too long; {MAX_LENGTH} are allowed")
        if text.count("*") > MAX_STARS:
            raise BadFilter(f"{text!r} has more than {MAX_STARS} *; name the tables, or use a wider pattern")
        parts = text.strip().lower().split(".")
        if len(parts) not in (2, 3) or not all(parts):
            raise BadFilter(f"{text!r} is no pattern of tables: expected database.table, with * for any characters")
        return cls(parts[0] if len(parts) == 3 else "hive", parts[-2], parts[-1])

    @property
    def exact(self) -> bool:
        """Whether the pattern has no `*`, so that it means one table."""
        return "*" not in f"{self.catalog}{self.database}{self.table}"

    def matches(self, catalog: str | None, database: str | None, table: str | None) -> bool:
        """Whether the pattern matches these names. `table` is None for a database, and for functions in it."""
        return (
            _like(catalog, self.catalog)
            and _like(database, self.database)
            and (self.table == "*" if table is None else _like(table, self.table))
        )


@dataclass(frozen=True)
class Filter:
    """The events that a subscriber wants. An empty list doesn't restrict.

    Events about a database match patterns whose table is `*`.
    """

    tables: Sequence[Pattern] = ()
    types: Sequence[EventType] = ()

    @classmethod
    def parse(cls, tables: Sequence[str], types: Sequence[str]) -> "Filter":
        """Parses patterns and names of types. Raises BadFilter for a wrong one, and beyond a limit."""
        if len(tables) > MAX_PATTERNS:
            raise BadFilter(f"{len(tables)} patterns of tables; at most {MAX_PATTERNS} are allowed: use database.*")
        known = {type.value: type for type in EventType}
        asked = dict.fromkeys(name.strip().upper() for name in types)
        if unknown := [name for name in asked if name not in known]:
            raise BadFilter(f"{unknown[0][:100]!r} is no type of events; they are {', '.join(known)}")
        patterns = list(dict.fromkeys(map(Pattern.parse, tables)))
        if (wild := sum(not pattern.exact for pattern in patterns)) > MAX_WILD_PATTERNS:
            raise BadFilter(f"{wild} patterns with *; at most {MAX_WILD_PATTERNS} are allowed: use wider ones")
        return cls(patterns, [known[name] for name in asked])

    def lets_pass(self, type: str, catalog: str | None, database: str | None, table: str | None) -> bool:
        """Whether the filter accepts an event of this type about these names."""
        if self.types and type not in self.types:
            return False
        if not self.tables or type == EventType.BEGIN_EPOCH or (catalog, database, table) in self._exact:
            return True
        return any(pattern.matches(catalog, database, table) for pattern in self.wild)

    @cached_property
    def wild(self) -> list[Pattern]:
        """The patterns with a `*`."""
        return [pattern for pattern in self.tables if not pattern.exact]

    @cached_property
    def exact(self) -> list[Pattern]:
        """The patterns without a `*`: each means one table."""
        return [pattern for pattern in self.tables if pattern.exact]

    @cached_property
    def _exact(self) -> set[tuple[str | None, str | None, str | None]]:
        return {(pattern.catalog, pattern.database, pattern.table) for pattern in self.exact}


_expression = lru_cache(maxsize=4_096)(wildcards.expression)


def _like(name: str | None, pattern: str) -> bool:
    if "*" not in pattern:
        return name == pattern
    return name is not None and (pattern == "*" or _expression(pattern).fullmatch(name) is not None)
