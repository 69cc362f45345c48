"""Timelines and snapshots in Python's own types: what `lake.tables.lake` takes and returns.

Times are `datetime`s with a zone; those that come out are in UTC, to the millisecond.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

from lake.protocol import lake as wire
from lake.protocol.formats.column_ids import ColumnIds
from lake.protocol.formats.keyed_table import KeyedTable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LEAST, _GREATEST = ((each.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND for each in (datetime.min, datetime.max))


class Moment(NamedTuple):
    """A place in the order of all completions of all tables: several tables can be read as of one."""

    number: int


AsOf: TypeAlias = str | int | datetime | Moment
"""What a table is read as of: an instant's timestamp or a savepoint's name, a position, a time, or a moment."""


class Instant(NamedTuple):
    """What happened to a table, or is happening; `timestamp` and `action` are its key.

    `state` is `requested`, `inflight` or `completed`. `position` is its completion's place among the table's, `moment`
    that among all tables'. `conflict` says why its completion was refused, `undone_by` which rollback undid it.
    `attempt` says how often it has become inflight. `directory` is the URI for its files, for who begins or resumes it.
    `name` is a savepoint's, if it has one.
    """

    timestamp: str
    action: str
    state: str
    requested_at: datetime
    changed_at: datetime
    heartbeat_at: datetime | None
    completion_time: str | None
    position: int | None
    moment: int | None
    begun_as: str
    read_position: int
    archived: bool
    conflict: str | None
    undone_by: str | None
    attempt: int = 0
    directory: str | None = None
    name: str | None = None

    @property
    def running(self) -> int | None:
        """The attempt that runs the instant, by which the server knows whose call it is; None unless it is inflight."""
        return self.attempt or None if self.state == "inflight" else None

    @classmethod
    def of(cls, given: wire.Instant) -> "Instant":
        return cls(
            timestamp=given.timestamp or "",
            action=given.action or "",
            state=given.state or "",
            requested_at=from_millis(given.requestedAt or 0),
            changed_at=from_millis(given.changedAt or 0),
            heartbeat_at=_maybe(given.heartbeatAt),
            completion_time=given.completionTime,
            position=given.position,
            moment=given.moment,
            begun_as=given.begunAs or given.action or "",
            read_position=given.readPosition or 0,
            archived=bool(given.archived),
            conflict=given.conflict,
            undone_by=given.undoneBy,
            name=given.name,
            attempt=given.attempt or 0,
            directory=given.directory,
        )


class Begun(NamedTuple):
    """An instant that is being worked on, and the URI of a directory in which nobody else looks for files.

    The directory goes with the instant if that is aborted.
    """

    instant: Instant
    directory: str


class FileGroup(NamedTuple):
    """A file group of a partition; the partition of a table without keys is empty."""

    partition: str
    name: str


class DataFile(NamedTuple):
    """A file of a snapshot. `path` is relative to the snapshot's location, `size` in bytes.

    `kind`: base or log; changelog for a file that belongs to no snapshot. `columns` are those that it holds, None for
    all. `added_at` and `removed_at` are positions, known of files that come from the server; so is `first_added_at`, of
    files that a rollback brought back: where they were added at first.
    """

    partition: str
    file_group: str
    slice: str
    path: str
    size: int
    kind: str = "base"
    rows: int | None = None
    min_event_time: datetime | None = None
    max_event_time: datetime | None = None
    columns: Sequence[str] | None = None
    version: int | None = None
    statistics: bytes | None = None
    added_at: int | None = None
    removed_at: int | None = None
    first_added_at: int | None = None

    @classmethod
    def of(cls, given: wire.DataFile) -> "DataFile":
        return cls(
            partition=given.partition or "",
            file_group=given.fileGroup or "",
            slice=given.slice or "",
            path=given.path or "",
            size=given.size or 0,
            kind=given.kind or "base",
            rows=given.rows,
            min_event_time=_maybe(given.minEventTime),
            max_event_time=_maybe(given.maxEventTime),
            columns=given.columns,
            version=given.version,
            statistics=given.statistics,
            added_at=given.addedAt,
            removed_at=given.removedAt,
            first_added_at=given.firstAddedAt,
        )

    def sent(self, *, staged: bool) -> wire.DataFile:
        """The file as a completion names it."""
        return wire.DataFile(
            partition=self.partition,
            fileGroup=self.file_group,
            slice=self.slice,
            path=self.path,
            kind=self.kind,
            size=self.size,
            rows=self.rows,
            minEventTime=None if self.min_event_time is None else to_millis(self.min_event_time),
            maxEventTime=None if self.max_event_time is None else to_millis(self.max_event_time),
            columns=None if self.columns is None else list(self.columns),
            version=self.version,
            statistics=self.statistics,
            staged=staged or None,
        )


class Column(NamedTuple):
    """A column of a table, its type as Hive writes it."""

    name: str
    type: str
    comment: str | None = None


class Schema(NamedTuple):
    """A table's columns, its partition keys, and its properties, as of a version of the table."""

    version: int
    columns: Sequence[Column]
    keys: Sequence[Column]
    properties: Mapping[str, str]
    input_format: str

    def keyed_table(self) -> KeyedTable | None:
        """What the properties say of the primary key; None for a table without one. Raises BadKeyedTable."""
        types = {each.name: each.type for each in self.columns}
        return KeyedTable.of(self.properties, types, {each.name: each.type for each in self.keys})

    def column_ids(self) -> ColumnIds:
        """The ids of the columns. Raises ValueError if a later version has written them."""
        return ColumnIds.of(self.properties, [each.name for each in self.columns])


class StreamBatch(NamedTuple):
    """A batch of a stream of batches, whose numbers grow. It is part of a table once, however often it is written."""

    stream: str
    number: int


class Route(NamedTuple):
    """Where rows of the partition `name` go: to `target`. `late`: it is ready already, or its time has passed.

    `action` is `write`, `next` (to a later partition), `reopen` (the partition is ready and is to be opened again) or
    `drop` (nowhere).
    """

    name: str
    target: str
    late: bool
    action: str


class LateCounts(NamedTuple):
    """Rows that went to a later partition, for which a ready partition was opened again, and that were left out."""

    rerouted: int = 0
    reopened: int = 0
    dropped: int = 0


EVERYWHERE = ""
"""The condition of a completion that replaces all partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What an instant has done, by which it is completed; all of it is optional.

    `staged`: the files in `added` lie in the instant's directory and are to be moved into their partitions'.
    `relocate`: they stay there, in directories named after the partitions, and those are where `replaced_partitions`
    lie from now on. `replaced_where`: the condition by which these were chosen, '' for all partitions; a change since
    of another one for which it holds is a conflict. `columns` are the table's from now on, without its keys,
    `schema_properties` those of its properties in which Spark keeps the same (`spark.sql.sources.schema` and those that
    begin so), and the `primary-key` of a keyed table all of whose files are replaced. `event_times` is the smallest
    event time of what was written, by source. `conditional`: what was read of
    a keyed table is a condition, so that log files conflict with those that others added since. `published`: of a
    publish, the partitions whose directory in the instant's is Hive's from now on. `batch`: what was written is this
    batch of a stream; if it is part of the table already, the instant is aborted. `changelog`: files with all rows of a
    keyed table that it changes, None if nobody wrote them down. `layout`: of a keyed table, by which properties rows
    were placed and merged, as `KeyedTable.layout` says; the completion is refused if the table has others by then.
    `keeps_ready`: it adds to no partition that is ready, but to those that it opens again (`reopen`). `late`: what
    became of late rows. `read_groups`: of a table whose key is unique over all partitions, names of file groups in
    which keys were looked up; a change of one since, in whatever partition, is a conflict. The rest is as in
    `CompleteInstantRequest`.
    """

    added: Sequence[DataFile] = ()
    staged: bool = False
    replaced_partitions: Sequence[str] = ()
    replaced_where: str | None = None
    relocate: bool = False
    removed_groups: Sequence[FileGroup] = ()
    removed_paths: Sequence[str] = ()
    cleaned_paths: Sequence[str] = ()
    rolled_back: Sequence[Instant] = ()
    new_action: str | None = None
    metadata: bytes | None = None
    strategy: str | None = None
    read_position: int | None = None
    columns: Sequence[Column] | None = None
    schema_properties: Mapping[str, str] | None = None
    event_times: Mapping[str, datetime] | None = None
    chain: str | None = None
    conditional: bool = False
    published: Sequence[str] = ()
    batch: StreamBatch | None = None
    changelog: Sequence[DataFile] | None = None
    layout: Mapping[str, str] | None = None
    keeps_ready: bool = False
    reopen: Sequence[str] = ()
    late: LateCounts | None = None
    read_groups: Sequence[str] = ()

    def sent(self, table: wire.TableReference, instant: Instant) -> wire.CompleteInstantRequest:
        """The request that completes an instant of a table so."""
        return wire.CompleteInstantRequest(
            table=table,
            timestamp=instant.timestamp,
            action=instant.action,
            newAction=self.new_action,
            metadata=self.metadata,
            added=[each.sent(staged=self.staged) for each in self.added] or None,
            removedGroups=[wire.FileGroup(*each) for each in self.removed_groups] or None,
            removedPaths=list(self.removed_paths) or None,
            replacedPartitions=list(self.replaced_partitions) or None,
            replacedWhere=self.replaced_where,
            strategy=self.strategy,
            readPosition=self.read_position,
            columns=None if self.columns is None else [wire.Column(*each) for each in self.columns],
            chain=self.chain,
            eventTimes={source: to_millis(time) for source, time in (self.event_times or {}).items()} or None,
            rolledBack=[wire.InstantKey(each.timestamp, each.action) for each in self.rolled_back] or None,
            cleanedPaths=list(self.cleaned_paths) or None,
            relocate=self.relocate or None,
            schemaProperties=None if self.schema_properties is None else dict(self.schema_properties),
            conditional=self.conditional or None,
            attempt=instant.running,
            published=list(self.published) or None,
            stream=self.batch and self.batch.stream,
            batch=self.batch and self.batch.number,
            changelog=None if self.changelog is None else [each.sent(staged=False) for each in self.changelog],
            layout=None if self.layout is None else dict(self.layout),
            keepsReady=self.keeps_ready or None,
            reopen=list(self.reopen) or None,
            late=self.late and wire.LateRows(*self.late),
            readGroups=list(self.read_groups) or None,
        )


class Details(NamedTuple):
    """All that is known of an instant: its metadata by state, what it plans to rewrite, the partitions it changed."""

    instant: Instant
    metadata: Mapping[str, bytes]
    plan: Sequence[FileGroup]
    partitions: Sequence[str]


class Completed(NamedTuple):
    """What became of a completion. `repeated`: an earlier call had done it, whose answer was lost.

    `batch_repeated`: another instant had completed the batch of the stream, or a later one; this one was aborted.
    `already_ready`: partitions that are ready, to which a completion with `keeps_ready` would have added. Then nothing
    has changed, and the instant can be completed otherwise.
    """

    instant: Instant
    repeated: bool
    table_version: int
    batch_repeated: bool = False
    already_ready: Sequence[str] = ()


class Changes(NamedTuple):
    """What one instant added and removed; or its `changelog`, files with the rows that it changed, if that was read."""

    instant: Instant
    added: Sequence[DataFile]
    removed: Sequence[DataFile]
    changelog: Sequence[DataFile] = ()


class Changelog(NamedTuple):
    """What changed rows in a range, in the order of completions.

    `is_whole`: by the changelogs of its instants; else by the files that they added and removed, since some have no
    changelog. `location`: what paths are relative to. `table_version`: the table's when it was read.
    """

    changes: Sequence[Changes]
    is_whole: bool
    location: str
    table_version: int


class Position(NamedTuple):
    """How far a timeline has come: completions, the last one's timestamp and moment, and the first position of which
    no file has been cleaned."""

    position: int
    last_completed: str | None
    moment: int | None
    oldest_readable: int
    table_version: int


class PartitionPositions(NamedTuple):
    """Of a keyed table's partition: the position of its last change, and the one that Hive sees, None for none.

    `waits`: it is due to turn ready, and does so once its latest rows are published.
    """

    changed_at: int
    published_at: int | None
    waits: bool = False


def to_millis(time: datetime) -> int:
    """Milliseconds since 1970. Raises ValueError for a time without a zone: nobody knows when that is."""
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone: give one, for example tzinfo=datetime.UTC")
    return (time - _EPOCH) // _MILLISECOND


class OrphanFile(NamedTuple):
    """A file that nothing knows of. `path`: relative to the table; `size`: in bytes; when it was last modified."""

    path: str
    size: int
    modified_at: datetime


def from_millis(millis: int) -> datetime:
    """The time that many milliseconds after 1970; of those that Python doesn't have, the nearest that it has."""
    return _EPOCH + min(max(millis, _LEAST), _GREATEST) * _MILLISECOND


def _maybe(millis: int | None) -> datetime | None:
    return None if millis is None else from_millis(millis)
