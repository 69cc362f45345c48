"""Calls that are sound Thrift and make no sense: each gets an answer that says so, and none is the server's fault."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from thrift.Thrift import TApplicationException, TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import GetPrincipalsInRoleRequest, MetaException, PrincipalType, Role
from lake.protocol.services import METHODS
from tests.support import builders
from tests.support.server import MetastoreServer

DB = "odd_input"
ENDING = {"shutdown"}  # ends the connection


@pytest.fixture(scope="module")
def database(metastore_server: MetastoreServer) -> Iterator[str]:
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        client.create_database(builders.database(DB))
        yield DB
        client.drop_database(DB, True, True)


@pytest.fixture
def client(metastore_server: MetastoreServer, database: str) -> Iterator[ThriftClient]:
    """A connection that outlives whatever is sent; the server never blames itself."""
    size = metastore_server.log.stat().st_size
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        yield client
        assert client.getStatus() == 2
    with metastore_server.log.open(encoding="utf-8") as log:
        log.seek(size)
        assert "internal error" not in log.read()


@pytest.mark.parametrize("name", sorted(METHODS.keys() - ENDING))
def test_call_without_arguments(client: ThriftClient, name: str) -> None:
    try:
        client.call(name)
    except TException as error:
        assert getattr(error, "message", None) != ""
        assert "internal error" not in str(error)


def test_missing_request_is_named(client: ThriftClient) -> None:
    with pytest.raises(TApplicationException, match="'req' of get_table_req is missing") as caught:
        client.get_table_req()
    assert caught.value.type == TApplicationException.PROTOCOL_ERROR


@pytest.mark.parametrize("parameters", [{"a": "x\0y"}, {"a\0": "x"}, {"\0": "\0"}])
def test_nul_in_parameters(client: ThriftClient, database: str, parameters: dict[str, str]) -> None:
    with pytest.raises(MetaException, match="must not contain the NUL character"):
        client.create_table(builders.table(database, "nul", parameters=parameters))
    assert client.get_tables(database, "nul") == []


def test_partition_whose_name_is_too_long_to_be_kept(client: ThriftClient, database: str, tmp_path: Path) -> None:
    """To try it again would be of no use."""
    client.create_table(builders.external_table(database, "long", keys=("ds",)))
    name = random.Random(1).randbytes(2000).hex()  # Postgres compresses others
    with pytest.raises(MetaException, match="a name is too long"):
        client.add_partition(builders.partition(database, "long", name, location=str(tmp_path / "long")))
    assert not (tmp_path / "long").exists()
    assert client.get_partition_names(database, "long", -1) == []


def test_grantor_of_no_known_type(client: ThriftClient) -> None:
    client.create_role(Role(roleName="odd_role"))
    client.grant_role("odd_role", "alice", PrincipalType.USER, "boss", -1, False)
    [member] = client.get_principals_in_role(GetPrincipalsInRoleRequest("odd_role")).principalGrants
    client.drop_role("odd_role")
    assert (member.grantorName, member.grantorPrincipalType) == ("boss", None)
