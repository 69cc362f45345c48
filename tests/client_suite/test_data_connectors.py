"""Data connectors. Expectations are those of Hive 4's source."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    AlterDataConnectorRequest,
    CreateDataConnectorRequest,
    DataConnector,
    DropDataConnectorRequest,
    GetDataConnectorRequest,
    InvalidObjectException,
    NoSuchObjectException,
    PrincipalType,
)
from tests.support.expect import refused
from tests.support.target import Target

pytestmark = pytest.mark.hive4


def connector(name: str, **fields: Any) -> DataConnector:
    defaults: dict[str, Any] = {
        "type": "mysql",
        "url": "jdbc:mysql://host:3306",
        "description": "d",
        "parameters": {"k": "v"},
        "ownerName": "alice",
        "ownerType": PrincipalType.ROLE,
    }
    return DataConnector(name=name, **(defaults | fields))


@pytest.fixture
def name(client: ThriftClient, unused_name: str) -> Iterator[str]:
    """The name of no connector, dropped afterwards."""
    yield unused_name
    client.drop_dataconnector_req(DropDataConnectorRequest(unused_name, True, False))


def create(client: ThriftClient, new: DataConnector) -> None:
    client.create_dataconnector_req(CreateDataConnectorRequest(new))


def alter(client: ThriftClient, name: str, new: DataConnector) -> None:
    client.alter_dataconnector_req(AlterDataConnectorRequest(name, new))


def get(client: ThriftClient, name: str) -> DataConnector:
    return client.get_dataconnector_req(GetDataConnectorRequest(name))


def test_reads_back_with_the_time(client: ThriftClient, name: str) -> None:
    create(client, connector(name.upper(), createTime=17))
    found = get(client, f" {name.upper()}")
    assert abs(time.time() - found.createTime) < 120
    assert found == connector(name, createTime=found.createTime)


def test_an_owner_is_found(client: ThriftClient, name: str) -> None:
    create(client, DataConnector(name=name, type="mysql", url="jdbc:mysql://host:3306"))
    found = get(client, name)
    assert found.ownerName
    assert (found.ownerType, found.parameters) == (PrincipalType.USER, {})


def test_exists(client: ThriftClient, name: str) -> None:
    create(client, connector(name))
    with refused(AlreadyExistsException, message=f"DataConnector {name.upper()} already exists"):
        create(client, connector(name.upper()))


@pytest.mark.parametrize("bad", ["", "ü", "a\\b"])
def test_the_name_is_checked(client: ThriftClient, bad: str) -> None:
    with refused(InvalidObjectException, message=f"{bad} is not a valid dataconnector name"):
        create(client, connector(bad))


def test_names_with_special_characters(client: ThriftClient, name: str) -> None:
    special = f"{name} a-b.c/d'e"
    create(client, connector(special))
    assert get(client, special).name == special
    client.drop_dataconnector_req(DropDataConnectorRequest(special, False, False))


def test_listed_in_order(client: ThriftClient, name: str) -> None:
    names = [f"{name}_b", f"{name}_a", name]
    for each in names:
        create(client, connector(each))
    assert [each for each in client.get_dataconnectors() if each.startswith(name)] == sorted(names)
    for each in names[:2]:
        client.drop_dataconnector_req(DropDataConnectorRequest(each, False, False))


def test_altered(client: ThriftClient, name: str) -> None:
    create(client, connector(name))
    before = get(client, name)
    alter(client, name.upper(), DataConnector(name="other", type="derby", url="u", description=" "))
    before.url, before.parameters, before.ownerName = "u", {}, None
    assert get(client, name) == before
    new = DataConnector(url="w", ownerName="bob", ownerType=PrincipalType.USER, description="e", parameters={"a": "b"})
    alter(client, name, new)
    assert get(client, name) == new.replace(name=name, type="mysql", createTime=before.createTime)


def test_dropped(client: ThriftClient, name: str) -> None:
    create(client, connector(name))
    client.drop_dataconnector_req(DropDataConnectorRequest(name))
    with refused(NoSuchObjectException, message=f"Dataconnector named {name} does not exist"):
        get(client, name)


def test_as_hive_4_0_0_asks(client: ThriftClient, name: str, target: Target) -> None:
    if target.name != "ours":
        pytest.skip("later versions don't have these forms")
    client.create_dataconnector(connector(name))
    client.alter_dataconnector(name, connector(name, url="u"))
    assert get(client, name).url == "u"
    client.drop_dataconnector(name, False, False)
    assert name not in client.get_dataconnectors()
    client.drop_dataconnector(name, True, True)


def test_missing(client: ThriftClient) -> None:
    with refused(NoSuchObjectException, message="Dataconnector named no_such does not exist"):
        alter(client, "no_such", DataConnector())
    with refused(NoSuchObjectException, message="DataConnector no_such doesn't exist"):
        client.drop_dataconnector_req(DropDataConnectorRequest("no_such", False, False))
    with refused(NoSuchObjectException, message="DataConnector no_such doesn't exist"):
        client.drop_dataconnector_req(DropDataConnectorRequest("no_such", False))
    client.drop_dataconnector_req(DropDataConnectorRequest("no_such", True, True))
    client.drop_dataconnector_req(DropDataConnectorRequest("no_such", True))
