"""Clients that work while backends and fronts are killed and the file changes: nothing acknowledged is lost or doubled,
no answer is from another place, and no list is short."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from thrift.Thrift import TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import AlreadyExistsException, MetaException, NoSuchObjectException
from tests.metastore.federation.stand_in import StandIn
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.long

PREFIXES = ("a_", "b_")


@pytest.fixture
def backends(tmp_path: Path) -> Iterator[dict[str, MetastoreServer]]:
    servers = {prefix: MetastoreServer(tmp_path / prefix, "--workers", "1") for prefix in PREFIXES}
    for each in servers.values():
        each.start()
        with ThriftClient(each.host, each.port) as client:
            client.create_database(builders.database("d"))
    yield servers
    for each in servers.values():
        each.kill()


class Worker(threading.Thread):
    """Makes and looks at tables under names that tell their place; `kept` were acknowledged, `unclear` may be there."""

    def __init__(self, front: FrontServer, number: int, ended: threading.Event) -> None:
        super().__init__()
        self._front = front
        self._number = number
        self._ended = ended
        self._rng = random.Random(number)
        self.kept: set[tuple[str, str]] = set()
        self.unclear: set[tuple[str, str]] = set()
        self.wrong: list[str] = []
        self.done = 0

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                with ThriftClient(self._front.host, self._front.port, timeout=20) as client:
                    while not self._ended.is_set():
                        self._step(client)
                        self.done += 1
            except (TException, OSError) as error:
                if isinstance(error, NoSuchObjectException):
                    self.wrong.append(f"an outage shown as {error!r}")
                time.sleep(0.05)

    def _step(self, client: ThriftClient) -> None:
        prefix = self._rng.choice(PREFIXES)
        if self._rng.random() < 0.5:
            self._create(client, prefix)
        elif self.kept and self._rng.random() < 0.7:
            prefix, name = self._rng.choice(sorted(self.kept))
            found = client.get_table(f"{prefix}d", name)
            if (found.dbName, found.parameters.get("place")) != (f"{prefix}d", prefix):
                self.wrong.append(f"{prefix}d.{name}: {found}")
        else:
            mine = {name for place, name in self.kept if place == prefix}
            if missing := mine - set(client.get_all_tables(f"{prefix}d")):
                self.wrong.append(f"{prefix}d is short of {missing}")
            if not {"a_d", "b_d"} <= set(client.get_all_databases()):
                self.wrong.append("the list of databases is short")

    def _create(self, client: ThriftClient, prefix: str) -> None:
        name = f"t{self._number}_{len(self.kept) + len(self.unclear)}"
        table = builders.table(f"{prefix}d", name, parameters={"place": prefix})
        self.unclear.add((prefix, name))
        try:
            client.create_table(table)
        except AlreadyExistsException:
            self.wrong.append(f"{prefix}d.{name} was made twice")
        except MetaException as error:
            if "Nothing was done" in str(error):
                self.unclear.discard((prefix, name))
            raise
        self.unclear.discard((prefix, name))
        self.kept.add((prefix, name))


@pytest.mark.parametrize("seed", range(2))
def test_kills(tmp_path: Path, backends: dict[str, MetastoreServer], seed: int) -> None:
    rng = random.Random(seed)
    settings = {
        prefix.strip("_"): f'uris = "{server.uri}"\nprefix = "{prefix}"\npause_seconds = 0.3'
        for prefix, server in backends.items()
    }
    ended = threading.Event()
    with StandIn({}) as other, FrontServer(tmp_path / "front", settings) as front:
        workers = [Worker(front, number, ended) for number in range(6)]
        for each in workers:
            each.start()
        for turn in range(12):
            time.sleep(1)
            kind = rng.choice(["backend", "front", "file"])
            if kind == "file":
                more = {"c": f'uris = "{other.uri}"\nprefix = "c_"'} if turn % 2 else {}
                front.write({**settings, **more}, more='[federation]\nunreachable = "fail"')
                continue
            victim = rng.choice(list(backends.values())) if kind == "backend" else front
            victim.kill()
            time.sleep(rng.random())
            victim.start()
        time.sleep(2)
        ended.set()
        for each in workers:
            each.join(60)
    assert [wrong for each in workers for wrong in each.wrong] == []
    assert sum(each.done for each in workers) > 100
    for prefix, server in backends.items():
        with ThriftClient(server.host, server.port) as client:
            there = set(client.get_all_tables("d"))
            places = {client.get_table("d", name).parameters.get("place") for name in there}
        kept = {name for each in workers for place, name in each.kept if place == prefix}
        unclear = {name for each in workers for place, name in each.unclear if place == prefix}
        assert kept <= there <= kept | unclear
        assert places <= {prefix}
