"""A definition of which earlier ones stay in force for a part of the rows: those before a date, for instance.

A table that is restated from a date has the rows of the query of before up to that date, and those of another one from
it on. Together they are one query, whose branches a column keeps apart.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from graphlib import TopologicalSorter
from typing import Any

from lake.layers.compiler.texts.written import Written, views_in
from lake.layers.errors import BadQuery
from lake.protocol.formats.partition_names import DEFAULT_PARTITION
from lake.protocol.formats.spark_names import quoted

MOST_PARTS = 8
"""Queries that a table may consist of: each is computed with every refresh."""

_NUMBERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
"""Types of whole numbers, with their bits."""
_PART = "part"


@dataclass(frozen=True)
class Part:
    """A query, and the temporary views that it reads by their names, for rows `until` a value that is itself left out;
    None for the last part, which has all from there on. It has a value only in a table that isn't filled yet."""

    query: str
    views: Mapping[str, str]
    until: str | None = None

    @classmethod
    def of(cls, query: Written) -> "Part":
        return cls(query.text, {name: view.text for name, view in sorted(query.views.items())})

    def parsed(self) -> Written:
        """Raises BadQuery."""
        return Written.parsed(self.query).with_views({name: Written.parsed(text) for name, text in self.views.items()})

    @property
    def normal(self) -> object:
        """The same for the same texts, but for blanks and comments. Raises BadQuery."""
        found = self.parsed()
        return found.normal, sorted((name, view.normal) for name, view in found.views.items())


@dataclass(frozen=True)
class Restated:
    """The parts of a table, in the order of a column of its rows, of some type by Spark's name. Rows whose column is
    NULL are the first part's."""

    column: str
    type: str
    parts: Sequence[Part]

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> "Restated":
        return cls(given["column"], given["type"], [Part(**each) for each in given["parts"]])

    @property
    def since(self) -> str:
        """The value from which on the last part is in force."""
        return str(self.parts[-2].until)

    @property
    def latest(self) -> Part:
        return self.parts[-1]

    def number_of(self, value: str) -> int | None:
        """The number of the part that has the rows of a partition, by the value in its name; None if that can't be
        said."""
        if value == DEFAULT_PARTITION:
            return 0
        try:
            found = order(self.type, value_in_name(self.type, value))
        except BadQuery:
            return None
        return sum(1 for each in self.parts if each.until is not None and found >= order(self.type, each.until))

    def is_latest(self, value: str) -> bool:
        """Whether a partition may have rows of the last part."""
        return self.number_of(value) in (len(self.parts) - 1, None)

    def with_latest(self, query: Written) -> "Restated":
        """The same with another query for the last part."""
        return dataclasses.replace(self, parts=[*self.parts[:-1], Part.of(query)])

    def restated(self, query: Written, since: str) -> "Restated":
        """The same with another query for all rows from a value on. Raises BadQuery if there are too many parts."""
        since, kept = value_of(self.type, since), list[Part]()
        for each in self.parts:
            ends = each.until is None or order(self.type, each.until) >= order(self.type, since)
            kept.append(dataclasses.replace(each, until=since) if ends else each)
            if ends:
                break
        parts = [*kept, Part.of(query)]
        for place in range(len(parts) - 1, 0, -1):  # two that follow each other and are the same are one
            if parts[place - 1].normal == parts[place].normal:
                parts[place - 1 : place + 1] = [dataclasses.replace(parts[place - 1], until=parts[place].until)]
        if len(parts) > MOST_PARTS:
            raise BadQuery(f"it consists of {len(parts) - 1} queries already: apply one for all of its rows first")
        return dataclasses.replace(self, parts=parts)

    def queries(self) -> list[Written]:
        """The queries of the parts, each for its own rows. Raises BadQuery."""
        found, low = list[Written](), None
        for each in self.parts:
            column = quoted(self.column)
            conditions = [] if low is None else [f"{column} >= {literal(self.type, low)}"]
            if each.until is not None:
                below = f"{column} < {literal(self.type, each.until)}"
                conditions.append(below if low is not None else f"({below} OR {column} IS NULL)")
            text = f"SELECT * FROM (\n{each.query}\n) AS {_PART}"
            where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
            found.append(Written.parsed(f"{_with(each)}{text}{where}"))
            low = each.until
        return found


def value_of(kind: str, text: str) -> str:
    """A value of a type as it is kept. Raises BadQuery for what is none."""
    text = text.strip()
    try:
        if kind == "date":
            return date.fromisoformat(text).isoformat()
        if kind == "timestamp":
            found = datetime.fromisoformat(text)
            if found.tzinfo is None:
                return found.isoformat(sep=" ")
        if kind in _NUMBERS and -1 << _NUMBERS[kind] - 1 <= int(text) < 1 << _NUMBERS[kind] - 1:
            return str(int(text))
        if kind == "string" and text:
            return text
    except ValueError:
        pass
    expected = {"date": "2026-01-31", "timestamp": "2026-01-31 or 2026-01-31T12:00:00, without a time zone"}
    raise BadQuery(f"{text[:50]!r} isn't a {kind}: expected {expected.get(kind, 'a value of its type')}")


def value_in_name(kind: str, text: str) -> str:
    """The same of a value in the name of a partition, where a text is as it is. Raises BadQuery."""
    return text if kind == "string" else value_of(kind, text)


def can_be_restated_by(kind: str) -> bool:
    """Whether values of a type have an order that can be told here as Spark does."""
    return kind in _NUMBERS or kind in ("date", "timestamp", "string")


def literal(kind: str, value: str) -> str:
    """A value in Spark's SQL."""
    if kind in _NUMBERS:
        return f"CAST({value} AS {kind.upper()})"
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{'' if kind == 'string' else kind.upper()} '{escaped}'".strip()


def order(kind: str, value: str) -> Any:
    """What a value of a type, as it is kept, is sorted by."""
    if kind in _NUMBERS:
        return int(value)
    return datetime.fromisoformat(value) if kind == "timestamp" else value


def _with(part: Part) -> str:
    """The temporary views of a part as a WITH clause, each after those that it reads; nothing without such. So what
    another part calls so is nothing to it."""
    views = {name: Written.parsed(text) for name, text in part.views.items()}
    sorter = TopologicalSorter({name: sorted(views_in(view, views)) for name, view in sorted(views.items())})
    listed = [f"{quoted(name)} AS (\n{views[name].text}\n)" for name in sorter.static_order()]
    return f"WITH {', '.join(listed)} " if listed else ""
