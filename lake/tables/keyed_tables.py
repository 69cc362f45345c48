"""Reads keyed tables without Spark: whole, some keys, or what changed between two positions."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.client.lake_types import AsOf, Changelog, Changes, DataFile, Schema
from lake.protocol.errors import UserError
from lake.protocol.formats.keyed_table import INSTANT, KeyedTable
from lake.protocol.formats.partition_names import DEFAULT_PARTITION, make_name, values_of
from lake.protocol.lake import SnapshotGone
from lake.tables.buckets import Bucket, Layout, by_bucket
from lake.tables.keyed.changes import CHANGE_TYPE, net_changes, net_of_changelog
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.hashing import buckets_of
from lake.tables.keyed.schema import arrow_schema, of_hive
from lake.tables.keyed.versions import key_codes
from lake.tables.keyed.wide_types import narrow_schema, narrowed

if TYPE_CHECKING:
    from lake.tables.lake import LakeTable

ONE_DATE = r"^(000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})-\d\d-\d\d$"
"""What the text of a date looks like by which a table is partitioned. All readers understand those alone."""

COMMIT_VERSION = "_commit_version"
"""The position of the completion that last changed a row."""

COMMIT_TIMESTAMP = "_commit_timestamp"
"""When that was."""

SERVICES = frozenset({"compaction", "logcompaction", "clustering"})
"""The actions of instants that change no row."""

_REWRITES = frozenset({"replacecommit", "rollback", "restore", "readiness"})
"""The actions of instants that replace the rows of buckets, whatever these were, or bring or take all of them."""


class NotKeyed(UserError):
    """The table has no primary key, without which rows can't be changed, merged or looked up."""


class TouchedBucket(NamedTuple):
    """A bucket that changed between two positions: its files at both, and the log files that came between.

    Or, if these say all of it, the files of its changelog alone, in the order of commits.
    """

    before: Sequence[DataFile]
    after: Sequence[DataFile]
    logs: Sequence[DataFile]
    changelog: Sequence[DataFile] = ()


def layout_of(name: str, schema: Schema, location: str) -> Layout:
    """The layout of a keyed table. Raises NotKeyed."""
    table = schema.keyed_table()
    if table is None:
        raise NotKeyed(f"{name} has no primary-key among its properties")
    columns = [(each.name, each.type) for each in schema.columns]
    arrow = arrow_schema(columns, schema.properties, table.partition_columns)
    return Layout(table, arrow, location, schema.column_ids())


class Scan:
    """The rows of a keyed table in one snapshot. Made by `LakeTable.scan`; nothing is read before `to_arrow`."""

    def __init__(
        self,
        lake: "LakeTable",
        columns: Sequence[str] | None,
        filter: str | None,
        as_of: AsOf | None,
        include_uncommitted: bool,
    ) -> None:
        self._lake = lake
        self._columns = None if columns is None else [name.lower() for name in columns]
        snapshot = lake.snapshot(as_of, filter=filter, include_uncommitted=include_uncommitted)
        self._schema = lake.schema(snapshot.table_version)
        self._layout = layout_of(lake.name, self._schema, snapshot.location)
        self.position = snapshot.position
        """The position that is read."""
        self._buckets = by_bucket(snapshot)

    def to_arrow(self) -> pa.Table:
        """The rows, in no order. The columns that partition the table come last.

        No clean deletes their files meanwhile. Raises SnapshotGone if one did before.
        """
        layout = self._layout
        every = [*layout.schema.names, *layout.table.partition_columns]
        wanted = every if self._columns is None else self._columns
        if unknown := [name for name in wanted if name not in every]:
            raise UnfitRows(f"the table has no column {unknown[0]}")
        data = [name for name in wanted if name in layout.schema.names]
        with self._lake.leased(self.position) if self._buckets else nullcontext():
            parts = [
                narrowed(with_partition(layout.read(files, data).rows, bucket.partition, self._schema).select(wanted))
                for bucket, files in self._buckets.items()
            ]
        whole = whole_schema(layout, self._schema).empty_table().select(wanted)
        return pa.concat_tables([whole, *parts])


def lookup(
    lake: "LakeTable",
    keys: Sequence[Mapping[str, Any]],
    *,
    as_of: AsOf | None = None,
    include_uncommitted: bool = False,
) -> pa.Table:
    """The rows of some primary keys, each a mapping of the key's columns; those that aren't there are left out.

    Reads the buckets of these keys alone. Raises NotKeyed, UnfitRows for a key without one of its columns.
    """
    schema = lake.schema()
    layout = layout_of(lake.name, schema, "")
    table = layout.table
    named = [{name.lower(): value for name, value in key.items()} for key in keys]
    for key in named:
        needed = table.key if table.is_table_wide else (*table.key, *table.partition_columns)
        if missing := [name for name in needed if key.get(name) is None]:
            raise UnfitRows(f"a key of {lake.name} needs a value of {missing[0]}")
    fields = [layout.schema.field(name) for name in table.key]
    wanted = pa.table([_values(named, field.name, field.type) for field in fields], schema=pa.schema(fields))
    groups = [table.file_group(number) for number in buckets_of(wanted, table).to_pylist()]
    by_place: dict[Bucket, list[int]] = {}
    for index, bucket in enumerate(zip(_places(schema, table, named), groups, strict=True)):
        by_place.setdefault(Bucket(*bucket), []).append(index)
    partitions = None if table.is_table_wide else sorted({each.partition for each in by_place})
    snapshot = lake.snapshot(as_of, partitions=partitions, include_uncommitted=include_uncommitted)
    schema = lake.schema(snapshot.table_version)  # it knows the columns of all files in the snapshot
    layout = layout_of(lake.name, schema, snapshot.location)
    parts = []
    for bucket, found in by_bucket(snapshot).items():
        asked = by_place.get(Bucket("", bucket.file_group) if table.is_table_wide else bucket)
        if asked is None:
            continue
        some = wanted.take(asked)
        rows = layout.read(found).rows
        parts.append(with_partition(_matching(rows, some, table), bucket.partition, schema))
    whole = whole_schema(layout, schema)
    return pa.concat_tables([whole.empty_table(), *(narrowed(each.select(whole.names)) for each in parts)])


def _places(schema: Schema, table: KeyedTable, keys: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the partitions in which keys are; empty where the table has none, or where they may be in any."""
    if table.is_table_wide or not schema.keys:
        return [""] * len(keys)
    texts = [
        partition_texts(key.name.lower(), _values(keys, key.name.lower(), of_hive(key.type)), of_hive(key.type))
        for key in schema.keys
    ]
    columns = zip(*(each.to_pylist() for each in texts), strict=True)
    return [make_name(table.partition_columns, values) for values in columns]


def changed_rows(
    lake: "LakeTable",
    after: int,
    up_to: int,
    *,
    partitions: Sequence[str] | None = None,
    filter: str | None = None,
    include_uncommitted: bool = False,
    of_each_commit: bool = False,
) -> pa.Table:
    """The net changes of rows after one position up to another; with `of_each_commit`, those of each completion.

    Columns: the table's, `_change_type`, `_commit_version` and `_commit_timestamp`. Raises NotKeyed, SnapshotGone.
    """
    scope: Any = {"partitions": partitions, "filter": filter, "include_uncommitted": include_uncommitted}
    with ExitStack() as stack:
        if after < up_to:
            with suppress(SnapshotGone):  # a changelog may have what is read; else the read itself says so
                stack.enter_context(lake.leased(after, onwards=True))
        ranges = TouchedBuckets.in_ranges(lake, after, up_to, of_each_commit=of_each_commit, **scope)
        parts = [
            with_partition(found.commits.marked(bucket, changes_of(found.layout, each)), bucket.partition, found.schema)
            for found in ranges
            for bucket, each in found.buckets.items()
        ]
    schema = ranges[-1].schema if ranges else lake.schema()
    layout = layout_of(lake.name, schema, "")
    names = [*layout.schema.names, *layout.table.partition_columns, CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP]
    marks = [(CHANGE_TYPE, pa.string()), (COMMIT_VERSION, pa.int64()), (COMMIT_TIMESTAMP, pa.timestamp("us", "UTC"))]
    empty = pa.schema([*whole_schema(layout, schema), *(pa.field(*each) for each in marks)]).empty_table()
    return pa.concat_tables([empty.select(names), *(narrowed(each.select(names)) for each in parts)])


@dataclass(frozen=True)
class Commits:
    """The completions of a range, and at what times they were.

    `positions`: by bucket, those of the instants that changed what the reader sees of it. `rewrites`: by bucket, the
    position of its last replacement or rollback, or of the last time that it turned ready or was reopened. `last`: the
    last position with changes.
    """

    positions: Mapping[Bucket, Mapping[str, int]]
    times: Mapping[int, datetime]
    rewrites: Mapping[Bucket, int]
    last: int

    @classmethod
    def of(cls, changes: Iterable[Changes]) -> "Commits":
        """The completions of a range, from their changes."""
        positions: dict[Bucket, dict[str, int]] = {}
        times: dict[int, datetime] = {}
        rewrites: dict[Bucket, int] = {}
        for each in changes:
            if not each.added and not each.removed and not each.changelog:
                continue  # a savepoint has the timestamp of the instant that it protects
            position = each.instant.position or 0
            times[position] = each.instant.changed_at
            for file in (*each.added, *each.removed, *each.changelog):
                bucket = Bucket(file.partition, file.file_group)
                positions.setdefault(bucket, {})[each.instant.timestamp] = position
                if each.instant.begun_as in _REWRITES:
                    rewrites[bucket] = position
        return cls(positions, times, rewrites, max(times, default=0))

    def marked(self, bucket: Bucket, changes: pa.Table) -> pa.Table:
        """Changes of a bucket with their versions and times for their instants.

        A row that was removed with others, or that a rollback brought back, doesn't say when: that was at the last
        replacement or rollback of its bucket. So it is with a row that came or went as its partition turned ready or
        was reopened: its instant may have changed other partitions that the reader saw at once.
        """
        rewritten = self.rewrites.get(bucket, self.last)
        positions = self.positions.get(bucket, {})
        instants = changes.column(INSTANT).combine_chunks().dictionary_encode()
        known = [positions.get(each, rewritten) for each in instants.dictionary.to_pylist()]
        versions = [rewritten if index is None else known[index] for index in instants.indices.to_pylist()]
        times = pa.array([self.times[each] for each in versions], pa.timestamp("us", "UTC"))
        marked = changes.drop_columns([INSTANT]).append_column(COMMIT_VERSION, pa.array(versions, pa.int64()))
        return marked.append_column(COMMIT_TIMESTAMP, times)


@dataclass(frozen=True)
class TouchedBuckets:
    """The buckets of a keyed table whose rows may have changed in a range, and its commits."""

    schema: Schema
    layout: Layout
    commits: Commits
    buckets: Mapping[Bucket, TouchedBucket]

    @classmethod
    def between(
        cls,
        lake: "LakeTable",
        after: int,
        up_to: int,
        *,
        partitions: Sequence[str] | None = None,
        filter: str | None = None,
        include_uncommitted: bool = False,
    ) -> "TouchedBuckets":
        """Those that may have changed after one position up to another. Raises NotKeyed, SnapshotGone."""
        changelog = lake.changes(
            after, up_to, partitions=partitions, filter=filter, include_uncommitted=include_uncommitted
        ).changelog()
        if changelog.is_whole:
            return cls._of_changelog(lake, changelog)
        changes = changelog.changes
        touched: dict[Bucket, list[DataFile]] = {}
        for change in changes:
            if change.instant.begun_as in SERVICES:
                continue
            for each in (*change.added, *change.removed):
                touched.setdefault(Bucket(each.partition, each.file_group), [])
            for each in change.added:
                if each.kind == "log":
                    touched[Bucket(each.partition, each.file_group)].append(each)
        names = sorted({each.partition for each in touched})
        sides = [lake.snapshot(at, partitions=names, include_uncommitted=include_uncommitted) for at in (after, up_to)]
        schema = lake.schema(sides[1].table_version)
        old, new = (
            by_bucket(each for each in side if Bucket(each.partition, each.file_group) in touched) for side in sides
        )
        buckets = {
            each: TouchedBucket(old.get(each, ()), new.get(each, ()), logs)
            for each, logs in sorted(touched.items())
            if each in old or each in new  # else its rows came and went meanwhile
        }
        return cls(schema, layout_of(lake.name, schema, sides[1].location), Commits.of(changes), buckets)

    @classmethod
    def in_ranges(
        cls, lake: "LakeTable", after: int, up_to: int, *, of_each_commit: bool, **scope: Any
    ) -> "list[TouchedBuckets]":
        """Those `of_each_commit`, each by itself, or those of the whole range. `scope` is as of `between`."""
        if of_each_commit:
            return cls.of_each_commit(lake, after, up_to, **scope)
        return [cls.between(lake, after, up_to, **scope)]

    @classmethod
    def _of_changelog(cls, lake: "LakeTable", changelog: Changelog) -> "TouchedBuckets":
        """Those that a whole changelog names. Raises NotKeyed."""
        buckets: dict[Bucket, list[DataFile]] = {}
        for change in changelog.changes:
            for each in change.changelog:
                buckets.setdefault(Bucket(each.partition, each.file_group), []).append(each)
        schema = lake.schema(changelog.table_version)
        layout = layout_of(lake.name, schema, changelog.location)
        touched = {bucket: TouchedBucket((), (), (), files) for bucket, files in sorted(buckets.items())}
        return cls(schema, layout, Commits.of(changelog.changes), touched)

    @classmethod
    def of_each_commit(
        cls, lake: "LakeTable", after: int, up_to: int, *, partitions: Sequence[str] | None = None, **scope: Any
    ) -> "list[TouchedBuckets]":
        """Those of each completion after one position up to another that may have changed rows, in their order.

        `scope` is as of `between`. Raises NotKeyed, SnapshotGone.
        """
        changelog = lake.changes(after, up_to, partitions=partitions, **scope).changelog()
        if changelog.is_whole:
            each_alone = (changelog._replace(changes=[each]) for each in changelog.changes if each.changelog)
            return [cls._of_changelog(lake, alone) for alone in each_alone]
        positions = [
            each.instant.position or 0
            for each in changelog.changes
            if (each.added or each.removed) and each.instant.begun_as not in SERVICES
        ]
        return [cls.between(lake, each - 1, each, partitions=partitions, **scope) for each in positions]


def changes_of(layout: Layout, bucket: TouchedBucket) -> pa.Table:
    """The net changes of one bucket, as `net_changes` gives them."""
    if bucket.changelog:
        return net_of_changelog(layout.table, layout.changelog(bucket.changelog))
    layout = layout.remembering()
    before = layout.read(bucket.before)
    return net_changes(layout.table, before.rows, layout.read(bucket.after).rows, layout.deletes(before, bucket.logs))


def with_partition(rows: pa.Table, partition: str, schema: Schema) -> pa.Table:
    """Rows with the columns that partition the table, for the partition of that name."""
    rows = rows.drop_columns([INSTANT]) if INSTANT in rows.column_names else rows
    names = [each.name.lower() for each in schema.keys]
    for key, value in zip(schema.keys, values_of(partition, names) if names else (), strict=True):
        text = pa.scalar(None if value == DEFAULT_PARTITION else value, pa.string())
        column = pa.repeat(text.cast(of_hive(key.type)), rows.num_rows)
        rows = rows.append_column(pa.field(key.name.lower(), of_hive(key.type)), column)
    return rows


def whole_schema(layout: Layout, schema: Schema) -> pa.Schema:
    """The data columns, then those that partition the table, in the usual types."""
    return pa.schema(
        [*narrow_schema(layout.schema), *(pa.field(each.name.lower(), of_hive(each.type)) for each in schema.keys)]
    )


def partition_texts(name: str, values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Values of a partition column as the partitions' names have them, which is how Spark writes them.

    `kind`: the column's type; whole numbers, strings, booleans or dates. Raises UnfitRows.
    """
    try:
        typed = values.cast(kind)
        texts = typed.cast(pa.string())
    except pa.ArrowException as error:
        raise UnfitRows(f"the column {name}, by which the table is partitioned, is {kind}: {error}") from None
    if texts.null_count:
        raise UnfitRows(f"the column {name} belongs to the key and is null in some rows")
    if pa.types.is_date(kind) and pc.any(pc.invert(pc.match_substring_regex(texts, ONE_DATE))).as_py():
        raise UnfitRows(f"the column {name} partitions the table: its dates are of the years 1 to 9999")
    if pc.any(pc.is_in(texts, value_set=pa.array(["", DEFAULT_PARTITION]))).as_py():
        raise UnfitRows(f"the column {name} belongs to the key and is empty, or {DEFAULT_PARTITION}, in some rows")
    return texts


def _values(keys: Sequence[Mapping[str, Any]], name: str, kind: pa.DataType) -> pa.ChunkedArray:
    try:
        # Cast, since Arrow would cut off a fraction that is given as a whole number.
        return pa.chunked_array([pa.array([key[name] for key in keys]).cast(kind)])
    except (pa.ArrowException, OverflowError) as error:
        raise UnfitRows(f"the column {name} of a key is {kind}: {error}") from None


def _matching(rows: pa.Table, keys: pa.Table, table: KeyedTable) -> pa.Table:
    """The rows with one of some keys."""
    if len(table.key) == 1:
        [name] = table.key
        return rows.filter(pc.is_in(rows.column(name), value_set=keys.column(name).combine_chunks()))
    candidates = rows
    for name in table.key:
        candidates = candidates.filter(pc.is_in(candidates.column(name), value_set=keys.column(name).combine_chunks()))
    codes = key_codes([candidates, keys], table.key)
    return candidates.filter(pa.array(np.isin(codes[: candidates.num_rows], codes[candidates.num_rows :])))
