"""Dead letters: events that an outlet could not deliver. They are stored, listed, and sent again on request."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, func, literal, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from eventbus.log.log import event_of
from eventbus.log.schema import event_dead_letters as letters
from eventbus.log.schema import events
from lake.protocol.events.types import Event

_COPIED = ("type", "catalog", "database_name", "table_name", "time", "user_name", "connection", "payload")


class DeadLetter(NamedTuple):
    """An event that an outlet could not deliver.

    `error`: of the last attempt. `failed_at`: its time in milliseconds since 1970. `resend`: whether somebody asked to
    send it again. `type`: None if the event was trimmed from the log before its delivery.
    """

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
    """Makes a dead letter of an event of the log. `now` in milliseconds since 1970."""
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
    """Records that events from a number on were trimmed from the log before their delivery."""
    new = insert(letters).values(outlet=outlet, number=number, error=error, attempts=0, failed_at=now)
    tx.execute(_replacing(new))


def listed(tx: Connection, outlet: str | None = None) -> list[DeadLetter]:
    """The dead letters of one outlet, or of all."""
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
    """Marks an outlet's dead letters to be sent again; all of them if `numbers` is None. Returns the marked numbers."""
    change = update(letters).where(letters.c.outlet == outlet, letters.c.payload.is_not(None)).values(resend=True)
    if numbers is not None:
        change = change.where(letters.c.number.in_(list(numbers)))
    return sorted(tx.execute(change.returning(letters.c.number)).scalars())


def asked_for(tx: Connection, outlet: str, limit: int) -> list[tuple[Event, int]]:
    """The events to be sent again, each with the number of attempts so far."""
    query = select(letters).where(letters.c.outlet == outlet, letters.c.resend).order_by(letters.c.number).limit(limit)
    return [(event_of(row), row.attempts) for row in tx.execute(query)]


def failed_again(tx: Connection, outlet: str, number: int, error: str, attempts: int, now: int) -> None:
    """Records that sending a dead letter again has failed. It stays, and is no longer marked."""
    tx.execute(
        update(letters).where(_is(outlet, number)).values(error=error, attempts=attempts, failed_at=now, resend=False)
    )


def remove(tx: Connection, outlet: str, number: int) -> None:
    """Removes a dead letter that has been delivered."""
    tx.execute(delete(letters).where(_is(outlet, number)))


def discard(tx: Connection, outlet: str, numbers: Sequence[int] | None) -> list[int]:
    """Deletes dead letters of an outlet; all of them if `numbers` is None. Returns the deleted numbers."""
    gone = delete(letters).where(letters.c.outlet == outlet)
    if numbers is not None:
        gone = gone.where(letters.c.number.in_(list(numbers)))
    return sorted(tx.execute(gone.returning(letters.c.number)).scalars())


def forget(tx: Connection, age: timedelta, limit: int) -> int:
    """Deletes dead letters older than `age`, at most `limit`. Returns how many."""
    old = (
        select(letters.c.outlet, letters.c.number)
        .where(letters.c.dead_lettered_at < func.clock_timestamp() - age)
        .limit(limit)
    )
    return tx.execute(delete(letters).where(tuple_(letters.c.outlet, letters.c.number).in_(old))).rowcount


def _replacing(new: Any) -> Any:
    changed = {name: new.excluded[name] for name in ("error", "attempts", "failed_at", "resend")}
    changed["dead_lettered_at"] = func.clock_timestamp()
    return new.on_conflict_do_update(index_elements=[letters.c.outlet, letters.c.number], set_=changed)


def _is(outlet: str, number: int) -> ColumnElement[bool]:
    return (letters.c.outlet == outlet) & (letters.c.number == number)
