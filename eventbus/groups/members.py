"""The members and shards of groups in the database. `assignment` decides what to change.

Changing owners requires the group's lock. Moving positions doesn't: the statement changes only rows whose generation is
still the reported one.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    delete,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql

from eventbus.log import group_positions
from eventbus.log.log import CHANNEL
from eventbus.log.schema import event_group_members, event_group_shards, event_groups, event_log
from lake.protocol.clock import now_ms
from lake.protocol.events.assignment import LEASE_SECONDS, Held, Plan, Shard, State
from lake.protocol.events.shards import SHARDS

_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 7403))")
_MOVE = text(
    "UPDATE event_group_shards AS kept SET position = said.done, updated_at = :now"
    " FROM unnest(CAST(:shards AS smallint[]), CAST(:generations AS bigint[]), CAST(:done AS bigint[]))"
    " AS said (shard, generation, done)"
    " WHERE kept.group_name = :group AND kept.shard = said.shard AND kept.generation = said.generation"
    " AND kept.position < said.done"
)
_NOW = func.cast(func.floor(func.extract("epoch", func.clock_timestamp()) * 1000), BigInteger)

_shards, _members = event_group_shards.c, event_group_members.c


def lock(tx: Connection, group: str) -> None:
    """Takes a group's lock until the transaction ends."""
    tx.execute(_LOCK, {"name": group})


def load(tx: Connection, group: str) -> State | None:
    """A group's state; None if it has no shards yet."""
    everybody = (
        select(func.json_object_agg(_members.name, _members.alive_until))
        .where(_members.group_name == group)
        .scalar_subquery()
    )
    rows = tx.execute(
        select(_shards.shard, _shards.position, _shards.generation, _shards.owner, everybody.label("members"), _NOW)
        .where(_shards.group_name == group)
        .order_by(_shards.shard)
    ).all()
    if not rows:
        return None
    return State([Shard(*row[:4]) for row in rows], rows[0].members or {}, rows[0][5])


def begin(tx: Connection, group: str, start: int) -> None:
    """Creates a group's shards at the group's position. A new group starts after event `start`."""
    group_positions.begin(tx, group, start, now_ms())
    position = select(event_groups.c.position).where(event_groups.c.name == group).scalar_subquery()
    tx.execute(
        insert(event_group_shards).values(
            [
                {"group_name": group, "shard": shard, "position": position, "generation": 0, "updated_at": now_ms()}
                for shard in range(SHARDS)
            ]
        )
    )


def carry_out(tx: Connection, group: str, member: str, plan: Plan) -> None:
    """Applies a plan, and wakes the other members if their shards may change."""
    if plan.dead:
        tx.execute(delete(event_group_members).where(_members.group_name == group, _members.name.in_(plan.dead)))
    if plan.alive_until is not None:
        mine = postgresql.insert(event_group_members).values(
            group_name=group, name=member, alive_until=plan.alive_until
        )
        tx.execute(
            mine.on_conflict_do_update(
                index_elements=[_members.group_name, _members.name], set_={"alive_until": plan.alive_until}
            )
        )
        group_positions.see(tx, group)
    if plan.joins:
        tx.execute(
            update(event_group_members)
            .where(_members.group_name == group, _members.name != member)
            .values(alive_until=func.least(_members.alive_until, _NOW + int(LEASE_SECONDS * 1000)))
        )
    for shards, owner in ((plan.freed, None), (plan.taken, member)):
        if shards:
            _give(tx, group, shards, owner)
    if plan.members > 1 and (plan.joins or plan.freed or plan.dead):
        _wake(tx)


def move(tx: Connection, group: str, said: Mapping[int, Held]) -> None:
    """Stores acknowledged positions of shards whose generation is still the reported one. No position decreases."""
    if said:
        tx.execute(
            _MOVE,
            {
                "group": group,
                "shards": list(said),
                "generations": [each.generation for each in said.values()],
                "done": [each.done for each in said.values()],
                "now": now_ms(),
            },
        )


class Standing(NamedTuple):
    """A member's shards as the database knows them.

    `needs_sign`: whether its lease must be renewed soon. `last`: the number of the log's last event.
    """

    held: dict[int, Held]
    needs_sign: bool
    last: int


def standing(tx: Connection, group: str, member: str) -> Standing:
    """A member's shards, and whether its lease must be renewed."""
    lease = int(LEASE_SECONDS * 1000)
    until = select(_members.alive_until).where(_members.group_name == group, _members.name == member).scalar_subquery()
    found = tx.execute(
        select(
            _shards.shard,
            _shards.generation,
            _shards.position,
            (until < _NOW + lease * 2 // 3).label("needs_sign"),
            select(event_log.c.last_number).scalar_subquery().label("last"),
        ).where(_shards.group_name == group, _shards.owner == member)
    ).all()
    held = {row.shard: Held(row.generation, row.position, row.position) for row in found}
    return Standing(held, any(row.needs_sign for row in found), max((row.last for row in found), default=0))


def move_all(tx: Connection, group: str, position: int, *, back: bool) -> None:
    """Moves all shards of a group to a position. With `back`, also backward; members then have to take them anew."""
    change = update(event_group_shards).where(_shards.group_name == group)
    if back:
        again = {"owner": None, "generation": _shards.generation + 1}
        if tx.execute(change.values(position=position, updated_at=now_ms(), **again)).rowcount:
            _wake(tx)
    else:
        tx.execute(change.where(_shards.position < position).values(position=position, updated_at=now_ms()))


def stay(tx: Connection, group: str, member: str) -> None:
    """Renews a member's lease between its polls."""
    tx.execute(
        update(event_group_members)
        .where(_members.group_name == group, _members.name == member)
        .values(alive_until=func.greatest(_members.alive_until, _NOW + int(LEASE_SECONDS * 1000)))
    )
    group_positions.see(tx, group)


def leave(tx: Connection, group: str, member: str) -> None:
    """Removes a member and frees its shards."""
    tx.execute(delete(event_group_members).where(_members.group_name == group, _members.name == member))
    mine = tx.execute(select(_shards.shard).where(_shards.group_name == group, _shards.owner == member)).scalars().all()
    if mine:
        _give(tx, group, mine, None)
        _wake(tx)


def _give(tx: Connection, group: str, shards: Sequence[int], owner: str | None) -> None:
    tx.execute(
        update(event_group_shards)
        .where(_shards.group_name == group, _shards.shard.in_(shards))
        .values(owner=owner, generation=_shards.generation + 1)
    )


def _wake(tx: Connection) -> None:
    tx.execute(text("SELECT pg_notify(:channel, '')"), {"channel": CHANNEL})
