"""Streams into and out of lake tables by their names: each micro-batch is part of the table once."""

import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lake.tables.lake import LakeClient
from tests.spark.session import ROOT, SparkError, SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.test_keyed_select import merged, rows

KEYED = "(id BIGINT, name STRING, version INT, dt STRING) USING parquet PARTITIONED BY (dt) TBLPROPERTIES "
MERGED = (
    KEYED + "('primary-key' = 'id,dt', 'bucket' = '2', 'sequence.field' = 'version', 'table-type' = 'merge-on-read')"
)
PLAIN = (
    "(id BIGINT, name STRING, dt STRING) USING parquet PARTITIONED BY (dt) "
    "TBLPROPERTIES ('timeline.archived-days' = '9')"
)


class Source:
    """A directory of JSON files, each of which is a micro-batch, and a checkpoint."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self.directory = directory / "source"
        self.directory.mkdir()
        self.checkpoint = directory / "checkpoint"
        self._numbers = itertools.count()

    def arrive(self, *values: dict[str, Any]) -> None:
        number = next(self._numbers)
        staged = self.directory / f".{number}"
        staged.write_text("\n".join(json.dumps(each) for each in values))
        os.utime(staged, (number + 1_700_000_000,) * 2)  # Spark reads files in the order of their times
        staged.rename(self.directory / f"{number:03}.json")

    def into(
        self,
        table: str,
        schema: str = "id INT, name STRING, version INT, dt STRING",
        *,
        mode: str = "append",
        query: str = "rows",
        checkpoint: Path | None = None,
        **options: str,
    ) -> None:
        """Runs a query until all files are written. `query`: an expression of the stream `rows`."""
        self._spark.python(
            f"""
rows = spark.readStream.schema({schema!r}).option("maxFilesPerTrigger", 1).json({str(self.directory)!r})
writer = ({query}).writeStream.option("checkpointLocation", {str(checkpoint or self.checkpoint)!r})
query = writer.outputMode({mode!r}).options(**{options!r}).trigger(availableNow=True).toTable({table!r})
query.awaitTermination()
result = None
"""
        )

    def repeat(self, *batches: int) -> None:
        """Lets the next query repeat batches, as if the one before had died when they were part of the table."""
        for batch in batches:
            (self.checkpoint / "commits" / str(batch)).unlink()
            (self.checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    return Source(spark, tmp_path)


@pytest.fixture
def make(spark: SparkSession, database: str) -> Callable[[str, str], str]:
    """Makes a table and returns its name."""

    def table(name: str, definition: str) -> str:
        spark.sql(f"CREATE TABLE {database}.{name} {definition}")
        return f"{database}.{name}"

    return table


def row(id: int, name: str, version: int = 1, dt: str = "2026-01-01") -> dict[str, Any]:
    return {"id": id, "name": name, "version": version, "dt": dt}


def test_a_stream_upserts_each_micro_batch_once(
    spark: SparkSession, lake: Lake, source: Source, make: Callable[[str, str], str]
) -> None:
    table = make("k", MERGED)
    source.arrive(row(1, "a"), row(2, "b"))
    source.arrive(row(1, "A", 2), row(1, "old", 1))
    source.into(table)
    assert rows(spark, f"SELECT id, name FROM {table}") == [[1, "A"], [2, "b"]] == [r[:2] for r in merged(spark, table)]
    assert spark.value(f"SELECT count(*) FROM {table}.snapshots") == 2
    source.repeat(1)
    source.arrive(row(3, "c"))
    source.into(table)
    assert rows(spark, f"SELECT id, name FROM {table}") == [[1, "A"], [2, "b"], [3, "c"]]
    assert spark.value(f"SELECT count(*) FROM {table}.snapshots") == 3
    other = source.checkpoint.with_name("other")
    other.mkdir()
    shutil.copy(source.checkpoint / "metadata", other / "metadata")  # a second query of the same id
    source.into(table, checkpoint=other)
    with LakeClient(lake.server.uri) as client:
        instants = client.table(table).instants()
    assert {each.state for each in instants} == {"completed"}, "what was repeated was aborted"
    assert spark.value(f"SELECT count(*) FROM {table}.snapshots") == 3


@pytest.mark.parametrize("definition", [MERGED, PLAIN], ids=["keyed", "no key"])
def test_a_stream_of_another_thread_goes_by_the_timeline(
    spark: SparkSession, lake: Lake, source: Source, make: Callable[[str, str], str], definition: str
) -> None:
    """Such a thread has no active session, and Spark looks the table up in its own catalog."""
    table = make("k", definition)
    source.arrive(row(1, "a"))
    schema = "id INT, name STRING, version INT, dt STRING" if definition == MERGED else "id INT, name STRING, dt STRING"
    code = f"""
from concurrent.futures import ThreadPoolExecutor
def write():
    rows = spark.readStream.schema({schema!r}).json({str(source.directory)!r})
    writer = rows.writeStream.option("checkpointLocation", {str(source.checkpoint)!r}).trigger(availableNow=True)
    writer.toTable({table!r}).awaitTermination()
with ThreadPoolExecutor() as pool:
    pool.submit(write).result()
result = None
"""
    spark.python(code)
    assert rows(spark, f"SELECT id, name FROM {table}") == [[1, "a"]]
    with LakeClient(lake.server.uri) as client:
        assert [each.rows for each in client.table(table).snapshot()] == [1]


def test_rows_get_the_columns_of_the_table(
    spark: SparkSession, source: Source, make: Callable[[str, str], str]
) -> None:
    table = make("k", "(n INT, id BIGINT, c CHAR(3), more STRING) USING parquet TBLPROPERTIES ('primary-key' = 'id')")
    source.arrive({"id": 1, "C": "x", "n": 7})
    more = ", more STRING" if spark.line == "3.5" else ""  # which has no nulls for missing columns
    source.into(table, "C STRING, id INT, n SMALLINT" + more)
    assert spark.sql(f"SELECT n, id, concat(c, '|'), more FROM {table}") == [[7, 1, "x  |", None]]
    source.arrive({"id": 2**40, "n": 2**40})
    with pytest.raises(SparkError, match="overflow"):
        source.into(table, "id BIGINT, n BIGINT, c STRING, more STRING")
    rest = ", c STRING, more STRING"
    for schema, said in (
        (f"id BIGINT, n INT, other INT{rest}", "other|too many"),
        (f"n INT, more2 INT{rest}", "id|null"),
        (f"id BIGINT, n BINARY{rest}", "n"),
    ):
        with pytest.raises(SparkError, match=said):
            source.into(table, schema, checkpoint=source.checkpoint.with_name(schema[:12].replace(" ", "")))
    assert spark.value(f"SELECT count(*) FROM {table}") == 1


@pytest.mark.long
def test_aggregates_are_upserted_or_replaced(
    spark: SparkSession, source: Source, make: Callable[[str, str], str]
) -> None:
    counts = 'rows.groupBy("name").count().withColumnRenamed("count", "n")'
    updated = make("u", "(name STRING, n BIGINT) USING parquet TBLPROPERTIES ('primary-key' = 'name')")
    complete = make("c", "(name STRING, n BIGINT) USING parquet TBLPROPERTIES ('timeline.archived-days' = '9')")
    for values in ([row(1, "a"), row(2, "b")], [row(3, "a")]):
        source.arrive(*values)
        source.into(updated, mode="update", query=counts, checkpoint=source.checkpoint / "u")
        source.into(complete, mode="complete", query=counts, checkpoint=source.checkpoint / "c")
    assert rows(spark, f"SELECT * FROM {updated}") == [["a", 2], ["b", 1]]
    spark.sql(f"REFRESH TABLE {complete}")
    assert rows(spark, f"SELECT * FROM {complete}") == [["a", 2], ["b", 1]]
    with pytest.raises(SparkError, match="no primary-key, by which rows are updated"):
        source.into(complete, mode="update", query=counts, checkpoint=source.checkpoint / "x")


def test_who_loses_with_all_rows_of_a_stream_starts_the_query_again(
    spark: SparkSession, lake: Lake, source: Source, make: Callable[[str, str], str]
) -> None:
    table = make("c", "(name STRING, n BIGINT) USING parquet TBLPROPERTIES ('timeline.archived-days' = '9')")
    source.arrive(row(1, "a"))
    spark.python(
        f"""
import sys
from pyspark.sql import functions as sf
spark.sparkContext.pythonExec = sys.executable
def meet(name):
    import sys
    sys.path.insert(0, {str(ROOT)!r})
    from lake.client.lake_types import Completion
    from lake.tables.lake import LakeClient
    with LakeClient({lake.server.uri!r}) as client, client.table({table!r}).writing("replacecommit") as other:
        other.complete(Completion(replaced_partitions=[""]))
    return name
spark.udf.register("meet", sf.udf(meet, "string"))
result = None
"""
    )
    counts = 'rows.groupBy("name").count().selectExpr("meet(name) name", "count n")'
    with pytest.raises(SparkError, match="nothing was written: start the query again"):
        source.into(table, mode="complete", query=counts)
    source.into(table, mode="complete", query=counts.replace("meet(name)", "name"))
    spark.sql(f"REFRESH TABLE {table}")
    assert rows(spark, f"SELECT * FROM {table}") == [["a", 1]]


def test_a_stream_appends_to_a_table_without_a_key_once(
    spark: SparkSession, lake: Lake, source: Source, make: Callable[[str, str], str]
) -> None:
    table = make("t", PLAIN)
    source.arrive(row(1, "a"), row(2, "b", dt="2026-01-02"))
    source.arrive({"id": 3, "name": "c", "dt": None})
    schema = "id INT, dt STRING, name STRING"
    source.into(table, schema)
    source.repeat(1)
    source.into(table, schema)
    spark.sql(f"REFRESH TABLE {table}")
    found = [[1, "a", "2026-01-01"], [2, "b", "2026-01-02"], [3, "c", None]]
    assert spark.sql(f"SELECT * FROM {table} ORDER BY id") == found
    with LakeClient(lake.server.uri) as client:
        timeline = client.table(table)
        files = list(timeline.snapshot())
        assert [each.rows for each in files] == [1, 1, 1]
        assert timeline.position().position == 2
        assert {each.state for each in timeline.instants()} == {"completed"}
    spark.sql(f"CREATE TABLE {table}_own (id BIGINT, name STRING, dt STRING) USING parquet")
    source.into(f"{table}_own", schema, checkpoint=source.checkpoint / "own")
    assert spark.value(f"SELECT count(*) FROM {table}_own") == 3, "a table without a timeline stays Spark's"
    with LakeClient(lake.server.uri) as client:
        assert client.table(f"{table}_own").position().position == 0


@pytest.mark.long
def test_a_query_writes_into_one_table(spark: SparkSession, source: Source, make: Callable[[str, str], str]) -> None:
    for name, definition in (("k", MERGED), ("t", PLAIN)):
        table = make(name, definition)
        checkpoint = source.checkpoint / name
        select = "rows" if name == "k" else "rows.drop('version')"
        source.arrive(row(1, "a"))
        source.into(table, query=select, checkpoint=checkpoint)
        spark.sql(f"DROP TABLE {table}")
        spark.sql(f"CREATE TABLE {table} {definition}")
        source.arrive(row(2, "b"))
        with pytest.raises(SparkError, match=r"is of a query into another table .* with a new\s+checkpoint"):
            source.into(table, query=select, checkpoint=checkpoint)
        assert spark.value(f"SELECT count(*) FROM {table}") == 0
        running = f"""
import time
rows = spark.readStream.schema("id INT, name STRING, version INT, dt STRING").json({str(source.directory)!r})
writer = ({select}).writeStream.option("checkpointLocation", {str(checkpoint) + "-2"!r})
query = writer.toTable({table!r})
query.processAllAvailable()
spark.sql("DROP TABLE {table}")
spark.sql('''CREATE TABLE {table} {definition}''')
open({str(source.directory / "zz.json")!r}, "w").write('{{"id": 7, "name": "z", "version": 1, "dt": "2026-01-01"}}')
query.awaitTermination(60)
result = None
"""
        with pytest.raises(SparkError, match="another table"):
            spark.python(running)
        (source.directory / "zz.json").unlink()
        assert spark.value(f"SELECT count(*) FROM {table}") == 0


def test_what_streams_into_tables_are_refused(
    spark: SparkSession, source: Source, make: Callable[[str, str], str]
) -> None:
    table = make("k", KEYED + "('primary-key' = 'id,dt')")
    source.arrive(row(1, "a"), row(1, "b"))
    database, _, name = table.partition(".")
    for target, said in (
        (table, "several|twice|more than one"),
        (f"{database}.`{name}@includeuncommit`", "can only be read"),
        (make("i", KEYED + "('primary-key' = 'id,dt', 'changelog-producer' = 'input')"), "changelog-producer=input"),
    ):
        checkpoint = source.checkpoint / target.strip("`").rpartition(".")[2].replace("`", "")
        with pytest.raises(SparkError, match=said):
            source.into(target, checkpoint=checkpoint)
    assert spark.value(f"SELECT count(*) FROM {table}") == 0
    named = "(id BIGINT, at TIMESTAMP, shard BINARY, dt STRING) USING parquet PARTITIONED BY (dt)"
    for number, more in enumerate((" TBLPROPERTIES ('primary-key' = 'id,dt')", PLAIN.rpartition("(dt)")[2])):
        with pytest.raises(SparkError, match=r"shard of .* is binary: sources are named by"):
            source.into(
                make(f"b{number}", named + more),
                query="rows.selectExpr('id', 'current_timestamp() at', 'cast(name as binary) shard', 'dt')",
                checkpoint=source.checkpoint.with_name(f"b{number}"),
                **TIMES,
            )
    plain = make("t", PLAIN)
    source.into(plain, query="rows.drop('version')", checkpoint=source.checkpoint.with_name("t"))
    spark.sql(f"INSERT INTO {plain} VALUES (70, 'seventy', '2026-01-01')")
    directory = spark.describe(plain)["Location"]
    with pytest.raises(SparkError, match="is the directory of a lake table"):
        spark.python(f"""
rows = spark.readStream.schema("id INT, name STRING, dt STRING").json({str(source.directory)!r})
rows.writeStream.option("checkpointLocation", {str(source.checkpoint)!r} + "-path").start({directory!r})
""")
    # The log that Spark's sink makes before it is refused would hide all files.
    assert rows(spark, f"SELECT name FROM {plain} WHERE id = 70") == [["seventy"]]


def read(spark: SparkSession, table: str, checkpoint: Path, **options: str) -> list[list[list[Any]]]:
    """The micro-batches of a query that reads all there is: of each its rows, sorted."""
    return spark.python(
        f"""
batches = []
def take(rows, number):
    batches.append(sorted(([each for name, each in row.asDict().items() if name != "_commit_timestamp"]
                           for row in rows.collect()), key=str))
rows = spark.readStream.options(**{options!r}).table({table!r})
query = rows.writeStream.foreachBatch(take).option("checkpointLocation", {str(checkpoint)!r})
query.trigger(availableNow=True).start().awaitTermination()
result = batches
"""
    )


def test_a_stream_reads_a_keyed_table(
    spark: SparkSession, lake: Lake, make: Callable[[str, str], str], tmp_path: Path
) -> None:
    table = make("k", MERGED)
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'x')")
    spark.sql(f"INSERT INTO {table} VALUES (2, 'B', 2, 'x')")
    changes = {"changes": "true"}
    assert read(spark, table, tmp_path / "rows") == [[[1, "a", 1, "x"], [2, "B", 2, "x"]]]
    assert read(spark, table, tmp_path / "changes", **changes) == [
        [[1, "a", 1, "x", "insert", 2], [2, "B", 2, "x", "insert", 2]]
    ]
    spark.sql(f"INSERT INTO {table} VALUES (2, 'C', 3, 'x'), (3, 'c', 1, 'y')")
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    assert read(spark, table, tmp_path / "rows") == [[[2, "C", 3, "x"], [3, "c", 1, "y"]]]
    expected = [
        [1, "a", 1, "x", "delete", 4],
        [2, "B", 2, "x", "update_preimage", 3],
        [2, "C", 3, "x", "update_postimage", 3],
        [3, "c", 1, "y", "insert", 3],
    ]
    assert read(spark, table, tmp_path / "changes", **changes) == [expected]
    assert read(spark, table, tmp_path / "since", since="2", **changes) == [expected]
    assert read(spark, table, tmp_path / "filter", since="2", filter="dt='y'") == [[[3, "c", 1, "y"]]]
    each = read(spark, table, tmp_path / "all", since="1", changes="all")
    assert sorted([change[5], change[0], change[4]] for change in each[0]) == [
        [2, 2, "update_postimage"],
        [2, 2, "update_preimage"],
        [3, 2, "update_postimage"],
        [3, 2, "update_preimage"],
        [3, 3, "insert"],
        [4, 1, "delete"],
    ]
    lake.reopen(*table.split("."), "dt=y")
    assert read(spark, table, tmp_path / "ready") == [[[2, "C", 3, "x"]]]
    shown = [[2, "C", 3, "x"], [3, "c", 1, "y"]]
    assert read(spark, table, tmp_path / "open", includeUnCommit="true") == [shown]


def test_a_stream_of_changes_begins_and_goes_on_where_the_last_instant_was_deleted(
    spark: SparkSession, lake: Lake, make: Callable[[str, str], str], tmp_path: Path
) -> None:
    table = make("k", MERGED)
    with LakeClient(lake.server.uri) as client:
        found = client.table(table)

        def delete_last() -> None:
            found.abort(found.clean([]).instant)

        spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 'x')")
        delete_last()
        changes = {"changes": "true"}
        assert read(spark, table, tmp_path / "c", **changes) == [[[1, "a", 1, "x", "insert", 2]]]
        spark.sql(f"INSERT INTO {table} VALUES (1, 'A', 2, 'x')")
        delete_last()
        expected = [[1, "A", 2, "x", "update_postimage", 3], [1, "a", 1, "x", "update_preimage", 3]]
        assert read(spark, table, tmp_path / "c", **changes) == [expected]
        for each in ("2", "4"):
            assert read(spark, table, tmp_path / each, since=each, **changes) == [expected if each == "2" else []]


def test_a_stream_reads_files_that_come(
    spark: SparkSession, lake: Lake, source: Source, make: Callable[[str, str], str], tmp_path: Path
) -> None:
    table = make("t", PLAIN)
    schema = "id INT, dt STRING, name STRING"
    source.arrive(row(1, "a"), row(2, "b", dt="2026-01-02"))
    source.into(table, schema)
    assert read(spark, table, tmp_path / "c") == [[[1, "a", "2026-01-01"], [2, "b", "2026-01-02"]]]
    source.arrive(row(3, "c"))
    source.into(table, schema)
    with LakeClient(lake.server.uri) as client:
        lake_table = client.table(table)
        assert len(lake_table.client.call(lambda c: c.lake_list_leases(lake_table.reference))) == 0, (
            "queries have ended"
        )
    assert read(spark, table, tmp_path / "c") == [[[3, "c", "2026-01-01"]]]
    assert read(spark, table, tmp_path / "c") == []
    assert read(spark, table, tmp_path / "since", since="1") == [[[3, "c", "2026-01-01"]]]


@pytest.mark.long
def test_what_streams_of_tables_are_refused(
    spark: SparkSession, source: Source, make: Callable[[str, str], str], tmp_path: Path
) -> None:
    table, plain = make("k", MERGED), make("t", PLAIN)
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 'x')")
    for name, options, said in (
        (plain, {"changes": "true"}, "no primary-key"),
        (table, {"changes": "some"}, "true, false or all"),
        (table, {"since": "yesterday"}, "no completed instant or savepoint yesterday"),
        (table, {"since": "99"}, "99"),
        (table, {"versionAsOf": "1"}, "takes the option since" if spark.line == "3.5" else ""),
    ):
        with pytest.raises(SparkError, match=said):
            read(spark, name, tmp_path / "c", **options)
    assert read(spark, table, tmp_path / "k") == [[[1, "a", 1, "x"]]]
    spark.sql(f"DROP TABLE {table}")
    spark.sql(f"CREATE TABLE {table} {MERGED}")
    spark.sql(f"INSERT INTO {table} VALUES (2, 'b', 1, 'x')")
    with pytest.raises(SparkError, match="has read another table"):
        read(spark, table, tmp_path / "k")


HOURLY = (
    "(id BIGINT, shard STRING, at TIMESTAMP, dt STRING, hr STRING) USING parquet PARTITIONED BY (dt, hr) TBLPROPERTIES "
    "('partition.commit.mode' = 'event-time', 'partition.time-extractor.timestamp-pattern' = '$dt $hr:00:00', "
    "'sink.partition-commit.delay' = '1 h', 'partition.late-rows' = '{late}'{more})"
)
ORDERS = "id BIGINT, shard STRING, at TIMESTAMP"
IN_HOURS = """rows.selectExpr("*", "date_format(at, 'yyyy-MM-dd') dt", "date_format(at, 'HH') hr")"""
TIMES = {"event-time": "at", "source-column": "shard"}


def order(id: int, hour: float, shard: str = "s") -> dict[str, Any]:
    return {"id": id, "shard": shard, "at": f"2026-01-01T{int(hour):02}:{int(hour % 1 * 60):02}:00Z"}


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "late", ["next", pytest.param("reopen", marks=LONG), pytest.param("drop", marks=LONG), "reopen-keyed", "drop-keyed"]
)
def test_late_rows_go_where_the_table_says(
    spark: SparkSession, lake: Lake, source: Source, make: Callable[[str, str], str], late: str
) -> None:
    key = ", 'primary-key' = 'id,dt,hr', 'table-type' = 'merge-on-read'" if "keyed" in late else ""
    late = late.partition("-")[0]
    table = make("o", HOURLY.format(late=late, more=key))
    spark.sql("SET spark.sql.session.timeZone = UTC")
    source.arrive(order(1, 0), order(2, 1.5, "t"))
    source.arrive(order(3, 2.5), order(4, 3.5, "t"))
    source.into(table, ORDERS, query=IN_HOURS, **TIMES)
    database, name = table.split(".")
    assert [hr for hr, ready in lake.states(database, name).items() if ready] == [
        "dt=2026-01-01/hr=00",
        "dt=2026-01-01/hr=01",
    ]
    source.arrive(order(5, 0.25), order(6, 2.75))
    source.into(table, ORDERS, query=IN_HOURS, **TIMES)
    with LakeClient(lake.server.uri) as client:
        found = client.table(table)
        watermark = found.client.call(lambda c: c.lake_get_watermark(found.reference))
        assert [each.source for each in watermark.sources] == ["s", "t"]
        counted = (watermark.late.rerouted, watermark.late.reopened, watermark.late.dropped)
        paths = sorted(each.path for each in found.snapshot(include_uncommitted=True))
    rows_by_hour = spark.sql(f"SELECT hr, id FROM {database}.`{name}@includeuncommit` o ORDER BY hr, id")
    expected = {
        "next": ([["00", 1], ["01", 2], ["02", 3], ["02", 5], ["02", 6], ["03", 4]], (1, 0, 0)),
        "reopen": ([["00", 1], ["00", 5], ["01", 2], ["02", 3], ["02", 6], ["03", 4]], (0, 1, 0)),
        "drop": ([["00", 1], ["01", 2], ["02", 3], ["02", 6], ["03", 4]], (0, 0, 1)),
    }
    assert (rows_by_hour, counted) == expected[late]
    there = {
        each.name for each in Path(f"{lake.warehouse}/{database}.db/{name}".removeprefix("file:")).rglob("*.parquet")
    }
    assert there == {Path(each).name for each in paths}, "what was left out is deleted"


PYTHON = """
import sys
sys.path.insert(0, {root!r})
from datetime import UTC, datetime
from lake.spark import read_stream, write_stream
NOW = {{"availableNow": True}}
"""


def python(spark: SparkSession, code: str) -> Any:
    return spark.python(PYTHON.format(root=str(ROOT)) + code)


@pytest.mark.long
def test_python_mirrors_a_table(
    spark: SparkSession, lake: Lake, make: Callable[[str, str], str], tmp_path: Path
) -> None:
    table, mirror = make("k", MERGED), make("m", MERGED.replace("merge-on-read", "copy-on-write"))
    code = f"""
changes = read_stream(spark, {table!r}, changes=True)
write_stream(changes, {mirror!r}, {str(tmp_path / "c")!r}, operation="merge", trigger=NOW).awaitTermination()
result = None
"""
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'x'), (3, 'c', 1, 'y')")
    python(spark, code)
    spark.sql(f"INSERT INTO {table} VALUES (2, 'B', 2, 'x')")
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    python(spark, code)
    assert rows(spark, f"SELECT * FROM {mirror}") == rows(spark, f"SELECT * FROM {table}")
    for arguments, said in (("uri='thrift://else:1'", "metastore"), ("since=99", "no position 99|99")):
        with pytest.raises(SparkError, match=said):
            python(spark, f"result = read_stream(spark, {table!r}, {arguments})")


def test_a_stream_keeps_what_it_reads_next(
    spark: SparkSession, lake: Lake, make: Callable[[str, str], str], tmp_path: Path
) -> None:
    table = make("k", MERGED)
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 'x')")
    with LakeClient(lake.server.uri) as client:
        found = client.table(table)

        def leases() -> list[tuple[int, bool]]:
            listed = found.client.call(lambda c: c.lake_list_leases(found.reference))
            return sorted((each.position, bool(each.onwards)) for each in listed)

        before = leases()
        python(
            spark,
            f"""
running = read_stream(spark, {table!r}).writeStream.foreachBatch(lambda rows, number: rows.count())
running = running.option("checkpointLocation", {str(tmp_path / "c")!r}).start()
running.processAllAvailable()
result = None
""",
        )
        assert len(leases()) == len(before) + 1
        spark.python("[each.stop() for each in spark.streams.active]\nresult = None")
        assert leases() == before
        spark.sql(f"INSERT OVERWRITE {table} VALUES (2, 'b', 1, 'x')")
        spark.sql(f"INSERT OVERWRITE {table} VALUES (3, 'c', 1, 'x')")
        for each in found.client.call(lambda c: c.lake_list_leases(found.reference)):
            found.client.call(lambda c, lease=each: c.lake_release_lease(found.reference, lease.id))
        found.clean(found.plan_clean(keep_commits=1))
    with pytest.raises(SparkError, match=r"clean|oldest"):
        read(spark, table, tmp_path / "late", since="1")


def test_a_query_goes_on_when_its_beginning_is_cleaned(
    spark: SparkSession, lake: Lake, make: Callable[[str, str], str], tmp_path: Path
) -> None:
    table = make("k", KEYED + "('primary-key' = 'id,dt')")
    for name in "abc":
        spark.sql(f"INSERT OVERWRITE {table} VALUES (1, '{name}', 1, 'x')")
    with LakeClient(lake.server.uri) as client:
        found = client.table(table)
        [first, *_] = found.instants()
        assert read(spark, table, tmp_path / "c", since=first.timestamp) == [[[1, "c", 1, "x"]]]
        spark.sql(f"INSERT OVERWRITE {table} VALUES (2, 'd', 1, 'x')")
        for each in found.client.call(lambda c: c.lake_list_leases(found.reference)):
            found.client.call(lambda c, lease=each: c.lake_release_lease(found.reference, lease.id))
        found.clean(found.plan_clean(keep_commits=2))
    assert read(spark, table, tmp_path / "c", since=first.timestamp) == [[[2, "d", 1, "x"]]]
    with pytest.raises(SparkError, match=r"clean|oldest"):
        read(spark, table, tmp_path / "another", since=first.timestamp)


@pytest.mark.parametrize("definition", [PLAIN, KEYED + "('primary-key' = 'id,dt')"], ids=["plain", "keyed"])
def test_a_running_query_follows_rules_that_are_given_meanwhile(
    spark: SparkSession, source: Source, make: Callable[[str, str], str], definition: str
) -> None:
    table = make("t", definition)
    columns = "id INT, name STRING, dt STRING" + (", version INT" if "version" in definition else "")
    source.arrive(row(1, "a"))
    spark.python(
        f"""
rows = spark.readStream.schema({columns!r}).json({str(source.directory)!r})
writer = rows.writeStream.option("checkpointLocation", {str(source.checkpoint)!r})
spark.running = writer.trigger(processingTime="100 milliseconds").toTable({table!r})
spark.running.processAllAvailable()
result = None
"""
    )
    spark.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES ('partition.commit.mode' = 'manual', 'partition.late-rows' = 'drop')"
    )
    source.arrive(row(2, "b"), row(3, "c", dt="2026-01-02"))
    spark.python("spark.running.processAllAvailable()\nspark.running.stop()\nresult = None")
    assert spark.column(f"SELECT id FROM {table} ORDER BY id") == [1]
    assert spark.column(f"SELECT /*+ includeUnCommit(true) */ id FROM {table} ORDER BY id") == [1, 3]


def test_streams_without_micro_batches_are_refused(
    spark: SparkSession, make: Callable[[str, str], str], tmp_path: Path
) -> None:
    table = make(
        "t", "(timestamp TIMESTAMP, value BIGINT) USING parquet TBLPROPERTIES ('timeline.archived-days' = '9')"
    )
    with pytest.raises(SparkError, match=r"(?i)continuous"):
        spark.python(
            f"""
rows = spark.readStream.format("rate").option("numPartitions", 1).load()
writer = rows.writeStream.option("checkpointLocation", {str(tmp_path / "c")!r})
writer.trigger(continuous="1 second").toTable({table!r}).awaitTermination(120)
result = None
"""
        )
