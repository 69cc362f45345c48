"""How far groups of subscribers have come."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, case, func, select, update
from sqlalchemy.dialects.postgresql import insert

from eventbus.schema import event_group_members, event_group_shards, event_groups


class Group(NamedTuple):
    """A group and the last event that it has dealt with; `updated_at` in milliseconds since 1970.

    `members`: how many read for it now; None where there are no such, as for outlets.
    """

    name: str
    position: int
    updated_at: int
    members: int | None = None


def _of_shards(aggregate: ColumnElement[int]) -> ColumnElement[int | None]:
    return select(aggregate).where(event_group_shards.c.group_name == event_groups.c.name).scalar_subquery()


_least = _of_shards(func.min(event_group_shards.c.position))
POSITION = func.coalesce(_least, event_groups.c.position)
"""Where a group stands: one whose work is shared stands where the least of its shards does."""

_alive = (
    select(func.count())
    .where(
        event_group_members.c.group_name == event_groups.c.name,
        event_group_members.c.alive_until > func.extract("epoch", func.clock_timestamp()) * 1000,
    )
    .scalar_subquery()
)
_GROUP = select(
    event_groups.c.name,
    POSITION,
    func.greatest(event_groups.c.updated_at, _of_shards(func.max(event_group_shards.c.updated_at))),
    case((_least.is_not(None), _alive)),
)


def find(tx: Connection, name: str) -> Group | None:
    """The group of that name, None if it has not begun."""
    row = tx.execute(_GROUP.where(event_groups.c.name == name)).one_or_none()
    return Group(*row) if row else None


def all_groups(tx: Connection) -> list[Group]:
    """Every group by name."""
    return [Group(*row) for row in tx.execute(_GROUP.order_by(event_groups.c.name))]


def begin(tx: Connection, name: str, position: int, now: int) -> None:
    """Lets a group begin after an event, unless it has begun."""
    new = insert(event_groups).values(name=name, position=position, updated_at=now)
    tx.execute(new.on_conflict_do_nothing())


def move(tx: Connection, name: str, position: int, now: int, *, back: bool = False) -> None:
    """Keeps how far a group has come; a position before the one that is kept counts only if it may go `back`."""
    new = insert(event_groups).values(name=name, position=position, updated_at=now)
    tx.execute(
        new.on_conflict_do_update(
            index_elements=[event_groups.c.name],
            set_={"position": position, "updated_at": now},
            where=None if back else event_groups.c.position < position,
        )
    )


def attempts(tx: Connection, name: str, number: int) -> int:
    """How often the outlet of that name was about to deliver an event."""
    query = select(event_groups.c.attempts).where(event_groups.c.name == name, event_groups.c.attempted == number)
    return tx.execute(query).scalar_one_or_none() or 0


def count_attempt(tx: Connection, name: str, number: int) -> None:
    """Keeps that an outlet is about to deliver an event."""
    earlier = case((event_groups.c.attempted == number, event_groups.c.attempts), else_=0)
    tx.execute(update(event_groups).where(event_groups.c.name == name).values(attempted=number, attempts=earlier + 1))


def take_back_attempt(tx: Connection, name: str, number: int) -> None:
    """The attempt that was counted last was ended by nobody's fault."""
    tx.execute(
        update(event_groups)
        .where(event_groups.c.name == name, event_groups.c.attempted == number, event_groups.c.attempts > 0)
        .values(attempts=event_groups.c.attempts - 1)
    )
