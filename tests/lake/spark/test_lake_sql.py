"""SQL over lake tables as of one moment."""

from collections.abc import Callable
from typing import Any

import pytest

from lake.client.lake_types import Moment
from lake.tables.lake import LakeTable
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkError, SparkSession


@pytest.fixture(scope="module", params=["4", pytest.param("3.5", marks=pytest.mark.long)], ids=["spark-4", "spark-3.5"])
def spark(request: pytest.FixtureRequest, hinting_session: Callable[[str], SparkSession]) -> SparkSession:
    return hinting_session(request.param)


def query(lake: Lake, text: str, **options: Any) -> list[Any]:
    return lake.run(
        "from lake.spark import sql\n"
        f"result = sorted([list(row) for row in sql(spark, {text!r}, **{options!r}).collect()])"
    )


@pytest.fixture
def tables(lake: Lake) -> list[LakeTable]:
    """A keyed table `people`, a lake table `visits`, and a table `plain` of Spark's alone."""
    people = lake.table("people", "id BIGINT, name STRING")
    lake.spark.sql(f"ALTER TABLE {people.name} SET TBLPROPERTIES ('primary-key' = 'id')")
    visits = lake.table("visits", "person BIGINT, place STRING")
    plain = lake.table("plain", "id BIGINT, city STRING")
    lake.spark.sql(f"INSERT INTO {plain.name} VALUES (1, 'Oslo'), (2, 'Bergen')")
    lake.run(
        f"""
people = spark.createDataFrame([(1, "ada"), (2, "bo")], "id bigint, name string")
visits = spark.createDataFrame([(1, "x"), (2, "y")], "person bigint, place string")
write(people, {people.name!r}, operation="upsert")
write(visits, {visits.name!r})
write(people.where("id = 1").selectExpr("id", "'Ada' AS name"), {people.name!r}, operation="upsert")
write(visits.where("person = 1").selectExpr("person", "'z' AS place"), {visits.name!r})
"""
    )
    return [people, visits, plain]


def test_all_tables_are_read_as_of_one_moment(lake: Lake, tables: list[LakeTable]) -> None:
    people, visits, plain = (each.name for each in tables)
    joined = f"SELECT name, place, city FROM {people} JOIN {visits} v ON id = v.person JOIN {plain} USING (id)"
    now = [["Ada", "x", "Oslo"], ["Ada", "z", "Oslo"], ["bo", "y", "Bergen"]]
    assert query(lake, joined) == now
    instants = sorted(
        (each for table in tables[:2] for each in table.instants(states=["completed"])),
        key=lambda each: each.moment or 0,
    )
    at = [f"Moment({each.moment})" for each in instants]
    rows = f"sorted(list(row) for row in sql(spark, {joined!r}, as_of=each).collect())"
    run = f"from lake.spark import sql\nresult = [{rows}"
    then = lake.run(f"{run} for each in [{', '.join(at)}]]")
    assert then == [
        [],
        [["ada", "x", "Oslo"], ["bo", "y", "Bergen"]],
        [["Ada", "x", "Oslo"], ["bo", "y", "Bergen"]],
        now,
    ]
    time = instants[1].changed_at
    found = lake.run(f"{run} for each in [datetime.fromisoformat({time.isoformat()!r})]]")
    assert found == [then[1]]
    assert Moment(instants[-1].moment or 0).number > 0


@pytest.mark.long
def test_names_are_found_wherever_they_are(lake: Lake, tables: list[LakeTable]) -> None:
    people, visits, _ = (each.name for each in tables)
    lake.run("spark.range(3).createOrReplaceTempView('seen')")
    for text, expected in [
        (f"SELECT {people}.name FROM {people} WHERE {people}.id = 1", [["Ada"]]),
        (
            f"SELECT people.name FROM `{lake.database}`.`people` WHERE EXISTS"
            f" (SELECT 1 FROM {visits} WHERE place = 'y') AND id = 2",
            [["bo"]],
        ),
        (
            f"WITH people AS (SELECT * FROM {people} WHERE id = 1), p AS (SELECT * FROM people) SELECT name FROM p",
            [["Ada"]],
        ),
        (f"SELECT count(*) FROM (SELECT id FROM {people} UNION ALL SELECT id FROM seen) all_of_them", [[5]]),
        (f"SELECT '{people}', max(id) AS `from {people}` FROM {people} -- {people}", [[people, 2]]),
        ("SELECT 1", [[1]]),
        (f"SELECT id FROM spark_catalog.{people} TABLESAMPLE (100 PERCENT) AS p", [[1], [2]]),
        (
            f"SELECT one.id FROM {people} one, {people} LATERAL VIEW OUTER explode(array(1)) e AS x"
            " WHERE people.id = one.id AND one.id = 2",
            [[2]],
        ),
    ]:
        assert query(lake, text) == expected, text
    lake.spark.sql(f"USE {lake.database}")
    assert query(lake, "SELECT name FROM people WHERE people.id = 1") == [["Ada"]]
    lake.run("spark.catalog.dropTempView('seen')")  # the session is other tests', too


def test_views_are_read_as_of_the_moment_too(lake: Lake, tables: list[LakeTable]) -> None:
    people, visits, _ = tables
    lake.spark.sql(
        f"CREATE VIEW {lake.database}.names AS SELECT name FROM {people.name} JOIN {visits.name} ON id = person"
    )
    first = min(each.moment or 0 for each in people.instants(states=["completed"]))
    both = sorted(each.moment or 0 for each in visits.instants(states=["completed"]))
    found = lake.run(f"""
from lake.spark import sql
text = "SELECT * FROM {lake.database}.names WHERE name IN (SELECT name FROM {people.name})"
result = [sorted(row[0] for row in sql(spark, text, as_of=Moment(each)).collect()) for each in ({first}, {both[0]})]
""")
    assert found == [[], ["ada", "bo"]]


@pytest.mark.long
def test_a_result_is_of_its_moment_for_good(lake: Lake, tables: list[LakeTable]) -> None:
    """Also where it has become a view, which Spark analyses again, and whatever other threads read meanwhile."""
    people, visits, _ = tables
    text = f"SELECT name, place FROM {people.name} JOIN {visits.name} ON id = person WHERE id = 1"
    first = max(min(each.moment or 0 for each in table.instants(states=["completed"])) for table in (people, visits))
    found = lake.run(f"""
from concurrent.futures import ThreadPoolExecutor
from lake.spark import sql
def rows(frame):
    return sorted(list(row) for row in frame.collect())
then, now = sql(spark, {text!r}, as_of=Moment({first})), sql(spark, {text!r})
then.createOrReplaceTempView("of_then")
write(spark.createDataFrame([(1, "last")], "id bigint, name string"), {people.name!r}, operation="upsert")
write(spark.createDataFrame([(1, "last")], "person bigint, place string"), {visits.name!r}, operation="overwrite")
result = [rows(then), rows(spark.table("of_then")), rows(sql(spark, "SELECT * FROM of_then")), rows(now)]
spark.catalog.dropTempView("of_then")
with ThreadPoolExecutor(4) as pool:
    moments = [Moment({first}), None] * 4
    several = list(pool.map(lambda each: rows(sql(spark, {text!r}, as_of=each)), moments))
result += [several[0::2], several[1::2]]
""")
    then, latest = [["ada", "x"]], [["last", "last"]]
    assert found == [then, then, then, [["Ada", "x"], ["Ada", "z"]], [then] * 4, [latest] * 4]


def test_a_cached_table_is_not_taken_for_that_of_the_moment(lake: Lake, tables: list[LakeTable]) -> None:
    people = tables[0]
    first = min(each.moment or 0 for each in people.instants(states=["completed"]))
    code = f"result = [row[0] for row in sql(spark, 'SELECT name FROM {people.name}', as_of=Moment({first})).collect()]"
    lake.spark.sql(f"CACHE TABLE {people.name}")
    try:
        if lake.spark.line == "4":  # Spark puts the relation that it has kept in the place of the table
            with pytest.raises(SparkError, match="UNCACHE TABLE it first"):
                lake.run(f"from lake.spark import sql\n{code}")
        else:
            assert sorted(lake.run(f"from lake.spark import sql\n{code}")) == ["ada", "bo"]
    finally:
        lake.spark.sql(f"UNCACHE TABLE {people.name}")


def test_uncommitted_partitions_are_seen_if_wanted(lake: Lake) -> None:
    by_hand = {"partition.commit.mode": "manual"}
    keyed = lake.table("k", "id BIGINT, dt STRING", "dt", **{"primary-key": "id,dt"}, **by_hand)
    plain = lake.table("p", "id BIGINT, dt STRING", "dt", **by_hand)
    lake.write(keyed, "rows_of([1]).drop('name')", operation="upsert")
    lake.write(plain, "rows_of([2]).drop('name')")
    text = f"SELECT id FROM {keyed.name} UNION ALL SELECT id FROM {plain.name}"
    assert query(lake, text) == []
    assert query(lake, text, include_uncommitted=True) == [[1], [2]]


def test_what_cannot_be_read_any_more(lake: Lake, tables: list[LakeTable]) -> None:
    visits = tables[1]
    first = min(each.moment or 0 for each in visits.instants(states=["completed"]))
    lake.run(f"""
for each in range(2):
    write(spark.createDataFrame([(1, "x")], "person bigint, place string"), {visits.name!r}, operation="overwrite")
""")
    visits.clean(visits.plan_clean(keep_commits=1))
    with pytest.raises(SparkError, match=r"SnapshotGone: .*the oldest that can be read is"):
        lake.run(f"from lake.spark import sql\nsql(spark, 'SELECT * FROM {visits.name}', as_of=Moment({first}))")


@pytest.mark.long
def test_what_is_no_query_of_one_moment_is_refused(lake: Lake, tables: list[LakeTable]) -> None:
    people = tables[0].name
    for text, options, message in [
        (f"SELECT * FROM {people}", {"as_of": 1}, "is of one table: give a Moment or a time"),
        (f"SELECT * FROM {people}", {"as_of": "20260101000000000"}, "is of one table"),
        (f"INSERT INTO {people} SELECT 1, 'a'", {}, "sql takes one query"),
        (f"WITH a AS (SELECT 1L id, 'a' name) INSERT INTO {people} SELECT * FROM a", {}, "sql takes one query"),
        (f"EXPLAIN SELECT * FROM {people}", {}, "sql takes one query"),
        ("SELECT 1; SELECT 2", {}, "PARSE_SYNTAX_ERROR"),
        ("SELECT FROM WHERE", {}, "PARSE_SYNTAX_ERROR|UNRESOLVED_COLUMN"),
        (f"SELECT * FROM {people} VERSION AS OF 1", {}, "say as_of="),
        (f"SELECT * FROM {people}", {"uri": "thrift://elsewhere:9083"}, "of the session's metastore"),
        ("SELECT * FROM nowhere.nothing", {}, "TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND"),
    ]:
        with pytest.raises(SparkError, match=message):
            query(lake, text, **options)
