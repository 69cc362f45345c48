"""Many writers at once: the log has every committed change, without gaps, in an order that respects what came first."""

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, func, select
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool
from thrift.Thrift import TException

from eventbus.log import log, schema
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.events.types import Event, EventType, NewEvent, Origin
from lake.protocol.hive import NotificationEvent, NotificationEventRequest
from lake.protocol.lake import EventRecord, ReadEventsRequest
from tests.support import builders
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer

_UNNUMBERED = select(select(schema.events).where(schema.events.c.number.is_(None)).exists())

WRITERS, ROUNDS = 8, 10


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[MetastoreServer]]:
    """Two servers on one database, each with workers of its own."""
    directory = tmp_path_factory.mktemp("writers")
    postgres = Postgres(directory / "postgres")
    with postgres.fresh_database() as url:
        options = ("--database-url", url, "--warehouse-dir", str(directory / "warehouse"), "--workers", "2")
        with (
            MetastoreServer(directory / "one", *options) as one,
            MetastoreServer(directory / "two", *options) as two,
        ):
            yield [one, two]
    postgres.close()


class Follower(threading.Thread):
    """Reads a log to its end again and again, now from one server, now from the other, until it is stopped."""

    def __init__(self, servers: list[MetastoreServer]) -> None:
        super().__init__()
        self.servers = servers
        self.stopping = threading.Event()
        self.notifications: list[NotificationEvent] = []
        self.events: list[EventRecord] = []
        self.failed: Exception | None = None

    def run(self) -> None:
        try:
            clients = [ThriftClient(each.host, each.port) for each in self.servers]
            turn = final = 0
            while final < 2:
                final += self.stopping.is_set()
                client = clients[turn % 2]
                turn += 1
                while found := client.get_next_notification(
                    NotificationEventRequest(self.notifications[-1].eventId if self.notifications else 0, 7)
                ).events:
                    self.notifications += found
                while found := client.lake_read_events(
                    ReadEventsRequest(after=self.events[-1].number if self.events else 0, limit=5)
                ).events:
                    self.events += found
        except Exception as error:
            self.failed = error


def write(server: MetastoreServer, number: int, done: list[tuple[str, str]], failures: list[Exception]) -> None:
    """Changes of tables of its own and of one that all share, some of which fail; what succeeded is noted."""
    try:
        with ThriftClient(server.host, server.port) as client:
            for turn in range(ROUNDS):
                own = f"own_{number}_{turn}"
                client.create_table(builders.table("d", own, keys=("ds",)))
                done.append(("CREATE_TABLE", own))
                seen = client.get_next_notification(
                    NotificationEventRequest(max(client.get_current_notificationEventId().eventId - 60, 0), 0)
                ).events
                assert ("CREATE_TABLE", own) in [(each.eventType, each.tableName) for each in seen], "not at once"
                client.add_partitions([builders.partition("d", own, str(value)) for value in range(3)])
                done.append(("ADD_PARTITION", own))
                client.alter_partitions("d", own, client.get_partitions("d", own, -1))
                done += [("ALTER_PARTITION", own)] * 3
                try:
                    client.add_partition(builders.partition("d", "shared", str(turn)))
                    done.append(("ADD_PARTITION", f"shared/{turn}"))
                except TException:  # another one was faster
                    pass
                if turn % 2:
                    client.drop_table("d", own, True)
                    done.append(("DROP_TABLE", own))
    except Exception as error:
        failures.append(error)


def test_nobody_misses_a_change(servers: list[MetastoreServer]) -> None:
    with ThriftClient(servers[0].host, servers[0].port) as client:
        client.create_database(builders.database("d"))
        client.create_table(builders.table("d", "shared", keys=("ds",)))
    followers = [Follower(servers), Follower(servers[::-1])]
    done: list[list[tuple[str, str]]] = [[] for _ in range(WRITERS)]
    failures: list[Exception] = []
    writers = [
        threading.Thread(target=write, args=(servers[number % 2], number, done[number], failures))
        for number in range(WRITERS)
    ]
    for thread in (*followers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    for follower in followers:
        follower.stopping.set()
        follower.join()
    assert failures == [] and [each.failed for each in followers] == [None, None]

    one, two = followers
    assert one.notifications == two.notifications and one.events == two.events
    assert [each.eventId for each in one.notifications] == list(range(1, len(one.notifications) + 1))
    assert [each.number for each in one.events] == list(range(1, len(one.events) + 1))

    answer: dict[str, list[str]] = defaultdict(list)
    for each in one.notifications:
        name = each.tableName or ""
        if name == "shared" and each.eventType == "ADD_PARTITION":
            [values] = json.loads(each.message)["partitions"]
            name = f"shared/{values['ds']}"
        answer[name].append(each.eventType)
    expected: dict[str, list[str]] = defaultdict(list)
    expected[""], expected["shared"] = ["CREATE_DATABASE"], ["CREATE_TABLE"]
    for writer in done:
        for kind, name in writer:
            expected[name].append(kind)
    assert answer == expected
    assert len([name for name in answer if name.startswith("shared/")]) == ROUNDS


# --- the sequencer alone, transactions interleaved at random --------------------------------------------------


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    postgres = Postgres(tmp_path_factory.mktemp("sequencer") / "data")
    with postgres.fresh_database() as url:
        made = create_engine(url, poolclass=NullPool)
        with made.begin() as tx:
            schema.metadata.create_all(tx)
            tx.execute(schema.event_log.insert().values(id=1))
        yield made
        made.dispose()
    postgres.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["append", "commit", "abort"]), st.integers(0, 3)),
        st.tuples(st.sampled_from(["number", "read", "trim"]), st.just(0)),
    ),
    min_size=5,
    max_size=40,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_any_order_of_commits(engine: Engine, steps: list[tuple[str, int]]) -> None:
    """A reader that goes on from the last number it saw has, in the end, every committed event once."""
    with engine.connect() as reading:
        start = log.positions(reading)
        reading.rollback()
    open_ones: dict[int, tuple[Connection, list[str]]] = {}
    committed: list[list[str]] = []
    seen: list[Event] = []
    count = 0

    def number() -> None:
        with engine.begin() as tx:
            log.number(tx)

    def read() -> None:
        with engine.connect() as tx:
            seen.extend(log.read(tx, seen[-1].number if seen else start.last, 1000))

    try:
        for step, which in [*steps, ("number", 0), ("read", 0)]:
            if step == "append":
                connection, names = open_ones.setdefault(which, (engine.connect(), []))
                names.append(f"t{count}")
                new = _event(names[-1], count % 3)
                if count % 2:
                    log.append(connection, [new])
                else:
                    log.append_with_commit(connection, new)
                count += 1
            elif step in ("commit", "abort") and which in open_ones:
                connection, names = open_ones.pop(which)
                (connection.commit if step == "commit" else connection.rollback)()
                connection.close()
                if step == "commit":
                    committed.append(names)
                    with engine.connect() as tx:
                        assert tx.execute(_UNNUMBERED).scalar_one()
            elif step == "number":
                number()
            elif step == "read":
                read()
            elif step == "trim":
                # What the reader has not seen yet is kept for it.
                with engine.begin() as tx:
                    kept = log.positions(tx).last - (seen[-1].number if seen else start.last)
                    log.trim(tx, older_than=log.FOREVER, keep=kept, limit=3)
    finally:
        for connection, _ in open_ones.values():
            connection.close()

    assert [each.number for each in seen] == list(range(start.last + 1, start.last + 1 + len(seen)))
    names = [each.table or "" for each in seen]
    assert sorted(names) == sorted(name for group in committed for name in group)
    for group in committed:  # of one transaction, in its order
        assert [name for name in names if name in group] == group
    following = start.last_notification + 1
    for event in seen:
        assert event.first_notification == following
        following += event.notifications
    with engine.connect() as tx:
        # Earlier examples left events in the log, too.
        left = [event.number for event in log.read_notifications(tx, 0) if event.number > start.last]
        assert left == [each.number for each in seen if each.notifications and each.number > log.positions(tx).trimmed]


def _event(table: str, notifications: int) -> NewEvent:
    return NewEvent(EventType.CREATE_TABLE, 1, Origin(), "hive", "d", table, notifications, {"version": 1})


def test_old_events_are_removed_in_order(engine: Engine) -> None:
    """By age unless a group waits for them, by count whoever waits; a younger event keeps what stands before it."""

    def trim(older_than: timedelta, keep: int, limit: int = 100) -> int:
        with engine.begin() as tx:
            return log.trim(tx, older_than=older_than, keep=keep, limit=limit)

    day = timedelta(days=1)
    trim(log.FOREVER, 0, 1000)
    with engine.begin() as tx:
        log.append(tx, 7 * [_event("t", 2)])
    with engine.begin() as tx:
        log.number(tx)
        last = log.positions(tx).last
        for place, old in enumerate([9, 8, 1, 7, 6, 5, 1]):
            tx.execute(
                schema.events.update()
                .where(schema.events.c.number == last - 6 + place)
                .values(recorded_at=func.clock_timestamp() - old * day)
            )
        tx.execute(schema.event_groups.insert().values(name="g", position=last - 6, updated_at=0))
    assert trim(2 * day, 100) == 1  # the group has read one
    with engine.begin() as tx:
        tx.execute(schema.event_groups.delete())
    assert trim(2 * day, 100) == 1  # the third one is young
    assert [trim(log.FOREVER, 2, limit=2) for _ in range(3)] == [2, 1, 0]
    with engine.connect() as tx:
        now = log.positions(tx)
        assert (now.last - now.trimmed, now.last_notification - now.trimmed_notification) == (2, 4)
        assert [event.number for event in log.read(tx, now.trimmed, 10)] == [last - 1, last]
        with pytest.raises(log.Trimmed):
            log.read(tx, now.trimmed - 1, 10)
