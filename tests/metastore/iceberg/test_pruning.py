"""Files that a filter can't match are skipped by readers, and nothing else is."""

import datetime
import decimal
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo, GreaterThan, IsNull, LessThan, NotNull

from lake.tables.lake import LakeClient, LakeTable
from tests.lake.client.test_column_ids import alter
from tests.metastore.iceberg.shown import Duck, Rows, add_file, keyed, lake_table, of_pyiceberg, own
from tests.support.target import local_path

COLUMNS = {
    "id": "bigint",
    "n": "int",
    "s": "string",
    "day": "date",
    "at": "timestamp",
    "price": "decimal(12,2)",
    "f": "double",
    "raw": "binary",
}
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(12, 2)),
        ("f", pa.float64()),
        ("raw", pa.binary()),
        ("part", pa.string()),
    ]
)


def row(choose: random.Random, id: int, part: str) -> dict[str, Any]:
    n = choose.randint(-5, 5) + 100 * ord(part)
    day = datetime.date(2026, 1, 1) + datetime.timedelta(days=n)
    values = {
        "n": n,
        "s": choose.choice(["ä", "z", "a" * 17, "\U0001f600" * 20, ""]) + str(n),
        "day": day,
        "at": datetime.datetime(day.year, day.month, day.day, 1, 2, 3, 456, datetime.UTC),
        "price": decimal.Decimal(n) / 4,
        "f": choose.choice([float("nan"), n / 3, float("inf")]),
        "raw": bytes([choose.randint(0, 255)]) * choose.randint(0, 20),
    }
    return {"id": id, "part": part} | {k: None if choose.random() < 0.15 else each for k, each in values.items()}


def same(found: Rows, expected: Rows) -> bool:
    return [repr(sorted(each.items())) for each in found] == [repr(sorted(each.items())) for each in expected]


def matching(rows: Rows, name: str, test: Any) -> Rows:
    return [each for each in rows if each[name] is not None and test(each[name])]


def test_filters_find_all_their_rows(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    duck.connection.execute("SET TimeZone = 'UTC'")
    choose = random.Random(7)
    table = keyed(lake, COLUMNS)
    for part in "abc":
        rows = [row(choose, id, part) for id in range(12)]
        table.upsert(pa.Table.from_pylist(rows, schema=ARROW))
    table.upsert(pa.Table.from_pylist([row(choose, id, "b") for id in range(3, 9)], schema=ARROW))
    everything = own(table)
    shown = ours.load_table(table.name)
    for name in COLUMNS:
        values = [each[name] for each in everything if each[name] is not None and each[name] == each[name]]
        for value in choose.sample(values, 3):
            for term, sign, test in (
                (EqualTo, "=", lambda each, v=value: each == v),
                (GreaterThan, ">", lambda each, v=value: each > v),
                (LessThan, "<", lambda each, v=value: each < v),
            ):
                if name == "f" and sign != "<":
                    continue  # NaN is greater than all for DuckDB, unless a row group's statistics pass over it
                expected = matching(everything, name, test)
                found = in_duck(duck, table, f'WHERE "{name}" {sign} ?', value)
                assert same(found, expected), f"{name} {sign} {value!r}"
                assert same(in_pyiceberg(shown, term(name, value)), expected), f"{name} {sign} {value!r}"
        empty = [each for each in everything if each[name] is None]
        assert same(in_duck(duck, table, f'WHERE "{name}" IS NULL'), empty)
        assert same(in_pyiceberg(shown, IsNull(name)), empty)


def in_duck(duck: Duck, table: LakeTable, condition: str, *values: Any) -> Rows:
    found = duck.connection.execute(f"SELECT * FROM lake.{table.name} {condition}", values).to_arrow_table().to_pylist()
    return sorted(found, key=lambda each: tuple(map(repr, (each["id"], each["part"]))))


def in_pyiceberg(shown: Any, condition: BooleanExpression) -> Rows:
    found = shown.scan(row_filter=condition).to_arrow().to_pylist()
    return sorted(found, key=lambda each: tuple(map(repr, (each["id"], each["part"]))))


def test_files_are_skipped(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    """A file that is gone isn't missed by a query whose filter it can't match."""
    table = keyed(lake, {"id": "bigint", "n": "int", "s": "string"}, keys=(), bucket="8")
    names = [("id", pa.int64()), ("n", pa.int32()), ("s", pa.string())]
    rows = [{"id": id, "n": id * 10, "s": f"{id:05d}" * 5} for id in range(8)]
    for each in rows:
        table.upsert(pa.Table.from_pylist([each], schema=pa.schema(names)))
    shown = ours.load_table(table.name)
    files = [each.file for each in shown.scan().plan_files()]
    one = next(each for each in files if each.record_count == 1)
    [only] = list(shown.scan(row_filter=EqualTo("n", 30)).plan_files())
    assert only.file.file_path in {each.file_path for each in files}
    assert len(files) > 2 and one.lower_bounds and one.upper_bounds and one.null_value_counts
    for each in files:
        if each.file_path != only.file.file_path:
            Path(local_path(each.file_path)).unlink()
    found = duck.connection.execute(f"SELECT id FROM lake.{table.name} WHERE n = 30").fetchall()
    assert found == [(3,)]
    Path(local_path(only.file.file_path)).unlink()
    assert duck.connection.execute(f"SELECT id FROM lake.{table.name} WHERE s > '{'00008' * 5}'").fetchall() == []
    assert len(list(shown.scan(row_filter=GreaterThan("n", 1_000)).plan_files())) == 0


def test_null_counts_prune(lake: LakeClient, ours: RestCatalog) -> None:
    table = lake_table(lake)
    add_file(table, "part=a", [1, 2])
    add_file(table, "part=b", [3])
    shown = ours.load_table(table.name)
    assert len(list(shown.scan(row_filter=NotNull("id")).plan_files())) == 2
    assert list(shown.scan(row_filter=IsNull("id")).plan_files()) == []


def test_bounds_of_columns_that_change(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    table = keyed(lake, {"id": "bigint", "n": "int", "b": "string"}, keys=())
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("b", pa.string())])
    table.upsert(pa.Table.from_pylist([{"id": 1, "n": 10, "b": "one"}], schema=schema))
    ours.load_table(table.name)  # manifests with bounds of the narrower type
    alter(table, "id:bigint", "x:bigint", "b:string")  # n is x now, and wider
    for value, expected in ((10, [1]), (11, [])):
        found = ours.load_table(table.name).scan(row_filter=EqualTo("x", value))
        assert [each["id"] for each in found.to_arrow().to_pylist()] == expected
        assert len(list(found.plan_files())) == len(expected)
        assert duck.connection.execute(f"SELECT id FROM lake.{table.name} WHERE x = {value}").fetchall() == [
            (each,) for each in expected
        ]
    wide = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("b", pa.string())])
    table.upsert(pa.Table.from_pylist([{"id": 2, "x": 1 << 40, "b": "two"}], schema=wide))
    for value, count in ((10, 1), (1 << 40, 0)):
        scan = ours.load_table(table.name).scan(row_filter=EqualTo("x", value), snapshot_id=1)
        assert len(scan.to_arrow()) == count
        query = f"SELECT count(*) FROM lake.{table.name} AT (VERSION => 1) WHERE x = {value}"
        assert duck.connection.execute(query).fetchall() == [(count,)]
    alter(table, "id:bigint", "b:string")
    alter(table, "id:bigint", "b:string", "x:bigint")  # another x, which no file has
    found = ours.load_table(table.name).scan(row_filter=IsNull("x"))
    assert len(found.to_arrow()) == 2
    assert duck.connection.execute(f"SELECT count(*) FROM lake.{table.name} WHERE x IS NULL").fetchall() == [(2,)]
    assert own(table) == of_pyiceberg(ours, table)


def test_bounds_of_another_type_are_not_read(lake: LakeClient, ours: RestCatalog, duck: Duck) -> None:
    """Manifests whose bounds would be read as other values belong to no snapshot that is shown."""
    table = keyed(lake, {"id": "bigint", "n": "int"}, keys=())
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    table.upsert(pa.Table.from_pylist([{"id": 1, "n": 10}], schema=schema))
    assert [each.snapshot_id for each in ours.load_table(table.name).history()] == [1]
    alter(table, "id:bigint", "n:string")
    found = ours.load_table(table.name)
    [planned] = found.scan(row_filter=NotNull("n")).plan_files()
    assert {*planned.file.lower_bounds} == {1}
    text = pa.schema([("id", pa.int64()), ("n", pa.string())])
    table.upsert(pa.Table.from_pylist([{"id": 2, "n": "ten"}], schema=text))
    assert [each.snapshot_id for each in ours.load_table(table.name).history()] == [1, 2]
    folder = Path(local_path(table.location())) / ".iceberg"
    assert len({each.name for each in folder.rglob("snap-1-*")}) == 2


@pytest.mark.parametrize("damage", ["gone", "torn"])
def test_a_footer_that_is_not_needed_may_be_missing(lake: LakeClient, ours: RestCatalog, damage: str) -> None:
    table = keyed(lake, {"id": "bigint", "n": "int"}, keys=())
    table.upsert(pa.table({"id": pa.array([1], pa.int64()), "n": pa.array([1], pa.int32())}))
    [file] = Path(local_path(table.location())).rglob("bucket-*.parquet")
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(b"x" * len(content))
    [planned] = ours.load_table(table.name).scan(row_filter=AlwaysTrue()).plan_files()
    assert (planned.file.record_count, planned.file.lower_bounds) == (1, None)
