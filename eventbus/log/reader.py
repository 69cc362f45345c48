"""Reads pages of events from the log, after a position and through a filter."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Integer, and_, false, func, or_, select, tuple_, type_coerce

from eventbus.log import log
from eventbus.log.schema import events
from lake.protocol.events.filters import Filter, Pattern
from lake.protocol.events.shards import SHARDS
from lake.protocol.events.types import Event, EventType


class Page(NamedTuple):
    """One page of events.

    `position`: read on after this number; it may be that of an event that the filter left out. `last`: the number of
    the log's last event. `sizes`: the bytes of the events' stored payloads, by number.
    """

    events: list[Event]
    position: int
    last: int
    sizes: Mapping[int, int]


def read(tx: Connection, after: int, wanted: Filter, *, limit: int, max_bytes: int, upto: int | None = None) -> Page:
    """The next events after a number that a filter accepts: at most `limit`, and at most `max_bytes` of stored payload.

    One event is always returned, however big. `upto`: only events up to this number. `tx` must be REPEATABLE READ.
    Raises Trimmed if events are gone.
    """
    return _read(tx, after, [events.c.number > after], wanted, limit, max_bytes, upto)


def read_shards(
    tx: Connection,
    positions: Mapping[int, int],
    wanted: Filter,
    *,
    limit: int,
    max_bytes: int,
    upto: int | None = None,
) -> tuple[Page, dict[int, int]]:
    """The next events of some shards, as `read` returns them, and the new position of each shard.

    `positions`: by shard, the number after which to read; not empty. `upto`: as of `read`.
    """
    least = min(positions.values())
    # The condition on the least position lets Postgres use the index.
    page = _read(tx, least, [events.c.number > least, _after(positions)], wanted, limit, max_bytes, upto)
    return page, {shard: max(number, page.position) for shard, number in positions.items()}


def _read(
    tx: Connection,
    after: int,
    where: list[ColumnElement[bool]],
    wanted: Filter,
    limit: int,
    max_bytes: int,
    bound: int | None,
) -> Page:
    positions = log.positions(tx)
    if after < positions.trimmed:
        raise log.Trimmed(after, positions.trimmed + 1)
    end = positions.last if bound is None else min(positions.last, bound)
    condition = and_(*where, events.c.number <= end, *_conditions(wanted))
    sizes = tx.execute(
        select(events.c.number, func.octet_length(events.c.payload))
        .where(condition)
        .order_by(events.c.number)
        .limit(limit)
    ).all()
    upto, size = 0, 0
    for place, (number, own) in enumerate(sizes):
        size += own
        if place and size > max_bytes:
            break
        upto = number
    found = log.matching(tx, and_(condition, events.c.number <= upto)) if sizes else []
    complete = len(found) == len(sizes) and len(sizes) < limit
    return Page(found, max(end, after) if complete else upto, positions.last, {row[0]: row[1] for row in sizes})


def first_since(tx: Connection, time: int) -> int | None:
    """The number of the first event at or after a time, in milliseconds since 1970; None if there is none yet."""
    query = select(func.min(events.c.number)).where(events.c.time >= time)
    first: int | None = tx.execute(query).scalar_one()
    return first


def _after(positions: Mapping[int, int]) -> ColumnElement[bool]:
    """Selects the events of some shards after each shard's position."""
    if len(positions) == SHARDS and len(set(positions.values())) == 1:
        return events.c.number > next(iter(positions.values()))  # all shards at one position: no need for shards
    by_number: dict[int, list[int]] = {}
    for shard, number in positions.items():
        by_number.setdefault(number, []).append(shard)
    return or_(*(and_(events.c.number > number, _SHARD.in_(some)) for number, some in by_number.items()))


def _or_empty(column: ColumnElement[str | None]) -> ColumnElement[str]:
    return func.coalesce(column, "")


_SHARD = (
    type_coerce(
        func.get_byte(
            func.sha256(
                func.convert_to(
                    _or_empty(events.c.catalog)
                    + "."
                    + _or_empty(events.c.database_name)
                    + "."
                    + _or_empty(events.c.table_name),
                    "UTF8",
                )
            ),
            0,
        ),
        Integer,
    )
    % SHARDS
)
"""The same shard in SQL as `shards.shard_of` computes."""


def _conditions(wanted: Filter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.tables:
        epochs = events.c.type == EventType.BEGIN_EPOCH.value
        conditions.append(or_(epochs, _named(wanted.exact), *map(_matches, wanted.wild)))
    if wanted.types:
        conditions.append(events.c.type.in_([type.value for type in wanted.types]))
    return conditions


def _named(exact: Sequence[Pattern]) -> ColumnElement[bool]:
    names = tuple_(events.c.catalog, events.c.database_name, events.c.table_name)
    return names.in_([(each.catalog, each.database, each.table) for each in exact])


def _matches(pattern: Pattern) -> ColumnElement[bool]:
    named: ColumnElement[bool] = events.c.table_name.like(_like(pattern.table), escape="\\")
    if pattern.table == "*":
        named = or_(named, events.c.table_name.is_(None))
    return and_(
        events.c.catalog.like(_like(pattern.catalog), escape="\\") if pattern.catalog else false(),
        events.c.database_name.like(_like(pattern.database), escape="\\"),
        named,
    )


def _like(text: str) -> str:
    for special in ("\\", "%", "_"):
        text = text.replace(special, "\\" + special)
    return text.replace("*", "%")
