"""The timelines of lake tables: what begins, goes on and is given up. Completing is `instant_completion`'s."""

from collections.abc import Sequence

import structlog

from eventbus import log as event_log
from eventbus.sequencer import Sequencer
from metastore.clock import now_ms
from metastore.services import instant_files, objects
from metastore.services import instant_rules as rules
from metastore.services import names as given
from metastore.services.instant_directories import base_of, own_directory
from metastore.services.instant_files import InstantFiles
from metastore.services.lake_partitions import lake_partition
from metastore.services.tables import TableService
from metastore.services.timeline_properties import check_timeline_properties
from metastore.store import Database, data_files, instants, tables
from metastore.store.database import Transaction
from metastore.store.databases import Hold
from metastore.store.instants import InstantRow, Timeline
from metastore.store.tables import TableRow
from metastore.warehouse import Warehouse, WarehouseError
from metastore.wire.hive import InvalidOperationException, NoSuchObjectException
from metastore.wire.lake import (
    BeginInstantRequest,
    FileGroup,
    Instant,
    InstantDetails,
    ListInstantsRequest,
    Refusal,
    TableReference,
    TimelinePosition,
)

MAX_INSTANTS = 10_000
"""In one reply."""

MAX_PLAN = 100_000
"""File groups that a table service may name."""

LEFTOVERS_AT_ONCE = 200
"""Files that are deleted while their records are held."""

TOUCHES_AT_ONCE = 10_000
"""Records of what instants changed that are removed in one transaction."""

log = structlog.get_logger(__name__)


class TimelineService:
    """Instants of lake tables. Every call is one transaction."""

    def __init__(
        self,
        database: Database,
        warehouse: Warehouse,
        tables: TableService,
        sequencer: Sequencer,
        files: InstantFiles,
        *,
        heartbeat_seconds: float,
        keep_active: int,
    ) -> None:
        """An instant that sent a heartbeat dies when none has come for `heartbeat_seconds`; each table's latest
        `keep_active` completed instants are active, older ones are archived.
        """
        self._database = database
        self._warehouse = warehouse
        self._tables = tables
        self._sequencer = sequencer
        self._files = files
        self._heartbeat_seconds = heartbeat_seconds
        self._keep_active = keep_active

    # --- writing ----------------------------------------------------------------------------------------------

    def begin(self, request: BeginInstantRequest) -> Instant:
        """Puts a new instant on a table's timeline. The same again, with a timestamp of the writer's, is a success.

        Raises NoSuchObjectException, InvalidOperationException.
        """
        action = rules.check_action(request.action)
        state = rules.check_state(request.state or rules.REQUESTED)
        if state == rules.COMPLETED:
            raise InvalidOperationException("an instant begins as requested or inflight; complete it afterwards")
        plan = request.plan or []
        if len(plan) > MAX_PLAN:
            raise InvalidOperationException(f"a plan names at most {MAX_PLAN} file groups, not {len(plan)}")
        own = None if request.timestamp is None else rules.check_timestamp(request.timestamp)
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, request.table)
            if action not in rules.UNDOING:
                check_timeline_properties(row.parameters)
            self._bury(tx, row, instants.dead(tx, self._heartbeat_seconds, row.id))
            groups = [(lake_partition(row, each.partition).name, _group(each.fileGroup)) for each in plan]
            # The table isn't held: who completes an instant may hold it for long.
            line = instants.hold_timeline(tx, row.id)
            if line is None:
                row, line = self._started(tx, request.table)
            now = now_ms()
            if own is not None and (known := instants.find(tx, row.id, own, action)) is not None:
                return _in_directory(row, self._begun_again(tx, known, state, request.metadata or b""))
            if own is not None:
                self._files.clear(tx, row, own, action)
            timestamp = own or rules.next_timestamp(line.last_timestamp, now)
            read = self._read_position(tx, row, line, action, timestamp, request)
            found = instants.add(tx, row.id, timestamp, action, state, now, read)
            if request.metadata is not None:
                instants.put_metadata(tx, found.id, state, request.metadata)
            instants.put_plan(tx, found.id, groups)
            if request.heartbeat:
                instants.beat(tx, found.id)
            if rules.is_servers(timestamp) and timestamp > line.last_timestamp:
                instants.put_timeline(tx, row.id, line._replace(last_timestamp=timestamp))
            return _in_directory(row, told(found))

    def transition(
        self,
        table: TableReference | None,
        timestamp: str | None,
        action: str | None,
        to: str | None,
        content: bytes | None,
    ) -> Instant:
        """Brings an instant into another state; one that is in it already, with the same metadata, stays as it is.

        Raises NoSuchObjectException, InvalidOperationException for a way that there isn't.
        """
        state = rules.check_state(to)
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, table)
            found = held_instant(tx, row, timestamp, action)
            if found.state == state and state != rules.COMPLETED:
                return self._begun_again(tx, found, state, content)
            if not rules.may_become(found.action, found.state, state):
                advice = ": complete it by lake_complete_instants" if state == rules.COMPLETED else ""
                raise InvalidOperationException(f"{spoken(found)} can't become {state}{advice}")
            now = now_ms()
            instants.change_state(tx, found.id, state, now)
            if content is not None:
                instants.put_metadata(tx, found.id, state, content)
            return told(found._replace(state=state, changed_at=now))

    def heartbeat(self, table: TableReference | None, timestamp: str | None, action: str | None) -> None:
        """Says that an instant's writer lives; from then on it must go on saying so.

        Raises NoSuchObjectException, InvalidOperationException for an instant that is completed.
        """
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, table)
            found = held_instant(tx, row, timestamp, action)
            if found.state == rules.COMPLETED:
                raise InvalidOperationException(f"{spoken(found)}: nobody waits for its writer")
            instants.beat(tx, found.id)

    def delete(self, table: TableReference | None, timestamp: str | None, action: str | None) -> None:
        """Forgets an instant that isn't completed, with the files that its refused completion named, or one that
        changed no file. One that isn't there is forgotten already.

        Raises NoSuchObjectException without the table, InvalidOperationException for what a rollback must undo.
        """
        rules.check_action(action)
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, table)
            found = instants.find(tx, row.id, timestamp or "", action or "", lock=True)
            if found is None:
                return
            if found.state == rules.COMPLETED and found.action not in rules.DELETABLE:
                raise InvalidOperationException(f"{spoken(found)}: undo it by a rollback or a restore")
            if found.state == rules.COMPLETED:
                instants.remove(tx, [found.id])  # its place among the completions stays taken
            else:
                give_up(tx, row, [found])
        self.delete_leftovers()

    # --- reading ----------------------------------------------------------------------------------------------

    def listing(self, request: ListInstantsRequest) -> list[Instant]:
        """Instants in the order of their timestamps. Raises NoSuchObjectException, InvalidOperationException."""
        actions = None if request.actions is None else [rules.check_action(each) for each in request.actions]
        states = None if request.states is None else [rules.check_state(each) for each in request.states]
        self._sequencer.catch_up()
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, request.table)
            found = instants.listing(
                tx,
                row.id,
                actions=actions,
                states=states,
                after=request.after,
                up_to=request.upTo,
                limit=min(MAX_INSTANTS, max(0, request.limit)) if request.limit is not None else MAX_INSTANTS,
                latest_first=bool(request.latestFirst),
                all_of_them=bool(request.includeArchived),
            )
            return [told(each) for each in placed(tx, found)]

    def details(self, table: TableReference | None, timestamp: str | None, action: str | None) -> InstantDetails:
        """All that is known of an instant. Raises NoSuchObjectException, InvalidOperationException."""
        self._sequencer.catch_up()
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, table)
            found = instants.find(tx, row.id, timestamp or "", rules.check_action(action))
            if found is None:
                raise no_instant(row, timestamp, action)
            touched: set[str] = set()
            if found.position is not None:
                for some in instants.touches(tx, row.id, found.position - 1, found.position).values():
                    touched |= {each.partition for each in some}
                touched |= data_files.partitions_changed_at(tx, row.id, found.position)
            return InstantDetails(
                instant=told(placed(tx, [found])[0]),
                metadata=instants.metadata_of(tx, found.id),
                plan=[FileGroup(*each) for each in instants.plan_of(tx, found.id)],
                partitions=sorted(touched),
            )

    def position(self, table: TableReference | None) -> TimelinePosition:
        """How far a table's timeline has come. Raises NoSuchObjectException, InvalidOperationException."""
        self._sequencer.catch_up()
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, table)
            line = instants.timeline(tx, row.id)
            last = instants.last_completed(tx, row.id)
            if last is None:
                return TimelinePosition(line.position, None, line.oldest_readable, tableVersion=row.version)
            moment = placed(tx, [last])[0].moment
            return TimelinePosition(line.position, last.timestamp, line.oldest_readable, moment, row.version)

    def refusals(self, table: TableReference | None) -> list[Refusal]:
        """The latest completions that lost to others, in their order. Raises NoSuchObjectException,
        InvalidOperationException.
        """
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, table)
            return [
                Refusal(
                    each.timestamp, each.action, each.requested_at, each.refused_at, list(each.winners), each.reason
                )
                for each in instants.latest_refusals(tx, row.id)
            ]

    # --- housekeeping -----------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Rolls back instants whose writers died, archives old ones, deletes what is left over."""
        with self._database.write() as tx:
            found = instants.dead(tx, self._heartbeat_seconds)
            for table_id in sorted({each.table_id for each in found}):
                row = tables.find_by_id(tx, table_id)
                if row is not None:
                    self._bury(tx, row, [each for each in found if each.table_id == table_id])
        with self._database.read() as tx:
            many = instants.with_many(tx, self._keep_active)
        for table_id in many:
            with self._database.write() as tx:
                instants.archive(tx, table_id, self._keep_active)
            self._forget_touches(table_id)
        self.delete_leftovers()

    def _forget_touches(self, table_id: int) -> None:
        """Forgets what archived instants changed, where nobody can be in their way any more."""
        with self._database.write() as tx:
            line = instants.hold_timeline(tx, table_id)
            if line is None:
                return
            line = line._replace(forgotten=max(line.forgotten, instants.needless(tx, table_id)))
            instants.put_timeline(tx, table_id, line)
        removed = TOUCHES_AT_ONCE
        while removed == TOUCHES_AT_ONCE:
            with self._database.write() as tx:
                removed = instants.forget_touches(tx, table_id, line.forgotten, TOUCHES_AT_ONCE)

    def place_moments(self, tx: Transaction) -> None:
        """Keeps the numbers of the events of completions, before the events are removed."""
        while unplaced := instants.unplaced(tx):
            numbers = event_log.numbers_of(tx, list(unplaced.values()))
            moments = {instant: numbers[event] for instant, event in unplaced.items() if event in numbers}
            instants.place(tx, moments)
            if not moments:
                return

    def delete_leftovers(self) -> None:
        """Deletes files that nothing refers to any more, unless somebody is at it."""
        deleted = LEFTOVERS_AT_ONCE
        while deleted == LEFTOVERS_AT_ONCE:
            with self._database.write() as tx:
                found = data_files.leftovers(tx, LEFTOVERS_AT_ONCE)
                done = [each.id for each in found if self._delete_leftover(tx, each)]
                data_files.forget_leftovers(tx, done)
                deleted = len(done)

    def _delete_leftover(self, tx: Transaction, file: data_files.Leftover) -> bool:
        """Whether the record of a file may be forgotten."""
        row = tables.find_by_id(tx, file.table_id)
        if row is None or row.location is None or data_files.known_paths(tx, row.id, [file.path]):
            return True
        try:
            if file.path.endswith("/"):
                return self._files.delete(tx, row, file.path)
            self._warehouse.delete_file(f"{base_of(row.location)}/{file.path}")
        except WarehouseError as error:
            log.warning("a file that is left over can't be deleted", table=str(row.name), error=str(error))
            return False
        return True

    def _bury(self, tx: Transaction, row: TableRow, dead: Sequence[InstantRow]) -> None:
        """Forgets instants whose writers died."""
        for each in dead:
            log.info("an instant's writer is silent, it is given up", table=str(row.name), instant=spoken(each))
        give_up(tx, row, dead)

    @staticmethod
    def _begun_again(tx: Transaction, known: InstantRow, state: str, content: bytes | None) -> Instant:
        """What is answered to a repeated call. Raises InvalidOperationException if it isn't the same."""
        if known.state != state:
            raise InvalidOperationException(f"{spoken(known)} already")
        if content and instants.metadata_of(tx, known.id).get(state, b"") != content:
            raise InvalidOperationException(f"{spoken(known)} already, with other metadata")
        return told(known)

    def _started(self, tx: Transaction, table: TableReference | None) -> tuple[TableRow, Timeline]:
        """A table that had no timeline when it was looked at, with the timeline that it has now, held."""
        row = held_lake_table(self._tables, tx, table)
        instants.start_timeline(tx, row.id)
        line = instants.hold_timeline(tx, row.id)
        assert line is not None, "nobody drops a table that is held"
        return row, line

    @staticmethod
    def _read_position(
        tx: Transaction, row: TableRow, line: Timeline, action: str, timestamp: str, request: BeginInstantRequest
    ) -> int:
        """What the writer has read, and for a savepoint what it protects."""
        if action == rules.SAVEPOINT:
            return saved_position(tx, row, line, timestamp)
        if request.readPosition is None:
            return line.position
        if not 0 <= request.readPosition <= line.position:
            raise InvalidOperationException(
                f"{row.name} has no position {request.readPosition}: the last one is {line.position}"
            )
        if request.readPosition < line.forgotten:
            raise InvalidOperationException(
                f"what was completed since position {request.readPosition} of {row.name} is not known any more: read"
                f" again, at position {line.forgotten} or later"
            )
        return request.readPosition


def lake_table(tables: TableService, tx: Transaction, table: TableReference | None) -> TableRow:
    """A table that may have a timeline. Raises NoSuchObjectException, InvalidOperationException for a view."""
    named = table or TableReference()
    return _with_location(tables.row(tx, named.database, named.table, named.catalog))


def written_lake_table(tables: TableService, tx: Transaction, table: TableReference | None) -> TableRow:
    """The same for a writer who doesn't keep others from changing the table: not by a name that only readers use."""
    named = table or TableReference()
    given.table_name(named.database, named.table, named.catalog)
    return lake_table(tables, tx, table)


def held_lake_table(
    tables: TableService, tx: Transaction, table: TableReference | None, hold: Hold = Hold.SHARED
) -> TableRow:
    """The same for a writer: it stays until the transaction ends."""
    named = table or TableReference()
    return _with_location(tables.row(tx, named.database, named.table, named.catalog, hold))


def _with_location(row: TableRow) -> TableRow:
    if row.location is None or row.type == objects.VIEW:
        raise InvalidOperationException(f"{row.name} is a view: it has no timeline")
    return row


def saved_position(tx: Transaction, row: TableRow, line: Timeline, timestamp: str) -> int:
    """What a savepoint of that timestamp protects. Raises InvalidOperationException if there is nothing, or no more."""
    saved = instants.completed_at(tx, row.id, timestamp)
    if saved is None or saved.undone_by is not None:
        raise InvalidOperationException(
            f"a savepoint bears the timestamp of a completed instant; {row.name} has none at {timestamp}"
        )
    position = saved.position or 0
    if position < line.oldest_readable:
        raise InvalidOperationException(f"files of the snapshot at {timestamp} have been cleaned already")
    return position


def held_instant(tx: Transaction, row: TableRow, timestamp: str | None, action: str | None) -> InstantRow:
    """An instant that nobody else changes until the transaction ends. Raises NoSuchObjectException."""
    found = instants.find(tx, row.id, timestamp or "", rules.check_action(action), lock=True)
    if found is None:
        raise no_instant(row, timestamp, action)
    return found


def no_instant(row: TableRow, timestamp: str | None, action: str | None) -> NoSuchObjectException:
    return NoSuchObjectException(
        f"{row.name} has no instant {timestamp} {action}; perhaps its writer was silent too long"
    )


def give_up(tx: Transaction, row: TableRow, some: Sequence[InstantRow]) -> None:
    """Forgets instants that aren't completed; their files go, too."""
    for each in some:
        instant_files.leave_over_directory(tx, row, each)
    if some:
        instants.remove(tx, [each.id for each in some])


def _in_directory(row: TableRow, begun: Instant) -> Instant:
    """What who begins an instant is told: where to put its files, too."""
    own = own_directory(begun.timestamp or "", begun.begunAs or begun.action or "")
    return begun.replace(directory=f"{base_of(row.location or '')}/{own}")


def spoken(instant: InstantRow) -> str:
    """An instant for people."""
    return f"the instant {instant.timestamp} {instant.action} is {instant.state}"


def told(instant: InstantRow) -> Instant:
    """An instant for clients."""
    return Instant(
        timestamp=instant.timestamp,
        action=instant.action,
        state=instant.state,
        requestedAt=instant.requested_at,
        changedAt=instant.changed_at,
        heartbeatAt=instant.heartbeat_at,
        completionTime=instant.completion_time,
        position=instant.position,
        moment=instant.moment,
        begunAs=instant.begun_as if instant.begun_as != instant.action else None,
        readPosition=instant.read_position,
        archived=instant.archived or None,
        conflict=instant.conflict,
        undoneBy=instant.undone_by,
    )


def placed(tx: Transaction, some: Sequence[InstantRow]) -> list[InstantRow]:
    """Instants with their moments, also where those have not been kept with them yet."""
    missing = [each.event_id for each in some if each.moment is None and each.event_id is not None]
    numbers = event_log.numbers_of(tx, missing) if missing else {}
    return [each if each.moment else each._replace(moment=numbers.get(each.event_id or 0)) for each in some]


def _group(name: str | None) -> str:
    if not name:
        raise InvalidOperationException("a file group needs a name")
    return name
