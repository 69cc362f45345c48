"""The buckets of keyed tables: their files in a snapshot, what these hold, and new files for them.

Readers and writers of all kinds go through here, so that rows are merged by one set of rules.
"""

import json
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake import __version__
from lake.client.lake_types import DataFile, from_millis
from lake.protocol.errors import UserError
from lake.protocol.formats.column_ids import ColumnIds
from lake.protocol.formats.keyed_table import DELETED, INSTANT, TOMBSTONES, ChangelogProducer, KeyedTable, file_name
from lake.protocol.formats.partition_names import make_name
from lake.tables.keyed.batches import log_records
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType, net_changes
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.files import fitted, read_rows, remove_others, write_rows
from lake.tables.keyed.given_changes import given_changes
from lake.tables.keyed.merging import Merged, merge
from lake.tables.keyed.placing import placed
from lake.tables.keyed.versions import NONE, Indices, as_mask, key_codes, same_values, text_of

logger = logging.getLogger(__name__)

_TIMESTAMP, _TIMESTAMP_LENGTH = "%Y%m%d%H%M%S%f", 17

_CHANGE = pa.field(CHANGE_TYPE, pa.string())

_MARKS = (pa.field(INSTANT, pa.string()), pa.field(DELETED, pa.bool_()))


CHANGELOG = "changelog"
"""The kind of files with the rows that a commit changed. They belong to no snapshot."""

EventTimes: TypeAlias = tuple[datetime | None, datetime | None]
"""The least and the greatest event time of some rows; None if that isn't known."""


class Bucket(NamedTuple):
    """A bucket of a partition; the partition of a table without keys is empty."""

    partition: str
    file_group: str


class DamagedBucket(UserError):
    """The files of a bucket don't belong together."""


@dataclass(frozen=True)
class Layout:
    """What one needs to know of a table to read its buckets: its definition, data columns, and where its files are.

    `ids`: of its columns; None if there are no files in which they have other names.
    """

    table: KeyedTable
    schema: pa.Schema
    location: str
    ids: ColumnIds | None = None
    remembered: dict[tuple[str, ...], pa.Table] | None = field(default=None, compare=False, repr=False)

    def remembering(self) -> "Layout":
        """The same, but it keeps what it has read of files: for several states of one bucket."""
        return replace(self, remembered={})

    def read(self, files: Iterable[DataFile], columns: Sequence[str] | None = None) -> Merged:
        """The rows of one bucket, of its files in one snapshot; with `columns`, those and what is merged by."""
        schema = self.schema if columns is None else self._narrow(columns)
        return merge(self.table, schema, self.versions(files, schema))

    def versions(self, files: Iterable[DataFile], schema: pa.Schema) -> list[pa.Table]:
        """The versions in the files of one bucket, in the order in which they are merged.

        The base file and those of its column families, which have the same rows in the same order, are one of them.
        Raises DamagedBucket.
        """
        ordered = in_order(files)
        families = [each for each in ordered if is_family(each)]
        return [
            self._with_families(each, families, schema)
            if families and each.kind == "base"
            else self._version(each, schema)
            for each in ordered
            if not is_family(each)
        ]

    def family(self, name: str, main: DataFile, files: Iterable[DataFile]) -> DataFile:
        """The file of a column family among a bucket's files. Raises DamagedBucket unless it is of its main one."""
        wanted = {*dict(self.table.families)[name]}
        for each in files:
            if is_family(each) and {*(each.columns or ())} == wanted:
                if each.statistics == _rows_of(main):
                    return each
                raise DamagedBucket(
                    f"{each.path} has columns of rows that aren't those of {main.path}: roll back what was written last"
                )
        raise DamagedBucket(f"the column family {name} of {main.path} has no file: roll back what was written last")

    def _with_families(self, main: DataFile, files: Sequence[DataFile], schema: pa.Schema) -> pa.Table:
        apart = {*self.table.family_columns}
        rows = self._version(main, pa.schema([each for each in schema if each.name not in apart]))
        instants = rows.column(INSTANT)
        columns = {name: rows.column(name) for name in rows.column_names}
        for name, members in self.table.families:
            wanted = [each for each in schema if each.name in members]
            if not wanted:
                continue
            file = self.family(name, main, files)
            part = self._version(file, pa.schema(wanted))
            if part.num_rows != rows.num_rows:
                raise DamagedBucket(f"{file.path} has {part.num_rows} rows, and {main.path} {rows.num_rows}")
            columns.update({each.name: part.column(each.name) for each in wanted})
            instants = pc.max_element_wise(instants, part.column(INSTANT))
        whole = pa.schema([*schema, _MARKS[0]])
        columns[INSTANT] = instants
        return pa.table([columns[name] for name in whole.names], schema=whole)

    def deletes(self, before: Merged, logs: Sequence[DataFile]) -> pa.Table:
        """Key and INSTANT of the deletes that removed rows, as log files say that came after a state of the bucket.

        Several per key, the last of which counts.
        """
        names = [*self.table.key, INSTANT]
        schema = pa.schema([*self.schema, *_MARKS])
        # Tombstones have the deletes of copy-on-write writers that removed a row.
        removed = [self._version(each, self.schema).select(names) for each in logs if is_tombstones(each)]
        records = [self._version(each, self.schema) for each in logs if not is_tombstones(each)]
        if records:
            state = [before.rows, fitted(before.tombstones, schema), *records]
            removed.append(merge(self.table, self.schema, state).deletes)
        return pa.concat_tables([schema.empty_table().select(names), *removed])

    def changed_by(self, before: Merged, records: pa.Table) -> pa.Table:
        """The changes that the records of a batch make to a state of the bucket: data columns and CHANGE_TYPE."""
        tombstones = fitted(before.tombstones, pa.schema([*self.schema, *_MARKS]))
        after = merge(self.table, self.schema, [before.rows, tombstones, records])
        return net_changes(self.table, before.rows, after.rows, after.deletes).drop_columns([INSTANT])

    def changelog(self, files: Iterable[DataFile]) -> pa.Table:
        """The changes in files of a bucket's changelog: data columns, INSTANT and CHANGE_TYPE, in the files' order."""
        wanted = pa.schema([*self.schema, _CHANGE])
        parts = []
        for each in files:
            rows = read_rows(self.uri(each), wanted, self.names_in(each))
            parts.append(rows.append_column(INSTANT, pa.repeat(pa.scalar(each.slice), rows.num_rows)))
        return pa.concat_tables(parts)

    def uri(self, file: DataFile) -> str:
        return f"{self.location}/{file.path}"

    def names_in(self, file: DataFile) -> dict[str, str | None]:
        """The names of the columns in a file, by today's, as `ColumnIds.in_file`."""
        return {} if self.ids is None else self.ids.in_file(completed_at(file))

    def is_renamed(self, file: DataFile) -> bool:
        """Whether columns have other names in a file than today."""
        return any(name != then for name, then in self.names_in(file).items())

    def keys_of(self, file: DataFile) -> pa.Table:
        """The keys of a file's rows and their INSTANT, in the order of the file."""
        return self._version(file, pa.schema([self.schema.field(name) for name in self.table.key]))

    def rewrite(self, file: DataFile, uri: str) -> None:
        """Writes the rows of a file into a new one, with today's columns."""
        write_rows(uri, self._version(file, self.schema), {} if self.ids is None else self.ids.now())

    def _version(self, file: DataFile, schema: pa.Schema) -> pa.Table:
        marks = _MARKS if file.kind == "log" else _MARKS[:1]
        wanted = pa.schema([*schema, *marks])
        if self.remembered is None:
            return read_rows(self.uri(file), wanted, self.names_in(file))
        key = (file.path, *wanted.names)
        if key not in self.remembered:
            self.remembered[key] = read_rows(self.uri(file), wanted, self.names_in(file))
        return self.remembered[key]

    def _narrow(self, columns: Sequence[str]) -> pa.Schema:
        table = self.table
        groups = [name for version, members in table.sequence_groups for name in (version, *members)]
        wanted = {*columns, *table.key, *table.sequence, *groups}
        return pa.schema([each for each in self.schema if each.name in wanted])


@dataclass(frozen=True)
class BucketWriter:
    """Writes the files of an instant, bucket by bucket. Can be sent to other processes.

    `directory`: the URI of the instant's directory, `path` the same relative to the table. `event_time`: the column of
    which the least and greatest values are kept for each file. `updated`: the columns that rows bring which update
    columns of families alone; None where rows are whole.
    """

    layout: Layout
    instant: str
    directory: str
    path: str
    event_time: str | None = None
    updated: tuple[str, ...] | None = None

    @property
    def batch_schema(self) -> pa.Schema:
        """The data columns that the rows of a batch have."""
        if self.updated is None:
            return self.layout.schema
        kept = {*self.layout.table.key, *self.updated}
        return pa.schema([each for each in self.layout.schema if each.name in kept])

    def write(self, bucket: Bucket, rows: pa.Table, existing: Sequence[DataFile]) -> list[DataFile]:
        """Writes a batch's rows of one bucket: the data columns, and DELETED unless all are upserts.

        If the table has a changelog, one of the files is the bucket's, unless no row changes. The rows have
        CHANGE_TYPE, too, if it is made of them. `existing`: the bucket's files in the snapshot that was read. Rows that
        update columns have the key and these alone; those whose key isn't there change nothing. Raises UnfitRows.
        """
        if self.updated is not None:
            return self._update_columns(bucket, rows, existing)
        if self.layout.table.changelog_producer is ChangelogProducer.INPUT and CHANGE_TYPE in rows.column_names:
            changes = given_changes(self.layout.table, rows.drop_columns([DELETED]))
            is_old = pc.equal(rows.column(CHANGE_TYPE), str(ChangeType.UPDATE_PREIMAGE))
            files, _ = self._write(bucket, rows.filter(pc.invert(is_old)).drop_columns([CHANGE_TYPE]), existing)
            return [*files, *self._put_changelog(bucket, changes)]
        if self.layout.table.changelog_producer is not ChangelogProducer.LOOKUP:
            return self._write(bucket, rows, existing)[0]
        looking = replace(self, layout=self.layout.remembering())
        files, records = looking._write(bucket, rows, existing)
        if not records.num_rows:
            return files
        changes = looking.layout.changed_by(looking.layout.read(existing), records)
        return [*files, *self._put_changelog(bucket, changes)]

    def _write(self, bucket: Bucket, rows: pa.Table, existing: Sequence[DataFile]) -> tuple[list[DataFile], pa.Table]:
        """Writes the rows of one bucket. Returns the files, and the log records that the rows came to."""
        table = self.layout.table
        if DELETED in rows.column_names and table.sequence:
            rows = self._with_sequences(rows, existing)
        records = log_records(table, rows, self.instant)
        if not records.num_rows:
            return [], records
        if table.is_merge_on_read and existing:
            return [self._put(bucket, records, "log")], records
        merged = merge(table, self.layout.schema, [*self.layout.versions(existing, self.layout.schema), records])
        tombstones = merged.tombstones
        if not table.keeps_tombstones:  # nobody merges by them, but they say which instant deleted a row
            mark = pa.repeat(pa.scalar(True), merged.deletes.num_rows)
            tombstones = merged.deletes.append_column(DELETED, mark)
        # Even if no row is left: another writer of the bucket must learn that it wasn't alone.
        return self.put_merged(bucket, merged.rows, tombstones), records

    def _update_columns(self, bucket: Bucket, rows: pa.Table, existing: Sequence[DataFile]) -> list[DataFile]:
        """Writes the families whose columns the rows change; the main file and other families stay."""
        table = self.layout.table
        main = next((each for each in in_order(existing) if each.kind == "base" and not is_family(each)), None)
        if main is None:
            _check_keys(table, rows)
            return []
        keys = self.layout._version(main, _narrowed(self.layout.schema, rows.select([*table.key])))
        places = _places_of_keys(table, keys, rows)
        rows, places = rows.filter(pa.array(places >= 0)), places[places >= 0]
        written: dict[str, DataFile] = {}
        for name, members in table.families:
            if given := [each for each in members if each in rows.column_names]:
                file = self.layout.family(name, main, existing)
                old = self.layout._version(file, pa.schema([self.layout.schema.field(each) for each in members]))
                if (new := _with_values(old, rows.select(given), places, self.instant)) is not None:
                    written[file.path] = self._put_family(bucket, new, members, main)
        if not written or not table.writes_changelog:
            return [*written.values()]
        after = [written.get(each.path, each) for each in existing]
        looking = self.layout.remembering()
        before, now = looking.read(existing), looking.read(after)
        changes = net_changes(table, before.rows, now.rows, before.deletes.slice(0, 0)).drop_columns([INSTANT])
        return [*written.values(), *self._put_changelog(bucket, changes)]

    def _put_changelog(self, bucket: Bucket, changes: pa.Table) -> list[DataFile]:
        return [self._put(bucket, changes, CHANGELOG)] if changes.num_rows else []

    def write_anywhere(
        self, file_group: str, rows: pa.Table, existing: Mapping[str, Sequence[DataFile]]
    ) -> list[DataFile]:
        """Writes a batch's rows of one bucket number into the partitions in which they are, or to which they come.

        For tables whose key is unique over all partitions. `rows`: the data columns, the partition columns as texts
        (null in deletes that don't say theirs), and DELETED unless all are upserts. `existing`: the files of the bucket
        in each partition, in the snapshot that was read. Raises UnfitRows.
        """
        layout = self.layout
        states = {place: layout.read(files, layout.table.sequence) for place, files in existing.items()}
        return [
            file
            for place, some in placed(layout.table, rows, _places(layout.table, rows), states).items()
            for file in self.write(Bucket(place, file_group), some, existing.get(place, ()))
        ]

    def put_merged(
        self, bucket: Bucket, rows: pa.Table, tombstones: pa.Table, times: EventTimes | None = None
    ) -> list[DataFile]:
        """Writes a base file, and a file of tombstones if some must be remembered.

        `times`: by default those of the rows.
        """
        table = self.layout.table
        times = event_times(rows, self.event_time) if times is None else times
        main = self._put(bucket, rows.drop_columns([*table.family_columns]), "base", times=times)
        files = [main]
        for _, members in table.families:
            files.append(self._put_family(bucket, rows.select([*members, INSTANT]), members, main))
        tombstones = self._remembered(tombstones)
        if tombstones.num_rows:
            files.append(self._put(bucket, tombstones, "log", tombstones=True))
        return files

    def _remembered(self, tombstones: pa.Table) -> pa.Table:
        """The tombstones that are not older than the table's property says, by the instant that is written."""
        millis = self.layout.table.tombstone_millis
        oldest = None if millis is None else _timestamp_before(self.instant, timedelta(milliseconds=millis))
        if oldest is None:
            return tombstones
        return tombstones.filter(pc.greater_equal(tombstones.column(INSTANT), oldest))

    def remove_others(self, written: Iterable[DataFile]) -> None:
        """Removes what lies in the instant's directory beside the files that were written.

        Tasks that died or were overtaken leave such files: the server, which is told of the others alone, never removes
        them. What can't be removed is logged: it takes room, and nobody reads it.
        """
        try:
            remove_others(self.directory, {each.path.removeprefix(f"{self.path}/") for each in written})
        except Exception as error:  # whatever the storage raises: the rows are written
            logger.warning("can't clear up %s: %s", self.directory, str(error).split("\n", 1)[0])

    def _with_sequences(self, rows: pa.Table, existing: Sequence[DataFile]) -> pa.Table:
        """Gives deletes by key alone the sequence of the row that they delete; without a row, there is nothing to do.

        The version that was read is deleted: one that has a greater sequence by then stays.
        """
        table = self.layout.table
        bare = pc.and_(pc.fill_null(rows.column(DELETED), False), rows.column(table.sequence[0]).is_null())
        if not pc.any(bare).as_py():
            return rows
        keys = rows.filter(bare).select([*table.key])
        there = self.layout.read(existing, table.sequence).rows.select([*table.key, *table.sequence])
        found = keys.group_by([*table.key]).aggregate([]).join(there, [*table.key], join_type="inner")
        found = found.append_column(DELETED, pa.array([True] * found.num_rows, pa.bool_()))
        given = rows.filter(pc.invert(bare))
        return pa.concat_tables([given, found.cast(_narrowed(rows.schema, found))], promote_options="default").select(
            rows.column_names
        )

    def _put_family(self, bucket: Bucket, rows: pa.Table, columns: Sequence[str], main: DataFile) -> DataFile:
        """Writes the file of a column family. `rows`: its columns and INSTANT, for each row of the main file."""
        file = self._put(bucket, rows, "base", times=(None, None))
        # Rows are counted once, those of the main file.
        return file._replace(columns=[*columns], rows=None, statistics=_rows_of(main))

    def _put(
        self,
        bucket: Bucket,
        rows: pa.Table,
        kind: str,
        *,
        tombstones: bool = False,
        times: EventTimes | None = None,
    ) -> DataFile:
        name = file_name(bucket.file_group, self.instant, uuid.uuid4().hex[:12], kind)
        below = f"{bucket.partition}/{name}" if bucket.partition else name
        ids = self.layout.ids
        size = write_rows(f"{self.directory}/{below}", rows, {} if ids is None else ids.now())
        first, last = event_times(rows, self.event_time) if times is None else times
        return DataFile(
            partition=bucket.partition,
            file_group=bucket.file_group,
            slice=self.instant,
            path=f"{self.path}/{below}",
            size=size,
            kind=kind,
            rows=rows.num_rows,
            min_event_time=first,
            max_event_time=last,
            statistics=TOMBSTONES if tombstones else None,
        )


def event_times(rows: pa.Table, column: str | None) -> EventTimes:
    """The least and the greatest value of a column of timestamps or dates, to the millisecond."""
    if column is None or column not in rows.column_names:
        return None, None
    values = rows.column(column)
    if pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("s"))
    found = pc.min_max(values.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()))
    least, greatest = found["min"].as_py(), found["max"].as_py()
    return (None, None) if least is None else (from_millis(least), from_millis(greatest))


def _check_keys(table: KeyedTable, rows: pa.Table) -> None:
    """Raises UnfitRows for nulls in the key, and for a key that several rows have."""
    for name in table.key:
        if rows.column(name).null_count:
            raise UnfitRows(f"the column {name} belongs to the key and is null in some rows")
    codes = key_codes([rows], table.key)
    often = np.flatnonzero(np.bincount(codes)[codes] > 1)
    if len(often):
        key = ", ".join(f"{name}={text_of(rows.column(name)[int(often[0])])}" for name in table.key)
        raise UnfitRows(f"the key {key} has several rows: an update of columns takes one per key")


def _places_of_keys(table: KeyedTable, keys: pa.Table, rows: pa.Table) -> Indices:
    """By row, which of the stored rows has its key; -1 if none has. Raises UnfitRows."""
    _check_keys(table, rows)
    codes = key_codes([keys, rows], table.key)
    there = np.full(int(codes.max(initial=-1)) + 1, NONE, np.int64)
    there[codes[: keys.num_rows]] = np.arange(keys.num_rows, dtype=np.int64)
    found: Indices = there[codes[keys.num_rows :]]
    return found


def _with_values(old: pa.Table, given: pa.Table, places: Indices, instant: str) -> pa.Table | None:
    """A family's rows with new values at some places, and the instant there where these differ; None if none does."""
    changed = np.zeros(given.num_rows, bool)
    for name in given.column_names:
        changed |= ~same_values(old.column(name).take(pa.array(places)), given.column(name))
    if not changed.any():
        return None
    sources = np.arange(old.num_rows, dtype=np.int64)
    sources[places[changed]] = old.num_rows + np.flatnonzero(changed)
    fresh = given.append_column(INSTANT, pa.repeat(pa.scalar(instant), given.num_rows))
    columns = []
    for name in old.column_names:
        column = old.column(name)
        if name in fresh.column_names:
            column = pa.chunked_array([*column.chunks, *fresh.column(name).chunks], column.type).take(pa.array(sources))
        columns.append(column)
    return pa.table(columns, schema=old.schema)


def _places(table: KeyedTable, rows: pa.Table) -> pa.ChunkedArray:
    """The name of each row's partition; null where the row doesn't say."""
    columns = [rows.column(name) for name in table.partition_columns]
    said = as_mask(columns[0].is_valid())
    for each in columns[1:]:
        said &= as_mask(each.is_valid())
    there = rows.select([*table.partition_columns]).filter(pa.array(said))
    codes = key_codes([there], table.partition_columns)
    _, firsts = np.unique(codes, return_index=True)
    values = [there.column(name).take(pa.array(firsts)).to_pylist() for name in table.partition_columns]
    texts = pa.array([make_name(table.partition_columns, each) for each in zip(*values, strict=True)], pa.string())
    indices = np.zeros(rows.num_rows, np.int64)
    indices[said] = codes
    return pa.chunked_array([texts.take(pa.array(indices, mask=~said))])


def _timestamp_before(timestamp: str, time: timedelta) -> str | None:
    """The timestamp of an instant so long before another; None if that isn't a time in milliseconds."""
    try:
        at = datetime.strptime(timestamp, _TIMESTAMP) if len(timestamp) == _TIMESTAMP_LENGTH else None
        return None if at is None else (at - time).strftime(_TIMESTAMP)[:_TIMESTAMP_LENGTH]
    except (ValueError, OverflowError):
        return None


def in_order(files: Iterable[DataFile]) -> list[DataFile]:
    """A bucket's files in the order in which they are merged: the base file, its tombstones, logs by their completion.

    Logs that completed before a compaction, in the slice that it had opened, are later than what it wrote. A log file
    that a rollback brought back has its place among the others by its own completion, not the rollback's.
    """
    return sorted(files, key=lambda each: (each.kind != "base", not is_tombstones(each), completed_at(each) or 0))


def is_family(file: DataFile) -> bool:
    """Whether a file has the columns of a family alone."""
    return file.kind == "base" and file.columns is not None


def _rows_of(main: DataFile) -> bytes:
    """The statistics of a family's file: whose rows it has."""
    return json.dumps({"rows_of": main.path}).encode()


def completed_at(file: DataFile) -> int | None:
    """The position at which a file became part of the table first; None of a file that isn't part of it yet."""
    return file.added_at if file.first_added_at is None else file.first_added_at


def is_tombstones(file: DataFile) -> bool:
    """Whether a log file has tombstones alone, which the base file beside it has applied already."""
    return file.kind == "log" and file.statistics == TOMBSTONES


def needs_merging(files: Iterable[DataFile]) -> bool:
    """Whether a bucket's base file alone isn't what its rows are."""
    return any(is_family(each) or (each.kind == "log" and not is_tombstones(each)) for each in files)


def by_bucket(files: Iterable[DataFile]) -> dict[Bucket, list[DataFile]]:
    """The files of a snapshot by their buckets. Raises UserError for a file of a kind that a later version writes."""
    found: dict[Bucket, list[DataFile]] = {}
    for each in files:
        if each.kind not in ("base", "log"):
            raise UserError(
                f"{each.path} is of the kind {each.kind}, which this client's version, {__version__}, can't read:"
                " install a later one"
            )
        found.setdefault(Bucket(each.partition, each.file_group), []).append(each)
    return found


def in_partitions(files: Mapping[Bucket, Sequence[DataFile]], file_group: str) -> dict[str, Sequence[DataFile]]:
    """The files of a bucket number by the partitions that have some."""
    return {bucket.partition: some for bucket, some in files.items() if bucket.file_group == file_group}


def _narrowed(schema: pa.Schema, rows: pa.Table) -> pa.Schema:
    return pa.schema([schema.field(name) for name in rows.column_names])
