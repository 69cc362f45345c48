"""Members of a group that come, work, die and say so late, in any order: none of the group's events is skipped."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine
from sqlalchemy.engine import Engine

from eventbus import Event, EventType
from eventbus.groups import members
from eventbus.log import log, reader, schema
from eventbus.log.sequencer import Sequencer
from lake.protocol.clock import now_ms
from lake.protocol.events import assignment
from lake.protocol.events.assignment import Held, Shard, State, plan
from lake.protocol.events.filters import Filter
from lake.protocol.events.shards import SHARDS, shard_of
from lake.protocol.events.types import NewEvent, Origin
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import EventGroup, EventsGone, ReadGroupEventsRequest
from lake.subscriptions.thrift_group import ThriftMember
from metastore import api
from metastore.api.methods import HANDLERS, Call
from metastore.api.session import Session
from metastore.services.access.caller import Caller
from metastore.services.subscriptions import log_reader
from metastore.services.subscriptions.groups import EventMembers
from metastore.services.subscriptions.log_reader import EventReads
from metastore.store import Database
from tests.support.postgres import Postgres

TABLES = 12


class Server:
    """The calls of the event log without a network, in the place of a subscription's `ThriftCalls`."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.loses_an_answer = False

    def call(self, ask: Callable[[Any], Any], **_: float) -> Any:
        if self.loses_an_answer:  # the client asks again
            self.loses_an_answer = False
            ask(self)
        return ask(self)

    try_once = call

    def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: HANDLERS[name].function(self._call, *arguments)


class Log:
    """A log of events in a real Postgres."""

    def __init__(self, engine: Engine, server: Server) -> None:
        self._engine = engine
        self.server = server
        self._groups = 0

    def append(self, table: str | None, database: str = "d", catalog: str = "hive") -> None:
        new = NewEvent(EventType.ALTER_TABLE, 1, Origin(), catalog, database, table, 0, {})
        with self._engine.begin() as tx:
            log.append(tx, [new])

    def last(self) -> int:
        with self._engine.begin() as tx:
            log.number(tx)
            return log.positions(tx).last

    def after(self, number: int) -> list[Event]:
        with self._engine.connect() as tx:
            return log.read(tx, number, 10_000)

    def trim(self, keep: int) -> None:
        with self._engine.begin() as tx:
            log.trim(tx, older_than=log.FOREVER, keep=keep, limit=10_000)

    def trimmed_by_age(self) -> int:
        """Removes all that no group waits for; the last that is gone."""
        with self._engine.begin() as tx:
            log.trim(tx, older_than=timedelta(0), keep=10**9, limit=10_000)
            return log.positions(tx).trimmed

    def state(self, group: str) -> State:
        with self._engine.connect() as tx:
            found = members.load(tx, group)
        assert found is not None
        return found

    def group(self, name: str) -> EventGroup:
        [found] = [each for each in self.server.lake_event_groups() if each.name == name]
        assert isinstance(found, EventGroup)
        return found

    def silence(self, member: "Member") -> None:
        """So much time passes that the member is taken for dead."""
        self._let_live(member, until=0)

    def await_sign(self, member: "Member") -> None:
        """So much time passes that the member's next sign of life is due: with it positions of shards are kept that
        had no events."""
        self._let_live(member, until=now_ms() + 60_000)

    def _let_live(self, member: "Member", until: int) -> None:
        table = schema.event_group_members
        with self._engine.begin() as tx:
            tx.execute(table.update().where(table.c.name == member.name).values(alive_until=until))

    def new_group(self) -> str:
        self._groups += 1
        return f"group-{self._groups}"

    def only_group(self) -> str:
        """A new group; there is no other one for which events are kept."""
        with self._engine.begin() as tx:
            tx.execute(schema.event_groups.delete())
        return self.new_group()

    def member(self, group: str, start: Any = "latest") -> "Member":
        return Member(self, group, start)


@dataclass(eq=False)
class Member:
    """A program that follows a group's events. What it was given and has not handled waits in `given`."""

    log: Log
    group: str
    start: Any = "latest"
    given: list[Event] = field(default_factory=list)
    handled: Event | None = None

    def __post_init__(self) -> None:
        self.events = ThriftMember(["thrift://nowhere"], (), (), self.group, self.start)
        self.events._calls = self.log.server  # type: ignore[assignment]
        # It gives no signs of life but by its calls.
        self.events._living = SimpleNamespace()  # type: ignore[assignment]

    @property
    def name(self) -> str:
        return self.events._member

    @property
    def shards(self) -> set[int]:
        return {each.shard for each in self.log.state(self.group).shards if each.owner == self.name}

    def poll(self) -> list[Event]:
        found = self.events.poll()
        self.given += found
        return found


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    postgres = Postgres(tmp_path_factory.mktemp("members") / "data")
    with postgres.fresh_database() as url:
        engine = create_engine(url)
        with engine.begin() as tx:
            schema.metadata.create_all(tx)
            tx.execute(schema.event_log.insert().values(id=1))
        database = Database(url)
        sequencer = Sequencer(database.at_once)
        services: Any = SimpleNamespace(
            event_reads=EventReads(database, sequencer), event_members=EventMembers(database, sequencer)
        )
        api.load()
        yield Log(engine, Server(Call(Session("test", Caller(None)), services)))
        database.close()
        engine.dispose()
    postgres.close()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is taken for dead because the machine is slow."""
    monkeypatch.setattr(assignment, "LEASE_SECONDS", 600.0)
    monkeypatch.setattr(members, "LEASE_SECONDS", 600.0)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member is given few events at once."""
    monkeypatch.setattr(log_reader, "MAX_EVENTS", 3)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.integers(0, TABLES)),
        st.tuples(st.sampled_from(["poll", "work", "acknowledge"]), st.integers(0, 3)),
        st.tuples(st.sampled_from(["join", "die", "stall", "leave", "lose an answer"]), st.integers(0, 3)),
    ),
    min_size=10,
    max_size=70,
)


@pytest.mark.long
@example([("change", 0)] * 7 + [("join", 0), ("stall", 0), ("poll", 1)])
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_none_is_skipped_whoever_dies(events: Log, few: None, steps: list[tuple[str, int]]) -> None:
    group, start = events.new_group(), events.last()
    working = [events.member(group, start)]
    working[0].poll()
    handled: list[Event] = []

    def change(number: int) -> None:
        events.append(f"t{number}" if number else None)

    def join(_: int) -> None:
        if len(working) < 4:
            working.append(events.member(group, start))

    def poll(member: Member) -> None:
        member.poll()

    def work(member: Member) -> None:
        """Handles one event."""
        if member.given:
            member.handled = member.given.pop(0)
            handled.append(member.handled)

    def acknowledge(member: Member) -> None:
        if member.handled is not None:
            member.events.acknowledge(member.handled)

    def die(member: Member) -> None:
        working.remove(member)
        events.silence(member)

    def stall(member: Member) -> None:
        """It comes back later, and knows nothing of what happened."""
        events.silence(member)

    def leave(member: Member) -> None:
        working.remove(member)
        member.events.close()

    def lose_an_answer(_: int) -> None:
        events.server.loses_an_answer = True

    anybody: dict[str, Callable[[int], None]] = {"change": change, "join": join, "lose an answer": lose_an_answer}
    somebody: dict[str, Callable[[Member], None]] = {
        **{"poll": poll, "work": work, "acknowledge": acknowledge, "die": die, "stall": stall, "leave": leave}
    }

    def check() -> None:
        """What is said to be dealt with was handled."""
        known = {event.number for event in handled}
        positions = {each.shard: each.position for each in events.state(group).shards}
        for event in committed():
            if event.number <= positions[shard_of(event.catalog, event.database, event.table)]:
                assert event.number in known

    def committed() -> list[Event]:
        events.last()
        return events.after(start)

    for step, number in steps:
        if step in anybody:
            anybody[step](number)
        elif working:
            somebody[step](working[number % len(working)])
        check()

    # Those who are left, and one more, do the rest.
    working.append(events.member(group, start))
    for _ in range(4):
        for member in working:
            while member.poll() or member.given:
                while member.given:
                    work(member)
                    acknowledge(member)
            check()
    assert sorted(len(member.shards) for member in working) == sorted(
        SHARDS // len(working) + (rank < SHARDS % len(working)) for rank in range(len(working))
    )
    for _ in range(2):  # what one lets go of with its sign of life, another moves the position past with its own
        for member in working:
            events.await_sign(member)
            member.poll()
    assert events.group(group).position == events.last()
    assert events.group(group).members == len(working)
    first_handled: dict[str | None, list[int]] = {}
    for event in handled:
        of_table = first_handled.setdefault(event.table, [])
        if event.number not in of_table:
            of_table.append(event.number)
    assert sorted(number for numbers in first_handled.values() for number in numbers) == [
        event.number for event in committed()
    ]
    for numbers in first_handled.values():
        assert numbers == sorted(numbers)
    for member in working:
        member.events.close()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([None, *"abcd"]), st.booleans()), min_size=SHARDS, max_size=SHARDS),
    st.dictionaries(st.sampled_from("abcde"), st.booleans()),
)
def test_shares_become_even(owners: list[tuple[str | None, bool]], lives: dict[str, bool]) -> None:
    """Whatever was before: nobody takes what a living member has, and nobody lets go of what it works on."""
    shards = [Shard(number, 0, 0, owner) for number, (owner, _) in enumerate(owners)]
    busy = {number for number, (_, works) in enumerate(owners) if works}
    until = {name: 10_000 if lives_on else 1 for name, lives_on in lives.items()}
    living = sorted({"a", *(name for name, lives_on in lives.items() if lives_on)})
    state = State(shards, until, 5_000)
    for turn in range(6):
        for member in living:
            held = {each.shard: Held(0, 7 if each.shard in busy else 0, 0) for each in state.shards}
            changes = plan(state, member, held, 0.0)
            if turn == 0 and member == "a":
                assert not any(shards[each].owner in living for each in changes.taken)
                assert busy.isdisjoint(changes.freed)
            owner = dict.fromkeys(changes.freed, None) | dict.fromkeys(changes.taken, member)
            shards = [each._replace(owner=owner.get(each.shard, each.owner)) for each in state.shards]
            kept = {name: until for name, until in state.members.items() if name not in changes.dead}
            state = State(shards, {**kept, member: 10_000}, 5_000)
        if turn == 2:
            busy = set()
    counts = [sum(each.owner == member for each in state.shards) for member in living]
    assert sum(counts) == SHARDS
    assert max(counts) - min(counts) <= 1


def test_one_that_acknowledges_late_moves_nothing(events: Log) -> None:
    group = events.new_group()
    slow = events.member(group)
    slow.poll()
    for _ in range(3):
        events.append("t")
    given = slow.poll()
    slow.events.acknowledge(given[0])
    events.silence(slow)
    heir = events.member(group)
    heir.poll()
    assert [event.number for event in heir.given] == [event.number for event in given[1:]]
    slow.events.acknowledge(given[2])
    assert events.group(group).position == given[0].number
    heir.events.acknowledge(given[1])
    assert events.group(group).position == given[1].number


def test_what_was_lost_is_not_handed_out(events: Log) -> None:
    """A member that learns, before it polls again, that others took over drops what they have."""
    group = events.new_group()
    slow = events.member(group)
    slow.poll()
    for number in range(3):
        events.append(f"t{number}")
    waiting = slow.events
    waiting._pending = waiting.poll()[::-1]
    assert next(waiting).table == "t0"
    events.silence(slow)
    heir = events.member(group)
    heir.poll()
    waiting.acknowledge()
    assert waiting._pending == []
    assert [event.table for event in heir.given] == ["t0", "t1", "t2"]


def test_a_group_of_before_goes_on_where_it_stood(events: Log) -> None:
    """Its position was kept as a whole."""
    group = events.new_group()
    for _ in range(3):
        events.append("t")
    last = events.last()
    events.server.lake_acknowledge_events(group, last - 2, False)
    assert (events.group(group).position, events.group(group).members) == (last - 2, None)
    member = events.member(group, "earliest")
    assert [event.number for event in member.poll()] == [last - 1, last]
    # A program with an older version of this library acknowledges for the group as a whole.
    events.server.lake_acknowledge_events(group, last - 1, False)
    assert (events.group(group).position, events.group(group).members) == (last - 1, 1)


def test_a_group_that_is_put_back_begins_anew(events: Log) -> None:
    group = events.new_group()
    member = events.member(group)
    member.poll()
    for _ in range(3):
        events.append("t")
    member.poll()
    member.events.acknowledge()
    events.server.lake_acknowledge_events(group, events.last() - 2, True)
    assert events.group(group).position == events.last() - 2
    assert [event.number for event in member.poll()] == [events.last() - 1, events.last()]


def test_only_what_was_seen_is_acknowledged(events: Log) -> None:
    """By somebody who takes events one by one, and names none."""
    group = events.new_group()
    member = events.member(group)
    member.poll()
    for _ in range(3):
        events.append("t")
    member.events._pending = member.events.poll()[::-1]
    first = next(member.events)
    member.events.acknowledge()
    assert events.group(group).position == first.number


def test_retention_waits_for_the_slowest_shard(events: Log) -> None:
    """Events that a group has to deal with are not removed by age; what it has passed over is not waited for."""
    group = events.only_group()
    member = events.member(group)
    member.poll()
    for number in range(8):
        events.append(f"t{number}")
    given = member.poll()
    member.events.acknowledge(given[3])
    assert events.trimmed_by_age() == given[3].number
    member.events.acknowledge()
    assert events.trimmed_by_age() == events.last()
    events.append("t")
    other = events.member(group)
    other.poll()
    member.poll()
    other.poll()
    member.events.acknowledge()
    other.events.acknowledge()
    assert events.trimmed_by_age() == events.last()


def test_events_that_are_gone(events: Log) -> None:
    """Whoever gets the error says from where the group goes on."""
    group = events.only_group()
    member = events.member(group)
    member.poll()
    for number in range(8):
        events.append(f"t{number}")
    last = events.last()
    events.trim(keep=3)
    for _ in range(2):
        with pytest.raises(EventsGone, match=f"the oldest is {last - 2}") as gone:
            member.poll()
    assert gone.value.oldest is not None
    member.events.acknowledge(gone.value.oldest - 1)
    assert [event.number for event in member.poll()] == [last - 2, last - 1, last]
    member.events.acknowledge()
    assert events.group(group).position == last


def test_shards_are_the_same_in_postgres(events: Log) -> None:
    before = events.last()
    for name in ("t", "T", "größe", "日本語", "a.b", "", "x" * 300, None):
        events.append(name)
        events.append(name, "ü", "spark")
    last = events.last()
    seen = []
    for shard in range(SHARDS):
        with events._engine.connect().execution_options(isolation_level="REPEATABLE READ") as tx:
            page, upto = reader.read_shards(tx, {shard: before}, Filter(), limit=100, max_bytes=1 << 20)
        assert upto == {shard: last}
        assert {shard_of(event.catalog, event.database, event.table) for event in page.events} <= {shard}
        seen += [event.number for event in page.events]
    assert sorted(seen) == list(range(before + 1, last + 1))


@pytest.mark.parametrize(
    ("group", "member", "message"),
    [
        ("redis", "m", "redis is the name of an outlet"),
        ("webhook:audit", "m", "is the name of an outlet"),
        ("", "m", "is no valid name of a group"),
        ("g", "no spaces", "is no valid name of a member"),
        ("g", "m" * 65, "is no valid name of a member"),
    ],
)
def test_names_that_are_none(events: Log, group: str, member: str, message: str) -> None:
    with pytest.raises(InvalidOperationException, match=message):
        events.server.lake_read_group_events(ReadGroupEventsRequest(group=group, member=member, start=0))


def test_a_position_that_is_none(events: Log) -> None:
    for start in (-1, events.last() + 1):
        with pytest.raises(InvalidOperationException, match=f"there is no event {start}"):
            events.member(events.new_group(), start).poll()
    group = events.new_group()
    member = events.member(group)
    member.poll()
    ahead = member.events._positions(member.events._shards)
    for each in ahead:
        each.read = each.done = events.last() + 1
    with pytest.raises(InvalidOperationException, match="there is no event"):
        events.server.lake_acknowledge_shards(group, member.name, ahead)


def test_a_group_has_so_many_members(events: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for whom there is no shard stand by."""
    monkeypatch.setattr("metastore.services.subscriptions.groups.MAX_MEMBERS", SHARDS + 1)
    group = events.new_group()
    many = [events.member(group) for _ in range(SHARDS + 1)]
    for _ in range(2):
        for member in many:
            member.poll()
    assert sorted(len(member.shards) for member in many) == [0, *[1] * SHARDS]
    with pytest.raises(InvalidOperationException, match=f"has {SHARDS + 1} members already"):
        events.member(group).poll()
    working = next(member for member in many if member.shards)
    working.events.close()
    for member in many:
        if member is not working:
            member.poll()
    assert sorted(len(member.shards) for member in many if member is not working) == [1] * SHARDS


def test_a_lone_member_writes_nothing_while_it_waits(events: Log) -> None:
    """New events wake its long poll again and again: that must not cost more than it does without a group."""
    group = events.new_group()
    lone = events.member(group)
    lone.poll()
    request = ReadGroupEventsRequest(
        group=group,
        member=lone.name,
        start=0,
        shards=lone.events._positions(lone.events._shards),
        members=1,
        tables=["no.table"],
        maxWait=30_000,
    )
    events.server.lake_read_group_events(request)
    kept = events.state(group)
    for _ in range(5):
        events.append("t")
        events.server.lake_read_group_events(request)
    assert (events.state(group).shards, events.state(group).members) == (kept.shards, kept.members)
