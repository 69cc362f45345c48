"""Streams into and out of lake tables: each micro-batch is part of a table once, and each increment has its changes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lake.tables.lake import LakeTable
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkError, SparkSession
from tests.support.target import local_path

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


@pytest.mark.long
def test_a_stream_upserts_each_micro_batch(lake: Lake, source: Source) -> None:
    table = keyed(lake, "k", **{"table-type": "merge-on-read"})
    source.arrive((1, "a", 1), (2, "b", 1))
    source.arrive((1, "A", 2), (1, "old", 1))
    assert written(lake, table, source, operation="upsert") == [[0, 2, True], [1, 2, True]]
    assert state(table) == {1: "A", 2: "b"}
    source.arrive((3, "c", 1))
    assert written(lake, table, source, operation="upsert") == [[2, 1, True]], "it goes on where it was"
    assert state(table) == {1: "A", 2: "b", 3: "c"}


@pytest.mark.sampled(2)
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


HOURS = {
    "partition.commit.mode": "event-time",
    "partition.time-extractor.timestamp-pattern": "$dt $hr:00:00",
    "sink.partition-commit.delay": "1 h",
}

INTO_HOURS = """
def hours(directory):
    rows = arriving(directory, "id BIGINT, at TIMESTAMP")
    return rows.selectExpr("*", "date_format(at, 'yyyy-MM-dd') dt", "date_format(at, 'HH') hr")

spark.conf.set("spark.sql.session.timeZone", "UTC")
run_to_end(write_stream(hours({source!r}), {table!r}, {checkpoint!r}, trigger=NOW, event_time="at", **{options!r}))
result = None
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("late", ["next", "drop", "drop-keyed"])
def test_late_rows_go_where_the_table_says(lake: Lake, source: Source, late: str) -> None:
    """As those of streams by name, see tests/spark_extension/test_streams.py."""
    properties = {**HOURS, "partition.late-rows": late.partition("-")[0]}
    if "keyed" in late:
        properties |= {"primary-key": "id,dt,hr", "table-type": "copy-on-write"}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    name = f"{lake.database}.hours"
    lake.spark.sql(
        f"CREATE TABLE {name} (id BIGINT, at TIMESTAMP, dt STRING, hr STRING) USING parquet PARTITIONED BY (dt, hr) "
        f"TBLPROPERTIES ({listed})"
    )
    table = lake.client.table(name)

    def write(*orders: tuple[int, int]) -> None:
        texts = [json.dumps({"id": id, "at": f"2026-01-01T{hour:02}:30:00Z"}) for id, hour in orders]
        (source.directory / f"{orders[0][0]:03}.json").write_text("\n".join(texts))
        options = {"operation": "upsert"} if "keyed" in late else {}
        where = {"source": str(source.directory), "table": name, "checkpoint": source.checkpoint}
        run(lake, INTO_HOURS.format(**where, options=options))

    write((1, 0), (2, 1))
    write((3, 3), (4, 4))
    assert [each for each, ready in table.readiness().items() if ready] == [f"dt=2026-01-01/hr=0{n}" for n in (0, 1)]
    write((5, 0), (6, 1), (7, 4))
    files = list(table.snapshot(include_uncommitted=True))
    rows = {hour: sum(each.rows or 0 for each in files if each.partition.endswith(hour)) for hour in "01234"}
    late_rows = table.client.call(lambda client: client.lake_get_watermark(table.reference)).late
    if "drop" in late:
        assert (rows, late_rows.dropped) == ({"0": 1, "1": 1, "2": 0, "3": 1, "4": 2}, 2)
    else:
        assert (rows, late_rows.rerouted) == ({"0": 1, "1": 1, "2": 0, "3": 3, "4": 2}, 2)
        assert len({(each.partition, each.file_group) for each in files}) == len(files)
    if "drop" in late:
        left = {each.name for each in local_path(table.location()).rglob("*.parquet")}
        known = table.snapshot(include_uncommitted=True, all_versions=True)
        assert left == {Path(each.path).name for each in known}, "what was left out is deleted"


@pytest.mark.long
def test_streams_are_read_in_sessions_with_the_extension(
    lake: Lake, table: LakeTable, spark_session: Callable[[str], SparkSession]
) -> None:
    stock = Lake(spark_session("4"), lake.client, lake.database)
    with pytest.raises(SparkError, match=r"make the session with lake\.spark\.configure"):
        run(stock, f"from lake.spark import read_stream\nread_stream(spark, {table.name!r})")


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

    @pytest.fixture(params=["4", pytest.param("3.5", marks=pytest.mark.long)], ids=["spark-4", "spark-3.5"])
    def spark(self, request: pytest.FixtureRequest, hinting_session: Any) -> SparkSession:
        found: SparkSession = hinting_session(request.param)
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

    @pytest.mark.long
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
