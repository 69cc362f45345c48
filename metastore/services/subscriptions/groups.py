"""Calls of the members of a group: read events, acknowledge, leave.

Shards are assigned by the rules of `lake.protocol.events.assignment`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eventbus.groups import members
from eventbus.log import epochs, log, reader
from eventbus.log.reader import Page
from eventbus.log.sequencer import Sequencer
from lake.protocol.events import assignment
from lake.protocol.events.assignment import Held, Plan, State
from lake.protocol.events.filters import Filter
from lake.protocol.events.types import Event
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import EventsGone, ReadGroupEventsRequest, ShardPosition
from metastore.services.subscriptions.log_reader import check_history, filter_of, group_name, limit_of, restored
from metastore.services.subscriptions.shown_pages import MAX_BYTES, MAX_EVENTS, Shown, gather
from metastore.store import Database
from metastore.store.engine.database import Transaction

MAX_MEMBERS = 256
"""Members of one group."""

_MEMBER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_OF_OUTLETS = re.compile(r"redis|kafka|(webhook|listener):.*")


class GroupPage(NamedTuple):
    """The result of a member's read.

    `held`: its shards with their positions after these events. `members`: how many there are. `last`: the number of the
    log's last event. `history`: the log's identity and epoch.
    """

    events: list[Event]
    held: dict[int, Held]
    members: int
    last: int
    history: str


class EventMembers:
    """The calls of groups' members. All raise InvalidOperationException for an invalid name of a group or member."""

    def __init__(self, database: Database, sequencer: Sequencer) -> None:
        self._database = database
        self._sequencer = sequencer

    def read(self, request: ReadGroupEventsRequest, wait: float, shown: Shown | None = None) -> GroupPage:
        """The next events of a member's shards, after it has been assigned its share of them.

        `wait`: how long the member waits if there are none, in seconds. `shown`: says which events the member sees;
        None if it sees all. Raises EventsGone if events were trimmed, and after a restore of the log, until the whole
        group is acknowledged. Raises InvalidOperationException for an invalid filter, a number that doesn't exist yet,
        and too many members.
        """
        group, member = _group(request.group), _member(request.member)
        wanted, limit = filter_of(request.tables, request.types), limit_of(request.limit)
        said = _held(request.shards)
        reached = max((each.read for each in said.values()), default=0)
        self._sequencer.catch_up()
        with self._database.read() as tx:
            check_history(tx, request.history, reached)
            state = members.load(tx, group)
            if epochs.first_unknown(tx, group) is not None:
                raise restored(tx, min((each.position for each in state.shards), default=0) if state else 0)
            plan = None if state is None else assignment.plan(state, member, said, wait)
            if state is not None and plan is not None and plan.changes_nothing:
                share = _share_of(tx, state, member, plan.members, said)
                if shown is None:
                    return _page(tx, share, wanted, limit)
            else:
                share = None
        if share is None:
            with self._database.write() as tx:
                plan = self._share_out(tx, group, member, said, request.start or 0, wait)
            with self._database.read() as tx:
                state = members.load(tx, group)
                assert state is not None
                share = _share_of(tx, state, member, plan.members, said)
                if shown is None:
                    return _page(tx, share, wanted, limit)
        return self._shown_page(share, wanted, limit, shown)

    def _shown_page(self, share: GroupPage, wanted: Filter, limit: int, shown: Shown | None) -> GroupPage:
        """As `_page`, for a member that may not see all events."""
        assert shown is not None
        if not share.held:
            return share

        def read(position: int, upto: int) -> Page:
            after = {shard: max(each.read, position) for shard, each in share.held.items()}
            with self._database.read() as tx:
                return _events(tx, after, wanted, MAX_EVENTS, upto)

        page = gather(read, min(each.read for each in share.held.values()), limit, shown)
        with self._database.read() as tx:
            return _with_events(tx, share, page)

    def acknowledge(
        self, group: str | None, member: str | None, shards: Sequence[ShardPosition] | None, history: str | None = None
    ) -> dict[int, Held]:
        """Stores a member's positions of shards that it still owns. Returns its shards. Counts as a sign of life.

        Raises EventsGone if events that it received are undone: see `read`.
        """
        name, who, said = _group(group), _member(member), _held(shards)
        with self._database.write() as tx:
            check_history(tx, history, max((each.read for each in said.values()), default=0))
            return _acknowledge(tx, name, who, said)

    def leave(
        self, group: str | None, member: str | None, shards: Sequence[ShardPosition] | None, history: str | None = None
    ) -> None:
        """Stores a member's positions, then removes it. Raises EventsGone as `acknowledge` does."""
        name, who, said = _group(group), _member(member), _held(shards)
        with self._database.write() as tx:
            check_history(tx, history, max((each.read for each in said.values()), default=0))
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
        plan = assignment.plan(state, member, said, wait)
        if plan.joins and plan.members > MAX_MEMBERS:
            raise InvalidOperationException(f"the group {group} has {MAX_MEMBERS} members already")
        for each in said.values():
            _check(each.done, last)
        # If no event remains to be acknowledged, the position follows what was read.
        members.move(tx, group, said)
        members.carry_out(tx, group, member, plan)
        return plan


def _share_of(tx: Transaction, state: State, member: str, count: int, said: Mapping[int, Held]) -> GroupPage:
    """What a member holds, without events. `said`: what the member says that it holds."""
    held = {}
    for each in state.shards:
        if each.owner == member:
            mine = said.get(each.shard)
            if mine is None or mine.generation != each.generation:
                mine = Held(each.generation, each.position, each.position)
            held[each.shard] = mine._replace(read=max(mine.read, each.position), done=max(mine.done, each.position))
    last = log.positions(tx).last
    _check(max((each.read for each in held.values()), default=0), last)
    return GroupPage([], held, count, last, epochs.text_of(tx, last))


def _page(tx: Transaction, share: GroupPage, wanted: Filter, limit: int) -> GroupPage:
    """The next events of a member's shards. Raises EventsGone if events were trimmed."""
    if not share.held:
        return share
    page = _events(tx, {shard: each.read for shard, each in share.held.items()}, wanted, limit)
    return _with_events(tx, share, page)


def _events(tx: Transaction, positions: Mapping[int, int], wanted: Filter, limit: int, upto: int | None = None) -> Page:
    """Raises EventsGone if events were trimmed."""
    try:
        return reader.read_shards(tx, positions, wanted, limit=limit, max_bytes=MAX_BYTES, upto=upto)[0]
    except log.Trimmed as gone:
        raise EventsGone(str(gone), gone.oldest) from None


def _with_events(tx: Transaction, share: GroupPage, page: Page) -> GroupPage:
    """A member's share, with the events of a page of its shards."""
    held = {shard: each._replace(read=max(each.read, page.position)) for shard, each in share.held.items()}
    return share._replace(events=page.events, held=held, last=page.last, history=epochs.text_of(tx, page.last))


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
        found[each.shard or 0] = Held(each.generation or 0, read, min(each.done or 0, read))
    return found


def _group(name: str | None) -> str:
    found = group_name(name)
    if _OF_OUTLETS.fullmatch(found):
        raise InvalidOperationException(f"{found} is the name of an outlet: choose another name for the group")
    return found


def _member(name: str | None) -> str:
    if not name or not _MEMBER.fullmatch(name):
        raise InvalidOperationException(
            f"{name!r} is no valid name of a member: use A-Z a-z 0-9 _ . -, at most 64 characters"
        )
    return name
