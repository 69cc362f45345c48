"""The keys that tables of layers have already.

A release may find another key for a query than the one before, for instance since it understands more of the query. A
table keeps the key that it has, and the texts in `ROW_KEY` stay what they were made of: else rows that are equal would
be deleted and inserted again, and no increment would find them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sqlglot import exp

from lake.layers.compiler.deltas import Deltas, select_from
from lake.layers.compiler.layers import ROW_KEY, Layer


class RowKeys(StrEnum):
    """What the texts in `ROW_KEY` are made of: the key that was found for the query, or all visible values and a number
    that tells equal rows apart."""

    FOUND = "found"
    NUMBERED = "numbered"


@dataclass(frozen=True)
class StoredKey:
    """The primary key of a layer's table. `row_keys` is None for tables of releases that didn't keep it."""

    columns: tuple[str, ...]
    row_keys: RowKeys | None = None

    @property
    def is_hidden(self) -> bool:
        return self.columns[:1] == (ROW_KEY,)


class StoredKeys(Protocol):
    """What knows the tables that layers have already."""

    def of(self, layer: str) -> StoredKey | None:
        """The key of a layer's table; None if there is no table."""

    def are_numbered(self, layer: Layer) -> bool:
        """Whether the texts in `ROW_KEY` of all rows of the layer's table are those that the given layer's would be,
        whose equal rows are numbered."""


class NoTables:
    """No layer has a table yet."""

    def of(self, layer: str) -> StoredKey | None:
        return None

    def are_numbered(self, layer: Layer) -> bool:
        return False


def numbering_misses(layer: Layer, deltas: Deltas, stored: str) -> tuple[str, list[exp.Alias]]:
    """A step over the rows of a layer's table, and two counts over it: `present`, all rows, and `misses`, those whose
    text in `ROW_KEY` isn't the one that the layer gives them, whose equal rows are numbered.

    Of equal rows each gets a number by the order of the texts: in these a longer number comes later.
    """
    assert layer.row_key is not None and layer.operator.key is not None
    *values, number = layer.operator.key
    named = {own: name for name, own in layer.outputs.items() if own in values}
    columns = [exp.column(name, quoted=True).as_(own) for own, name in named.items()]
    renamed = deltas.add("named", select_from([*columns, exp.column(ROW_KEY)], stored))
    order = exp.Order(expressions=[exp.Ordered(this=exp.column(ROW_KEY), nulls_first=True)])
    numbers = exp.Window(
        this=exp.RowNumber(), partition_by=[exp.column(own) for own in values], order=order, over="OVER"
    )
    kept = [exp.column(own) for own in (*values, ROW_KEY)]
    step = deltas.add("numbers", select_from([*kept, exp.alias_(numbers, number)], renamed))
    differs = exp.not_(exp.NullSafeEQ(this=exp.column(ROW_KEY), expression=layer.row_key.copy()))
    counts = {"present": exp.Literal.number(1), "misses": exp.Case().when(differs, exp.Literal.number(1))}
    return step, [exp.Alias(this=exp.Count(this=one), alias=name) for name, one in counts.items()]
