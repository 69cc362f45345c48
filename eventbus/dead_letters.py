"""Events that an outlet could not deliver: set aside, shown, and sent again when somebody asks."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from eventbus import payloads
from eventbus.events import Event, EventType, Origin
from eventbus.schema import event_dead_letters as letters
from eventbus.schema import events

_COPIED = ("type", "catalog", "database_name", "table_name", "time", "user_name", "connection", "payload")


class DeadLetter(NamedTuple):
    """`failed_at` in milliseconds since 1970. Without a `type` the event was gone before it could be delivered."""

    outlet: str
    number: int
    error: str
    attempts: int
    failed_at: int
    resend: bool
    type: str | None
    catalog: str | None
    database: str | None
    table: str | None


def put(tx: Connection, outlet: str, number: int, error: str, attempts: int, now: int) -> None:
    """Sets an event of the log aside."""
    copy = select(
        literal(outlet),
        events.c.number,
        literal(error),
        literal(attempts),
        literal(now),
        *(events.c[name] for name in _COPIED),
    ).where(events.c.number == number)
    new = insert(letters).from_select(["outlet", "number", "error", "attempts", "failed_at", *_COPIED], copy)
    tx.execute(_replacing(new))


def put_gone(tx: Connection, outlet: str, number: int, error: str, now: int) -> None:
    """Notes that from an event on some were gone before they could be delivered."""
    new = insert(letters).values(outlet=outlet, number=number, error=error, attempts=0, failed_at=now)
    tx.execute(_replacing(new))


def listed(tx: Connection, outlet: str | None = None) -> list[DeadLetter]:
    """What was set aside, of one outlet or of all."""
    query = select(
        letters.c.outlet,
        letters.c.number,
        letters.c.error,
        letters.c.attempts,
        letters.c.failed_at,
        letters.c.resend,
        letters.c.type,
        letters.c.catalog,
        letters.c.database_name,
        letters.c.table_name,
    ).order_by(letters.c.outlet, letters.c.number)
    if outlet is not None:
        query = query.where(letters.c.outlet == outlet)
    return [DeadLetter._make(row) for row in tx.execute(query)]


def ask_again(tx: Connection, outlet: str, numbers: Sequence[int] | None) -> list[int]:
    """Asks for events of an outlet to be sent again, or for all of its; which of them will be."""
    change = update(letters).where(letters.c.outlet == outlet, letters.c.payload.is_not(None)).values(resend=True)
    if numbers is not None:
        change = change.where(letters.c.number.in_(list(numbers)))
    return sorted(tx.execute(change.returning(letters.c.number)).scalars())


def asked_for(tx: Connection, outlet: str, limit: int) -> list[tuple[Event, int]]:
    """Events to be sent again, with the attempts that were made so far."""
    query = select(letters).where(letters.c.outlet == outlet, letters.c.resend).order_by(letters.c.number).limit(limit)
    return [(_event(row), row.attempts) for row in tx.execute(query)]


def failed_again(tx: Connection, outlet: str, number: int, error: str, attempts: int, now: int) -> None:
    """What was sent again failed again: it stays."""
    tx.execute(
        update(letters).where(_is(outlet, number)).values(error=error, attempts=attempts, failed_at=now, resend=False)
    )


def remove(tx: Connection, outlet: str, number: int) -> None:
    """What was sent again has arrived."""
    tx.execute(delete(letters).where(_is(outlet, number)))


def _replacing(new: Any) -> Any:
    changed = {name: new.excluded[name] for name in ("error", "attempts", "failed_at", "resend")}
    return new.on_conflict_do_update(index_elements=[letters.c.outlet, letters.c.number], set_=changed)


def _is(outlet: str, number: int) -> ColumnElement[bool]:
    return (letters.c.outlet == outlet) & (letters.c.number == number)


def _event(row: Any) -> Event:
    return Event(
        number=row.number,
        type=EventType(row.type),
        time=row.time,
        origin=Origin(row.user_name, row.connection),
        catalog=row.catalog,
        database=row.database_name,
        table=row.table_name,
        payload=payloads.unpack(row.payload),
    )
