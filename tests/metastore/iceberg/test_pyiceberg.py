"""PyIceberg's REST catalog and its HiveCatalog on the same tables."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog as PyCatalog
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.types import LongType

from tests.metastore.iceberg.conftest import Catalog
from tests.pyiceberg.tables import BY_COUNTRY, HIVE_TYPES, SCHEMA, plain, row, rows


@pytest.fixture(scope="module")
def ours(rest: Catalog) -> RestCatalog:
    return RestCatalog("ours", uri=rest.uri)


@pytest.fixture(scope="module")
def hive(rest: Catalog) -> HiveCatalog:
    return HiveCatalog("hive", uri=rest.server.uri)


def test_a_table_of_rest_is_hive_catalogs_too(rest: Catalog, ours: RestCatalog, hive: HiveCatalog) -> None:
    namespace = rest.namespace()
    table = ours.create_table((namespace, "t"), SCHEMA, partition_spec=BY_COUNTRY)
    table.append(rows(range(10)))
    theirs = hive.load_table((namespace, "t"))
    assert plain(theirs.scan().to_arrow()) == [row(number) for number in range(10)]
    theirs.append(rows(range(10, 20), "fr"))
    table.refresh()
    assert plain(table.scan().to_arrow()) == [row(number, "de" if number < 10 else "fr") for number in range(20)]
    assert ours.list_tables(namespace) == hive.list_tables(namespace) == [(namespace, "t")]


def test_both_catalogs_write_the_same_parameters(rest: Catalog, ours: RestCatalog, hive: HiveCatalog) -> None:
    namespace = rest.namespace()
    for name, catalog in (("a", ours), ("b", hive)):
        table = catalog.create_table((namespace, name), SCHEMA, properties={"purpose": "test", "gone": "1"})
        table.append(rows(range(3)))
        with table.transaction() as change:
            change.remove_properties("gone")
    with hive._client as thrift:
        one, other = (thrift.get_table(dbname=namespace, tbl_name=name) for name in ("a", "b"))
    assert {each.name: each.type for each in one.sd.cols} == HIVE_TYPES
    assert [(each.name, each.type) for each in one.sd.cols] == [(each.name, each.type) for each in other.sd.cols]
    assert not set(other.parameters) - set(one.parameters)
    assert one.tableType == other.tableType == "EXTERNAL_TABLE"
    assert one.parameters["numRows"] == "3"
    assert one.parameters["purpose"] == "test"
    assert "gone" not in one.parameters
    assert one.parameters["previous_metadata_location"]


def test_schema_changes_and_conflicts(rest: Catalog, ours: RestCatalog) -> None:
    namespace = rest.namespace()
    ours.create_table((namespace, "t"), pa.schema([("id", pa.int64())]))
    first, second = ours.load_table((namespace, "t")), ours.load_table((namespace, "t"))
    with first.update_schema() as change:
        change.add_column("more", LongType())
    second.append(pa.table({"id": [1]}))  # PyIceberg tries again
    assert ours.load_table((namespace, "t")).schema().column_names == ["id", "more"]
    with pytest.raises(TableAlreadyExistsError):
        ours.create_table((namespace, "t"), pa.schema([("id", pa.int64())]))


def test_drop_and_rename(rest: Catalog, ours: PyCatalog) -> None:
    namespace, other = rest.namespace(), rest.namespace()
    table = ours.create_table((namespace, "t"), pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    ours.rename_table((namespace, "t"), (other, "u"))
    assert ours.load_table((other, "u")).scan().to_arrow().num_rows == 2
    with pytest.raises(NoSuchTableError):
        ours.load_table((namespace, "t"))
    place = ours.load_table((other, "u")).metadata_location
    ours.drop_table((other, "u"))
    assert ours.list_tables(other) == []
    assert ours.register_table((other, "v"), place).scan().to_arrow().num_rows == 2
    ours.purge_table((other, "v"))
    assert not ours.table_exists((other, "v"))
    assert not Path(place.removeprefix("file://")).exists()
