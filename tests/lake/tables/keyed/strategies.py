"""Random keyed tables, and random histories of batches for them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lake.protocol.formats.keyed_table import DELETED, KeyedTable
from tests.lake.tables.keyed.model import Record

#: `id`, `part`: the key. `v`, `w`: versions. The others have values.
TYPES = {
    "id": "bigint",
    "part": "string",
    "v": "int",
    "w": "int",
    "a": "int",
    "b": "string",
    "c": "double",
    "d": "boolean",
}

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("v", pa.int32()),
        ("w", pa.int32()),
        ("a", pa.int32()),
        ("b", pa.string()),
        ("c", pa.float64()),
        ("d", pa.bool_()),
    ]
)

_ENGINES: Sequence[dict[str, str]] = (
    {},
    {"sequence.field": "v"},
    {"sequence.field": "v,w"},
    {"sequence.field": "v", "ignore-delete": "true"},
    {"ignore-delete": "true"},
    {"merge-engine": "first-row", "ignore-delete": "true"},
    {"merge-engine": "partial-update", "ignore-delete": "true"},
    {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    {"merge-engine": "partial-update", "ignore-delete": "true", "fields.v.sequence-group": "a,b"},
    {
        "merge-engine": "partial-update",
        "ignore-delete": "true",
        "fields.v.sequence-group": "a,b",
        "fields.w.sequence-group": "c",
    },
    {
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "fields.v.aggregate-function": "min",
        "fields.w.aggregate-function": "max",
        "fields.a.aggregate-function": "sum",
        "fields.b.aggregate-function": "first_non_null_value",
        "fields.d.aggregate-function": "bool_or",
    },
    {
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "fields.a.aggregate-function": "last_value",
        "fields.b.aggregate-function": "first_value",
        "fields.c.aggregate-function": "sum",
        "fields.d.aggregate-function": "bool_and",
    },
)


def definition(properties: dict[str, str]) -> KeyedTable:
    found = KeyedTable.of({"primary-key": "id,part", **properties}, TYPES, [])
    assert found is not None
    return found


properties = st.sampled_from(_ENGINES)

_KEYS = [(number, part) for number in (1, 2, 3) for part in ("x", "y")]


@st.composite
def records(draw: st.DrawFn, table: KeyedTable, key: tuple[int, str]) -> Record:
    """One version of a key."""
    values: dict[str, Any] = {
        "id": key[0],
        "part": key[1],
        "v": draw(st.integers(0, 3) if table.sequence else st.none() | st.integers(0, 3)),
        "w": draw(st.integers(0, 2) if len(table.sequence) > 1 else st.none() | st.integers(0, 2)),
        "a": draw(st.none() | st.integers(-2, 2)),
        "b": draw(st.none() | st.sampled_from(["", "p", "q"])),
        "c": draw(st.none() | st.integers(-2, 2).map(float)),
        "d": draw(st.none() | st.booleans()),
    }
    return {**values, DELETED: draw(st.integers(0, 3)) == 0}


@st.composite
def batches(draw: st.DrawFn, table: KeyedTable, *, repeats: bool = False) -> list[Record]:
    """Versions of some keys; with `repeats`, several of one key."""
    keys = draw(st.lists(st.sampled_from(_KEYS), max_size=6, unique=not repeats))
    return [draw(records(table, key)) for key in keys]


@st.composite
def histories(draw: st.DrawFn) -> tuple[KeyedTable, list[list[Record] | None]]:
    """A table, and what is done to it: a batch is written, or (None) the bucket is compacted."""
    table = definition(draw(properties))
    steps = st.lists(st.none() | batches(table), max_size=8)
    return table, draw(steps)


def table_of(batch: Sequence[Record]) -> pa.Table:
    return pa.Table.from_pylist(list(batch), schema=pa.schema([*SCHEMA, pa.field(DELETED, pa.bool_())]))
