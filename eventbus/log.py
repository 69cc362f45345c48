"""The log: events are recorded in the transaction of their change, numbered after it committed, and read.

Transactions commit in another order than they begin. A number that was given within one would let a reader pass an
event that commits later, or make writers queue. So an event has none until a sequencer, after the commit, gives the
next ones to all it finds, under a lock. Any reader runs it first, and therefore sees its own changes. Of two changes
one of which began after the other was committed, the events are in that order: the later one's id is the greater.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, func, insert, select, text, update

from eventbus import groups, payloads
from eventbus.events import Event, EventType, NewEvent, Origin
from eventbus.schema import event_log, events

CHANNEL = "metastore_events"
"""What the sequencer notifies (Postgres' LISTEN) once it has given numbers; the payload is the last one.

Without a payload a group's members have changed, or what is theirs.
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
)


_last_notification = events.c.first_notification + events.c.notifications - 1

_FEW = 20
"""Events that are fetched together: one may hold a hundred thousand partitions."""

_TRIMMING = 0x6D657461
"""The advisory lock of who removes old events."""


class Trimmed(Exception):
    """Events that a reader asks for are gone. `oldest` is the first number that is left."""

    def __init__(self, after: int, oldest: int) -> None:
        super().__init__(
            f"the events after {after} are no longer kept: the oldest is {oldest}."
            f" Read the current state of the tables, then go on after {oldest - 1}"
        )
        self.oldest = oldest


class Positions(NamedTuple):
    """The last numbers given, and the last of those whose events are gone."""

    last: int
    last_notification: int
    trimmed: int
    trimmed_notification: int


_APPENDED = insert(events).returning(events.c.id, sort_by_parameter_order=True)


def append(tx: Connection, new: Sequence[NewEvent]) -> list[int]:
    """Records events, in this order; they become some when `tx` commits. Their ids, which are not their numbers."""
    rows = [
        {
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
        for event in new
    ]
    if not rows:
        return []
    return list(tx.scalars(_APPENDED, rows))


def has_unnumbered(tx: Connection) -> bool:
    """Whether there are events without a number."""
    return tx.execute(select(events.c.id).where(events.c.number.is_(None)).limit(1)).first() is not None


def number(tx: Connection) -> Positions:
    """Gives numbers to all committed events that have none, and tells those who listen.

    Whoever comes second waits, and then sees what the first has numbered.
    """
    before = Positions(*tx.execute(select(*_POSITIONS).with_for_update()).one())
    fresh = (
        select(
            events.c.id,
            func.row_number().over(order_by=events.c.id).label("place"),
            (func.sum(events.c.notifications).over(order_by=events.c.id) - events.c.notifications).label("earlier"),
        )
        .where(events.c.number.is_(None))
        .cte("fresh")
    )
    numbered = tx.execute(
        update(events)
        .where(events.c.id == fresh.c.id)
        .values(
            number=before.last + fresh.c.place,
            first_notification=before.last_notification + fresh.c.earlier + 1,
        )
        .returning(events.c.number, events.c.notifications)
    ).all()
    if not numbered:
        return before
    after = before._replace(
        last=before.last + len(numbered),
        last_notification=before.last_notification + sum(row.notifications for row in numbered),
    )
    tx.execute(update(event_log).values(last_number=after.last, last_notification=after.last_notification))
    tx.execute(text("SELECT pg_notify(:channel, :last)"), {"channel": CHANNEL, "last": str(after.last)})
    return after


_POSITIONS = (
    event_log.c.last_number,
    event_log.c.last_notification,
    event_log.c.trimmed_number,
    event_log.c.trimmed_notification,
)


def positions(tx: Connection) -> Positions:
    """How far numbers have been given."""
    return Positions(*tx.execute(select(*_POSITIONS)).one())


def read(tx: Connection, after: int, limit: int) -> list[Event]:
    """The events after a number, at most so many. Raises Trimmed if some of them are gone."""
    trimmed = positions(tx).trimmed
    if after < trimmed:
        raise Trimmed(after, trimmed + 1)
    query = select(*_COLUMNS).where(events.c.number > after).order_by(events.c.number)
    return [_event(row) for row in tx.execute(query.limit(limit))]


def matching(tx: Connection, condition: ColumnElement[bool]) -> list[Event]:
    """The events for which a condition holds, in order."""
    return [_event(row) for row in tx.execute(select(*_COLUMNS).where(condition).order_by(events.c.number))]


def read_notifications(
    tx: Connection,
    after: int,
    *,
    skip: Sequence[EventType] = (),
    catalog: str | None = None,
    database: str | None = None,
    tables: Sequence[str] = (),
) -> Iterator[Event]:
    """Events that make notifications numbered from `after` + 1 on, in order; `skip` types are left out.

    With a catalog, a database or tables, those alone. Events come from the database a few at a time.
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
    """Events with notifications after a number. The first of them may have notifications up to it, too."""
    earlier = select(func.max(events.c.first_notification)).where(
        events.c.notifications > 0, events.c.first_notification <= number
    )
    return [
        events.c.notifications > 0,
        _last_notification > number,
        # By the index, however long the log is.
        events.c.first_notification >= func.coalesce(earlier.scalar_subquery(), 0),
    ]


def count_notifications(
    tx: Connection, after: int, upto: int | None, *, catalog: str, database: str | None, tables: Sequence[str] = ()
) -> int:
    """How many notifications have a number greater than `after`, up to `upto`, in one database or all, or about tables
    of it.
    """
    last = _last_notification if upto is None else func.least(_last_notification, upto)
    within = func.greatest(last - func.greatest(events.c.first_notification - 1, after), 0)
    query = select(func.coalesce(func.sum(within), 0)).where(
        *_after(after),
        events.c.catalog == catalog,
    )
    if upto is not None:
        query = query.where(events.c.first_notification <= upto)
    if database is not None:
        query = query.where(events.c.database_name == database)
    if tables:
        query = query.where(events.c.table_name.in_(tables))
    return int(tx.execute(query).scalar_one())


def numbers_of(tx: Connection, ids: Sequence[int]) -> dict[int, int]:
    """The numbers of those events that have one and are kept, by the ids that `append` gave."""
    query = select(events.c.id, events.c.number).where(events.c.id.in_(ids), events.c.number.is_not(None))
    return {row[0]: row[1] for row in tx.execute(query)}


def notifications_of(tx: Connection, ids: Sequence[int]) -> list[int]:
    """The numbers of the notifications that events make, by the ids that `append` gave.

    Their numbers must have been given.
    """
    query = select(events.c.first_notification, events.c.notifications).where(events.c.id.in_(ids))
    found = tx.execute(query.order_by(events.c.first_notification, events.c.id))
    return [number for first, count in found for number in range(first, first + count)]


def trim(tx: Connection, *, older_than: int, keep: int, limit: int) -> int:
    """Removes the oldest events, at most `limit`; how many. 0: there are no more to remove now.

    Those go that are older than a moment (milliseconds since 1970), unless a group of subscribers still has to read
    them, and all but the last `keep`, whoever waits for them. Times may go back from one event to the next: what
    stands before a younger one stays, so that no gap comes into being.
    """
    if not tx.execute(select(func.pg_try_advisory_xact_lock(_TRIMMING))).scalar_one():
        return 0  # another server is at it
    now = positions(tx)
    read_by_all = tx.execute(select(func.min(groups.POSITION))).scalar_one()
    oldest = tx.execute(
        select(events.c.number, events.c.time, events.c.notifications, events.c.first_notification)
        .where(events.c.number > now.trimmed)
        .order_by(events.c.number)
        .limit(limit)
    ).all()
    doomed = list(
        takewhile(
            lambda e: (
                e.number <= now.last - keep
                or (e.time < older_than and (read_by_all is None or e.number <= read_by_all))
            ),
            oldest,
        )
    )
    if not doomed:
        return 0
    final = doomed[-1]
    tx.execute(events.delete().where(events.c.number > now.trimmed, events.c.number <= final.number))
    # Last, since the sequencer needs the row.
    tx.execute(
        update(event_log).values(
            trimmed_number=final.number, trimmed_notification=final.first_notification + final.notifications - 1
        )
    )
    return len(doomed)


def _event(row: Any) -> Event:
    return Event(
        number=row.number,
        type=EventType(row.type),
        time=row.time,
        origin=Origin(row.user_name, row.connection),
        catalog=row.catalog,
        database=row.database_name,
        table=row.table_name,
        notifications=row.notifications,
        first_notification=row.first_notification,
        payload=payloads.unpack(row.payload),
    )
