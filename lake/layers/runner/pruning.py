"""Which part of a keyed table has the rows that a step asks for: the partitions and buckets of the values it lists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from lake.client.lake_types import Schema
from lake.protocol.formats.keyed_table import KeyedTable
from lake.protocol.formats.partition_names import make_name
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.hashing import buckets_of
from lake.tables.keyed.schema import of_hive
from lake.tables.keyed_tables import partition_texts

MOST_VALUES = 2_000
"""Values that a step may list so that partitions and buckets are found for them."""

_TYPES = frozenset({"tinyint", "smallint", "int", "bigint", "string", "boolean", "date"})
"""Types whose values are the same in every engine, whatever its time zone."""


@dataclass(frozen=True)
class Within:
    """A part of a keyed table: some partitions, and of each some file groups; None for all of them."""

    partitions: frozenset[str] | None
    groups: frozenset[str] | None


def prunable(schema: Schema, columns: Sequence[str]) -> tuple[str, ...]:
    """Those of a table's columns, among some, by whose values partitions or buckets are found; empty if none are."""
    keyed = schema.keyed_table()
    if keyed is None:
        return ()
    types = {each.name.lower(): each.type.lower() for each in (*schema.columns, *schema.keys)}
    usable = {name for name in columns if types.get(name) in _TYPES}
    found: list[str] = []
    for wanted in (keyed.partition_columns, keyed.bucket_key):
        if wanted and usable.issuperset(wanted):
            found += wanted
    return tuple(found)


def within(schema: Schema, columns: Sequence[str], values: Sequence[Mapping[str, Any]]) -> Within | None:
    """Where rows with some values are; None if that can't be said.

    `columns`: what `prunable` returned. `values`: by column; those with a NULL are in no row.
    """
    keyed = schema.keyed_table()
    assert keyed is not None
    known = [each for each in values if all(each[name] is not None for name in columns)]
    types = {each.name.lower(): of_hive(each.type) for each in (*schema.columns, *schema.keys)}
    if not all(_is_like(each[name], types[name]) for each in known for name in columns):
        return None  # Spark compares values of other types by rules of its own
    try:
        rows = pa.table({name: pa.array([each[name] for each in known], types[name]) for name in columns})
        return Within(_partitions(keyed, rows), _groups(keyed, rows))
    except (pa.ArrowException, UnfitRows, OverflowError):
        return None  # they are beyond what the column's type can have


def _is_like(value: object, kind: pa.DataType) -> bool:
    """Whether a value is of a column's type."""
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_integer(kind):
        return isinstance(value, int) and not isinstance(value, bool)
    if pa.types.is_date(kind):
        return isinstance(value, date) and not isinstance(value, datetime)
    return isinstance(value, str)


def _partitions(keyed: KeyedTable, rows: pa.Table) -> frozenset[str] | None:
    names = keyed.partition_columns
    if not names or not {*names} <= {*rows.column_names}:
        return None
    texts = [partition_texts(name, rows.column(name), rows.schema.field(name).type).to_pylist() for name in names]
    return frozenset(make_name(names, values) for values in zip(*texts, strict=True))


def _groups(keyed: KeyedTable, rows: pa.Table) -> frozenset[str] | None:
    if not {*keyed.bucket_key} <= {*rows.column_names}:
        return None
    return frozenset(keyed.file_group(number) for number in buckets_of(rows, keyed).to_pylist())
