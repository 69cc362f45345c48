"""Who of a group's members has which shards.

A member holds a shard under a tenure, a number that rises whenever the shard changes hands; what it says about the
shard counts under that tenure alone. Every member is entitled to an even share. One that has more lets go of what it
has dealt with, one that has less takes what is free; so a table's events don't change hands while somebody works on
them, unless that member is dead. A member is alive for a while after its last sign of life; a long poll is one for as
long as it lasts. A member that waits alone waits long; who joins it therefore shortens the time for which it counts as
alive, and wakes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eventbus.shards import SHARDS

LEASE_SECONDS = 10.0
"""A member that gives no sign of life for so long is taken for dead."""
LONGEST_POLL = LEASE_SECONDS / 4
"""Seconds for which one of several members may wait for events before it has to give a sign of life."""


class Shard(NamedTuple):
    """One of a group's shards. Up to `position` its events are dealt with."""

    shard: int
    position: int
    tenure: int
    owner: str | None


@dataclass(frozen=True, slots=True)
class State:
    """What is kept about a group. Times in milliseconds, by the database's clock."""

    shards: Sequence[Shard]
    members: Mapping[str, int]
    now: int


class Held(NamedTuple):
    """What a member says about a shard: its events up to `read` were given to it, those up to `done` are dealt with."""

    tenure: int
    read: int
    done: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a member's sign of life changes.

    `members`: how many there are with it. `joins`: it wasn't one before. `alive_until`: None if what is kept is late
    enough.
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
    """What to change when a member asks for events and may wait for `wait` seconds."""
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
    """How many shards the member of a rank, counted from 0, may have."""
    return SHARDS // members + (rank < SHARDS % members)


def _is_busy(shard: Shard, held: Mapping[int, Held]) -> bool:
    said = held.get(shard.shard)
    return said is not None and said.tenure == shard.tenure and max(said.done, shard.position) < said.read


def _alive_until(state: State, member: str, wait: float) -> int | None:
    # With a margin: news wake a long poll again and again, and each time nothing has to be written.
    lease, wait_ms = LEASE_SECONDS * 1000, wait * 1000
    if state.members.get(member, 0) >= state.now + wait_ms + lease * 2 / 3:
        return None
    return int(state.now + 2 * wait_ms + lease)
