"""Clustering from PySpark: files become few and sorted, and no reader sees another row."""

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from lake.client.lake_types import DataFile
from lake.tables.lake import LakeTable
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkError, SparkSession
from tests.support.target import local_path

DAY = "dt=2026-01-0{}".format
_BEFORE = "from lake.spark import plan_clustering, run_plan\n"


@pytest.fixture(scope="module", params=["4", pytest.param("3.5", marks=pytest.mark.long)], ids=["spark-4", "spark-3.5"])
def spark(request: pytest.FixtureRequest, hinting_session: Callable[[str], SparkSession]) -> SparkSession:
    return hinting_session(request.param)


def run(lake: Lake, code: str) -> Any:
    return lake.run(_BEFORE + code)


def plan(lake: Lake, table: LakeTable, **options: Any) -> tuple[str, str]:
    """The timestamp of a new plan, or nothing, and the reason."""
    found = run(
        lake,
        f"planned = plan_clustering(spark, {table.name!r}, **{options!r})\n"
        "result = [planned.instant.timestamp if planned.instant else '', planned.reason]",
    )
    return found[0], found[1]


def clustered(lake: Lake, table: LakeTable, **options: Any) -> str:
    """Plans and runs; the instant's timestamp."""
    timestamp, reason = plan(lake, table, **options)
    assert timestamp, reason
    assert run(lake, f"result = run_plan(spark, {table.name!r}, {timestamp!r}).repeated") is False
    return timestamp


def values(table: LakeTable, file: DataFile, *columns: str) -> list[Any]:
    found = pq.read_table(local_path(f"{table.location()}/{file.path}"), columns=[*columns], partitioning=None)
    return [row[columns[0]] if len(columns) == 1 else tuple(row.values()) for row in found.to_pylist()]


@pytest.mark.long
def test_small_files_become_one(lake: Lake, table: LakeTable) -> None:
    for number in (1, 2, 3):
        lake.write(table, f"rows_of([{number}]).union(rows_of([10 + {number}], '2026-01-02'))")
    lake.write(table, "rows_of([20], '2026-01-03')")
    last = table.position().position
    assert plan(lake, table, small_file_bytes=10)[0] == ""
    timestamp = clustered(lake, table)
    assert {each.partition: each.rows for each in table.snapshot()} == {DAY(1): 3, DAY(2): 3, DAY(3): 1}
    expected = {DAY(1): [1, 2, 3], DAY(2): [11, 12, 13], DAY(3): [20]}
    assert lake.listed(table) == expected
    for as_of in (last, last + 1, None):
        assert lake.ids(table, as_of=as_of) == [1, 2, 3, 11, 12, 13, 20]
    assert sorted(lake.spark.column(f"SELECT id FROM {table.name}")) == [1, 2, 3, 11, 12, 13, 20]
    details = table.details(timestamp, "clustering")
    assert (details.instant.action, details.partitions) == ("replacecommit", [DAY(1), DAY(2)])
    assert run(lake, f"result = run_plan(spark, {table.name!r}, {timestamp!r}).repeated") is True
    assert table.position().position == last + 1
    assert plan(lake, table) == (
        "",
        "no partition has two files below 67108864 bytes that would become one",
    )


@pytest.mark.long
def test_rows_are_sorted_into_files_of_like_size(lake: Lake) -> None:
    """By one column after the other, with nulls first; each file begins where the one before ends."""
    table = lake.table("sorted", "id BIGINT, name STRING, city STRING, dt STRING", "dt")
    rows = (
        "spark.range({0}, {1}).selectExpr"
        "('id', 'string(id % 1000) name', 'if(id % 7 = 0, null, string(id % 5)) city', '{2} dt')"
    )
    for number in range(2):
        both = f"{rows.format(number * 10_000, (number + 1) * 10_000, 1)}.union({rows.format(number, number + 1, 2)})"
        lake.write(table, f"{both}.repartition(2)")
    size = sum(each.size for each in table.snapshot(filter="dt = '1'"))
    done = clustered(lake, table, order_by=["city", "id"], small_file_bytes=size // 4, target_file_bytes=size // 4)
    files = sorted(table.snapshot(filter="dt = '1'"), key=lambda each: values(table, each, "city", "id")[0][1])
    assert 3 <= len(files) <= 5
    assert all(len(rows) > 20_000 / len(files) / 1.5 for rows in (values(table, each, "id") for each in files))
    found = [[(city or "", id) for city, id in values(table, each, "city", "id")] for each in files]
    assert all(rows == sorted(rows) for rows in found)
    found.sort()
    assert [row for rows in found for row in rows] == sorted(row for rows in found for row in rows)
    assert len(list(table.snapshot(filter="dt = '2'"))) == 1
    assert sum(each.rows or 0 for each in table.snapshot()) == 20_002
    assert plan(lake, table, order_by=["city", "id"], small_file_bytes=1)[0] == ""
    assert lake.ids(table, "count(*) as id, count(distinct id), count(city)", as_of=done) == lake.ids(
        table, "count(*) as id, count(distinct id), count(city)", as_of=2
    )


CURVED = (
    "spark.range(10000).selectExpr('id', 'int(pmod(hash(id), 1000)) x',"
    " \"date_add(date'2026-01-01', pmod(hash(id, 1), 1000)) y\","
    " \"if(id % 100 = 0, null, concat('same ', pmod(hash(id, 2), 1000))) z\").repartition(8)"
)


@pytest.mark.long
def test_a_curve_sorts_by_several_columns_alike(lake: Lake) -> None:
    """Each file has a part of the range of each column: a search by either reads some of the files alone."""
    table = lake.table("curved", "id BIGINT, x INT, y DATE, z STRING")
    lake.write(table, CURVED)
    size = sum(each.size for each in table.snapshot())
    options = {"order_by": ["x", "y"], "curve": "z-order", "small_file_bytes": 1, "target_file_bytes": size // 16}
    clustered(lake, table, **options)
    files = list(table.snapshot())
    assert 12 <= len(files) <= 20
    for column in ("x", "y"):
        ranges = [values(table, each, column) for each in files]
        middle = sorted(itertools.chain(*ranges))[10_000 // 3]
        assert sum(min(each) <= middle <= max(each) for each in ranges) < len(files) * 0.6
    assert lake.listed(table)[""] == list(range(10_000))
    assert plan(lake, table, **options)[0] == ""


@pytest.mark.long
def test_a_curve_through_four_columns_loses_no_row(lake: Lake) -> None:
    """Texts that begin alike, nulls, values that occur often."""
    table = lake.table("curved", "id BIGINT, x INT, y DATE, z STRING")
    lake.write(table, CURVED)
    size = sum(each.size for each in table.snapshot())
    for order_by in (["z", "y", "x", "id"], ["z"]):
        clustered(lake, table, order_by=order_by, curve="z-order", small_file_bytes=1, target_file_bytes=size // 5)
        assert len(list(table.snapshot())) > 2
        assert lake.listed(table)[""] == list(range(10_000))


@pytest.mark.long
def test_odd_partitions_and_columns_stay(lake: Lake) -> None:
    """Names that need escapes, nulls, columns that came later, nested values."""
    odd = lake.table("odd", "id BIGINT, m MAP<STRING, INT>, day DATE, city STRING", "day, city")
    for number in range(3):
        lake.run(f"""
rows = spark.sql('''
    SELECT {number}L AS id, map('a', {number}) AS m, DATE '2026-01-01' AS day, 'a/b=c% ü' AS city
    UNION ALL SELECT 10L + {number}, null, null, 'x'
''').coalesce(1)
if {number} == 2:
    rows = rows.selectExpr("*", "'new' AS extra")
write(rows, {odd.name!r}, add_columns=True)
""")
    before = lake.ids(odd, "id, m['a'], string(day), city, extra")
    clustered(lake, odd, order_by=["extra", "id"])
    assert len(list(odd.snapshot())) == 2
    assert lake.ids(odd, "id, m['a'], string(day), city, extra") == before
    assert lake.spark.sql(f"SELECT id, m['a'], string(day), city, extra FROM {odd.name} ORDER BY id") == before


@pytest.mark.long
def test_increments_have_each_row_once(lake: Lake, table: LakeTable) -> None:
    lake.write(table, "rows_of([1])")
    lake.write(table, "rows_of([2])")
    clustered(lake, table)
    lake.write(table, "rows_of([3])", operation="replace_partitions")
    steps = {0: [], 1: [1], 2: [1, 2], 3: [1, 2], 4: [3]}
    for start, end in [(0, 2), (0, 3), (1, 3), (2, 3), (0, 4), (1, 4), (3, 4)]:
        came = [id for id in steps[end] if id not in steps[start]]
        went = [id for id in steps[start] if id not in steps[end]]
        changes = [[id, "added"] for id in came] + [[id, "removed"] for id in went]
        found = lake.ids(table, "id, _change", incremental=(start, end), with_removed=True)
        assert found == sorted(changes)
    assert lake.ids(table, incremental=(1, 3)) == [2]


@pytest.mark.long
def test_a_killed_run_is_taken_up_by_another(lake: Lake, table: LakeTable) -> None:
    """What it left in the directory of its attempt is gone."""
    lake.write(table, "rows_of([1])")
    lake.write(table, "rows_of([2])")
    timestamp, _ = plan(lake, table)
    taken = table.transition(table.details(timestamp, "clustering").instant, "inflight", runner="dies")
    with pytest.raises(SparkError, match="run by another process"):
        run(lake, f"run_plan(spark, {table.name!r}, {timestamp!r})")
    table.transition(taken, "requested")
    with pytest.raises(SparkError, match="no way to write"):
        run(
            lake,
            f"""
from lake.spark import clustering
def fails(*_):
    raise OSError("no way to write")
works, clustering.written_files = clustering.written_files, fails
try:
    run_plan(spark, {table.name!r}, {timestamp!r})
finally:
    clustering.written_files = works
""",
        )
    assert run(lake, f"result = run_plan(spark, {table.name!r}, {timestamp!r}).instant.attempt") == 3
    assert lake.ids(table) == [1, 2]
    assert lake.listed(table) == {DAY(1): [1, 2]}


@pytest.mark.long
def test_files_come_along_as_copies_where_there_are_no_links(lake: Lake, table: LakeTable) -> None:
    lake.write(table, "rows_of([1])")
    (file,) = table.snapshot()
    place = table.location()
    found = run(
        lake,
        f"""
from lake.spark.clustering import SessionFiles
files, result = SessionFiles(spark), []
bare = {place.removeprefix("file:")!r}
files.link([(f"{{bare}}/{file.path}", f"{{bare}}/more/copy.parquet")])
result.append(spark.read.parquet(bare + "/more").count())
files.remove_files([bare + "/more/copy.parquet"])
try:
    files.link([(f"{{bare}}/more/copy.parquet", f"{{bare}}/more/other.parquet")])
except FileNotFoundError as error:
    result.append(str(error).rpartition("/")[2])
""",
    )
    assert found == [1, "copy.parquet"]


@pytest.mark.long
def test_what_can_not_be_clustered_says_why(lake: Lake) -> None:
    keyed = lake.table("keyed", "id BIGINT, name STRING", **{"primary-key": "id"})
    with pytest.raises(SparkError, match=r"NotClusterable: .* Compact it \(plan_compaction\)"):
        plan(lake, keyed)
    with pytest.raises(SparkError, match="NoSuchObjectException"):
        run(lake, f"run_plan(spark, {keyed.name!r}, '20260101000000000')")
