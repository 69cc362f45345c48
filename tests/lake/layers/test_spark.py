"""Layers on Spark: refreshed by increments, they are what Spark makes of their queries as a whole."""

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lake.layers import random_queries, tpch
from tests.lake.layers.constructs import QUERIES as CONSTRUCTS
from tests.lake.layers.projects import write_project
from tests.spark.session import ROOT, SparkError, SparkSession
from tests.support.long_runs import share_of
from tests.support.target import Target

pytestmark = pytest.mark.spark

TABLES = """
CREATE TABLE {0}.orders (id BIGINT, cust BIGINT, amount BIGINT, city STRING, price DECIMAL(10,2), at TIMESTAMP,
 tags ARRAY<STRING>) USING parquet TBLPROPERTIES ('primary-key' = 'id', 'table-type' = 'merge-on-read');
CREATE TABLE {0}.customers (id BIGINT, name STRING, city STRING) USING parquet TBLPROPERTIES ('primary-key' = 'id');
CREATE TABLE {0}.items (ord BIGINT, nr BIGINT, price BIGINT) USING parquet TBLPROPERTIES ('primary-key' = 'ord,nr');
CREATE TABLE {0}.stock (id BIGINT, n BIGINT, at BIGINT, dt DATE, open BOOLEAN) USING parquet PARTITIONED BY (dt, open)
 TBLPROPERTIES ('primary-key' = 'id,dt,open', 'sequence.field' = 'at');
CREATE TABLE {0}.visits (cust BIGINT, city STRING) USING parquet
"""
QUERIES: Mapping[str, str] = {
    "wide": "SELECT o.id, o.city, o.price, o.at, c.name FROM orders o LEFT JOIN customers c ON o.cust = c.id",
    "hours": (
        "SELECT window.start AS hour, window.end AS till, city, sum(price) AS revenue, avg(price) AS mean,"
        " percentile(price, 0.5) AS median, sort_array(collect_list(name)) AS names FROM wide"
        " GROUP BY window(at, '1 hour'), city"
    ),
    "tags": (
        "SELECT o.id, t.place, t.tag FROM orders o LATERAL VIEW OUTER posexplode(o.tags) t AS place, tag"
        " WHERE o.amount IS NOT NULL"
    ),
    "towns": (
        "SELECT v.city, count(*) AS n, sum(o.amount) AS s FROM visits v LEFT JOIN orders o USING (cust) GROUP BY v.city"
    ),
}

ORDER = (
    "SELECT CAST({} AS BIGINT) id, CAST({} AS BIGINT) cust, CAST({} AS BIGINT) amount, {} city,"
    " CAST('{}' AS DECIMAL(10,2)) price, TIMESTAMP '2026-01-31 {}:15:00' at, {} tags"
)


def order(id: int, cust: int | None, amount: int | None, city: str | None, price: str, hour: int, *tags: str) -> str:
    """A row of orders in SQL."""
    values = ["NULL" if each is None else each for each in (cust, amount)]
    listed = f"array({', '.join(repr(each) for each in tags)})" if tags else "CAST(NULL AS ARRAY<STRING>)"
    return ORDER.format(id, *values, "CAST(NULL AS STRING)" if city is None else f"'{city}'", price, hour, listed)


class Layers:
    """Layers in a session of Spark's, over tables of a database of the test's own."""

    def __init__(self, spark: SparkSession, database: str, queries: Mapping[str, str]) -> None:
        self.spark, self.database, self.queries = spark, database, dict(queries)
        self.properties: dict[str, dict[str, str]] = {}
        spark.sql(f"CREATE DATABASE {database}")
        for statement in TABLES.format(database).split(";"):
            spark.sql(statement)
        self.write("visits", "VALUES (1, 'Oslo'), (1, 'Oslo'), (9, NULL) AS t(cust, city)", "append")
        self.write("customers", "VALUES (1, 'a', 'Oslo'), (2, 'b', 'Rome'), (3, 'a', NULL) AS t(id, name, city)")
        self.write("items", "VALUES (1, 1, 5), (1, 2, 0), (2, 1, 3) AS t(ord, nr, price)")
        rows = [
            order(1, 1, 5, "Oslo", "1.10", 10, "x", "y"),
            order(2, 1, None, "Oslo", "2.20", 10),
            order(3, 2, 3, None, "3.30", 11, "z"),
            order(4, None, 3, "Rome", "4.40", 11),
        ]
        self.write("orders", f"({' UNION ALL '.join(rows)}) AS t")

    def write(self, table: str, rows: str, operation: str = "upsert") -> None:
        """Writes what stands after FROM into a table."""
        self.run(
            "from lake.spark import write\n"
            f"write(spark.sql('''SELECT * FROM {rows}'''), '{self.database}.{table}', operation='{operation}')"
        )

    def refresh(self) -> dict[str, Any]:
        """Refreshes and compares; returns by layer how, and how many rows changed."""
        found: dict[str, Any] = self.run(
            "from tests.lake.layers.spark_check import Layers\n"
            f"result = Layers(spark, {self.database!r}, {self.queries!r}, {self.properties!r}).refresh()"
        )
        return found

    def call(self, text: str) -> Any:
        """Calls a method of `spark_check.Layers`."""
        return self.run(
            "from tests.lake.layers.spark_check import Layers\n"
            f"result = Layers(spark, {self.database!r}, {self.queries!r}, {self.properties!r}).{text}"
        )

    def undo_last(self, table: str) -> dict[str, Any]:
        """Undoes the latest instant of a table; returns what became of its rows, and the refresh."""
        found: dict[str, Any] = self.run(
            "from tests.lake.layers.spark_check import Layers\n"
            f"result = Layers(spark, {self.database!r}, {self.queries!r}).undo_last({table!r})"
        )
        return found

    def change(self) -> None:
        """Changes rows of all tables."""
        self.write("visits", "VALUES (2, 'Rome'), (1, 'Bonn') AS t(cust, city)", "append")
        self.write("customers", "VALUES (1, 'A', 'Rome'), (4, 'd', 'Oslo') AS t(id, name, city)")
        self.write("items", "VALUES (2, 1, 4), (3, 1, 1) AS t(ord, nr, price)")
        rows = [order(2, 3, 7, None, "9.99", 12, "y"), order(5, 4, 0, "Oslo", "0.01", 10, "x")]
        self.write("orders", f"({' UNION ALL '.join(rows)}) AS t")
        self.write("orders", "VALUES (1) AS t(id)", "delete")

    def rows(self, table: str) -> list[Any]:
        """The rows of a table, in order."""
        found: list[Any] = self.run(
            "from lake.spark import read\n"
            f"result = sorted(map(list, read(spark, '{self.database}.{table}', include_uncommitted=True).collect()))"
        )
        return found

    def run(self, code: str) -> Any:
        """Runs code in Spark's process; returns what it leaves in `result`."""
        return self.spark.python(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}")


@pytest.fixture(params=["4", pytest.param("3.5", marks=pytest.mark.long)], ids=["spark-4", "spark-3.5"])
def spark(request: pytest.FixtureRequest, hinting_session: Callable[[str], SparkSession]) -> SparkSession:
    return hinting_session(request.param)


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    name = f"spark_layers_{spark.line.replace('.', '_')}"
    yield name
    spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")


RESPELLED = (
    "SELECT x.id, x.city, price AS price, x.at, y.name FROM orders x LEFT JOIN customers y ON y.id = x.cust -- all"
)
"""The layer `wide` in other words."""


@pytest.mark.long
def test_a_table_of_the_candidate_keeps_its_keys(spark: SparkSession, database: str) -> None:
    """The release candidate numbered equal rows of queries for which a key is found now. It didn't keep that it had."""
    query = "SELECT coalesce(city, '?') AS city FROM orders o WHERE EXISTS (SELECT 1 FROM customers WHERE id = o.cust)"
    layers = Layers(spark, database, {"known": query})
    table = f"{database}.known"
    spark.sql(
        f"CREATE TABLE {table} (city STRING, _row_key STRING) USING parquet TBLPROPERTIES ('bucket' = '1',"
        f" 'primary-key' = '_row_key', 'pipeline.project' = '{database}', 'pipeline.row-keys' = 'numbered')"
    )
    layers.refresh()
    stored = [["?", "1:?1:1"], ["Oslo", "4:Oslo1:1"], ["Oslo", "4:Oslo1:2"]]
    assert layers.rows("known") == stored
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('pipeline.row-keys')")
    layers.write("orders", f"({order(6, 2, 1, None, '1.00', 10)}) AS t")
    assert layers.refresh() == {"known": ["by group", 1]}
    assert layers.rows("known") == [stored[0], ["?", "1:?1:2"], *stored[1:]]
    assert ["pipeline.row-keys", "numbered"] in spark.sql(f"SHOW TBLPROPERTIES {table}")


def test_layers_on_spark(spark: SparkSession, database: str) -> None:
    layers = Layers(
        spark, database, {"wide": QUERIES["wide"], "places": "SELECT id, map('in', city) AS m FROM customers"}
    )
    assert {how for how, _ in layers.refresh().values()} == {"full"}
    layers.change()
    layers.write("customers", "VALUES (3, 'a', 'null') AS t(id, name, city)")  # it was NULL
    layers.queries["wide"] = RESPELLED
    assert layers.call("planned()") == {"wide": [["formatting"], "nothing"], "places": [[], "nothing"]}
    found = layers.refresh()
    assert found["wide"] == ["incremental", 3], "one row updated, one inserted, one deleted"
    assert found["places"] == ["incremental", 3], "two rows updated, one inserted"


@pytest.mark.long
def test_changed_definitions_on_spark(spark: SparkSession, database: str) -> None:
    layers = Layers(spark, database, {"wide": QUERIES["wide"]})
    layers.refresh()
    layers.queries = {"wide": RESPELLED}
    assert layers.refresh() == {"wide": ["unchanged", 0]}
    layers.queries = {"wide": RESPELLED.replace("LEFT JOIN", "JOIN")}
    assert layers.call("planned()") == {"wide": [["query"], "all"]}
    [[counts, [sample]]] = layers.call("differing()").values()
    assert counts == {"deleted": 1}
    assert sample.startswith("({'id': 4, 'city': 'Rome', 'price': Decimal('4.40'),")
    assert layers.refresh() == {"wide": ["full", 1]}


BEFORE = {
    "wide": QUERIES["wide"],
    "seen": "SELECT city, cust FROM visits",
    "left": "SELECT id, dt, n FROM stock WHERE open",
    "hours": "SELECT date_trunc('HOUR', at) AS hour, city, count(*) AS n FROM orders GROUP BY ALL",
}
SINCE = {
    "wide": ("at", "2026-01-31 11:00:00", "TIMESTAMP '2026-01-31 11:00:00'"),
    "seen": ("cust", "2", "2"),
    "left": ("dt", "2026-01-02", "DATE '2026-01-02'"),
    "hours": ("hour", "2026-01-31T11:00", "TIMESTAMP '2026-01-31 11:00:00'"),
}
CORRECTED = {
    "wide": QUERIES["wide"].replace("o.city, o.price", "c.city, o.price"),
    "seen": "SELECT DISTINCT city, cust FROM visits WHERE city IS NOT NULL",
    "left": "SELECT id, dt, n + 1 AS n FROM stock WHERE open AND n > 0",
    "hours": "SELECT date_trunc('HOUR', at) AS hour, city, sum(amount) AS n FROM orders GROUP BY ALL",
}


@pytest.mark.long
def test_queries_that_change_from_a_value_on_spark(spark: SparkSession, database: str) -> None:
    """Rows are those of the one query before it, and those of the other from it on, whatever the sources do."""
    layers = Layers(spark, database, BEFORE)
    layers.write(
        "stock",
        "VALUES (1, 5, 1, DATE '2026-01-01', true), (2, 6, 1, DATE '2026-01-02', true),"
        " (3, 0, 1, DATE '2026-01-03', true) AS t(id, n, at, dt, open)",
    )
    layers.refresh()
    assert layers.call("planned()")["wide"] == [[], "nothing"]
    layers.write("stock", "VALUES (4, 7, 1, DATE '2026-01-01', true) AS t(id, n, at, dt, open)")
    layers.queries = {**CORRECTED, "seen": BEFORE["seen"] + " WHERE city IS NOT NULL"}
    assert layers.call(f"differing_since({SINCE!r})")["left"] == {"updated": 1, "deleted": 1}
    done = layers.call(f"restated({BEFORE!r}, {SINCE!r}, apply=True)")
    assert {name: how for name, (how, _) in done.items()} == dict.fromkeys(BEFORE, "restated")
    assert done["left"] == ["restated", 3], "a row that comes, one that changes, and one that goes"
    layers.change()
    layers.write(
        "stock",
        "VALUES (5, 7, 1, DATE '2026-01-01', true), (6, 7, 1, DATE '2026-01-02', true) AS t(id, n, at, dt, open)",
    )
    done = layers.call(f"restated({BEFORE!r}, {SINCE!r}, apply=False)")
    assert "full" not in {how for how, _ in done.values()}
    assert done["left"] == ["incremental", 2]
    layers.queries = CORRECTED
    with pytest.raises(SparkError, match=r"seen was restated from cust = 2 on, and is defined otherwise now \(query\)"):
        layers.refresh()


@pytest.mark.long
@pytest.mark.parametrize("beside", [False, True], ids=["at once", "beside"])
def test_definitions_with_other_columns_on_spark(spark: SparkSession, database: str, *, beside: bool) -> None:
    """A table is rewritten, at one moment with those that read it."""
    first = {
        "texts": "SELECT id, name, map('c', city) AS place FROM customers",
        "named": "SELECT name, count(*) AS n FROM texts GROUP BY name",
        "grown": "SELECT id, city FROM customers",
    }
    layers = Layers(spark, database, first)
    layers.refresh()
    layers.queries = {
        "texts": "SELECT id, length(name) AS name, map('d', city) AS place FROM customers",
        "named": "SELECT CAST(name AS STRING) AS name, sum(id) AS n FROM texts GROUP BY name",
        "grown": "SELECT id, city, name FROM customers",
    }
    planned = layers.call("planned()")
    assert planned == {
        "texts": [["columns", "query"], "all"],
        "grown": [["columns", "query"], "all"],
        "named": [["query", "types", "rewritten below"], "all"],
    }
    differing = {name: counts for name, (counts, _) in layers.call("differing()").items()}
    assert differing == {"texts": {"updated": 3}, "grown": {}, "named": {"inserted": 1, "deleted": 2}}
    with pytest.raises(SparkError, match="texts has other columns now"):
        layers.refresh()
    done = layers.call("applied_beside()" if beside else "refresh(['texts'])")
    assert done == {name: ["beside" if beside else "full", 3] for name in ("texts", "grown", "named")}
    tables = {row[1] for row in spark.sql(f"SHOW TABLES IN {database}")}
    assert not [name for name in tables if "beside" in name]
    layers.change()
    assert {how for how, _ in layers.refresh().values()} == {"incremental", "by group"}


STEPS = """
from pathlib import Path
from lake.layers.applying.beside import apply_beside
from lake.layers.applying.planning import plan_of
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.model import Definitions, Project, View
from lake.layers.errors import Place
from lake.layers.runner.runner import Runner
from lake.layers.runner.spark_engine import SparkEngine
from lake.spark.session_client import lake_table
place = Place(Path("layers.sql"), 1)
def runner(factor):
    views = [
        View("sold", f"SELECT id, n * {{factor}} AS n, open, dt FROM stock", place, partitions=("dt",)),
        View("days", "SELECT count(*) AS n, sum(n) AS s, dt FROM sold GROUP BY dt", place, partitions=("dt",)),
    ]
    graph = graph_of(Project(Path(), {database!r}, {database!r}, {{}}, Definitions(views)))
    return Runner(graph, lambda name: lake_table(spark, name, None), lambda: SparkEngine(spark, {{}}), choose=False)
runner(1).refresh()
by, said = runner(2), []
by.progress = said.append
done = apply_beside(by, plan_of(by), step_bytes=1)
result = [[each.partition(", dt ")[2] for each in said if ", dt " in each], [each.how for each in done.layers]]
"""


@pytest.mark.long
def test_steps_of_partitions_on_spark(spark: SparkSession, database: str) -> None:
    layers = Layers(spark, database, {})
    layers.write(
        "stock",
        "VALUES (1, 5, 1, DATE '2026-01-30', true), (2, 6, 1, DATE '2026-01-31', false),"
        " (3, 7, 1, DATE '2026-02-01', true), (4, 8, 1, DATE '2026-02-01', false) AS t(id, n, at, dt, open)",
    )
    ends = ["up to 2026-01-31", "up to 2026-02-01", "to its end"]
    assert layers.run(STEPS.format(database=database)) == [[*ends, *ends], ["beside", "beside"]]
    assert spark.sql(f"SELECT n, s, CAST(dt AS STRING) FROM {database}.days ORDER BY dt") == [
        [1, 10, "2026-01-30"],
        [1, 12, "2026-01-31"],
        [2, 30, "2026-02-01"],
    ]


@pytest.mark.long
@pytest.mark.parametrize("beside", [False, True], ids=["at once", "beside"])
def test_other_buckets_and_hidden_keys_on_spark(spark: SparkSession, database: str, *, beside: bool) -> None:
    """A table is rewritten, at one moment with those that read it."""
    queries = {
        "known": "SELECT id, city FROM orders",
        "lines": "SELECT ord, nr, price FROM items",
        "seen": "SELECT id, city FROM customers",
        "towns": "SELECT city, count(*) AS n FROM known GROUP BY city",
        "sums": "SELECT ord, sum(price) AS price FROM lines GROUP BY ord",
    }
    layers = Layers(spark, database, queries)
    layers.refresh()
    layers.properties = {"lines": {"bucket": "4", "bucket-key": "ord"}, "known": {"bucket": "3"}}
    planned = layers.call("planned()")
    assert (planned["lines"], planned["towns"]) == ([["properties"], "all"], [["rewritten below"], "all"])
    assert {how for how, _ in layers.refresh().values()} == {"unchanged"}, "a table keeps the buckets that it has"
    full = {name: how for name, (how, _) in layers.call("refresh(['lines'])").items()}
    others = dict.fromkeys(("known", "seen", "towns"), "unchanged")
    assert full == {**others, "lines": "full", "sums": "full"}
    assert layers.call("planned()")["lines"] == [[], "nothing"]
    layers.change()
    assert {how for how, _ in layers.refresh().values()} == {"incremental", "by group"}
    files = layers.run(
        "from lake.spark.session_client import lake_table\n"
        f"result = sorted({{each.file_group for each in lake_table(spark, '{database}.lines', None).snapshot()}})"
    )
    assert len(files) > 1 and files[-1] <= "bucket-00003"
    layers.queries |= {"known": "SELECT amount, city FROM orders", "seen": "SELECT cust, city FROM visits"}
    with pytest.raises(SparkError, match=r"known has other columns now"):
        layers.refresh()
    rewritten = layers.call("applied_beside()" if beside else "refresh(['known', 'seen'])")
    assert {rewritten[name][0] for name in ("known", "seen", "towns")} == {"beside" if beside else "full"}
    for name, of in (("known", "found"), ("seen", "numbered")):
        properties = dict(spark.sql(f"SHOW TBLPROPERTIES {database}.{name}"))
        assert (properties["primary-key"], properties["pipeline.row-keys"]) == ("_row_key", of)
    layers.write("orders", f"({order(8, 1, 7, None, '1.00', 10)}) AS t")
    layers.write("visits", "VALUES (1, 'Oslo'), (7, 'Kyiv') AS t(cust, city)", "append")
    refreshed = layers.refresh()
    assert {refreshed[name][0] for name in ("known", "seen", "towns")} <= {"incremental", "by group"}
    assert layers.call("planned()")["seen"] == [[], "nothing"]


DIFFERING = {
    "prices": "SELECT price FROM orders UNION SELECT CAST(id AS DECIMAL(12,4)) AS p FROM customers",
    "by_price": (
        "SELECT p, count(*) AS n FROM (SELECT price AS p FROM orders UNION ALL"
        " SELECT CAST(id AS DECIMAL(14,3)) FROM customers) u GROUP BY p"
    ),
    "moments": "SELECT dt AS at FROM stock UNION SELECT at FROM orders",
    "texts": "SELECT c.id, o.city FROM customers c JOIN (SELECT city, '0' || id AS t FROM orders) o ON c.id = o.t",
    "tagged": "SELECT id, explode(tags) AS tag FROM orders",
    "tags": "SELECT count(*) AS n FROM tagged",
    "guarded": (
        "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = CAST(o.city AS BIGINT)"
        " WHERE o.city RLIKE '^[0-9]+$'"
    ),
}
"""Columns of different types are united and joined, a row makes several, and a condition guards a cast."""


@pytest.mark.long
@pytest.mark.parametrize(
    "names",
    [pytest.param(("by_price",), id="one"), pytest.param(tuple(DIFFERING), marks=pytest.mark.long, id="all")],
)
def test_types_that_differ_generators_and_guards_on_spark(
    spark: SparkSession, database: str, names: tuple[str, ...]
) -> None:
    layers = Layers(spark, database, {name: DIFFERING[name] for name in names})
    layers.write("stock", "VALUES (1, 5, 10, DATE '2026-01-30', true) AS t(id, n, at, dt, open)")
    layers.refresh()
    layers.change()
    layers.write("orders", f"({order(7, 1, 5, '3', '1.10', 10, 'b', 'b')}) AS t")
    found = {name: how for name, (how, _) in layers.refresh().items()}
    kinds = {"prices": "by group", "by_price": "by group", "moments": "by group", "texts": "incremental"}
    kinds |= {"tagged": "incremental", "tags": "by group", "guarded": "incremental"}
    assert found == {name: kinds[name] for name in names}


SINKS = """
from pathlib import Path
from lake.layers.definitions.model import Definitions, Project
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.python_files import read
from lake.layers.runner.runner import Runner
from lake.layers.runner.spark_engine import SparkEngine
from lake.spark.session_client import lake_table
definitions = Definitions()
read(Path({file!r}), Path("sinks.py"), definitions)
graph = graph_of(Project(Path(), {database!r}, {database!r}, {{}}, definitions))
runner = Runner(graph, lambda name: lake_table(spark, name, None), lambda: SparkEngine(spark, {{}}), choose=False)
refreshed = runner.refresh()
expected = {{each.layer.partition(".")[2]: dict(each.expected) for each in refreshed.layers if each.expected}}
result = [dict(refreshed.delivered), expected]
"""
DEFINED = """
from pyspark import pipelines as dp

dp.create_sink("archive", "json", options={{"path": "{directory}/archive"}})

@dp.append_flow(target="archive")
def to_archive():
    return spark.readStream.table("customers")

@dp.foreach_batch_sink
def numbered(rows, number):
    rows.selectExpr("id", f"{{number}} AS number").write.mode("overwrite").json(f"{directory}/numbered/{{number}}")

@dp.append_flow(target="numbered")
def to_numbered():
    return spark.sql("SELECT id, name FROM STREAM(customers) WHERE city = 'Rome'")

@dp.materialized_view
@dp.expect_or_drop("renamed", "name <> 'a'")
@dp.expect("placed", "city IS NOT NULL")
@dp.expect("early", "id < 4")
def checked():
    return spark.table("customers")
"""


@pytest.mark.long
def test_sinks_and_expectations_on_spark(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """A format of Spark's, and a function that gets DataFrames: each has what is new, and all of it once."""
    layers = Layers(spark, database, {})
    file = tmp_path / "sinks.py"
    file.write_text(DEFINED.format(directory=tmp_path))
    code = SINKS.format(file=str(file), database=database)
    archive, numbered = f"{database}.archive", f"{database}.numbered"
    assert layers.run(code) == [{archive: 1, numbered: 1}, {"checked": {"renamed": 2, "placed": 1, "early": 0}}]
    layers.write("customers", "VALUES (3, 'a', 'Rome'), (4, 'd', 'Oslo') AS t(id, name, city)")
    assert layers.run(code) == [{archive: 1, numbered: 1}, {"checked": {"renamed": 1, "placed": 0, "early": 1}}]
    assert layers.run(code) == [{archive: 0, numbered: 0}, {}]
    assert [row[0] for row in layers.rows("checked")] == [2, 4]
    files = sorted((tmp_path / "archive").glob("*.json"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    rows = sorted((each["id"], each["name"], each.get("city", "")) for each in lines)
    assert rows == [(1, "a", "Oslo"), (2, "b", "Rome"), (3, "a", ""), (3, "a", "Rome"), (4, "d", "Oslo")]
    batches = sorted(int(each.name) for each in (tmp_path / "numbered").iterdir())
    assert len(batches) == 2
    text = [each.read_text() for each in sorted((tmp_path / "numbered" / str(batches[1])).glob("*.json"))]
    assert json.loads("".join(text)) == {"id": 3, "number": batches[1]}


@pytest.mark.long
def test_chains_arrays_and_tables_without_keys_on_spark(spark: SparkSession, database: str) -> None:
    layers = Layers(spark, database, QUERIES)
    layers.refresh()
    layers.change()
    assert {name: how for name, (how, _) in layers.refresh().items()} == {
        "wide": "incremental",
        "hours": "by group",
        "tags": "incremental",
        "towns": "by group",
    }


@pytest.mark.long
def test_rollbacks_on_spark(spark: SparkSession, database: str) -> None:
    queries = {
        "seen": "SELECT city, count(*) AS n FROM visits GROUP BY city",
        "left": "SELECT dt, sum(n) AS n FROM stock GROUP BY dt",
    }
    layers = Layers(spark, database, queries)
    rows = "(VALUES {}) AS t(id, n, at, dt, open)"
    first, second = "DATE '2026-01-30', true", "DATE '2026-01-31', false"
    layers.write("stock", rows.format(f"(1, 5, 10, {first}), (2, 6, 10, {first}), (3, 7, 10, {second})"))
    layers.refresh()
    layers.write("visits", "VALUES (7, 'Bonn'), (7, 'Oslo') AS t(cust, city)", "append")
    layers.write("stock", rows.format(f"(1, 50, 20, {first}), (9, 9, 20, DATE '2026-02-01', false)"))
    assert layers.refresh()["left"] == ["by group", 2]
    undone = layers.undo_last("visits")
    assert undone == {"rows": {"deleted": 2}, "layers": {"seen": ["by group", 2], "left": ["unchanged", 0]}}
    undone = layers.undo_last("stock")
    assert undone["rows"] == {"updated": 1, "deleted": 1}, "although the rows' sequence is less than the stored one"
    assert undone["layers"]["left"] == ["by group", 2]
    stored = [[id, n, at, str(dt), is_open] for id, n, at, dt, is_open in layers.rows("stock")]
    of_first, of_second = ["2026-01-30", True], ["2026-01-31", False]
    assert stored == [[1, 5, 10, *of_first], [2, 6, 10, *of_first], [3, 7, 10, *of_second]]


PARTS = 5


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_all_constructs_on_spark(spark: SparkSession, database: str, part: int) -> None:
    texts = [*CONSTRUCTS.values()][part::PARTS]
    layers = Layers(spark, database, {f"q{number}": text for number, text in enumerate(texts)})
    layers.refresh()
    layers.change()
    assert {how for how, _ in layers.refresh().values()} <= {"incremental", "by group", "full"}


@pytest.mark.long
@pytest.mark.parametrize("part", range(share_of(4)))
def test_random_layers_on_spark(spark: SparkSession, database: str, part: int) -> None:
    rng = random.Random(5000 + part)
    tables = dict(random_queries.TABLES)
    queries: dict[str, str] = {}
    for number in range(12):
        made = random_queries.Queries(rng, tables).query(depth=rng.choice([0, 1, 1, 2]))
        queries[f"layer_{number}"] = made.text
        tables[f"layer_{number}"] = random_queries.Relation(f"layer_{number}", made.columns)
    layers = Layers(spark, database, queries)
    layers.refresh()
    layers.change()
    layers.refresh()


@pytest.mark.long
def test_a_layer_whose_rows_cannot_be_computed(spark: SparkSession, database: str) -> None:
    """A task fails, as it computes a value: all other layers complete."""
    queries = {
        "numbers": "SELECT id, CAST(name AS INT) AS n FROM customers",
        "cities": "SELECT id, city FROM customers",
    }
    layers = Layers(spark, database, queries)
    with pytest.raises(SparkError, match=r"LayersFailed: \S*numbers failed: .*\[CAST_INVALID_INPUT\] The value 'a' .*"):
        layers.refresh()
    assert layers.rows("cities") == [[1, "Oslo"], [2, "Rome"], [3, None]]
    layers.write("customers", "VALUES (1, '1', 'Oslo'), (2, '2', 'Rome'), (3, '3', NULL) AS t(id, name, city)")
    assert layers.refresh() == {"numbers": ["full", 3], "cities": ["incremental", 0]}


@pytest.mark.long
def test_lists_of_tables_and_subqueries_on_spark(spark: SparkSession, database: str) -> None:
    rng = random.Random(7)
    layers = Layers(spark, database, {name: query for name, (query, _) in tpch.QUERIES.items()})
    spark.sql(f"DROP TABLE {database}.orders")
    for name, (columns, key) in tpch.TABLES.items():
        listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        spark.sql(
            f"CREATE TABLE {database}.{name} ({listed}) USING parquet TBLPROPERTIES ('primary-key' = '{','.join(key)}')"
        )
        layers.write(name, f"({tpch.random_rows(rng, name, tpch.SIZES[name] * 2)})")
    layers.refresh()
    for changed in ("lineitem orders", "nation supplier part", "partsupp customer lineitem"):
        for name in changed.split():
            layers.write(name, f"({tpch.random_rows(rng, name, 4)})")
        kinds = {name: how for name, (how, _) in layers.refresh().items() if how != "unchanged"}
        assert kinds.items() <= {name: kind for name, (_, kind) in tpch.QUERIES.items()}.items()


@pytest.mark.long
def test_the_commands_for_changed_definitions(
    spark: SparkSession, database: str, target: Target, tmp_path: Path
) -> None:
    text = "CREATE MATERIALIZED VIEW named AS SELECT {} FROM customers"
    Layers(spark, database, {})

    def call(command: str, columns: str, *more: str) -> subprocess.CompletedProcess[str]:
        directory = write_project(tmp_path, {"a.sql": text.format(columns)}, name=database, database=database)
        program = [sys.executable, "-m", "lake.cli", "pipeline", command, str(directory)]
        program += ["--uri", f"thrift://{target.host}:{target.port}", *more]
        return subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=500)

    assert call("run", "id, name").returncode == 0
    plan = call("plan", "id, name AS name /* theirs */")
    assert "formatting" in plan.stdout, plan.stderr
    found = json.loads(call("diff", "id, upper(name) AS name", "--json", "--samples", "1").stdout)
    assert [each["counts"] for each in found] == [{"updated": 3}]
    assert [each["samples"] for each in found] == [[{"before": {"id": 1, "name": "a"}, "now": {"id": 1, "name": "A"}}]]
    shown = call("diff", "id, upper(name) AS name").stdout
    assert "~ id=2, name=b -> B" in shown
    asked = call("apply", "id, length(name) AS name")
    assert (asked.returncode, "There is no terminal to ask on" in asked.stderr) == (2, True)
    assert "all, rewritten" in asked.stdout
    done = call("apply", "id, length(name) AS name", "--yes", "--json")
    assert json.loads(done.stdout)["tables"][0]["how"] == "full", done.stderr
    assert sorted(spark.sql(f"SELECT * FROM {database}.named")) == [[1, 1], [2, 1], [3, 1]]
    shown = call("revert", "id, length(name) AS name", "--dry-run")
    assert "SELECT id, name FROM customers" in shown.stdout, shown.stderr
    assert "computed as a whole, since" in shown.stderr
    back = call("revert", "id, length(name) AS name", "--yes", "--json")
    assert json.loads(back.stdout)["tables"][0]["how"] == "full", back.stderr
    assert sorted(spark.sql(f"SELECT * FROM {database}.named")) == [[1, "a"], [2, "b"], [3, "a"]]
    refused = call("run", "id, length(name) AS name")
    assert (refused.returncode, "was reverted to an earlier definition at 20" in refused.stderr) == (2, True)
    assert "query, reverted before" in call("plan", "id, length(name) AS name").stdout
    assert call("apply", "id, length(name) AS name", "--yes").returncode == 0
    assert call("run", "id, length(name) AS name").returncode == 0, "that is forgotten"
    assert call("apply", "id, name", "--yes").returncode == 0
    part = ("--from", "2", "--by", "id")
    assert "id >= 2" in call("plan", "id, upper(name) AS name", *part).stdout
    done = call("apply", "id, upper(name) AS name", "named", *part, "--yes", "--json")
    assert json.loads(done.stdout)["tables"][0]["how"] == "restated", done.stderr
    assert sorted(spark.sql(f"SELECT * FROM {database}.named")) == [[1, "a"], [2, "B"], [3, "A"]]
    assert call("run", "id, upper(name) AS name").returncode == 0
    refused = call("run", "id, name")
    assert (refused.returncode, "was restated from id = 2 on" in refused.stderr) == (2, True), refused.stderr
    assert call("apply", "id, upper(name) AS name", "--whole", "named", "--yes").returncode == 0
    assert sorted(spark.sql(f"SELECT * FROM {database}.named")) == [[1, "A"], [2, "B"], [3, "A"]]
    done = call("apply", "id, length(name) AS name", "--beside", "--yes", "--json")
    assert json.loads(done.stdout)["tables"][0]["how"] == "beside", done.stderr
    assert "cutting over" in done.stderr
    assert sorted(spark.sql(f"SELECT * FROM {database}.named")) == [[1, 1], [2, 1], [3, 1]]
    assert call("apply", "id, name", "--beside", "--from", "2").returncode == 2


@pytest.mark.long
def test_the_example(target: Target) -> None:
    command = [sys.executable, "examples/layers.py", "--uri", f"thrift://{target.host}:{target.port}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    changed = lines.index("a customer moves, another is deleted, an order is corrected:")
    assert [line.split(" ", 2)[1] for line in lines[:changed] if "." in line.split(" ")[0]] == ["full"] * 4
    after = {line.split(" ")[0]: " ".join(line.split(" ")[1:]) for line in lines[changed + 1 :] if line[:1].isalpha()}
    assert after["dwd.orders"] == "full {'updated': 3}", "so few rows take less time as a whole"
    assert after["dws.revenue"].startswith("full {")
    shown = done.stdout.replace(" ", "")
    assert all(row in shown for row in ("|Bonn|20.0|1|", "|unknown|5.5|1|", "|Bonn|8.0|1|"))
