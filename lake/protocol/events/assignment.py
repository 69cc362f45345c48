"""The assignment of a group's shards to its members. Pure functions; `members` applies them to the database.

A member owns a shard under a generation, a number that increases whenever the owner changes. Positions that a member
reports count only for its own generation.

Every member is entitled to an even share. A member with more releases shards without unacknowledged events. A member
with less takes free shards. So a table's events don't move to another member while one works on them, unless that
member is dead.

A member stays alive for a lease after its last sign of life. A long poll is a sign of life while it lasts. A single
member may poll for long; when another one joins, it therefore shortens the first one's lease and wakes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lake.protocol.events.shards import SHARDS

LEASE_SECONDS = 10.0
"""A member without a sign of life for this long is considered dead."""
LONGEST_POLL = LEASE_SECONDS / 4
"""The longest poll, in seconds, in a group with several members."""


class Shard(NamedTuple):
    """One of a group's shards. Its events up to number `position` are acknowledged. `owner`: a member's name."""

    shard: int
    position: int
    generation: int
    owner: str | None


@dataclass(frozen=True, slots=True)
class State:
    """A group's stored state.

    `members`: by name, until when the member is alive. Times are in milliseconds, by the database's clock.
    """

    shards: Sequence[Shard]
    members: Mapping[str, int]
    now: int


class Held(NamedTuple):
    """A member's report about a shard: it has received events up to `read`, and acknowledged those up to `done`."""

    generation: int
    read: int
    done: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes to make after a member's sign of life.

    `members`: how many there are, including it. `joins`: whether it is new. `alive_until`: the time to store; None if
    the stored one is late enough. `dead`: members to remove. `freed`, `taken`: shards that it releases and takes.
    """

    members: int
    joins: bool
    alive_until: int | None
    dead: Sequence[str]
    freed: Sequence[int]
    taken: Sequence[int]

    @property
    def changes_nothing(self) -> bool:
        return self.alive_until is None and not (self.dead or self.freed or self.taken)


def plan(state: State, member: str, held: Mapping[int, Held], wait: float) -> Plan:
    """The changes to make when a member polls. `held`: its reports by shard. `wait`: how long it waits, in seconds."""
    alive = {name for name, until in state.members.items() if until > state.now and name != member}
    members = len(alive) + 1
    mine = [each for each in state.shards if each.owner == member]
    share = _share(sorted({*alive, member}).index(member), members)
    idle = [each.shard for each in mine if not _is_busy(each, held)]
    freed = idle[len(idle) - min(len(idle), max(0, len(mine) - share)) :]
    free = [each.shard for each in state.shards if each.owner != member and each.owner not in alive]
    taken = free[: max(0, share - len(mine))]
    return Plan(
        members=members,
        joins=state.members.get(member, 0) <= state.now,
        alive_until=_alive_until(state, member, wait if members == 1 else 0.0),
        dead=sorted(name for name in state.members if name not in alive and name != member),
        freed=freed,
        taken=taken,
    )


def _share(rank: int, members: int) -> int:
    """How many shards the member with index `rank`, from 0, may own."""
    return SHARDS // members + (rank < SHARDS % members)


def _is_busy(shard: Shard, held: Mapping[int, Held]) -> bool:
    said = held.get(shard.shard)
    return said is not None and said.generation == shard.generation and max(said.done, shard.position) < said.read


def _alive_until(state: State, member: str, wait: float) -> int | None:
    # With a margin: each new event wakes long polls, and these shall not write every time.
    lease, wait_ms = LEASE_SECONDS * 1000, wait * 1000
    if state.members.get(member, 0) >= state.now + wait_ms + lease * 2 / 3:
        return None
    return int(state.now + 2 * wait_ms + lease)
