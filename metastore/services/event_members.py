"""Reading the event log as one of a group's members, who share its work."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eventbus import log, members, reader, sharing
from eventbus.events import Event
from eventbus.filters import Filter
from eventbus.sequencer import Sequencer
from eventbus.sharing import Held, Plan, State
from metastore.services.event_reads import MAX_BYTES, filter_of, group_name, limit_of
from metastore.store import Database
from metastore.store.database import Transaction
from metastore.wire.hive import InvalidOperationException
from metastore.wire.lake import EventsGone, ReadGroupEventsRequest, ShardPosition

MAX_MEMBERS = 256
"""Of one group."""

_MEMBER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_OF_OUTLETS = re.compile(r"redis|kafka|(webhook|listener):.*")


class GroupPage(NamedTuple):
    """Events for a member, what it holds after them, and how many members there are.

    `as_known`: it holds what it said it does, and there are as many members as it said.
    """

    events: list[Event]
    held: dict[int, Held]
    members: int
    last: int
    as_known: bool


class EventMembers:
    """What members of groups ask of the log. Everything they ask raises InvalidOperationException for bad names."""

    def __init__(self, database: Database, sequencer: Sequencer) -> None:
        self._database = database
        self._sequencer = sequencer

    def read(self, request: ReadGroupEventsRequest, wait: float) -> GroupPage:
        """The next events of the shards that a member holds; before, it is given its share of them.

        It may `wait` for so many seconds if there are none. Raises EventsGone; InvalidOperationException for a filter
        that is none, a number that wasn't given yet, and too many members.
        """
        group, member = _group(request.group), _member(request.member)
        wanted, limit = filter_of(request.tables, request.types), limit_of(request.limit)
        said = _held(request.shards)
        known = said, request.members
        self._sequencer.catch_up()
        with self._database.read() as tx:
            state = members.load(tx, group)
            if state is not None:
                plan = sharing.plan(state, member, said, wait)
                if plan.changes_nothing:
                    return _page(tx, state, member, plan.members, known, wanted, limit)
        with self._database.write() as tx:
            plan = self._share_out(tx, group, member, said, request.start or 0, wait)
        with self._database.read() as tx:
            state = members.load(tx, group)
            assert state is not None
            return _page(tx, state, member, plan.members, known, wanted, limit)

    def acknowledge(
        self, group: str | None, member: str | None, shards: Sequence[ShardPosition] | None
    ) -> dict[int, Held]:
        """Keeps how far a member is with shards that it still holds; what it holds. It is a sign of life, too."""
        name, who, said = _group(group), _member(member), _held(shards)
        with self._database.write() as tx:
            return _acknowledge(tx, name, who, said)

    def leave(self, group: str | None, member: str | None, shards: Sequence[ShardPosition] | None) -> None:
        """A member goes, after it has said how far it is."""
        name, who, said = _group(group), _member(member), _held(shards)
        with self._database.write() as tx:
            members.lock(tx, name)
            _acknowledge(tx, name, who, said)
            members.leave(tx, name, who)

    def _share_out(
        self, tx: Transaction, group: str, member: str, said: Mapping[int, Held], start: int, wait: float
    ) -> Plan:
        members.lock(tx, group)
        state = members.load(tx, group)
        last = log.positions(tx).last
        if state is None:
            _check(start, last)
            members.begin(tx, group, start)
            state = members.load(tx, group)
            assert state is not None
        plan = sharing.plan(state, member, said, wait)
        if plan.joins and plan.members > MAX_MEMBERS:
            raise InvalidOperationException(f"the group {group} has {MAX_MEMBERS} members already")
        for each in said.values():
            _check(each.done, last)
        # Where nothing is left to be acknowledged, the position goes along with what was read.
        members.move(tx, group, said)
        members.carry_out(tx, group, member, plan)
        return plan


def _page(
    tx: Transaction,
    state: State,
    member: str,
    count: int,
    known: tuple[Mapping[int, Held], int | None],
    wanted: Filter,
    limit: int,
) -> GroupPage:
    said, members_said = known
    held = {}
    for each in state.shards:
        if each.owner == member:
            mine = said.get(each.shard)
            if mine is None or mine.tenure != each.tenure:
                mine = Held(each.tenure, each.position, each.position)
            held[each.shard] = mine._replace(read=max(mine.read, each.position), done=max(mine.done, each.position))
    as_known = members_said in (None, count) and {(shard, each.tenure) for shard, each in said.items()} == {
        (shard, each.tenure) for shard, each in held.items()
    }
    if not held:
        return GroupPage([], {}, count, log.positions(tx).last, as_known)
    try:
        page, upto = reader.read_shards(
            tx, {shard: each.read for shard, each in held.items()}, wanted, limit=limit, max_bytes=MAX_BYTES
        )
    except log.Trimmed as gone:
        raise EventsGone(str(gone), gone.oldest) from None
    _check(max(each.read for each in held.values()), page.last)
    return GroupPage(
        page.events,
        {shard: each._replace(read=upto[shard]) for shard, each in held.items()},
        count,
        page.last,
        as_known,
    )


def _acknowledge(tx: Transaction, group: str, member: str, said: Mapping[int, Held]) -> dict[int, Held]:
    members.move(tx, group, said)
    standing = members.standing(tx, group, member)
    if standing.held:
        _check(max((each.done for each in said.values()), default=0), standing.last)
    if standing.needs_sign:
        members.stay(tx, group, member)
    return standing.held


def _check(number: int, last: int) -> None:
    if not 0 <= number <= last:
        raise InvalidOperationException(f"there is no event {number}: the last one is {last}")


def _held(shards: Sequence[ShardPosition] | None) -> dict[int, Held]:
    found = {}
    for each in shards or ():
        read = each.read or 0
        found[each.shard or 0] = Held(each.tenure or 0, read, min(each.done or 0, read))
    return found


def _group(name: str | None) -> str:
    found = group_name(name)
    if _OF_OUTLETS.fullmatch(found):
        raise InvalidOperationException(f"{found} is an outlet's position: a group needs another name")
    return found


def _member(name: str | None) -> str:
    if not name or not _MEMBER.fullmatch(name):
        raise InvalidOperationException(f"{name!r} is no name for a member: A-Z a-z 0-9 _ . -, at most 64")
    return name
