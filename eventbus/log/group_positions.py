"""The positions of groups of subscribers and of outlets: the last event that each has acknowledged or delivered."""

from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Connection, case, func, select, update
from sqlalchemy import delete as _delete
from sqlalchemy.dialects.postgresql import insert

from eventbus.log.schema import (
    event_dead_letters,
    event_epochs,
    event_group_members,
    event_group_shards,
    event_groups,
    event_log,
)

LAST_EPOCH = select(event_epochs.c.id).order_by(event_epochs.c.id.desc()).limit(1).scalar_subquery()
"""The id of the latest epoch: a new group starts with it."""
SEEN_EVERY = timedelta(minutes=1)
"""The precision of `seen_at`: it is written at most once in this time."""


class Group(NamedTuple):
    """A group of subscribers, or an outlet, and its state. Times are in milliseconds since 1970.

    `position`: the number of the last event that it has acknowledged or delivered. `members`: live members; None for an
    outlet. `behind`: events in the log after the position. `dead_letters`: events that the outlet of that name could
    not deliver. `seen_at`: when a member last read, within a minute.
    """

    name: str
    position: int
    updated_at: int
    members: int | None
    behind: int
    dead_letters: int
    seen_at: int


def _of_shards(aggregate: ColumnElement[int]) -> ColumnElement[int | None]:
    return select(aggregate).where(event_group_shards.c.group_name == event_groups.c.name).scalar_subquery()


_least = _of_shards(func.min(event_group_shards.c.position))
POSITION = func.coalesce(_least, event_groups.c.position)
"""A group's position: the least position of its shards, where it has shards."""

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
    func.greatest(select(event_log.c.last_number).scalar_subquery() - POSITION, 0),
    select(func.count())
    .select_from(event_dead_letters)
    .where(event_dead_letters.c.outlet == event_groups.c.name)
    .scalar_subquery(),
    func.cast(func.floor(func.extract("epoch", event_groups.c.seen_at) * 1000), BigInteger),
)


def find(tx: Connection, name: str) -> Group | None:
    """The group of that name; None if there is none."""
    row = tx.execute(_GROUP.where(event_groups.c.name == name)).one_or_none()
    return Group(*row) if row else None


def all_groups(tx: Connection) -> list[Group]:
    """All groups, ordered by name."""
    return [Group(*row) for row in tx.execute(_GROUP.order_by(event_groups.c.name))]


def begin(tx: Connection, name: str, position: int, now: int) -> None:
    """Creates a group that starts after event `position`, unless it exists. `now` in milliseconds since 1970."""
    new = insert(event_groups).values(name=name, position=position, updated_at=now, epoch_id=LAST_EPOCH)
    tx.execute(new.on_conflict_do_nothing())


def move(tx: Connection, name: str, position: int, now: int, *, back: bool = False) -> None:
    """Stores a group's position. It moves backward only with `back`. `now` in milliseconds since 1970."""
    new = insert(event_groups).values(name=name, position=position, updated_at=now, epoch_id=LAST_EPOCH)
    tx.execute(
        new.on_conflict_do_update(
            index_elements=[event_groups.c.name],
            set_={"position": position, "updated_at": now, "seen_at": func.clock_timestamp()},
            where=None if back else event_groups.c.position < position,
        )
    )


def see(tx: Connection, name: str) -> None:
    """Records that a member reads, at most once per SEEN_EVERY."""
    tx.execute(
        update(event_groups)
        .where(event_groups.c.name == name, event_groups.c.seen_at < func.clock_timestamp() - SEEN_EVERY)
        .values(seen_at=func.clock_timestamp())
    )


def delete(tx: Connection, name: str) -> bool:
    """Deletes a group, its members and its shards. Returns whether there was one."""
    return tx.execute(_delete(event_groups).where(event_groups.c.name == name)).rowcount > 0


def forget(tx: Connection, silence: timedelta) -> list[str]:
    """Deletes the groups without a reader for as long as `silence`. Returns their names."""
    gone = _delete(event_groups).where(event_groups.c.seen_at < func.clock_timestamp() - silence)
    return sorted(tx.execute(gone.returning(event_groups.c.name)).scalars())


def attempts(tx: Connection, name: str, number: int) -> int:
    """How many attempts to deliver an event the outlet of that name has begun."""
    query = select(event_groups.c.attempts).where(event_groups.c.name == name, event_groups.c.attempted == number)
    return tx.execute(query).scalar_one_or_none() or 0


def count_attempt(tx: Connection, name: str, number: int) -> None:
    """Counts an attempt to deliver an event, before it is made."""
    earlier = case((event_groups.c.attempted == number, event_groups.c.attempts), else_=0)
    tx.execute(update(event_groups).where(event_groups.c.name == name).values(attempted=number, attempts=earlier + 1))


def take_back_attempt(tx: Connection, name: str, number: int) -> None:
    """Uncounts the last attempt: the server ended it, not the event."""
    tx.execute(
        update(event_groups)
        .where(event_groups.c.name == name, event_groups.c.attempted == number, event_groups.c.attempts > 0)
        .values(attempts=event_groups.c.attempts - 1)
    )
