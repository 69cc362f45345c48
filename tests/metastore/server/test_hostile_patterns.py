"""Clients that send the worst patterns that may be sent don't keep a server with one thread from its others."""

import threading
import time
from collections.abc import Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.events.filters import MAX_STARS
from lake.protocol.hive import (
    Database,
    FieldSchema,
    InvalidOperationException,
    MetaException,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from lake.protocol.lake import ReadEventsRequest
from metastore.services.filters.grammar import MAX_LIKES
from tests.support.server import MetastoreServer

NAME = "a" * 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("hostile") / "data", "--workers", "1", "--threads", "2") as server:
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port, timeout=60) as client:
        yield client


def table(database: str, name: str, *keys: str) -> Table:
    sd = StorageDescriptor(cols=[FieldSchema(name="c", type="string")], serdeInfo=SerDeInfo())
    return Table(
        dbName=database, tableName=name, sd=sd, partitionKeys=[FieldSchema(name=key, type="string") for key in keys]
    )


@pytest.mark.long
def test_a_subscriber_who_waits(server: MetastoreServer, client: ThriftClient) -> None:
    client.create_database(Database(name="waited"))
    last = client.lake_read_events(ReadEventsRequest(after=0)).last or 0
    with pytest.raises(InvalidOperationException, match=r"more than 16 \*"):
        client.lake_read_events(ReadEventsRequest(after=last, tables=["waited." + "a*" * 60 + "b"]))
    patterns = [f"waited.{'a*' * (MAX_STARS - 1)}b{number}" for number in range(100)]
    request = ReadEventsRequest(after=last, tables=patterns, maxWait=3_000)
    began = time.monotonic()

    def wait() -> None:
        with ThriftClient(server.host, server.port, timeout=60) as waiting:
            assert waiting.lake_read_events(request).events == []

    waiters = [threading.Thread(target=wait) for _ in range(4)]
    for waiter in waiters:
        waiter.start()
    for number in range(5):
        client.create_table(table("waited", NAME + str(number)))
    assert len(client.get_all_tables("waited")) == 5
    for waiter in waiters:
        waiter.join(60)
    assert time.monotonic() - began < 30


def test_filters_of_partitions(client: ThriftClient) -> None:
    client.create_database(Database(name="filtered"))
    client.create_table(table("filtered", "t", "k"))
    sd = client.get_table("filtered", "t").sd
    assert sd is not None
    places = StorageDescriptor(cols=sd.cols, serdeInfo=sd.serdeInfo)
    client.add_partitions(
        [Partition(values=[NAME + str(n)], dbName="filtered", tableName="t", sd=places) for n in range(2_000)]
    )
    pattern = "%a" * 31 + "%b"
    worst = " or ".join(f"k like '{pattern}{number}'" for number in range(MAX_LIKES))
    began = time.monotonic()
    assert client.get_partitions_by_filter("filtered", "t", worst, -1) == []
    assert time.monotonic() - began < 20
    with pytest.raises(MetaException, match="are more than 100"):
        client.get_partitions_by_filter("filtered", "t", " or ".join(["k like '%b'"] * 4_999), -1)


@pytest.mark.parametrize(("kind", "other"), [("int", "1{:06}"), ("date", "'19{:02}-01-01'")])
def test_many_conditions_on_keys_that_are_no_texts(client: ThriftClient, kind: str, other: str) -> None:
    """Each value is read as a number or a day once, not once for each condition."""
    client.create_database(Database(name=f"many_{kind}"))
    keyed = table(f"many_{kind}", "of")
    keyed.partitionKeys = [FieldSchema(name="k", type=kind)]
    client.create_table(keyed)
    values = [str(n) if kind == "int" else f"20{n % 100:02}-01-{n // 100 + 1:02}" for n in range(1_000)]
    places = StorageDescriptor(cols=[FieldSchema(name="c", type="string")], serdeInfo=SerDeInfo())
    client.add_partitions([Partition(values=[v], dbName=f"many_{kind}", tableName="of", sd=places) for v in values])
    conditions = " and ".join(f"k <> {other.format(n % 100)}" for n in range(2_000))
    began = time.monotonic()
    assert len(client.get_partitions_by_filter(f"many_{kind}", "of", conditions, -1)) == 1_000
    assert time.monotonic() - began < 20


def test_names(client: ThriftClient) -> None:
    client.create_database(Database(name="named"))
    for number in range(20):
        client.create_table(table("named", f"t_{number}"))
    wanted = "|".join(f"t_{number}" for number in range(10, 1_010))
    assert client.get_tables("named", wanted) == [f"t_{number}" for number in range(10, 20)]
    assert client.get_tables("named", "t_1|t.2|*_3") == ["t_1", "t_2", "t_3"] != client.get_all_tables("named")
    for pattern in ("|".join(f"t{n}*" for n in range(101)), "a*" * 40, "x" * 70_000):
        with pytest.raises(MetaException, match="allowed"):
            client.get_tables("named", pattern)
