"""A table with a primary key in plain Spark SQL: written, changed, read as it was, and what changed since. DuckDB reads
it live, as a table of Iceberg's.

    python demo/keyed_story.py --uri thrift://HOST:PORT --iceberg http://HOST:PORT/iceberg

makes a database of its own (`--database`) and removes it again.
"""

import contextlib
import importlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
import duckdb
from ending import ending
from narrator import Narrator
from pyspark.sql import SparkSession
from rich.console import Console
from spark_session import spark_session
from stop_sign import StopSign

from lake.spark.configuration import configure

CREATE = """CREATE TABLE customers (id BIGINT, name STRING, city STRING, orders INT) USING parquet
    TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2', 'table-type' = 'merge-on-read',
        'iceberg.expose' = 'true')"""
MERGE = """MERGE INTO customers c USING arrived a ON c.id = a.id
    WHEN MATCHED AND a.orders = 0 THEN DELETE
    WHEN MATCHED THEN UPDATE SET orders = c.orders + a.orders
    WHEN NOT MATCHED THEN INSERT *"""
CHANGED = [(2, "delete"), (3, "delete"), (4, "insert")]


@dataclass
class Story:
    """What each step needs."""

    spark: SparkSession
    narrator: Narrator
    stop_sign: StopSign
    database: str

    def sql(self, statement: str) -> list[tuple]:
        """Runs a statement; its rows as tuples."""
        self.stop_sign.check()
        self.narrator.statement(statement)
        return [tuple(row) for row in self.spark.sql(statement).collect()]

    def customers(self, version: str = "") -> list[tuple]:
        return self.sql(f"SELECT id, name, city, orders FROM customers {version} ORDER BY id")


def tell(story: Story) -> None:
    say = story.narrator
    say.section("Keyed tables", "INSERT, UPDATE, DELETE and MERGE by primary key. Each statement is one instant.")
    with say.step("CREATE TABLE … TBLPROPERTIES ('primary-key' = 'id')") as step:
        story.sql(CREATE)
        step.check("rows", story.customers(), [])
    with say.step("INSERT, and INSERT of a key that exists replaces its row") as step:
        story.sql("INSERT INTO customers VALUES (1, 'Ada', 'London', 3), (2, 'Bob', 'Oslo', 1), (3, 'Cem', 'Izmir', 5)")
        story.sql("INSERT INTO customers VALUES (2, 'Bob', 'Bergen', 1)")
        first = [(1, "Ada", "London", 3), (2, "Bob", "Bergen", 1), (3, "Cem", "Izmir", 5)]
        step.check("rows", story.customers(), first)
        position = story.sql(f"SELECT max(position) FROM {story.database}.customers.instants")[0][0]
        step.note(f"position {position}")
    with say.step("UPDATE and DELETE") as step:
        story.sql("UPDATE customers SET city = upper(city) WHERE orders > 2")
        story.sql("DELETE FROM customers WHERE id = 2")
        step.check("rows", story.customers(), [(1, "Ada", "LONDON", 3), (3, "Cem", "IZMIR", 5)])
    with say.step("MERGE") as step:
        story.sql(
            "CREATE OR REPLACE TEMPORARY VIEW arrived AS SELECT * FROM VALUES"
            " (1, 'Ada', 'London', 2), (3, 'Cem', 'Izmir', 0), (4, 'Dee', 'Porto', 1) AS v (id, name, city, orders)"
        )
        story.sql(MERGE)
        step.check("rows", story.customers(), [(1, "Ada", "LONDON", 5), (4, "Dee", "Porto", 1)])
    with say.step("SELECT … VERSION AS OF") as step:
        step.check("rows", story.customers(f"VERSION AS OF {position}"), first)
    with say.step("The instants of all these statements") as step:
        query = f"SELECT position, action, state FROM {story.database}.customers.instants ORDER BY position"
        instants = story.sql(query)
        step.check("completed", {state for _, _, state in instants}, {"completed"})
        step.note(f"{len(instants)} instants")
    say.rows(("position", "action", "state"), instants)
    with say.step("lake_changes: what changed since that position") as step:
        changes = story.sql(f"SELECT id, _change_type FROM lake_changes('{story.database}.customers', {position})")
        step.check("kinds", sorted(changes), [(1, "update_postimage"), (1, "update_preimage"), *CHANGED])


def tell_of_duckdb(story: Story, iceberg: str) -> None:
    say = story.narrator
    say.section("DuckDB", f"It knows nothing of this metastore but Iceberg's REST catalog at {iceberg}")
    with say.step("CALL lake.system.compact: Iceberg's readers see base files alone") as step:
        story.sql(f"CALL lake.system.compact('{story.database}.customers')")
        expected = story.customers()
        step.check("rows", len(expected), 2)
    with say.step("SELECT in DuckDB") as step, contextlib.closing(duckdb.connect()) as duck:
        for name in ("avro", "httpfs", "iceberg"):
            package = Path(importlib.import_module(f"duckdb_extension_{name}").__file__ or "").parent
            (file,) = package.rglob("*.duckdb_extension")
            duck.execute(f"LOAD '{file}'")
        duck.execute(f"ATTACH 'hive' AS lake (TYPE iceberg, ENDPOINT '{iceberg}', AUTHORIZATION_TYPE 'none')")
        query = f"SELECT id, name, city, orders FROM lake.{story.database}.customers ORDER BY id"
        say.statement(query)
        step.check("rows", duck.execute(query).fetchall(), expected)
        step.note("the same rows")
    say.rows(("id", "name", "city", "orders"), expected)


def clean_up(story: Story) -> None:
    story.spark.sql(f"DROP DATABASE IF EXISTS {story.database} CASCADE")


def run(uri: str, iceberg: str, database: str, narrator: Narrator, stop_sign: StopSign, scratch: Path) -> None:
    """The whole story; raises at the first step that goes wrong, with nothing of it left behind."""
    with spark_session(configure(SparkSession.builder, uri), scratch) as spark:
        stop_sign.watch()
        story = Story(spark, narrator, stop_sign, database)
        if story.sql(f"SHOW DATABASES LIKE '{database}'"):
            raise click.UsageError(f"the database {database} exists already; choose with --database")
        story.sql(f"CREATE DATABASE {database}")
        try:
            story.sql(f"USE {database}")
            tell(story)
            tell_of_duckdb(story, iceberg)
        except Exception:
            with contextlib.suppress(Exception):  # the first failure is the one to tell
                clean_up(story)
            raise
        clean_up(story)


@click.command(context_settings={"max_content_width": 100})
@click.option("--uri", required=True, metavar="thrift://HOST:PORT", help="The metastore to use.")
@click.option("--iceberg", required=True, metavar="http://HOST:PORT/iceberg", help="Its Iceberg REST catalog.")
@click.option("--database", default="lake_keyed", show_default=True, help="Name of the database to make.")
@click.option("--sql", "show_sql", is_flag=True, help="Show every statement.")
def main(uri: str, iceberg: str, database: str, show_sql: bool) -> None:
    """Write and read a keyed table by SQL, and check every answer."""
    narrator = Narrator(Console(highlight=False), show_sql)
    stop_sign = StopSign()
    stop_sign.watch()
    with tempfile.TemporaryDirectory(prefix="keyed-story-") as scratch, ending(narrator, stop_sign):
        run(uri, iceberg, database, narrator, stop_sign, Path(scratch))
    narrator.summary("Each statement was one instant, and every answer was right.")


if __name__ == "__main__":
    main()
