"""Writes the SQL by which a raw table becomes a typed table of `metastore.pipeline`, kept as the source has it."""

import json
from typing import NamedTuple

import pyarrow.compute as pc

from metastore.capture.errors import CaptureError
from metastore.capture.raw_table import rows_of
from metastore.client.lake import LakeTable

POSITION = ("epoch", "commit_lsn", "ordinal")

_AS_TEXT = {"date", "timestamp", "timestamp_ntz"}
"""Types that JSON has as a text of Postgres's, which is cast."""

_RESERVED = {"op", *POSITION}


class CapturedColumn(NamedTuple):
    """A column as a `schema` row describes it."""

    name: str
    type: str
    in_key: bool
    may_be_unchanged: bool


def columns_of(lake: LakeTable, table: str) -> list[CapturedColumn]:
    """The columns of a source's table as they were last written down. Raises CaptureError for a table without."""
    latest: tuple[tuple[int, ...], str] | None = None
    for rows in rows_of(lake, table):
        for row in rows.filter(pc.equal(rows.column("op"), "schema")).to_pylist():
            position = tuple(row[each] for each in POSITION)
            if latest is None or position > latest[0]:
                latest = position, row["after"]
    if latest is None:
        raise CaptureError(f"nothing of {table} is captured yet")
    return [CapturedColumn(each["name"], each["type"], each["key"], each["large"]) for each in json.loads(latest[1])]


def definition(lake: LakeTable, table: str) -> str:
    """The definitions for one table: its typed changes, and the table that they come to, by AUTO CDC.

    Raises CaptureError for a table without a key, whose rows no change can name, and for columns whose names are taken.
    """
    columns = columns_of(lake, table)
    key = [each.name for each in columns if each.in_key]
    if not key:
        raise CaptureError(f"{table} has no key: only its raw changes can be read")
    if taken := [each.name for each in columns if each.name.lower() in _RESERVED]:
        raise CaptureError(
            f"the column {taken[0]} of {table} has a name that changes need: write its definition by hand"
        )
    name = table.rpartition(".")[2]
    changes, target = _quoted(f"{name}_changes"), _quoted(name)
    listed = ", ".join(map(_quoted, key))
    return (
        f"CREATE MATERIALIZED VIEW {changes} AS\n{_changes(lake, table, columns, key)};\n\n"
        f"CREATE STREAMING TABLE {target};\n\n"
        f"CREATE FLOW {_quoted(f'{name}_flow')} AS AUTO CDC INTO {target} FROM STREAM({changes})\n"
        f"  KEYS ({listed}) APPLY AS DELETE WHEN op = 'delete'\n"
        f"  SEQUENCE BY struct({', '.join(POSITION)})\n"
        f"  COLUMNS * EXCEPT (op, {', '.join(POSITION)}) STORED AS SCD TYPE 1;\n"
    )


def _changes(lake: LakeTable, table: str, columns: list[CapturedColumn], key: list[str]) -> str:
    """The query of the typed changes: rows after a change, and deletes by the key before, since the last truncation."""
    position = ", ".join(POSITION)
    schema = ", ".join(f"{_quoted(each.name)} {_json_type(each.type)}" for each in columns)
    of_table = f"source_table = {_text(table)}"
    typed = ",\n    ".join(f"{_typed(each, 'body', schema)} AS {_quoted(each.name)}" for each in columns)
    filled = ",\n  ".join(
        _filled(each, key) if each.may_be_unchanged and not each.in_key else _quoted(each.name) for each in columns
    )
    moved = " OR ".join(
        f"{_typed(each, 'before', schema)} <> {_typed(each, 'after', schema)}" for each in columns if each.in_key
    )
    # One row each: the groups say by which columns changes are known, so that AUTO CDC finds them in a total order.
    groups = ", ".join([*map(_quoted, key), *POSITION])
    others = ["op", "unchanged", *(_quoted(each.name) for each in columns if not each.in_key)]
    single = ", ".join(f"max({each}) AS {each}" for each in others)
    of_all = ", ".join(f"all_changes.{each}" for each in POSITION)
    return (
        f"SELECT op, {position},\n  {filled}\nFROM (\n"
        f"  SELECT {groups}, {single}\n  FROM (\n"
        f"  SELECT all_changes.op, all_changes.unchanged, {of_all},\n"
        f"    {typed}\n  FROM (\n"
        f"    SELECT op, after AS body, unchanged, {position} FROM {lake.name}\n"
        f"    WHERE {of_table} AND op IN ('insert', 'update', 'read')\n"
        f"    UNION ALL\n"
        f"    SELECT 'delete' AS op, before AS body, CAST(NULL AS ARRAY<STRING>) AS unchanged, {position}\n"
        f"    FROM {lake.name}\n"
        f"    WHERE {of_table} AND (op = 'delete' OR (op = 'update' AND before IS NOT NULL AND ({moved})))\n"
        f"  ) AS all_changes LEFT JOIN (\n"
        f"    SELECT source_table, max(struct({position})) AS last FROM {lake.name}\n"
        f"    WHERE {of_table} AND op = 'truncate' GROUP BY source_table\n"
        f"  ) AS truncated ON truncated.source_table = {_text(table)}\n"
        f"  WHERE truncated.last IS NULL OR struct({of_all}) > truncated.last\n"
        f"  ) AS typed GROUP BY {groups}\n"
        f") AS changes"
    )


def _typed(column: CapturedColumn, json_column: str, schema: str) -> str:
    value = f"from_json({json_column}, {_text(schema)})[{_text(column.name)}]"
    if column.type == "binary":
        return f"unhex(substring({value}, 3))"  # after \x
    if column.type in _AS_TEXT:
        return f"CAST({value} AS {'DATE' if column.type == 'date' else 'TIMESTAMP'})"
    return value


def _json_type(type: str) -> str:
    return "string" if type in _AS_TEXT or type == "binary" else type


def _filled(column: CapturedColumn, key: list[str]) -> str:
    """A value that updates may leave out: the latest one there was by then."""
    name = _quoted(column.name)
    there = f"op <> 'delete' AND NOT coalesce(array_contains(unchanged, {_text(column.name)}), false)"
    by_position = ", ".join(POSITION)
    ranked = f"named_struct({', '.join(f'{_text(each)}, {each}' for each in POSITION)}, 'value', {name})"
    return (
        f"max(CASE WHEN {there} THEN {ranked} END)"
        f" OVER (PARTITION BY {', '.join(map(_quoted, key))} ORDER BY {by_position})['value'] AS {name}"
    )


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
