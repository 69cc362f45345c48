"""Rows: written, read with filters, replaced, deleted, and read as they once were."""

import datetime
from typing import Any

import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, In, IsNull, LessThan, Not, Or, StartsWith
from pyiceberg.table import Table

from tests.pyiceberg.tables import BY_COUNTRY, SCHEMA, plain, row, rows


@pytest.fixture(params=["plain", "partitioned"])
def table(request: pytest.FixtureRequest, catalog: HiveCatalog, namespace: str) -> Table:
    """Rows 0 to 9 of Germany, 10 to 19 of France."""
    spec = {"partition_spec": BY_COUNTRY} if request.param == "partitioned" else {}
    table = catalog.create_table((namespace, "t"), SCHEMA, **spec)
    table.append(rows(range(10), "de"))
    table.append(rows(range(10, 20), "fr"))
    return table


def ids(table: Table, condition: Any = None, **options: Any) -> list[int]:
    chosen = {} if condition is None else {"row_filter": condition}
    return [each["id"] for each in plain(table.scan(**chosen, **options).to_arrow())]


def test_every_type_comes_back(table: Table) -> None:
    expected = [row(n, "de") for n in range(10)] + [row(n, "fr") for n in range(10, 20)]
    assert plain(table.scan().to_arrow()) == expected


def test_another_client_reads_it(table: Table, catalog: HiveCatalog) -> None:
    other = HiveCatalog("other", uri=str(catalog.properties["uri"]))
    assert ids(other.load_table(table.name())) == list(range(20))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (EqualTo("country", "fr"), range(10, 20)),
        (And(EqualTo("country", "de"), GreaterThanOrEqual("id", 7)), range(7, 10)),
        (Or(LessThan("id", 2), In("id", {15, 16})), [0, 1, 15, 16]),
        (Not(StartsWith("country", "d")), range(10, 20)),
        (EqualTo("place.city", "DE"), range(10)),
        (GreaterThanOrEqual("day", "2024-01-20"), [19]),
        (GreaterThanOrEqual("price", "4.50"), [18, 19]),
        (IsNull("country"), []),
        ("country = 'de' and id in (1, 3)", [1, 3]),
    ],
    ids=str,
)
def test_filters(table: Table, condition: Any, expected: Any) -> None:
    assert ids(table, condition) == list(expected)


def test_only_files_of_the_partition_are_planned(catalog: HiveCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), SCHEMA, partition_spec=BY_COUNTRY)
    table.append(rows(range(10), "de"))
    table.append(rows(range(10, 20), "fr"))
    assert len(list(table.scan().plan_files())) == 2
    assert len(list(table.scan(row_filter=EqualTo("country", "fr")).plan_files())) == 1


def test_columns_and_limit(table: Table) -> None:
    found = table.scan(selected_fields=("id", "country"), limit=5).to_arrow()
    assert found.column_names == ["id", "country"]
    assert len(found) == 5


def test_overwritten(table: Table) -> None:
    table.overwrite(rows(range(100, 103), "it"))
    assert ids(table) == [100, 101, 102]


def test_overwritten_in_part(table: Table) -> None:
    table.overwrite(rows(range(100, 103), "fr"), overwrite_filter=EqualTo("country", "fr"))
    assert ids(table) == [*range(10), 100, 101, 102]


def test_deleted(table: Table) -> None:
    table.delete(EqualTo("country", "de"))
    assert ids(table) == list(range(10, 20))
    table.delete(In("id", {11, 13}))
    assert ids(table) == [10, 12, *range(14, 20)]
    table.delete("id >= 0")
    assert ids(table) == []


def test_upserted(table: Table) -> None:
    result = table.upsert(rows(range(15, 25), "xx"), join_cols=["id"])
    assert (result.rows_updated, result.rows_inserted) == (5, 5)
    assert ids(table) == list(range(25))
    assert ids(table, EqualTo("country", "xx")) == list(range(15, 25))


def test_dynamic_overwrite(catalog: HiveCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), SCHEMA, partition_spec=BY_COUNTRY)
    table.append(rows(range(10), "de"))
    table.append(rows(range(10, 20), "fr"))
    table.dynamic_partition_overwrite(rows(range(50, 52), "fr"))
    assert ids(table) == [*range(10), 50, 51]


def test_time_travel(table: Table) -> None:
    table.delete(EqualTo("country", "de"))
    history = table.history()
    assert [ids(table, snapshot_id=entry.snapshot_id) for entry in history] == [
        list(range(10)),
        list(range(20)),
        list(range(10, 20)),
    ]
    parents = [table.snapshot_by_id(entry.snapshot_id).parent_snapshot_id for entry in history]
    assert parents == [None, *(entry.snapshot_id for entry in history[:-1])]
    then = datetime.datetime.fromtimestamp(history[1].timestamp_ms / 1000)
    as_of = table.snapshot_as_of_timestamp(int(then.timestamp() * 1000))
    assert as_of is not None and as_of.snapshot_id == history[1].snapshot_id


def test_tags_and_branches(table: Table, catalog: HiveCatalog) -> None:
    first, second = (entry.snapshot_id for entry in table.history())
    with table.manage_snapshots() as manage:
        manage.create_tag(first, "first").create_branch(first, "side")
    table.append(rows(range(30, 33), "it"), branch="side")
    again = catalog.load_table(table.name())
    assert ids(again, snapshot_id=again.snapshot_by_name("first").snapshot_id) == list(range(10))
    assert ids(again, snapshot_id=again.snapshot_by_name("side").snapshot_id) == [*range(10), 30, 31, 32]
    assert again.current_snapshot().snapshot_id == second
    assert ids(again) == list(range(20))


def test_rolled_back(table: Table, catalog: HiveCatalog) -> None:
    first = table.history()[0].snapshot_id
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(first)
    assert ids(catalog.load_table(table.name())) == list(range(10))


def test_expired_snapshots_are_gone(table: Table, catalog: HiveCatalog) -> None:
    first = table.history()[0].snapshot_id
    table.maintenance.expire_snapshots().by_id(first).commit()
    again = catalog.load_table(table.name())
    assert again.snapshot_by_id(first) is None
    assert ids(again) == list(range(20))


def test_several_changes_in_one_commit(table: Table, catalog: HiveCatalog) -> None:
    with table.transaction() as transaction:
        transaction.append(rows(range(30, 32), "it"))
        transaction.set_properties(changed="yes")
        with transaction.update_schema() as update:
            update.rename_column("big", "huge")
    again = catalog.load_table(table.name())
    assert ids(again) == [*range(20), 30, 31]
    assert again.properties["changed"] == "yes"
    assert again.schema().find_field("huge").field_id == 6


def test_a_failed_transaction_changes_nothing(table: Table, catalog: HiveCatalog) -> None:
    with pytest.raises(ZeroDivisionError), table.transaction() as transaction:
        transaction.append(rows(range(30, 32), "it"))
        raise ZeroDivisionError
    assert ids(catalog.load_table(table.name())) == list(range(20))
