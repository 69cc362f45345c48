"""Which tables the hint includeUnCommit holds for, in every form and place it can have."""

from collections.abc import Iterator
from string import Template
from typing import Any

import pytest

from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.conftest import LAYOUTS

#: Sums of `id`: of the ready partition, and of all.
READY, ALL = 3, 13

ON, OFF = "/*+ includeUnCommit(true) */", "/*+ includeUnCommit(false) */"


@pytest.fixture(autouse=True)
def current(spark: SparkSession, readable: str) -> Iterator[str]:
    spark.sql(f"USE {readable}")
    yield readable
    spark.sql("USE default")


def answer(spark: SparkSession, database: str, query: str, table: str = "source") -> Any:
    """What a query answers in which $t is the table, $db its database, $on and $off the hint."""
    return spark.sql(Template(query).substitute(t=table, db=database, on=ON, off=OFF, long="x" * 100_000))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("hint", "seen"),
    [
        ("", READY),
        ("/*+ includeUnCommit(true) */", ALL),
        ("/*+ includeUnCommit */", ALL),
        ("/*+ includeUnCommit=true */", ALL),
        ("/*+ INCLUDEUNCOMMIT ( TRUE ) */", ALL),
        ("/*+ includeuncommit = TRUE */", ALL),
        ("/*+\n includeUnCommit\n=\ntrue\n*/", ALL),
        ("/*+ includeUnCommit(false) */", READY),
        ("/*+ includeUnCommit=false */", READY),
        ("/*+ someHint(t), includeUnCommit=true, REPARTITION(2) */", ALL),
        ("/*+ someHint(t) */ /*+ includeUnCommit */", ALL),
    ],
)
def test_forms(spark: SparkSession, hint: str, seen: int) -> None:
    assert spark.value(f"SELECT {hint} sum(id) FROM source") == seen


#: What doesn't depend on how a table is stored.
SCOPES = {
    "the table's name": ("SELECT $on sum($t.id), sum($db.$t.id), sum(spark_catalog.$db.$t.id) FROM $t", [[13, 13, 13]]),
    "an alias": ("SELECT $on sum(a.id) FROM $db.$t a", [[13]]),
    "a partition's condition": ("SELECT $on sum(id) FROM $t WHERE $t.dt = 'open'", [[10]]),
    "both sides of a join": (
        "SELECT $on a.id, b.id FROM $t a JOIN $t b ON a.id = b.id ORDER BY a.id DESC LIMIT 1",
        [[10, 10]],
    ),
    "one side of a join": (
        "SELECT sum(a.id), sum(b.id) FROM $t a RIGHT JOIN (SELECT $on * FROM $t) b ON a.id = b.id",
        [[3, 13]],
    ),
    "with a join's hint": (
        "SELECT /*+ BROADCAST(b), includeUnCommit */ count(*) FROM $t a JOIN $t b USING (id)",
        [[3]],
    ),
    "a join's hint in a subquery": (
        "SELECT $on count(*) FROM $t WHERE id IN (SELECT /*+ BROADCAST(x) */ x.id FROM $t x JOIN $t y ON x.id = y.id)",
        [[3]],
    ),
    "distinct": ("SELECT $on DISTINCT v FROM $t ORDER BY v", [["o"], ["r"]]),
    "group and having": ("SELECT $on v FROM $t GROUP BY v HAVING max(id) > 5", [["o"]]),
    "order by what is not selected": ("SELECT $on v FROM $t ORDER BY id DESC LIMIT 1", [["o"]]),
    "order by an aggregate": ("SELECT $on v, count(*) FROM $t GROUP BY v ORDER BY max(id) DESC", [["o", 1], ["r", 2]]),
    "a window": ("SELECT $on sum(id) OVER () FROM $t LIMIT 1", [[13]]),
    "a pivot": ("SELECT $on * FROM (SELECT id FROM $t) PIVOT (sum(id) FOR id IN (1, 10))", [[1, 10]]),
    "FROM first": ("FROM $t SELECT $on sum(id)", [[13]]),
    "a name that is computed": ("SELECT $on sum(id) FROM IDENTIFIER('$db.' || '$t')", [[13]]),
    "a subquery in FROM": ("SELECT $on x.s FROM (SELECT sum(id) s FROM $t) x", [[13]]),
    "a subquery as a value": ("SELECT $on (SELECT sum(id) FROM $t)", [[13]]),
    "IN": ("SELECT $on count(*) FROM $t WHERE id IN (SELECT id FROM $t b WHERE b.v = $t.v)", [[3]]),
    "NOT EXISTS": ("SELECT $on count(*) FROM $t a WHERE NOT EXISTS (SELECT 1 FROM $t b WHERE b.id = a.id)", [[0]]),
    "LATERAL": ("SELECT $on sum(l.s) FROM $t a, LATERAL (SELECT b.id s FROM $t b WHERE b.id = a.id) l", [[13]]),
    "within a subquery only": (
        "SELECT (SELECT $on sum(id) FROM $t), (SELECT sum(id) FROM $t), sum(id) FROM $t",
        [[13, 3, 3]],
    ),
    "within EXISTS only": (
        "SELECT count(*) FROM $t a WHERE EXISTS (SELECT $on 1 FROM $t b WHERE b.id = a.id * 5)",
        [[1]],
    ),
    "off within on": ("SELECT $on x.s, (SELECT sum(id) FROM $t) FROM (SELECT $off sum(id) s FROM $t) x", [[3, 13]]),
    "off within on, as a value": ("SELECT $on (SELECT $off sum(id) FROM $t), (SELECT sum(id) FROM $t)", [[3, 13]]),
    "on within off": ("SELECT $off (SELECT $on sum(id) FROM $t), sum(id) FROM $t", [[13, 3]]),
    "one part of a union": ("SELECT $on sum(id) FROM $t UNION ALL SELECT sum(id) FROM $t", [[13], [3]]),
    "around a union": ("SELECT $on * FROM (SELECT sum(id) FROM $t UNION ALL SELECT sum(id) FROM $t)", [[13], [13]]),
    "who reads a CTE": ("WITH c AS (SELECT * FROM $t) SELECT $on sum(id) FROM c", [[13]]),
    "within a CTE": ("WITH c AS (SELECT $on * FROM $t) SELECT sum(c.id), (SELECT sum(id) FROM $t) FROM c", [[13, 3]]),
    "off within a CTE": ("WITH c AS (SELECT $off * FROM $t) SELECT $on sum(id) FROM c", [[3]]),
    "one of a CTE's readers": (
        "WITH c AS (SELECT * FROM $t) SELECT (SELECT $on sum(id) FROM c), sum(id) FROM c",
        [[13, 3]],
    ),
    "a CTE joined with itself": (
        "WITH c AS (SELECT id x FROM $t) "
        "SELECT sum(a.x), sum(b.x) FROM c a RIGHT JOIN (SELECT $on * FROM c) b ON a.x = b.x",
        [[3, 13]],
    ),
    "a CTE of a CTE": (
        "WITH c AS (SELECT * FROM $t), d AS (SELECT * FROM c) "
        "SELECT $on sum(d.id), (SELECT sum(id) FROM c), (SELECT $off sum(id) FROM d) FROM d",
        [[13, 13, 3]],
    ),
    "a CTE that reads a CTE": (
        "WITH c AS (SELECT * FROM $t), d AS (SELECT $on * FROM c) SELECT (SELECT sum(id) FROM d), sum(id) FROM c",
        [[13, 3]],
    ),
    "a CTE that is computed once": (
        "WITH c AS (SELECT id, rand() r FROM $t) SELECT $on sum(a.id), sum(b.id) FROM c a JOIN c b ON a.r = b.r",
        [[13, 13]],
    ),
    "a CTE in a subquery": ("SELECT $on * FROM (WITH c AS (SELECT sum(id) FROM $t) SELECT * FROM c)", [[13]]),
    "no table at all": ("SELECT $on id FROM VALUES (1) AS x (id)", [[1]]),
    "no table, off": ("SELECT $off id FROM range(1)", [[0]]),
    "in a string, a name and a comment": (
        "SELECT '/*+ includeUnCommit=true */' `/*+ includeUnCommit=true */` "
        "FROM $t -- /*+ includeUnCommit=true */\nLIMIT 1",
        [["/*+ includeUnCommit=true */"]],
    ),
    "after strings with quotes and backslashes": (
        r"""SELECT /*+ includeUnCommit=true */ '\'/*', "it's", r'\', length('$long'), sum(id) FROM $t""",
        [["'/*", "it's", "\\", 100_000, 13]],
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("scope", SCOPES)
def test_scopes(spark: SparkSession, readable: str, scope: str) -> None:
    query, expected = SCOPES[scope]
    assert answer(spark, readable, query) == expected


@pytest.mark.parametrize("table", ["hive", "serde"])
@pytest.mark.parametrize("scope", ["the table's name", "one side of a join", "one of a CTE's readers"])
def test_scopes_with_tables_of_hive(spark: SparkSession, readable: str, table: str, scope: str) -> None:
    query, expected = SCOPES[scope]
    assert answer(spark, readable, query, table) == expected


@pytest.mark.long
def test_a_recursive_cte(spark: SparkSession, readable: str) -> None:
    if spark.line == "3.5":
        pytest.skip("Spark 3.5 has none")
    query = (
        "WITH RECURSIVE r(n) AS "
        "(SELECT min(id) FROM $t UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT max(id) FROM $t)) "
        "SELECT $on max(n), (SELECT $off max(n) FROM r) FROM r"
    )
    assert answer(spark, readable, query) == [[10, 2]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT sum(id) FROM seen", READY),
        ("SELECT $on sum(seen.id) FROM seen", ALL),
        ("SELECT $on sum(id) FROM seen_with", ALL),
        ("SELECT sum(id) FROM seen_with", READY),
        ("SELECT sum(id) FROM hinted", ALL),
        ("SELECT $off sum(id) FROM hinted", ALL),
        ("SELECT (SELECT $on count(*) FROM $t) * 0 + sum(id) FROM seen", READY),
    ],
)
def test_views(spark: SparkSession, readable: str, query: str, expected: int) -> None:
    assert answer(spark, readable, query) == [[expected]]


@pytest.mark.parametrize("table", ["source", "serde"])
@pytest.mark.parametrize(
    ("definition", "query", "expected"),
    [
        ("SELECT id FROM $t", "SELECT $on sum(id) FROM temporary", ALL),
        ("SELECT id FROM $t", "SELECT sum(id) FROM temporary", READY),
        ("SELECT $on id FROM $t", "SELECT sum(id) FROM temporary", ALL),
        ("SELECT $off id FROM $t", "SELECT $on sum(id) FROM temporary", READY),
    ],
)
def test_temporary_views(
    spark: SparkSession, readable: str, table: str, definition: str, query: str, expected: int
) -> None:
    answer(spark, readable, f"CREATE OR REPLACE TEMPORARY VIEW temporary AS {definition}", table)
    assert answer(spark, readable, query, table) == [[expected]]


@pytest.mark.parametrize("table", ["source", "hive"])
@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("spark.table(t).hint('includeUnCommit')", ALL),
        ("spark.table(t).hint('INCLUDEUNCOMMIT', True)", ALL),
        ("spark.table(t).hint('includeUnCommit', 'true').where('id > 0').select('id')", ALL),
        ("spark.table(t).hint('includeUnCommit', False)", READY),
        ("spark.table(t).hint('includeUnCommit', False).hint('includeUnCommit')", READY),
        ("spark.sql(f'select {off} * from {t}').hint('includeUnCommit')", READY),
        ("spark.sql(f'select {on} * from {t}').hint('includeUnCommit', False)", ALL),
        ("spark.sql(f'with c as (select * from {t}) select * from c').hint('includeUnCommit')", ALL),
        ("spark.table(t).where(f'id in (select id from {t})').hint('includeUnCommit')", ALL),
    ],
)
def test_data_frames(spark: SparkSession, table: str, frame: str, expected: int) -> None:
    code = f"t, on, off = {table!r}, {ON!r}, {OFF!r}\nresult = {frame}.groupBy().sum('id').collect()[0][0]"
    assert spark.python(code) == expected


def test_a_frame_with_the_hint_and_one_without(spark: SparkSession) -> None:
    code = "t = spark.table('source'); h = t.hint('includeUnCommit')\n"
    joins = "t.alias('a').join(h.alias('b'), 'id'), h.join(t, h.id == t.id), h.join(t, 'id', 'left'), t.union(h)"
    assert spark.python(f"{code}result = [frame.count() for frame in ({joins})]") == [2, 2, 3, 5]


def test_a_parameter_of_the_query(spark: SparkSession) -> None:
    query = "SELECT /*+ includeUnCommit(:on) */ sum(id) FROM source WHERE id > :least"
    sums = "[spark.sql(query, args={'on': on, 'least': 0}).collect()[0][0] for on in (True, False)]"
    assert spark.python(f"query = {query!r}\nresult = {sums}") == [ALL, READY]


@pytest.mark.parametrize("table", LAYOUTS)
def test_a_cached_table_is_another(spark: SparkSession, table: str) -> None:
    spark.sql(f"CACHE TABLE {table}")
    try:
        assert spark.value(f"SELECT {ON} sum(id) FROM {table}") == ALL
    finally:
        spark.sql(f"UNCACHE TABLE {table}")
    spark.sql(f"CACHE TABLE cached AS SELECT {ON} * FROM {table}")
    try:
        assert spark.value("SELECT sum(id) FROM cached") == ALL
        assert spark.value(f"SELECT sum(id) FROM {table}") == READY
    finally:
        spark.sql("UNCACHE TABLE cached")
        spark.sql("DROP VIEW cached")


@pytest.mark.parametrize("parameters", ["maybe", "true, true", "1"])
def test_it_takes_true_or_false(spark: SparkSession, parameters: str) -> None:
    with pytest.raises(SparkError, match="AnalysisException: the hint includeUnCommit takes true or false"):
        spark.sql(f"SELECT /*+ includeUnCommit({parameters}) */ * FROM source")


def test_a_syntax_error_is_reported_as_ever(spark: SparkSession) -> None:
    with pytest.raises(SparkError, match=r"ParseException: [\s\S]*PARSE_SYNTAX_ERROR"):
        spark.sql("SELECT /*+ includeUnCommit=true */ * FORM source")


def test_an_error_that_no_method_of_a_parser_declares_is_reported_as_ever(spark: SparkSession) -> None:
    if spark.line == "3.5":
        pytest.skip("its parser declares all errors, and has no EXECUTE IMMEDIATE")
    with pytest.raises(SparkError, match=r"^AnalysisException: \[INVALID_QUERY_MIXED_QUERY_PARAMETERS"):
        spark.sql("EXECUTE IMMEDIATE 'SELECT ? + :second' USING 1 AS first, 2 AS second")


@pytest.mark.parametrize("table", LAYOUTS)
def test_the_decorated_name(spark: SparkSession, table: str) -> None:
    assert spark.value(f"SELECT sum(id) FROM `{table}@includeuncommit`") == ALL
    assert spark.value(f"SELECT {OFF} sum(x.id) FROM `{table}@includeUnCommit` x") == ALL
    assert spark.partitions(f"`{table}@includeuncommit`") == ["dt=open", "dt=ready"]
    assert spark.partitions(table) == ["dt=ready"]


def test_a_hint_costs_no_optimization(spark: SparkSession) -> None:
    """Partitions are still pruned by conditions, and no hint is left on joins, which would keep their order."""
    assert spark.directories_read(f"SELECT {ON} * FROM source WHERE dt = 'open'") == {"dt=open"}
    plan = spark.python(
        f"result = spark.sql('SELECT {ON} a.id FROM source a JOIN hive b USING (id) JOIN seen c USING (id)')"
        "._jdf.queryExecution().analyzed().toString()"
    )
    assert "Hint" not in plan
    assert plan.count("@includeuncommit") == 3
