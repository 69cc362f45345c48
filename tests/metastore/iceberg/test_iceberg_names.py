"""Tables of other formats by Thrift, under the names by which Iceberg's HiveCatalog reads them."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from thrift.Thrift import TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlterTableRequest,
    Database,
    EnvironmentContext,
    GetTableRequest,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)
from lake.protocol.lake import ReopenPartitionsRequest
from lake.tables.lake import LakeClient, LakeTable
from metastore.api.session import Session
from metastore.iceberg.errors import unavailable
from metastore.iceberg.shown.exposed import ShownTables
from metastore.iceberg.shown.writing import Shown
from metastore.server import iceberg_names
from metastore.server.dispatch import Dispatcher
from metastore.server.iceberg_names import IcebergNames
from metastore.services.access.caller import Caller
from metastore.settings import Settings
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.shown import COLUMNS, add_file, batch, in_order, keyed, lake_table, own
from tests.support import builders
from tests.support.target import local_path


@pytest.fixture(scope="module")
def hive(rest: Catalog) -> Iterator[HiveCatalog]:
    with HiveCatalog("hive", uri=f"thrift://{rest.server.host}:{rest.server.port}") as catalog:
        yield catalog


def named(table: LakeTable) -> tuple[str, str]:
    database, _, name = table.name.partition(".")
    return database, f"{name}@iceberg"


def test_hive_catalog_reads_every_commit(lake: LakeClient, hive: HiveCatalog, ours: RestCatalog) -> None:
    table = keyed(lake, COLUMNS)
    for number in range(1, 4):
        table.upsert(batch(number, 9, value=f"{number}:"))
        found = hive.load_table(named(table))
        assert in_order(found.scan().to_arrow().to_pylist()) == own(table)
        assert found.metadata_location == ours.load_table(table.name).metadata_location
    assert in_order(found.scan(snapshot_id=1).to_arrow().to_pylist()) == own(table, 1)
    assert hive.table_exists(named(table))
    assert hive.list_tables(named(table)[0]) == []


def test_what_is_answered(client: ThriftClient, lake: LakeClient) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1))
    database, name = named(table)
    found = client.get_table(database, name.upper())
    assert (found.tableName, found.tableType, found.parameters["table_type"]) == (name, "EXTERNAL_TABLE", "ICEBERG")
    assert Path(local_path(found.parameters["metadata_location"])).exists()
    assert [each.name for each in found.sd.cols] == ["id", "b", "part"] and not found.partitionKeys
    asked = client.get_table_req(GetTableRequest(dbName=database, tblName=name)).table
    assert asked.parameters == found.parameters
    assert client.get_table(database, "t").parameters.get("table_type") is None


def test_hive_tables_too(client: ThriftClient, hive: HiveCatalog, lake: LakeClient) -> None:
    table = lake_table(lake)
    add_file(table, "part=a", [1, 2])
    assert len(hive.load_table(named(table)).scan().to_arrow()) == 2
    database = named(table)[0]
    sd = builders.parquet("id:bigint")
    client.create_table(builders.table(database, "plain", sd=sd, parameters={"iceberg.expose": "true"}))
    assert len(hive.load_table((database, "plain@iceberg")).scan().to_arrow()) == 0


def test_others_are_not_there(client: ThriftClient, hive: HiveCatalog, lake: LakeClient) -> None:
    table = keyed(lake, COLUMNS)
    database = named(table)[0]
    client.create_table(builders.table(database, "hidden", sd=builders.parquet("id:bigint")))
    client.create_table(builders.table(database, "text", parameters={"iceberg.expose": "true"}))
    for name in ("hidden@iceberg", "text@iceberg", "missing@iceberg", "@iceberg", "t@iceberg@includeuncommit"):
        with pytest.raises(NoSuchObjectException):
            client.get_table(database, name)
    with pytest.raises(NoSuchTableError):
        hive.load_table((database, "hidden@iceberg"))
    assert client.get_table_objects_by_name(database, ["t@iceberg"]) == []
    with pytest.raises(TException):
        client.create_table(builders.table(database, "new@iceberg"))


def test_a_decorated_name_shows_nobody_uncommitted_rows(
    rest: Catalog, client: ThriftClient, lake: LakeClient, ours: RestCatalog
) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1, 2))
    lake.call(lambda it: it.lake_reopen_partitions(ReopenPartitionsRequest(table.reference, names=["part=a"])))
    table.upsert(batch(3, part="b"))
    database, _ = named(table)
    with pytest.raises(NoSuchObjectException, match="t@includeuncommit@iceberg table not found"):
        client.get_table(database, "t@includeuncommit@iceberg")
    for name in ("t@includeuncommit", "t@includeuncommit@iceberg"):
        assert rest.refused("GET", f"hive/namespaces/{database}/tables/{name}")[0] == 404
    assert [each["id"] for each in ours.load_table(table.name).scan().to_arrow().to_pylist()] == [3]


def test_what_cannot_be_shown_says_why(client: ThriftClient, lake: LakeClient) -> None:
    table = lake_table(lake)
    add_file(table, "part=a", [1], name="Id")
    with pytest.raises(MetaException, match="the column Id"):
        client.get_table(*named(table))


def test_changes_are_refused(client: ThriftClient, hive: HiveCatalog, lake: LakeClient) -> None:
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1, 2))
    database, name = named(table)
    before = client.get_table(database, "t")
    shown = client.get_table(database, name)
    for change in (
        lambda: client.alter_table(database, name, shown),
        lambda: client.alter_table(database, name, shown.replace(tableName="u")),
        lambda: client.alter_table_req(AlterTableRequest(catName="hive", dbName=database, tableName=name, table=shown)),
        lambda: client.drop_table(database, name, True),
        lambda: client.drop_table_with_environment_context(database, name, True, EnvironmentContext({})),
    ):
        with pytest.raises((InvalidOperationException, MetaException), match="shown as Iceberg, for reading"):
            change()
    with pytest.raises(InvalidOperationException):
        client.alter_table(database, "t", before.replace(tableName="u@iceberg"))
    for commit in (
        lambda: hive.load_table((database, name)).append(batch(3).select(["id", "b", "part"])),
        lambda: hive.drop_table((database, name)),
    ):
        with pytest.raises(Exception, match="shown as Iceberg, for reading"):
            commit()
    with pytest.raises(NoSuchNamespaceError):  # so PyIceberg says it, whatever the reason is
        hive.rename_table((database, name), (database, "u"))
    after = client.get_table(database, "t")
    assert after.replace(parameters={}) == before.replace(parameters={})
    assert "metadata_location" not in after.parameters
    assert in_order(hive.load_table((database, name)).scan().to_arrow().to_pylist()) == own(table)


def test_threads_are_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """They answer all other calls, too."""

    class Calls:
        def __init__(self, *_: object) -> None:
            """Of nobody."""

        def get_database_req(self, _: object) -> Database:
            return Database(parameters={})

    monkeypatch.setattr(iceberg_names, "_OwnCalls", Calls)
    names, session = IcebergNames(cast(Dispatcher, None), Settings()), Session("1", Caller("ann", peer="x"))
    stored = builders.table("d", "t", sd=builders.parquet("id:bigint"), parameters={"iceberg.expose": "true"})
    entered, end = threading.Barrier(3), threading.Event()

    def slow(*_: object) -> Shown:
        entered.wait(30)
        end.wait(60)
        raise unavailable("slow")

    monkeypatch.setattr(ShownTables, "show", slow)
    with ThreadPoolExecutor(2) as pool:
        first = [pool.submit(names.show, session, stored) for _ in range(2)]
        entered.wait(30)
        start = time.monotonic()
        try:
            with pytest.raises(MetaException, match="busy with other tables"):
                names.show(session, stored)
            assert time.monotonic() - start < 10
        finally:
            end.set()
        for each in first:
            with pytest.raises(MetaException, match="slow"):
                each.result()
