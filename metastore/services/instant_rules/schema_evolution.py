"""Changes of a table's columns by a completion."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lake.protocol.codec import splice
from lake.protocol.events.types import EventType
from lake.protocol.formats.keyed_table import BUCKET, BUCKET_KEY, PRIMARY_KEY, BadKeyedTable
from lake.protocol.formats.spark_schema import SCHEMA
from lake.protocol.hive import FieldSchema, InvalidOperationException
from lake.protocol.lake import Column
from metastore.services.events.recorder import Events
from metastore.services.instant_rules.column_ids import keep_column_ids
from metastore.services.instant_rules.keyed_tables import check_change, is_keyed, say_features
from metastore.services.model import hive_objects
from metastore.services.model.validation import check_columns
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files
from metastore.store.statistics import statistics
from metastore.store.table import constraints, descriptors, tables
from metastore.store.table.tables import TableRow

PROPERTY = "timeline.schema-changes"
"""The table property for allowed changes: `add` (the default): columns may be added at the end; `any`: all changes."""

ADD, ANY = "add", "any"

_LAYOUT = (PRIMARY_KEY, BUCKET, BUCKET_KEY)
"""Properties of a keyed table by which rows are placed: they can be others once all of its files are."""


def allowed_changes(parameters: Mapping[str, str]) -> str:
    """The value of PROPERTY in a table's parameters: ADD or ANY. Raises InvalidOperationException for another one."""
    allowed = parameters.get(PROPERTY, ADD).strip().lower()
    if allowed not in (ADD, ANY):
        raise InvalidOperationException(f"{PROPERTY} must be {ADD} or {ANY}, not {allowed!r}")
    return allowed


class ChangedColumns(NamedTuple):
    """A table whose columns were set. `is_redefined`: its new definition doesn't read files of earlier snapshots."""

    row: TableRow
    is_redefined: bool


def change_columns(
    tx: Transaction,
    row: TableRow,
    given: Sequence[Column],
    properties: Mapping[str, str],
    position: int,
    events: Events,
) -> ChangedColumns:
    """Sets a table's columns. The caller has locked the table's row.

    `properties`: replace the properties in which Spark stores the columns; and the primary key and the buckets of a
    keyed table all of whose files this completion replaces, '' for a property that goes. `position`: the last one
    before this completion, whose files the snapshot has been given already. Raises InvalidOperationException for a
    change that the table doesn't allow.
    """
    if other := sorted(name for name in properties if not name.startswith(SCHEMA) and name not in _LAYOUT):
        raise InvalidOperationException(
            f"{other[0]!r} can't be changed with the columns: only {', '.join(_LAYOUT)} and properties named"
            f" {SCHEMA}… can"
        )
    redefined = [name for name in _LAYOUT if properties.get(name, row.parameters.get(name)) != row.parameters.get(name)]
    old = hive_objects.table_of(row)
    assert old.sd is not None
    columns = hive_objects.columns([FieldSchema(name=c.name, type=c.type, comment=c.comment) for c in given])
    before = old.sd.cols or []
    if [(c.name, c.type) for c in columns] == [(c.name, c.type) for c in before] and not redefined:
        return ChangedColumns(row, is_redefined=False)
    check_columns([*columns, *(old.partitionKeys or [])])
    allowed = allowed_changes(row.parameters)
    kept = [(c.name, c.type) for c in columns[: len(before)]]
    if allowed == ADD and kept != [(c.name, c.type) for c in before]:
        raise InvalidOperationException(
            f"a commit may only add columns at the end of those of {row.name}, unless {PROPERTY} is {ANY}"
        )
    loses_key = not properties.get(PRIMARY_KEY, PRIMARY_KEY).strip()
    if redefined and (allowed == ADD or not is_keyed(row) or loses_key):
        raise InvalidOperationException(
            f"a commit may only give {row.name} another {redefined[0]} if it has a {PRIMARY_KEY}, and if {PROPERTY} is"
            f" {ANY}"
        )
    types = {c.name: c.type for c in columns}
    changed = [c.name or "" for c in before if types.get(c.name) != c.type]
    statistics.remove_columns(tx, row.id, changed, partitions_too=True)
    constraints.remove_columns(tx, row.id, [name for name in changed if name not in types])
    new = old.replace(sd=old.sd.replace(cols=columns))
    if properties:
        replaces = any(key.startswith(SCHEMA) for key in properties)
        others = {key: value for key, value in row.parameters.items() if not replaces or not key.startswith(SCHEMA)}
        new = new.replace(
            parameters={key: value for key, value in {**others, **properties}.items() if _is_kept(key, value)}
        )
    if redefined:
        say_features(new, row.parameters)
    try:
        is_redefined = check_change(tx, row, old, new, up_to=position)
    except BadKeyedTable as error:
        raise InvalidOperationException(f"{row.name}: {error}") from None
    # If it has replaced all files, no file is read by names that could be understood in two ways.
    is_rewritten = is_keyed(row) and not data_files.has_live(tx, row.id, up_to=position)
    new = keep_column_ids(tx, row, old, new, is_rewritten=is_rewritten)
    assert new.sd is not None
    body = splice.descriptor_body(new.sd)
    number = descriptors.keep(tx, [body])[body]
    tables.change(tx, row.id, row.database_id, hive_objects.table_values(new, number))
    events.table(tx, EventType.ALTER_TABLE, old, new)
    row = replace(row, descriptor_id=number, descriptor=body, parameters=new.parameters or {})
    return ChangedColumns(row, is_redefined)


def _is_kept(name: str, value: str) -> bool:
    return name not in _LAYOUT or bool(value.strip())
