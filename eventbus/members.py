"""The members and shards of groups, as the database keeps them: `sharing` says what to change.

Whoever gives or takes shards holds a group's lock alone; who moves positions of shards it holds shares the lock.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    delete,
    func,
    insert,
    select,
    text,
    update,
    values,
)
from sqlalchemy.dialects import postgresql

from eventbus.log import CHANNEL
from eventbus.schema import event_group_members, event_group_shards, event_groups
from eventbus.shards import SHARDS
from eventbus.sharing import LEASE_SECONDS, Held, Plan, Shard, State
from metastore.clock import now_ms

_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 7403))")
_LOCK_SHARED = text("SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 7403))")
_NOW = func.cast(func.floor(func.extract("epoch", func.clock_timestamp()) * 1000), BigInteger)

_shards, _members = event_group_shards.c, event_group_members.c


def lock(tx: Connection, group: str, *, shared: bool = False) -> None:
    """Holds a group's lock to the transaction's end."""
    tx.execute(_LOCK_SHARED if shared else _LOCK, {"name": group})


def load(tx: Connection, group: str) -> State | None:
    """A group's shards and members; None: it has no shards yet."""
    everybody = (
        select(func.json_object_agg(_members.name, _members.alive_until))
        .where(_members.group_name == group)
        .scalar_subquery()
    )
    rows = tx.execute(
        select(_shards.shard, _shards.position, _shards.tenure, _shards.owner, everybody.label("members"), _NOW)
        .where(_shards.group_name == group)
        .order_by(_shards.shard)
    ).all()
    if not rows:
        return None
    return State([Shard(*row[:4]) for row in rows], rows[0].members or {}, rows[0][5])


def begin(tx: Connection, group: str, start: int) -> None:
    """Divides a group into shards that stand where it stands; one that has not begun begins after event `start`."""
    new = postgresql.insert(event_groups).values(name=group, position=start, updated_at=now_ms())
    tx.execute(new.on_conflict_do_nothing())
    position = select(event_groups.c.position).where(event_groups.c.name == group).scalar_subquery()
    tx.execute(
        insert(event_group_shards).values(
            [
                {"group_name": group, "shard": shard, "position": position, "tenure": 0, "updated_at": now_ms()}
                for shard in range(SHARDS)
            ]
        )
    )


def carry_out(tx: Connection, group: str, member: str, plan: Plan) -> None:
    """Makes a plan's changes, and wakes those who wait if it concerns them."""
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


def held(tx: Connection, group: str, member: str) -> dict[int, Held]:
    """What a member holds, as the database knows it: nothing is read beyond what is dealt with."""
    found = tx.execute(
        select(_shards.shard, _shards.tenure, _shards.position).where(
            _shards.group_name == group, _shards.owner == member
        )
    )
    return {shard: Held(tenure, position, position) for shard, tenure, position in found}


def move(tx: Connection, group: str, done: Mapping[int, Held]) -> None:
    """Keeps how far shards are dealt with, those whose tenure is still the same; none goes back."""
    if not done:
        return
    said = values(Column("shard", Integer), Column("tenure", BigInteger), Column("done", BigInteger), name="said").data(
        [(shard, each.tenure, each.done) for shard, each in done.items()]
    )
    tx.execute(
        update(event_group_shards)
        .where(
            _shards.group_name == group,
            _shards.shard == said.c.shard,
            _shards.tenure == said.c.tenure,
            _shards.position < said.c.done,
        )
        .values(position=said.c.done, updated_at=now_ms())
    )


def move_all(tx: Connection, group: str, position: int, *, back: bool) -> None:
    """Lets all shards of a group go on after an event: if they may go `back`, their members begin anew there."""
    change = update(event_group_shards).where(_shards.group_name == group)
    if back:
        again = {"owner": None, "tenure": _shards.tenure + 1}
        if tx.execute(change.values(position=position, updated_at=now_ms(), **again)).rowcount:
            _wake(tx)
    else:
        tx.execute(change.where(_shards.position < position).values(position=position, updated_at=now_ms()))


def stay(tx: Connection, group: str, member: str) -> None:
    """A sign of life between a member's polls."""
    lease = int(LEASE_SECONDS * 1000)
    tx.execute(
        update(event_group_members)
        .where(_members.group_name == group, _members.name == member, _members.alive_until < _NOW + lease * 2 // 3)
        .values(alive_until=_NOW + lease)
    )


def leave(tx: Connection, group: str, member: str) -> None:
    """A member goes; its shards are free."""
    tx.execute(delete(event_group_members).where(_members.group_name == group, _members.name == member))
    mine = tx.execute(select(_shards.shard).where(_shards.group_name == group, _shards.owner == member)).scalars().all()
    if mine:
        _give(tx, group, mine, None)
        _wake(tx)


def _give(tx: Connection, group: str, shards: Sequence[int], owner: str | None) -> None:
    tx.execute(
        update(event_group_shards)
        .where(_shards.group_name == group, _shards.shard.in_(shards))
        .values(owner=owner, tenure=_shards.tenure + 1)
    )


def _wake(tx: Connection) -> None:
    tx.execute(text("SELECT pg_notify(:channel, '')"), {"channel": CHANNEL})
