"""Writes small batches of rows into keyed tables without Spark: upserts, deletes, and mixtures of both."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.client.lake_types import AsOf, Completion, DataFile, Instant, Moment, Schema, StreamBatch
from lake.protocol.formats.keyed_table import (
    CHANGELOG_PRODUCER,
    COLUMN_FAMILIES,
    DELETED,
    ChangelogProducer,
    KeyedTable,
)
from lake.protocol.formats.partition_names import make_name
from lake.protocol.formats.write_defaults import event_time_of, source_of
from lake.protocol.lake import InstantConflict
from lake.tables.buckets import CHANGELOG, Bucket, BucketWriter, Layout, by_bucket, event_times, in_partitions
from lake.tables.keyed.assignment import assigned
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.files import remove_files
from lake.tables.keyed.hashing import buckets_of
from lake.tables.keyed.schema import lengths_of, of_hive
from lake.tables.keyed_tables import layout_of, partition_texts
from lake.tables.late_rows import complete_batch

if TYPE_CHECKING:
    from lake.tables.lake import LakeTable, Writing

KeyedOperation: TypeAlias = Literal["upsert", "delete", "merge", "update_columns"]

OPERATIONS: Sequence[str] = ("upsert", "delete", "merge", "update_columns")

MAX_ATTEMPTS = 20
"""How often a writer merges again after others changed its buckets, before it raises InstantConflict."""


class Applied(NamedTuple):
    """What a write did. The instant is None if it changed nothing. `rows`: records that were given, one per key."""

    instant: Instant | None
    rows: int
    files: Sequence[DataFile]


class Action(NamedTuple):
    """An instant that is to be made. `write` writes its files, and is called anew after a conflict.

    `read_position`: what the rows were made from; a conflict with that is the caller's. `properties`: the table's;
    `rows`: once they are written, the rows that came to each partition. `remove` removes files by their URIs.
    """

    lake: "LakeTable"
    name: str
    write: Callable[["Writing"], Completion]
    read_position: int | None
    properties: Mapping[str, str] = MappingProxyType({})
    rows: Callable[[], Mapping[str, int]] = dict
    remove: Callable[[Sequence[str]], None] = remove_files


def apply(
    lake: "LakeTable",
    rows: pa.Table,
    operation: KeyedOperation,
    *,
    based_on: AsOf | None = None,
    event_time: str | None = None,
    source: str | None = None,
    batch: StreamBatch | None = None,
    heartbeat_seconds: float = 20.0,
) -> Applied:
    """Changes rows of a keyed table by their keys, in one instant.

    `upsert` inserts or updates; `delete` deletes the rows of these keys; `merge` does what each row's `_change_type`
    says (pre-images are skipped); `update_columns` sets the given columns of column families, and rewrites the files of
    these alone: rows whose key isn't there change nothing. With `based_on`, what the rows were made from, a change of
    their buckets since is a conflict; without, the rows are merged again. `batch`: the rows are this batch of a stream,
    and are written once.
    Raises UnfitRows, NotKeyed, InstantConflict; then nothing is written.
    """
    change = _Change(lake, rows, operation, event_time, source, based_on)
    return _applied([change], heartbeat_seconds, batch)[0]


def apply_together(
    changes: Sequence[tuple["LakeTable", pa.Table, KeyedOperation]],
    *,
    based_on: Moment | None = None,
    source: str | None = None,
    batch: StreamBatch | None = None,
    heartbeat_seconds: float = 20.0,
) -> list[Applied]:
    """Changes rows of several keyed tables in one transaction: readers see all of the changes, or none.

    The tables are of one client, each there once. With `based_on`, the moment as of which they were read, a change of
    the same buckets since is a conflict; without, all rows are merged again. `batch` as of `apply`: the tables that get
    rows must be the same when it is repeated. Raises as `apply`.
    """
    return _applied([_Change(*each, None, source, based_on) for each in changes], heartbeat_seconds, batch)


class _Change:
    """A batch for a keyed table."""

    def __init__(
        self,
        lake: "LakeTable",
        rows: pa.Table,
        operation: KeyedOperation,
        event_time: str | None,
        source: str | None,
        based_on: AsOf | None,
    ) -> None:
        self._lake = lake
        self._schema = lake.schema()
        event_time = event_time_of(self._schema.properties, event_time, operation)
        layout = layout_of(lake.name, self._schema, "")
        check_operation(layout.table, operation, event_time)
        if event_time is not None:
            _check_event_time(lake.name, layout, event_time.lower())
        batch = prepared(layout, self._schema, rows, operation)
        new = written_rows(batch)
        self.rows: int = new.num_rows
        self.is_empty = not batch.num_rows
        self._parts = by_group(layout.table, batch) if layout.table.is_table_wide else split(layout.table, batch)
        self._operation = operation
        self._updated = updated_columns(layout, batch.column_names) if operation == "update_columns" else None
        self._event_time = event_time and event_time.lower()
        self._least_event_time = event_times(new, self._event_time)[0]
        self._source = source_of(self._schema.properties, source, "arrow")
        self._based_on = based_on
        self._is_table_wide = layout.table.is_table_wide
        self._action = "deltacommit" if layout.table.is_merge_on_read else "commit"

    def action(self) -> Action:
        position = None if self._based_on is None else self._lake.position_of(self._based_on)
        return Action(self._lake, self._action, self._write, position, self._schema.properties, self._rows_of)

    def _rows_of(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for bucket, some in self._parts.items():
            found[bucket.partition] = found.get(bucket.partition, 0) + some.num_rows
        return found

    def _write(self, writing: "Writing") -> Completion:
        partitions = None if self._is_table_wide else sorted({each.partition for each in self._parts})
        snapshot = self._lake.snapshot(writing.instant.read_position, partitions=partitions, include_uncommitted=True)
        existing = by_bucket(snapshot)
        layout = layout_of(self._lake.name, self._schema, snapshot.location)
        writer = BucketWriter(
            layout, writing.instant.timestamp, writing.directory, writing.path, self._event_time, self._updated
        )
        files = [
            file
            for bucket, some in self._parts.items()
            for file in (
                writer.write_anywhere(bucket.file_group, some, in_partitions(existing, bucket.file_group))
                if self._is_table_wide
                else writer.write(bucket, some, existing.get(bucket, ()))
            )
        ]
        conditional = self._based_on is not None
        return completion_of(
            files,
            self._operation,
            self.rows,
            self._source,
            least_event_time=self._least_event_time,
            conditional=conditional,
            writes_changelog=layout.table.writes_changelog,
            table=layout.table,
            read_groups={each.file_group for each in self._parts} if self._is_table_wide else (),
        )


def _check_event_time(name: str, layout: Layout, column: str) -> None:
    if column not in layout.schema.names:
        raise UnfitRows(f"{name} has no column {column}, of which to take event times")
    kind = layout.schema.field(column).type
    if not pa.types.is_timestamp(kind) and not pa.types.is_date(kind):
        raise UnfitRows(f"the column {column} of {name} is {kind}: event times are timestamps or dates")


def _applied(changes: Sequence[_Change], heartbeat_seconds: float, batch: StreamBatch | None) -> list[Applied]:
    """Applies changes; an empty one makes no instant."""
    done = iter(committed([each.action() for each in changes if not each.is_empty], heartbeat_seconds, batch))
    found = []
    for each in changes:
        commit = None if each.is_empty else next(done)
        if commit is None or commit.instant is None:
            found.append(Applied(None, 0, []))
        else:
            found.append(Applied(commit.instant, each.rows, commit.completion.added))
    return found


class Commit(NamedTuple):
    """What an action came to. The instant is None if its batch was part of the table already."""

    instant: Instant | None
    completion: Completion


def committed(actions: Sequence[Action], heartbeat_seconds: float, batch: StreamBatch | None = None) -> list[Commit]:
    """Completes instants of several tables together, with what their actions write.

    `batch`: what they write is this batch of a stream, which becomes part of the tables once. After a conflict
    everything is written anew, unless an action says what it had read. Raises InstantConflict.
    """
    if not actions:
        return []
    client = actions[0].lake.client
    if any(each.lake.client is not client for each in actions):
        raise ValueError("tables that are written together come from one client")
    for number in range(1, MAX_ATTEMPTS + 1):
        try:
            with ExitStack() as stack:
                writings = [
                    stack.enter_context(
                        each.lake.writing(
                            each.name, read_position=each.read_position, heartbeat_seconds=heartbeat_seconds
                        )
                    )
                    for each in actions
                ]
                completions = [
                    dataclasses.replace(each.write(writing), batch=batch)
                    for each, writing in zip(actions, writings, strict=True)
                ]
                if len(actions) == 1:
                    only = actions[0]
                    completed, completion = complete_batch(
                        writings[0], completions[0], only.properties, only.rows, remove=only.remove
                    )
                    done, completions = [completed], [completion]
                else:
                    done = client.complete(
                        [(each.table, each.instant, made) for each, made in zip(writings, completions, strict=True)]
                    )
                for writing, each in zip(writings, done, strict=True):
                    writing.completed = each
                return [
                    Commit(None, Completion()) if each.batch_repeated else Commit(each.instant, made)
                    for each, made in zip(done, completions, strict=True)
                ]
        except InstantConflict:
            if number == MAX_ATTEMPTS or any(each.read_position is not None for each in actions):
                raise
    raise AssertionError("the last attempt returns or raises")


def completion_of(
    files: Iterable[DataFile],
    operation: str,
    rows: int,
    source: str,
    *,
    least_event_time: datetime | None,
    conditional: bool,
    writes_changelog: bool,
    table: KeyedTable,
    read_groups: Iterable[str] = (),
) -> Completion:
    """The completion of an instant that wrote files of buckets.

    `least_event_time`: of the batch alone. Files may have older rows, which were there before. `writes_changelog`: the
    files of changelogs among them have all rows that changed. `table`: the definition by which they were written.
    `read_groups`: as of `Completion`; in some of them there may have been nothing to write, such as for a delete of a
    key that has no row.
    """
    written = list(files)
    added = [each for each in written if each.kind != CHANGELOG]
    return Completion(
        added=added,
        changelog=[each for each in written if each.kind == CHANGELOG] if writes_changelog else None,
        metadata=json.dumps({"operation": operation, "files": len(added), "rows": rows}).encode(),
        event_times=None if least_event_time is None else {source: least_event_time},
        conditional=conditional,
        layout=table.layout(),
        read_groups=sorted(read_groups),
    )


def prepared(layout: Layout, schema: Schema, rows: pa.Table, operation: KeyedOperation) -> pa.Table:
    """The rows as they are to be written: the data columns in their types, the partition columns as texts, and
    DELETED; with CHANGE_TYPE, and pre-images among them, if the table's changelog is made of them. Raises UnfitRows."""
    if operation not in OPERATIONS:
        raise ValueError(f"{operation!r} is no operation: {', '.join(OPERATIONS)}")
    table = layout.table
    rows = rows.rename_columns([name.lower() for name in rows.column_names])
    check_columns(rows.column_names, table, layout.schema.names, operation)
    kept, deleted, kinds = rows, None, None
    if operation == "merge":
        kinds = rows.column(CHANGE_TYPE).cast(pa.string())
        if unknown := {*kinds.unique().to_pylist()} - {*map(str, ChangeType)}:
            raise UnfitRows(f"{CHANGE_TYPE} is {', '.join(ChangeType)}, not {unknown.pop()}")
        if table.changelog_producer is not ChangelogProducer.INPUT:
            is_new = pc.not_equal(kinds, ChangeType.UPDATE_PREIMAGE)
            kept, kinds = rows.filter(is_new), kinds.filter(is_new)
        deleted = pc.equal(kinds, ChangeType.DELETE)
    elif operation == "delete":
        deleted = pa.chunked_array([pa.repeat(pa.scalar(True), rows.num_rows)])
    wanted = layout.schema
    if operation == "update_columns":
        wanted = pa.schema([each for each in wanted if each.name in kept.column_names])
    columns = [(each.name, each.type) for each in schema.columns]
    data = assigned(kept, wanted, lengths_of(columns, schema.properties))
    for key in schema.keys:
        name = key.name.lower()
        if operation == "delete" and table.is_table_wide:
            texts = pa.chunked_array([pa.nulls(kept.num_rows, pa.string())])  # wherever the row is
        else:
            texts = partition_texts(name, kept.column(name), of_hive(key.type))
        data = data.append_column(name, texts)
    if deleted is not None:
        data = data.append_column(DELETED, deleted)
    if kinds is not None and table.changelog_producer is ChangelogProducer.INPUT:
        data = data.append_column(CHANGE_TYPE, kinds)
    return data


def written_rows(batch: pa.Table) -> pa.Table:
    """The rows of a prepared batch without pre-images."""
    if CHANGE_TYPE not in batch.column_names:
        return batch
    return batch.filter(pc.not_equal(batch.column(CHANGE_TYPE), str(ChangeType.UPDATE_PREIMAGE)))


def updated_columns(layout: Layout, given: Sequence[str]) -> tuple[str, ...]:
    """The columns that an update of columns sets. `given`: all columns of its rows, in lower case."""
    return tuple(name for name in layout.schema.names if name in given and name not in layout.table.key)


def check_operation(table: KeyedTable, operation: str, event_time: str | None = None) -> None:
    """Raises UnfitRows for an operation that doesn't bring what a table's changelog is made of, or that needs column
    families where there are none; ValueError for event times of an update of columns."""
    if operation == "update_columns":
        if not table.families:
            raise UnfitRows(f"update_columns needs {COLUMN_FAMILIES}, which the table doesn't have: upsert whole rows")
        if event_time is not None:
            raise ValueError("an update of columns has no event times: those of its rows were taken when they came")
    if table.changelog_producer is ChangelogProducer.INPUT and operation != "merge":
        raise UnfitRows(
            f"{CHANGELOG_PRODUCER}=input takes merges alone, not {operation}: rows with {CHANGE_TYPE}, and each update"
            f" with its {ChangeType.UPDATE_PREIMAGE}. Set {CHANGELOG_PRODUCER}=lookup to write without"
        )


def check_columns(given: Sequence[str], table: KeyedTable, data: Sequence[str], operation: str) -> None:
    """Raises UnfitRows unless columns (in lower case) are those of a table, and the key's are among them."""
    if twice := sorted({name for name in given if list(given).count(name) > 1}):
        raise UnfitRows(f"the rows have several columns {twice[0]}")
    needed = table.key if table.is_table_wide and operation == "delete" else (*table.partition_columns, *table.key)
    if missing := [name for name in needed if name not in given]:
        what = "belongs to the key" if missing[0] in table.key or not table.is_table_wide else "partitions the table"
        raise UnfitRows(f"the rows have no column {missing[0]}, which {what}")
    if operation == "merge" and CHANGE_TYPE not in given:
        raise UnfitRows(f"rows to merge have a column {CHANGE_TYPE}: {', '.join(ChangeType)}")
    if operation == "update_columns":
        own = [name for name in given if name in data and name not in table.key]
        if whole := [name for name in own if name not in table.family_columns]:
            raise UnfitRows(
                f"the column {whole[0]} is in none of {COLUMN_FAMILIES}: leave it out, or upsert whole rows"
            )
        if not own:
            raise UnfitRows("the rows have no column to update: give some of a column family beside the key")
    unset = [name for name in data if name not in given]
    if operation == "merge" and table.changelog_producer is ChangelogProducer.INPUT and unset:
        raise UnfitRows(f"the rows have no column {unset[0]}: {CHANGELOG_PRODUCER}=input records whole rows")
    known = {*data, *table.partition_columns, CHANGE_TYPE}
    if further := [name for name in given if name not in known and not name.startswith("_commit_")]:
        raise UnfitRows(f"the table has no column {further[0]}: leave it out, or add it to the table first")


def by_group(table: KeyedTable, rows: pa.Table) -> Mapping[Bucket, pa.Table]:
    """The rows of each bucket number, with the partition columns. Buckets have the partition ''."""
    numbers = np.asarray(buckets_of(rows, table))
    return {
        Bucket("", table.file_group(int(number))): rows.filter(pa.array(numbers == number))
        for number in np.unique(numbers)
    }


def split(table: KeyedTable, rows: pa.Table) -> Mapping[Bucket, pa.Table]:
    """The rows of each bucket, without the partition columns, which are texts."""
    numbers = buckets_of(rows, table).to_pylist()
    names: list[str]
    if table.partition_columns:
        columns = [rows.column(name).to_pylist() for name in table.partition_columns]
        names = [make_name(table.partition_columns, values) for values in zip(*columns, strict=True)]
    else:
        names = [""] * rows.num_rows
    indices: dict[Bucket, list[int]] = {}
    for index, (name, number) in enumerate(zip(names, numbers, strict=True)):
        indices.setdefault(Bucket(name, table.file_group(number)), []).append(index)
    data = rows.drop_columns([*table.partition_columns])
    return {bucket: data.take(some) for bucket, some in sorted(indices.items())}
