"""Timelines and snapshots of lake tables: a typed client.

    with LakeClient("thrift://metastore:9083") as client:
        orders = client.table("shop.orders")
        with orders.writing() as writing:
            ...  # write files below writing.directory
            file = DataFile("dt=2026-01-31", "a", writing.instant.timestamp, path, size=…, rows=…)
            writing.complete(Completion(added=[file], staged=True))
        for file in orders.snapshot(filter="dt >= '2026-01-31'"):
            print(file.path, file.rows)

If the server can't be reached, or its reply is lost, the client repeats the call for `retry_seconds`. If the first
attempt of a completion had succeeded, the result's `repeated` is true.

The server's exceptions are those of `lake.protocol.hive` and `lake.protocol.lake`:
`NoSuchObjectException`, `InvalidOperationException`, `MetaException`, `InstantConflict`, `SnapshotGone`,
`TableReplaced`.

A `LakeTable` is one table, by its id: whichever had the name when the object was first used. When that table has been
dropped and another one has the name, every call of the object raises TableReplaced. `LakeClient.table` then gives an
object of the table that has the name now.
"""

import operator
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from thrift.Thrift import TException

from lake.client.heartbeats import Heartbeats
from lake.client.lake_types import (
    AsOf,
    Begun,
    Changelog,
    Changes,
    Column,
    Completed,
    Completion,
    DataFile,
    Details,
    FileGroup,
    Instant,
    Moment,
    OrphanFile,
    PartitionPositions,
    Position,
    Route,
    Schema,
    from_millis,
    to_millis,
)
from lake.client.leases import Lease
from lake.client.reconnecting import Connect, ReconnectingClient, connect_to
from lake.client.references import reference
from lake.protocol import lake as wire
from lake.protocol.bounded_dict import BoundedDict
from lake.protocol.connection.closing import Closing
from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import GetTableRequest, InvalidOperationException, NoSuchObjectException, Table
from lake.protocol.lake import TableReference, TableReplaced
from lake.protocol.struct import ExceptionStruct

if TYPE_CHECKING:
    import pyarrow as pa

    from lake.tables.keyed_tables import Scan
    from lake.tables.keyed_writes import Applied, KeyedOperation

PAGE = 10_000
"""Instants, or files, in one page."""

_ORPHANS_AT_ONCE = 10_000  # as the server takes them

KEPT = 1_000
"""The number of instants' details, and of schemas, that a `LakeClient` caches."""

Value = TypeVar("Value")


class LakeClient(Closing):
    """A connection to the metastore, for any number of tables. May be used from several threads, one at a time."""

    def __init__(self, connect: str | Connect, *, retry_seconds: float = 300.0, login: Login | None = None) -> None:
        """`connect` is a URI `thrift://host:port` (several with commas) or makes a client; it is used when needed.

        `retry_seconds` is how long a call is repeated that gets no answer. `login`: who the client is, by default what
        the environment says.
        """
        self.connect = connect_to(connect, login=login) if isinstance(connect, str) else connect
        self.heartbeats = Heartbeats(self.connect)
        self._client = ReconnectingClient(self.connect, retry_seconds=retry_seconds)
        # Reentrant: a request that names a table may have to ask for the table's id.
        self._lock = threading.RLock()
        # By the table's id first: neither a name nor a version of a table says which table it is.
        self._details: BoundedDict[tuple[int, str, str], Details] = BoundedDict(KEPT)
        self._schemas: BoundedDict[tuple[int, int], Schema] = BoundedDict(KEPT)

    def table(self, name: str | TableReference) -> "LakeTable":
        """The table `database.table` or `catalog.database.table`. Makes no call.

        The object is the table that has the name when the object is first used, or the one whose id a reference has.
        Raises ValueError for a name of another form.
        """
        return LakeTable(self, reference(name))

    def complete(self, completions: Sequence[tuple["LakeTable", Instant, Completion]]) -> list[Completed]:
        """Completes instants of several tables together, all or none. Raises as `LakeTable.complete`."""
        requests = [completion.sent(table.reference, instant) for table, instant, completion in completions]
        done = self.call(lambda client: client.lake_complete_instants(requests))
        return [
            Completed(
                Instant.of(each.instant),
                bool(each.repeated),
                each.tableVersion,
                bool(each.batchRepeated),
                each.alreadyReady or (),
            )
            for each in done
        ]

    def write_together(
        self, changes: Sequence[tuple["LakeTable", "pa.Table", "KeyedOperation"]], **options: Any
    ) -> "list[Applied]":
        """Changes rows of several keyed tables, all or none; options and errors as in `keyed_writes.apply_together`."""
        from lake.tables.keyed_writes import apply_together

        return apply_together(changes, **options)

    def call(self, request: Callable[[ThriftClient], Value]) -> Value:
        """The result of a Thrift call, repeated until there is an answer."""
        with self._lock:
            return self._client.call(request)

    def close(self) -> None:
        self._client.close()


class LakeTable:
    """The timeline and the snapshots of one table, from `LakeClient.table`.

    It is one table by its id, not whichever has the name. All calls raise TableReplaced once another table has the
    name. The client caches what can't change any more: the details of a completed instant, the schema of a table's
    version.
    """

    def __init__(self, client: LakeClient, table: TableReference) -> None:
        self._client = client
        self.named = table
        """The table's name as the server takes it. It has the id only if the caller gave one."""
        self._known = table
        self._lock = threading.Lock()

    @property
    def client(self) -> LakeClient:
        return self._client

    @property
    def name(self) -> str:
        return f"{self.named.database}.{self.named.table}"

    @property
    def full_name(self) -> str:
        """The name with the catalog, if that is another than Hive's default."""
        return f"{self.named.catalog}.{self.name}" if self.named.catalog else self.name

    @property
    def reference(self) -> TableReference:
        """The table by its name and id, as requests name it. Asks the server for the id when it is first needed.

        Raises NoSuchObjectException, InvalidOperationException for a view.
        """
        if self._known.id is None:
            self.position()
        return self._known

    @property
    def id(self) -> int | None:
        """The table's id, which no other table ever has; None from a server that doesn't tell it yet."""
        return self.reference.id

    def _met(self, table_id: int | None) -> None:
        """Notes which table a reply is about. Raises TableReplaced if that is another than the one of before."""
        if table_id is None:
            return
        with self._lock:
            if self._known.id is None:
                self._known = self._known.replace(id=table_id)
        if self._known.id != table_id:
            raise TableReplaced(
                f"{self.name} is another table (id {table_id}) than the one that was read (id {self._known.id}): that"
                " one was dropped or renamed. Read the schema of the table again",
                table_id,
            )

    # --- writing ----------------------------------------------------------------------------------------------

    @contextmanager
    def writing(
        self,
        action: str = "commit",
        *,
        metadata: bytes | None = None,
        read_position: int | None = None,
        heartbeat_seconds: float = 20.0,
    ) -> Iterator["Writing"]:
        """Begins an instant and sends heartbeats while the block runs; aborts it unless the block completes it.

        The server aborts an instant without a heartbeat for longer than its setting `instant_heartbeat_seconds`, and
        deletes its files. An exception in the block then gets a note that says so. Raises ValueError unless
        `heartbeat_seconds` is positive.
        """
        _check_pause(heartbeat_seconds)
        begun = self.begin(action, metadata=metadata, read_position=read_position, heartbeat=True)
        writing = Writing(self, begun)
        try:
            with self._client.heartbeats.sent(self.reference, begun.instant, heartbeat_seconds):
                yield writing
        except Exception as error:
            if self._is_gone(begun.instant):
                error.add_note(
                    f"The instant {begun.instant.timestamp} {action} of {self.name} had been aborted: no heartbeat had"
                    f" come for the server's instant_heartbeat_seconds, and one was sent every {heartbeat_seconds:g} s"
                )
            raise
        finally:
            if writing.completed is None:
                # If the completion succeeded and only its reply was lost, the server refuses to abort it.
                with suppress(ExceptionStruct, TException, OSError):
                    self.abort(begun.instant)

    @contextmanager
    def resuming(self, instant: Instant, *, heartbeat_seconds: float = 20.0) -> Iterator["Writing"]:
        """Takes up the plan of a table service, and sends heartbeats while the block runs.

        Unless the block completes it, the instant is requested again, and another process can take it up. The same
        happens if no heartbeat comes for the server's setting `instant_heartbeat_seconds`. Then the completion is
        refused, and the files in the directory of this attempt are deleted. Raises NoSuchObjectException without the
        instant, InvalidOperationException if another process has taken it up, ValueError unless `heartbeat_seconds` is
        positive.
        """
        _check_pause(heartbeat_seconds)
        taken = self.transition(instant, "inflight", runner=uuid.uuid4().hex, heartbeat=True)
        writing = Writing(self, Begun(taken, taken.directory or ""))
        try:
            with self._client.heartbeats.sent(self.reference, taken, heartbeat_seconds):
                yield writing
        finally:
            if writing.completed is None:
                # If the completion succeeded and only its reply was lost, the server refuses to take it back.
                with suppress(ExceptionStruct, TException, OSError):
                    self.transition(taken, "requested")

    @contextmanager
    def leased(
        self,
        position: int | None = None,
        *,
        seconds: float = 300.0,
        holder: str | None = None,
        onwards: bool = False,
    ) -> Iterator[int]:
        """Keeps cleans off the snapshot at a position, by default the latest, while the block runs. Gives the position.

        `seconds`: how long it is kept after this process has died. `holder`: who reads, for people. `onwards`: keeps
        all later snapshots, too, and so the changes after the position. Raises
        NoSuchObjectException, InvalidOperationException, SnapshotGone if the snapshot can't be read any more,
        ValueError unless `seconds` are at least one.
        """
        if seconds < 1:
            raise ValueError(f"a lease is for a second or more, not for {seconds}")
        client = self._client
        with Lease(client.call, client.connect, self.reference, position, seconds, holder, onwards=onwards) as lease:
            yield lease.position

    def _is_gone(self, instant: Instant) -> bool:
        """Whether the timeline doesn't have it any more; False if that can't be found out."""
        try:
            self.heartbeat(instant)
        except NoSuchObjectException:
            return True
        except (ExceptionStruct, TException, OSError):
            pass
        return False

    def begin(
        self,
        action: str = "commit",
        *,
        timestamp: str | None = None,
        state: str = "inflight",
        metadata: bytes | None = None,
        read_position: int | None = None,
        plan: Sequence[FileGroup] = (),
        heartbeat: bool = False,
        layout: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> Begun:
        """Adds an instant to the timeline. With `heartbeat`, the caller must call `heartbeat()` regularly from now on.

        `layout`: of a keyed table, by which properties the plan goes, as in `Completion`. `name`: of a savepoint.

        If a reply is lost, the repeated call may begin a second instant, and nobody works on the first one. With
        `heartbeat`, the server aborts that one. With a `timestamp` of the writer's own, there is only one instant.
        """
        request = wire.BeginInstantRequest(
            table=self.reference,
            action=action,
            timestamp=timestamp,
            state=state,
            metadata=metadata,
            readPosition=read_position,
            plan=[wire.FileGroup(*each) for each in plan] or None,
            heartbeat=heartbeat or None,
            layout=None if layout is None else dict(layout),
            name=name,
        )
        begun = self._client.call(lambda client: client.lake_begin_instant(request))
        self._met(begun.tableId)
        return Begun(Instant.of(begun), begun.directory or "")

    def planned_groups(self) -> set[FileGroup]:
        """The file groups that plans of compactions and clusterings name which aren't completed."""
        plans = self.instants(actions=["compaction", "clustering"], states=["requested", "inflight"])
        return {group for plan in plans for group in self.details(plan.timestamp, plan.action).plan}

    def heartbeat(self, instant: Instant) -> None:
        """Says that an instant's writer lives. Raises NoSuchObjectException if it has been aborted,
        InvalidOperationException if it runs a plan that has been given back."""
        table = self.reference
        self._client.call(lambda client: client.lake_heartbeat_instant(table, *_key(instant), instant.running))

    def transition(
        self,
        instant: Instant,
        state: str,
        metadata: bytes | None = None,
        *,
        runner: str | None = None,
        heartbeat: bool = False,
    ) -> Instant:
        """Brings an instant into the state `inflight`, or a table service back to `requested`.

        A plan becomes inflight for one process only: it calls itself by a `runner` of its own, so that it may repeat
        the call. With `heartbeat`, it must call `heartbeat()` regularly from then on. Raises InvalidOperationException
        if another process runs the plan.
        """
        request = wire.TransitionInstantRequest(
            self.reference,
            *_key(instant),
            toState=state,
            metadata=metadata,
            runner=runner,
            attempt=instant.running if state == "requested" else None,
            heartbeat=heartbeat or None,
        )
        return Instant.of(self._client.call(lambda client: client.lake_transition_instant(request)))

    def complete(self, instant: Instant, completion: Completion) -> Completed:
        """Completes an instant. May be repeated. Raises InstantConflict if a conflicting instant completed first."""
        return self._client.complete([(self, instant, completion)])[0]

    def abort(self, instant: Instant) -> None:
        """Deletes an instant that isn't completed, with the files in its directory; a missing one is fine.

        Raises InvalidOperationException if it is completed: undo it by `roll_back`.
        """
        table = self.reference
        self._client.call(lambda client: client.lake_delete_instant(table, *_key(instant)))

    def roll_back(self, *instants: Instant) -> Completed:
        """Undoes the latest completions, by an instant of its own."""
        with self.writing("rollback") as writing:
            return writing.complete(Completion(rolled_back=instants))

    def savepoint(self, instant: str | None = None, *, name: str | None = None) -> Instant:
        """Keeps cleans off the snapshot of a completed instant, by default the last one, until `delete_savepoint`.

        `instant`: its timestamp. `name`: what the snapshot can be read as of, besides the timestamp. Raises
        InvalidOperationException for an instant that isn't completed or whose files have been cleaned, if there is a
        savepoint of that instant or name already, or if the table has no instant.
        """
        saved = self.begin("savepoint", timestamp=instant, name=name).instant
        self.complete(saved, Completion())
        return saved

    def delete_savepoint(self, savepoint: str) -> None:
        """Lets cleans have a snapshot again, by the savepoint's name or timestamp. Raises NoSuchObjectException."""
        saved = next((each for each in self.savepoints() if savepoint in (each.name, each.timestamp)), None)
        if saved is None:
            raise NoSuchObjectException(f"{self.name} has no savepoint {savepoint!r}")
        self.abort(saved)

    def savepoints(self) -> Iterator[Instant]:
        """The savepoints that nothing has undone. `read_position` is the position whose snapshot each keeps."""
        return self.instants(actions=["savepoint"])

    def clean(self, files: Iterable[DataFile]) -> Completed:
        """Deletes files that `plan_clean` returned."""
        with self.writing("clean") as writing:
            return writing.complete(Completion(cleaned_paths=sorted({each.path for each in files})))

    # --- reading ----------------------------------------------------------------------------------------------

    def position(self) -> Position:
        """The last position of the timeline, and the oldest one that can be read."""
        found = self._client.call(lambda client: client.lake_timeline_position(self._known))
        self._met(found.tableId)
        return Position(
            found.position, found.lastCompleted, found.moment, found.oldestReadable, found.tableVersion or 0
        )

    def is_own(self, position: int) -> bool:
        """Whether a position that was kept without a table's id is of this table.

        False for a position of a table that had the name before, and for one that is still to come.
        """
        try:
            self._look_up(position)
        except InvalidOperationException:
            return False
        return True

    def check_named(self, as_of: AsOf | None) -> None:
        """Raises InvalidOperationException for a position of an earlier table of the name.

        Who names a position beside a name may have that table in mind. By the id of this one, the server would say what
        it had then: nothing. A reference with the id names this table alone: then nothing is checked.
        """
        if isinstance(as_of, int) and as_of and self.named.id is None:
            self._look_up(as_of)

    def _look_up(self, position: int) -> None:
        """Asks for a position by the table's name alone. Raises InvalidOperationException if it isn't its own."""
        request = wire.SnapshotRequest(self.reference.replace(id=None), asOfPosition=position, partitions=[])
        with suppress(wire.SnapshotGone):  # it had it
            self._client.call(lambda client: client.lake_get_snapshot(request))

    def instants(
        self,
        *,
        actions: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        after: str | None = None,
        up_to: str | None = None,
        latest_first: bool = False,
        include_archived: bool = False,
        page: int = PAGE,
    ) -> Iterator[Instant]:
        """Instants in the order of their timestamps, read page by page; without archived and undone ones unless
        `include_archived`."""
        request = wire.ListInstantsRequest(
            table=self.reference,
            actions=None if actions is None else list(actions),
            states=None if states is None else list(states),
            after=after,
            upTo=up_to,
            limit=max(page, _AT_ONE_TIMESTAMP),
            latestFirst=latest_first,
            includeArchived=include_archived,
        )
        while True:
            found = self._client.call(lambda client, asked=request: client.lake_list_instants(asked))  # type: ignore[misc]
            if len(found) < (request.limit or 0):
                yield from map(Instant.of, found)
                return
            # The last timestamp may go on in the next page, which begins with it.
            last = found[-1].timestamp
            whole = [each for each in found if each.timestamp != last]
            yield from map(Instant.of, whole)
            request = request.replace(upTo=last) if latest_first else request.replace(after=whole[-1].timestamp)

    def details(self, timestamp: str, action: str) -> Details:
        """All that is known of an instant. Those of a completed instant are cached; `instants` says whether it has
        been undone since."""
        table = self.reference
        key = None if table.id is None else (table.id, timestamp, action)
        if key is not None and (known := self._client._details.get(key)) is not None:
            return known
        found = self._client.call(lambda client: client.lake_get_instant(table, timestamp, action))
        details = Details(
            instant=Instant.of(found.instant),
            metadata=found.metadata or {},
            plan=[FileGroup(each.partition, each.fileGroup) for each in found.plan or ()],
            partitions=found.partitions or [],
        )
        if details.instant.position is not None and key is not None:
            self._client._details.put(key, details)
        return details

    def schema(self, version: int | None = None) -> Schema:
        """The table's schema now; with `version`, one that was read while the table had that version, if there is one,
        else the one now."""
        if version is not None and (known := self._cached_schema(version)) is not None:
            return known
        while True:
            before = self.position().table_version
            if (known := self._cached_schema(before)) is not None:
                return known
            table = self.describe()
            # The two calls around it are about this table, by its id. So no other one can have been described.
            if self.position().table_version == before:
                schema = _schema(table, before)
                if self._known.id is not None:
                    self._client._schemas.put((self._known.id, before), schema)
                return schema

    def _cached_schema(self, version: int) -> Schema | None:
        return None if self._known.id is None else self._client._schemas.get((self._known.id, version))

    def describe(self) -> Table:
        """The table as Hive's clients see it."""
        named = self.named
        request = GetTableRequest(dbName=named.database, tblName=named.table, catName=named.catalog)
        table: Table = self._client.call(lambda client: client.get_table_req(request)).table
        self._met(table.id)
        return table

    def partitions(self, *, ready: bool | None = None) -> list[str]:
        """The names of the partitions in Hive's view: of all, of those that are ready, or of those that aren't."""
        return [name for name, is_ready in self.readiness().items() if ready is None or is_ready == ready]

    def readiness(self) -> dict[str, bool]:
        """By name, whether each of the partitions in Hive's view is ready."""
        request = wire.ListPartitionsRequest(self.reference, includeUncommitted=True)
        found = self._client.call(lambda client: client.lake_list_partitions(request))
        return {each.name: bool(each.ready) for each in found.partitions}

    def route(self, names: Sequence[str]) -> list[Route]:
        """Where rows that belong to the partitions of these names go now, in the same order, for a writer of a stream.

        Raises InvalidOperationException if no partition takes them.
        """
        request = wire.RoutePartitionsRequest(table=self.reference, names=list(names))
        routes = self._client.call(lambda client: client.lake_route_partitions(request)).routes
        # Under the names of the request: the server spells them as Hive does.
        return [Route(name, each.target, each.late, each.action) for name, each in zip(names, routes, strict=True)]

    def positions(self, *, filter: str | None = None) -> dict[str, PartitionPositions]:
        """Of a keyed table, by partition: the position of its last change, and the one that Hive sees.

        `filter` is on partition keys, in Hive's grammar. A table without them has the partition ''.
        """
        if not self.schema().keys:
            table = self.reference
            whole = self._client.call(lambda client: client.lake_timeline_position(table))
            return {} if whole.changedAt is None else {"": PartitionPositions(whole.changedAt, whole.publishedAt)}
        found: dict[str, PartitionPositions] = {}
        request = wire.ListPartitionsRequest(self.reference, filter, includeUncommitted=True, limit=PAGE)
        while True:
            page = self._client.call(lambda client, asked=request: client.lake_list_partitions(asked)).partitions  # type: ignore[misc]
            for each in page:
                if each.changedAt is not None:
                    found[each.name] = PartitionPositions(each.changedAt, each.publishedAt, bool(each.waitsForPublish))
            if len(page) < PAGE:
                return found
            request = request.replace(after=page[-1].name)

    def location(self) -> str:
        """Where the table is: what paths of its files are relative to."""
        return self.snapshot(partitions=[], page=1).location

    def position_of(self, as_of: AsOf | None) -> int:
        """The position at which an instant was complete, or that of a time or a moment; None for now."""
        if isinstance(as_of, int):
            return as_of
        return self.snapshot(as_of, partitions=[], page=1).position

    def timestamp_of(self, as_of: AsOf) -> str:
        """The timestamp of the last instant that was complete then. Raises NoSuchObjectException if there was none."""
        if isinstance(as_of, str):
            return next((each.timestamp for each in self.savepoints() if each.name == as_of), as_of)
        position = self.position_of(as_of)
        for change in self.changes(position - 1, position) if position else ():
            return change.instant.timestamp
        raise NoSuchObjectException(f"{self.name} had no instant as of {as_of}")

    def snapshot(
        self,
        as_of: AsOf | None = None,
        *,
        partitions: Sequence[str] | None = None,
        filter: str | None = None,
        include_uncommitted: bool | None = None,
        read_optimized: bool = False,
        all_versions: bool = False,
        page: int | None = None,
    ) -> "Snapshot":
        """The files that the table is made of, the latest or `as_of` then.

        Of some `partitions`, by their names, or those that a `filter` in Hive's grammar holds for. `read_optimized`:
        base files only; `all_versions`: those too that others have superseded. Raises SnapshotGone for a snapshot that
        has lost files to a clean, TypeError if `as_of` is nothing of the kind.
        """
        request = wire.SnapshotRequest(
            table=self._known if as_of is None else self.reference,
            partitions=None if partitions is None else list(partitions),
            filter=filter,
            includeUncommitted=include_uncommitted,
            readOptimized=read_optimized or None,
            allVersions=all_versions or None,
            limit=page,
        )
        match as_of:
            case None:
                pass
            case str():
                request.asOf = as_of
            case Moment(int(number)):
                request.asOfMoment = number
            case datetime():
                request.asOfTime = to_millis(as_of)
            case int():
                request.asOfPosition = as_of
            case _:
                raise TypeError(f"{as_of!r} is no timestamp of an instant, position, datetime, or Moment of a number")
        return Snapshot(self._client, self, request)

    def changes(
        self,
        after: int,
        up_to: int | None = None,
        *,
        partitions: Sequence[str] | None = None,
        filter: str | None = None,
        include_uncommitted: bool | None = None,
        page: int | None = None,
    ) -> "ChangeFeed":
        """What was added and removed after a position up to another, or up to now.

        Iterating gives the files, by instant, in the order of completions; `to_arrow` the changed rows of a keyed
        table. Raises, when the first is read, ValueError if `after` is greater than the other, SnapshotGone if files of
        the snapshot at `after` have been cleaned.
        """
        request = wire.ReadChangesRequest(
            table=self.reference,
            after=after,
            upTo=up_to,
            partitions=None if partitions is None else list(partitions),
            filter=filter,
            includeUncommitted=include_uncommitted,
            limit=page,
        )
        return ChangeFeed(self._client, self, request)

    # --- rows of keyed tables ---------------------------------------------------------------------------------

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        as_of: AsOf | None = None,
        include_uncommitted: bool = False,
    ) -> "Scan":
        """The rows of a keyed table, the latest or `as_of` then; `to_arrow` reads them. Needs the extra `arrow`.

        `filter` is on partition keys, in Hive's grammar. Raises NotKeyed, SnapshotGone, InvalidOperationException for a
        position of an earlier table of the name (see `check_named`).
        """
        from lake.tables.keyed_tables import Scan

        self.check_named(as_of)
        return Scan(self, columns, filter, as_of, include_uncommitted)

    def lookup(
        self, keys: Sequence[Mapping[str, Any]], *, as_of: AsOf | None = None, include_uncommitted: bool = False
    ) -> "pa.Table":
        """The rows of some primary keys, each a mapping of the key's columns, the latest or `as_of` then.

        Reads the buckets of these keys alone.

        Keys without a row are left out. Raises NotKeyed, UnfitRows, and what `scan` does. Needs the extra `arrow`.
        """
        from lake.tables.keyed_tables import lookup

        self.check_named(as_of)
        return lookup(self, keys, as_of=as_of, include_uncommitted=include_uncommitted)

    def upsert(self, rows: "pa.Table", **options: Any) -> "Applied":
        """Inserts or updates rows of a keyed table; options and errors as in `keyed_writes.apply`."""
        return self._apply(rows, "upsert", options)

    def delete(self, rows: "pa.Table", **options: Any) -> "Applied":
        """Deletes the rows with these keys; options and errors as in `keyed_writes.apply`."""
        return self._apply(rows, "delete", options)

    def merge(self, rows: "pa.Table", **options: Any) -> "Applied":
        """Does with each row what its `_change_type` says; options and errors as in `keyed_writes.apply`."""
        return self._apply(rows, "merge", options)

    def update_columns(self, rows: "pa.Table", **options: Any) -> "Applied":
        """Sets columns of families of the rows with these keys; options and errors as in `keyed_writes.apply`."""
        return self._apply(rows, "update_columns", options)

    def _apply(self, rows: "pa.Table", operation: "KeyedOperation", options: Mapping[str, Any]) -> "Applied":
        from lake.tables.keyed_writes import apply

        return apply(self, rows, operation, **options)

    def plan_clean(
        self,
        *,
        keep_commits: int | None = None,
        keep_hours: int | None = None,
        keep_versions: int | None = None,
        limit: int | None = None,
    ) -> list[DataFile]:
        """The files that a clean may delete: no snapshot to be kept needs them, and no savepoint. At most `limit`.

        `keep_commits`, `keep_hours`, `keep_versions`: which snapshots, or slices of each file group, to keep."""
        request = wire.PlanCleanRequest(self.reference, keep_commits, keep_hours, keep_versions, limit)
        return [DataFile.of(each) for each in self._client.call(lambda client: client.lake_plan_clean(request))]

    def find_orphans(self, *, hours: int | None = None) -> Iterator[list[OrphanFile]]:
        """Orphan files in the directories of instants that are `hours` old at least (72; 24 and more), part by part.

        These belong to nothing that the metastore knows. Raises InvalidOperationException if something else lies in
        the table's directory, MetaException if the storage fails.
        """
        after = None
        while True:
            request = wire.FindOrphansRequest(self.reference, hours, after)
            found = self._client.call(operator.methodcaller("lake_find_orphans", request))
            files = [OrphanFile(each.path, each.size, from_millis(each.modifiedAt)) for each in found.files]
            for start in range(0, len(files), _ORPHANS_AT_ONCE):
                yield files[start : start + _ORPHANS_AT_ONCE]
            after = found.last
            if after is None:
                return

    def remove_orphans(self, paths: Sequence[str], *, hours: int | None = None) -> int:
        """Has orphan files deleted that `find_orphans` returned, those that still are. Returns how many."""
        request = wire.RemoveOrphansRequest(self.reference, list(paths), hours)
        removed: int = self._client.call(lambda client: client.lake_remove_orphans(request))
        return removed


class Writing:
    """An instant that is being written, from `LakeTable.writing` or `LakeTable.resuming`."""

    def __init__(self, table: LakeTable, begun: Begun) -> None:
        self.table = table
        self.instant = begun.instant
        self.directory = begun.directory
        #: The same relative to the table, as paths of files are.
        self.path = "".join(begun.directory.rpartition(_INSTANTS)[1:]).lstrip("/")
        self.completed: Completed | None = None

    def complete(self, completion: Completion) -> Completed:
        """Completes it, as `LakeTable.complete`."""
        done = self.table.complete(self.instant, completion)
        if not done.already_ready:
            self.completed = done
        return done


class ChangeFeed:
    """What changed after a position up to another, from `LakeTable.changes`; iterating reads page after page of it."""

    def __init__(self, client: LakeClient, table: LakeTable, request: wire.ReadChangesRequest) -> None:
        self._client = client
        self._table = table
        self._request = request

    def __iter__(self) -> Iterator[Changes]:
        request = self._request.replace(upTo=self._end())
        while (request.after or 0) < (request.upTo or 0):
            found = self._client.call(lambda client, asked=request: client.lake_read_changes(asked))  # type: ignore[misc]
            for each in found.changes:
                yield _changes(each)
            request = request.replace(after=found.position)

    def changelog(self) -> Changelog:
        """The changelogs of the range if all that changed rows have one, else its files as iterating gives them.

        Raises what iterating raises.
        """
        end = self._end()
        request = self._request.replace(upTo=end, changelog=True)
        first = self._client.call(lambda client: client.lake_read_changes(request))
        is_whole, location, version = bool(first.changelog), first.location or "", first.tableVersion or 0
        changes = [_changes(each) for each in first.changes]
        position = first.position
        while position < end:
            rest = request.replace(after=position, changelog=is_whole or None)
            found = self._client.call(lambda client, asked=rest: client.lake_read_changes(asked))  # type: ignore[misc]
            if bool(found.changelog) != is_whole:  # a clean has removed changelogs since the first page
                return self.changelog()
            changes += map(_changes, found.changes)
            position = found.position
        return Changelog(changes, is_whole, location, version)

    def to_arrow(self, *, of_each_commit: bool = False) -> "pa.Table":
        """The net changes of rows of a keyed table, or those of each commit, as `keyed_tables.changed_rows`.

        Needs the extra `arrow`.
        """
        from lake.tables.keyed_tables import changed_rows

        request = self._request
        return changed_rows(
            self._table,
            request.after or 0,
            self._end(),
            partitions=request.partitions,
            filter=request.filter,
            include_uncommitted=bool(request.includeUncommitted),
            of_each_commit=of_each_commit,
        )

    def _end(self) -> int:
        """The end of the range. Raises ValueError if it is before its begin."""
        first, last = self._request.after or 0, self._request.upTo
        last = self._table.position().position if last is None else last
        if first > last:
            raise ValueError(
                f"{self._table.name}: position {first} is not before position {last}, the end of the range"
            )
        return last


class Snapshot:
    """The files of a table at one position; iterating reads page after page of it.

    `location` is what their paths are relative to, `table_version` the table's version when it was read.
    """

    def __init__(self, client: LakeClient, table: LakeTable, request: wire.SnapshotRequest) -> None:
        self._client = client
        self._first = self._page(request)
        table._met(self._first.tableId)
        self._request = request.replace(table=table._known)
        self.position = self._first.position or 0
        self.location = self._first.location or ""
        self.table_version = self._first.tableVersion or 0

    def __iter__(self) -> Iterator[DataFile]:
        page = self._first
        while True:
            yield from map(DataFile.of, page.files or ())
            if page.nextPage is None:
                return
            page = self._page(self._request.replace(after=page.nextPage))

    def _page(self, request: wire.SnapshotRequest) -> wire.SnapshotResponse:
        response: wire.SnapshotResponse = self._client.call(lambda client: client.lake_get_snapshot(request))
        return response


_INSTANTS = "/.instants/"
"""Separates a table's directory from those of instants."""

_AT_ONE_TIMESTAMP = 20
"""No timestamp has more instants than there are actions."""


def _changes(given: wire.InstantChanges) -> Changes:
    return Changes(
        Instant.of(given.instant or wire.Instant()),
        [DataFile.of(file) for file in given.added or ()],
        [DataFile.of(file) for file in given.removed or ()],
        [DataFile.of(file) for file in given.changelog or ()],
    )


def _check_pause(heartbeat_seconds: float) -> None:
    if heartbeat_seconds <= 0:
        raise ValueError(f"heartbeats are sent every so many seconds, not every {heartbeat_seconds}")


def _key(instant: Instant) -> tuple[str, str]:
    return instant.timestamp, instant.action


def _schema(table: Table, version: int) -> Schema:
    storage = table.sd
    columns = [Column(each.name or "", each.type or "", each.comment) for each in (storage and storage.cols) or ()]
    keys = [Column(each.name or "", each.type or "", each.comment) for each in table.partitionKeys or ()]
    return Schema(version, columns, keys, table.parameters or {}, (storage and storage.inputFormat) or "")
