"""Columns that come with a commit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eventbus.events import EventType
from metastore.services import objects
from metastore.services.events import Events
from metastore.services.validation import check_columns
from metastore.store import constraints, descriptors, statistics, tables
from metastore.store.database import Transaction
from metastore.store.tables import TableRow
from metastore.wire import splice
from metastore.wire.hive import FieldSchema, InvalidOperationException
from metastore.wire.lake import Column

PROPERTY = "timeline.schema-changes"
"""Of a table: `add` (the default) lets commits add columns at the end, `any` lets them do what they like."""

ADD, ANY = "add", "any"

SPARK_SCHEMA = "spark.sql.sources.schema"
"""How the names of the properties begin in which Spark keeps the columns of its own tables."""


def allowed_changes(parameters: Mapping[str, str]) -> str:
    """Which changes of its columns a table's parameters allow: ADD or ANY. Raises InvalidOperationException."""
    allowed = parameters.get(PROPERTY, ADD).strip().lower()
    if allowed not in (ADD, ANY):
        raise InvalidOperationException(f"{PROPERTY} must be {ADD} or {ANY}, not {allowed!r}")
    return allowed


def change_columns(
    tx: Transaction, row: TableRow, given: Sequence[Column], properties: Mapping[str, str], events: Events
) -> TableRow:
    """Gives a table, whose row the caller holds, the columns of a commit; its row afterwards.

    `properties` take the place of those in which Spark keeps the columns. Raises InvalidOperationException for a change
    that the table doesn't allow.
    """
    if other := sorted(name for name in properties if not name.startswith(SPARK_SCHEMA)):
        raise InvalidOperationException(f"{other[0]!r} is no property that goes with columns: {SPARK_SCHEMA}…")
    old = objects.table_of(row)
    assert old.sd is not None
    columns = objects.columns([FieldSchema(name=c.name, type=c.type, comment=c.comment) for c in given])
    before = old.sd.cols or []
    if [(c.name, c.type) for c in columns] == [(c.name, c.type) for c in before]:
        return row
    check_columns([*columns, *(old.partitionKeys or [])])
    allowed = allowed_changes(row.parameters)
    kept = [(c.name, c.type) for c in columns[: len(before)]]
    if allowed == ADD and kept != [(c.name, c.type) for c in before]:
        raise InvalidOperationException(
            f"a commit may only add columns at the end of those of {row.name}, unless {PROPERTY} is {ANY}"
        )
    types = {c.name: c.type for c in columns}
    changed = [c.name or "" for c in before if types.get(c.name) != c.type]
    statistics.remove_columns(tx, row.id, changed, partitions_too=True)
    constraints.remove_columns(tx, row.id, [name for name in changed if name not in types])
    new = old.replace(sd=old.sd.replace(cols=columns))
    if properties:
        others = {key: value for key, value in row.parameters.items() if not key.startswith(SPARK_SCHEMA)}
        new = new.replace(parameters={**others, **properties})
    assert new.sd is not None
    body = splice.descriptor_body(new.sd)
    number = descriptors.keep(tx, [body])[body]
    tables.change(tx, row.id, row.database_id, objects.table_values(new, number))
    events.table(tx, EventType.ALTER_TABLE, old, new)
    return replace(row, descriptor_id=number, descriptor=body, parameters=new.parameters or {})
