"""What is written becomes the table's at once; what is read is a snapshot; directories hold nothing else."""

from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from lake.client.lake_types import Completion
from lake.tables.lake import LakeTable
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkError, SparkSession
from tests.support.target import local_path

DAY = "dt=2026-01-0{}".format


def test_rows_are_added_and_replaced(lake: Lake, table: LakeTable) -> None:
    """By snapshot, by directory and by Spark's own catalog the same rows, after each step; and before, as of then."""
    steps = [
        ("append", "rows_of([1, 2]).union(rows_of([3], '2026-01-02'))", {DAY(1): [1, 2], DAY(2): [3]}),
        ("append", "rows_of([4])", {DAY(1): [1, 2, 4], DAY(2): [3]}),
        ("replace_partitions", "rows_of([5])", {DAY(1): [5], DAY(2): [3]}),
        ("append", "rows_of([6])", {DAY(1): [5, 6], DAY(2): [3]}),
        ("overwrite", "rows_of([7], '2026-01-03')", {DAY(1): [], DAY(2): [], DAY(3): [7]}),
    ]
    written = []
    for operation, rows, expected in steps:
        written.append(lake.write(table, rows, operation=operation))
        everything = sorted(id for ids in expected.values() for id in ids)
        assert lake.listed(table) == expected
        assert lake.ids(table) == everything
        assert sorted(lake.spark.column(f"SELECT id FROM {table.name}")) == everything
    for timestamp, (_, _, expected) in zip(written, steps, strict=True):
        assert lake.ids(table, as_of=timestamp) == sorted(id for ids in expected.values() for id in ids)
    assert lake.ids(table, as_of=2, filter="dt = '2026-01-01'") == [1, 2, 4]
    assert lake.ids(table, "id, name, dt", filter="dt > '2026-01-02'") == [[7, "n7", "2026-01-03"]]
    in_words = {each.timestamp: table.details(each.timestamp, each.action) for each in table.instants()}
    assert in_words[written[1]].metadata["completed"] == b'{"operation": "append", "files": 1, "rows": 1}'
    assert in_words[written[4]].partitions == [DAY(1), DAY(2), DAY(3)]


@pytest.mark.long
def test_increments_add_up(lake: Lake, table: LakeTable) -> None:
    for number in (1, 2, 3):
        lake.write(table, f"rows_of([{number}, 10 + {number}], '2026-01-0{number % 2}')")
    lake.write(table, "rows_of([20], '2026-01-01')", operation="replace_partitions")
    lake.write(table, "rows_of([21], '2026-01-01')")
    last = table.position().position
    at = [set(lake.ids(table, as_of=position)) for position in range(last + 1)]
    for start in range(last):
        for end in (start + 1, last):
            changes = lake.ids(table, "id, _change", incremental=(start, end), with_removed=True)
            added = {id for id, change in changes if change == "added"}
            removed = {id for id, change in changes if change == "removed"}
            assert len(changes) == len(added) + len(removed)
            assert removed <= at[start] and not added & at[start]
            assert (at[start] - removed) | added == at[end]
            assert set(lake.ids(table, incremental=(start, end))) == added


def test_increments_need_a_begin_and_an_end(lake: Lake, table: LakeTable) -> None:
    """Anything else might be read as if nothing had come."""
    stamp = lake.write(table, "rows_of([1])")
    for wrong in (stamp, (stamp,), (None, None), (1, 0), (2, None)):
        with pytest.raises(SparkError, match="ValueError"):
            lake.ids(table, incremental=wrong)


def test_columns_come_later(lake: Lake, table: LakeTable) -> None:
    lake.write(table, "rows_of([1])")
    before = table.schema()
    code = f"write(rows_of([2], extra=('int', 5)), {table.name!r})"
    assert "has no column extra" in lake.run(f"try:\n    {code}\nexcept Exception as error:\n    result = str(error)")
    lake.write(table, "rows_of([2], extra=('int', 5))", add_columns=True)
    lake.write(table, "rows_of([3]).drop('name')")
    expected = [[1, "n1", None], [2, "n2", 5], [3, None, None]]
    assert lake.ids(table, "id, name, extra") == expected
    assert lake.spark.sql(f"SELECT id, name, extra FROM {table.name} ORDER BY id") == expected
    assert lake.ids(table, "id, extra", as_of=1) == [[1, None]]
    assert [each.name for each in table.schema().columns] == ["id", "name", "extra"]
    assert table.schema(before.version) == before


def test_files_have_the_ids_of_columns(lake: Lake, table: LakeTable) -> None:
    lake.write(table, "rows_of([1])")
    lake.write(table, "rows_of([2], extra=('int', 5))", add_columns=True)
    names = [each.name for each in table.schema().columns]
    snapshot = table.snapshot()
    for number, file in enumerate(sorted(snapshot, key=lambda each: each.added_at or 0)):
        schema = pq.read_schema(local_path(f"{snapshot.location}/{file.path}"))
        ids = {each.name: int((each.metadata or {})[b"PARQUET:field_id"]) for each in schema}
        assert ids == {name: id for id, name in enumerate(names[: len(names) - 1 + number], 1)}


def test_log_files_are_no_rows(lake: Lake, table: LakeTable) -> None:
    """Other writers may add them; who reads them must know what they change."""
    lake.write(table, "rows_of([1])")
    (base,) = table.snapshot()
    begun = table.begin("deltacommit").instant
    log = base._replace(kind="log", path=f"{base.path}.log", version=1)
    table.complete(begun, Completion(added=[log]))
    with pytest.raises(SparkError, match=r"UnreadableFiles: .*has log files"):
        lake.ids(table)
    assert lake.ids(table, view="read_optimized") == [1]


@pytest.mark.long
def test_on_the_older_spark(hinting_session: Callable[[str], SparkSession], lake: Lake, table: LakeTable) -> None:
    older = Lake(hinting_session("3.5"), lake.client, lake.database)
    first = older.write(table, "rows_of([1, 2]).union(rows_of([3], '2026-01-02'))")
    older.write(table, "rows_of([4], extra=('int', 5))", operation="replace_partitions", add_columns=True)
    assert older.ids(table, "id, extra") == [[3, None], [4, 5]]
    assert older.ids(table, as_of=first, filter="dt = '2026-01-01'") == [1, 2]
    assert older.listed(table) == {DAY(1): [4], DAY(2): [3]}
    assert [each.rows for each in table.snapshot()] == [1, 1]


def test_uncommitted_partitions_are_hidden(lake: Lake) -> None:
    by_hand = lake.table("m", "id BIGINT, name STRING, dt STRING", "dt", **{"partition.commit.mode": "manual"})
    lake.write(by_hand, "rows_of([1]).union(rows_of([2], '2026-01-02'))")
    assert lake.ids(by_hand) == []
    assert lake.ids(by_hand, include_uncommitted=True) == [1, 2]
    assert lake.ids(by_hand, incremental=(0, None)) == []
    lake.run(f"""
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import CommitPartitionsRequest, TableReference
uri = spark._jsc.hadoopConfiguration().get("hive.metastore.uris")
with ThriftClient.from_uri(uri) as client:
    client.lake_commit_partitions(
        CommitPartitionsRequest(TableReference(database={lake.database!r}, table="m"), names=["{DAY(1)}"])
    )
""")
    assert lake.ids(by_hand) == [1]
    lake.write(by_hand, "rows_of([3]).union(rows_of([4], '2026-01-02'))", operation="overwrite")
    assert lake.ids(by_hand) == [3]
    assert lake.ids(by_hand, include_uncommitted=True) == [3, 4]


def test_a_table_without_keys(lake: Lake) -> None:
    flat = lake.table("flat", "id BIGINT, name STRING")
    for operation, ids, expected in [
        ("append", [1], [1]),
        ("overwrite", [2], [2]),
        ("append", [3], [2, 3]),
        ("overwrite", [], []),
        ("append", [4], [4]),
    ]:
        lake.write(flat, f"rows_of({ids!r}).drop('dt')", operation=operation)
        assert lake.listed(flat) == {"": expected}
        assert lake.ids(flat) == expected
        assert sorted(lake.spark.column(f"SELECT id FROM {flat.name}")) == expected
    assert lake.ids(flat, as_of=3) == [2, 3]
    assert "no partitions to replace" in lake.run(
        f"try:\n    write(rows_of([1]), {flat.name!r}, operation='replace_partitions')\n"
        "except ValueError as error:\n    result = str(error)"
    )


def test_keys_and_types_and_odd_values(lake: Lake) -> None:
    """Keys that are no text, values that need escapes, none at all; conditions on a key prune what is read."""
    odd = lake.table("odd", "id BIGINT, at TIMESTAMP, day DATE, city STRING, hr INT", "day, city, hr")
    lake.run(f"""
spark.conf.set("spark.sql.session.timeZone", "UTC")
rows = spark.sql('''
    SELECT * FROM VALUES
        (1L, TIMESTAMP '2026-01-01 07:00:00', DATE '2026-01-01', 'a/b=c%', '07'),
        (2L, TIMESTAMP '2026-01-01 06:30:00', DATE '2026-01-01', 'a/b=c%', '7'),
        (3L, NULL, NULL, 'Zürich', '12') AS t (id, at, day, city, hr)
''').coalesce(1)
write(rows, {odd.name!r}, event_time="at")
""")
    rows = lake.ids(odd, "id, string(day), city, hr")
    assert rows == [[1, "2026-01-01", "a/b=c%", 7], [2, "2026-01-01", "a/b=c%", 7], [3, None, "Zürich", 12]]
    assert lake.spark.sql(f"SELECT id, string(day), city, hr FROM {odd.name} ORDER BY id") == rows
    files = {each.partition.rpartition("=")[2]: each for each in odd.snapshot()}
    assert (files["7"].rows, files["12"].rows) == (2, 1)
    first, last = (f"2026-01-01 {time}:00+00:00" for time in ("06:30", "07:00"))
    assert (str(files["7"].min_event_time), str(files["7"].max_event_time)) == (first, last)
    assert files["12"].min_event_time is None
    # A condition on a key prunes: the files of other partitions aren't missed.
    local_path(f"{odd.location()}/{files['7'].path}").unlink()
    assert lake.run(f"result = read(spark, {odd.name!r}).where('hr = 12').count()") == 1


def test_event_times_without_a_time_zone_are_those_of_utc(lake: Lake) -> None:
    for kind, value, expected in (
        ("DATE", "DATE '2026-01-01'", "2026-01-01 00:00:00+00:00"),
        ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ '1969-03-09 02:30:15.25'", "1969-03-09 02:30:15.250000+00:00"),
        ("TIMESTAMP", "TIMESTAMP '2026-01-01 00:00:00+01'", "2025-12-31 23:00:00+00:00"),
    ):
        table = lake.table(f"in_{kind.lower()}", f"id BIGINT, at {kind}", "")
        lake.run(f"""
spark.conf.set("spark.sql.session.timeZone", "America/New_York")
write(spark.sql("SELECT 1L AS id, {value} AS at"), {table.name!r}, event_time="AT")
spark.conf.unset("spark.sql.session.timeZone")
""")
        [file] = table.snapshot()
        assert str(file.min_event_time) == str(file.max_event_time) == expected


def test_event_time_moves_the_watermark(lake: Lake) -> None:
    by_time = lake.table(
        "e",
        "id BIGINT, at TIMESTAMP, dt STRING",
        "dt",
        **{
            "partition.commit.mode": "event-time",
            "partition.time-extractor.timestamp-pattern": "$dt",
            "sink.partition-commit.delay": "1 d",
        },
    )
    rows = "spark.sql(\"SELECT {}L AS id, timestamp'{}' AS at, '{}' AS dt\")".format
    lake.write(by_time, rows(1, "2026-01-01 12:00:00", "2026-01-01"), event_time="at")
    assert lake.ids(by_time) == []
    lake.write(by_time, rows(2, "2026-01-02 12:00:00", "2026-01-02"), event_time="at")
    assert lake.ids(by_time) == [1]
    with pytest.raises(SparkError, match="column id is bigint: event times are"):
        lake.write(by_time, rows(3, "2026-01-03 12:00:00", "2026-01-03"), event_time="id")


def test_the_driver_asks_once(lake: Lake, table: LakeTable) -> None:
    """A second read of the same version of a table asks where the table stands, and for its files; no more."""
    lake.write(table, "rows_of([1])")
    calls = lake.run(f"""
from lake.protocol.connection.thrift_client import ThriftClient
calls = []
call = ThriftClient.call
ThriftClient.call = lambda self, name, *args, **named: (calls.append(name), call(self, name, *args, **named))[1]
try:
    read(spark, {table.name!r}).count()
    del calls[:]
    read(spark, {table.name!r}, filter="dt > '2025'").count()
finally:
    ThriftClient.call = call
result = calls
""")
    assert calls == ["lake_timeline_position", "lake_get_snapshot"]


def test_what_is_read_stays_what_it_was(lake: Lake, table: LakeTable) -> None:
    """A DataFrame is of one snapshot, also if Spark's listing of the directory is dropped."""
    lake.write(table, "rows_of([1])")
    found = lake.run(f"""
before = read(spark, {table.name!r}).cache()
counts = [before.count()]
write(rows_of([2]), {table.name!r})
spark.catalog.refreshByPath({table.location()!r})
counts.append(before.count())
write(rows_of([3]), {table.name!r}, operation="overwrite")
counts.append(before.unpersist().count())
result = counts + [read(spark, {table.name!r}).count()]
""")
    assert found == [1, 1, 1, 1]


def test_a_clean_leaves_what_a_session_has_read(lake: Lake, table: LakeTable) -> None:
    """Until the session ends, or has gone on for the time that it says; without one nothing is kept."""
    for number in range(2):
        lake.write(table, f"rows_of([{number}])", operation="overwrite")
    assert lake.ids(table, as_of=1) == [0]
    for number in range(2, 4):
        lake.write(table, f"rows_of([{number}])", operation="overwrite")
    assert table.plan_clean(keep_commits=1) == []
    found = lake.run(f"""
spark.conf.set("spark.metastore.readerLeaseHours", "0")
try:
    rows = read(spark, {table.name!r}, as_of=2)
    spark.conf.set("spark.metastore.readerLeaseHours", "never")
    read(spark, {table.name!r})
except ValueError as error:
    result = [str(error), rows.count()]
finally:
    spark.conf.unset("spark.metastore.readerLeaseHours")
""")
    assert found == ["spark.metastore.readerLeaseHours is 'never': expected a number of hours from 0 on", 1]
    lease = lake.client.call(lambda client: client.lake_list_leases(table.reference))
    assert [(each.position, each.onwards) for each in lease] == [(1, True)]
    assert (lease[0].holder or "").startswith("Spark ")
