"""The calls of Hudi's metaserver for timelines. An instant's changes are decoded from the metadata that completes it.

Hudi's client is written for timelines in files, one per state of an instant. It takes every response as a success, so
failures are raised as exceptions. After any error it repeats the call, up to three times.
"""

from lake.protocol.hive import InvalidOperationException
from lake.protocol.hudi import HoodieInstantChangeResult, TAction, THoodieInstant, TState
from lake.protocol.lake import BeginInstantRequest, CompleteInstantRequest, TableReference
from metastore.services.hudi import metadata_reader
from metastore.services.instant_rules import states as rules
from metastore.services.table.service import TableService
from metastore.services.timeline.commit import InstantCompletion
from metastore.services.timeline.lookup import give_back, held_lake_table, lake_table
from metastore.services.timeline.queries import MAX_INSTANTS
from metastore.services.timeline.service import TimelineService
from metastore.services.timeline.thrift_objects import describe_instant
from metastore.store import Database
from metastore.store.engine.clock import now_ms
from metastore.store.timeline import instants
from metastore.store.timeline.instants import InstantRow

_ACTIONS = {
    TAction.COMMIT: rules.COMMIT,
    TAction.DELTACOMMIT: rules.DELTACOMMIT,
    TAction.CLEAN: rules.CLEAN,
    TAction.ROLLBACK: rules.ROLLBACK,
    TAction.SAVEPOINT: rules.SAVEPOINT,
    TAction.REPLACECOMMIT: rules.REPLACECOMMIT,
    TAction.COMPACTION: rules.COMPACTION,
    TAction.RESTORE: rules.RESTORE,
}
_STATES = {
    TState.REQUESTED: rules.REQUESTED,
    TState.INFLIGHT: rules.INFLIGHT,
    TState.COMPLETED: rules.COMPLETED,
}
# Actions without a name in the protocol are sent as the action that they complete as. Indexing and publish
# instants are left out.
_HUDI_ACTIONS = {action: name for name, action in _ACTIONS.items()} | {
    rules.LOGCOMPACTION: TAction.DELTACOMMIT,
    rules.CLUSTERING: TAction.REPLACECOMMIT,
}
_HUDI_STATES = {state: name for name, state in _STATES.items()}

_RUNNER = "hudi"
"""The runner of all plans of Hudi's: its client repeats calls, and doesn't say who it is."""


class HudiTimeline:
    """Hudi's calls for the timeline of a table."""

    def __init__(
        self, database: Database, tables: TableService, timeline: TimelineService, completion: InstantCompletion
    ) -> None:
        self._database = database
        self._tables = tables
        self._timeline = timeline
        self._completion = completion

    # --- reading ----------------------------------------------------------------------------------------------

    def instants(self, database: str | None, table: str | None, count: int) -> list[THoodieInstant]:
        """The instants that a reader of Hudi's needs, in the order of their timestamps.

        Those are the ones that aren't completed, and the completed ones since the earliest of: the last but `count`
        write, an instant that isn't completed, one whose replaced files have not been cleaned. To Hudi, what isn't
        listed and is older than the list is committed, and nothing of it is replaced. Raises NoSuchObjectException.
        """
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, TableReference(database=database, table=table))
            found = instants.active(tx, row.id, writes=count, limit=MAX_INSTANTS)
        return [_to_thrift(each) for each in found if each.action in _HUDI_ACTIONS]

    def metadata(self, database: str | None, table: str | None, instant: THoodieInstant) -> bytes:
        """What was given with a state of an instant; empty if nothing was. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, TableReference(database=database, table=table))
            found = instants.find(tx, row.id, instant.timestamp or "", _action(instant))
            return b"" if found is None else instants.metadata_of(tx, found.id).get(_state(instant), b"")

    def changes_columns(self, database: str | None, table: str | None, instant: THoodieInstant, content: bytes) -> bool:
        """Whether an instant that is completed with this metadata changes the columns that a table has.

        The first columns of a table without any are no change. Raises NoSuchObjectException,
        InvalidOperationException for metadata that can't be read.
        """
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, TableReference(database=database, table=table))
            found = instants.find(tx, row.id, instant.timestamp or "", _action(instant))
        return found is not None and metadata_reader.changes_columns(row, found, content)

    # --- writing ----------------------------------------------------------------------------------------------

    def new_timestamp(self, database: str | None, table: str | None) -> str:
        """A timestamp after every other that the server gave for the table. Raises NoSuchObjectException."""
        with self._database.write() as tx:
            row = held_lake_table(self._tables, tx, TableReference(database=database, table=table))
            instants.start_timeline(tx, row.id)
            line = instants.hold_timeline(tx, row.id)
            assert line is not None, "nobody drops a table that is held"
            timestamp = rules.next_timestamp(line.last_timestamp, now_ms(tx))
            instants.put_timeline(tx, row.id, line._replace(last_timestamp=timestamp))
            return timestamp

    def begin(
        self, database: str | None, table: str | None, instant: THoodieInstant, content: bytes | None
    ) -> HoodieInstantChangeResult:
        """Puts an instant on the timeline under the client's timestamp; the same again is a success.

        Raises NoSuchObjectException, InvalidOperationException.
        """
        reference, action = TableReference(database=database, table=table), _action(instant)
        with self._database.read() as tx:
            plan = metadata_reader.plan_of(lake_table(self._tables, tx, reference), action, content or None)
        self._timeline.begin(
            BeginInstantRequest(
                table=reference,
                action=action,
                timestamp=rules.check_timestamp(instant.timestamp),
                state=_state(instant),
                metadata=content or None,
                plan=plan or None,
            )
        )
        return _done(instant)

    def transition(
        self,
        database: str | None,
        table: str | None,
        old: THoodieInstant,
        new: THoodieInstant,
        content: bytes | None,
    ) -> HoodieInstantChangeResult:
        """Brings an instant into another state, by which it may get another action; the same again is a success.

        Raises NoSuchObjectException, InvalidOperationException for a way that there isn't and for metadata that can't
        be read, InstantConflict if another writer was quicker.
        """
        if old.timestamp != new.timestamp:
            raise InvalidOperationException(f"{old.timestamp} can't become {new.timestamp}: an instant keeps its time")
        reference = TableReference(database=database, table=table)
        state, action = _state(new), _action(old)
        if state != rules.COMPLETED:
            rules.completed_action(action, _action(new))
            self._timeline.transition(reference, old.timestamp, action, state, content or None, runner=_RUNNER)
        else:
            request = CompleteInstantRequest(
                table=reference,
                timestamp=old.timestamp,
                action=action,
                newAction=_action(new),
                metadata=content or b"",
            )
            self._completion.complete([request], decode=metadata_reader.decode)
        return _done(new)

    def delete(self, database: str | None, table: str | None, instant: THoodieInstant) -> HoodieInstantChangeResult:
        """Takes a state of an instant back, as if its file were deleted; one that isn't there is gone already.

        Without its state inflight it is requested again; without requested, or completed, it is no more. Raises
        NoSuchObjectException without the table, InvalidOperationException for what only a rollback undoes, and for an
        instant that has gone on meanwhile.
        """
        reference = TableReference(database=database, table=table)
        action, state = _action(instant), _state(instant)
        with self._database.write() as tx:
            row = lake_table(self._tables, tx, reference)
            found = instants.find(tx, row.id, instant.timestamp or "", action, lock=True)
            if found is None or rules.STATES.index(found.state) < rules.STATES.index(state):
                return _done(instant)
            if found.state != state:
                raise InvalidOperationException(f"{describe_instant(found)}: it can't be deleted as {state}")
            if state == rules.INFLIGHT:
                give_back(tx, row, found)
                return _done(instant)
        self._timeline.delete(reference, instant.timestamp, action)
        return _done(instant)


def _action(instant: THoodieInstant) -> str:
    if instant.action not in _ACTIONS:
        raise InvalidOperationException(f"{instant.action} is no action of an instant")
    return _ACTIONS[TAction(instant.action)]


def _state(instant: THoodieInstant) -> str:
    if instant.state not in _STATES:
        raise InvalidOperationException(f"{instant.state} is no state of an instant that a timeline has")
    return _STATES[TState(instant.state)]


def _to_thrift(instant: InstantRow) -> THoodieInstant:
    action = instant.action
    if instant.state == rules.COMPLETED:
        action = rules.COMPLETES_AS.get(action, action)
    return THoodieInstant(instant.timestamp, _HUDI_ACTIONS[action], _HUDI_STATES[instant.state])


def _done(instant: THoodieInstant) -> HoodieInstantChangeResult:
    return HoodieInstantChangeResult(success=True, instant=instant)
