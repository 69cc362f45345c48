"""Of what fails nothing is left: neither rows that anybody reads, nor files, nor an instant."""

from pathlib import Path

import pytest

from lake.tables.lake import LakeTable
from tests.lake.spark.lake import Lake
from tests.spark.session import ConfiguredSession, SparkError
from tests.support.target import Target, local_path
from tests.support.waiting import wait_until


def left_files(table: LakeTable) -> list[str]:
    """What lies in directories of instants that are not partitions'."""
    instants = local_path(table.location()) / ".instants"
    found = [each for each in instants.rglob("*") if each.is_file()] if instants.exists() else []
    return [str(each) for each in found]


def test_of_two_racing_writers_one_wins(lake: Lake, table: LakeTable) -> None:
    """The other one gets an error that names the quicker one, and leaves nothing."""
    lake.write(table, "rows_of([1])")
    winner, answer, left = lake.run(f"""
from pyspark.sql import functions as sf
import lake.spark.lake_writing as writing
complete = writing._completion
def slow(*args):
    global winner
    writing._completion = complete
    winner = write(rows_of([2]), {table.name!r}, operation="replace_partitions").instant.timestamp
    return complete(*args)
writing._completion = slow
try:
    write(rows_of([3]), {table.name!r}, operation="overwrite")
except InstantConflict as error:
    named = [each.timestamp for each in error.winners], error.filesToRemove
finally:
    writing._completion = complete
result = winner, named[0], named[1]
""")
    assert answer == [winner]
    assert len(left) == 1
    assert lake.ids(table) == [2] == lake.listed(table)["dt=2026-01-01"]
    assert [each.state for each in table.instants()] == ["completed", "completed"]
    lost = local_path(table.location()) / left[0]
    wait_until(lambda: not lost.exists(), 60, "the loser's file is gone")


def test_what_is_made_from_an_old_snapshot_replaces_no_newer_rows(lake: Lake, table: LakeTable) -> None:
    first = lake.write(table, "rows_of([1])")
    lake.write(table, "rows_of([2])")
    with pytest.raises(SparkError, match="InstantConflict"):
        lake.write(table, "rows_of([3])", operation="overwrite", based_on=first)
    assert lake.ids(table) == [1, 2]
    lake.write(table, "rows_of([3])", operation="overwrite", based_on=2)
    assert lake.ids(table) == [3]


def test_a_write_that_fails_leaves_nothing(lake: Lake, table: LakeTable) -> None:
    lake.write(table, "rows_of([1])")
    error = lake.run(f"""
rows = rows_of(range(2, 200)).repartition(4).selectExpr(
    "id", "if(id = 150, raise_error('no such luck'), name) name", "dt"
)
try:
    write(rows, {table.name!r})
except Exception as failed:
    result = str(failed)
""")
    assert "no such luck" in error
    assert lake.ids(table) == [1]
    wait_until(lambda: left_files(table) == [], 60, "its files are gone")
    assert [each.state for each in table.instants()] == ["completed"]


def test_nobody_sees_what_is_being_written(lake: Lake, table: LakeTable) -> None:
    """Neither by the snapshot nor by directories nor by Spark's catalog, while the writer is between its jobs."""
    lake.write(table, "rows_of([1])")
    seen = lake.run(f"""
import lake.spark.lake_writing as writing
complete = writing._completion
def look(*args):
    global seen
    own = spark.sql("SELECT count(*) FROM {table.name}").first()[0]
    seen = [read(spark, {table.name!r}, include_uncommitted=True).count(), own]
    return complete(*args)
seen = None
writing._completion = look
try:
    write(rows_of([2]), {table.name!r})
    result = [seen]
    write(rows_of([3]), {table.name!r}, operation="overwrite")
    result.append(seen)
finally:
    writing._completion = complete
""")
    assert seen == [[1, 1], [2, 2]]


@pytest.mark.long
@pytest.mark.parametrize("operation", ["append", "overwrite"])
def test_a_killed_writer_leaves_nothing(
    lake: Lake,
    table: LakeTable,
    target: Target,
    released_jar: Path,
    tmp_path_factory: pytest.TempPathFactory,
    operation: str,
) -> None:
    lake.write(table, "rows_of([1])")
    uri = f"thrift://{target.host}:{target.port}"
    directory = tmp_path_factory.mktemp("killed")
    with ConfiguredSession("4", uri, str(target.warehouse()), released_jar, directory) as doomed:
        other = Lake(doomed, lake.client, lake.database)
        with pytest.raises(RuntimeError):
            other.run(f"""
import os, signal
import lake.spark.lake_writing as writing
writing._completion = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
write(rows_of([2]), {table.name!r}, operation={operation!r})
""")
    assert lake.ids(table) == [1]
    assert lake.listed(table) == {"dt=2026-01-01": [1]}
    # The next writer gives the dead one up, once its heartbeats have stayed away for long enough.
    wait_until(lambda: [each.state for each in table.instants()] == ["completed"], 300, "the instant is aborted")
    wait_until(lambda: left_files(table) == [], 60, "its files are gone")


@pytest.mark.long
def test_tasks_that_run_again_write_once(
    lake: Lake,
    table: LakeTable,
    target: Target,
    released_jar: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A task dies twice after it has written rows and closed files; each row is there once."""
    uri = f"thrift://{target.host}:{target.port}"
    directory = tmp_path_factory.mktemp("twice")
    settings = {"spark_master": "local[2,4]", "spark_sql_files_maxRecordsPerFile": "10"}
    with ConfiguredSession("4", uri, str(target.warehouse()), released_jar, directory, **settings) as retrying:
        other = Lake(retrying, lake.client, lake.database)
        other.run(f"""
def dying(rows):
    from pyspark import TaskContext
    context = TaskContext.get()
    for count, row in enumerate(rows):
        if context.partitionId() == 0 and context.attemptNumber() < 2 and count == 45:
            raise RuntimeError("died after 45 rows")
        yield row
spread = rows_of(range(100)).repartition(2).rdd.mapPartitions(dying)
rows = spark.createDataFrame(spread, "id bigint, name string, dt string")
write(rows, {table.name!r})
""")
    assert lake.ids(table) == list(range(100))
    assert lake.listed(table) == {"dt=2026-01-01": list(range(100))}
    assert sum(each.rows or 0 for each in table.snapshot()) == 100


def test_a_directory_is_read_by_its_path(lake: Lake, table: LakeTable) -> None:
    """`spark.read.parquet` of a partition's location finds the partition's rows."""
    lake.write(table, "rows_of([1, 2])")
    lake.write(table, "rows_of([3])", operation="overwrite")
    lake.write(table, "rows_of([4])")
    (location,) = lake.locations(table).values()
    assert lake.run(f"result = sorted(row.id for row in spark.read.parquet({location!r}).collect())") == [3, 4]
    assert lake.ids(table, as_of=1) == [1, 2]
