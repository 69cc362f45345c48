"""Schema, partition spec and properties, changed after the table was made."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DecimalType, DoubleType, IntegerType, LongType, StringType

from lake.protocol.connection.thrift_client import ThriftClient
from tests.pyiceberg.tables import HIVE_TYPES, SCHEMA, plain, row, rows

Change = Callable[[UpdateSchema], object]

# What Iceberg allows and Hive, which compares columns by position and knows nothing of ids, takes for a change to a
# type that the stored values can't be read as.
REFUSED: dict[str, Change] = {
    "drop the first": lambda update: update.delete_column("id"),
    "drop one in the middle": lambda update: update.delete_column("country"),
    "move": lambda update: update.move_first("place"),
    "add below": lambda update: update.add_column(("place", "zip"), StringType()),
    "rename below": lambda update: update.rename_column("place.city", "town"),
    "drop below": lambda update: update.delete_column("place.path"),
}


@pytest.fixture
def table(catalog: HiveCatalog, namespace: str) -> Table:
    table = catalog.create_table((namespace, "t"), SCHEMA)
    table.append(rows(range(3)))
    return table


def hive_types(client: ThriftClient, table: Table) -> dict[str, str]:
    return {field.name: field.type for field in client.get_table(*table.name()).sd.cols}


class TestSchema:
    def test_column_is_added(self, table: Table, catalog: HiveCatalog, client: ThriftClient) -> None:
        with table.update_schema() as update:
            update.add_column("note", StringType(), doc="said later")
        assert hive_types(client, table) == {**HIVE_TYPES, "note": "string"}
        again = catalog.load_table(table.name())
        assert plain(again.scan().to_arrow()) == [{**row(n), "note": None} for n in range(3)]
        more = rows(range(3, 4)).append_column("note", pa.array(["new"], pa.large_string()))
        again.append(more)
        assert plain(again.scan(row_filter="note = 'new'").to_arrow()) == [{**row(3), "note": "new"}]

    def test_column_is_renamed(self, table: Table, catalog: HiveCatalog, client: ThriftClient) -> None:
        with table.update_schema() as update:
            update.rename_column("country", "land")
        assert list(hive_types(client, table))[:3] == ["id", "land", "price"]
        again = catalog.load_table(table.name())
        assert again.scan(selected_fields=("land",)).to_arrow().to_pylist() == [{"land": "de"}] * 3

    def test_types_are_widened(self, table: Table, catalog: HiveCatalog, client: ThriftClient) -> None:
        with table.update_schema() as update:
            update.update_column("id", LongType())
            update.update_column("ratio", DoubleType())
            update.update_column("price", DecimalType(18, 2))
        changed = {"id": "bigint", "ratio": "double", "price": "decimal(18,2)"}
        assert hive_types(client, table) == {**HIVE_TYPES, **changed}
        again = catalog.load_table(table.name())
        assert plain(again.scan().to_arrow()) == [row(n) for n in range(3)]
        assert again.schema().find_type("id") == LongType()

    def test_last_column_is_dropped(self, table: Table, catalog: HiveCatalog, client: ThriftClient) -> None:
        with table.update_schema() as update:
            update.delete_column("place")
        assert list(hive_types(client, table)) == list(HIVE_TYPES)[:-1]
        expected = [{name: value for name, value in row(n).items() if name != "place"} for n in range(3)]
        assert plain(catalog.load_table(table.name()).scan().to_arrow()) == expected

    def test_old_snapshots_keep_their_schema(self, table: Table) -> None:
        first = table.current_snapshot()
        assert first is not None
        with table.update_schema() as update:
            update.rename_column("country", "land")
        table.append(rows(range(3, 4)).rename_columns({"country": "land"}))
        assert "country" in table.scan(snapshot_id=first.snapshot_id).to_arrow().column_names

    def test_two_changes_at_once(self, table: Table, catalog: HiveCatalog) -> None:
        """The slower one gets an error, and sees the other's change when it tries again."""
        slower = catalog.load_table(table.name())
        with table.update_schema() as update:
            update.add_column("a", IntegerType())
        with pytest.raises(CommitFailedException), slower.update_schema() as update:
            update.add_column("b", IntegerType())
        slower.refresh()
        with slower.update_schema() as update:
            update.add_column("b", IntegerType())
        assert [field.name for field in catalog.load_table(table.name()).schema().fields][-2:] == ["a", "b"]


class TestWhatHiveRefuses:
    """By default Hive holds an Iceberg table to the types its columns had; we leave them to Iceberg."""

    @pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED.keys())
    def test_is_iceberg_s_own_matter(self, table: Table, catalog: HiveCatalog, change: Change) -> None:
        table.append(rows(range(3)))
        before = len(table.scan().to_arrow())
        with table.update_schema() as update:
            update.allow_incompatible_changes = True
            change(update)
        again = catalog.load_table(table.name())
        assert again.schema() == table.schema() != SCHEMA
        again.append(again.scan().to_arrow())
        assert len(again.scan().to_arrow()) == 2 * before


class TestPartitionSpec:
    def test_changed(self, table: Table, catalog: HiveCatalog) -> None:
        with table.update_spec() as update:
            update.add_field("country", IdentityTransform(), "country")
        table.append(rows(range(3, 6), "fr"))
        again = catalog.load_table(table.name())
        assert [field.name for field in again.spec().fields] == ["country"]
        assert len(again.scan().to_arrow()) == 6
        assert len(list(again.scan(row_filter="country = 'fr'").plan_files())) == 1
        with again.update_spec() as update:
            update.remove_field("country")
        again.append(rows(range(6, 7), "it"))
        assert len(catalog.load_table(table.name()).scan().to_arrow()) == 7


class TestProperties:
    def test_set_and_removed(self, table: Table, catalog: HiveCatalog, client: ThriftClient) -> None:
        with table.transaction() as transaction:
            transaction.set_properties(team="ice", color="blue")
        assert catalog.load_table(table.name()).properties["team"] == "ice"
        assert client.get_table(*table.name()).parameters["color"] == "blue"
        with table.transaction() as transaction:
            transaction.remove_properties("color")
            transaction.set_properties(team="snow")
        again = catalog.load_table(table.name())
        assert again.properties["team"] == "snow" and "color" not in again.properties
        assert "color" not in client.get_table(*table.name()).parameters

    def test_those_of_other_engines_stay(self, table: Table, client: ThriftClient) -> None:
        seen = client.get_table(*table.name())
        seen.parameters["of_another"] = "kept"
        client.alter_table(*table.name(), seen)
        table.append(rows(range(3, 4)))
        assert client.get_table(*table.name()).parameters["of_another"] == "kept"

    def test_long_and_odd_values(self, table: Table, catalog: HiveCatalog) -> None:
        odd = {"text": "ä€😀 'quoted' \"twice\" \\ \n\t", "long": "x" * 100_000, "empty": ""}
        with table.transaction() as transaction:
            transaction.set_properties(odd)
        properties = catalog.load_table(table.name()).properties
        assert {key: properties[key] for key in odd} == odd
