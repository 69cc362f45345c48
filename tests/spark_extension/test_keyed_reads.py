"""What plain SQL reads of keyed tables with other columns, conditions and plans than the everyday ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.test_keyed_select import merged, rows, write
from tests.spark_extension.test_metastore_calls import REFLECTION


def create(spark: SparkSession, table: str, columns: str, partitioned: str = "", **properties: str) -> None:
    """Makes a merge-on-read table whose key is the column `id`, unless the properties say another."""
    given = {"primary-key": "id", "table-type": "merge-on-read", **properties}
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in given.items())
    spark.sql(f"CREATE TABLE {table} ({columns}) USING parquet {partitioned} TBLPROPERTIES ({listed})")


def test_conditions_that_only_spark_evaluates(spark: SparkSession, database: str) -> None:
    """A function of Python's on a partition column can't be evaluated where partitions are chosen."""
    table = f"{database}.t"
    create(spark, table, "id BIGINT, dt STRING", "PARTITIONED BY (dt)", **{"primary-key": "id,dt"})
    write(spark, table, "id bigint, dt string", [(1, "d1"), (2, "d2")])
    code = f"""
spark.udf.register("is_first", lambda day: day == "d1", "boolean")
result = [row.id for row in spark.sql("SELECT id FROM {table} WHERE is_first(dt) AND dt < 'd9'").collect()]
"""
    assert spark.python(code) == [1]


def test_strings_are_compared_by_their_bytes(hinting_session: Callable[[str], SparkSession], lake: Lake) -> None:
    """A collation orders the results of queries; keys and sequences are those of the Arrow reader."""
    spark = hinting_session("4")
    spark.sql("CREATE DATABASE IF NOT EXISTS collated")
    table = "collated.t"
    columns = "id STRING COLLATE UTF8_LCASE, s STRING COLLATE UTF8_LCASE, v INT"
    create(spark, table, columns, **{"sequence.field": "s"})
    plain = "id string, s string, v int"
    write(spark, table, plain, [("k", "a", 1), ("x", "a", 1)])
    write(spark, table, plain, [("k", "B", 2), ("K", "a", 3), ("x", "b", 2)])
    expected = [["K", "a", 3], ["k", "a", 1], ["x", "b", 2]]
    assert merged(spark, table) == expected
    assert rows(spark, f"SELECT * FROM {table}") == expected
    assert rows(spark, f"SELECT v FROM {table} WHERE id = 'k'") == [[1], [3]]
    spark.sql("DROP DATABASE collated CASCADE")


def test_a_field_of_a_struct_is_merged_like_the_whole(spark: SparkSession, database: str) -> None:
    """A struct whose only wanted field is null is not null itself."""
    table = f"{database}.t"
    columns = "id BIGINT, s STRUCT<a: INT, b: INT>"
    create(spark, table, columns, **{"merge-engine": "partial-update", "ignore-delete": "true"})
    write(spark, table, columns, [(1, (1, 2)), (2, (3, 4))])
    write(spark, table, columns, [(1, (None, 5)), (2, None)])
    assert rows(spark, f"SELECT id, s.a FROM {table}") == [[1, None], [2, 3]]
    assert rows(spark, f"SELECT id FROM {table} WHERE s IS NOT NULL AND s.b > 0") == [[1], [2]]


def test_a_snapshot_is_read_once_by_a_self_join(spark: SparkSession, database: str) -> None:
    table = f"{database}.t"
    create(spark, table, "id BIGINT, n INT")
    write(spark, table, "id bigint, n int", [(1, 1), (2, 1), (3, 2)])
    grouped = f"(SELECT n, count(*) c FROM {table} WHERE {{}} GROUP BY n)"
    join = "SELECT a.n, b.n FROM {} a JOIN {} b ON a.n = b.n + 1"
    same = join.format(grouped.format("id > 0"), grouped.format("id > 0"))
    assert "ReusedExchange" in str(spark.sql(f"EXPLAIN {same}"))
    assert rows(spark, same) == [[2, 1]]
    other = join.format(grouped.format("id > 0"), grouped.format("id < 3"))
    assert "ReusedExchange" not in str(spark.sql(f"EXPLAIN {other}"))
    first = f"(SELECT n, count(*) c FROM {table} VERSION AS OF 1 WHERE id > 0 GROUP BY n)"
    write(spark, table, "id bigint, n int", [(4, 3)])
    assert rows(spark, join.format(grouped.format("id > 0"), first)) == [[2, 1], [3, 2]]


def test_a_cached_table_can_be_refreshed(spark: SparkSession, lake: Lake, database: str) -> None:
    """It shows what others wrote at the latest after REFRESH TABLE, like a table of Spark's own."""
    table = f"{database}.t"
    create(spark, table, "id BIGINT")
    lake.upsert(table, id=1)
    spark.sql(f"CACHE TABLE {table}")
    assert rows(spark, f"SELECT * FROM {table}") == [[1]]
    lake.upsert(table, id=2)
    kept = [[1]] if spark.line == "4" else [[1], [2]]
    assert rows(spark, f"SELECT * FROM {table}") == kept
    spark.sql(f"REFRESH TABLE {table}")
    assert rows(spark, f"SELECT * FROM {table}") == [[1], [2]]
    write(spark, table, "id bigint", [(3,)])
    assert rows(spark, f"SELECT * FROM {table}") == [[1], [2], [3]]
    spark.sql(f"UNCACHE TABLE {table}")
    lake.upsert(table, id=4)
    assert rows(spark, f"SELECT * FROM {table}") == [[1], [2], [3], [4]]


def test_a_families_file_is_read_only_for_its_columns(spark: SparkSession, lake: Lake, database: str) -> None:
    table = f"{database}.t"
    families = {"table-type": "copy-on-write", "column-families": "one:c;two:d"}
    create(spark, table, "id BIGINT, c STRING, d STRING", **families)
    write(spark, table, "id bigint, c string, d string", [(1, "x", "y")])
    (lost,) = (row[0] for row in spark.sql(f"SELECT path FROM {table}.files WHERE columns = 'd'"))
    Path(lost.removeprefix("file:")).unlink()
    assert rows(spark, f"SELECT id, c FROM {table}") == [[1, "x"]]
    with pytest.raises(SparkError, match=r"FAILED_READ_FILE|does not exist"):
        spark.sql(f"SELECT d FROM {table}")


@pytest.mark.parametrize("place", ["", "/dt=d1"])
def test_a_tables_directory_is_not_written(spark: SparkSession, lake: Lake, database: str, place: str) -> None:
    table = f"{database}.t"
    create(spark, table, "id BIGINT, dt STRING", "PARTITIONED BY (dt)", **{"primary-key": "id,dt"})
    write(spark, table, "id bigint, dt string", [(1, "d1")])
    path = f"{lake.directory(database, 't')}{place}"
    for statement in (
        f"spark.sql('SELECT 1L id').write.mode('overwrite').parquet({path!r})",
        f"spark.sql('SELECT 1L id').write.mode('append').json({path!r})",
        f"spark.sql('SELECT 1L id').write.mode('overwrite').option('path', {path!r}).saveAsTable('{database}.other')",
        f"spark.sql('INSERT OVERWRITE DIRECTORY \"{path}\" USING parquet SELECT 1L id')",
        f"spark.sql('INSERT OVERWRITE DIRECTORY \"{path}\" STORED AS PARQUET SELECT 1L id')",
    ):
        with pytest.raises(SparkError, match="is the directory of a lake table"):
            spark.python(statement)
    assert rows(spark, f"SELECT * FROM {table}") == [[1, "d1"]]


@pytest.mark.parametrize("bucket", ["dynamic", "4"])
def test_properties_of_other_systems(spark: SparkSession, lake: Lake, database: str, bucket: str) -> None:
    """Others use the same names, and classes for Parquet of their own."""
    lake.add_foreign_table(f"{database}.t", **{"primary-key": "id", "bucket": bucket})
    assert spark.properties(f"{database}.t")["bucket"] == bucket
    with pytest.raises(SparkError, match=r"cannot be found|is no keyed table|requires a single-part"):
        spark.sql(f"SELECT * FROM {database}.t.instants")


def test_files_that_only_a_later_version_can_read(spark: SparkSession) -> None:
    code = f"""
{REFLECTION}
def make(name, argument):
    declared = jvm.Class.forName("lake.metastore.spark." + name, True, loader).getDeclaredConstructors()
    constructor = next(each for each in declared if each.getParameterCount() == 1)
    constructor.setAccessible(True)
    given = spark._sc._gateway.new_array(jvm.Object, 1)
    given[0] = argument
    return constructor.newInstance(given)

files = jvm.java.util.ArrayList()
for kind in ("base", "log", "vector"):
    file = make("SnapshotFile", make("Metastore$Answer", jvm.java.util.HashMap()))
    for name, value in (("path", "a." + kind), ("kind", kind), ("isBase", kind == "base")):
        found = file.getClass().getDeclaredField(name)
        found.setAccessible(True)
        found.set(file, value)
    files.add(file)
invoke("SnapshotFile.byBucket", None, files)
"""
    with pytest.raises(SparkError, match=r"a\.vector is of the kind vector, which this version can't read"):
        spark.python(code)


def test_wider_types(spark: SparkSession, lake: Lake, database: str) -> None:
    table = f"{database}.t"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, n INT, f FLOAT) STORED AS PARQUET"
        " TBLPROPERTIES ('primary-key' = 'id', 'table-type' = 'merge-on-read')"
    )
    lake.change_types(table)
    lake.upsert(table, id=1, n=7, f=1.5)
    lake.upsert(table, id=2, n=8, f=2.5)
    lake.change_types(table, n="bigint", f="double")
    lake.upsert(table, id=2, n=9_000_000_000, f=3.5)
    if spark.line == "4":
        assert rows(spark, f"SELECT * FROM {table}") == [[1, 7, 1.5], [2, 9_000_000_000, 3.5]]
    else:  # its reader of Parquet doesn't widen; no row is read wrongly
        with pytest.raises(SparkError, match="physicalType: INT32, logicalType: bigint"):
            spark.sql(f"SELECT * FROM {table}")
