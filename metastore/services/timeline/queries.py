"""Read-only calls of timelines: list instants, their details, the position, rejected commits."""

from eventbus.log.sequencer import Sequencer
from lake.protocol.lake import (
    FileGroup,
    Instant,
    InstantDetails,
    ListInstantsRequest,
    RejectedCommit,
    TableReference,
    TimelinePosition,
)
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.keyed_tables import is_keyed
from metastore.services.table.service import TableService
from metastore.services.timeline.lookup import lake_table, no_instant
from metastore.services.timeline.thrift_objects import to_thrift, with_moments
from metastore.store import Database
from metastore.store.snapshot import data_files
from metastore.store.timeline import instants

MAX_INSTANTS = 10_000
"""Instants in one reply."""


class TimelineQueries:
    """Reads timelines. Each call is one transaction.

    All calls raise NoSuchObjectException without the table, and InvalidOperationException for a view.
    """

    def __init__(self, database: Database, tables: TableService, sequencer: Sequencer) -> None:
        self._database = database
        self._tables = tables
        self._sequencer = sequencer

    def listing(self, request: ListInstantsRequest) -> list[Instant]:
        """Instants, ordered by timestamp. Raises InvalidOperationException for an unknown action or state."""
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
            return [to_thrift(each) for each in with_moments(tx, found)]

    def details(self, table: TableReference | None, timestamp: str | None, action: str | None) -> InstantDetails:
        """An instant with its metadata, its plan, and the partitions that it changed.

        Raises NoSuchObjectException, InvalidOperationException.
        """
        self._sequencer.catch_up()
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, table)
            found = instants.find(tx, row.id, timestamp or "", rules.check_action(action))
            if found is None:
                raise no_instant(row, timestamp, action)
            touched: set[str] = set()
            if found.position is not None:
                for some in instants.find_changed_groups(tx, row.id, found.position - 1, found.position).values():
                    touched |= {each.partition for each in some}
                touched |= data_files.partitions_changed_at(tx, row.id, found.position)
            return InstantDetails(
                instant=to_thrift(with_moments(tx, [found])[0]),
                metadata=instants.metadata_of(tx, found.id),
                plan=[FileGroup(*each) for each in instants.plan_of(tx, found.id)],
                partitions=sorted(touched),
            )

    def position(self, table: TableReference | None) -> TimelinePosition:
        """The last position of a table's timeline, and the oldest one whose snapshot can be read."""
        self._sequencer.catch_up()
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, table)
            line = instants.timeline(tx, row.id)
            last = instants.last_completed(tx, row.id)
            if last is None:
                return TimelinePosition(
                    line.position, None, line.oldest_readable, tableVersion=row.version, tableId=row.id
                )
            moment = with_moments(tx, [last])[0].moment
            found = TimelinePosition(
                line.position, last.timestamp, line.oldest_readable, moment, row.version, tableId=row.id
            )
            if is_keyed(row):
                whole = data_files.positions(tx, row.id, [data_files.WHOLE_TABLE]).get(data_files.WHOLE_TABLE)
                if whole is not None:
                    found = found.replace(changedAt=whole.changed_at, publishedAt=whole.published_at)
            return found

    def rejected_commits(self, table: TableReference | None) -> list[RejectedCommit]:
        """The latest completions that were rejected because of conflicts, the newest last."""
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, table)
            return [
                RejectedCommit(
                    each.timestamp, each.action, each.requested_at, each.rejected_at, list(each.winners), each.reason
                )
                for each in instants.latest_rejected_commits(tx, row.id)
            ]
