"""What a client says of itself is kept beside all that it does: it can't be of any length."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from thrift.Thrift import TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    Database,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    MetaException,
    OpenTxnRequest,
    ShowLocksRequest,
)
from lake.protocol.lake import ReadEventsRequest
from metastore.services.model.client_texts import MAX_GROUPS, MAX_HINT, MAX_USER
from tests.support.server import MetastoreServer

MB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    directory = tmp_path_factory.mktemp("texts") / "data"
    with MetastoreServer(directory, "--log-format", "json", "--log-level", "debug", "--workers", "1") as server:
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        yield client


@pytest.mark.long
def test_a_users_name_and_groups(client: ThriftClient) -> None:
    with pytest.raises(MetaException, match="the user's name has 20971520 characters; 256 are allowed"):
        client.set_ugi("u" * 20 * MB, [])
    with pytest.raises(MetaException, match="the group's name has 257"):
        client.set_ugi("u", ["g" * (MAX_USER + 1)])
    with pytest.raises(MetaException, match="4097 groups"):
        client.set_ugi("u", ["g"] * (MAX_GROUPS + 1))
    groups = [f"g{number}".ljust(MAX_USER, "x") for number in range(1_000)]
    assert client.set_ugi("u" * MAX_USER, groups) == groups
    client.create_database(Database(name="of_u"))
    event = client.lake_read_events(ReadEventsRequest(after=0)).events[-1]
    assert event.user == "u" * MAX_USER


def test_the_values_that_a_connection_sets(client: ThriftClient) -> None:
    with pytest.raises(MetaException, match="256 are allowed"):
        client.setMetaConf("hive.metastore.try.direct.sql", "x" * 300)
    with pytest.raises(MetaException) as refused:
        client.setMetaConf("x" * MB, "1")
    assert len(refused.value.message or "") < 2 * MAX_HINT


def test_what_locks_and_transactions_say_of_who_has_them(client: ThriftClient) -> None:
    long = "h" * MB
    [txn] = client.open_txns(OpenTxnRequest(num_txns=1, user=long, hostname=long)).txn_ids or []
    [shown] = [each for each in client.get_open_txns_info().open_txns or () if each.id == txn]
    assert (shown.user, shown.hostname) == ("h" * MAX_HINT,) * 2
    component = LockComponent(type=LockType.SHARED_READ, level=LockLevel.DB, dbname="texts")
    client.lock(LockRequest(component=[component], user=long, hostname=long, agentInfo=long))
    [lock] = [each for each in client.show_locks(ShowLocksRequest()).locks or () if each.dbname == "texts"]
    assert (lock.user, lock.hostname, lock.agentInfo) == ("h" * MAX_HINT,) * 3


def test_no_line_of_the_log_grows_with_what_a_client_sends(client: ThriftClient, server: MetastoreServer) -> None:
    for name in ("x" * MB, "a.b\n" * MB):
        for call in (client.get_database, client.get_type, client.getMetaConf):
            with pytest.raises(TException):
                call(name)
    lines = Path(server.log).read_text().splitlines()
    assert max(map(len, lines)) < 10_000
    assert all(json.loads(line)["event"] for line in lines)
