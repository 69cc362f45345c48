"""What becomes of definitions on Spark: what they mean is what Spark's analyser says."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.lake.layers import tpch
from tests.lake.layers.constructs import QUERIES
from tests.lake.layers.in_spark import call
from tests.spark.session import ROOT, SparkSession

pytestmark = pytest.mark.spark

TABLES = {
    "shop.t": (
        {"id": "bigint", "g": "int", "x": "int", "d": "date", "n": "int", "s": "string", "at": "timestamp"},
        ["id"],
    ),
    "shop.orders": (
        {"id": "bigint", "cust": "bigint", "amount": "bigint", "city": "string", "tags": "array<string>"},
        ["id"],
    ),
    "shop.customers": ({"id": "bigint", "name": "string", "city": "string"}, ["id"]),
    "shop.items": ({"ord": "bigint", "nr": "bigint", "price": "bigint"}, ["ord", "nr"]),
    "shop.visits": ({"cust": "bigint", "city": "string"}, None),
    "raw.log": ({"lsn": "bigint", "op": "string", "id": "bigint", "name": "string"}, ["lsn"]),
}
VIEW = "CREATE MATERIALIZED VIEW v AS {};"


@pytest.fixture(params=["4", pytest.param("3.5", marks=pytest.mark.long)], ids=["spark-4", "spark-3.5"])
def spark(request: pytest.FixtureRequest, hinting_session: Callable[[str], SparkSession]) -> SparkSession:
    return hinting_session(request.param)


def outcomes(
    spark: SparkSession,
    texts: Sequence[str],
    tables: Mapping[str, Any] = TABLES,
    function: str = "outcome",
    **options: str,
) -> list[str]:
    """What becomes of each of some definitions: how they are refreshed, or why they are refused."""
    expression = f"[{function}(spark, {tables!r}, each, **{options!r}) for each in {texts!r}]"
    found: list[str] = call(spark, "tests.lake.layers.spark_compile", expression)
    return found


PLAIN = [
    "SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS v FROM t GROUP BY g",
    "SELECT id, to_char(n, '99G999') AS v FROM t WHERE log10(n) > 3",
    "WITH a AS (SELECT id, log10(n) AS l FROM t) SELECT id FROM a WHERE l > 3",
    "SELECT id, transform(array(n, x), (each, i) -> each * i + g) AS v FROM t",
    "SELECT id, CAST(arrays_zip(array(n), array(x)) AS ARRAY<STRUCT<a: INT, b: INT>>) AS v FROM t",
    "SELECT id FROM t WHERE s IN ('O''Brien', 'x') OR s LIKE 'a' 'b''%'",
    "SELECT id, instr(s, 'a') AS i, log(n) AS a, log2(n) AS b, log(2, n) AS c, mod(n, 2) AS m, nvl(s, 'x') AS o FROM t",
    "SELECT id, date_sub(d, n) AS a, unix_date(d) AS b, to_char(n, '9') || substr(s, 1, 2) AS c FROM t",
    "SELECT id, timestampdiff(DAY, at, at) AS a, dateadd(day, 1, d) AS b, date_diff(d, d) AS c FROM t",
    "SELECT id, struct(n, S) AS a, struct(n + 1, upper(s)) AS b FROM t",
    "SELECT id, struct(struct(n, S).S, struct(n).n AS Foo) AS c FROM t",
    "SELECT id, named_struct('A', n, 'b', s) AS a, to_json(struct(n, S)) AS b FROM t",
    "SELECT TO_CHAR(n, '9') AS m, max(struct(at, S)).s AS s FROM t GROUP BY to_char(n, '9')",
    "SELECT id, n + 1 AS a, a + 1 AS b, a * a AS c FROM t WHERE x > 1",
    "SELECT g, sum(x) AS a, a + 1 AS b FROM t GROUP BY g",
    "SELECT g, sort_array(array_agg(x)) AS a, approx_percentile(x, 0.5) AS p FROM t GROUP BY g",
    "SELECT id, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) OVER (PARTITION BY g) AS v FROM t",
    "SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FILTER (WHERE n > 1) AS v FROM t GROUP BY g",
    "SELECT g, max(log10(n)) AS v FROM t GROUP BY g HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY x) > 1",
]
"""Functions and literals that other parsers take for something else."""


def test_functions_and_literals_of_sparks(spark: SparkSession) -> None:
    found = dict(zip(PLAIN, outcomes(spark, [VIEW.format(each) for each in PLAIN]), strict=True))
    assert not {query: why for query, why in found.items() if why not in ("v incremental", "v by group")}


@pytest.mark.long
def test_definitions_of_other_kinds(spark: SparkSession) -> None:
    """Temporary views, flows that append, logs, expectations and definitions in Python."""
    flow = "CREATE STREAMING TABLE e AS SELECT id FROM STREAM(t); CREATE FLOW f AS INSERT INTO e BY NAME {};"
    log = "CREATE STREAMING TABLE c; CREATE FLOW f AS AUTO CDC INTO c FROM raw.log KEYS (id) {} SEQUENCE BY {};"
    expect = (
        "CREATE MATERIALIZED VIEW v (CONSTRAINT a EXPECT ({}) ON VIOLATION {}) PARTITIONED BY (g) AS SELECT * FROM t;"
    )
    right = {
        "CREATE TEMPORARY VIEW w AS SELECT id, log10(n) AS l FROM t;" + VIEW.format("SELECT id FROM w WHERE l > 3"): (
            "v incremental"
        ),
        "CREATE TEMPORARY VIEW w AS SELECT id, n FROM shop.t -- with a remark\n;"
        + VIEW.format("SELECT w.id, shop.t.s FROM w JOIN shop.t ON w.id = t.id"): "v incremental",
        flow.format("WITH t AS (SELECT id FROM STREAM shop.t) SELECT id FROM t"): "e incremental",
        log.format("APPLY AS DELETE WHEN op = 'D'", "struct(lsn, op)"): "c by group",
        expect.format("n > 3 -- not less\n", "DROP ROW"): "v incremental",
        expect.format("log10(n) < 3", "QUARANTINE ROW"): "v incremental, v_quarantine incremental",
        VIEW.format("SELECT window.end AS till, sum(x) AS s FROM t GROUP BY window(at, '1 hour')"): "v by group",
    }
    assert dict(zip(right, outcomes(spark, [*right]), strict=True)) == right
    wrong = {
        expect.format("count(n) > 3", "DROP ROW"): "it has no aggregates and subqueries",
        expect.format("n IN (SELECT cust FROM visits)", "DROP ROW"): "it has no aggregates and subqueries",
        expect.format("at < now()", "DROP ROW"): "now() has another value",
        expect.format("no_such > 1", "DROP ROW"): "no_such",
        flow.format("SELECT id AS other FROM STREAM t"): "not all of its flows have a column id",
        log.format("", "no_such"): "no_such",
    }
    for (text, why), found in zip(wrong.items(), outcomes(spark, [*wrong]), strict=True):
        assert why in found, (text, found)
    python = "from pyspark import pipelines as dp\n@dp.materialized_view\ndef v():\n    return spark.sql({!r})"
    texts = [python.format(each) for each in ("SELECT log10(n) AS l FROM t", "SELECT id, 'a\\'b' AS s FROM t")]
    assert outcomes(spark, texts, file="a.py") == ["v incremental"] * 2


def test_projects_of_this_repository_are_accepted(spark: SparkSession) -> None:
    tables = {
        "ods.orders": (
            {"id": "bigint", "customer": "bigint", "product": "bigint", "at": "timestamp", "amount": "double"},
            ["id"],
        ),
        "ods.customers": ({"id": "bigint", "name": "string", "city": "string"}, ["id"]),
        "ods.products": ({"id": "bigint", "category": "string"}, ["id"]),
        "ods.customers_log": (
            {"lsn": "bigint", "op": "string", "id": "bigint", "name": "string", "city": "string"},
            ["lsn"],
        ),
    }
    found = outcomes(
        spark, [str(ROOT / each) for each in ("examples/layers", "demo/warehouse")], tables, function="of_project"
    )
    assert found == [
        "customers by group, orders incremental, revenue by group, best_cities by group",
        "order_lines incremental, revenue by group",
    ]


UNSTORED = {
    "SELECT id, NULL AS v FROM t": "the column v is NULL without a type",
    "SELECT id, at - at AS v FROM t": "tables of layers have no interval: CAST it",
    "SELECT id, array(CAST(at AS TIMESTAMP_NTZ)) AS v FROM t": "tables of layers have no timestamp_ntz: CAST it",
    "SELECT id, make_interval(n) AS v FROM t": "tables of layers have no interval: CAST it",
    "SELECT id, arrays_zip(array(n), array(x)) AS v FROM t": "give its field 0 a name of letters",
    "SELECT id, named_struct('a b', n) AS v FROM t": "give its field a b a name of letters",
    "SELECT id, named_struct('2a', CAST(n AS DECIMAL(10, 2)), '_', d) AS v FROM t": "v incremental",
    "SELECT id, named_struct('interval', n, 'time', d, 'variant', s) AS v FROM t": "v incremental",
}
"""Columns of types that tables of the metastore can't have, and what is said of them."""


def test_columns_that_no_table_has(spark: SparkSession) -> None:
    found = outcomes(spark, [VIEW.format(each) for each in UNSTORED])
    for (query, expected), why in zip(UNSTORED.items(), found, strict=True):
        assert expected in why, query
    if spark.line == "4":
        texts = ["parse_json(s)", "s COLLATE UTF8_LCASE", "TIME'10:00:00'"]
        for why in outcomes(spark, [VIEW.format(f"SELECT id, {each} AS v FROM t") for each in texts]):
            assert "tables of layers have no " in why


ACCEPTED = [
    "SELECT o.id, i.nr FROM orders o, customers c CROSS JOIN (SELECT * FROM items) i WHERE o.cust = c.id",
    "SELECT id, city, name FROM customers RIGHT JOIN (SELECT id, amount FROM orders) o USING (id)",
    "SELECT /*+ BROADCAST(c) */ o.id, c.name FROM orders o JOIN customers c ON o.cust = c.id",
    "SELECT g + 1 AS a, a + 1 AS b FROM t",
    "SELECT upper(s) AS s, count(*) AS n FROM t GROUP BY s",
    "SELECT shop.t.id, T.s FROM shop.t WHERE t.x > 1.50 AND s LIKE 'a\\\\_%' OR s RLIKE r'^\\d+$'",
    "WITH t AS (SELECT id, s FROM t WHERE s = 'a') SELECT id, s FROM t",
    "SELECT id, x, last_value(x) IGNORE NULLS OVER (PARTITION BY g ORDER BY id) AS l FROM t",
    "SELECT id, TRY_CAST(s AS INT) AS i, d + INTERVAL '1' MONTH AS m, s || '-' || x AS c, x DIV 2 AS h FROM t",
]


@pytest.mark.long
def test_what_means_the_same_is_accepted(spark: SparkSession) -> None:
    some = ("commas", "using grouped", "union", "having", "global left", "latest", "cte twice", "whole within")
    queries = [*ACCEPTED, *(QUERIES[name] for name in some)]
    found = dict(zip(queries, outcomes(spark, [VIEW.format(each) for each in queries]), strict=True))
    assert not {query: why for query, why in found.items() if not why.startswith("v ")}


def test_lists_of_tables_and_subqueries(spark: SparkSession) -> None:
    tables = {f"shop.{name}": described for name, described in tpch.TABLES.items()}
    texts = [VIEW.format(query) for query, _ in tpch.QUERIES.values()]
    found = dict(zip(tpch.QUERIES, outcomes(spark, texts, tables), strict=True))
    assert found == {name: f"v {kind}" for name, (_, kind) in tpch.QUERIES.items()}


TYPED = {
    "shop.a": ({"id": "string", "t": "string", "v": "int", "p": "decimal(10,2)", "f": "float", "d": "date"}, ["id"]),
    "shop.b": ({"k": "bigint", "i": "smallint", "p": "decimal(38,10)", "f": "double", "at": "timestamp"}, ["k"]),
}
JOINS = ["b.k = a.id", "b.f = a.v", "b.p = a.v", "b.p = a.p", "b.f = a.f AND b.k = a.id", "b.at = a.d", "b.at = a.t"]


@pytest.mark.long
def test_joins_of_columns_whose_types_differ(spark: SparkSession) -> None:
    """Rows are matched by what Spark's casts make of them."""
    texts = [VIEW.format(f"SELECT b.k, a.id FROM b JOIN a ON {each}") for each in JOINS]
    found = dict(zip(JOINS, outcomes(spark, texts, TYPED), strict=True))
    assert found == dict.fromkeys(JOINS, "v incremental")
    strict = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('refresh_policy' = 'incremental_strict') AS {};"
    [why, *others] = outcomes(
        spark,
        [
            strict.format("SELECT b.k FROM b JOIN a ON b.k < a.v"),
            VIEW.format("SELECT id, explode(split(t, ',')) AS tag FROM a"),
            VIEW.format("SELECT id, posexplode_outer(split(t, ',')) AS (place, tag) FROM a"),
            VIEW.format("SELECT x.id, x.u FROM (SELECT id, stack(2, 'x', t) AS u FROM a) x JOIN b ON b.k = x.u"),
        ],
        TYPED,
    )
    assert "a join without equal columns compares each row with each" in why
    assert others == ["v incremental", "v incremental", "v full"]
