"""Whoever alters a table renews the replies about it: the next read needs no database."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import GetTableRequest, Table
from tests.metastore.cache.cluster import answers_of
from tests.support import builders
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

REQUEST = GetTableRequest(dbName="d", tblName="t")


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    with postgres.fresh_database(upgraded=True) as url:
        yield url


@pytest.fixture
def server(url: str, tmp_path: Path) -> Iterator[MetastoreServer]:
    with MetastoreServer.on_database(url, tmp_path, "--http-port", "0") as started:
        yield started


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        client.create_database(builders.database("d"))
        client.create_table(builders.table("d", "t"))
        yield client


def alter(client: ThriftClient, value: Table, mark: int) -> Table:
    value = value.replace(parameters={**(value.parameters or {}), "mark": str(mark)})
    client.alter_table("d", "t", value)
    return value


def settled(server: MetastoreServer, read: int) -> dict[str, int]:
    """Where answers came from, once all of `read` are counted."""
    wait_until(lambda: sum(answers_of(server).values()) >= read, 20, "that answers are counted")
    return answers_of(server)


def test_a_reader_finds_what_was_written_without_asking_the_database(
    server: MetastoreServer, client: ThriftClient
) -> None:
    value = client.get_table("d", "t")
    client.get_table_req(REQUEST)
    for mark in range(20):
        alter(client, value, mark)
        assert client.get_table("d", "t").parameters["mark"] == str(mark)
        assert client.get_table_req(REQUEST).table.parameters["mark"] == str(mark)
    answers = settled(server, 42)
    assert answers["database"] == 2
    assert answers["memory"] == 40


def test_writers_whom_nobody_reads_after_make_no_replies(server: MetastoreServer, client: ThriftClient) -> None:
    value = client.get_table("d", "t")
    for mark in range(3):  # the first alteration renews the reply that was read, the others find none
        alter(client, value, mark)
    assert client.get_table("d", "t").parameters["mark"] == "2"
    assert settled(server, 2)["database"] == 2


@pytest.mark.long
def test_changes_of_others_count(url: str, server: MetastoreServer, client: ThriftClient, tmp_path: Path) -> None:
    value = client.get_table("d", "t")
    alter(client, value, 1)
    assert client.get_table("d", "t").parameters["mark"] == "1"
    other = MetastoreServer(tmp_path / "other", "--database-url", url)
    with other, ThriftClient(other.host, other.port) as another:
        for mark in range(2, 12, 2):
            alter(another, value, mark)
            assert client.get_table("d", "t").parameters["mark"] == str(mark)
            alter(client, value, mark + 1)
            assert another.get_table("d", "t").parameters["mark"] == str(mark + 1)
            assert client.get_table("d", "t").parameters["mark"] == str(mark + 1)


@pytest.mark.long
def test_what_an_operator_changes_meanwhile_counts(url: str, client: ThriftClient) -> None:
    value = client.get_table("d", "t")
    alter(client, value, 1)
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text('UPDATE tables SET parameters = parameters || \'{"mark": "by hand"}\''))
    assert client.get_table("d", "t").parameters["mark"] == "by hand"


def test_statistics_in_a_reply_are_read_again(client: ThriftClient) -> None:
    with_statistics = REQUEST.replace(getColumnStats=True, engine="hive")
    value = client.get_table_req(with_statistics).table
    alter(client, value, 1)
    found = client.get_table_req(with_statistics).table
    assert found.parameters["mark"] == "1"
