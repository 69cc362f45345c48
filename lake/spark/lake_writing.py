"""Writes DataFrames into lake tables: Parquet files, then an instant that makes them part of the table.

    write(rows, "shop.orders")
    write(rows, "shop.orders", operation="replace_partitions", event_time="ordered_at")
    write(changes, "shop.customers", operation="upsert")

Spark's tasks write by the metastore's extension into the directory of an instant that has begun, where no reader
looks. What they have written becomes the table's in one transaction of the metastore; until then, and if anything
fails, nobody sees a row of it. Tables of Hudi's are written by Hudi.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DateType, StructField, StructType, TimestampNTZType, TimestampType

from lake.client.lake_types import EVERYWHERE, AsOf, Completion, DataFile, Schema, StreamBatch
from lake.protocol.formats.spark_names import quoted
from lake.protocol.formats.write_defaults import event_time_of, source_of
from lake.protocol.lake import TableReference
from lake.spark import hudi_tables
from lake.spark.hadoop_files import HadoopFiles
from lake.spark.jvm_writer import check_session, write_files
from lake.spark.session_client import lake_table
from lake.spark.store_assignment import assigned
from lake.spark.table_schema import LakeColumns, columns_of, is_hudi, stored_columns, widened
from lake.spark.written import Written, refresh_listings
from lake.tables.keyed.errors import UnfitRows
from lake.tables.lake import LakeTable
from lake.tables.late_rows import complete_batch

Operation: TypeAlias = Literal[
    "append", "overwrite", "replace_partitions", "upsert", "delete", "merge", "update_columns"
]

_BY_KEY = frozenset({"upsert", "delete", "merge", "update_columns"})
"""The operations of keyed tables alone."""

_ACTIONS = {"append": "commit", "overwrite": "replacecommit", "replace_partitions": "replacecommit"}


def write(
    rows: DataFrame,
    table: str | TableReference,
    *,
    operation: Operation = "append",
    event_time: str | None = None,
    source: str | None = None,
    add_columns: bool = False,
    based_on: AsOf | None = None,
    batch: StreamBatch | None = None,
    options: Mapping[str, str] | None = None,
    heartbeat_seconds: float = 20.0,
    uri: str | None = None,
) -> Written:
    """Writes rows into the Parquet table `database.table`, or `table` of the current database.

    A reference with an id means that table alone. Then TableReplaced is raised if another table has the name.

    `append` adds them; `replace_partitions` replaces the partitions that get rows, `overwrite` all of them, or the
    whole of a table without keys. The columns are taken by name and converted to the table's as Spark's INSERT does
    with `storeAssignmentPolicy=ANSI`, whatever the session's settings are: a value that doesn't fit is an error.
    Missing columns become null. With `add_columns` the table gets those that it doesn't have, at its end.

    Rows of a table with a primary key are not appended: `upsert` inserts or updates them by their key; `delete` deletes
    the rows with these keys, of which no other column is needed; `merge` does what each row's `_change_type` says
    (insert, update_postimage, delete; pre-images are skipped). `update_columns` sets columns of the table's column
    families, which the rows have beside the key, and rewrites the files of these families alone.

    `based_on` is what the rows were made from, where that is this table: what the table was read as of. If somebody has
    changed since then what is replaced, that is a conflict; by default only if it happens while this call runs. Changes
    by key are merged again then, unless `based_on` is given.

    `batch` says that the rows are a batch of a stream, whose batches have growing numbers: `StreamBatch("orders", 7)`.
    Batch 7 of it becomes part of the table once. A write that repeats it, or an earlier one, changes nothing. Rows of a
    batch whose partition is ready already follow the table's `partition.late-rows`.

    `event_time` is a column of timestamps or dates: their least and greatest are kept for each file, and the least of
    all moves the table's watermark, as of `source`. By default they are what the table's properties `write.event-time`
    and `write.source` say. A date begins in UTC. `options` are those of Spark's Parquet
    writer, or Hudi's. Heartbeats tell the metastore that the writer lives, every `heartbeat_seconds`: that must be less
    than its `instant_heartbeat_seconds`.
    `uri` is the metastore's, by default that of the session.

    The session is one that `lake.spark.configure` has made: its extension writes the rows.

    Raises InstantConflict if another writer was quicker. Then, and whatever else is raised, by Spark too, nothing has
    been written. Further: NoExtension for another session, NoSuchObjectException without the table,
    InvalidOperationException, UnfitRows, NotParquet, HudiMissing, ValueError for arguments that don't go together.
    """
    _check_name(operation)
    lake = lake_table(rows.sparkSession, table, uri)
    schema = lake.schema()
    if is_hudi(schema):
        if event_time is not None or add_columns or based_on is not None or batch is not None:
            raise ValueError("event times, columns, conflicts and batches of Hudi's tables are Hudi's: see its options")
        hudi_tables.write(rows, lake, operation, options or {})
        return Written(None, 0, 0, 0, [])
    check_operation(lake.name, schema, operation, add_columns=add_columns)
    event_time = event_time_of(schema.properties, event_time, operation)
    source = source_of(schema.properties, source, "spark")
    if schema.keyed_table() is not None:
        if event_time is not None:
            _check_event_time(lake, columns_of(rows.sparkSession, schema), event_time)
        from lake.spark.keyed.commits import KeyedWrite
        from lake.tables.keyed_writes import committed  # needs pyarrow, which other tables don't

        keyed_write = KeyedWrite(rows, lake, schema, operation, event_time=event_time, source=source, based_on=based_on)
        return keyed_write.result(committed([keyed_write.action()], heartbeat_seconds, batch)[0])
    fresh = _further(rows, columns_of(rows.sparkSession, schema))
    if fresh and not add_columns:
        named = ", ".join(each.name for each in fresh)
        raise UnfitRows(f"{lake.name} has no column {named}: leave it out, or say add_columns=True")
    plan = _Plan(lake, schema, fresh, operation, event_time, source, batch)
    return _write_files(rows, plan, options or {}, based_on, heartbeat_seconds)


def check_operation(name: str, schema: Schema, operation: str, *, add_columns: bool) -> None:
    """Raises ValueError for an operation that a table of ours doesn't have. `name`: the table's, for messages."""
    _check_name(operation)
    keyed = schema.keyed_table()
    if keyed is None and operation in _BY_KEY:
        raise ValueError(f"{name} has no primary-key among its properties: rows can't be changed by their key")
    if keyed is not None and operation == "append":
        raise ValueError(f"{name} has a primary key: upsert its rows")
    if keyed is not None and add_columns:
        raise ValueError(f"columns of {name}, which has a primary key, are added by ALTER TABLE")
    if keyed is not None and keyed.is_table_wide and operation == "replace_partitions":
        raise ValueError(f"rows of {name} may be in any partition: upsert them, or overwrite the table")
    if operation == "replace_partitions" and not schema.keys:
        raise ValueError(f"{name} has no partitions to replace: overwrite it")


def _check_name(operation: str) -> None:
    if operation not in _ACTIONS and operation not in _BY_KEY:
        raise ValueError(f"{operation!r} is no operation: {', '.join((*_ACTIONS, *sorted(_BY_KEY)))}")


@dataclass(frozen=True)
class _Plan:
    """What a write into a table without primary key does. `fresh`: the columns that the table gets."""

    lake: LakeTable
    schema: Schema
    fresh: list[StructField]
    operation: Operation
    event_time: str | None
    source: str
    batch: StreamBatch | None


def _write_files(
    rows: DataFrame, plan: _Plan, options: Mapping[str, str], based_on: AsOf | None, heartbeat_seconds: float
) -> Written:
    """Writes rows as files of an instant, and completes it."""
    lake = plan.lake
    known = columns_of(rows.sparkSession, plan.schema, to_write=True)
    columns = LakeColumns(StructType([*known.data, *plan.fresh]), known.keys)
    check_session(rows.sparkSession)
    if plan.event_time is not None:
        _check_event_time(lake, columns, plan.event_time)
    position = None if based_on is None else lake.position_of(based_on)
    action = _ACTIONS[plan.operation]
    fitted = _fitted(rows, lake.name, plan.schema, columns)
    stored = StructType(fitted.schema.fields[: len(columns.data)])
    with lake.writing(action, read_position=position, heartbeat_seconds=heartbeat_seconds) as writing:
        written = write_files(
            fitted, lake, writing, stored, columns.key_names, event_time=plan.event_time, options=options
        )
        remove = HadoopFiles(rows.sparkSession).remove_all
        done, made = complete_batch(writing, _completion(plan, written.files), plan.schema.properties, remove=remove)
        files = made.added
    refresh_listings(rows.sparkSession, lake)
    if done.batch_repeated:
        return Written(None, 0, 0, 0, [])
    return Written(
        done.instant,
        sum(each.rows or 0 for each in files),
        len(files),
        sum(each.size for each in files),
        sorted({each.partition for each in files}),
    )


def _further(rows: DataFrame, columns: LakeColumns) -> list[StructField]:
    """The columns that the table doesn't have. Raises UnfitRows without those of its keys, or with one twice."""
    names = [name.lower() for name in rows.columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UnfitRows(f"the rows have several columns {twice[0]}")
    if missing := [key for key in columns.key_names if key not in names]:
        raise UnfitRows(f"the rows have no column {', '.join(missing)}, by which the table is partitioned")
    known = {each.name.lower() for each in (*columns.data, *columns.keys)}
    return [StructField(each.name, each.dataType) for each in rows.schema if each.name.lower() not in known]


def _check_event_time(lake: LakeTable, columns: LakeColumns, name: str) -> None:
    """Raises UnfitRows unless a column has times: numbers would be taken for seconds, and the watermark stays moved."""
    kind = next((each.dataType for each in columns.data if each.name.lower() == name.lower()), None)
    if kind is None:
        raise UnfitRows(f"{lake.name} has no column {name} beside its keys, of which to take event times")
    if not isinstance(kind, TimestampType | TimestampNTZType | DateType):
        raise UnfitRows(f"{lake.name}'s column {name} is {kind.simpleString()}: event times are timestamps or dates")


def _fitted(rows: DataFrame, table: str, schema: Schema, columns: LakeColumns) -> DataFrame:
    """The table's columns in its order, and its keys as the text that partitions are named by. Raises UnfitRows."""
    given = {each.name.lower(): each.name for each in (*columns.data, *columns.keys)}
    rows = rows.toDF(*(given.get(name.lower(), name) for name in rows.columns))  # whatever their case
    # By way of the key's own type: `07` of a number is 7.
    parsed = [each.name for each in columns.keys]
    found = assigned(rows, table, StructType([*columns.data, *columns.keys]), parsed)
    return found.select(
        *stored_columns(schema, columns.data),
        *(sf.col(quoted(each.name)).cast("string").alias(each.name.lower()) for each in columns.keys),
    )


def _completion(plan: _Plan, files: Sequence[DataFile]) -> Completion:
    operation, schema = plan.operation, plan.schema
    written = {each.partition for each in files}
    replaced: set[str] = set()
    if operation == "overwrite":
        replaced = {*plan.lake.partitions(), *written} if schema.keys else {""}
    elif operation == "replace_partitions":
        replaced = written
    new_columns, properties = widened(schema, plan.fresh) if plan.fresh else (None, None)
    first = min((each.min_event_time for each in files if each.min_event_time is not None), default=None)
    about = {"operation": operation, "files": len(files), "rows": sum(each.rows or 0 for each in files)}
    return Completion(
        added=files,
        staged=operation == "append",
        relocate=operation != "append",
        replaced_partitions=sorted(replaced),
        replaced_where=EVERYWHERE if operation == "overwrite" else None,
        metadata=json.dumps(about).encode(),
        columns=new_columns,
        schema_properties=properties,
        event_times=None if first is None else {plan.source: first},
        batch=plan.batch,
    )
