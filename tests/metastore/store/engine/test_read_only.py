"""A Postgres that accepts no changes for a time: refused changes say so, nothing is done, and it goes on afterwards."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg2
import pytest
from sqlalchemy import make_url

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException
from metastore.store.migrations import ReadOnlyDatabase, upgrade
from tests.support import builders
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

ACCEPTS_NONE = "accepts no changes now"


@pytest.fixture(scope="module")
def own_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """One that other tests don't use."""
    postgres = Postgres(tmp_path_factory.mktemp("read_only"))
    yield postgres
    postgres.close()


@pytest.fixture(scope="module")
def url(own_postgres: Postgres) -> Iterator[str]:
    with own_postgres.fresh_database() as url:
        yield url


@contextmanager
def read_only(url: str) -> Iterator[None]:
    """All sessions of the server are as on a standby, also those that there are already."""
    _set(url, "on")
    try:
        yield
    finally:
        _set(url, "off")


def _set(url: str, value: str) -> None:
    text = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    connection = psycopg2.connect(text)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        cursor.execute("SELECT pg_reload_conf()")

    def is_set() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SHOW default_transaction_read_only")
            return bool(cursor.fetchone() == (value,))

    wait_until(is_set)
    connection.close()


def probe(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
            return reply.status, ""
    except urllib.error.HTTPError as error:
        return error.code, str(json.load(error)["reason"])


@pytest.mark.long
def test_a_server_while_its_database_is_read_only(url: str, tmp_path: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    options = ("--http-port", str(port), "--threads", "2", "--database-pool-size", "2")
    with MetastoreServer.on_database(url, tmp_path, *options) as server:
        with ThriftClient(server.host, server.port) as client:
            client.create_database(builders.database("before"))
            client.create_table(builders.table("before", "t"))
            assert probe(port, "/ready") == (200, "")
            with read_only(url):
                for number in range(6):  # more often than there are connections
                    with pytest.raises(MetaException, match=ACCEPTS_NONE):
                        client.create_database(builders.database(f"d{number}"))
                    with pytest.raises(MetaException, match=ACCEPTS_NONE):
                        client.alter_table("before", "t", builders.table("before", "t", retention=7))
                assert client.get_all_databases() == ["before", "default"]
                for path in ("/ready", "/health"):
                    status, reason = wait_until(lambda path=path: probe(port, path))
                    assert status == 503
                    assert ACCEPTS_NONE in reason
                assert probe(port, "/live") == (200, "")  # no reason to restart the server
            client.create_database(builders.database("after"))
            assert client.get_all_databases() == ["after", "before", "default"]
            assert client.get_table("before", "t").retention == 0
            for path in ("/ready", "/health"):
                assert probe(port, path) == (200, "")
        assert not (tmp_path / "warehouse/d0.db").exists()
        assert "Traceback" not in server.log.read_text()


def test_the_schema_is_not_upgraded(url: str) -> None:
    upgrade(url)
    with read_only(url), pytest.raises(ReadOnlyDatabase, match=ACCEPTS_NONE):
        upgrade(url)
    upgrade(url)
