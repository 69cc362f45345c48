"""Structured Streaming writes each row once, on both Spark lines."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.orders_stream import lake
from tests.orders_stream.lake import at, hour
from tests.spark.session import ROOT, SparkError, SparkSession
from tests.support.target import Target

pytestmark = pytest.mark.spark

KEYS = {"dt": "date_format(event_time, 'yyyy-MM-dd')", "hr": "date_format(event_time, 'HH')"}

# What runs in Spark's own interpreter: takes the files that are there, and returns what became of each batch.
PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from lake.spark.streams.streaming import partitioned_writer

spark.conf.set("spark.sql.session.timeZone", "UTC")
summaries = []
write = partitioned_writer({uri!r}, {table!r}, after_batch=summaries.append, **{options!r})
stream = (
    spark.readStream.schema({schema!r}).option("maxFilesPerTrigger", 1).json({source!r})
    .selectExpr(*{columns!r})
    .writeStream.foreachBatch(write).option("checkpointLocation", {checkpoint!r})
)
query = stream.trigger(availableNow=True).start()
query.awaitTermination()
spark.conf.unset("spark.sql.session.timeZone")  # other tests share the session
result = [
    [s.batch, s.rows, s.outcome and [s.outcome.late.rerouted, s.outcome.late.reopened, s.outcome.late.dropped]]
    for s in summaries
]
"""


@dataclass
class Stream:
    """A stream of JSON files that a Spark session writes into a table, and how far it is."""

    spark: SparkSession
    uri: str
    directory: Path
    table: str
    schema: str = "id BIGINT, at BIGINT, shard STRING"
    columns: tuple[str, ...] = ("id", "timestamp_millis(at) AS event_time", "shard")
    files: int = 0

    def arrive(self, rows: Iterable[dict[str, Any]]) -> None:
        """A file with rows; each file is a batch."""
        source = self.directory / "source"
        source.mkdir(exist_ok=True)
        hidden = source / f".{self.files}.json"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(hidden, (self.files, self.files))  # Spark takes the oldest first
        hidden.rename(source / f"{self.files}.json")
        self.files += 1

    def run(self, checkpoint: str = "checkpoint", **options: Any) -> list[Any]:
        """Writes what has arrived; per batch its number, its rows, and its late rows (None: it was done before)."""
        given = {"event_time": "event_time", "partitions": KEYS, "source": "shard", **options}
        code = PROGRAM.format(
            root=str(ROOT),
            uri=self.uri,
            table=self.table,
            options=given,
            schema=self.schema,
            source=str(self.directory / "source"),
            columns=list(self.columns),
            checkpoint=str(self.directory / checkpoint),
        )
        return self.spark.python(code)

    def forget_last_batch(self) -> None:
        """Makes Spark believe that the last batch was not finished, as it does after a crash."""
        commits = self.directory / "checkpoint" / "commits"
        last = max((file for file in commits.iterdir() if file.name.isdecimal()), key=lambda file: int(file.name))
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@pytest.fixture
def client(target: Target) -> Iterator[ThriftClient]:
    with target.connect() as opened:
        yield opened


@pytest.fixture
def uri(target: Target) -> str:
    return f"thrift://{target.host}:{target.port}"


def row(number: int, hours: float, shard: str = "a", **more: Any) -> dict[str, Any]:
    return {"id": number, "at": at(hours), "shard": shard, **more}


@pytest.mark.parametrize(
    ("late", "counts", "rows"),
    [
        ("next", [1, 0, 0], {hour(0): [1, 2], hour(1): [3], hour(2): [5, 6]}),
        ("reopen", [0, 1, 0], {hour(0): [1, 2, 5], hour(1): [3], hour(2): [6]}),
        ("drop", [0, 0, 1], {hour(0): [1, 2], hour(1): [3], hour(2): [6]}),
    ],
)
def test_rows_and_late_rows(
    spark: SparkSession,
    client: ThriftClient,
    uri: str,
    tmp_path: Path,
    late: str,
    counts: list[int],
    rows: dict[str, list[int]],
) -> None:
    """Each row is in one partition; a late one where the table's policy says."""
    stream = Stream(spark, uri, tmp_path, lake.create_table(client, late=late))
    stream.arrive([row(1, 0.1), row(2, 0.9, "b"), row(3, 1.5)])
    assert stream.run() == [[0, 3, [0, 0, 0]]]
    assert lake.ready(client, stream.table) == set()
    stream.arrive([row(6, 2.1), row(7, 2.1, "b")])
    assert stream.run() == [[1, 2, [0, 0, 0]]]
    lake.wait_until_ready(client, stream.table, hour(0), hour(1))
    stream.arrive([row(5, 0.5)])
    expected = {**rows, hour(2): [*rows[hour(2)], 7]}
    assert stream.run() == [[2, 1, counts]]
    assert lake.rows(client, stream.table) == expected
    lake.wait_until_ready(client, stream.table, hour(0), hour(1))
    watermark = client.lake_get_watermark(lake.reference(stream.table))
    assert watermark.watermark == at(2.1)
    assert {each.source for each in watermark.sources} == {"a", "b"}
    assert [watermark.late.rerouted, watermark.late.reopened, watermark.late.dropped] == counts


def test_a_replayed_batch_changes_nothing(spark: SparkSession, client: ThriftClient, uri: str, tmp_path: Path) -> None:
    stream = Stream(spark, uri, tmp_path, lake.create_table(client))
    stream.arrive([row(1, 0.1)])
    stream.arrive([row(2, 1.1), row(3, 1.2)])
    stream.run()
    before = lake.rows(client, stream.table)
    stream.forget_last_batch()
    stream.arrive([row(4, 1.3)])
    assert stream.run() == [[1, 0, None], [2, 1, [0, 0, 0]]]
    assert before == {hour(0): [1], hour(1): [2, 3]}
    assert lake.rows(client, stream.table) == {hour(0): [1], hour(1): [2, 3, 4]}


def test_after_its_checkpoint_is_gone_a_query_is_another_writer(
    spark: SparkSession, client: ThriftClient, uri: str, tmp_path: Path
) -> None:
    stream = Stream(spark, uri, tmp_path, lake.create_table(client))
    stream.arrive([row(1, 0.1)])
    stream.run()
    assert stream.run(checkpoint="another") == [[0, 1, [0, 0, 0]]]
    assert lake.rows(client, stream.table) == {hour(0): [1, 1]}
    assert stream.run(checkpoint="third", writer="w") == [[0, 1, [0, 0, 0]]]
    assert stream.run(checkpoint="fourth", writer="w") == [[0, 0, None]]


def test_spark_reads_what_it_wrote(spark: SparkSession, client: ThriftClient, uri: str, tmp_path: Path) -> None:
    """A table of Spark's own, with all kinds of columns, keys that are no strings, and values that are missing."""
    table = lake.create_table(client)  # for its database
    database = table.partition(".")[0]
    spark.sql(
        f"CREATE TABLE {database}.wide (name STRING, Id BIGINT, price DECIMAL(10,2), tags MAP<STRING,ARRAY<INT>>, "
        "at TIMESTAMP, local TIMESTAMP_NTZ, note VARCHAR(5), day DATE, kind STRING, hr INT) USING parquet "
        "PARTITIONED BY (day, kind, hr) TBLPROPERTIES ('partition.commit.mode' = 'manual')"
    )
    stream = Stream(
        spark,
        uri,
        tmp_path,
        f"{database}.wide",
        schema="id INT, at BIGINT, price STRING, kind STRING, tags MAP<STRING,ARRAY<INT>>",
        columns=(
            "tags",
            "id",
            "'n' AS name",
            "price",
            "timestamp_millis(at) AS at",
            "kind AS what",
            "'abc' AS note",
            "timestamp_ntz'2025-03-01 12:00:00' AS local",
            "1 AS unused",
        ),
    )
    stream.arrive(
        [
            {"id": 1, "at": at(7), "price": "1.50", "kind": "a b/c=ü%", "tags": {"x": [1, 2]}},
            {"id": 2, "at": at(7), "price": None, "kind": None, "tags": None},
            {"id": 3, "at": None, "price": "3", "kind": "", "tags": {}},
        ]
    )
    keys = {"day": "to_date(at)", "kind": "what", "hr": "date_format(at, 'HH')"}
    stream.run(event_time="at", partitions=keys, source=None, files_per_partition=3)
    names = sorted(lake.states(client, stream.table))
    assert names == [
        "day=2025-03-01/kind=__HIVE_DEFAULT_PARTITION__/hr=7",
        "day=2025-03-01/kind=a b%2Fc%3Dü%25/hr=7",
        "day=__HIVE_DEFAULT_PARTITION__/kind=__HIVE_DEFAULT_PARTITION__/hr=__HIVE_DEFAULT_PARTITION__",
    ]
    assert spark.value(f"SELECT count(*) FROM {stream.table}") == 0
    read = spark.sql(
        f"SELECT id, name, cast(price AS STRING), tags, at, cast(local AS STRING), note, day, kind, hr "
        f"FROM {database}.`wide@includeuncommit` ORDER BY id"
    )
    local = "2025-03-01 12:00:00"
    assert read == [
        [1, "n", "1.50", {"x": [1, 2]}, "2025-03-01 07:00:00", local, "abc", "2025-03-01", "a b/c=ü%", 7],
        [2, "n", None, None, "2025-03-01 07:00:00", local, "abc", "2025-03-01", None, 7],
        [3, "n", "3.00", {}, None, local, "abc", None, None, None],
    ]
    assert client.lake_get_watermark(lake.reference(stream.table)).watermark == at(7)
    for state in lake.states(client, stream.table).values():
        for file in lake.data_files(state.location):
            assert not {"day", "kind", "hr"} & set(pq.read_schema(file).names)


def test_several_tasks_may_write_a_partition(
    spark: SparkSession, client: ThriftClient, uri: str, tmp_path: Path
) -> None:
    stream = Stream(spark, uri, tmp_path, lake.create_table(client))
    stream.arrive([row(number, 0.5) for number in range(200)])
    stream.run(files_per_partition=2)
    (state,) = lake.states(client, stream.table).values()
    assert len(lake.data_files(state.location)) == 2
    assert lake.rows(client, stream.table) == {hour(0): list(range(200))}


def test_a_batch_without_rows_counts_as_one(
    spark: SparkSession, client: ThriftClient, uri: str, tmp_path: Path
) -> None:
    stream = Stream(spark, uri, tmp_path, lake.create_table(client))
    stream.arrive([])
    stream.arrive([row(1, 0)])
    assert stream.run()[-1][1:] == [1, [0, 0, 0]]
    assert lake.rows(client, stream.table) == {hour(0): [1]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"event_time": "when"}, "the stream has no column when"),
        ({"source": "origin"}, "the stream has no column origin"),
        ({"partitions": {"dt": "'x'"}}, "the table's partition keys are dt, hr; values are given for dt"),
    ],
)
def test_a_stream_that_does_not_fit_ends_with_a_reason(
    spark: SparkSession, client: ThriftClient, uri: str, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    stream = Stream(spark, uri, tmp_path, lake.create_table(client))
    stream.arrive([row(1, 0)])
    with pytest.raises(SparkError, match=message):
        stream.run(**options)


@pytest.mark.parametrize("column", ["concat('x', id)", "id * 1e30D", "true"])
def test_values_that_do_not_fit_end_the_query(
    spark: SparkSession, client: ThriftClient, uri: str, tmp_path: Path, column: str
) -> None:
    stream = Stream(spark, uri, tmp_path, lake.create_table(client))
    stream.columns = (f"{column} AS id", *stream.columns[1:])
    stream.arrive([row(1, 0)])
    with pytest.raises(SparkError, match=r"CAST_INVALID_INPUT|CAST_OVERFLOW|CANNOT_SAFELY_CAST"):
        stream.run()
    assert lake.rows(client, stream.table) == {}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("(id BIGINT) PARTITIONED BY (dt STRING, hr STRING) STORED AS TEXTFILE", "not as Parquet"),
        ("(id BIGINT) PARTITIONED BY (dt STRING, hr STRING) STORED AS PARQUET", "the table's partition keys are"),
        ("(id BIGINT) USING parquet", "no partitions"),
    ],
)
def test_tables_that_cannot_be_written(
    spark: SparkSession, client: ThriftClient, uri: str, tmp_path: Path, table: str, message: str
) -> None:
    database = lake.create_table(client).partition(".")[0]
    spark.sql(f"CREATE TABLE {database}.u {table} TBLPROPERTIES ('partition.commit.mode' = 'manual')")
    stream = Stream(spark, uri, tmp_path, f"{database}.u")
    stream.arrive([row(1, 0)])
    with pytest.raises(SparkError, match=message):
        stream.run(partitions={"x": "'y'"})


def test_a_missing_table_and_one_without_commits(
    spark: SparkSession, client: ThriftClient, uri: str, tmp_path: Path
) -> None:
    stream = Stream(spark, uri, tmp_path, lake.create_table(client, mode="none"))
    stream.arrive([row(1, 0)])
    with pytest.raises(SparkError, match=r"set partition\.commit\.mode"):
        stream.run("one")
    stream.table = f"{stream.table}_missing"
    with pytest.raises(SparkError, match="_missing"):
        stream.run("two")
