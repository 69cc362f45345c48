"""The members and shards of groups that read from Redis streams. `assignment` decides what to change.

Of each group there are two hashes. One has the time until which each member counts as alive, in milliseconds by Redis'
clock. The other has the generation and the owner of each shard that ever had one. The generation is a number that grows
with each change of owner. A member may read and acknowledge a shard only while both are unchanged.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

import redis
from redis.client import Pipeline

from lake.protocol.events import assignment
from lake.protocol.events.assignment import Held, Shard, State
from lake.protocol.events.shards import SHARDS

GROUPS = "metastore:events:subscribers"
"""A hash of the groups: after which event each began."""
SEEN = f"{GROUPS}:seen"
"""A hash of the times at which each group was last read: seconds since 1970, by Redis' clock."""

_FENCED = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return {0} end
return {1, redis.call(unpack(ARGV, 3))}
"""


class ShardLost(Exception):
    """The shard has another owner now, or none."""


class Token(NamedTuple):
    """A shard under the generation in which a member was given it."""

    shard: int
    generation: int


def shard_group(group: str, shard: int) -> str:
    """The name of a shard's consumer group."""
    return f"{group}#{shard}/{SHARDS}"


def group_of(name: str) -> str:
    """The group whose shard has a consumer group of that name."""
    return name.rpartition("#")[0]


def keys_of(group: str) -> tuple[str, str]:
    """The hashes of a group's shards and of its members."""
    return f"{GROUPS}:{group}:shards", f"{GROUPS}:{group}:members"


class Membership:
    """One member of a group. May be used by several threads."""

    def __init__(self, client: "redis.Redis", group: str, member: str) -> None:
        self._redis = client
        self._member = member
        self._shards_key, self._members_key = keys_of(group)
        self._fenced = client.register_script(_FENCED)

    def take(self, busy: Collection[Token]) -> list[Token]:
        """Renews the lease, and returns the member's shards. `busy`: shards with events that it hasn't acknowledged."""
        held = {each.shard: Held(each.generation, read=1, done=0) for each in busy}

        def change(pipe: Pipeline) -> list[Token]:
            state = self._state(pipe)
            plan = assignment.plan(state, self._member, held, 0.0)
            pipe.multi()
            if plan.dead:
                pipe.hdel(self._members_key, *plan.dead)
            if plan.alive_until is not None:
                pipe.hset(self._members_key, self._member, str(plan.alive_until))
            freed = self._give(pipe, state.shards, plan.freed, "")
            taken = self._give(pipe, state.shards, plan.taken, self._member)
            mine = {each.shard: each.generation for each in state.shards if each.owner == self._member}
            kept = {shard: generation for shard, generation in mine.items() if shard not in freed}
            return [Token(*each) for each in sorted({**kept, **taken}.items())]

        return cast(list[Token], self._transaction(change))

    def stay(self) -> list[Token]:
        """Renews the member's lease between its reads, and returns its shards. An expired lease is not renewed."""

        def change(pipe: Pipeline) -> list[Token]:
            state = self._state(pipe)
            until = state.now + int(assignment.LEASE_SECONDS * 1000)
            pipe.multi()
            if self._member in state.members:
                pipe.hset(self._members_key, self._member, str(max(until, state.members[self._member])))
            return [Token(each.shard, each.generation) for each in state.shards if each.owner == self._member]

        return cast(list[Token], self._transaction(change))

    def leave(self) -> None:
        """Removes the member and frees its shards."""

        def change(pipe: Pipeline) -> None:
            state = self._state(pipe)
            pipe.multi()
            pipe.hdel(self._members_key, self._member)
            mine = [each.shard for each in state.shards if each.owner == self._member]
            self._give(pipe, state.shards, mine, "")

        self._transaction(change)

    def call(self, token: Token, *command: str | int) -> Any:
        """Executes a command on a shard. Returns Redis' unconverted reply. Raises ShardLost, and redis' errors."""
        answer: Any = self._fenced(
            keys=[self._shards_key],
            args=[token.shard, _written(token.generation, self._member), *command],
        )
        if answer[0] == 0:
            raise ShardLost(f"shard {token.shard} is not this member's any more")
        return answer[1]

    def _transaction(self, change: Any) -> Any:
        return cast(Any, self._redis).transaction(change, self._shards_key, self._members_key, value_from_callable=True)

    def _state(self, pipe: Pipeline) -> State:
        shards = cast(dict[str, str], pipe.hgetall(self._shards_key))
        members = cast(dict[str, str], pipe.hgetall(self._members_key))
        seconds, micros = pipe.time()
        return State(
            [_shard(number, shards.get(str(number))) for number in range(SHARDS)],
            {name: int(until) for name, until in members.items()},
            seconds * 1000 + micros // 1000,
        )

    def _give(self, pipe: Pipeline, shards: Sequence[Shard], some: Sequence[int], owner: str) -> Mapping[int, int]:
        """Gives shards to a member, or to nobody; their new generations."""
        changed = {each.shard: each.generation + 1 for each in shards if each.shard in some}
        if changed:
            pipe.hset(self._shards_key, mapping={str(each): _written(new, owner) for each, new in changed.items()})
        return changed


def _written(generation: int, owner: str) -> str:
    return f"{generation} {owner}"


def _shard(number: int, kept: str | None) -> Shard:
    generation, _, owner = (kept or "0 ").partition(" ")
    return Shard(number, 0, int(generation), owner or None)
