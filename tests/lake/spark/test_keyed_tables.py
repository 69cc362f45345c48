"""Keyed tables from PySpark, on both lines: rows are changed by their keys, and both readers agree."""

from collections.abc import Callable
from typing import Any

import pytest

from lake.client.lake_types import Moment
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed_tables import COMMIT_VERSION
from lake.tables.lake import LakeTable
from tests.lake.spark.conftest import NUMBERS
from tests.lake.spark.lake import Lake
from tests.lake.tables.keyed.histories import compared, in_order
from tests.spark.session import SparkError, SparkSession
from tests.support import builders

COLUMNS = "id BIGINT, name STRING, price DECIMAL(10,2), at TIMESTAMP, day DATE"
_BEFORE = """
from decimal import Decimal
from lake.spark.table_services import plan_compaction, publish, run_plan
def shop(*rows, extra=()):
    columns = ["id bigint", "name string", "price decimal(10,2)", "at timestamp", "day string", *extra]
    values = [
        (id, name, Decimal(str(price)), at and datetime.fromisoformat(at), *others)
        for id, name, price, at, *others in rows
    ]
    return spark.createDataFrame(values, ", ".join(columns))
def plain(frame):
    return sorted([str(value) for value in row] for row in frame.collect())
"""


@pytest.fixture(scope="module", params=["4", pytest.param("3.5", marks=pytest.mark.long)], ids=["spark-4", "spark-3.5"])
def spark(request: pytest.FixtureRequest, hinting_session: Callable[[str], SparkSession]) -> SparkSession:
    return hinting_session(request.param)


def keyed(lake: Lake, **properties: str) -> LakeTable:
    name, location = f"k{next(NUMBERS)}", lake.database
    listed = {
        "primary-key": "id,day",
        "bucket": "2",
        **{key.replace("__", "."): value for key, value in properties.items()},
    }
    listed = {key.replace("_", "-"): value for key, value in listed.items()}
    text = ", ".join(f"'{key}' = '{value}'" for key, value in listed.items())
    lake.spark.sql(
        f"CREATE TABLE {location}.{name} ({COLUMNS}) USING parquet PARTITIONED BY (day) TBLPROPERTIES ({text})"
    )
    return lake.client.table(f"{location}.{name}")


def run(lake: Lake, code: str) -> Any:
    return lake.run(_BEFORE + code)


def rows(lake: Lake, table: LakeTable, **options: Any) -> list[list[str]]:
    """The rows that Spark reads, as texts; the Arrow reader must have the same."""
    found = run(lake, f"result = plain(read(spark, {table.name!r}, **{options!r}))")
    if not options:
        assert len(found) == table.scan().to_arrow().num_rows
        by_arrow = sorted([str(row["id"]), row["name"]] for row in table.scan().to_arrow().to_pylist())
        assert sorted(row[:2] for row in found) == [[id, str(name)] for id, name in by_arrow]
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
def test_rows_are_upserted_deleted_and_merged(lake: Lake, kind: str) -> None:
    change_rows(lake, keyed(lake, table_type=kind))


@pytest.mark.long
def test_the_older_line_changes_rows(lake: Lake, hinting_session: Callable[[str], SparkSession]) -> None:
    older = Lake(hinting_session("3.5"), lake.client, lake.database)
    change_rows(older, keyed(older, table_type="copy-on-write"))


@pytest.mark.long
def test_texts_beside_a_delete_stay_as_they_are(lake: Lake, hinting_session: Callable[[str], SparkSession]) -> None:
    """A bucket's rows are a slice of what a task gets, of which the older line's pyarrow garbles texts in if_else."""
    older = Lake(hinting_session("3.5"), lake.client, lake.database)
    table = keyed(older, bucket="1")
    marked = [
        (1, "one", 1, None, "2026-01-01", "insert"),
        (1, "gone", 1, None, "2026-01-02", "delete"),
        (2, "two", 1, None, "2026-01-02", "insert"),
    ]
    run(older, f"write(shop(*{marked!r}, extra=['_change_type string']), {table.name!r}, operation='merge')")
    assert [row[1] for row in rows(older, table)] == ["one", "two"]


def test_a_bucket_that_came_and_went_has_no_change(lake: Lake) -> None:
    table = keyed(lake, bucket="1")
    run(lake, f"write(shop((1, 'a', 1, None, '2026-01-01')), {table.name!r}, operation='upsert')")
    table.roll_back(next(table.instants(latest_first=True)))
    run(lake, f"write(shop((2, 'b', 1, None, '2026-01-02')), {table.name!r}, operation='upsert')")
    changes = run(lake, f"result = plain(read(spark, {table.name!r}, incremental=(0, None), changes=True))")
    assert [(row[0], row[5]) for row in changes] == [("2", "insert")]


def change_rows(lake: Lake, table: LakeTable) -> None:
    """Upserts, deletes and merges rows, and compares what is read with what should be."""
    run(
        lake,
        f"""
t = {table.name!r}
write(shop((1, "a", 1.5, "2026-01-01 10:00:00", "2026-01-01"), (2, "b", 2, None, "2026-01-01"),
           (3, "c", 3, None, "2026-01-02")), t, operation="upsert")
write(shop((2, "B", 2.5, None, "2026-01-01"), (4, "d", 4, None, "2026-01-02")), t, operation="upsert")
write(shop((1, "", 0, None, "2026-01-01")).select("id", "day"), t, operation="delete")
marked = [(3, "C", 3, None, "2026-01-02", "update_postimage"), (3, "x", 3, None, "2026-01-02", "update_preimage"),
          (4, "d", 4, None, "2026-01-02", "delete"), (5, "e", 5, None, "2026-01-03", "insert")]
write(shop(*marked, extra=["_change_type string"]), t, operation="merge")
""",
    )
    day = "2026-01-0{}".format
    assert rows(lake, table) == [
        ["2", "B", "2.50", "None", day(1)],
        ["3", "C", "3.00", "None", day(2)],
        ["5", "e", "5.00", "None", day(3)],
    ]
    assert rows(lake, table, as_of=1) == [
        ["1", "a", "1.50", "2026-01-01 10:00:00", day(1)],
        ["2", "b", "2.00", "None", day(1)],
        ["3", "c", "3.00", "None", day(2)],
    ]
    changes = run(
        lake,
        f"result = plain(read(spark, {table.name!r}, incremental=(1, None), changes=True)"
        ".select('id', 'name', '_change_type', '_commit_version'))",
    )
    assert changes == [
        ["1", "a", "delete", "3"],
        ["2", "B", "update_postimage", "2"],
        ["2", "b", "update_preimage", "2"],
        ["3", "C", "update_postimage", "4"],
        ["3", "c", "update_preimage", "4"],
        ["5", "e", "insert", "4"],
    ]
    every = run(
        lake,
        f"result = plain(read(spark, {table.name!r}, incremental=(1, None), changes='all')"
        ".select('id', 'name', '_change_type', '_commit_version'))",
    )
    came_and_went = [["4", "d", "delete", "4"], ["4", "d", "insert", "2"]]
    assert every == sorted([*changes, *came_and_went])
    by_arrow = table.changes(1).to_arrow().select(["id", "name", "_change_type", "_commit_version"]).to_pylist()
    assert sorted([str(value) for value in each.values()] for each in by_arrow) == changes
    assert [row[0] for row in rows(lake, table, incremental=(1, None))] == ["2", "3", "5"]
    assert [
        row["name"] for row in table.lookup([{"id": 3, "day": _date(2)}, {"id": 1, "day": _date(1)}]).to_pylist()
    ] == ["C"]


@pytest.mark.long
@pytest.mark.parametrize("producer", ["lookup", "input"])
def test_changes_are_written_with_the_rows(lake: Lake, producer: str) -> None:
    table = keyed(lake, table_type="merge-on-read", changelog_producer=producer)
    day = "2026-01-01"
    run(
        lake,
        f"""
t, day = {table.name!r}, {day!r}
def merge(*rows):
    write(shop(*[(id, name, 1, None, day, kind) for id, name, kind in rows], extra=["_change_type string"]), t,
          operation="merge")
merge((1, "a", "insert"), (2, "b", "insert"), (3, "c", "insert"))
merge((1, "a", "update_preimage"), (1, "A", "update_postimage"), (2, "b", "delete"))
merge((1, "A", "update_preimage"), (1, "AA", "update_postimage"), (4, "d", "insert"))
""",
    )
    assert table.changes(0).changelog().is_whole
    marks = "'id', 'name', '_change_type', '_commit_version'"
    for changes in (True, "all"):
        found = run(
            lake,
            f"result = plain(read(spark, {table.name!r}, incremental=(1, 3), changes={changes!r}).select({marks}))",
        )
        by_arrow = table.changes(1, 3).to_arrow(of_each_commit=changes == "all")
        snapshots = compared(table, 1, 3, of_each_commit=changes == "all")
        assert in_order(by_arrow) == in_order(snapshots)
        names = ["id", "name", CHANGE_TYPE, COMMIT_VERSION]
        assert found == sorted([str(each[name]) for name in names] for each in snapshots.to_pylist())
        assert len(found) == (4 if changes is True else 6)
    if producer == "input":
        with pytest.raises(SparkError, match="the key id=1 has no update_preimage"):
            run(
                lake,
                f"""
write(shop((1, "z", 1, None, {day!r}, "update_postimage"), extra=["_change_type string"]), {table.name!r},
      operation="merge")
""",
            )
        with pytest.raises(SparkError, match="takes merges alone, not upsert"):
            run(lake, f"write(shop((1, 'z', 1, None, {day!r})), {table.name!r}, operation='upsert')")
    run(lake, f"write(shop((9, 'z', 1, None, {day!r})), {table.name!r}, operation='replace_partitions')")
    assert not table.changes(0).changelog().is_whole
    assert in_order(table.changes(0).to_arrow()) == in_order(compared(table, 0, 4))


def test_a_compaction_changes_no_row(lake: Lake) -> None:
    table = keyed(lake, table_type="merge-on-read", sequence__field="price")
    code = f"""
t = {table.name!r}
write(shop((1, "a", 1, None, "2026-01-01"), (2, "b", 5, None, "2026-01-01")), t, operation="upsert")
write(shop((1, "late", 0.5, None, "2026-01-01"), (2, "B", 6, None, "2026-01-01")), t, operation="upsert")
"""
    run(lake, code)
    before = rows(lake, table)
    assert [row[1] for row in before] == ["a", "B"]
    last = table.position().position
    found = run(
        lake,
        f"""
planned = plan_compaction(spark, {table.name!r})
done = run_plan(spark, {table.name!r}, planned.instant.timestamp)
again = run_plan(spark, {table.name!r}, planned.instant.timestamp)
result = [planned.buckets, done.repeated, again.repeated, plan_compaction(spark, {table.name!r}).instant]
""",
    )
    assert found[1:] == [False, True, None]
    assert rows(lake, table) == before
    assert not any(each.kind == "log" for each in table.snapshot())
    assert run(lake, f"result = read(spark, {table.name!r}, incremental=({last}, None), changes=True).count()") == 0


@pytest.mark.long
@pytest.mark.parametrize("partitioned", [True, False])
def test_spark_s_own_sql_reads_what_is_published(
    lake: Lake, partitioned: bool, spark_session: Callable[[str], SparkSession]
) -> None:
    """In a session without the extension, which reads directories."""
    table = keyed(lake, table_type="merge-on-read") if partitioned else flat(lake)
    plain = spark_session(lake.spark.line)

    def by_sql() -> list[list[str]]:
        plain.sql(f"REFRESH TABLE {table.name}")
        return [
            list(map(str, row)) for row in plain.sql(f"SELECT id, name, price, at, day FROM {table.name} ORDER BY id")
        ]

    def by_timeline() -> list[list[str]]:
        return rows(lake, table)

    first = (1, "a", 1.5, "2026-01-01 10:00:00", "2026-01-01"), (2, "b", 2, None, "2026-01-02")
    run(lake, f"write(shop(*{first!r}), {table.name!r}, operation='upsert')")
    if partitioned:  # which partitions are read is known, not that a table is
        with pytest.raises(SparkError, match="was never published"):
            by_sql()
    else:
        assert by_sql() == []
    run(lake, f"publish(spark, {table.name!r})")
    published = by_sql()
    assert published == by_timeline() and len(published) == 2
    second = (2, "B", 2.5, None, "2026-01-02"), (3, "c", 3, None, "2026-01-02")
    run(lake, f"write(shop(*{second!r}), {table.name!r}, operation='upsert')")
    assert by_sql() == published != by_timeline()
    partitions = run(
        lake,
        f"""
planned = plan_compaction(spark, {table.name!r})
if planned.instant is not None:
    run_plan(spark, {table.name!r}, planned.instant.timestamp)
result = publish(spark, {table.name!r}).partitions
""",
    )
    assert partitions == (["day=2026-01-02"] if partitioned else [""])
    assert by_sql() == by_timeline() and len(by_sql()) == 3
    with pytest.raises(SparkError, match=r"NoExtension: .* make it with lake\.spark\.configure"):
        plain.python(f"from lake.spark import write\nwrite(spark.range(1), {table.name!r}, operation='upsert')")


def flat(lake: Lake) -> LakeTable:
    """A table without partitions, by Spark's own format: Spark keeps its location in a property, too."""
    name = f"{lake.database}.flat{next(NUMBERS)}"
    lake.spark.sql(
        f"CREATE TABLE {name} (id BIGINT, name STRING, price DECIMAL(10,2), at TIMESTAMP, day STRING) USING parquet"
        " TBLPROPERTIES ('primary-key' = 'id')"
    )
    return lake.client.table(name)


def test_rows_of_two_writers_are_merged_again(lake: Lake) -> None:
    """Another writer completes a change of the same bucket while rows are written."""
    one, other = keyed(lake, bucket="1"), keyed(lake, bucket="1")
    found = run(
        lake,
        f"""
from lake.spark import write_together
import lake.spark.keyed.commits as commits
written, races = commits.write_buckets, []
def slow(*args, **options):
    done = written(*args, **options)
    if len(races) < 2:
        races.append(1)
        commits.write_buckets = written
        write(shop((len(races), "quick", 1, None, "2026-01-01")), {one.name!r}, operation="upsert")
        commits.write_buckets = slow
    return done
write(shop((0, "z", 1, None, "2026-01-01")), {one.name!r}, operation="upsert")
commits.write_buckets = slow
try:
    rows = shop((1, "late", 2, None, "2026-01-01"), (3, "c", 2, None, "2026-01-01"))
    done = write_together([(rows, {one.name!r}, "upsert"), (rows, {other.name!r}, "upsert")])
finally:
    commits.write_buckets = written
result = [len(races), *(each.rows for each in done)]
""",
    )
    assert found == [2, 2, 2]
    assert [row[:2] for row in rows(lake, one)] == [["0", "z"], ["1", "late"], ["2", "quick"], ["3", "c"]]
    assert [row[:2] for row in rows(lake, other)] == [["1", "late"], ["3", "c"]]
    assert [each.state for each in one.instants()] == ["completed"] * 4, "what was aborted is gone"


def test_rows_are_replaced(lake: Lake) -> None:
    table = keyed(lake)
    run(
        lake,
        f"""
t = {table.name!r}
write(shop(*((id, "a", 1, None, "2026-01-01") for id in range(50))), t, operation="upsert")
write(shop((1, "x", 1, None, "2026-01-02")), t, operation="upsert")
write(shop((7, "n", 1, None, "2026-01-01")), t, operation="replace_partitions")
""",
    )
    assert [row[0] for row in rows(lake, table)] == ["1", "7"]
    deleted = run(
        lake,
        f"""
result = read(spark, {table.name!r}, incremental=(2, None), changes=True).groupBy("_change_type", "_commit_version")
result = plain(result.count())""",
    )
    assert deleted == [["delete", "3", "49"], ["update_postimage", "3", "1"], ["update_preimage", "3", "1"]]
    run(lake, f"""write(shop((9, "n", 1, None, "2026-01-03")), {table.name!r}, operation="overwrite")""")
    assert [row[0] for row in rows(lake, table)] == ["9"]


def test_what_does_not_fit_is_refused(lake: Lake) -> None:
    table = keyed(lake)
    plain = lake.table("plain", COLUMNS, "day")
    one = 'shop((1, "a", 1, None, "2026-01-01"))'
    for rows_, name, options, message in [
        (one, table.name, {}, "has a primary key: upsert its rows"),
        (one, plain.name, {"operation": "upsert"}, "has no primary-key among its properties"),
        (f"{one}.drop('id')", table.name, {"operation": "upsert"}, "the rows have no column id"),
        (f"{one}.withColumn('more', sf.lit(1))", table.name, {"operation": "upsert"}, "the table has no column more"),
        (f"{one}.withColumn('id', sf.lit(None))", table.name, {"operation": "upsert"}, "is null in some rows"),
        (f"{one}.union({one.replace('a', 'b', 1)})", table.name, {"operation": "upsert"}, "nothing orders them"),
        (
            f"{one}.withColumn('_change_type', sf.lit('no'))",
            table.name,
            {"operation": "merge"},
            "_change_type is one of",
        ),
    ]:
        with pytest.raises(SparkError, match=message):
            run(lake, f"from pyspark.sql import functions as sf\nwrite({rows_}, {name!r}, **{options!r})")
    assert table.position().position == 0


def _date(day: int) -> Any:
    from datetime import date

    return date(2026, 1, day)


def test_tables_are_written_together(lake: Lake) -> None:
    one, other = keyed(lake), keyed(lake, table_type="merge-on-read")
    found = run(
        lake,
        f"""
from lake.spark import write_together
rows = shop((1, "a", 1, None, "2026-01-01"))
done = write_together([(rows, {one.name!r}, "upsert"), (rows, {other.name!r}, "upsert")])
result = [each.rows for each in done]
try:
    write_together([(rows, {one.name!r}, "delete"), (rows.drop("id"), {other.name!r}, "upsert")])
except Exception as error:
    result.append(str(error))
""",
    )
    assert found == [1, 1, "the rows have no column id, which belongs to the key"]
    first, second = (next(iter(each.instants(states=["completed"]))) for each in (one, other))
    assert first.moment == second.moment
    assert [each.position().position for each in (one, other)] == [1, 1]
    at = Moment(first.moment or 0)
    read = f"read(spark, {one.name!r}, incremental=(0, None), changes=True).where(\"_change_type = 'insert'\")"
    with pytest.raises(SparkError, match="changed the same"):
        run(
            lake,
            f"""
from lake.spark import write_together
write({read}.drop("_change_type", "_commit_version", "_commit_timestamp"), {one.name!r}, operation="upsert")
write_together([(shop((1, "b", 1, None, "2026-01-01")), {one.name!r}, "upsert"),
                (shop((1, "b", 1, None, "2026-01-01")), {other.name!r}, "upsert")], based_on=Moment({at.number}))
""",
        )
    assert other.position().position == 1


def attempts(lake: Lake, table: LakeTable, *statements: str) -> list[Any]:
    """What each statement leaves in `result`, or the message that it raises."""
    return run(
        lake,
        f"""
from pyspark.sql import functions as sf
t, found = {table.name!r}, []
for code in {statements!r}:
    result = None
    try:
        exec(code)
    except Exception as error:
        result = str(error)
    found.append(result)
result = found
""",
    )


def test_no_row_is_dropped_for_what_is_missing(lake: Lake) -> None:
    table = keyed(lake, table_type="merge-on-read")
    found = attempts(
        lake,
        table,
        'write(shop((1, "a", 1, None, "2026-01-01", "insert"), (2, "b", 1, None, "2026-01-01", None),'
        ' extra=["_change_type string"]), t, operation="merge")',
    )
    assert "_change_type is one of" in found[0]
    assert table.position().position == 0


@pytest.mark.long
@pytest.mark.parametrize("sensitive", [True, False])
def test_columns_have_any_name(lake: Lake, sensitive: bool) -> None:
    name = f"{lake.database}.names{next(NUMBERS)}"
    lake.spark.sql(
        f"CREATE TABLE {name} (Id BIGINT COMMENT 'which', `A.b` INT, Name CHAR(5), `c``d` ARRAY<INT>, `On Day` STRING)"
        " USING parquet PARTITIONED BY (`On Day`)"
        " TBLPROPERTIES ('primary-key' = 'id,a.b,on day', 'table-type' = 'merge-on-read')"
    )
    table = lake.client.table(name)
    own = "1L Id, 2 `A.b`, '{}' Name, array(1) `c``d`, 'd 1' `On Day`"
    other = "1L iD, 2 `a.B`, '{}' NAME, array(2) `C``D`, 'd 1' `on day`"
    shown = (
        "result = [[[each.name, each.metadata] for each in read(spark, t).schema],"
        " [str(list(row)) for row in read(spark, t).collect()]]"
    )
    write_ = 'write(spark.sql("SELECT {}"), t, operation="upsert")'
    found = attempts(
        lake,
        table,
        f"spark.conf.set('spark.sql.caseSensitive', {sensitive})",
        write_.format(own.format("a")),
        shown,
        write_.format(other.format("b")),
        shown,
        "write(spark.sql(\"SELECT 7L id, 2 `a.b`, '' `on day`\"), t, operation='delete')",
        "write(spark.sql(\"SELECT 7L id, 2 `a.b`, '__HIVE_DEFAULT_PARTITION__' `on day`\"), t, operation='delete')",
        "result = sorted(str(list(row)[1:]) for row in"
        " read(spark, t, incremental=(1, None), changes=True).drop('_commit_timestamp').collect())",
        "run_plan(spark, t, plan_compaction(spark, t).instant.timestamp)",
        shown,
        "result = read(spark, t).where(sf.col('`On Day`') == 'd 1').count()",
        "spark.conf.unset('spark.sql.caseSensitive')",
        "spark.sql(f\"INSERT INTO {t} VALUES (8L, 2, 'x', array(1), 'd 2')\")",
        "spark.sql(f\"DELETE FROM {t} WHERE `On Day` = 'd 1'\")",
        "result = [row[0] for row in read(spark, t).collect()]",
    )
    columns = [["Id", {"comment": "which"}], *([each, {}] for each in ("A.b", "Name", "c`d", "On Day"))]
    first, second = "[1, 2, 'a    ', [1], 'd 1']", "[1, 2, 'b    ', [2], 'd 1']"
    assert found[:5] == [None, None, [columns, [first]], None, [columns, [second]]]
    assert "the column on day belongs to the key and is empty in some rows" in found[5]
    assert "Hive's name for null, in some rows" in found[6]
    assert found[7:] == [
        ["[2, 'a    ', [1], 'd 1', 'update_preimage', 2]", "[2, 'b    ', [2], 'd 1', 'update_postimage', 2]"],
        None,
        [columns, [second]],
        1,
        *[None] * 3,
        [8],
    ]


def test_tables_that_others_made_are_read_and_written(lake: Lake) -> None:
    keys = {"primary-key": "id,day", "table-type": "merge-on-read"}
    columns = ("id:bigint", "name:char(5)", "price:decimal(10,2)", "at:timestamp", "inside:struct<a:int>")
    for properties in (keys, {}):
        made = builders.table(
            lake.database,
            f"made{next(NUMBERS)}",
            keys=("day:date",),
            sd=builders.parquet(*columns),
            parameters=properties,
        )
        lake.client.call(lambda client, made=made: client.create_table(made))
        table = lake.client.table(f"{lake.database}.{made.tableName}")
        written = f"operation={'upsert' if properties else 'append'!r}"
        found = attempts(
            lake,
            table,
            f'write(shop((1, "a", 1.5, None, "2026-01-01")), t, {written})',
            "result = plain(read(spark, t))",
            f'write(shop(({"1" if properties else "2"}, "b", 2, "2026-01-01 10:00:00", "2026-01-01")), t, {written})',
            "result = plain(read(spark, t))",
        )
        one = ["1", "a    ", "1.50", "None", "None", "2026-01-01"]
        two = ["2", "b    ", "2.00", "2026-01-01 10:00:00", "None", "2026-01-01"]
        assert found == [
            None,
            [one],
            None,
            [["1", *two[1:]]] if properties else [one, two],
        ]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
def test_rows_move_between_partitions(lake: Lake, kind: str) -> None:
    """The key is unique over the whole table."""
    table, mirror = keyed(lake, primary_key="id", table_type=kind), keyed(lake, primary_key="id")
    day = "2026-01-0{}".format
    run(
        lake,
        f"""
t = {table.name!r}
write(shop((1, "a", 1, None, "2026-01-01"), (2, "b", 2, None, "2026-01-01"), (3, "c", 3, None, "2026-01-02"),
           (4, "d", 4, None, "2026-01-02")), t, operation="upsert")
write(shop((1, "A", 1, None, "2026-01-02"), (4, "D", 4, None, "2026-01-03")), t, operation="upsert")
write(shop((3, "", 0, None, "2026-01-09")).select("id"), t, operation="delete")
""",
    )
    found = [row[:2] + row[-1:] for row in rows(lake, table)]
    assert found == [["1", "A", day(2)], ["2", "b", day(1)], ["4", "D", day(3)]]
    changes = run(
        lake,
        f"result = plain(read(spark, {table.name!r}, incremental=(1, None), changes=True)"
        ".select('id', 'name', 'day', '_change_type', '_commit_version'))",
    )
    assert changes == [
        ["1", "A", day(2), "insert", "2"],
        ["1", "a", day(1), "delete", "2"],
        ["3", "c", day(2), "delete", "3"],
        ["4", "D", day(3), "insert", "2"],
        ["4", "d", day(2), "delete", "2"],
    ]
    for between in ((0, 1), (1, None)):
        feed = f"read(spark, {table.name!r}, incremental={between}, changes=True)"
        run(lake, f"write({feed}, {mirror.name!r}, operation='merge')")
    assert rows(lake, mirror) == rows(lake, table)
    with pytest.raises(SparkError, match="may be in any partition"):
        run(lake, f"write(shop((1, 'x', 1, None, '2026-01-01')), {table.name!r}, operation='replace_partitions')")
    with pytest.raises(SparkError, match="the column day partitions the table and is null"):
        run(lake, f"write(shop((1, 'x', 1, None, None)), {table.name!r}, operation='upsert')")
    run(lake, f"write(shop((1, 'x', 1, None, '2026-01-05')), {table.name!r}, operation='overwrite')")
    assert [row[:2] + row[-1:] for row in rows(lake, table)] == [["1", "x", day(5)]]
