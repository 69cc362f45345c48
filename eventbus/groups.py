"""How far groups of subscribers have come."""

from typing import NamedTuple

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from eventbus.schema import event_groups


class Group(NamedTuple):
    """A group and the last event that it has dealt with; `updated_at` in milliseconds since 1970."""

    name: str
    position: int
    updated_at: int


_GROUP = select(event_groups.c.name, event_groups.c.position, event_groups.c.updated_at)


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
