"""The event log: append events in the transaction of their change, number them after its commit, read and trim them.

Transactions commit in another order than they begin. If a transaction took a number itself, a reader could pass an
event that commits later, or writers would queue for numbers. So an event has no number at first. After the commit a
sequencer gives numbers to all new events, under a lock. Every reader runs the sequencer first, and therefore sees its
own changes. If one change began after another was committed, its event has the greater id, and so the greater number.
"""

from collections.abc import Generator, Sequence
from datetime import timedelta
from itertools import takewhile
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from eventbus.log import group_positions, payloads
from eventbus.log.schema import event_groups, event_log, events
from lake.protocol.events.types import Event, EventType, NewEvent, Origin
from metastore.postgres.prepared import Call, Prepared, put_off

CHANNEL = "metastore_events"
"""The channel for LISTEN. The sequencer notifies it after it has given numbers; the payload is the last number.

An empty payload means: the members or the shards of a group have changed.
"""

_COLUMNS = (
    events.c.number,
    events.c.type,
    events.c.time,
    events.c.user_name,
    events.c.connection,
    events.c.catalog,
    events.c.database_name,
    events.c.table_name,
    events.c.notifications,
    events.c.first_notification,
    events.c.payload,
    events.c.mark,
)


_last_notification = events.c.first_notification + events.c.notifications - 1

_FEW = 20
"""Events that are fetched together: a single event may hold a hundred thousand partitions."""

FOREVER = timedelta(days=36_500)
"""A `silence` that never ends: no group expires."""

_RECORDED_AT = func.coalesce(events.c.recorded_at, func.to_timestamp(events.c.time / 1000.0))
"""When an event was recorded, by the database's clock: servers' clocks must not decide what is trimmed."""

_TRIMMING = 0x6D657461
"""The id of the advisory lock for trimming."""


class Trimmed(Exception):
    """The requested events were trimmed. `oldest`: the number of the first event that is left."""

    def __init__(self, after: int, oldest: int) -> None:
        super().__init__(
            f"the events after {after} are no longer kept: the oldest is {oldest}."
            f" Read the current state of the tables, then go on after {oldest - 1}"
        )
        self.oldest = oldest


class Positions(NamedTuple):
    """The last number given, and the number of the last trimmed event; for events and for Hive's notifications."""

    last: int
    last_notification: int
    trimmed: int
    trimmed_notification: int


_APPENDED = insert(events).returning(events.c.id, sort_by_parameter_order=True)
_APPEND_ONE = Prepared(
    insert(events).returning(events.c.id),
    ["type", "catalog", "database_name", "table_name", "notifications", "time", "user_name", "connection", "payload"],
)


def append(tx: Connection, new: Sequence[NewEvent]) -> list[int]:
    """Appends events in this order; they count once `tx` commits. Returns their ids, which are not their numbers."""
    if len(new) == 1:
        _begin(tx)
        return [_APPEND_ONE.scalar(tx, _row(new[0]))]
    return list(tx.scalars(_APPENDED, [_row(event) for event in new])) if new else []


def to_append(event: NewEvent) -> Call:
    """What appends an event, with other statements of a transaction that has begun. `lastval()` is its id."""
    return Call(_APPEND_ONE, _row(event))


def append_with_commit(tx: Connection, event: NewEvent) -> None:
    """Appends an event in one message with what comes next, which is COMMIT at best, as `put_off` does."""
    _begin(tx)
    put_off(tx, [_APPEND_ONE], _row(event))


def _begin(tx: Connection) -> None:
    """SQLAlchemy doesn't see what its driver executes, and would forget to commit that."""
    if not tx.in_transaction():
        tx.begin()


def _row(event: NewEvent) -> dict[str, Any]:
    return {
        "type": event.type,
        "catalog": event.catalog,
        "database_name": event.database,
        "table_name": event.table,
        "notifications": event.notifications,
        "time": event.time,
        "user_name": event.origin.user,
        "connection": event.origin.connection,
        "payload": payloads.pack(event.payload),
    }


def number(tx: Connection) -> None:
    """Gives numbers to all committed events without one, and notifies CHANNEL. Without such events it only reads.

    A concurrent call waits, and then sees the numbers that the first has given.
    """
    tx.exec_driver_sql("SELECT number_events()").close()


_POSITIONS = (
    event_log.c.last_number,
    event_log.c.last_notification,
    event_log.c.trimmed_number,
    event_log.c.trimmed_notification,
)


def positions(tx: Connection) -> Positions:
    """The log's current positions."""
    return Positions(*tx.execute(select(*_POSITIONS)).one())


def read(tx: Connection, after: int, limit: int) -> list[Event]:
    """The next events after a number, at most `limit`. Raises Trimmed if some of them are gone."""
    trimmed = positions(tx).trimmed
    if after < trimmed:
        raise Trimmed(after, trimmed + 1)
    query = select(*_COLUMNS).where(events.c.number > after).order_by(events.c.number)
    return [_event(row) for row in tx.execute(query.limit(limit))]


def matching(tx: Connection, condition: ColumnElement[bool]) -> list[Event]:
    """The events that satisfy a condition, ordered by number."""
    return [_event(row) for row in tx.execute(select(*_COLUMNS).where(condition).order_by(events.c.number))]


def read_notifications(
    tx: Connection,
    after: int,
    *,
    skip: Sequence[EventType] = (),
    catalog: str | None = None,
    database: str | None = None,
    tables: Sequence[str] = (),
) -> Generator[Event, None, None]:
    """The events behind Hive's notifications with numbers greater than `after`, in order.

    `skip`: types to leave out. `catalog`, `database`, `tables`: restrict the events to these names. Events are fetched
    a few at a time while the iterator is read.
    """
    query = select(*_COLUMNS).where(*_after(after)).order_by(events.c.first_notification)
    if skip:
        query = query.where(events.c.type.not_in([type.value for type in skip]))
    if catalog is not None:
        query = query.where(events.c.catalog == catalog)
    if database is not None:
        query = query.where(events.c.database_name == database)
    if tables:
        query = query.where(events.c.table_name.in_(tables))
    with tx.execution_options(stream_results=True, yield_per=_FEW).execute(query) as rows:
        yield from map(_event, rows)


def _after(number: int) -> list[ColumnElement[bool]]:
    """Selects events with notifications after a number. The first may also have notifications up to that number."""
    earlier = select(func.max(events.c.first_notification)).where(
        events.c.notifications > 0, events.c.first_notification <= number
    )
    return [
        events.c.notifications > 0,
        _last_notification > number,
        # This lets Postgres use the index.
        events.c.first_notification >= func.coalesce(earlier.scalar_subquery(), 0),
    ]


def count_notifications(
    tx: Connection, after: int, upto: int | None, *, catalog: str, database: str | None, tables: Sequence[str] = ()
) -> int:
    """Counts Hive's notifications with numbers greater than `after`, up to `upto`, or to the last if that is None.

    `catalog`, `database` and `tables` restrict them to these names.
    """
    last = _last_notification if upto is None else func.least(_last_notification, upto)
    within = func.greatest(last - func.greatest(events.c.first_notification - 1, after), 0)
    query = select(func.coalesce(func.sum(within), 0)).where(*_after(after), events.c.catalog == catalog)
    if upto is not None:
        query = query.where(events.c.first_notification <= upto)
    if database is not None:
        query = query.where(events.c.database_name == database)
    if tables:
        query = query.where(events.c.table_name.in_(tables))
    return int(tx.execute(query).scalar_one())


def numbers_of(tx: Connection, ids: Sequence[int]) -> dict[int, int]:
    """The numbers of events, by the ids from `append`. Unnumbered and trimmed events are left out."""
    query = select(events.c.id, events.c.number).where(events.c.id.in_(ids), events.c.number.is_not(None))
    return {row[0]: row[1] for row in tx.execute(query)}


def notifications_of(tx: Connection, ids: Sequence[int]) -> list[int]:
    """The numbers of Hive's notifications for events, given by the ids from `append`. The events must be numbered."""
    query = select(events.c.first_notification, events.c.notifications).where(events.c.id.in_(ids))
    found = tx.execute(query.order_by(events.c.first_notification, events.c.id))
    return [number for first, count in found for number in range(first, first + count)]


def trim(tx: Connection, *, older_than: timedelta, keep: int, limit: int, silence: timedelta = FOREVER) -> int:
    """Removes the oldest events, at most `limit`. Returns how many; 0 if there is nothing to remove now.

    Two rules remove an event. It was recorded longer than `older_than` ago, by the database's clock, and all groups
    have read it. Or `keep` later events exist: then it goes whoever still needs it. A group without a reader for
    `silence` doesn't count. No event is removed before an older one, so the log has no gaps.
    """
    if not tx.execute(select(func.pg_try_advisory_xact_lock(_TRIMMING))).scalar_one():
        return 0  # another server is trimming
    now = positions(tx)
    read_by_all = tx.execute(
        select(func.min(group_positions.POSITION)).where(event_groups.c.seen_at > func.clock_timestamp() - silence)
    ).scalar_one()
    oldest = tx.execute(
        select(
            events.c.number,
            events.c.notifications,
            events.c.first_notification,
            events.c.mark,
            (func.clock_timestamp() - older_than > _RECORDED_AT).label("old"),
        )
        .where(events.c.number > now.trimmed)
        .order_by(events.c.number)
        .limit(limit)
    ).all()
    doomed = list(
        takewhile(
            lambda e: e.number <= now.last - keep or (e.old and (read_by_all is None or e.number <= read_by_all)),
            oldest,
        )
    )
    if not doomed:
        return 0
    final = doomed[-1]
    tx.execute(events.delete().where(events.c.number > now.trimmed, events.c.number <= final.number))
    # Last, because this locks the sequencer's row.
    tx.execute(
        update(event_log).values(
            trimmed_number=final.number,
            trimmed_notification=final.first_notification + final.notifications - 1,
            marked_number=final.number,
            mark=final.mark,
        )
    )
    return len(doomed)


def _event(row: Any) -> Event:
    return event_of(row, notifications=row.notifications, first_notification=row.first_notification, mark=row.mark)


def event_of(row: Any, **further: Any) -> Event:
    """The event in a row of the log, or of another table that has the same columns; `further` are its other fields."""
    return Event(
        number=row.number,
        type=EventType(row.type),
        time=row.time,
        origin=Origin(row.user_name, row.connection),
        catalog=row.catalog,
        database=row.database_name,
        table=row.table_name,
        payload=payloads.unpack(row.payload),
        **further,
    )
