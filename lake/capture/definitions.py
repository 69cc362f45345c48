"""Writes the SQL by which a raw table becomes a typed table of `lake.layers`, kept as the source has it."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from lake.capture.errors import CaptureError
from lake.capture.held_changes import HeldChanges
from lake.capture.schema_changes.flow import Agreement, agreement, fills_of
from lake.capture.schema_changes.history import History, begin_of, history_of
from lake.capture.schema_changes.policy import Policy
from lake.capture.typed_changes import POSITION, CapturedColumn, TypedChanges, sql_text
from lake.protocol.formats.keyed_table import BUCKET_KEY, KEY_TYPES, PRIMARY_KEY
from lake.protocol.formats.spark_names import quoted
from lake.tables.lake import LakeTable

_RESERVED = {"op", *POSITION, "_row_key", "_change_type"}
"""Names of the columns that changes and layers have beside the source's."""


def columns_of(lake: LakeTable, table: str) -> list[CapturedColumn]:
    """The columns of a source's table as they were last written down. Raises CaptureError for a table without."""
    return _columns(_history(lake, table).eras[-1].text)


def _history(lake: LakeTable, table: str) -> History:
    """The history of a source's table. Raises CaptureError for a table without columns."""
    history = history_of(lake, table)
    if not history.eras:
        raise CaptureError(f"nothing of {table} is captured yet")
    return history


def _columns(text: str) -> list[CapturedColumn]:
    """The columns that a `schema` row describes."""
    return [
        CapturedColumn(each["name"], each["type"], each["key"], each["large"], each["form"])
        for each in json.loads(text)
    ]


def names_of(tables: Iterable[str]) -> dict[str, str]:
    """What the definitions of some tables of a source are called, by table: as the table, or with its schema before it
    where another one's definitions have that name. Names don't differ by case alone."""
    names = {each: each.rpartition(".")[2] for each in tables}
    users = Counter(made.lower() for name in names.values() for made in _made(name))
    return {
        each: each.replace(".", "_") if any(users[made.lower()] > 1 for made in _made(name)) else name
        for each, name in names.items()
    }


def _made(name: str) -> tuple[str, str, str, str, str]:
    """The table, its typed changes, the flow between them, the changes that are kept out of it, and those of which
    large values are left out."""
    return name, f"{name}_changes", f"{name}_flow", f"{name}_misfits", f"{name}_as_sent"


def _quoted(name: str) -> str:
    """The name of one of these, perhaps with its database, in SQL."""
    return ".".join(map(quoted, name.split(".")))


def definition(
    lake: LakeTable,
    table: str,
    name: str | None = None,
    *,
    quarantines: bool = False,
    policy: Policy | None = None,
    is_printed: bool = True,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The definitions for one table: its typed changes, and the table that they come to, by AUTO CDC. Where changes
    have large values to be filled in, or wait, a table of the changes as they were sent is between.

    `name`: of the latter, perhaps with its database; by default as in the source. `quarantines`: changes with values
    that don't fit the types of their columns go to a table of their own; else they let the refresh fail. `policy`: what
    becomes of changes of the table's columns; None if all are applied. While one is held, the columns before it flow
    on. `is_printed`: for a person, who has to print it again when the columns change. `properties`: of all these
    tables.
    Raises CaptureError for a table without a key, whose rows no change can name, for a key that is left out, and for
    columns whose names are taken, differ by case alone or are none that layers have, and for a raw table that layers
    can't read.
    """
    if lake.named.catalog not in (None, "hive"):  # by its name layers would read another table
        raise CaptureError(f"{lake.full_name} is of another catalog: layers read tables of the metastore's default one")
    history = _history(lake, table)
    if policy is None:
        agreed = Agreement(history.eras[-1].text, frozenset(), fills_of(history.eras))
    else:
        agreed = agreement(history, policy)
    columns, without, held = _columns(agreed.text), agreed.without, agreed.held
    if missing := [each.name for each in columns if each.in_key and each.name in without]:
        raise CaptureError(f"the column {missing[0]} is in the key of {table}: it can't be left out")
    columns = [each for each in columns if each.name not in without]
    key = [each.name for each in columns if each.in_key]
    _check(table, columns, key)
    fills = [each for each in agreed.fills if each.column in {column.name for column in columns}]
    target, changes, flow, misfits, sent = map(_quoted, _made(name or table.rpartition(".")[2]))
    listed = ", ".join(map(quoted, key))
    # A definition that is printed may be there for longer than the raw table.
    begin = None if is_printed else begin_of(history, columns[-1].form, None if held is None else held.since)
    if held is None:
        typed = TypedChanges(
            lake, table, columns, key, fills, quarantines=quarantines, is_printed=is_printed, begin=begin
        )
    else:
        typed = HeldChanges(
            lake, table, columns, key, fills, held, quarantines=quarantines, is_printed=is_printed, begin=begin
        )
    given, placed = _listed(properties), _listed({**properties, **_by_key(columns)})
    of_changes = placed if properties else given  # without any they keep the key that earlier versions gave them
    before = kept_apart = ""
    if typed.needs_others:
        before = f"CREATE MATERIALIZED VIEW {sent}{placed} AS\n{typed.sent()};\n\n"
    if quarantines:
        kept_apart = f"CREATE MATERIALIZED VIEW {misfits}{given} AS\n{typed.misfits()};\n\n"
    return (
        f"{before}CREATE MATERIALIZED VIEW {changes}{of_changes} AS\n"
        f"{typed.changes(sent if before else None)};\n\n{kept_apart}"
        f"CREATE STREAMING TABLE {target}{given};\n\n"
        f"CREATE FLOW {flow} AS AUTO CDC INTO {target} FROM STREAM({changes})\n"
        f"  KEYS ({listed}) APPLY AS DELETE WHEN op = 'delete'\n"
        f"  SEQUENCE BY struct({', '.join(POSITION)})\n"
        f"  COLUMNS * EXCEPT (op, {', '.join(POSITION)}) STORED AS SCD TYPE 1;\n"
    )


def _by_key(columns: Iterable[CapturedColumn]) -> dict[str, str]:
    """The properties by which all changes of a row are in one bucket; none if its key has types that no key has."""
    types = {each.name: each.type for each in columns if each.in_key}
    if not KEY_TYPES.issuperset(types.values()):
        return {}
    return {PRIMARY_KEY: ",".join([*types, *POSITION]), BUCKET_KEY: ",".join(types)}


def _listed(properties: Mapping[str, str]) -> str:
    """Properties as a definition has them."""
    listed = ", ".join(f"{sql_text(name)} = {sql_text(value)}" for name, value in properties.items())
    return f"\n  TBLPROPERTIES ({listed})" if listed else ""


def _check(table: str, columns: list[CapturedColumn], key: list[str]) -> None:
    """Raises CaptureError for columns of which no typed table can be made."""
    if not key:
        raise CaptureError(f"{table} has no key: only its raw changes can be read")
    if taken := [each.name for each in columns if each.name.lower() in _RESERVED]:
        raise CaptureError(
            f"the column {taken[0]} of {table} has a name that changes need: write its definition by hand"
        )
    if odd := [each.name for each in columns if not each.name.replace("_", "a").isalnum()]:
        raise CaptureError(
            f"the column {odd[0]} of {table} has other signs in its name than letters, digits and underscores, which"
            " layers don't take: rename it, or leave it out by a list of columns in the publication"
        )
    if alike := [each for each, count in Counter(each.name.lower() for each in columns).items() if count > 1]:
        names = " and ".join(each.name for each in columns if each.name.lower() == alike[0])
        raise CaptureError(
            f"the columns {names} of {table} differ by case alone, which Spark doesn't tell apart: rename one, or leave"
            " it out by a list of columns in the publication"
        )
