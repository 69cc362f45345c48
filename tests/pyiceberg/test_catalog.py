"""Namespaces and tables."""

from pathlib import Path

import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import ShowLocksRequest
from tests.pyiceberg.tables import BY_COUNTRY, HIVE_TYPES, SCHEMA, plain, row, rows
from tests.support import builders
from tests.support.target import local_path


class TestNamespaces:
    def test_created_listed_and_dropped(self, catalog: HiveCatalog) -> None:
        catalog.create_namespace("ice_a", {"comment": "about ice", "owner_team": "cold"})
        assert ("ice_a",) in catalog.list_namespaces()
        properties = catalog.load_namespace_properties("ice_a")
        assert properties["comment"] == "about ice"
        assert properties["owner_team"] == "cold"
        assert local_path(properties["location"]).is_dir()
        with pytest.raises(NamespaceAlreadyExistsError):
            catalog.create_namespace("ice_a")
        catalog.drop_namespace("ice_a")
        assert ("ice_a",) not in catalog.list_namespaces()
        assert not catalog.namespace_exists("ice_a")

    def test_properties(self, catalog: HiveCatalog, namespace: str) -> None:
        catalog.update_namespace_properties(namespace, updates={"a": "1", "b": "2"})
        done = catalog.update_namespace_properties(namespace, removals={"a", "x"}, updates={"b": "3"})
        assert (done.removed, done.updated, done.missing) == (["a"], ["b"], ["x"])
        properties = catalog.load_namespace_properties(namespace)
        assert "a" not in properties and properties["b"] == "3"

    def test_a_full_one_is_not_dropped(self, catalog: HiveCatalog, namespace: str) -> None:
        catalog.create_table((namespace, "t"), SCHEMA)
        with pytest.raises(NamespaceNotEmptyError):
            catalog.drop_namespace(namespace)
        catalog.drop_table((namespace, "t"))
        catalog.drop_namespace(namespace)

    def test_missing(self, catalog: HiveCatalog) -> None:
        with pytest.raises(NoSuchNamespaceError):
            catalog.drop_namespace("nowhere")
        with pytest.raises(NoSuchNamespaceError):
            catalog.load_namespace_properties("nowhere")
        assert catalog.list_tables("nowhere") == []

    def test_tables_go_to_its_location(self, catalog: HiveCatalog, tmp_path: Path) -> None:
        catalog.create_namespace("ice_elsewhere", {"location": f"file:{tmp_path}/ice"})
        table = catalog.create_table("ice_elsewhere.t", SCHEMA)
        table.append(rows(range(3)))
        assert list((tmp_path / "ice" / "t" / "data").iterdir())


class TestTables:
    def test_created(self, catalog: HiveCatalog, namespace: str) -> None:
        created = catalog.create_table((namespace, "t"), SCHEMA, partition_spec=BY_COUNTRY, properties={"team": "ice"})
        loaded = catalog.load_table((namespace, "t"))
        assert loaded.schema() == created.schema()
        assert [field.name for field in loaded.schema().fields] == list(HIVE_TYPES)
        assert loaded.schema().find_field("place.path").field_type.is_primitive is False
        assert [field.name for field in loaded.spec().fields] == ["country"]
        assert loaded.properties["team"] == "ice"
        assert loaded.metadata_location == created.metadata_location
        assert loaded.current_snapshot() is None

    def test_as_other_engines_see_it(self, catalog: HiveCatalog, namespace: str, client: ThriftClient) -> None:
        table = catalog.create_table((namespace, "t"), SCHEMA, partition_spec=BY_COUNTRY, properties={"team": "ice"})
        seen = client.get_table(namespace, "t")
        assert seen.tableType == "EXTERNAL_TABLE"
        assert seen.parameters["table_type"] == "ICEBERG"
        assert seen.parameters["metadata_location"] == table.metadata_location
        assert seen.parameters["team"] == "ice"
        assert {field.name: field.type for field in seen.sd.cols} == HIVE_TYPES
        assert seen.sd.cols[0].comment == "who"
        assert seen.partitionKeys == []

        before = table.metadata_location
        table.append(rows(range(2)))
        seen = client.get_table(namespace, "t")
        assert seen.parameters["metadata_location"] == table.metadata_location != before
        assert seen.parameters["previous_metadata_location"] == before

    def test_no_lock_is_left_after_a_commit(self, catalog: HiveCatalog, namespace: str, client: ThriftClient) -> None:
        table = catalog.create_table((namespace, "t"), SCHEMA)
        table.append(rows(range(2)))
        catalog.drop_table((namespace, "t"))
        with pytest.raises(NoSuchTableError):
            table.append(rows(range(2)))
        locks = client.show_locks(ShowLocksRequest(dbname=namespace)).locks
        assert locks == []

    def test_exists_already(self, catalog: HiveCatalog, namespace: str) -> None:
        catalog.create_table((namespace, "t"), SCHEMA)
        with pytest.raises(TableAlreadyExistsError):
            catalog.create_table((namespace, "t"), SCHEMA)
        assert catalog.create_table_if_not_exists((namespace, "t"), SCHEMA).name() == (namespace, "t")
        assert catalog.table_exists((namespace, "t"))

    def test_missing(self, catalog: HiveCatalog, namespace: str) -> None:
        with pytest.raises(NoSuchTableError):
            catalog.load_table((namespace, "t"))
        with pytest.raises(NoSuchTableError):
            catalog.drop_table((namespace, "t"))
        assert not catalog.table_exists((namespace, "t"))

    def test_listed(self, catalog: HiveCatalog, namespace: str, client: ThriftClient) -> None:
        for name in "abc":
            catalog.create_table((namespace, name), SCHEMA)
        client.create_table(builders.table(namespace, "not_of_iceberg"))
        assert catalog.list_tables(namespace) == [(namespace, name) for name in "abc"]

    def test_renamed(self, catalog: HiveCatalog, namespace: str) -> None:
        table = catalog.create_table((namespace, "old"), SCHEMA)
        table.append(rows(range(3)))
        renamed = catalog.rename_table((namespace, "old"), (namespace, "new"))
        assert renamed.name() == (namespace, "new")
        assert renamed.location() == table.location()
        assert not catalog.table_exists((namespace, "old"))
        assert plain(renamed.scan().to_arrow()) == [row(number) for number in range(3)]
        renamed.append(rows(range(3, 5)))
        assert len(catalog.load_table((namespace, "new")).scan().to_arrow()) == 5

    def test_renamed_to_another_namespace(self, catalog: HiveCatalog, namespace: str) -> None:
        catalog.create_namespace(f"{namespace}_other")
        catalog.create_table((namespace, "t"), SCHEMA).append(rows(range(3)))
        catalog.rename_table((namespace, "t"), (f"{namespace}_other", "t"))
        assert catalog.list_tables(namespace) == []
        assert len(catalog.load_table((f"{namespace}_other", "t")).scan().to_arrow()) == 3

    def test_not_renamed(self, catalog: HiveCatalog, namespace: str) -> None:
        catalog.create_table((namespace, "a"), SCHEMA)
        catalog.create_table((namespace, "b"), SCHEMA)
        with pytest.raises(TableAlreadyExistsError):
            catalog.rename_table((namespace, "a"), (namespace, "b"))
        with pytest.raises(NoSuchTableError):
            catalog.rename_table((namespace, "x"), (namespace, "y"))
        with pytest.raises(NoSuchNamespaceError):
            catalog.rename_table((namespace, "a"), ("nowhere", "a"))

    def test_dropped_and_registered_again(self, catalog: HiveCatalog, namespace: str) -> None:
        """An external table: its files survive."""
        table = catalog.create_table((namespace, "t"), SCHEMA)
        table.append(rows(range(3)))
        catalog.drop_table((namespace, "t"))
        assert not catalog.table_exists((namespace, "t"))
        back = catalog.register_table((namespace, "t"), table.metadata_location)
        assert plain(back.scan().to_arrow()) == [row(number) for number in range(3)]
        with pytest.raises(TableAlreadyExistsError):
            catalog.register_table((namespace, "t"), table.metadata_location)

    def test_created_in_a_transaction(self, catalog: HiveCatalog, namespace: str) -> None:
        with catalog.create_table_transaction((namespace, "t"), SCHEMA) as transaction:
            transaction.append(rows(range(3)))
            assert not catalog.table_exists((namespace, "t"))
        assert len(catalog.load_table((namespace, "t")).scan().to_arrow()) == 3


def test_user_is_sent(catalog: HiveCatalog, client: ThriftClient, namespace: str) -> None:
    """With the property `ugi` PyIceberg says who calls."""
    named = HiveCatalog("named", uri=str(catalog.properties["uri"]), ugi="somebody:staff")
    named.create_table((namespace, "t"), SCHEMA).append(rows(range(2)))
    assert len(named.load_table((namespace, "t")).scan().to_arrow()) == 2
