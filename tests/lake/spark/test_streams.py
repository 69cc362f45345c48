"""Streams into and out of lake tables: each micro-batch is part of a table once, and each increment has its changes."""

import json
from pathlib import Path
from typing import Any

import pytest

from lake.tables.lake import LakeTable
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkError, SparkSession

_BEFORE = """
from lake.client.lake_types import StreamBatch
from lake.spark import for_each_increment, write_stream

def arriving(directory, schema="id BIGINT, name STRING, version BIGINT, dt STRING", at_once=1):
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", at_once).json(directory)
    return stream

def run_to_end(query):
    query.awaitTermination()
    assert query.exception() is None

NOW = {"availableNow": True}
"""

CUSTOMERS = "id BIGINT, name STRING, version BIGINT, dt STRING"


def run(lake: Lake, code: str) -> Any:
    return lake.run(_BEFORE + code)


def keyed(lake: Lake, name: str, **properties: str) -> LakeTable:
    listed = {"primary-key": "id,dt", "bucket": "2", **properties}
    if "merge-engine" not in properties:
        listed["sequence.field"] = "version"
    text = ", ".join(f"'{key}' = '{value}'" for key, value in listed.items())
    lake.spark.sql(
        f"CREATE TABLE {lake.database}.{name} ({CUSTOMERS}) USING parquet PARTITIONED BY (dt) TBLPROPERTIES ({text})"
    )
    return lake.client.table(f"{lake.database}.{name}")


class Source:
    """A directory of JSON files; each is a micro-batch."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "source"
        self.directory.mkdir()
        self.checkpoint = str(directory / "checkpoint")
        self._count = 0

    def arrive(self, *rows: tuple[int, str, int]) -> None:
        texts = [json.dumps({"id": id, "name": name, "version": at, "dt": "2026-01-01"}) for id, name, at in rows]
        staged = self.directory / f".{self._count}"
        staged.write_text("\n".join(texts))
        staged.rename(self.directory / f"{self._count:03}.json")
        self._count += 1


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path)


def written(lake: Lake, table: LakeTable, source: Source, **options: Any) -> list[list[Any]]:
    """Runs a query until all files are written; number, rows and whether it was new, of each micro-batch."""
    return run(
        lake,
        f"""
done = []
run_to_end(write_stream(
    arriving({str(source.directory)!r}), {table.name!r}, {source.checkpoint!r}, trigger=NOW,
    after_batch=lambda number, batch: done.append([number, batch.rows, batch.instant is not None]), **{options!r},
))
result = done
""",
    )


def state(table: LakeTable) -> dict[int, str]:
    return {row["id"]: row["name"] for row in table.scan().to_arrow().to_pylist()}


def test_a_stream_upserts_each_micro_batch(lake: Lake, source: Source) -> None:
    table = keyed(lake, "k", **{"table-type": "merge-on-read"})
    source.arrive((1, "a", 1), (2, "b", 1))
    source.arrive((1, "A", 2), (1, "old", 1))
    assert written(lake, table, source, operation="upsert") == [[0, 2, True], [1, 2, True]]
    assert state(table) == {1: "A", 2: "b"}
    source.arrive((3, "c", 1))
    assert written(lake, table, source, operation="upsert") == [[2, 1, True]], "it goes on where it was"
    assert state(table) == {1: "A", 2: "b", 3: "c"}


@pytest.mark.parametrize("kind", ["keyed", "appended"])
def test_a_repeated_micro_batch_is_written_once(lake: Lake, source: Source, kind: str) -> None:
    """A query that dies after its completion, and before Spark has noted that the batch is done."""
    if kind == "keyed":
        sums = {"merge-engine": "aggregation", "fields.version.aggregate-function": "sum"}
        table, operation = keyed(lake, "k", **sums), "upsert"
    else:
        table, operation = lake.table("t", CUSTOMERS, "dt"), "append"
    source.arrive((1, "a", 1))
    source.arrive((2, "b", 1))
    assert [each[2] for each in written(lake, table, source, operation=operation)] == [True, True]
    position = table.position().position
    for number in (1, 0):
        (Path(source.checkpoint) / "commits" / str(number)).unlink()
        (Path(source.checkpoint) / "commits" / f".{number}.crc").unlink(missing_ok=True)
    again = written(lake, table, source, operation=operation)
    assert again
    assert not any(new for _, _, new in again)
    assert not any(rows for _, rows, _ in again)
    assert table.position().position == position
    assert lake.ids(table, "id, version") == [[1, 1], [2, 1]]
    assert [each for each in table.instants() if each.state != "completed"] == []


def test_batches_are_written_once_by_write_too(lake: Lake) -> None:
    table = lake.table("t", "id BIGINT, name STRING, dt STRING", "dt")
    run(
        lake,
        f"""
for number in (0, 1, 1, 0, 2):
    write(rows_of([number]), {table.name!r}, batch=StreamBatch("job", number))
""",
    )
    assert lake.ids(table) == [0, 1, 2]


def test_what_a_stream_into_a_table_needs(lake: Lake, source: Source) -> None:
    table = keyed(lake, "k")
    with pytest.raises(SparkError, match="isn't a stream"):
        run(lake, f"write_stream(rows_of([1]), {table.name!r}, {source.checkpoint!r})")
    with pytest.raises(SparkError, match="has a primary key: upsert its rows"):
        run(lake, f"write_stream(arriving({str(source.directory)!r}), {table.name!r}, {source.checkpoint!r})")
    with pytest.raises(SparkError, match="NoSuchObjectException"):
        run(lake, f"write_stream(arriving({str(source.directory)!r}), '{lake.database}.none', {source.checkpoint!r})")


def streamed(lake: Lake, table: LakeTable, checkpoint: str, **options: Any) -> list[list[list[Any]]]:
    """What the micro-batches of a reading stream have, as lists of rows."""
    return run(
        lake,
        f"""
from lake.spark import read_stream
batches = []
def take(rows, number):
    names = sorted(name for name in rows.columns if not name.startswith("_commit_t"))
    batches.append(sorted(([row[name] for name in names] for row in rows.collect()), key=str))
rows = read_stream(spark, {table.name!r}, **{options!r})
run_to_end(rows.writeStream.foreachBatch(take).option("checkpointLocation", {checkpoint!r}).trigger(**NOW).start())
result = batches
""",
    )


def test_a_stream_reads_all_rows_and_then_what_is_added(lake: Lake, table: LakeTable, tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "c")
    lake.write(table, "rows_of([1, 2])")
    lake.write(table, "rows_of([3], dt='2026-01-02')")
    [first] = streamed(lake, table, checkpoint)
    assert first == [["2026-01-01", 1, "n1"], ["2026-01-01", 2, "n2"], ["2026-01-02", 3, "n3"]]
    assert streamed(lake, table, checkpoint) in ([], [[]])
    lake.write(table, "rows_of([4])")
    assert streamed(lake, table, checkpoint) == [[["2026-01-01", 4, "n4"]]]
    assert streamed(lake, table, str(tmp_path / "later"), since=2) == [[["2026-01-01", 4, "n4"]]]


@pytest.mark.long
def test_a_stream_reads_changes(lake: Lake, tmp_path: Path) -> None:
    table = keyed(lake, "k", **{"table-type": "merge-on-read"})
    checkpoint = str(tmp_path / "c")

    def put(values: str, operation: str = "upsert") -> None:
        run(lake, f"write(spark.createDataFrame({values}, {CUSTOMERS!r}), {table.name!r}, operation={operation!r})")

    put("[(1, 'a', 1, '2026-01-01'), (2, 'b', 1, '2026-01-01')]")
    put("[(2, 'B', 2, '2026-01-01')]")
    [first] = streamed(lake, table, checkpoint, changes=True)
    assert first == [["insert", 2, "2026-01-01", 1, "a", 1], ["insert", 2, "2026-01-01", 2, "B", 2]]
    put("[(2, 'B', 3, '2026-01-01'), (3, 'c', 1, '2026-01-01')]")
    put("[(1, 'a', 9, '2026-01-01')]", "delete")
    [second] = streamed(lake, table, checkpoint, changes=True)
    assert sorted((row[0], row[3]) for row in second) == [
        ("delete", 1),
        ("insert", 3),
        ("update_postimage", 2),
        ("update_preimage", 2),
    ]
    rows = streamed(lake, table, str(tmp_path / "rows"), since=2)
    assert [[row[1] for row in batch] for batch in rows] == [[2, 3]]


@pytest.mark.long
def test_a_stream_mirrors_a_table(lake: Lake, tmp_path: Path) -> None:
    table, mirror = keyed(lake, "k", **{"table-type": "merge-on-read"}), keyed(lake, "m")
    for number in range(3):
        run(
            lake,
            f"""
from lake.spark import read_stream
rows = [(id, f"n{{id}}-{number}", {number}, "2026-01-01") for id in range({number}, {number} + 5)]
write(spark.createDataFrame(rows, {CUSTOMERS!r}), {table.name!r}, operation="upsert")
changes = read_stream(spark, {table.name!r}, changes=True)
run_to_end(write_stream(changes, {mirror.name!r}, {str(tmp_path / "c")!r}, operation="merge", trigger=NOW))
""",
        )
        assert state(mirror) == state(table)


def test_a_stream_that_reads_what_was_cleaned_ends(lake: Lake, table: LakeTable, tmp_path: Path) -> None:
    lake.write(table, "rows_of([1])")
    lake.write(table, "rows_of([2])", operation="overwrite")
    lake.write(table, "rows_of([3])", operation="overwrite")
    table.clean(table.plan_clean(keep_commits=1))
    with pytest.raises(SparkError, match="SnapshotGone"):
        streamed(lake, table, str(tmp_path / "c"), since=1)
    assert [[row[1] for row in batch] for batch in streamed(lake, table, str(tmp_path / "all"))] == [[3]]


def test_a_stream_keeps_cleans_off_what_it_reads(lake: Lake, table: LakeTable, tmp_path: Path) -> None:
    lake.write(table, "rows_of([1])")
    found = run(
        lake,
        f"""
from lake.spark import read_stream
from lake.spark.session_client import lake_table
table = lake_table(spark, {table.name!r}, None)
def leases(rows=None, number=None):
    listed = table.client.call(lambda client: client.lake_list_leases(table.reference))
    seen.append([[each.position, each.onwards, each.holder] for each in listed])
seen = []
rows = read_stream(spark, {table.name!r})
writing = rows.writeStream.foreachBatch(leases).option("checkpointLocation", {str(tmp_path / "c")!r})
run_to_end(writing.trigger(**NOW).start())
result = seen
""",
    )
    assert found == [[[1, True, "a stream of Spark's"]]]


def test_changes_of_a_table_without_key_are_refused(lake: Lake, table: LakeTable, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="no primary-key"):
        streamed(lake, table, str(tmp_path / "c"), changes=True)


INCREMENTS = """
seen = []
def take(rows, batch):
    seen.append([batch.number, sorted(row.id for row in rows.collect())])
    if {fail!r} == batch.number:
        raise RuntimeError("this far")
try:
    for_each_increment(spark, {table!r}, take, {checkpoint!r}, available_now=True, **{options!r})
except RuntimeError:
    pass
result = seen
"""


class TestIncrements:
    """`for_each_increment`, on both lines."""

    @pytest.fixture(params=["4", "3.5"], ids=["spark-4", "spark-3.5"])
    def spark(self, request: pytest.FixtureRequest, spark_session: Any) -> SparkSession:
        found: SparkSession = spark_session(request.param)
        return found

    @staticmethod
    def increments(lake: Lake, table: LakeTable, checkpoint: Path, fail: int | None = None, **options: Any) -> Any:
        return run(lake, INCREMENTS.format(fail=fail, table=table.name, checkpoint=str(checkpoint), options=options))

    def test_each_increment_comes_once_and_again_after_a_failure(
        self, lake: Lake, table: LakeTable, tmp_path: Path
    ) -> None:
        checkpoint = tmp_path / "c"
        assert self.increments(lake, table, checkpoint) == []
        lake.write(table, "rows_of([1, 2])")
        assert self.increments(lake, table, checkpoint, fail=0) == [[0, [1, 2]]]
        lake.write(table, "rows_of([3])")
        assert self.increments(lake, table, checkpoint) == [[0, [1, 2]], [1, [3]]], "the same rows with the same number"
        assert self.increments(lake, table, checkpoint) == []
        lake.write(table, "rows_of([4])")
        assert self.increments(lake, table, checkpoint) == [[2, [4]]]
        (checkpoint / "3.planned").write_text("[3,")  # a process died while it wrote
        lake.write(table, "rows_of([5])")
        assert self.increments(lake, table, checkpoint) == [[3, [5]]]
        assert self.increments(lake, table, tmp_path / "later", since=3) == [[0, [5]]]
        assert len([each for each in checkpoint.iterdir() if not each.name.startswith(".")]) == 3

    def test_a_checkpoint_is_of_one_table(self, lake: Lake, table: LakeTable, tmp_path: Path) -> None:
        self.increments(lake, table, tmp_path / "c")
        other = lake.table("other", "id BIGINT, name STRING, dt STRING", "dt")
        with pytest.raises(SparkError, match="is the checkpoint of"):
            self.increments(lake, other, tmp_path / "c")
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "file").write_text("x")
        with pytest.raises(SparkError, match="a directory of its own"):
            self.increments(lake, table, tmp_path / "full")

    def test_changes_are_merged_once(self, lake: Lake, tmp_path: Path) -> None:
        table, mirror = keyed(lake, "k"), keyed(lake, "m")
        for number in range(2):
            run(
                lake,
                f"""
rows = [(id, f"n{{id}}-{number}", {number}, "2026-01-01") for id in range({number}, {number} + 3)]
write(spark.createDataFrame(rows, {CUSTOMERS!r}), {table.name!r}, operation="upsert")
def merge(changes, batch):
    write(changes, {mirror.name!r}, operation="merge", batch=batch)
    again = write(changes, {mirror.name!r}, operation="merge", batch=batch)
    assert again.instant is None
for_each_increment(spark, {table.name!r}, merge, {str(tmp_path / "c")!r}, changes=True, available_now=True)
""",
            )
        assert state(mirror) == state(table)
        assert mirror.position().position == 2
