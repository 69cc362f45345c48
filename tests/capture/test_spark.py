"""A captured table in a project of layers, on Spark: it has the source's rows and types."""

from collections.abc import Callable
from pathlib import Path

import pytest

from metastore.capture.definitions import definition
from tests.capture.shop import Source
from tests.layers.projects import write_project
from tests.spark.conftest import spark_session
from tests.spark.session import ROOT, SparkSession
from tests.support.target import Target

__all__ = ["spark_session"]

pytestmark = [pytest.mark.spark, pytest.mark.long]

REFRESH = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from metastore.pipeline.graph import graph_of
from metastore.pipeline.projects import read_project
from metastore.pipeline.runner import Runner
from metastore.pipeline.spark_engine import SparkEngine
from metastore.spark import read
from metastore.spark.session_client import lake_table
def shown(value):
    return repr(bytes(value) if isinstance(value, bytearray) else value)
graph = graph_of(read_project(Path({project!r})))
done = Runner(graph, lambda name: lake_table(spark, name, None), lambda: SparkEngine(spark, {{}})).refresh()
rows = read(spark, {table!r}).drop("_row_key").orderBy("id").collect()
result = [[each.how for each in done.layers], [[shown(value) for value in row] for row in rows]]
"""


def test_a_captured_table_is_kept_as_the_source_has_it(
    source: Source, spark_session: Callable[[str], SparkSession], target: Target, tmp_path: Path
) -> None:
    source.run(
        "CREATE TABLE items (id int PRIMARY KEY, price numeric(12,2), at timestamptz, body text, raw bytea, ok bool);"
        " ALTER TABLE items ALTER body SET STORAGE EXTERNAL"
    )
    source.run(
        "INSERT INTO items SELECT n, n / 8.0, timestamptz '2026-01-31 10:00:00.123456+02' + n * interval '1 h',"
        " n || repeat(md5(n::text), 90), '\\x00ff', n % 2 = 0 FROM generate_series(1, 5) n"
    )
    source.capture()
    made = definition(source.client.table(source.into), "public.items")
    database = source.into.partition(".")[0]
    project = write_project(tmp_path, {"ods.sql": made}, name=database, database=database)
    code = REFRESH.format(root=str(ROOT), project=str(project), table=f"{database}.items")
    spark = spark_session("4")

    def check() -> list[str]:
        how, rows = spark.python(code)
        expected = source.run("SELECT id, price, at AT TIME ZONE 'UTC', body, raw, ok FROM items ORDER BY id")
        wanted = [
            [*map(repr, (id, price, at, body, None if raw is None else bytes(raw), ok))]
            for id, price, at, body, raw, ok in expected
        ]
        assert rows == wanted
        return list(how)

    check()
    source.run("UPDATE items SET price = 9.90 WHERE id = 2; DELETE FROM items WHERE id = 3")
    source.run("UPDATE items SET id = 40 WHERE id = 4; INSERT INTO items (id) VALUES (3)")
    source.capture()
    assert "full" not in check()
    source.run("TRUNCATE items; INSERT INTO items (id, body) VALUES (1, 'after')")
    source.capture()
    check()
