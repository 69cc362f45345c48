"""Keyed tables by plain SQL: a SELECT sees the rows of the timeline's latest snapshot, or of another."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.lake import Lake
from tests.support.long_runs import share_of

WRITING = "from lake.spark import read, write, plan_compaction, run_plan\n"


def write(spark: SparkSession, table: str, columns: str, rows: list[tuple[Any, ...]], **options: Any) -> str:
    """Writes rows and returns the instant's timestamp."""
    options = {"operation": "upsert", **options}
    return str(
        spark.python(
            f"{WRITING}rows = spark.createDataFrame({rows!r}, {columns!r})\n"
            f"result = write(rows, {table!r}, **{options!r}).instant.timestamp"
        )
    )


def rows(spark: SparkSession, query: str) -> list[list[Any]]:
    return sorted((list(row) for row in spark.sql(query)), key=repr)


def merged(spark: SparkSession, table: str, **options: Any) -> list[list[Any]]:
    """The rows as the Arrow reader gives them, with what SQL doesn't go through."""
    code = f"{WRITING}result = [list(row) for row in read(spark, {table!r}, **{options!r}).collect()]"
    return sorted(spark.python(code), key=repr)


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def customers(request: pytest.FixtureRequest, spark: SparkSession, database: str) -> str:
    """A table whose row 1 was updated, 2 deleted, and 3 left alone."""
    table = f"{database}.c"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, Name STRING) USING parquet "
        f"TBLPROPERTIES ('primary-key' = 'id', 'table-type' = '{request.param}')"
    )
    columns = "id bigint, name string"
    write(spark, table, columns, [(1, "a"), (2, "b"), (3, "c")])
    write(spark, table, columns, [(1, "A"), (4, "d")])
    write(spark, table, "id bigint", [(2,)], operation="delete")
    return table


def test_latest_rows(spark: SparkSession, customers: str) -> None:
    assert rows(spark, f"SELECT * FROM {customers}") == [[1, "A"], [3, "c"], [4, "d"]]
    assert rows(spark, f"SELECT name FROM {customers} WHERE id = 1") == [["A"]]
    assert rows(spark, f"SELECT count(*) FROM {customers}") == [[3]]
    assert rows(spark, f"SELECT count(*) FROM {customers} WHERE 7 IN (id, 7L)") == [[3]]
    assert rows(spark, f"SELECT a.id FROM {customers} a JOIN {customers} b ON a.id = b.id + 1") == [[4]]
    assert rows(spark, f"SELECT max(id), min(name) FROM (SELECT * FROM {customers} LIMIT 10)") == [[4, "A"]]


def test_earlier_rows(spark: SparkSession, customers: str) -> None:
    instant = spark.python(
        f"from lake.spark.session_client import lake_table\n"
        f"result = [each.timestamp for each in lake_table(spark, {customers!r}, None).instants(states=['completed'])]"
    )
    first = [[1, "a"], [2, "b"], [3, "c"]]
    assert rows(spark, f"SELECT * FROM {customers} VERSION AS OF 1") == first
    assert rows(spark, f"SELECT * FROM {customers} VERSION AS OF '{min(instant)}'") == first
    assert rows(spark, f"SELECT * FROM {customers} VERSION AS OF 2 WHERE id = 2") == [[2, "b"]]
    assert rows(spark, f"SELECT * FROM {customers} TIMESTAMP AS OF current_timestamp()") == [
        [1, "A"],
        [3, "c"],
        [4, "d"],
    ]
    read = f"spark.read.option('versionAsOf', '1').table({customers!r})"
    assert sorted(spark.python(f"result = [list(row) for row in {read}.collect()]")) == first
    with pytest.raises(SparkError, match="no completed instant or savepoint yesterday"):
        spark.sql(f"SELECT * FROM {customers} VERSION AS OF 'yesterday'")


def test_column_families_in_any_partition(spark: SparkSession, database: str) -> None:
    table = f"{database}.f"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, v STRING, w STRING, dt STRING) USING parquet PARTITIONED BY (dt) "
        "TBLPROPERTIES ('primary-key' = 'id,dt', 'column-families' = 'one:w')"
    )
    partition = '\u00e9 \U0001f600 "quoted" \\ %41'
    write(spark, table, "id bigint, v string, w string, dt string", [(1, "a", "b", partition)])
    assert rows(spark, f"SELECT * FROM {table}") == [[1, "a", "b", partition]]


@pytest.mark.long
def test_views_see_later_writes(spark: SparkSession, customers: str) -> None:
    spark.sql(f"CREATE VIEW {customers}_view AS SELECT id FROM {customers}")
    write(spark, customers, "id bigint, name string", [(9, "z")])
    assert rows(spark, f"SELECT * FROM {customers}_view") == [[1], [3], [4], [9]]
    assert rows(spark, f"SELECT id FROM {customers} WHERE id IN (SELECT max(id) FROM {customers}_view)") == [[9]]


def test_columns_that_were_renamed_dropped_or_added_again(spark: SparkSession, customers: str, lake: Lake) -> None:
    database, _, name = customers.partition(".")
    lake.alter_columns(database, name, "id:bigint", "label:string")
    spark.sql(f"ALTER TABLE {customers} ADD COLUMNS (name STRING, n INT)")
    assert rows(spark, f"SELECT * FROM {customers}") == [
        [1, "A", None, None],
        [3, "c", None, None],
        [4, "d", None, None],
    ]
    write(spark, customers, "id bigint, label string, name string, n int", [(4, "D", "x", 4), (5, "e", "c", 5)])
    lake.alter_columns(database, name, "id:bigint", "label:string", "name:string")
    found = [[1, "A", None], [3, "c", None], [4, "D", "x"], [5, "e", "c"]]
    assert rows(spark, f"SELECT * FROM {customers}") == merged(spark, customers) == found
    assert rows(spark, f"SELECT id FROM {customers} WHERE name = 'c' OR label = 'c'") == [[3], [5]]
    assert rows(spark, f"SELECT id FROM {customers} WHERE name IS NULL") == [[1], [3]]
    assert rows(spark, f"SELECT name FROM {customers} WHERE id = 3") == [[None]]
    assert rows(spark, f"SELECT count(*) FROM {customers}") == [[4]]
    first = [[1, "a", None], [2, "b", None], [3, "c", None]]
    assert rows(spark, f"SELECT * FROM {customers} VERSION AS OF 1") == merged(spark, customers, as_of=1) == first


def test_definitions_are_shown_and_changed(spark: SparkSession, customers: str) -> None:
    described = {row[0]: row[1] for row in spark.sql(f"DESCRIBE EXTENDED {customers}")}
    assert described["id"] == "bigint"
    assert "primary-key=id" in described["Table Properties"]
    assert "primary-key" in spark.sql(f"SHOW CREATE TABLE {customers}")[0][0]
    assert [row[0] for row in spark.sql(f"SHOW COLUMNS IN {customers}")] == ["id", "Name"]
    spark.sql(f"ALTER TABLE {customers} ADD COLUMNS (city STRING)")
    spark.sql(f"ALTER TABLE {customers} SET TBLPROPERTIES ('note' = 'x')")
    assert rows(spark, f"SELECT * FROM {customers} WHERE id = 1") == [[1, "A", None]]
    spark.sql(f"ANALYZE TABLE {customers} COMPUTE STATISTICS")
    spark.sql(f"CREATE TABLE {customers}_like LIKE {customers}")
    spark.sql(f"DROP TABLE {customers}")
    assert [row[1] for row in spark.sql("SHOW TABLES LIKE 'c'")] == []


def test_hidden_partitions(spark: SparkSession, database: str, lake: Any) -> None:
    table = f"{database}.p"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, v STRING, dt STRING) USING parquet PARTITIONED BY (dt) "
        "TBLPROPERTIES ('primary-key' = 'id,dt', 'table-type' = 'merge-on-read')"
    )
    columns = "id bigint, v string, dt string"
    write(spark, table, columns, [(1, "a", "d1"), (2, "b", "d2")])
    write(spark, table, columns, [(1, "A", "d1")])
    lake.reopen(database, "p", "dt=d2")
    assert rows(spark, f"SELECT * FROM {table}") == [[1, "A", "d1"]]
    everything = [[1, "A", "d1"], [2, "b", "d2"]]
    assert rows(spark, f"SELECT /*+ includeUnCommit=true */ * FROM {table}") == everything
    assert rows(spark, f"SELECT * FROM {database}.`p@includeuncommit`") == everything
    assert rows(
        spark, f"SELECT /*+ includeUnCommit(true) */ dt, count(*) FROM {table} WHERE dt > 'd1' GROUP BY dt"
    ) == [["d2", 1]]
    assert [row[0] for row in spark.sql(f"SHOW PARTITIONS {table}")] == ["dt=d1"]


@pytest.mark.long
def test_tables_written_together_are_seen_together(spark: SparkSession, database: str) -> None:
    for name in ("orders", "items"):
        spark.sql(
            f"CREATE TABLE {database}.{name} (id BIGINT, n INT) USING parquet TBLPROPERTIES ('primary-key' = 'id')"
        )
    found = spark.python(
        f"""
import threading
from lake.spark import write_together
def put(n):
    rows = spark.createDataFrame([(1, n)], "id bigint, n int")
    write_together([(rows, "{database}.orders", "upsert"), (rows, "{database}.items", "upsert")])
put(0)
stopped = threading.Event()
def go_on():
    for n in range(1, 6):
        put(n)
    stopped.set()
writer = threading.Thread(target=go_on)
writer.start()
result = []
while not stopped.is_set():
    query = "SELECT o.n, i.n FROM {{0}}.orders o JOIN {{0}}.items i ON i.id = (SELECT max(id) FROM {{0}}.orders)"
    result += [list(row) for row in spark.sql(query.format("{database}")).collect()]
writer.join()
"""
    )
    assert len(found) > 3
    assert all(one == other for one, other in found)


ENGINES = {
    "deduplicate": {},
    "by sequence": {"sequence.field": "a,b"},
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "partial-update": {"merge-engine": "partial-update", "fields.a.sequence-group": "b,c", "ignore-delete": "true"},
    "removing": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "fields.a.aggregate-function": "sum",
        "fields.b.aggregate-function": "max",
        "fields.c.aggregate-function": "first_value",
        "fields.d.aggregate-function": "sum",
    },
    "aggregation of others": {
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "fields.a.aggregate-function": "min",
        "fields.b.aggregate-function": "last_value",
        "fields.c.aggregate-function": "first_non_null_value",
    },
    "families": {"table-type": "copy-on-write", "column-families": "one:c;two:d"},
}


SAMPLE = ("by sequence", "removing", "aggregation")
"""Engines of an ordinary run: the others have the rules of these."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "engine", [each if each in SAMPLE else pytest.param(each, marks=pytest.mark.long) for each in ENGINES]
)
def test_histories_read_like_the_arrow_reader(spark: SparkSession, database: str, engine: str, histories: int) -> None:
    """Random writes and compactions; after each step SQL and the Arrow reader see the same rows."""
    for number in range(histories):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        _history(spark, f"{database}.h{number}", ENGINES[engine], random.Random(seed))


@pytest.fixture(params=[1, pytest.param(share_of(300), marks=pytest.mark.long)], ids=["sample", "many"])
def histories(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def _history(spark: SparkSession, table: str, properties: dict[str, str], chance: random.Random) -> None:
    properties = {"primary-key": "k,dt", "bucket": "2", "table-type": "merge-on-read", **properties}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(
        f"CREATE TABLE {table} (k STRING, a INT, b STRING, c DOUBLE, d DECIMAL(9, 2), e ARRAY<INT>, dt INT) "
        f"USING parquet PARTITIONED BY (dt) TBLPROPERTIES ({listed})"
    )
    nothing = [] if "sequence.field" in properties else [None]
    steps = []
    for _ in range(6):
        batch = {
            (f"k{chance.randrange(9)}", chance.randrange(2)): (
                chance.choice([*nothing, chance.randrange(5)]),
                chance.choice([*nothing, "x", "y", "é"]),
                chance.choice([None, 1.5, -2.0, float("nan")]),
                chance.choice([None, "1.25", "2.00"]),
                chance.choice([None, [], [1, 2]]),
            )
            for _ in range(chance.randrange(1, 9))
        }
        given = [(key, *values, place) for (key, place), values in batch.items()]
        steps.append((chance.choice(["upsert", "upsert", "upsert", "delete", "compact"]), given))
    code = f"""
{WRITING}
found = []
for operation, given in {steps!r}:
    if operation == "compact":
        plan = plan_compaction(spark, {table!r}).instant if {properties["table-type"] == "merge-on-read"} else None
        if plan is not None:
            run_plan(spark, {table!r}, plan.timestamp)
    else:
        rows = spark.createDataFrame(given, "k string, a int, b string, c double, d string, e array<int>, dt int")
        write(rows.withColumn("d", rows.d.cast("decimal(9,2)")), {table!r}, operation=operation)
    expected = sorted(repr(row) for row in read(spark, {table!r}).select("*").collect())
    got = sorted(repr(row) for row in spark.table({table!r}).collect())
    some = sorted(repr(row) for row in read(spark, {table!r}).select("d", "dt", "b").where("dt = 1").collect())
    got_some = sorted(repr(row) for row in spark.sql("SELECT d, dt, b FROM {table} WHERE dt = 1").collect())
    found.append([expected == got and some == got_some, operation, expected, got, some, got_some])
result = [each for each in found if not each[0]]
"""
    code = code.replace("float('nan')", "nan").replace("\nfound = []", "\nnan = float('nan')\nfound = []")
    assert spark.python(code) == []


def test_what_the_metastore_knows(spark: SparkSession, customers: str) -> None:
    instants = rows(spark, f"SELECT position, state FROM {customers}.instants")
    assert instants == [[1, "completed"], [2, "completed"], [3, "completed"]]
    files = rows(spark, f"SELECT kind, rows FROM {customers}.files WHERE kind = 'base'")
    assert len(files) == 1
    assert rows(spark, f"SELECT partition, files > 0 FROM {customers}.partitions") == [["", True]]
    assert rows(spark, f"SELECT value FROM {customers}.options WHERE key = 'primary-key'") == [["id"]]
    figures = "position, instant = (SELECT max(timestamp) FROM {0}.instants) AS last, added_files > 0, added_rows"
    snapshots = rows(spark, f"SELECT {figures.format(customers)} FROM {customers}.snapshots")
    assert [each[:3] for each in snapshots] == [[1, False, True], [2, False, True], [3, True, True]]
    assert snapshots[0][3] == 3
    history = spark.sql(f"DESCRIBE HISTORY {customers.partition('.')[2]}")
    assert [each[0] for each in history] == [3, 2, 1]
    assert history == spark.sql(f"SELECT * FROM {customers}.snapshots ORDER BY position DESC")
    assert rows(spark, f"SELECT * FROM {customers}.changelogs") == []
    with pytest.raises(SparkError, match=r"(?i)cannot be found|requires? a? ?single-part"):
        spark.sql(f"SELECT * FROM {customers}.nothing")


def test_what_is_known_after_a_clean(spark: SparkSession, database: str) -> None:
    table = f"{database}.l"
    spark.sql(
        f"CREATE TABLE {table} (id INT, v INT) USING parquet TBLPROPERTIES "
        "('primary-key' = 'id', 'changelog-producer' = 'lookup', 'changelog.time-retained' = '30 d')"
    )
    for value in range(3):
        spark.sql(f"INSERT INTO {table} VALUES (1, {value})")
    spark.sql(f"CALL lake.system.clean('{table}', 1)")
    figures = "position, added_files, removed_files, added_rows, removed_rows, added_bytes > 0"
    assert rows(spark, f"SELECT {figures} FROM {table}.snapshots") == [
        [1, None, None, None, None, None],
        [2, None, None, None, None, None],
        [3, None, None, None, None, None],
        [4, 0, 0, 0, 0, False],
    ]
    changelogs = f"SELECT position, partition, bucket, rows, size > 0 FROM {table}.changelogs"
    assert rows(spark, changelogs) == [[at, "", "bucket-00000", 1 if at == 1 else 2, True] for at in (1, 2, 3)]


@pytest.mark.long
@pytest.mark.parametrize("source", ["SELECT 1L AS id, 'x' AS Name", "SELECT * FROM {0}"])
def test_save_as_table_does_not_replace_a_keyed_table(spark: SparkSession, customers: str, source: str) -> None:
    rows_before = rows(spark, f"SELECT * FROM {customers}")
    written = f"spark.sql({source.format(customers)!r}).write"
    for replace in (
        f"{written}.mode('overwrite').saveAsTable({customers!r})",
        f"{written}.mode('overwrite').format('parquet').saveAsTable({customers!r})",
    ):
        with pytest.raises(SparkError, match="saveAsTable with the mode overwrite would drop it"):
            spark.python(replace)
    for other in (
        f"{written}.saveAsTable({customers!r})",
        f"{written}To({customers!r}).createOrReplace()",
        f"{written}To({customers!r}).replace()",
    ):
        with pytest.raises(SparkError):
            spark.python(other)
    assert rows(spark, f"SELECT * FROM {customers}") == rows_before
    assert spark.properties(customers)["primary-key"] == "id"
    spark.python(f"spark.table({customers!r}).write.mode('overwrite').saveAsTable('{customers}_copy')")
    spark.python(f"spark.table({customers!r}).write.mode('overwrite').saveAsTable('{customers}_copy')")
    assert rows(spark, f"SELECT * FROM {customers}_copy") == rows_before


def test_directories_are_not_read_for_rows(hinting_session: Callable[[str], SparkSession]) -> None:
    spark = hinting_session("4")
    spark.sql("CREATE TABLE IF NOT EXISTS default.unread (id INT) USING parquet TBLPROPERTIES ('primary-key' = 'id')")
    code = """
other = spark.newSession()
other.conf.set("spark.sql.catalog.spark_catalog", "builtin")
result = other.sql({0!r}).collect()
"""
    for statement in ("SELECT * FROM default.unread", "INSERT OVERWRITE default.unread VALUES (1)"):
        with pytest.raises(SparkError, match=r"set spark\.sql\.catalog\.spark_catalog=lake"):
            spark.python(code.format(statement))
    spark.sql("DROP TABLE default.unread")


def test_a_table_made_again_is_another(spark: SparkSession, customers: str) -> None:
    code = f"""
rows = spark.table({customers!r})
spark.sql("DROP TABLE {customers}")
spark.sql("CREATE TABLE {customers} (id BIGINT, Name STRING) USING parquet TBLPROPERTIES ('primary-key' = 'id')")
result = rows.collect()
"""
    with pytest.raises(SparkError, match="another table"):
        spark.python(code)
    assert rows(spark, f"SELECT * FROM {customers}") == []
    assert rows(spark, f"SELECT * FROM {customers} VERSION AS OF 0") == []
    write(spark, customers, "id bigint, name string", [(9, "z")])
    [[last]] = rows(spark, f"SELECT max(position) FROM {customers}.instants")
    assert rows(spark, f"SELECT * FROM {customers} VERSION AS OF {last}") == [[9, "z"]]
    for each in range(1, last):
        with pytest.raises(SparkError, match=f"position {each} is of a table that had the name"):
            spark.sql(f"SELECT * FROM {customers} VERSION AS OF {each}")
        with pytest.raises(SparkError, match=f"position {each} is of a table that had the name"):
            spark.python(f"result = spark.read.option('versionAsOf', {each}).table({customers!r}).collect()")


def test_dataframes_keep_their_snapshot(spark: SparkSession, customers: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen_by_sql AS SELECT id FROM {customers}")
    code = f"""
{WRITING}
kept, cached = spark.table({customers!r}), spark.table({customers!r}).cache()
before = [sorted(row.id for row in each.collect()) for each in (kept, cached)]
unused = spark.table({customers!r})
write(spark.createDataFrame([(9, "z")], "id bigint, name string"), {customers!r}, operation="upsert")
result = [before, [sorted(row.id for row in each.collect()) for each in (kept, cached)], unused.count()]
cached.unpersist()
"""
    before, after, unused = spark.python(code)
    assert before == after == [[1, 3, 4], [1, 3, 4]]
    assert unused == 3
    assert rows(spark, "SELECT * FROM seen_by_sql") == [[1], [3], [4], [9]]


@pytest.mark.long
def test_conditions_on_the_key_read_its_bucket(spark: SparkSession, database: str) -> None:
    table = f"{database}.k"
    spark.sql(
        f"CREATE TABLE {table} (a TINYINT, b STRING, c DATE, d TIMESTAMP, e BIGINT, v INT) USING parquet "
        "TBLPROPERTIES ('primary-key' = 'a,b,c,d,e', 'bucket' = '40', 'table-type' = 'merge-on-read')"
    )
    code = f"""
import re
{WRITING}
for value in (1, 2):
    rows = spark.sql(f'''SELECT cast(id - 9 AS TINYINT) a, concat("ké", id) b, date"1969-12-30" + cast(id AS INT) c,
        timestamp"1969-12-31 23:59:59.9" + make_interval(0, 0, 0, 0, 0, 0, id) d, -id * id e, {{value}} v
        FROM range(20)''')
    write(rows, {table!r}, operation="upsert")
result = []
for a, b, c, d, e, _ in spark.table({table!r}).collect():
    key = f"a = {{a}} AND b = '{{b}}' AND date'{{c}}' = c AND d = timestamp'{{d}}' AND e IN ({{e}}, 77)"
    found = spark.sql("SELECT v FROM {table} WHERE " + key)
    plan = found._jdf.queryExecution().executedPlan().toString()
    result.append([[each.v for each in found.collect()], re.findall(r"buckets: (\\d+)", plan) in (["1"], ["2"])])
"""
    assert spark.python(code) == [[[2], True]] * 20
