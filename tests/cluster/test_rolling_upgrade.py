"""Two versions side by side, of which the newer one has changed the schema."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.thrift_client import ThriftClient
from metastore.store import migrations
from tests.cluster.conftest import Prepare
from tests.cluster.next_version import NextVersion
from tests.crash.storm import Storm
from tests.support.command import complaint, output
from tests.support.server import MetastoreServer, ServerDidNotStart
from tests.support.waiting import wait_until


@pytest.mark.long
def test_each_server_in_turn_under_load(prepare: Prepare, tmp_path: Path, postgres_url: str) -> None:
    new = NextVersion(tmp_path / "next", compatible=True)
    old = prepare("one").start()
    running: list[MetastoreServer] = [old]

    def connect() -> ThriftClient:
        """To any that is running, as with several URIs."""
        for server in random.sample(running, len(running)):
            try:
                return ThriftClient(server.host, server.port, timeout=30)
            except TTransportException:
                continue
        raise TTransportException(message="none is running")

    storm = Storm(connect, tmp_path / "warehouse", seed=1, persistent=True)

    def goes_on() -> None:
        before = storm.acknowledged
        wait_until(lambda: storm.acknowledged > before + 10, 60, "the storm goes on")

    storm.start()
    goes_on()
    running.append(prepare("two", environment=new.environment).start())
    assert migrations.current(postgres_url) == new.revision
    goes_on()
    assert old.stop() == 0
    old.start()  # of this version, with the schema of the next one
    goes_on()
    verdict = f"newer than this version's {migrations.head()}, which can work with it"
    assert output("db", "current", "--database-url", postgres_url) == f"{new.revision} ({verdict})\n"
    running.remove(old)
    assert old.stop() == 0
    goes_on()
    storm.stop()
    storm.settle()


@pytest.mark.long
def test_one_that_would_break_running_servers(prepare: Prepare, tmp_path: Path, postgres_url: str) -> None:
    new = NextVersion(tmp_path / "next", compatible=False)
    old = prepare("one").start()
    upgrade = ("db", "upgrade", "--database-url", postgres_url)
    refusal = complaint(*upgrade, **new.environment)
    assert f"can't work with the schema of revision {new.revision}: local ({migrations.head()})" in refusal
    assert "Stop them first" in refusal
    with ThriftClient(old.host, old.port) as client:
        assert client.get_all_databases() == ["default"]
    old.stop()
    assert output(*upgrade, **new.environment) == f"schema upgraded from {migrations.head()} to {new.revision}\n"
    with pytest.raises(ServerDidNotStart, match=f"for servers that know {new.revision}.*upgrade the server"):
        old.start()


@pytest.mark.long
def test_one_that_may_not_upgrade(prepare: Prepare, tmp_path: Path, postgres_url: str) -> None:
    new = NextVersion(tmp_path / "next", compatible=True)
    migrations.upgrade(postgres_url)
    server = prepare("two", "--no-schema-upgrade", environment=new.environment)
    with pytest.raises(ServerDidNotStart, match=f"needs {new.revision}; run: metastore db upgrade"):
        server.start()


@pytest.mark.long
def test_it_gives_way_to_who_uses_a_table(tmp_path: Path, postgres_url: str, engine: Engine) -> None:
    new = NextVersion(tmp_path / "next", compatible=True)
    migrations.upgrade(postgres_url)
    waits = text("SELECT count(*) FROM pg_locks WHERE relation = 'tables'::regclass AND NOT granted")
    with ThreadPoolExecutor(1) as pool, engine.connect() as reader, engine.connect() as another:
        reader.execute(text("SELECT count(*) FROM tables"))
        upgraded = pool.submit(output, "db", "upgrade", "--database-url", postgres_url, **new.environment)
        for _ in range(2):  # it tries again
            wait_until(lambda: another.execute(waits).scalar_one() == 1, 60, "the upgrade waits for a table")
            another.execute(text("SELECT count(*) FROM tables"))  # behind it in the queue
            another.rollback()
            assert not upgraded.done()
        reader.rollback()
        assert upgraded.result(60).endswith(f"to {new.revision}\n")
