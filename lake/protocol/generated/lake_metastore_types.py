"""Generated from thrift_idl/lake_metastore.thrift by tools/generate_types.py. Do not edit."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from lake.protocol.struct import ExceptionStruct, Spec, Struct, link
from lake.protocol.struct import fields as f
from lake.protocol.generated.hive_metastore_types import Catalog, ColumnStatistics, Database, FieldSchema, Function, HiveObjectPrivilege, Partition, Role, RolePrincipalGrant, SQLAllTableConstraints, Table


class TableReference(Struct):
    __slots__ = ('catalog', 'database', 'table', 'id', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('database', 'table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catalog: str | None = None, database: str | None = None, table: str | None = None, id: int | None = None) -> None:
        self.catalog = catalog
        self.database = database
        self.table = table
        self.id = id


class PartitionState(Struct):
    __slots__ = ('name', 'values', 'ready', 'commitTime', 'openedTime', 'committedBy', 'createTime', 'location', 'partitionTime', 'changedAt', 'publishedAt', 'waitsForPublish', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('name', 'values', 'ready',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, values: list[str] | None = None, ready: bool | None = None, commitTime: int | None = None, openedTime: int | None = None, committedBy: str | None = None, createTime: int | None = None, location: str | None = None, partitionTime: int | None = None, changedAt: int | None = None, publishedAt: int | None = None, waitsForPublish: bool | None = None) -> None:
        self.name = name
        self.values = values
        self.ready = ready
        self.commitTime = commitTime
        self.openedTime = openedTime
        self.committedBy = committedBy
        self.createTime = createTime
        self.location = location
        self.partitionTime = partitionTime
        self.changedAt = changedAt
        self.publishedAt = publishedAt
        self.waitsForPublish = waitsForPublish


class ListPartitionsRequest(Struct):
    __slots__ = ('table', 'filter', 'includeUncommitted', 'limit', 'after', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, filter: str | None = None, includeUncommitted: bool | None = None, limit: int | None = None, after: str | None = None) -> None:
        self.table = table
        self.filter = filter
        self.includeUncommitted = includeUncommitted
        self.limit = limit
        self.after = after


class ListPartitionsResponse(Struct):
    __slots__ = ('partitions', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partitions',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitions: list[PartitionState] | None = None) -> None:
        self.partitions = partitions


class CommitPartitionsRequest(Struct):
    __slots__ = ('table', 'names', 'filter', 'committedBy', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, names: list[str] | None = None, filter: str | None = None, committedBy: str | None = None) -> None:
        self.table = table
        self.names = names
        self.filter = filter
        self.committedBy = committedBy


class CommitPartitionsResponse(Struct):
    __slots__ = ('committed', 'alreadyReady', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('committed', 'alreadyReady',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, committed: list[str] | None = None, alreadyReady: list[str] | None = None) -> None:
        self.committed = committed
        self.alreadyReady = alreadyReady


class ReopenPartitionsRequest(Struct):
    __slots__ = ('table', 'names', 'filter', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, names: list[str] | None = None, filter: str | None = None) -> None:
        self.table = table
        self.names = names
        self.filter = filter


class ReopenPartitionsResponse(Struct):
    __slots__ = ('reopened', 'alreadyUncommitted', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('reopened', 'alreadyUncommitted',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, reopened: list[str] | None = None, alreadyUncommitted: list[str] | None = None) -> None:
        self.reopened = reopened
        self.alreadyUncommitted = alreadyUncommitted


class SourceProgress(Struct):
    __slots__ = ('chain', 'source', 'watermark', 'reportedAt', 'idle', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('chain', 'source', 'watermark', 'reportedAt', 'idle',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, chain: str | None = None, source: str | None = None, watermark: int | None = None, reportedAt: int | None = None, idle: bool | None = None) -> None:
        self.chain = chain
        self.source = source
        self.watermark = watermark
        self.reportedAt = reportedAt
        self.idle = idle


class LateRows(Struct):
    __slots__ = ('rerouted', 'reopened', 'dropped', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('rerouted', 'reopened', 'dropped',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, rerouted: int | None = None, reopened: int | None = None, dropped: int | None = None) -> None:
        self.rerouted = rerouted
        self.reopened = reopened
        self.dropped = dropped


class Watermark(Struct):
    __slots__ = ('watermark', 'commitMode', 'sources', 'late', 'uncommitted', 'oldestUncommitted', 'delay', 'interval', 'latePolicy', 'tableId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('commitMode', 'sources', 'late', 'uncommitted',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, watermark: int | None = None, commitMode: str | None = None, sources: list[SourceProgress] | None = None, late: LateRows | None = None, uncommitted: int | None = None, oldestUncommitted: str | None = None, delay: int | None = None, interval: int | None = None, latePolicy: str | None = None, tableId: int | None = None) -> None:
        self.watermark = watermark
        self.commitMode = commitMode
        self.sources = sources
        self.late = late
        self.uncommitted = uncommitted
        self.oldestUncommitted = oldestUncommitted
        self.delay = delay
        self.interval = interval
        self.latePolicy = latePolicy
        self.tableId = tableId


class RoutePartitionsRequest(Struct):
    __slots__ = ('table', 'names', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'names',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, names: list[str] | None = None) -> None:
        self.table = table
        self.names = names


class Route(Struct):
    __slots__ = ('name', 'target', 'late', 'action', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('name', 'target', 'late', 'action',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, target: str | None = None, late: bool | None = None, action: str | None = None) -> None:
        self.name = name
        self.target = target
        self.late = late
        self.action = action


class RoutePartitionsResponse(Struct):
    __slots__ = ('routes', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('routes',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, routes: list[Route] | None = None) -> None:
        self.routes = routes


class EventRecord(Struct):
    __slots__ = ('number', 'type', 'time', 'user', 'connection', 'catalog', 'database', 'table', 'payload', 'shard', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('number', 'type', 'time', 'payload',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, number: int | None = None, type: str | None = None, time: int | None = None, user: str | None = None, connection: str | None = None, catalog: str | None = None, database: str | None = None, table: str | None = None, payload: str | None = None, shard: int | None = None) -> None:
        self.number = number
        self.type = type
        self.time = time
        self.user = user
        self.connection = connection
        self.catalog = catalog
        self.database = database
        self.table = table
        self.payload = payload
        self.shard = shard


class ReadEventsRequest(Struct):
    __slots__ = ('after', 'limit', 'tables', 'types', 'maxWait', 'history', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('after',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, after: int | None = None, limit: int | None = None, tables: list[str] | None = None, types: list[str] | None = None, maxWait: int | None = None, history: str | None = None) -> None:
        self.after = after
        self.limit = limit
        self.tables = tables
        self.types = types
        self.maxWait = maxWait
        self.history = history


class ReadEventsResponse(Struct):
    __slots__ = ('events', 'position', 'last', 'history', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('events', 'position', 'last',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, events: list[EventRecord] | None = None, position: int | None = None, last: int | None = None, history: str | None = None) -> None:
        self.events = events
        self.position = position
        self.last = last
        self.history = history


class ShardPosition(Struct):
    __slots__ = ('shard', 'generation', 'read', 'done', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('shard', 'generation', 'read', 'done',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, shard: int | None = None, generation: int | None = None, read: int | None = None, done: int | None = None) -> None:
        self.shard = shard
        self.generation = generation
        self.read = read
        self.done = done


class ReadGroupEventsRequest(Struct):
    __slots__ = ('group', 'member', 'start', 'shards', 'members', 'limit', 'tables', 'types', 'maxWait', 'history', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('group', 'member', 'start',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, group: str | None = None, member: str | None = None, start: int | None = None, shards: list[ShardPosition] | None = None, members: int | None = None, limit: int | None = None, tables: list[str] | None = None, types: list[str] | None = None, maxWait: int | None = None, history: str | None = None) -> None:
        self.group = group
        self.member = member
        self.start = start
        self.shards = shards
        self.members = members
        self.limit = limit
        self.tables = tables
        self.types = types
        self.maxWait = maxWait
        self.history = history


class ReadGroupEventsResponse(Struct):
    __slots__ = ('events', 'shards', 'members', 'last', 'history', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('events', 'shards', 'members', 'last',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, events: list[EventRecord] | None = None, shards: list[ShardPosition] | None = None, members: int | None = None, last: int | None = None, history: str | None = None) -> None:
        self.events = events
        self.shards = shards
        self.members = members
        self.last = last
        self.history = history


class EventPositions(Struct):
    __slots__ = ('oldest', 'last', 'group', 'since', 'history', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('oldest', 'last',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, oldest: int | None = None, last: int | None = None, group: int | None = None, since: int | None = None, history: str | None = None) -> None:
        self.oldest = oldest
        self.last = last
        self.group = group
        self.since = since
        self.history = history


class EventGroup(Struct):
    __slots__ = ('name', 'position', 'updatedAt', 'members', 'behind', 'deadLetters', 'seenAt', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('name', 'position', 'updatedAt',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, position: int | None = None, updatedAt: int | None = None, members: int | None = None, behind: int | None = None, deadLetters: int | None = None, seenAt: int | None = None) -> None:
        self.name = name
        self.position = position
        self.updatedAt = updatedAt
        self.members = members
        self.behind = behind
        self.deadLetters = deadLetters
        self.seenAt = seenAt


class DeadEvent(Struct):
    __slots__ = ('outlet', 'number', 'error', 'attempts', 'failedAt', 'resend', 'type', 'catalog', 'database', 'table', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('outlet', 'number', 'error', 'attempts', 'failedAt', 'resend',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, outlet: str | None = None, number: int | None = None, error: str | None = None, attempts: int | None = None, failedAt: int | None = None, resend: bool | None = None, type: str | None = None, catalog: str | None = None, database: str | None = None, table: str | None = None) -> None:
        self.outlet = outlet
        self.number = number
        self.error = error
        self.attempts = attempts
        self.failedAt = failedAt
        self.resend = resend
        self.type = type
        self.catalog = catalog
        self.database = database
        self.table = table


class Instant(Struct):
    __slots__ = ('timestamp', 'action', 'state', 'requestedAt', 'changedAt', 'heartbeatAt', 'completionTime', 'position', 'moment', 'begunAs', 'readPosition', 'archived', 'conflict', 'undoneBy', 'directory', 'attempt', 'tableId', 'name', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('timestamp', 'action', 'state', 'requestedAt', 'changedAt',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, timestamp: str | None = None, action: str | None = None, state: str | None = None, requestedAt: int | None = None, changedAt: int | None = None, heartbeatAt: int | None = None, completionTime: str | None = None, position: int | None = None, moment: int | None = None, begunAs: str | None = None, readPosition: int | None = None, archived: bool | None = None, conflict: str | None = None, undoneBy: str | None = None, directory: str | None = None, attempt: int | None = None, tableId: int | None = None, name: str | None = None) -> None:
        self.timestamp = timestamp
        self.action = action
        self.state = state
        self.requestedAt = requestedAt
        self.changedAt = changedAt
        self.heartbeatAt = heartbeatAt
        self.completionTime = completionTime
        self.position = position
        self.moment = moment
        self.begunAs = begunAs
        self.readPosition = readPosition
        self.archived = archived
        self.conflict = conflict
        self.undoneBy = undoneBy
        self.directory = directory
        self.attempt = attempt
        self.tableId = tableId
        self.name = name


class FileGroup(Struct):
    __slots__ = ('partition', 'fileGroup', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partition', 'fileGroup',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partition: str | None = None, fileGroup: str | None = None) -> None:
        self.partition = partition
        self.fileGroup = fileGroup


class BeginInstantRequest(Struct):
    __slots__ = ('table', 'action', 'timestamp', 'state', 'metadata', 'readPosition', 'plan', 'heartbeat', 'layout', 'name', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'action',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, action: str | None = None, timestamp: str | None = None, state: str | None = None, metadata: bytes | None = None, readPosition: int | None = None, plan: list[FileGroup] | None = None, heartbeat: bool | None = None, layout: dict[str, str] | None = None, name: str | None = None) -> None:
        self.table = table
        self.action = action
        self.timestamp = timestamp
        self.state = state
        self.metadata = metadata
        self.readPosition = readPosition
        self.plan = plan
        self.heartbeat = heartbeat
        self.layout = layout
        self.name = name


class TransitionInstantRequest(Struct):
    __slots__ = ('table', 'timestamp', 'action', 'toState', 'metadata', 'runner', 'attempt', 'heartbeat', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'timestamp', 'action', 'toState',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, timestamp: str | None = None, action: str | None = None, toState: str | None = None, metadata: bytes | None = None, runner: str | None = None, attempt: int | None = None, heartbeat: bool | None = None) -> None:
        self.table = table
        self.timestamp = timestamp
        self.action = action
        self.toState = toState
        self.metadata = metadata
        self.runner = runner
        self.attempt = attempt
        self.heartbeat = heartbeat


class InstantKey(Struct):
    __slots__ = ('timestamp', 'action', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('timestamp', 'action',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, timestamp: str | None = None, action: str | None = None) -> None:
        self.timestamp = timestamp
        self.action = action


class ListInstantsRequest(Struct):
    __slots__ = ('table', 'actions', 'states', 'after', 'upTo', 'limit', 'latestFirst', 'includeArchived', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, actions: list[str] | None = None, states: list[str] | None = None, after: str | None = None, upTo: str | None = None, limit: int | None = None, latestFirst: bool | None = None, includeArchived: bool | None = None) -> None:
        self.table = table
        self.actions = actions
        self.states = states
        self.after = after
        self.upTo = upTo
        self.limit = limit
        self.latestFirst = latestFirst
        self.includeArchived = includeArchived


class InstantDetails(Struct):
    __slots__ = ('instant', 'metadata', 'plan', 'partitions', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('instant', 'metadata', 'plan', 'partitions',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, instant: Instant | None = None, metadata: dict[str, bytes] | None = None, plan: list[FileGroup] | None = None, partitions: list[str] | None = None) -> None:
        self.instant = instant
        self.metadata = metadata
        self.plan = plan
        self.partitions = partitions


class DataFile(Struct):
    __slots__ = ('partition', 'fileGroup', 'slice', 'path', 'kind', 'size', 'rows', 'minEventTime', 'maxEventTime', 'columns', 'version', 'statistics', 'addedAt', 'removedAt', 'staged', 'firstAddedAt', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partition', 'fileGroup', 'slice', 'path', 'size',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partition: str | None = None, fileGroup: str | None = None, slice: str | None = None, path: str | None = None, kind: str | None = None, size: int | None = None, rows: int | None = None, minEventTime: int | None = None, maxEventTime: int | None = None, columns: list[str] | None = None, version: int | None = None, statistics: bytes | None = None, addedAt: int | None = None, removedAt: int | None = None, staged: bool | None = None, firstAddedAt: int | None = None) -> None:
        self.partition = partition
        self.fileGroup = fileGroup
        self.slice = slice
        self.path = path
        self.kind = kind
        self.size = size
        self.rows = rows
        self.minEventTime = minEventTime
        self.maxEventTime = maxEventTime
        self.columns = columns
        self.version = version
        self.statistics = statistics
        self.addedAt = addedAt
        self.removedAt = removedAt
        self.staged = staged
        self.firstAddedAt = firstAddedAt


class Column(Struct):
    __slots__ = ('name', 'type', 'comment', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('name', 'type',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, type: str | None = None, comment: str | None = None) -> None:
        self.name = name
        self.type = type
        self.comment = comment


class CompleteInstantRequest(Struct):
    __slots__ = ('table', 'timestamp', 'action', 'newAction', 'metadata', 'added', 'removedGroups', 'removedPaths', 'replacedPartitions', 'strategy', 'readPosition', 'columns', 'chain', 'eventTimes', 'rolledBack', 'cleanedPaths', 'relocate', 'schemaProperties', 'conditional', 'attempt', 'published', 'stream', 'batch', 'changelog', 'layout', 'keepsReady', 'reopen', 'late', 'replacedWhere', 'readGroups', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'timestamp', 'action',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, timestamp: str | None = None, action: str | None = None, newAction: str | None = None, metadata: bytes | None = None, added: list[DataFile] | None = None, removedGroups: list[FileGroup] | None = None, removedPaths: list[str] | None = None, replacedPartitions: list[str] | None = None, strategy: str | None = None, readPosition: int | None = None, columns: list[Column] | None = None, chain: str | None = None, eventTimes: dict[str, int] | None = None, rolledBack: list[InstantKey] | None = None, cleanedPaths: list[str] | None = None, relocate: bool | None = None, schemaProperties: dict[str, str] | None = None, conditional: bool | None = None, attempt: int | None = None, published: list[str] | None = None, stream: str | None = None, batch: int | None = None, changelog: list[DataFile] | None = None, layout: dict[str, str] | None = None, keepsReady: bool | None = None, reopen: list[str] | None = None, late: LateRows | None = None, replacedWhere: str | None = None, readGroups: list[str] | None = None) -> None:
        self.table = table
        self.timestamp = timestamp
        self.action = action
        self.newAction = newAction
        self.metadata = metadata
        self.added = added
        self.removedGroups = removedGroups
        self.removedPaths = removedPaths
        self.replacedPartitions = replacedPartitions
        self.strategy = strategy
        self.readPosition = readPosition
        self.columns = columns
        self.chain = chain
        self.eventTimes = eventTimes
        self.rolledBack = rolledBack
        self.cleanedPaths = cleanedPaths
        self.relocate = relocate
        self.schemaProperties = schemaProperties
        self.conditional = conditional
        self.attempt = attempt
        self.published = published
        self.stream = stream
        self.batch = batch
        self.changelog = changelog
        self.layout = layout
        self.keepsReady = keepsReady
        self.reopen = reopen
        self.late = late
        self.replacedWhere = replacedWhere
        self.readGroups = readGroups


class CompletedInstant(Struct):
    __slots__ = ('table', 'instant', 'repeated', 'tableVersion', 'batchRepeated', 'alreadyReady', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'instant', 'repeated', 'tableVersion',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, instant: Instant | None = None, repeated: bool | None = None, tableVersion: int | None = None, batchRepeated: bool | None = None, alreadyReady: list[str] | None = None) -> None:
        self.table = table
        self.instant = instant
        self.repeated = repeated
        self.tableVersion = tableVersion
        self.batchRepeated = batchRepeated
        self.alreadyReady = alreadyReady


class RejectedCommit(Struct):
    __slots__ = ('timestamp', 'action', 'requestedAt', 'rejectedAt', 'winners', 'reason', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('timestamp', 'action', 'requestedAt', 'rejectedAt', 'winners', 'reason',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, timestamp: str | None = None, action: str | None = None, requestedAt: int | None = None, rejectedAt: int | None = None, winners: list[int] | None = None, reason: str | None = None) -> None:
        self.timestamp = timestamp
        self.action = action
        self.requestedAt = requestedAt
        self.rejectedAt = rejectedAt
        self.winners = winners
        self.reason = reason


class TimelinePosition(Struct):
    __slots__ = ('position', 'lastCompleted', 'oldestReadable', 'moment', 'tableVersion', 'changedAt', 'publishedAt', 'tableId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('position', 'oldestReadable',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, position: int | None = None, lastCompleted: str | None = None, oldestReadable: int | None = None, moment: int | None = None, tableVersion: int | None = None, changedAt: int | None = None, publishedAt: int | None = None, tableId: int | None = None) -> None:
        self.position = position
        self.lastCompleted = lastCompleted
        self.oldestReadable = oldestReadable
        self.moment = moment
        self.tableVersion = tableVersion
        self.changedAt = changedAt
        self.publishedAt = publishedAt
        self.tableId = tableId


class SnapshotRequest(Struct):
    __slots__ = ('table', 'asOf', 'asOfPosition', 'asOfTime', 'asOfMoment', 'partitions', 'filter', 'includeUncommitted', 'readOptimized', 'limit', 'after', 'allVersions', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, asOf: str | None = None, asOfPosition: int | None = None, asOfTime: int | None = None, asOfMoment: int | None = None, partitions: list[str] | None = None, filter: str | None = None, includeUncommitted: bool | None = None, readOptimized: bool | None = None, limit: int | None = None, after: str | None = None, allVersions: bool | None = None) -> None:
        self.table = table
        self.asOf = asOf
        self.asOfPosition = asOfPosition
        self.asOfTime = asOfTime
        self.asOfMoment = asOfMoment
        self.partitions = partitions
        self.filter = filter
        self.includeUncommitted = includeUncommitted
        self.readOptimized = readOptimized
        self.limit = limit
        self.after = after
        self.allVersions = allVersions


class SnapshotResponse(Struct):
    __slots__ = ('position', 'files', 'nextPage', 'location', 'tableVersion', 'tableId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('position', 'files',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, position: int | None = None, files: list[DataFile] | None = None, nextPage: str | None = None, location: str | None = None, tableVersion: int | None = None, tableId: int | None = None) -> None:
        self.position = position
        self.files = files
        self.nextPage = nextPage
        self.location = location
        self.tableVersion = tableVersion
        self.tableId = tableId


class ReadChangesRequest(Struct):
    __slots__ = ('table', 'after', 'upTo', 'partitions', 'filter', 'includeUncommitted', 'limit', 'changelog', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'after',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, after: int | None = None, upTo: int | None = None, partitions: list[str] | None = None, filter: str | None = None, includeUncommitted: bool | None = None, limit: int | None = None, changelog: bool | None = None) -> None:
        self.table = table
        self.after = after
        self.upTo = upTo
        self.partitions = partitions
        self.filter = filter
        self.includeUncommitted = includeUncommitted
        self.limit = limit
        self.changelog = changelog


class InstantChanges(Struct):
    __slots__ = ('instant', 'added', 'removed', 'changelog', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('instant', 'added', 'removed',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, instant: Instant | None = None, added: list[DataFile] | None = None, removed: list[DataFile] | None = None, changelog: list[DataFile] | None = None) -> None:
        self.instant = instant
        self.added = added
        self.removed = removed
        self.changelog = changelog


class ReadChangesResponse(Struct):
    __slots__ = ('changes', 'position', 'location', 'changelog', 'tableVersion', 'tableId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('changes', 'position',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, changes: list[InstantChanges] | None = None, position: int | None = None, location: str | None = None, changelog: bool | None = None, tableVersion: int | None = None, tableId: int | None = None) -> None:
        self.changes = changes
        self.position = position
        self.location = location
        self.changelog = changelog
        self.tableVersion = tableVersion
        self.tableId = tableId


class PlanCleanRequest(Struct):
    __slots__ = ('table', 'keepCommits', 'keepHours', 'keepVersions', 'limit', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, keepCommits: int | None = None, keepHours: int | None = None, keepVersions: int | None = None, limit: int | None = None) -> None:
        self.table = table
        self.keepCommits = keepCommits
        self.keepHours = keepHours
        self.keepVersions = keepVersions
        self.limit = limit


class FindOrphansRequest(Struct):
    __slots__ = ('table', 'olderThanHours', 'after', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, olderThanHours: int | None = None, after: str | None = None) -> None:
        self.table = table
        self.olderThanHours = olderThanHours
        self.after = after


class OrphanFile(Struct):
    __slots__ = ('path', 'size', 'modifiedAt', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('path', 'size', 'modifiedAt',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, path: str | None = None, size: int | None = None, modifiedAt: int | None = None) -> None:
        self.path = path
        self.size = size
        self.modifiedAt = modifiedAt


class FindOrphansResponse(Struct):
    __slots__ = ('files', 'examined', 'last', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('files', 'examined',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, files: list[OrphanFile] | None = None, examined: int | None = None, last: str | None = None) -> None:
        self.files = files
        self.examined = examined
        self.last = last


class RemoveOrphansRequest(Struct):
    __slots__ = ('table', 'paths', 'olderThanHours', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'paths',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, paths: list[str] | None = None, olderThanHours: int | None = None) -> None:
        self.table = table
        self.paths = paths
        self.olderThanHours = olderThanHours


class HudiInstant(Struct):
    __slots__ = ('timestamp', 'action', 'state', 'completedAs', 'metadata', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('timestamp', 'action', 'state',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, timestamp: str | None = None, action: str | None = None, state: str | None = None, completedAs: str | None = None, metadata: bytes | None = None) -> None:
        self.timestamp = timestamp
        self.action = action
        self.state = state
        self.completedAs = completedAs
        self.metadata = metadata


class ImportHudiRequest(Struct):
    __slots__ = ('table', 'location', 'properties', 'instants', 'folder', 'olderFiles', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'location', 'properties', 'instants',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, location: str | None = None, properties: dict[str, str] | None = None, instants: list[HudiInstant] | None = None, folder: list[InstantKey] | None = None, olderFiles: dict[str, int] | None = None) -> None:
        self.table = table
        self.location = location
        self.properties = properties
        self.instants = instants
        self.folder = folder
        self.olderFiles = olderFiles


class ImportedInstant(Struct):
    __slots__ = ('timestamp', 'action', 'state', 'fresh', 'remark', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('timestamp', 'action', 'state', 'fresh',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, timestamp: str | None = None, action: str | None = None, state: str | None = None, fresh: bool | None = None, remark: str | None = None) -> None:
        self.timestamp = timestamp
        self.action = action
        self.state = state
        self.fresh = fresh
        self.remark = remark


class ImportHudiResponse(Struct):
    __slots__ = ('tableAdded', 'instants', 'position', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('tableAdded', 'instants', 'position',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, tableAdded: bool | None = None, instants: list[ImportedInstant] | None = None, position: int | None = None) -> None:
        self.tableAdded = tableAdded
        self.instants = instants
        self.position = position


class ImportRequest(Struct):
    __slots__ = ('catalogs', 'databases', 'functions', 'tables', 'partitions', 'statistics', 'constraints', 'roles', 'members', 'grants', 'overwrite', 'columns', 'columnsOf', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catalogs: list[Catalog] | None = None, databases: list[Database] | None = None, functions: list[Function] | None = None, tables: list[Table] | None = None, partitions: list[Partition] | None = None, statistics: list[ColumnStatistics] | None = None, constraints: SQLAllTableConstraints | None = None, roles: list[Role] | None = None, members: list[RolePrincipalGrant] | None = None, grants: list[HiveObjectPrivilege] | None = None, overwrite: bool | None = None, columns: list[list[FieldSchema]] | None = None, columnsOf: list[int] | None = None) -> None:
        self.catalogs = catalogs
        self.databases = databases
        self.functions = functions
        self.tables = tables
        self.partitions = partitions
        self.statistics = statistics
        self.constraints = constraints
        self.roles = roles
        self.members = members
        self.grants = grants
        self.overwrite = overwrite
        self.columns = columns
        self.columnsOf = columnsOf


class ImportDifference(Struct):
    __slots__ = ('kind', 'name', 'difference', 'replaced', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('kind', 'name', 'difference', 'replaced',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, kind: str | None = None, name: str | None = None, difference: str | None = None, replaced: bool | None = None) -> None:
        self.kind = kind
        self.name = name
        self.difference = difference
        self.replaced = replaced


class ImportResponse(Struct):
    __slots__ = ('added', 'same', 'differences', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('added', 'same', 'differences',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, added: int | None = None, same: int | None = None, differences: list[ImportDifference] | None = None) -> None:
        self.added = added
        self.same = same
        self.differences = differences


class FollowedSource(Struct):
    __slots__ = ('source', 'databases', 'holder', 'position', 'state', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('source', 'databases', 'holder', 'position', 'state',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, source: str | None = None, databases: str | None = None, holder: int | None = None, position: int | None = None, state: str | None = None) -> None:
        self.source = source
        self.databases = databases
        self.holder = holder
        self.position = position
        self.state = state


class LeaseRequest(Struct):
    __slots__ = ('table', 'id', 'position', 'seconds', 'holder', 'onwards', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'id', 'seconds',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, id: str | None = None, position: int | None = None, seconds: int | None = None, holder: str | None = None, onwards: bool | None = None) -> None:
        self.table = table
        self.id = id
        self.position = position
        self.seconds = seconds
        self.holder = holder
        self.onwards = onwards


class ReaderLease(Struct):
    __slots__ = ('id', 'table', 'position', 'expiresAt', 'holder', 'onwards', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('id', 'table', 'position', 'expiresAt',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, id: str | None = None, table: TableReference | None = None, position: int | None = None, expiresAt: int | None = None, holder: str | None = None, onwards: bool | None = None) -> None:
        self.id = id
        self.table = table
        self.position = position
        self.expiresAt = expiresAt
        self.holder = holder
        self.onwards = onwards


class ServiceJob(Struct):
    __slots__ = ('id', 'table', 'action', 'state', 'instant', 'reason', 'gain', 'cost', 'priority', 'attempts', 'failures', 'worker', 'enqueuedAt', 'startedAt', 'finishedAt', 'notBefore', 'outcome', 'log', 'stopping', 'windows', 'bytes', 'pool', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('id', 'table', 'action', 'state', 'priority', 'attempts', 'failures', 'enqueuedAt', 'stopping',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, id: int | None = None, table: TableReference | None = None, action: str | None = None, state: str | None = None, instant: str | None = None, reason: str | None = None, gain: float | None = None, cost: float | None = None, priority: int | None = None, attempts: int | None = None, failures: int | None = None, worker: str | None = None, enqueuedAt: int | None = None, startedAt: int | None = None, finishedAt: int | None = None, notBefore: int | None = None, outcome: str | None = None, log: str | None = None, stopping: bool | None = None, windows: str | None = None, bytes: int | None = None, pool: str | None = None) -> None:
        self.id = id
        self.table = table
        self.action = action
        self.state = state
        self.instant = instant
        self.reason = reason
        self.gain = gain
        self.cost = cost
        self.priority = priority
        self.attempts = attempts
        self.failures = failures
        self.worker = worker
        self.enqueuedAt = enqueuedAt
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.notBefore = notBefore
        self.outcome = outcome
        self.log = log
        self.stopping = stopping
        self.windows = windows
        self.bytes = bytes
        self.pool = pool


class JobRequest(Struct):
    __slots__ = ('action', 'instant', 'reason', 'gain', 'cost', 'priority', 'windows', 'bytes', 'pool', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('action',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, action: str | None = None, instant: str | None = None, reason: str | None = None, gain: float | None = None, cost: float | None = None, priority: int | None = None, windows: str | None = None, bytes: int | None = None, pool: str | None = None) -> None:
        self.action = action
        self.instant = instant
        self.reason = reason
        self.gain = gain
        self.cost = cost
        self.priority = priority
        self.windows = windows
        self.bytes = bytes
        self.pool = pool


class ServiceDecision(Struct):
    __slots__ = ('tableService', 'action', 'reason', 'figures', 'gain', 'cost', 'decidedAt', 'position', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('tableService', 'reason',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, tableService: str | None = None, action: str | None = None, reason: str | None = None, figures: str | None = None, gain: float | None = None, cost: float | None = None, decidedAt: int | None = None, position: int | None = None) -> None:
        self.tableService = tableService
        self.action = action
        self.reason = reason
        self.figures = figures
        self.gain = gain
        self.cost = cost
        self.decidedAt = decidedAt
        self.position = position


class ServiceFactsRequest(Struct):
    __slots__ = ('table', 'smallFileBytes', 'targetFileBytes', 'order', 'keepCommits', 'keepHours', 'keepVersions', 'shared', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, smallFileBytes: int | None = None, targetFileBytes: int | None = None, order: bytes | None = None, keepCommits: int | None = None, keepHours: int | None = None, keepVersions: int | None = None, shared: bool | None = None) -> None:
        self.table = table
        self.smallFileBytes = smallFileBytes
        self.targetFileBytes = targetFileBytes
        self.order = order
        self.keepCommits = keepCommits
        self.keepHours = keepHours
        self.keepVersions = keepVersions
        self.shared = shared


class PendingPlan(Struct):
    __slots__ = ('timestamp', 'action', 'state', 'requestedAt', 'fileGroups', 'jobState', 'jobFinishedAt', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('timestamp', 'action', 'state', 'requestedAt', 'fileGroups',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, timestamp: str | None = None, action: str | None = None, state: str | None = None, requestedAt: int | None = None, fileGroups: int | None = None, jobState: str | None = None, jobFinishedAt: int | None = None) -> None:
        self.timestamp = timestamp
        self.action = action
        self.state = state
        self.requestedAt = requestedAt
        self.fileGroups = fileGroups
        self.jobState = jobState
        self.jobFinishedAt = jobFinishedAt


class EngineFigures(Struct):
    __slots__ = ('scans', 'files', 'deleteFiles', 'bytes', 'planningMs', 'commits', 'attempts', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('scans', 'files', 'deleteFiles', 'bytes', 'planningMs', 'commits', 'attempts',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, scans: int | None = None, files: int | None = None, deleteFiles: int | None = None, bytes: int | None = None, planningMs: int | None = None, commits: int | None = None, attempts: int | None = None) -> None:
        self.scans = scans
        self.files = files
        self.deleteFiles = deleteFiles
        self.bytes = bytes
        self.planningMs = planningMs
        self.commits = commits
        self.attempts = attempts


class ServiceFacts(Struct):
    __slots__ = ('table', 'now', 'position', 'parameters', 'databaseParameters', 'inputFormat', 'keyed', 'paused', 'logFiles', 'logBytes', 'logGroups', 'mergedBytes', 'oldestLogAt', 'deltaCommits', 'smallFiles', 'smallBytes', 'smallBecome', 'unorderedFiles', 'unorderedBytes', 'baseFiles', 'baseBytes', 'cleanFiles', 'cleanBytes', 'oldestSupersededAt', 'plans', 'jobs', 'resumedAt', 'location', 'unpublishedPartitions', 'unpublishedCommits', 'orphansRemovedAt', 'shared', 'engines', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'now', 'position', 'parameters', 'databaseParameters', 'inputFormat', 'keyed', 'logFiles', 'logBytes', 'logGroups', 'mergedBytes', 'deltaCommits', 'smallFiles', 'smallBytes', 'smallBecome', 'unorderedFiles', 'unorderedBytes', 'baseFiles', 'baseBytes', 'cleanFiles', 'cleanBytes', 'plans', 'jobs',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, now: int | None = None, position: int | None = None, parameters: dict[str, str] | None = None, databaseParameters: dict[str, str] | None = None, inputFormat: str | None = None, keyed: bool | None = None, paused: str | None = None, logFiles: int | None = None, logBytes: int | None = None, logGroups: int | None = None, mergedBytes: int | None = None, oldestLogAt: int | None = None, deltaCommits: int | None = None, smallFiles: int | None = None, smallBytes: int | None = None, smallBecome: int | None = None, unorderedFiles: int | None = None, unorderedBytes: int | None = None, baseFiles: int | None = None, baseBytes: int | None = None, cleanFiles: int | None = None, cleanBytes: int | None = None, oldestSupersededAt: int | None = None, plans: list[PendingPlan] | None = None, jobs: list[ServiceJob] | None = None, resumedAt: int | None = None, location: str | None = None, unpublishedPartitions: int | None = None, unpublishedCommits: int | None = None, orphansRemovedAt: int | None = None, shared: bool | None = None, engines: EngineFigures | None = None) -> None:
        self.table = table
        self.now = now
        self.position = position
        self.parameters = parameters
        self.databaseParameters = databaseParameters
        self.inputFormat = inputFormat
        self.keyed = keyed
        self.paused = paused
        self.logFiles = logFiles
        self.logBytes = logBytes
        self.logGroups = logGroups
        self.mergedBytes = mergedBytes
        self.oldestLogAt = oldestLogAt
        self.deltaCommits = deltaCommits
        self.smallFiles = smallFiles
        self.smallBytes = smallBytes
        self.smallBecome = smallBecome
        self.unorderedFiles = unorderedFiles
        self.unorderedBytes = unorderedBytes
        self.baseFiles = baseFiles
        self.baseBytes = baseBytes
        self.cleanFiles = cleanFiles
        self.cleanBytes = cleanBytes
        self.oldestSupersededAt = oldestSupersededAt
        self.plans = plans
        self.jobs = jobs
        self.resumedAt = resumedAt
        self.location = location
        self.unpublishedPartitions = unpublishedPartitions
        self.unpublishedCommits = unpublishedCommits
        self.orphansRemovedAt = orphansRemovedAt
        self.shared = shared
        self.engines = engines


class RecordDecisionsRequest(Struct):
    __slots__ = ('table', 'position', 'decisions', 'jobs', 'lookAgainAt', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'position', 'decisions',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, position: int | None = None, decisions: list[ServiceDecision] | None = None, jobs: list[JobRequest] | None = None, lookAgainAt: int | None = None) -> None:
        self.table = table
        self.position = position
        self.decisions = decisions
        self.jobs = jobs
        self.lookAgainAt = lookAgainAt


class ListJobsRequest(Struct):
    __slots__ = ('table', 'states', 'limit', 'latestFirst', 'withLogs', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: TableReference | None = None, states: list[str] | None = None, limit: int | None = None, latestFirst: bool | None = None, withLogs: bool | None = None) -> None:
        self.table = table
        self.states = states
        self.limit = limit
        self.latestFirst = latestFirst
        self.withLogs = withLogs


class ListJobsResponse(Struct):
    __slots__ = ('jobs', 'now', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('jobs', 'now',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, jobs: list[ServiceJob] | None = None, now: int | None = None) -> None:
        self.jobs = jobs
        self.now = now


class TakeJobRequest(Struct):
    __slots__ = ('worker', 'call', 'jobs', 'leaseSeconds', 'quotas', 'poolQuotas', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('worker', 'call', 'jobs', 'leaseSeconds',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, worker: str | None = None, call: str | None = None, jobs: list[int] | None = None, leaseSeconds: int | None = None, quotas: dict[str, int] | None = None, poolQuotas: dict[str, int] | None = None) -> None:
        self.worker = worker
        self.call = call
        self.jobs = jobs
        self.leaseSeconds = leaseSeconds
        self.quotas = quotas
        self.poolQuotas = poolQuotas


class TakeJobResponse(Struct):
    __slots__ = ('job', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, job: ServiceJob | None = None) -> None:
        self.job = job


class FinishJobRequest(Struct):
    __slots__ = ('job', 'attempt', 'state', 'outcome', 'log', 'retrySeconds', 'cost', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('job', 'attempt', 'state', 'outcome',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, job: int | None = None, attempt: int | None = None, state: str | None = None, outcome: str | None = None, log: str | None = None, retrySeconds: int | None = None, cost: float | None = None) -> None:
        self.job = job
        self.attempt = attempt
        self.state = state
        self.outcome = outcome
        self.log = log
        self.retrySeconds = retrySeconds
        self.cost = cost


class DelegationToken(Struct):
    __slots__ = ('id', 'owner', 'renewer', 'realUser', 'issuedAt', 'validUntil', 'renewableUntil', 'valid', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('id', 'owner', 'validUntil', 'renewableUntil', 'valid',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, id: int | None = None, owner: str | None = None, renewer: str | None = None, realUser: str | None = None, issuedAt: int | None = None, validUntil: int | None = None, renewableUntil: int | None = None, valid: bool | None = None) -> None:
        self.id = id
        self.owner = owner
        self.renewer = renewer
        self.realUser = realUser
        self.issuedAt = issuedAt
        self.validUntil = validUntil
        self.renewableUntil = renewableUntil
        self.valid = valid


class ListTokensRequest(Struct):
    __slots__ = ('owner', 'everybody', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, owner: str | None = None, everybody: bool | None = None) -> None:
        self.owner = owner
        self.everybody = everybody


class CancelTokensRequest(Struct):
    __slots__ = ('tokens', 'owner', 'everybody', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, tokens: list[int] | None = None, owner: str | None = None, everybody: bool | None = None) -> None:
        self.tokens = tokens
        self.owner = owner
        self.everybody = everybody


class TableCommit(Struct):
    __slots__ = ('table', 'expectedMetadataLocation', 'forgottenFiles', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: Table | None = None, expectedMetadataLocation: str | None = None, forgottenFiles: list[str] | None = None) -> None:
        self.table = table
        self.expectedMetadataLocation = expectedMetadataLocation
        self.forgottenFiles = forgottenFiles


class CommitTablesRequest(Struct):
    __slots__ = ('commits', 'checkOnly', 'places', 'alone', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('commits',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, commits: list[TableCommit] | None = None, checkOnly: bool | None = None, places: list[str] | None = None, alone: bool | None = None) -> None:
        self.commits = commits
        self.checkOnly = checkOnly
        self.places = places
        self.alone = alone


class IcebergNames(Struct):
    __slots__ = ('tables', 'views', 'exposing', 'exposed', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('tables', 'views', 'exposing', 'exposed',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, tables: list[str] | None = None, views: list[str] | None = None, exposing: list[str] | None = None, exposed: bool | None = None) -> None:
        self.tables = tables
        self.views = views
        self.exposing = exposing
        self.exposed = exposed


class RequestKey(Struct):
    __slots__ = ('key', 'digest', 'answer', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('key', 'digest',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, key: str | None = None, digest: bytes | None = None, answer: str | None = None) -> None:
        self.key = key
        self.digest = digest
        self.answer = answer


class RequestOutcome(Struct):
    __slots__ = ('other', 'refusal', 'table', 'answer', 'done', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, other: bool | None = None, refusal: int | None = None, table: int | None = None, answer: str | None = None, done: bool | None = None) -> None:
        self.other = other
        self.refusal = refusal
        self.table = table
        self.answer = answer
        self.done = done


class TableReplaced(ExceptionStruct):
    __slots__ = ('message', 'id', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None, id: int | None = None) -> None:
        self.message = message
        self.id = id


class EventsGone(ExceptionStruct):
    __slots__ = ('message', 'oldest', 'restored', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None, oldest: int | None = None, restored: bool | None = None) -> None:
        self.message = message
        self.oldest = oldest
        self.restored = restored


class InstantConflict(ExceptionStruct):
    __slots__ = ('message', 'winners', 'overlap', 'filesToRemove', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None, winners: list[Instant] | None = None, overlap: list[str] | None = None, filesToRemove: list[str] | None = None) -> None:
        self.message = message
        self.winners = winners
        self.overlap = overlap
        self.filesToRemove = filesToRemove


class SnapshotGone(ExceptionStruct):
    __slots__ = ('message', 'oldestReadable', 'oldestInstant', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None, oldestReadable: int | None = None, oldestInstant: str | None = None) -> None:
        self.message = message
        self.oldestReadable = oldestReadable
        self.oldestInstant = oldestInstant


class TablesNotCommitted(ExceptionStruct):
    __slots__ = ('message', 'reason', 'index', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None, reason: str | None = None, index: int | None = None) -> None:
        self.message = message
        self.reason = reason
        self.index = index


TableReference.thrift_spec = f(None, (1, 'catalog', 11, 'UTF8'), (2, 'database', 11, 'UTF8'), (3, 'table', 11, 'UTF8'), (4, 'id', 10, None))
PartitionState.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'values', 15, (11, 'UTF8', False)), (3, 'ready', 2, None), (4, 'commitTime', 10, None), (5, 'openedTime', 10, None), (6, 'committedBy', 11, 'UTF8'), (7, 'createTime', 10, None), (8, 'location', 11, 'UTF8'), (9, 'partitionTime', 10, None), (10, 'changedAt', 10, None), (11, 'publishedAt', 10, None), (12, 'waitsForPublish', 2, None))
ListPartitionsRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'filter', 11, 'UTF8'), (3, 'includeUncommitted', 2, None), (4, 'limit', 8, None), (5, 'after', 11, 'UTF8'))
ListPartitionsResponse.thrift_spec = f(None, (1, 'partitions', 15, (12, [PartitionState, None], False)))
CommitPartitionsRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'names', 15, (11, 'UTF8', False)), (3, 'filter', 11, 'UTF8'), (4, 'committedBy', 11, 'UTF8'))
CommitPartitionsResponse.thrift_spec = f(None, (1, 'committed', 15, (11, 'UTF8', False)), (2, 'alreadyReady', 15, (11, 'UTF8', False)))
ReopenPartitionsRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'names', 15, (11, 'UTF8', False)), (3, 'filter', 11, 'UTF8'))
ReopenPartitionsResponse.thrift_spec = f(None, (1, 'reopened', 15, (11, 'UTF8', False)), (2, 'alreadyUncommitted', 15, (11, 'UTF8', False)))
SourceProgress.thrift_spec = f(None, (1, 'chain', 11, 'UTF8'), (2, 'source', 11, 'UTF8'), (3, 'watermark', 10, None), (4, 'reportedAt', 10, None), (5, 'idle', 2, None))
LateRows.thrift_spec = f(None, (1, 'rerouted', 10, None), (2, 'reopened', 10, None), (3, 'dropped', 10, None))
Watermark.thrift_spec = f(None, (1, 'watermark', 10, None), (2, 'commitMode', 11, 'UTF8'), (3, 'sources', 15, (12, [SourceProgress, None], False)), (4, 'late', 12, [LateRows, None]), (5, 'uncommitted', 10, None), (6, 'oldestUncommitted', 11, 'UTF8'), (7, 'delay', 10, None), (8, 'interval', 10, None), (9, 'latePolicy', 11, 'UTF8'), (10, 'tableId', 10, None))
RoutePartitionsRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'names', 15, (11, 'UTF8', False)))
Route.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'target', 11, 'UTF8'), (3, 'late', 2, None), (4, 'action', 11, 'UTF8'))
RoutePartitionsResponse.thrift_spec = f(None, (1, 'routes', 15, (12, [Route, None], False)))
EventRecord.thrift_spec = f(None, (1, 'number', 10, None), (2, 'type', 11, 'UTF8'), (3, 'time', 10, None), (4, 'user', 11, 'UTF8'), (5, 'connection', 11, 'UTF8'), (6, 'catalog', 11, 'UTF8'), (7, 'database', 11, 'UTF8'), (8, 'table', 11, 'UTF8'), (9, 'payload', 11, 'UTF8'), (10, 'shard', 8, None))
ReadEventsRequest.thrift_spec = f(None, (1, 'after', 10, None), (2, 'limit', 8, None), (3, 'tables', 15, (11, 'UTF8', False)), (4, 'types', 15, (11, 'UTF8', False)), (5, 'maxWait', 10, None), (6, 'history', 11, 'UTF8'))
ReadEventsResponse.thrift_spec = f(None, (1, 'events', 15, (12, [EventRecord, None], False)), (2, 'position', 10, None), (3, 'last', 10, None), (4, 'history', 11, 'UTF8'))
ShardPosition.thrift_spec = f(None, (1, 'shard', 8, None), (2, 'generation', 10, None), (3, 'read', 10, None), (4, 'done', 10, None))
ReadGroupEventsRequest.thrift_spec = f(None, (1, 'group', 11, 'UTF8'), (2, 'member', 11, 'UTF8'), (3, 'start', 10, None), (4, 'shards', 15, (12, [ShardPosition, None], False)), (5, 'members', 8, None), (6, 'limit', 8, None), (7, 'tables', 15, (11, 'UTF8', False)), (8, 'types', 15, (11, 'UTF8', False)), (9, 'maxWait', 10, None), (10, 'history', 11, 'UTF8'))
ReadGroupEventsResponse.thrift_spec = f(None, (1, 'events', 15, (12, [EventRecord, None], False)), (2, 'shards', 15, (12, [ShardPosition, None], False)), (3, 'members', 8, None), (4, 'last', 10, None), (5, 'history', 11, 'UTF8'))
EventPositions.thrift_spec = f(None, (1, 'oldest', 10, None), (2, 'last', 10, None), (3, 'group', 10, None), (4, 'since', 10, None), (5, 'history', 11, 'UTF8'))
EventGroup.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'position', 10, None), (3, 'updatedAt', 10, None), (4, 'members', 8, None), (5, 'behind', 10, None), (6, 'deadLetters', 8, None), (7, 'seenAt', 10, None))
DeadEvent.thrift_spec = f(None, (1, 'outlet', 11, 'UTF8'), (2, 'number', 10, None), (3, 'error', 11, 'UTF8'), (4, 'attempts', 8, None), (5, 'failedAt', 10, None), (6, 'resend', 2, None), (7, 'type', 11, 'UTF8'), (8, 'catalog', 11, 'UTF8'), (9, 'database', 11, 'UTF8'), (10, 'table', 11, 'UTF8'))
Instant.thrift_spec = f(None, (1, 'timestamp', 11, 'UTF8'), (2, 'action', 11, 'UTF8'), (3, 'state', 11, 'UTF8'), (4, 'requestedAt', 10, None), (5, 'changedAt', 10, None), (6, 'heartbeatAt', 10, None), (7, 'completionTime', 11, 'UTF8'), (8, 'position', 10, None), (9, 'moment', 10, None), (10, 'begunAs', 11, 'UTF8'), (11, 'readPosition', 10, None), (12, 'archived', 2, None), (13, 'conflict', 11, 'UTF8'), (14, 'undoneBy', 11, 'UTF8'), (15, 'directory', 11, 'UTF8'), (16, 'attempt', 8, None), (17, 'tableId', 10, None), (18, 'name', 11, 'UTF8'))
FileGroup.thrift_spec = f(None, (1, 'partition', 11, 'UTF8'), (2, 'fileGroup', 11, 'UTF8'))
BeginInstantRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'action', 11, 'UTF8'), (3, 'timestamp', 11, 'UTF8'), (4, 'state', 11, 'UTF8'), (5, 'metadata', 11, 'BINARY'), (6, 'readPosition', 10, None), (7, 'plan', 15, (12, [FileGroup, None], False)), (8, 'heartbeat', 2, None), (9, 'layout', 13, (11, 'UTF8', 11, 'UTF8', False)), (10, 'name', 11, 'UTF8'))
TransitionInstantRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'timestamp', 11, 'UTF8'), (3, 'action', 11, 'UTF8'), (4, 'toState', 11, 'UTF8'), (5, 'metadata', 11, 'BINARY'), (6, 'runner', 11, 'UTF8'), (7, 'attempt', 8, None), (8, 'heartbeat', 2, None))
InstantKey.thrift_spec = f(None, (1, 'timestamp', 11, 'UTF8'), (2, 'action', 11, 'UTF8'))
ListInstantsRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'actions', 15, (11, 'UTF8', False)), (3, 'states', 15, (11, 'UTF8', False)), (4, 'after', 11, 'UTF8'), (5, 'upTo', 11, 'UTF8'), (6, 'limit', 8, None), (7, 'latestFirst', 2, None), (8, 'includeArchived', 2, None))
InstantDetails.thrift_spec = f(None, (1, 'instant', 12, [Instant, None]), (2, 'metadata', 13, (11, 'UTF8', 11, 'BINARY', False)), (3, 'plan', 15, (12, [FileGroup, None], False)), (4, 'partitions', 15, (11, 'UTF8', False)))
DataFile.thrift_spec = f(None, (1, 'partition', 11, 'UTF8'), (2, 'fileGroup', 11, 'UTF8'), (3, 'slice', 11, 'UTF8'), (4, 'path', 11, 'UTF8'), (5, 'kind', 11, 'UTF8'), (6, 'size', 10, None), (7, 'rows', 10, None), (8, 'minEventTime', 10, None), (9, 'maxEventTime', 10, None), (10, 'columns', 15, (11, 'UTF8', False)), (11, 'version', 8, None), (12, 'statistics', 11, 'BINARY'), (13, 'addedAt', 10, None), (14, 'removedAt', 10, None), (15, 'staged', 2, None), (16, 'firstAddedAt', 10, None))
Column.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'type', 11, 'UTF8'), (3, 'comment', 11, 'UTF8'))
CompleteInstantRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'timestamp', 11, 'UTF8'), (3, 'action', 11, 'UTF8'), (4, 'newAction', 11, 'UTF8'), (5, 'metadata', 11, 'BINARY'), (6, 'added', 15, (12, [DataFile, None], False)), (7, 'removedGroups', 15, (12, [FileGroup, None], False)), (8, 'removedPaths', 15, (11, 'UTF8', False)), (9, 'replacedPartitions', 15, (11, 'UTF8', False)), (10, 'strategy', 11, 'UTF8'), (11, 'readPosition', 10, None), (12, 'columns', 15, (12, [Column, None], False)), (13, 'chain', 11, 'UTF8'), (14, 'eventTimes', 13, (11, 'UTF8', 10, None, False)), (15, 'rolledBack', 15, (12, [InstantKey, None], False)), (16, 'cleanedPaths', 15, (11, 'UTF8', False)), (17, 'relocate', 2, None), (18, 'schemaProperties', 13, (11, 'UTF8', 11, 'UTF8', False)), (19, 'conditional', 2, None), (20, 'attempt', 8, None), (21, 'published', 15, (11, 'UTF8', False)), (22, 'stream', 11, 'UTF8'), (23, 'batch', 10, None), (24, 'changelog', 15, (12, [DataFile, None], False)), (25, 'layout', 13, (11, 'UTF8', 11, 'UTF8', False)), (26, 'keepsReady', 2, None), (27, 'reopen', 15, (11, 'UTF8', False)), (28, 'late', 12, [LateRows, None]), (29, 'replacedWhere', 11, 'UTF8'), (30, 'readGroups', 15, (11, 'UTF8', False)))
CompletedInstant.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'instant', 12, [Instant, None]), (3, 'repeated', 2, None), (4, 'tableVersion', 10, None), (5, 'batchRepeated', 2, None), (6, 'alreadyReady', 15, (11, 'UTF8', False)))
RejectedCommit.thrift_spec = f(None, (1, 'timestamp', 11, 'UTF8'), (2, 'action', 11, 'UTF8'), (3, 'requestedAt', 10, None), (4, 'rejectedAt', 10, None), (5, 'winners', 15, (10, None, False)), (6, 'reason', 11, 'UTF8'))
TimelinePosition.thrift_spec = f(None, (1, 'position', 10, None), (2, 'lastCompleted', 11, 'UTF8'), (3, 'oldestReadable', 10, None), (4, 'moment', 10, None), (5, 'tableVersion', 10, None), (6, 'changedAt', 10, None), (7, 'publishedAt', 10, None), (8, 'tableId', 10, None))
SnapshotRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'asOf', 11, 'UTF8'), (3, 'asOfPosition', 10, None), (4, 'asOfTime', 10, None), (5, 'asOfMoment', 10, None), (6, 'partitions', 15, (11, 'UTF8', False)), (7, 'filter', 11, 'UTF8'), (8, 'includeUncommitted', 2, None), (9, 'readOptimized', 2, None), (10, 'limit', 8, None), (11, 'after', 11, 'UTF8'), (12, 'allVersions', 2, None))
SnapshotResponse.thrift_spec = f(None, (1, 'position', 10, None), (2, 'files', 15, (12, [DataFile, None], False)), (3, 'nextPage', 11, 'UTF8'), (4, 'location', 11, 'UTF8'), (5, 'tableVersion', 10, None), (6, 'tableId', 10, None))
ReadChangesRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'after', 10, None), (3, 'upTo', 10, None), (4, 'partitions', 15, (11, 'UTF8', False)), (5, 'filter', 11, 'UTF8'), (6, 'includeUncommitted', 2, None), (7, 'limit', 8, None), (8, 'changelog', 2, None))
InstantChanges.thrift_spec = f(None, (1, 'instant', 12, [Instant, None]), (2, 'added', 15, (12, [DataFile, None], False)), (3, 'removed', 15, (12, [DataFile, None], False)), (4, 'changelog', 15, (12, [DataFile, None], False)))
ReadChangesResponse.thrift_spec = f(None, (1, 'changes', 15, (12, [InstantChanges, None], False)), (2, 'position', 10, None), (3, 'location', 11, 'UTF8'), (4, 'changelog', 2, None), (5, 'tableVersion', 10, None), (6, 'tableId', 10, None))
PlanCleanRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'keepCommits', 8, None), (3, 'keepHours', 8, None), (4, 'keepVersions', 8, None), (5, 'limit', 8, None))
FindOrphansRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'olderThanHours', 8, None), (3, 'after', 11, 'UTF8'))
OrphanFile.thrift_spec = f(None, (1, 'path', 11, 'UTF8'), (2, 'size', 10, None), (3, 'modifiedAt', 10, None))
FindOrphansResponse.thrift_spec = f(None, (1, 'files', 15, (12, [OrphanFile, None], False)), (2, 'examined', 10, None), (3, 'last', 11, 'UTF8'))
RemoveOrphansRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'paths', 15, (11, 'UTF8', False)), (3, 'olderThanHours', 8, None))
HudiInstant.thrift_spec = f(None, (1, 'timestamp', 11, 'UTF8'), (2, 'action', 11, 'UTF8'), (3, 'state', 11, 'UTF8'), (4, 'completedAs', 11, 'UTF8'), (5, 'metadata', 11, 'BINARY'))
ImportHudiRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'location', 11, 'UTF8'), (3, 'properties', 13, (11, 'UTF8', 11, 'UTF8', False)), (4, 'instants', 15, (12, [HudiInstant, None], False)), (5, 'folder', 15, (12, [InstantKey, None], False)), (6, 'olderFiles', 13, (11, 'UTF8', 10, None, False)))
ImportedInstant.thrift_spec = f(None, (1, 'timestamp', 11, 'UTF8'), (2, 'action', 11, 'UTF8'), (3, 'state', 11, 'UTF8'), (4, 'fresh', 2, None), (5, 'remark', 11, 'UTF8'))
ImportHudiResponse.thrift_spec = f(None, (1, 'tableAdded', 2, None), (2, 'instants', 15, (12, [ImportedInstant, None], False)), (3, 'position', 10, None))
ImportRequest.thrift_spec = f(None, (1, 'catalogs', 15, (12, [Catalog, None], False)), (2, 'databases', 15, (12, [Database, None], False)), (3, 'functions', 15, (12, [Function, None], False)), (4, 'tables', 15, (12, [Table, None], False)), (5, 'partitions', 15, (12, [Partition, None], False)), (6, 'statistics', 15, (12, [ColumnStatistics, None], False)), (7, 'constraints', 12, [SQLAllTableConstraints, None]), (8, 'roles', 15, (12, [Role, None], False)), (9, 'members', 15, (12, [RolePrincipalGrant, None], False)), (10, 'grants', 15, (12, [HiveObjectPrivilege, None], False)), (11, 'overwrite', 2, None), (12, 'columns', 15, (15, (12, [FieldSchema, None], False), False)), (13, 'columnsOf', 15, (8, None, False)))
ImportDifference.thrift_spec = f(None, (1, 'kind', 11, 'UTF8'), (2, 'name', 11, 'UTF8'), (3, 'difference', 11, 'UTF8'), (4, 'replaced', 2, None))
ImportResponse.thrift_spec = f(None, (1, 'added', 10, None), (2, 'same', 10, None), (3, 'differences', 15, (12, [ImportDifference, None], False)))
FollowedSource.thrift_spec = f(None, (1, 'source', 11, 'UTF8'), (2, 'databases', 11, 'UTF8'), (3, 'holder', 10, None), (4, 'position', 10, None), (5, 'state', 11, 'UTF8'))
LeaseRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'id', 11, 'UTF8'), (3, 'position', 10, None), (4, 'seconds', 8, None), (5, 'holder', 11, 'UTF8'), (6, 'onwards', 2, None))
ReaderLease.thrift_spec = f(None, (1, 'id', 11, 'UTF8'), (2, 'table', 12, [TableReference, None]), (3, 'position', 10, None), (4, 'expiresAt', 10, None), (5, 'holder', 11, 'UTF8'), (6, 'onwards', 2, None))
ServiceJob.thrift_spec = f(None, (1, 'id', 10, None), (2, 'table', 12, [TableReference, None]), (3, 'action', 11, 'UTF8'), (4, 'state', 11, 'UTF8'), (5, 'instant', 11, 'UTF8'), (6, 'reason', 11, 'UTF8'), (7, 'gain', 4, None), (8, 'cost', 4, None), (9, 'priority', 8, None), (10, 'attempts', 8, None), (11, 'failures', 8, None), (12, 'worker', 11, 'UTF8'), (13, 'enqueuedAt', 10, None), (14, 'startedAt', 10, None), (15, 'finishedAt', 10, None), (16, 'notBefore', 10, None), (17, 'outcome', 11, 'UTF8'), (18, 'log', 11, 'UTF8'), (19, 'stopping', 2, None), (20, 'windows', 11, 'UTF8'), (21, 'bytes', 10, None), (22, 'pool', 11, 'UTF8'))
JobRequest.thrift_spec = f(None, (1, 'action', 11, 'UTF8'), (2, 'instant', 11, 'UTF8'), (3, 'reason', 11, 'UTF8'), (4, 'gain', 4, None), (5, 'cost', 4, None), (6, 'priority', 8, None), (7, 'windows', 11, 'UTF8'), (8, 'bytes', 10, None), (9, 'pool', 11, 'UTF8'))
ServiceDecision.thrift_spec = f(None, (1, 'tableService', 11, 'UTF8'), (2, 'action', 11, 'UTF8'), (3, 'reason', 11, 'UTF8'), (4, 'figures', 11, 'UTF8'), (5, 'gain', 4, None), (6, 'cost', 4, None), (7, 'decidedAt', 10, None), (8, 'position', 10, None))
ServiceFactsRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'smallFileBytes', 10, None), (3, 'targetFileBytes', 10, None), (4, 'order', 11, 'BINARY'), (5, 'keepCommits', 8, None), (6, 'keepHours', 8, None), (7, 'keepVersions', 8, None), (8, 'shared', 2, None))
PendingPlan.thrift_spec = f(None, (1, 'timestamp', 11, 'UTF8'), (2, 'action', 11, 'UTF8'), (3, 'state', 11, 'UTF8'), (4, 'requestedAt', 10, None), (5, 'fileGroups', 10, None), (6, 'jobState', 11, 'UTF8'), (7, 'jobFinishedAt', 10, None))
EngineFigures.thrift_spec = f(None, (1, 'scans', 10, None), (2, 'files', 10, None), (3, 'deleteFiles', 10, None), (4, 'bytes', 10, None), (5, 'planningMs', 10, None), (6, 'commits', 10, None), (7, 'attempts', 10, None))
ServiceFacts.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'now', 10, None), (3, 'position', 10, None), (4, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (5, 'databaseParameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (6, 'inputFormat', 11, 'UTF8'), (7, 'keyed', 2, None), (8, 'paused', 11, 'UTF8'), (9, 'logFiles', 10, None), (10, 'logBytes', 10, None), (11, 'logGroups', 10, None), (12, 'mergedBytes', 10, None), (13, 'oldestLogAt', 10, None), (14, 'deltaCommits', 10, None), (15, 'smallFiles', 10, None), (16, 'smallBytes', 10, None), (17, 'smallBecome', 10, None), (18, 'unorderedFiles', 10, None), (19, 'unorderedBytes', 10, None), (20, 'baseFiles', 10, None), (21, 'baseBytes', 10, None), (22, 'cleanFiles', 10, None), (23, 'cleanBytes', 10, None), (24, 'oldestSupersededAt', 10, None), (25, 'plans', 15, (12, [PendingPlan, None], False)), (26, 'jobs', 15, (12, [ServiceJob, None], False)), (27, 'resumedAt', 10, None), (28, 'location', 11, 'UTF8'), (29, 'unpublishedPartitions', 10, None), (30, 'unpublishedCommits', 10, None), (31, 'orphansRemovedAt', 10, None), (32, 'shared', 2, None), (33, 'engines', 12, [EngineFigures, None]))
RecordDecisionsRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'position', 10, None), (3, 'decisions', 15, (12, [ServiceDecision, None], False)), (4, 'jobs', 15, (12, [JobRequest, None], False)), (5, 'lookAgainAt', 10, None))
ListJobsRequest.thrift_spec = f(None, (1, 'table', 12, [TableReference, None]), (2, 'states', 15, (11, 'UTF8', False)), (3, 'limit', 8, None), (4, 'latestFirst', 2, None), (5, 'withLogs', 2, None))
ListJobsResponse.thrift_spec = f(None, (1, 'jobs', 15, (12, [ServiceJob, None], False)), (2, 'now', 10, None))
TakeJobRequest.thrift_spec = f(None, (1, 'worker', 11, 'UTF8'), (2, 'call', 11, 'UTF8'), (3, 'jobs', 15, (10, None, False)), (4, 'leaseSeconds', 8, None), (5, 'quotas', 13, (11, 'UTF8', 8, None, False)), (6, 'poolQuotas', 13, (11, 'UTF8', 8, None, False)))
TakeJobResponse.thrift_spec = f(None, (1, 'job', 12, [ServiceJob, None]))
FinishJobRequest.thrift_spec = f(None, (1, 'job', 10, None), (2, 'attempt', 8, None), (3, 'state', 11, 'UTF8'), (4, 'outcome', 11, 'UTF8'), (5, 'log', 11, 'UTF8'), (6, 'retrySeconds', 8, None), (7, 'cost', 4, None))
DelegationToken.thrift_spec = f(None, (1, 'id', 10, None), (2, 'owner', 11, 'UTF8'), (3, 'renewer', 11, 'UTF8'), (4, 'realUser', 11, 'UTF8'), (5, 'issuedAt', 10, None), (6, 'validUntil', 10, None), (7, 'renewableUntil', 10, None), (8, 'valid', 2, None))
ListTokensRequest.thrift_spec = f(None, (1, 'owner', 11, 'UTF8'), (2, 'everybody', 2, None))
CancelTokensRequest.thrift_spec = f(None, (1, 'tokens', 15, (10, None, False)), (2, 'owner', 11, 'UTF8'), (3, 'everybody', 2, None))
TableCommit.thrift_spec = f(None, (1, 'table', 12, [Table, None]), (2, 'expectedMetadataLocation', 11, 'UTF8'), (3, 'forgottenFiles', 15, (11, 'UTF8', False)))
CommitTablesRequest.thrift_spec = f(None, (1, 'commits', 15, (12, [TableCommit, None], False)), (2, 'checkOnly', 2, None), (3, 'places', 15, (11, 'UTF8', False)), (4, 'alone', 2, None))
IcebergNames.thrift_spec = f(None, (1, 'tables', 15, (11, 'UTF8', False)), (2, 'views', 15, (11, 'UTF8', False)), (3, 'exposing', 15, (11, 'UTF8', False)), (4, 'exposed', 2, None))
RequestKey.thrift_spec = f(None, (1, 'key', 11, 'UTF8'), (2, 'digest', 11, 'BINARY'), (3, 'answer', 11, 'UTF8'))
RequestOutcome.thrift_spec = f(None, (1, 'other', 2, None), (2, 'refusal', 8, None), (3, 'table', 10, None), (4, 'answer', 11, 'UTF8'), (5, 'done', 2, None))
TableReplaced.thrift_spec = f(None, (1, 'message', 11, 'UTF8'), (2, 'id', 10, None))
EventsGone.thrift_spec = f(None, (1, 'message', 11, 'UTF8'), (2, 'oldest', 10, None), (3, 'restored', 2, None))
InstantConflict.thrift_spec = f(None, (1, 'message', 11, 'UTF8'), (2, 'winners', 15, (12, [Instant, None], False)), (3, 'overlap', 15, (11, 'UTF8', False)), (4, 'filesToRemove', 15, (11, 'UTF8', False)))
SnapshotGone.thrift_spec = f(None, (1, 'message', 11, 'UTF8'), (2, 'oldestReadable', 10, None), (3, 'oldestInstant', 11, 'UTF8'))
TablesNotCommitted.thrift_spec = f(None, (1, 'message', 11, 'UTF8'), (2, 'reason', 11, 'UTF8'), (3, 'index', 8, None))

for _cls in (
    TableReference,
    PartitionState,
    ListPartitionsRequest,
    ListPartitionsResponse,
    CommitPartitionsRequest,
    CommitPartitionsResponse,
    ReopenPartitionsRequest,
    ReopenPartitionsResponse,
    SourceProgress,
    LateRows,
    Watermark,
    RoutePartitionsRequest,
    Route,
    RoutePartitionsResponse,
    EventRecord,
    ReadEventsRequest,
    ReadEventsResponse,
    ShardPosition,
    ReadGroupEventsRequest,
    ReadGroupEventsResponse,
    EventPositions,
    EventGroup,
    DeadEvent,
    Instant,
    FileGroup,
    BeginInstantRequest,
    TransitionInstantRequest,
    InstantKey,
    ListInstantsRequest,
    InstantDetails,
    DataFile,
    Column,
    CompleteInstantRequest,
    CompletedInstant,
    RejectedCommit,
    TimelinePosition,
    SnapshotRequest,
    SnapshotResponse,
    ReadChangesRequest,
    InstantChanges,
    ReadChangesResponse,
    PlanCleanRequest,
    FindOrphansRequest,
    OrphanFile,
    FindOrphansResponse,
    RemoveOrphansRequest,
    HudiInstant,
    ImportHudiRequest,
    ImportedInstant,
    ImportHudiResponse,
    ImportRequest,
    ImportDifference,
    ImportResponse,
    FollowedSource,
    LeaseRequest,
    ReaderLease,
    ServiceJob,
    JobRequest,
    ServiceDecision,
    ServiceFactsRequest,
    PendingPlan,
    EngineFigures,
    ServiceFacts,
    RecordDecisionsRequest,
    ListJobsRequest,
    ListJobsResponse,
    TakeJobRequest,
    TakeJobResponse,
    FinishJobRequest,
    DelegationToken,
    ListTokensRequest,
    CancelTokensRequest,
    TableCommit,
    CommitTablesRequest,
    IcebergNames,
    RequestKey,
    RequestOutcome,
    TableReplaced,
    EventsGone,
    InstantConflict,
    SnapshotGone,
    TablesNotCommitted,
):
    link(_cls.thrift_spec)
