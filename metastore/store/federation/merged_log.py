"""One log of the events of several metastores, with dense rising numbers.

Numbers are given in the order in which transactions hold the log's row, and are seen when these commit: who sees a
number sees all before it. How far a backend is followed changes with its events, in the same transaction, and only from
the position that was read before: two who follow one backend don't take an event twice.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from metastore.store.schema.federation import federation_events, federation_followed, federation_log

_AT_ONCE = 50  # rows that a read fetches together


class State(NamedTuple):
    """How far the log is, and under which names the backends' events are taken."""

    last: int
    trimmed: int
    names: str | None


class Followed(NamedTuple):
    """How far a backend is followed; see the table."""

    backend: str
    position: int
    mark: bytes | None
    last_there: int
    looked_at: datetime
    seconds_behind: float
    trouble: str | None


class Row(NamedTuple):
    """An event to append, or a loss (`body` is None)."""

    number_there: int
    type: str
    database: str | None
    other_database: str | None
    table: str | None
    body: bytes | None
    loss: str | None


class Event(NamedTuple):
    """An event of the log, or a loss (`body` is None)."""

    number: int
    backend: str
    body: bytes | None
    loss: str | None


class About(NamedTuple):
    """A database of a backend, by its name there, to which a read is restricted."""

    backend: str
    database: str


def state(tx: Connection) -> State:
    """How far the log is."""
    columns = federation_log.c.last_number, federation_log.c.trimmed_number, federation_log.c.names
    return State(*tx.execute(select(*columns)).one())


def take_names(tx: Connection, names: str) -> None:
    """Says under which names events are taken from now on."""
    tx.execute(update(federation_log).values(names=names))


def followed(tx: Connection) -> dict[str, Followed]:
    """All backends that are, or were, followed. `seconds_behind` is by the database's clock."""
    it = federation_followed.c
    behind = func.extract("epoch", func.clock_timestamp() - it.current_at)
    columns = it.backend, it.position, it.mark, it.last_there, it.looked_at, behind, it.trouble
    rows = tx.execute(select(*columns))
    return {row[0]: Followed(*row)._replace(seconds_behind=float(row[5])) for row in rows}


def begin(tx: Connection, backend: str, position: int) -> None:
    """Follows a backend from a position on, unless it is followed already."""
    values = {"backend": backend, "position": position, "last_there": position}
    tx.execute(upsert(federation_followed).values(values).on_conflict_do_nothing())


def looked(tx: Connection, backend: str, last_there: int, *, current: bool, trouble: str | None) -> None:
    """Notes what a look at a backend's log has shown. `current`: the merged log has all of it."""
    now = func.clock_timestamp()
    values = {"last_there": last_there, "looked_at": now, "trouble": trouble}
    if current:
        values["current_at"] = now
    tx.execute(update(federation_followed).where(federation_followed.c.backend == backend).values(values))


UNKNOWN = -1
"""The position of a backend that was to be followed and has never answered."""


def failed(tx: Connection, backend: str, trouble: str) -> None:
    """Notes why a backend's log can't be read now."""
    values = {"backend": backend, "position": UNKNOWN, "last_there": 0, "trouble": trouble}
    statement = upsert(federation_followed).values(values)
    tx.execute(statement.on_conflict_do_update(index_elements=["backend"], set_={"trouble": trouble}))


def append(
    tx: Connection,
    backend: str,
    *,
    names: str,
    before: int,
    after: int,
    mark: bytes | None,
    rows: Sequence[Row],
) -> bool:
    """Appends what a backend's log has between two positions. `mark`: of its event at the second one.

    False if others were faster, or if events are taken under other names by now: then nothing is done.
    """
    now = tx.execute(select(federation_log.c.last_number, federation_log.c.names).with_for_update()).one()
    position = select(federation_followed.c.position).where(federation_followed.c.backend == backend)
    if now.names != names or tx.execute(position).scalar_one_or_none() != before:
        return False
    values = [
        {
            "number": now.last_number + place,
            "backend": backend,
            "number_there": row.number_there,
            "type": row.type,
            "database_name": row.database,
            "other_database": row.other_database,
            "table_name": row.table,
            "body": row.body,
            "loss": row.loss,
        }
        for place, row in enumerate(rows, 1)
    ]
    if values:
        tx.execute(insert(federation_events), values)
        tx.execute(update(federation_log).values(last_number=now.last_number + len(values)))
    condition = federation_followed.c.backend == backend
    tx.execute(update(federation_followed).where(condition).values(position=after, mark=mark))
    return True


def read(tx: Connection, after: int, about: About | None = None) -> Iterator[Event]:
    """The events with numbers greater than `after`. `about`: those about a database alone, and all losses."""
    it = federation_events.c
    while True:
        query = select(it.number, it.backend, it.body, it.loss).where(it.number > after)
        if about is not None:
            query = query.where(_is_about(about))
        rows = tx.execute(query.order_by(it.number).limit(_AT_ONCE)).all()
        for number, backend, body, loss in rows:
            yield Event(number, backend, None if body is None else bytes(body), loss)
        if len(rows) < _AT_ONCE:
            return
        after = rows[-1].number


class Count(NamedTuple):
    """How many events are about the same."""

    backend: str
    type: str
    database: str | None
    other_database: str | None
    table: str | None
    events: int


def count(tx: Connection, after: int, upto: int | None, about: About | None) -> list[Count]:
    """How many events have numbers greater than `after`, and not greater than `upto`; losses are none."""
    it = federation_events.c
    what = it.backend, it.type, it.database_name, it.other_database, it.table_name
    query = select(*what, func.count()).where(it.number > after, it.body.is_not(None))
    if upto is not None:
        query = query.where(it.number <= upto)
    if about is not None:
        query = query.where(_is_about(about))
    return [Count(*row) for row in tx.execute(query.group_by(*what))]


def numbers_of(tx: Connection, backend: str, numbers_there: Sequence[int]) -> dict[int, int]:
    """The numbers of a backend's events, by the ones that they have there."""
    it = federation_events.c
    query = select(it.number_there, it.number).where(
        it.backend == backend, it.number_there.in_(numbers_there), it.body.is_not(None)
    )
    return {row.number_there: row.number for row in tx.execute(query)}


def losses(tx: Connection) -> list[tuple[int, str, str]]:
    """Number, backend and description of what was lost, as far as it is kept; the latest last."""
    it = federation_events.c
    query = select(it.number, it.backend, it.loss).where(it.body.is_(None)).order_by(it.number)
    return [(number, backend, loss) for number, backend, loss in tx.execute(query)]


def trim(tx: Connection, days: float, count: int) -> int:
    """Removes events that are older than some days, and all but the newest `count`. How many it removed."""
    it = federation_events.c
    last = tx.execute(select(federation_log.c.last_number)).scalar_one()
    old = tx.execute(
        select(func.max(it.number)).where(it.recorded_at < func.clock_timestamp() - text("make_interval(secs => :s)")),
        {"s": days * 86_400},
    ).scalar_one_or_none()
    upto = max(old or 0, last - count)
    removed = tx.execute(delete(federation_events).where(it.number <= upto)).rowcount
    if removed:
        tx.execute(update(federation_log).values(trimmed_number=func.greatest(federation_log.c.trimmed_number, upto)))
    return removed


def _is_about(about: About) -> ColumnElement[bool]:
    it = federation_events.c
    return or_(
        it.body.is_(None),
        and_(it.backend == about.backend, or_(it.database_name == about.database, it.other_database == about.database)),
    )
