"""The changes of keyed tables in SQL, which are those that the Arrow reader gives."""

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeClient, LakeTable
from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.test_keyed_select import ENGINES, rows
from tests.support.long_runs import share_of

#: What differs in how changes are found; the others are compared in long runs.
OFTEN = {"deduplicate", "by sequence", "partial-update", "aggregation", "families", "looked up", "copied"}

CHANGE = "_change_type, _commit_version"

SCHEMA = pa.schema(
    {
        "k": pa.string(),
        "a": pa.int32(),
        "b": pa.string(),
        "c": pa.float64(),
        "d": pa.decimal128(9, 2),
        "e": pa.list_(pa.int32()),
        "dt": pa.int32(),
    }
)

MORE = {
    "looked up": {"changelog-producer": "lookup"},
    "looked up, copied": {"changelog-producer": "lookup", "table-type": "copy-on-write"},
    "copied": {"table-type": "copy-on-write"},
    "over all partitions": {"primary-key": "k"},
}


@pytest.fixture
def table(spark: SparkSession, database: str) -> str:
    """A table whose row 1 was updated twice, 2 deleted, 3 left alone, and 4 inserted."""
    name = f"{database}.c"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, Name STRING) USING parquet "
        "TBLPROPERTIES ('primary-key' = 'id', 'table-type' = 'merge-on-read')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'A'), (4, 'd')")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'AA')")
    return name


def test_net_changes(spark: SparkSession, table: str) -> None:
    changed = [
        [1, "AA", "update_postimage", 4],
        [1, "a", "update_preimage", 4],
        [2, "b", "delete", 3],
        [4, "d", "insert", 2],
    ]
    query = f"SELECT id, name, {CHANGE} FROM lake_changes('{table}', {{0}})"
    assert rows(spark, query.format("1")) == changed
    assert rows(spark, query.format("1, 4") + " WHERE id = 2") == [changed[2]]
    assert rows(spark, query.format("'2', '3'")) == [changed[2]]
    assert rows(spark, query.format("4")) == []
    assert rows(spark, query.format("0, 1")) == [[1, "a", "insert", 1], [2, "b", "insert", 1], [3, "c", "insert", 1]]
    first, second, *_ = sorted(row[0] for row in spark.sql(f"SELECT timestamp FROM {table}.instants"))
    assert rows(spark, query.format(f"'{first}', '{second}'"))[-1] == changed[3]
    assert rows(spark, query.format("2, current_timestamp()")) == [
        [1, "A", "update_preimage", 4],
        [1, "AA", "update_postimage", 4],
        changed[2],
    ]
    joined = (
        f"SELECT c.id, t.name FROM lake_changes('{table}', 1) c JOIN {table} t USING (id) WHERE _change_type = 'insert'"
    )
    assert rows(spark, joined) == [[4, "d"]]


def test_a_range_that_cannot_be_read(spark: SparkSession, table: str) -> None:
    spark.sql(f"CALL lake.system.clean('{table}', 1)")
    for arguments, message in [
        (f"'{table}', 'yesterday'", "no completed instant or savepoint yesterday"),
        (f"'{table}', 3, 2", "position 3 is not before position 2"),
        (f"'{table}', 3, 99", "99"),
        (f"'{table}'", "takes a table's name"),
        (f"'{table}', NULL", "second argument"),
        (f"'{table}', true", "is no position"),
        (f"'{table}', id", "(?i)id"),
        ("'nothing', 1", "no keyed table"),
    ]:
        with pytest.raises(SparkError, match=message):
            spark.sql(f"SELECT * FROM lake_changes({arguments})")


def test_a_cleaned_position_names_the_oldest(spark: SparkSession, database: str) -> None:
    table = f"{database}.gone"
    spark.sql(f"CREATE TABLE {table} (id INT, v INT) USING parquet TBLPROPERTIES ('primary-key' = 'id')")
    for value in range(3):
        spark.sql(f"INSERT INTO {table} VALUES (1, {value})")
    spark.sql(f"CALL lake.system.clean('{table}', 1)")
    with pytest.raises(SparkError, match="cleaned: the oldest that can be read is position 3"):
        spark.sql(f"SELECT * FROM lake_changes('{table}', 1)")


def test_uncommitted_partitions_and_leases(spark: SparkSession, database: str, lake: Lake) -> None:
    table = f"{database}.p"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, v STRING, dt STRING) USING parquet PARTITIONED BY (dt) "
        "TBLPROPERTIES ('primary-key' = 'id,dt')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'd1'), (2, 'b', 'd2')")
    lake.reopen(database, "p", "dt=d2")
    changes = f"lake_changes('{table}', 0)"
    assert rows(spark, f"SELECT id, {CHANGE} FROM {changes}") == [[1, "insert", 1]]
    assert rows(spark, f"SELECT /*+ includeUnCommit(true) */ id, dt FROM {changes}") == [[1, "d1"], [2, "d2"]]
    lake.commit(database, "p", "dt=d2")
    query = f"SELECT id, {CHANGE} FROM lake_changes('{table}', 2) WHERE dt {{}} 'd2'"
    assert rows(spark, query.format("=")) == [[2, "insert", 3]]
    assert rows(spark, query.format("<>")) == []
    assert [each.position for each in lake.leases(table) if each.onwards] == [0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "engine", [pytest.param(each, marks=() if each in OFTEN else pytest.mark.long) for each in [*ENGINES, *MORE]]
)
def test_histories_change_like_the_arrow_reader(
    spark: SparkSession, database: str, lake: Lake, engine: str, histories: int
) -> None:
    """Random writes, compactions, and partitions that are reopened; then the changes of some ranges."""
    for number in range(histories):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        table, properties = f"h{number}", ENGINES.get(engine, {}) | MORE.get(engine, {})
        _history(spark, lake, database, table, properties, random.Random(seed))


@pytest.fixture(params=[1, pytest.param(share_of(300), marks=pytest.mark.long)], ids=["sample", "many"])
def histories(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def _history(
    spark: SparkSession, lake: Lake, database: str, name: str, properties: dict[str, str], chance: random.Random
) -> None:
    properties = {"primary-key": "k,dt", "bucket": "2", "table-type": "merge-on-read", **properties}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    table = f"{database}.{name}"
    spark.sql(
        f"CREATE TABLE {table} (k STRING, a INT, b STRING, c DOUBLE, d DECIMAL(9, 2), e ARRAY<INT>, dt INT) "
        f"USING parquet PARTITIONED BY (dt) TBLPROPERTIES ({listed})"
    )
    is_wide = properties["primary-key"] == "k"
    with LakeClient(lake.server.uri) as client:
        written = client.table(table)
        for _ in range(8):
            _step(spark, lake, written, database, name, properties, chance, is_wide)
        last = written.position().position
        for _ in range(3):
            after = chance.randrange(last + 1)
            up_to = chance.choice([last, chance.randrange(after, last + 1)])
            expected = _plain(written.changes(after, up_to).to_arrow())
            query = (
                "SELECT k, a, b, cast(c AS STRING) c, cast(d AS STRING) d, "
                "CASE WHEN e IS NOT NULL THEN cast(size(e) AS STRING) END e, dt, "
                f"{CHANGE}, unix_millis(_commit_timestamp) FROM lake_changes('{table}', {after}, {up_to})"
            )
            assert rows(spark, query) == expected, f"after {after} up to {up_to} of {last}"


def _step(
    spark: SparkSession,
    lake: Lake,
    table: LakeTable,
    database: str,
    name: str,
    properties: dict[str, str],
    chance: random.Random,
    is_wide: bool,
) -> None:
    nothing = [] if "sequence.field" in properties else [None]
    operation = chance.choice(["upsert", "upsert", "upsert", "delete", "compact", "reopen"])
    if operation == "compact":
        plan = plan_compaction(table).instant if chance.randrange(2) else None
        if plan is None:
            spark.sql(f"CALL lake.system.compact('{database}.{name}')")
        else:
            run_compaction(table, plan.timestamp)
        return
    if operation == "reopen":
        states = lake.states(database, name)
        if states:
            partition = chance.choice(sorted(states))
            (lake.reopen if states[partition] else lake.commit)(database, name, partition)
        return
    keys = {
        f"k{number}" if is_wide else (f"k{number}", chance.randrange(2)): number
        for number in (chance.randrange(9) for _ in range(chance.randrange(1, 9)))
    }
    given = [
        {
            "k": f"k{number}",
            "a": chance.choice([*nothing, chance.randrange(5)]),
            "b": chance.choice([*nothing, "x", "y", "é"]),
            "c": chance.choice([None, 1.5, -2.0, float("nan")]),
            "d": chance.choice([None, Decimal("1.25"), Decimal("2.00")]),
            "e": chance.choice([None, [], [1, 2]]),
            "dt": chance.randrange(2) if is_wide else key[1],
        }
        for key, number in keys.items()
    ]
    found = pa.Table.from_pylist(given, SCHEMA)
    (table.delete if operation == "delete" else table.upsert)(found)


def _plain(changes: pa.Table) -> list[list[Any]]:
    """Rows as Spark gives them by the query of `_history`."""
    found = []
    for each in changes.to_pylist():
        c = None if each["c"] is None else "NaN" if each["c"] != each["c"] else str(each["c"])
        d = None if each["d"] is None else str(each["d"])
        e = None if each["e"] is None else str(len(each["e"]))
        time = round(each["_commit_timestamp"].timestamp() * 1000)
        found.append(
            [each["k"], each["a"], each["b"], c, d, e, each["dt"], each["_change_type"], each["_commit_version"], time]
        )
    return sorted(found, key=repr)
