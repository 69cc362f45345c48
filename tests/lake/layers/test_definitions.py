"""Projects and their definitions: what is read, and what is refused with its file and line."""

import re
from pathlib import Path

import pytest

from lake.layers.compiler.building import Builder, Built, Table
from lake.layers.compiler.graph import graph_of
from lake.layers.compiler.layers import how, keyed
from lake.layers.definitions.model import Expectation, Violation
from lake.layers.definitions.projects import read_project
from lake.layers.errors import BadDefinition, BadQuery
from tests.lake.layers.answers import ANSWERS
from tests.lake.layers.projects import graph, write_project

SQL = """
-- the details
CREATE OR REFRESH MATERIALIZED VIEW details (
    CONSTRAINT positive EXPECT (amount >= 0 AND coalesce(city, ';') <> ')') ON VIOLATION DROP ROW,
    CONSTRAINT known EXPECT (id IS NOT NULL)
)
  COMMENT 'orders; with cities'
  TBLPROPERTIES ('bucket' = '2', refresh_policy = 'auto')
  PARTITIONED BY (dt)
AS WITH o AS (SELECT * FROM ods.orders) SELECT o.id, amount, city, dt FROM o JOIN named c ON o.cust = c.id;

CREATE TEMPORARY VIEW named AS SELECT id, upper(city) AS city FROM Ods.Customers;

CREATE STREAMING TABLE dim.customers;
CREATE FLOW f AS AUTO CDC INTO dim.customers FROM STREAM(raw.changes) KEYS (id)
  APPLY AS DELETE WHEN op = 'D' SEQUENCE BY nr COLUMNS * EXCEPT (op, nr) STORED AS SCD TYPE 2;
"""
PYTHON = """
from pyspark import pipelines as dp

@dp.materialized_view(name="dws.revenue", comment="by city", partition_cols=["city"])
@dp.expect("some", "n > 0")
@dp.expect_or_fail("few", "n < 1000")
def revenue():
    return spark.sql("SELECT city, count(*) AS n FROM details GROUP BY city")

@dp.materialized_view
def everything():
    return spark.table("dws.revenue")
"""


def test_a_project(tmp_path: Path) -> None:
    found = graph(tmp_path, a__sql=SQL, b__py=PYTHON)
    nodes = {each.name: each for each in found.nodes}
    assert [*nodes].index("shop.details") < [*nodes].index("dws.revenue") < [*nodes].index("shop.everything")
    assert found.sources == ["ods.customers", "ods.orders", "raw.changes"]
    details = nodes["shop.details"]
    assert details.reads == {"ods.orders", "ods.customers"}
    assert details.partitions == ("dt",)
    assert details.properties == {"bucket": "2", "refresh_policy": "auto"}
    assert details.comment == "orders; with cities"
    assert details.expectations == (
        Expectation("positive", "amount >= 0 AND coalesce(city, ';') <> ')'", Violation.DROP),
        Expectation("known", "id IS NOT NULL", Violation.KEEP),
    )
    assert str(details.place) == "transformations/a.sql:3"
    revenue = nodes["dws.revenue"]
    assert [each.name for each in revenue.expectations] == ["some", "few"]
    assert revenue.expectations[1].violation is Violation.FAIL
    assert revenue.partitions == ("city",)
    flow = nodes["dim.customers"].flow
    assert flow is not None
    assert (flow.keys, flow.sequence_by, flow.deletes, flow.except_columns, flow.scd_type) == (
        ("id",),
        "nr",
        "op = 'D'",
        ("op", "nr"),
        2,
    )


def test_our_own_name_and_flows_in_python(tmp_path: Path) -> None:
    text = """
from lake import layers as dp

dp.create_streaming_table("dim", table_properties={"bucket": "3"})
dp.create_auto_cdc_flow(target="dim", source="raw.c", keys=["ID"], sequence_by="nr", apply_as_deletes="op = 'D'")
"""
    [node] = graph(tmp_path, a__py=text).nodes
    assert node.name == "shop.dim"
    assert node.properties == {"bucket": "3"}
    assert node.flow is not None
    assert node.flow.keys == ("id",)


def test_flows_that_append(tmp_path: Path) -> None:
    sql = """
CREATE STREAMING TABLE events AS SELECT id FROM STREAM(raw.a) x JOIN stream raw.b USING (id);
CREATE FLOW more AS INSERT INTO events BY NAME SELECT id FROM STREAM c;
"""
    python = """
from pyspark import pipelines as dp

@dp.table(name="seen", partition_cols=["dt"])
@dp.expect("some", "id > 0")
def _():
    return spark.readStream.table("raw.d")

@dp.append_flow(target="seen")
def others():
    return spark.sql("SELECT stream FROM raw.e stream")
"""
    nodes = {each.name: each for each in graph(tmp_path, a__sql=sql, b__py=python).nodes}
    assert nodes["shop.events"].reads == {"raw.a", "raw.b", "shop.c"}
    assert [each.normal for each in nodes["shop.events"].appends] == [
        "SELECT id FROM raw . a x JOIN raw . b USING ( id )",
        "SELECT id FROM c",
    ]
    assert nodes["shop.seen"].reads == {"raw.d", "raw.e"}
    assert nodes["shop.seen"].partitions == ("dt",)
    assert len(nodes["shop.seen"].expectations) == 1


MV = "CREATE MATERIALIZED VIEW {} AS {};\n"
BAD_SQL = {
    "twice": (MV.format("a", "SELECT 1 AS x") + "\n" + MV.format("A", "SELECT 2 AS x"), ":3: A is defined twice, at"),
    "a cycle": (
        MV.format("a", "SELECT * FROM b") + MV.format("b", "SELECT * FROM a"),
        r":[12]: tables read each other: (shop.a -> shop.b -> shop.a|shop.b -> shop.a -> shop.b)",
    ),
    "itself": (MV.format("a", "SELECT * FROM shop.a"), ":1: tables read each other"),
    "views in a circle": (
        "CREATE TEMPORARY VIEW v AS SELECT * FROM w;CREATE TEMPORARY VIEW w AS SELECT * FROM v;"
        + MV.format("a", "SELECT * FROM v"),
        ":1: temporary views read each other",
    ),
    "today": (MV.format("a", "SELECT id FROM x WHERE d > DATE ' Today'"), "'today' as a time has another value"),
    "no SQL": ("CREATE MATERIALIZED VIEW a AS SELECT FROM WHERE (", ":1: the query can't be parsed"),
    "no query": ("\nCREATE MATERIALIZED VIEW a AS INSERT INTO b VALUES (1)", ":2: expected one query"),
    "an open text": ("SELECT 'abc", ":1: it can't be read as SQL"),
    "another statement": ("SELECT 1", ":1: expected CREATE MATERIALIZED VIEW"),
    "a table": ("CREATE TABLE a AS SELECT 1", ":1: expected MATERIALIZED VIEW"),
    "columns": ("CREATE MATERIALIZED VIEW a (x INT) AS SELECT 1 AS x", "columns have the types of the query"),
    "clusters": ("CREATE MATERIALIZED VIEW a CLUSTER BY (x) AS SELECT 1 AS x", "CLUSTER BY isn't supported here"),
    "a format": ("CREATE MATERIALIZED VIEW a USING orc AS SELECT 1 AS x", "stored as Parquet"),
    "no flow": ("CREATE STREAMING TABLE a", ":1: a has no flows"),
    "no target": (
        MV.format("a", "SELECT 1 AS x") + "CREATE FLOW f AS AUTO CDC INTO b FROM c KEYS (id) SEQUENCE BY n",
        ":2: there is no streaming table or sink b",
    ),
    "no sequence": (
        "CREATE STREAMING TABLE a; CREATE FLOW f AS AUTO CDC INTO a FROM c KEYS (id)",
        "SEQUENCE BY is missing",
    ),
    "another flow": ("CREATE FLOW f AS MERGE INTO a", "expected AS INSERT INTO, or AS AUTO CDC INTO"),
    "a flow by position": ("CREATE FLOW f AS INSERT INTO a SELECT 1", "expected BY NAME: the columns of flows"),
    "a flow without a query": ("CREATE FLOW f AS INSERT INTO a BY NAME", "expected a query after BY NAME"),
    "a flow into nothing": (
        MV.format("b", "SELECT 1 AS x") + "CREATE FLOW f AS INSERT INTO a BY NAME SELECT 1 AS x",
        ":2: there is no streaming table or sink a",
    ),
    "a log and more": (
        "CREATE STREAMING TABLE a AS SELECT 1 AS id;CREATE FLOW f AS AUTO CDC INTO a FROM c KEYS (id) SEQUENCE BY n",
        ":1: a has 2 flows: one that applies a log must be the only",
    ),
    "another policy": ("CREATE MATERIALIZED VIEW a TBLPROPERTIES (refresh_policy = 'soon') AS SELECT 1 AS x", "soon"),
    "another catalog": (MV.format("a", "SELECT * FROM other.shop.x"), "is of another catalog"),
}


@pytest.mark.parametrize("name", BAD_SQL)
def test_sql_that_is_refused(tmp_path: Path, name: str) -> None:
    text, message = BAD_SQL[name]
    with pytest.raises(BadDefinition, match=rf"^transformations/a\.sql.*{message}"):
        graph(tmp_path, a__sql=text)


BAD_PYTHON = {
    "syntax": ("\n\ndef (:", ":3: it isn't Python"),
    "an error": ("\nraise ValueError('no')", ":2: ValueError: no"),
    "a sink that nothing flows into": (
        "from pyspark import pipelines as dp\ndp.create_sink('a', 'kafka')",
        ":2: a has no flows",
    ),
    "a sink without a format": (
        "from pyspark import pipelines as dp\ndp.create_sink('a', '')",
        ":2: a sink needs a format",
    ),
    "an option that is no text": (
        "from pyspark import pipelines as dp\ndp.create_sink('a', 'kafka', {'topic': 1})",
        ":2: option 'topic' of a sink must be a text",
    ),
    "a log for a sink": (
        "from pyspark import pipelines as dp\ndp.create_sink('a', 'kafka')\n"
        "dp.create_auto_cdc_flow(target='a', source='raw.c', keys=['id'], sequence_by='nr')",
        ":3: a is a sink: it takes flows that append",
    ),
    "a stream's source": (
        "from pyspark import pipelines as dp\n@dp.table\ndef a():\n    return spark.readStream.format('x')",
        ":4: spark.readStream.format isn't there",
    ),
    "an argument": (
        "from pyspark import pipelines as dp\n@dp.materialized_view(cluster_by=['a'])\ndef a(): pass",
        r":2: materialized_view\(cluster_by=…\) isn't supported",
    ),
    "a DataFrame": (
        "from pyspark import pipelines as dp\n@dp.materialized_view\ndef a():\n    return spark.range(3)",
        ":4: spark.range isn't there",
    ),
    "its methods": (
        "from pyspark import pipelines as dp\n@dp.materialized_view\ndef a():\n    return spark.table('x').where('y')",
        ":4: a definition's query is SQL",
    ),
    "nothing": ("from pyspark import pipelines as dp\n@dp.materialized_view\ndef a():\n    pass", "a returns NoneType"),
}


@pytest.mark.parametrize("name", BAD_PYTHON)
def test_python_that_is_refused(tmp_path: Path, name: str) -> None:
    text, message = BAD_PYTHON[name]
    with pytest.raises(
        BadDefinition, match=rf"^transformations/a\.py{message if message[0] == ':' else '.*' + message}"
    ):
        graph(tmp_path, a__py=text)


def test_sinks(tmp_path: Path) -> None:
    python = """
from pyspark import pipelines as dp

dp.create_sink("orders_topic", "kafka", options={"topic": "orders"})

@dp.append_flow(target="orders_topic")
def to_topic():
    return spark.readStream.table("raw.orders")

@dp.foreach_batch_sink
def mail(rows, number):
    pass

@dp.append_flow(target="mail")
def to_mail():
    return spark.sql("SELECT id FROM STREAM(raw.orders) WHERE amount > 100")
"""
    nodes = {each.name: each for each in graph(tmp_path, a__py=python).nodes}
    topic, mail = nodes["shop.orders_topic"].sink, nodes["shop.mail"].sink
    assert topic is not None
    assert (topic.format, topic.options, topic.function) == ("kafka", {"topic": "orders"}, None)
    assert mail is not None
    assert mail.function is not None
    assert nodes["shop.mail"].reads == {"raw.orders"}


def test_sparks_own_module_is_there_again(tmp_path: Path) -> None:
    pipelines = pytest.importorskip("pyspark.pipelines")
    graph(tmp_path, b__py=PYTHON.replace("details", "x"))
    from pyspark import pipelines as again

    assert again is pipelines


def test_the_active_session_is_that_of_definitions(tmp_path: Path) -> None:
    """As Spark's guide has it; Spark's own class is as before afterwards."""
    session = pytest.importorskip("pyspark.sql").SparkSession
    text = PYTHON.replace("details", "x").replace("return spark", "return SparkSession.active()")
    found = graph(tmp_path, b__py=f"from pyspark.sql import SparkSession\n{text}")
    assert [each.name for each in found.nodes] == ["dws.revenue", "shop.everything"]
    assert session.getActiveSession() is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "expected `name: …`"),
        ("name: [", "yml:1: it isn't YAML|yml:2: it isn't YAML"),
        ("name: a\nnmae: b", "there is no field nmae"),
        ("name: a\nstorage: x", "its libraries define no table"),
        ("name: a\ncatalog: other", "catalog: layers are"),
        ("name: a\nconfiguration: {a: 1}", "configuration: expected Spark's settings"),
        ("name: a\nlibraries: [{glob: {include: ../**}}]", "within the project"),
        ("name: a\nlibraries: [{file: a}]", "libraries: expected"),
        ("name: a\nlibraries: [{glob: {include: spark-pipeline.yml}}]", "end with .sql or .py"),
    ],
    ids=["empty", "no YAML", "a field", "nothing", "catalog", "configuration", "elsewhere", "library", "file"],
)
def test_specs_that_are_refused(tmp_path: Path, spec: str, message: str) -> None:
    (tmp_path / "spark-pipeline.yml").write_text(spec)
    with pytest.raises(BadDefinition, match=message):
        read_project(tmp_path)


def test_a_directory_without_a_project(tmp_path: Path) -> None:
    with pytest.raises(BadDefinition, match=re.escape(f"{tmp_path}: there is no spark-pipeline.yml")):
        read_project(tmp_path)


def test_names_of_layers_are_found_with_and_without_their_database(tmp_path: Path) -> None:
    write_project(tmp_path, {"a.sql": MV.format("a", "SELECT 1 AS x")})
    found = graph_of(read_project(tmp_path))
    assert found.node("a") is found.node("SHOP.A")
    with pytest.raises(BadDefinition, match="the project has no table b"):
        found.node("b")


TABLES = {
    "shop.o": Table("shop.o", ("id", "c", "ts"), ("id",), frozenset({"id"})),
    "shop.v": Table("shop.v", ("c", "ts"), None),
}


def built(query: str) -> Built:
    """The operators of a query, whose rows are told apart. Raises BadQuery."""
    tables = {
        name: {"columns": ", ".join(f"`{each}` bigint" for each in table.columns), "hidden": []}
        for name, table in TABLES.items()
    }
    answer = ANSWERS.read({"queries": [query], "views": {}, "database": "shop", "tables": tables, "conditions": []})
    types = answer["types"]
    return keyed(Builder(TABLES, types).built(answer), types)


NUMBER = "row_number() OVER (PARTITION BY c ORDER BY ts{})"
ANY_ORDER = {
    "a named window": "SELECT id, row_number() OVER w AS rn FROM o WINDOW w AS (PARTITION BY c ORDER BY ts)",
    "beside a subquery": f"SELECT id, {NUMBER.format('')} AS rn, (SELECT count(*) FROM v) AS n FROM o",
    "in a CTE": f"WITH t AS (SELECT id, {NUMBER.format('')} AS rn, (SELECT 1) AS n FROM o) SELECT id FROM t",
    "of a whole": "SELECT c, row_number() OVER (ORDER BY 1 + c) AS rn FROM (SELECT c FROM o EXCEPT SELECT c FROM v)",
    "LIMIT within": "SELECT id FROM o WHERE id = (SELECT id FROM o LIMIT 1)",
    "LIMIT of what is equal": "SELECT id FROM o WHERE c NOT IN (SELECT v.c FROM v WHERE v.c = o.c LIMIT 2 OFFSET 2)",
    "OFFSET": "SELECT id FROM o OFFSET 2",
    "LIMIT with ties": "SELECT id, c FROM o ORDER BY c LIMIT 1",
    "LIMIT of a bag": "SELECT c, ts FROM v ORDER BY c LIMIT 1",
    "LIMIT of a union": "SELECT id, c FROM o UNION ALL SELECT ts, c FROM v ORDER BY c LIMIT 1",
    "LIMIT of groups": "SELECT c, max(ts) AS m FROM o GROUP BY c ORDER BY m LIMIT 1",
}
TOTAL_ORDER = [
    "SELECT id, row_number() OVER w AS rn FROM o WINDOW w AS (PARTITION BY c ORDER BY ts, id)",
    "SELECT id, sum(ts) OVER w AS s FROM o WINDOW w AS (PARTITION BY c)",
    f"SELECT id, {NUMBER.format(', id')} AS rn, (SELECT count(*) FROM v) AS n FROM o",
    "SELECT c, x, row_number() OVER (ORDER BY c) AS rn FROM o PIVOT (sum(ts) FOR id IN (1 AS x))",
    "SELECT c FROM o ORDER BY ts, o.id LIMIT 1",
    "SELECT '' AS e, id, c FROM o WHERE id > 5 ORDER BY id LIMIT 1",
    "SELECT x FROM (SELECT id AS x, c + 1 AS y FROM o) WHERE y > 1 ORDER BY x LIMIT 1",
    "SELECT c, ts AS t FROM v ORDER BY t, c LIMIT 1",
    "SELECT DISTINCT c FROM v ORDER BY c LIMIT 1 OFFSET 2",
    "SELECT c, max(ts) AS m FROM o GROUP BY c ORDER BY m, c LIMIT 1",
    "SELECT id, c FROM o UNION SELECT ts, c FROM v ORDER BY c, id LIMIT 1",
    "WITH t AS (SELECT * FROM o) SELECT ts FROM t ORDER BY id DESC LIMIT 2",
    "WITH o AS (SELECT id FROM o WHERE c = 1) SELECT id FROM o",
]


def test_null_in_a_query_is_refused() -> None:
    """Spark's rules come to NULL or to false, by settings and by which of them is first."""
    for value in ("NULL", "CAST(NULL AS INT)"):
        with pytest.raises(BadQuery, match="NULL IN a query"):
            built(f"SELECT id FROM o WHERE {value} IN (SELECT c FROM v)")


@pytest.mark.parametrize("name", ANY_ORDER)
def test_queries_without_a_total_order_are_refused(name: str) -> None:
    with pytest.raises(BadQuery, match=r"total order|LIMIT"):
        built(ANY_ORDER[name])


@pytest.mark.parametrize("query", TOTAL_ORDER)
def test_queries_with_a_total_order(query: str) -> None:
    assert built(query).outputs


CHANGING = {
    "SELECT now() AS t FROM o": r"now\(\) has another value at each refresh",
    "SELECT * FROM o WHERE DATE '2026-01-31' = current_date": "current_date",
    "SELECT unix_timestamp() AS t FROM o": "current_timestamp|unix_timestamp",
    "SELECT rand() AS t FROM o": r"rand\(\) has another value",
    "SELECT uuid() AS t FROM o": "uuid",
    "SELECT first(c) AS t FROM o": "takes any row of those that tie",
    "SELECT max_by(c, ts) AS t FROM o": "takes any row of those that tie",
    "SELECT collect_list(c) AS t FROM o": "sort them with sort_array",
    "SELECT listagg(c) WITHIN GROUP (ORDER BY ts) AS t FROM o": "sort them with sort_array",
    "SELECT CAST('now' AS TIMESTAMP) AS t FROM o": "a text such as 'now' or 'today' as a time has another",
    "SELECT id FROM o WHERE id IN (SELECT c FROM v WHERE ts > unix_timestamp())": "has another value",
    "SELECT reflect('java.util.UUID', 'randomUUID') AS t FROM o": r"reflect\(\) has another",
    "SELECT aes_encrypt('a', '1234567890123456') AS t FROM o": r"aes_encrypt\(\) has another",
    "SELECT * FROM o TABLESAMPLE (5 PERCENT)": "TABLESAMPLE",
    "SELECT window(timestamp_seconds(ts), '1 month') AS w FROM o": "month",
    "SELECT id FROM o VERSION AS OF 3": "a layer reads its tables as of the moment of the refresh",
    "SELECT id FROM other": "there is no table shop.other",
    "SELECT id FROM lake_nothing(3)": "lake_nothing",
    "SHOW TABLES": "expected one query",
    "WITH x AS (SELECT 1 AS id) INSERT INTO o SELECT id, id, id FROM x": "expected one query",
}


@pytest.mark.parametrize("query", CHANGING)
def test_queries_that_have_another_answer_each_time_are_refused(query: str) -> None:
    with pytest.raises(BadQuery, match=CHANGING[query]):
        built(query)


MAPS = {
    "SELECT map('ts', ts) AS m FROM v": "nothing tells the rows apart, and m is a map",
    "SELECT map('ts', ts) AS m, count(*) AS n FROM o GROUP BY map('ts', ts)": "GROUP BY a map",
}


@pytest.mark.parametrize("query", MAPS)
def test_maps_that_would_be_compared_are_refused(query: str) -> None:
    with pytest.raises(BadQuery, match=MAPS[query]):
        built(query)


UNCHANGING = [
    "SELECT sort_array(collect_list(c)) AS t, size(collect_set(ts)) AS n FROM o",
    "SELECT listagg(c) WITHIN GROUP (ORDER BY c) AS t FROM o",
    "SELECT id, last_value(c) OVER (PARTITION BY ts ORDER BY id) AS t FROM o",
    "SELECT unix_timestamp('2026-01-31', 'yyyy-MM-dd') AS t FROM o",
    "SELECT aes_encrypt('a', '1234567890123456', 'ECB') AS t FROM o",
]


@pytest.mark.parametrize("query", UNCHANGING)
def test_queries_that_have_the_same_answer_each_time(query: str) -> None:
    assert built(query).outputs


def test_the_first_reason_is_why_all_is_computed() -> None:
    query = "SELECT c, count(*) AS n FROM (SELECT c FROM o EXCEPT SELECT c FROM v) GROUP BY c"
    kind, reasons = how(built(query).operator)
    assert (kind, reasons[0]) == ("full", "EXCEPT is computed as a whole")


JOINED = {
    "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM v WHERE v.c = o.c)": "incremental",
    "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.c = o.c AND v.ts > o.ts)": "incremental",
    "SELECT id FROM o WHERE c IN (SELECT c FROM v) AND ts > 3": "incremental",
    "SELECT id FROM o WHERE ts > (SELECT avg(ts) FROM v WHERE v.c = o.c)": "by group",
    "SELECT a.id FROM o a, o x, o b WHERE a.c = b.c AND b.ts = x.ts": "incremental",
    "SELECT id, ts - (SELECT min(ts) FROM v) AS more FROM o": "full",
    "SELECT id FROM o WHERE c NOT IN (SELECT c FROM v)": "full",
    "SELECT id FROM o WHERE id NOT IN (SELECT id FROM o WHERE c > 1)": "incremental",
    "SELECT id FROM o WHERE ts = 1 OR EXISTS (SELECT 1 FROM v WHERE v.c = o.c)": "full",
}


@pytest.mark.parametrize("query", JOINED)
def test_subqueries_and_lists_of_tables_are_joins(query: str) -> None:
    assert how(built(query).operator)[0] == JOINED[query]
