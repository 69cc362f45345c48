"""PyIceberg's catalog of Hive, logged in with the tickets of `kinit` (it knows neither TLS nor other logins)."""

from collections.abc import Iterator

import pyarrow
import pytest
from pyiceberg.catalog.hive import HiveCatalog

from tests.interop.logins.conftest import Door
from tests.support.kerberos import has_tickets

pytest.importorskip("puresasl.client")
pytest.importorskip("kerberos")


@pytest.fixture
def settings(door: Door) -> dict[str, str]:
    return {
        "uri": door.uri,
        "hive.kerberos-authentication": "true",
        "hive.kerberos-service-name": "metastore",
    }


@pytest.fixture
def as_ann(tickets: dict[str, dict[str, str]]) -> Iterator[None]:
    with has_tickets(tickets["ann"]):
        yield


def test_the_life_of_a_table(door: Door, settings: dict[str, str], as_ann: None) -> None:
    catalog = HiveCatalog("lake", **settings)
    catalog.create_namespace("by_ticket")
    rows = pyarrow.table({"id": [1, 2, 3]})
    table = catalog.create_table("by_ticket.t", schema=rows.schema)
    table.append(rows)
    assert catalog.load_table("by_ticket.t").scan().to_arrow() == rows
    assert catalog.list_tables("by_ticket") == [("by_ticket", "t")]
    catalog.drop_table("by_ticket.t")
    catalog.drop_namespace("by_ticket")
    for method in ("create_database", "create_table", "drop_table"):
        assert door.came_in(method, "by_ticket") == {("ann", "kerberos")}


def test_without_a_ticket(door: Door, settings: dict[str, str], tickets: dict[str, dict[str, str]]) -> None:
    with (
        has_tickets(tickets["ann"] | {"KRB5CCNAME": "/nonexistent"}),
        pytest.raises(Exception, match="No Kerberos credentials"),
    ):
        HiveCatalog("lake", **settings).list_namespaces()


def test_without_a_login(door: Door) -> None:
    with pytest.raises(Exception, match="answers nobody who has not logged in"):
        HiveCatalog("lake", uri=door.uri).list_namespaces()
