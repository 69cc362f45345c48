"""The merged log while backends and fronts are killed and the file changes: all events, once, in their order."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from thrift.Thrift import TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NotificationEvent, NotificationEventRequest
from tests.metastore.federation.stand_in import LogStandIn
from tests.metastore.federation.test_merged_log import more
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long

PREFIXES = ("a_", "b_")
Told = tuple[str | None, str | None, str | None]


@pytest.fixture
def backends(tmp_path: Path) -> Iterator[dict[str, MetastoreServer]]:
    servers = {prefix: MetastoreServer(tmp_path / prefix, "--workers", "1") for prefix in PREFIXES}
    for each in servers.values():
        each.start()
        with ThriftClient(each.host, each.port) as client:
            client.create_database(builders.database("d"))
            client.create_database(builders.database("hidden"))
    yield servers
    for each in servers.values():
        each.kill()


class Writer(threading.Thread):
    """Makes and drops tables, in the front or at a backend itself."""

    def __init__(self, number: int, fronts: list[FrontServer], backends: dict[str, MetastoreServer]) -> None:
        super().__init__()
        self._number = number
        self._fronts = fronts
        self._backends = backends
        self._rng = random.Random(number)
        self.ended = threading.Event()
        self.done = 0

    def run(self) -> None:
        while not self.ended.is_set():
            prefix = self._rng.choice(PREFIXES)
            direct = self._rng.random() < 0.5
            server = self._backends[prefix] if direct else self._rng.choice(self._fronts)
            name = f"t{self._number}_{self.done}"
            self.done += 1
            try:
                with ThriftClient(server.host, server.port, timeout=10) as client:
                    database = self._rng.choice(["d", "hidden"]) if direct else f"{prefix}d"
                    client.create_table(builders.table(database, name))
                    if self._rng.random() < 0.5:
                        client.drop_table(database, name, False)
            except (TException, OSError):
                time.sleep(0.05)


class Reader(threading.Thread):
    """Reads the merged log at any of the fronts, from the number that it has."""

    def __init__(self, number: int, fronts: list[FrontServer], begin: int) -> None:
        super().__init__()
        self._fronts = fronts
        self._rng = random.Random(100 + number)
        self._begin = begin
        self.ended = threading.Event()
        self.events: list[NotificationEvent] = []
        self.wrong: list[str] = []

    def run(self) -> None:
        while not self.ended.is_set():
            server = self._rng.choice(self._fronts)
            try:
                with ThriftClient(server.host, server.port, timeout=15) as client:
                    for _ in range(self._rng.randrange(1, 20)):
                        self._step(client)
            except (TException, OSError) as error:
                if "lost to this log" in str(error):
                    self.wrong.append(str(error))
                time.sleep(0.05)

    def _step(self, client: ThriftClient) -> None:
        after = self._begin + len(self.events)
        asked = NotificationEventRequest(after, self._rng.choice([None, 1, 7]))
        found = client.get_next_notification(asked).events
        if [each.eventId for each in found] != list(range(after + 1, after + 1 + len(found))):
            self.wrong.append(f"after {after}: {[each.eventId for each in found]}")
        self.events += found
        if not found:
            time.sleep(0.02)


def own_log(server: MetastoreServer, after: int) -> list[NotificationEvent]:
    found: list[NotificationEvent] = []
    with ThriftClient(server.host, server.port) as client:
        while some := client.get_next_notification(NotificationEventRequest(after, 1000)).events:
            found += some
            after = some[-1].eventId
    return found


def told(events: list[NotificationEvent]) -> list[Told]:
    return [(each.eventType, each.dbName, each.tableName) for each in events]


@pytest.mark.parametrize("seed", range(2))
def test_kills(tmp_path: Path, backends: dict[str, MetastoreServer], postgres: Postgres, seed: int) -> None:
    rng = random.Random(seed)
    settings = {
        prefix.strip("_"): f'uris = "{server.uri}"\nprefix = "{prefix}"\nnumber = {number}\npause_seconds = 0.3\n'
        'deny = ["hidden"]\nfollow = true'
        for number, (prefix, server) in enumerate(backends.items(), 1)
    }
    with LogStandIn() as other, postgres.fresh_database(upgraded=True) as url:
        made = [FrontServer(tmp_path / f"front{each}", settings, more=more(url)) for each in range(2)]
        for each in made:
            each.start()
        try:
            _play(rng, made, backends, other, settings, url)
        finally:
            for each in made:
                each.kill()


def _play(
    rng: random.Random,
    fronts: list[FrontServer],
    backends: dict[str, MetastoreServer],
    other: LogStandIn,
    settings: dict[str, str],
    url: str,
) -> None:
    with ThriftClient(fronts[0].host, fronts[0].port) as client:
        begin = client.get_current_notificationEventId().eventId
    before = {prefix: len(own_log(server, 0)) for prefix, server in backends.items()}
    writers = [Writer(number, fronts, backends) for number in range(4)]
    readers = [Reader(number, fronts, begin) for number in range(2)]
    for thread in (*writers, *readers):
        thread.start()
    for turn in range(12):
        time.sleep(1)
        kind = rng.choice(["backend", "front", "file"])
        if kind == "file":
            third = {"c": f'uris = "{other.uri}"\nprefix = "c_"\nnumber = 9\nfollow = true'} if turn % 2 else {}
            for each in fronts:
                each.write({**settings, **third}, more(url))
            continue
        victim = rng.choice(list(backends.values())) if kind == "backend" else rng.choice(fronts)
        victim.kill()
        time.sleep(rng.random())
        victim.start()
    for writer in writers:
        writer.ended.set()
    for writer in writers:
        writer.join(60)
    expected = {}
    for prefix, server in backends.items():
        shown = [each for each in own_log(server, 0)[before[prefix] :] if each.dbName == "d"]
        expected[prefix] = [(type, f"{prefix}d", table) for type, _, table in told(shown)]
    for reader in readers:
        wait_until(lambda: len(reader.events) >= sum(map(len, expected.values())), seconds=30)  # noqa: B023
        reader.ended.set()
        reader.join(60)
        assert reader.wrong == []
        for prefix, theirs in expected.items():
            assert [each for each in told(reader.events) if each[1] == f"{prefix}d"] == theirs
        assert len(reader.events) == sum(map(len, expected.values()))
    assert sum(map(len, expected.values())) > 50
