"""The list of a namespace's tables, also where replies are kept: whatever changes it is seen at once."""

from collections.abc import Callable
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.test_http import create
from tests.support import builders


def listed(rest: Catalog, namespace: str) -> list[str]:
    found = rest.ask("GET", f"hive/namespaces/{namespace}/tables")["identifiers"]
    assert rest.ask("GET", f"hive/namespaces/{namespace}/tables")["identifiers"] == found
    return [each["name"] for each in found]


def altered(client: ThriftClient, namespace: str, name: str, **parameters: str) -> None:
    table = client.get_table(namespace, name)
    client.alter_table(namespace, name, table.replace(parameters={**table.parameters, **parameters}))


def renamed(client: ThriftClient, namespace: str, name: str, new: str) -> None:
    client.alter_table(namespace, name, client.get_table(namespace, name).replace(tableName=new))


CHANGES: dict[str, tuple[Callable[[ThriftClient, str], Any], list[str]]] = {
    "a drop": (lambda c, n: c.drop_table(n, "a", False), ["b"]),
    "a rename": (lambda c, n: renamed(c, n, "a", "c"), ["b", "c"]),
    "a table that turns into one": (lambda c, n: altered(c, n, "hive", table_type="iceberg"), ["a", "b", "hive"]),
    "a table that is one no more": (lambda c, n: altered(c, n, "a", table_type="other"), ["b"]),
    "a table that is shown": (lambda c, n: altered(c, n, "keyed", **{"iceberg.expose": "TRUE"}), ["a", "b", "keyed"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_thrift_is_seen(rest: Catalog, client: ThriftClient, change: str) -> None:
    namespace = rest.namespace()
    for name in ("b", "a"):
        create(rest, namespace, name)
    client.create_table(builders.table(namespace, "hive"))
    keyed = builders.table(namespace, "keyed", keys=("part",), sd=builders.parquet("id:bigint"))
    client.create_table(keyed.replace(parameters={"primary-key": "id,part"}))
    assert listed(rest, namespace) == ["a", "b"]
    action, expected = CHANGES[change]
    action(client, namespace)
    assert listed(rest, namespace) == expected


def test_a_database_that_shows_its_tables(rest: Catalog, client: ThriftClient) -> None:
    namespace = rest.namespace()
    create(rest, namespace, "a")
    keyed = builders.table(namespace, "keyed", keys=("part",), sd=builders.parquet("id:bigint"))
    client.create_table(keyed.replace(parameters={"primary-key": "id,part"}))
    assert listed(rest, namespace) == ["a"]
    path = f"hive/namespaces/{namespace}/properties"
    rest.ask("POST", path, {"removals": [], "updates": {"iceberg.expose": "true"}})
    assert listed(rest, namespace) == ["a", "keyed"]
    rest.ask("POST", path, {"removals": ["iceberg.expose"], "updates": {}})
    assert listed(rest, namespace) == ["a"]


def test_a_name_that_is_an_expression_is_none(rest: Catalog) -> None:
    for name in ("@spark%23default", "default%23x", "%00", "nothing"):
        assert rest.refused("GET", f"hive/namespaces/{name}/tables")[:2] == (404, "NoSuchNamespaceException")
        assert rest.refused("GET", f"hive/namespaces/{name}/views")[:2] == (404, "NoSuchNamespaceException")
