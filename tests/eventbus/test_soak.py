"""Writers on two servers, subscribers of every kind, and whatever there is killed at random moments.

At the end each subscriber has what was committed: all of it, nothing else, in order. What was committed is known in
three ways that must agree: by the log, by what the writers were answered, and by the tables as they are.
"""

import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NotificationEventRequest
from lake.protocol.lake import EventRecord
from tests.crash import processes
from tests.crash.conftest import seed
from tests.eventbus import soak_followers
from tests.eventbus.changes import first_seen, log_of
from tests.eventbus.soak_followers import DIRECTORY, GROUP, Follower, SeenEvent, noted, seen_event, seen_notification
from tests.eventbus.soak_writers import MARK, SHARED, SHARED_TABLES, Censor, Outcome, Writer, mark_of
from tests.eventbus.test_streams import numbers, state
from tests.support import builders
from tests.support.postgres import Postgres
from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer

__all__ = ["seed"]

WRITERS = 8
SETTLED_SECONDS = 120.0
LISTENER = f"{soak_followers.__name__}:{soak_followers.Noting.__name__}"
OUTLETS = ["redis", "webhook:hook", f"listener:{LISTENER}"]


class Dispatcher:
    """`metastore outlets run` with all outlets; it stands by, or delivers when the server's own outlets died."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.log = directory / "dispatcher.log"
        self._command = [sys.executable, "-m", "lake.cli", "outlets", "run", *options]
        self._environment = {**os.environ, DIRECTORY: str(directory)}
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns when it delivers: until then it gives up if the database isn't there."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert said.startswith("metastore delivers"), f"{said}\n{self.log.read_text()[-4000:]}"

    def kill(self, *, alone: bool = False) -> None:
        """With its outlets' processes, or `alone`: they end by themselves."""
        assert self._process is not None
        assert self._process.poll() is None, f"the dispatcher ended:\n{self.log.read_text()[-4000:]}"
        if alone:
            self._process.kill()
        else:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(30)


@dataclass
class World:
    """All that runs but the writers."""

    directory: Path
    postgres: Postgres
    redis: RedisServer
    servers: list[MetastoreServer]
    dispatcher: Dispatcher
    followers: list[Follower]

    def connect(self) -> ThriftClient:
        return ThriftClient(self.servers[0].host, self.servers[0].port)


@contextmanager
def world(directory: Path, members: int) -> Iterator[World]:
    """`members` of each group; what they got is in one file."""
    with ExitStack() as stack:
        postgres = Postgres(directory / "postgres")
        stack.callback(postgres.close)
        url = postgres.url("postgres")
        redis = stack.enter_context(RedisServer(directory / "redis"))
        hook = soak_followers.free_port()
        outlets = ("--redis-url", redis.url, "--event-webhooks", f"hook=http://127.0.0.1:{hook}/")
        outlets += ("--event-listeners", LISTENER, "--event-attempts", "1000")
        both = ("--database-url", url, "--warehouse-dir", str(directory / "warehouse"), "--workers", "2")
        both += ("--drain-seconds", "5", "--housekeeping-seconds", "1")
        both += ("--pre-event-listeners", f"{Censor.__module__}:{Censor.__name__}")
        environment = {DIRECTORY: str(directory)}
        servers = [
            MetastoreServer(directory / "one", *both, *outlets, environment=environment),
            MetastoreServer(directory / "two", *both, environment=environment),
        ]
        for server in servers:
            stack.enter_context(server)
        uris = ",".join(server.uri for server in servers)
        with servers[0] as server, ThriftClient(server.host, server.port) as client:
            for name in (SHARED, *(f"w{number}" for number in range(WRITERS))):
                client.create_database(builders.database(name))
            for name in SHARED_TABLES:
                client.create_table(builders.table(SHARED, name, keys=("ds",), parameters={MARK: f"begin-{name}"}))
            yield World(
                directory,
                postgres,
                redis,
                servers,
                stack.enter_context(Dispatcher(directory, "--database-url", url, *outlets)),
                [
                    stack.enter_context(Follower(directory, name, kind, place, str(directory / file)))
                    for name, kind, place, file in (
                        ("alone", "alone", uris, "thrift"),
                        *((f"member-{each}", "member", uris, "thrift-group") for each in range(members)),
                        *((f"redis-member-{each}", "member", redis.url, "redis-group") for each in range(members)),
                        ("receiver", "webhook", str(hook), "webhook"),
                        ("hive-client", "notifications", uris, "notifications"),
                    )
                ],
            )


class Deaths:
    """The ways in which a part of the world dies; it is there again, or comes by itself, when the function returns."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world, self._chance = world, chance
        self.all: list[Callable[[], None]] = [
            *(self.server, self.supervisor, self.worker, self.outlet, self.dispatcher, self.redis, self.postgres),
            *(self.subscriber, self.subscriber, self.several),
        ]

    def server(self) -> None:
        """All its processes."""
        server = self._chance.choice(self._world.servers)
        processes.kill(processes.everything(server))
        self._pause()
        server.start()

    def supervisor(self) -> None:
        """Its children end by themselves."""
        server = self._chance.choice(self._world.servers)
        server_process = psutil.Process(server.pid)
        processes.kill([server_process])
        server.start()

    def worker(self) -> None:
        """Or an outlet of the server; the supervisor starts another."""
        self._kill_some(1, self._chance.choice(self._world.servers).pid)

    def outlet(self) -> None:
        """Two of the processes among which are those that deliver to outlets, or stand by."""
        self._kill_some(2, self._world.servers[0].pid, self._world.dispatcher.pid)

    def dispatcher(self) -> None:
        self._world.dispatcher.kill(alone=self._chance.random() < 0.5)
        self._world.dispatcher.start()

    def redis(self) -> None:
        """It writes what it gets to a file at once (appendonly), and comes back with it."""
        self._world.redis.kill()
        self._pause()
        self._world.redis.start()

    def redis_loses_all(self) -> None:
        """The streams are filled again from the log, and the group begins anew."""
        self._world.redis.lose()
        self._pause()
        self._world.redis.start()

    def postgres(self) -> None:
        self._world.postgres.kill()
        if self._chance.random() < 0.5:
            self.worker()
        self._pause()
        self._world.postgres.start()

    def subscriber(self) -> None:
        follower = self._chance.choice(self._world.followers)
        follower.kill()
        self._pause()
        follower.start()

    def several(self) -> None:
        for die in self._chance.sample([self.worker, self.outlet, self.subscriber, self.redis], 2):
            die()

    def _kill_some(self, count: int, *parents: int) -> None:
        """Children of processes; at times few of them are there."""
        victims = [child for parent in parents for child in psutil.Process(parent).children()]
        processes.kill(self._chance.sample(victims, min(count, len(victims))))

    def _pause(self) -> None:
        time.sleep(self._chance.uniform(0, 1.5))  # a random moment of the work


# -- what must be true afterwards ------------------------------------------------------------------------------


def check_writers(log: list[EventRecord], writers: list[Writer]) -> None:
    """The log has each acknowledged change once, in its writer's order, and none that failed."""
    places: dict[str, list[int]] = defaultdict(list)
    for record in log:
        places[mark_of(record.type or "", record.table, json.loads(record.payload or "{}"))].append(record.number or 0)
    for writer in writers:
        last = 0
        for made in writer.made:
            found = places.pop(made.mark, [])
            if made.outcome is Outcome.FAILED:
                assert found == [], f"{made.mark} failed, but is in the log: {found}"
            elif made.outcome is Outcome.DONE:
                assert len(found) == 1, f"{made.mark} was acknowledged and is in the log so often: {found}"
                assert found[0] > last, f"{made.mark} is at {found[0]}, although it began after {last}"
                last = found[0]
            else:
                assert len(found) <= 1, f"{made.mark} is in the log twice: {found}"
    begin = {f"begin-{name}" for name in SHARED_TABLES}
    begin |= {"CREATE_DATABASE None"}
    assert places.keys() <= begin, f"nobody made {sorted(places.keys() - begin)}"


@dataclass
class Table:
    mark: str
    partitions: dict[str, tuple[str, bool]] = field(default_factory=dict)  # mark and readiness, by name


def replay(log: list[EventRecord]) -> dict[str, Table]:
    """The tables as the log tells of them."""
    tables: dict[str, Table] = {}
    for record in log:
        payload: dict[str, Any] = json.loads(record.payload or "{}")
        name = f"{record.database}.{record.table}"
        match record.type:
            case "CREATE_TABLE":
                tables[name] = Table(payload["after"]["parameters"][MARK])
            case "ALTER_TABLE":
                tables[name] = tables.pop(f"{record.database}.{payload['before']['tableName']}")
                tables[name].mark = payload["after"]["parameters"][MARK]
            case "DROP_TABLE":
                del tables[name]
            case "ADD_PARTITIONS" | "ALTER_PARTITIONS" | "COMMIT_PARTITIONS":
                for each in payload["partitions"]:
                    assert (each["name"] in tables[name].partitions) == (record.type != "ADD_PARTITIONS")
                    tables[name].partitions[each["name"]] = (each["after"]["parameters"][MARK], each["ready"])
            case "DROP_PARTITIONS":
                for each in payload["partitions"]:
                    del tables[name].partitions[each["name"]]
            case other:
                assert other == "CREATE_DATABASE"
    return tables


def observe(client: ThriftClient) -> dict[str, Table]:
    """The tables as they are."""
    tables = {}
    for database in client.get_all_databases():
        for name in client.get_all_tables(database):
            ready = set(client.get_partition_names(database, name, -1))
            found = client.get_partitions(database, f"{name}@includeuncommit", -1)
            tables[f"{database}.{name}"] = Table(
                client.get_table(database, name).parameters[MARK],
                {f"ds={p.values[0]}": (p.parameters[MARK], f"ds={p.values[0]}" in ready) for p in found},
            )
    return tables


def events_of(log: list[EventRecord]) -> list[SeenEvent]:
    return [
        seen_event(
            record.number or 0,
            record.type or "",
            record.catalog,
            record.database,
            record.table,
            json.loads(record.payload or "{}"),
        )
        for record in log
    ]


def notifications_of(client: ThriftClient) -> list[SeenEvent]:
    found: list[SeenEvent] = []
    while page := client.get_next_notification(NotificationEventRequest(len(found), 0)).events:
        found += map(seen_notification, page)
    assert [each.number for each in found] == list(range(1, len(found) + 1))
    return found


def check_told(name: str, found: list[SeenEvent], expected: list[SeenEvent], *, by_table: bool = False) -> None:
    """Everything, nothing else, in the order of the log, or of each table's part of it."""
    different = set(found) - set(expected)
    assert not different, f"{name} got what is not in the log: {sorted(different)[:5]}"
    missing = set(expected) - set(found)
    assert not missing, f"{name} did not get {sorted(missing)[:5]} and in all {len(missing)}"
    first = first_seen([each.number for each in found])
    if not by_table:
        assert first == [each.number for each in expected], f"{name} got events in another order"
        return
    last: dict[str, int] = defaultdict(int)
    tables = {each.number: each.table for each in expected}
    for number in first:
        assert last[tables[number]] < number, f"{name} got {number} after {last[tables[number]]}"
        last[tables[number]] = number


# -- the test --------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Thrift logs each connection that can't be made."""
    caplog.set_level(logging.CRITICAL, "thrift")


def soak(directory: Path, seed: int, seconds: float, *, pause: float, members: int, lose: bool) -> None:
    """`pause` at most between two changes of a writer; with `lose` Redis also comes back empty, once."""
    chance = random.Random(seed)
    with world(directory, members) as here:
        writers = [
            Writer(number, [(server.host, server.port) for server in here.servers], seed + number, pause)
            for number in range(WRITERS)
        ]
        for writer in writers:
            writer.start()
        deaths = Deaths(here, chance)
        to_come = list(deaths.all)
        chance.shuffle(to_come)
        if lose:
            to_come.append(deaths.redis_loses_all)
        began = time.monotonic()
        count = 0
        while to_come or time.monotonic() - began < seconds:
            time.sleep(chance.uniform(0.2, 1.5))  # a random moment of the work
            die = to_come.pop() if to_come else chance.choice(deaths.all)
            print(f"{time.monotonic() - began:.1f} {die.__name__}", flush=True)
            die()
            count += 1
        for writer in writers:
            writer.stop()
        for writer in writers:
            writer.finish()

        with here.connect() as client:
            log = log_of(client)
            assert [record.number for record in log] == list(range(1, len(log) + 1))
            print(told_of(writers), f"{len(log)} events, {count} deaths", flush=True)
            check_writers(log, writers)
            assert observe(client) == replay(log)
            wait_for_all(here, client, len(log))
            notifications = notifications_of(client)
            assert len(notifications) == client.get_current_notificationEventId().eventId
            assert client.lake_dead_events(None) == []
            assert log_of(client) == log
        for follower in here.followers:
            follower.check()
        assert numbers(here.redis) == list(range(1, len(log) + 1))

    events = events_of(log)
    check_told("listener", noted(directory / "listener"), events)
    check_told("webhook", noted(directory / "webhook"), events)
    check_told("thrift", noted(directory / "thrift"), events)
    check_told("the thrift group", noted(directory / "thrift-group"), events, by_table=True)
    check_told("the Redis group", noted(directory / "redis-group"), events, by_table=True)
    check_told("Hive's client", noted(directory / "notifications"), notifications)
    assert sum(writer.done for writer in writers) > 5 * WRITERS


def wait_for_all(here: World, client: ThriftClient, last: int) -> None:
    """Until everybody has what is in the log, or a good while has passed without that."""
    groups = {*OUTLETS, GROUP}
    last_notification = client.get_current_notificationEventId().eventId
    files = dict.fromkeys(("thrift", "thrift-group", "redis-group", "webhook", "listener"), last)
    files["notifications"] = last_notification

    def waited_for() -> list[str]:
        late = [name for name, count in files.items() if len({e.number for e in noted(here.directory / name)}) < count]
        positions = {group.name: group.position for group in client.lake_event_groups()}
        late += [name for name in groups if positions.get(name) != last]
        return late + (["streams"] if state(here.redis).get("position") != str(last) else [])

    deadline = time.monotonic() + SETTLED_SECONDS
    while late := waited_for():
        assert time.monotonic() < deadline, f"still waiting for {late}"
        time.sleep(0.2)


def told_of(writers: list[Writer]) -> str:
    outcomes = [made.outcome.value for writer in writers for made in writer.made]
    counts = ", ".join(f"{outcomes.count(each.value)} {each.value}" for each in Outcome)
    doubts = sum((writer.doubts for writer in writers), start=type(writers[0].doubts)())
    return f"{counts}; {dict(doubts.most_common(8))};"


@pytest.mark.long
def test_half_a_minute(tmp_path: Path, seed: int) -> None:
    soak(tmp_path, seed, 12, pause=0.3, members=1, lose=False)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_five_minutes(tmp_path: Path, seed: int) -> None:
    """Or as long as SOAK_SECONDS says."""
    soak(tmp_path, seed, float(os.environ.get("SOAK_SECONDS", "300")), pause=0.2, members=2, lose=True)
