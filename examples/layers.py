"""Three layers over a shop's tables, each refreshed from what has changed.

    python examples/layers.py --uri thrift://localhost:9083

The project is the directory examples/layers. `metastore pipeline run examples/layers` runs it, too. docs/pipelines.md
has more.
"""

import argparse
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from lake.layers.runner.results import LayersFailed
from lake.layers.runner.runner import Runner
from lake.layers.runner.spark_engine import SparkEngine
from lake.spark import configure, read, write
from lake.spark.session_client import lake_table

PROJECT = Path(__file__).with_name("layers")

ORDERS = "id bigint, customer bigint, at timestamp, amount double"
CHANGES = "lsn bigint, op string, id bigint, name string, city string"


def at(time: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-31 {time}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Refreshes three layers, changes their sources, and refreshes again.")
    parser.add_argument("--uri", default="thrift://localhost:9083")
    uri = parser.parse_args().uri

    spark = configure(SparkSession.builder.appName("layers"), uri).getOrCreate()
    for database in ("ads", "dws", "dwd", "ods"):
        spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
    spark.sql("CREATE DATABASE ods")
    spark.sql(
        "CREATE TABLE ods.orders (id BIGINT, customer BIGINT, at TIMESTAMP, amount DOUBLE) USING parquet"
        " TBLPROPERTIES ('primary-key' = 'id')"
    )
    spark.sql(
        "CREATE TABLE ods.customers_log (lsn BIGINT, op STRING, id BIGINT, name STRING, city STRING) USING parquet"
        " TBLPROPERTIES ('primary-key' = 'lsn')"
    )
    graph = graph_of(read_project(PROJECT))
    runner = Runner(graph, lambda name: lake_table(spark, name, None), lambda: SparkEngine(spark, {}))

    def refresh() -> None:
        try:
            result = runner.refresh()
        except LayersFailed as error:  # the other layers are up to date: `error.result` says what was done
            raise SystemExit(f"layers can't be refreshed: {error}") from None
        for each in result.layers:
            print(each.layer, each.how, dict(each.changed))

    log = [(1, "insert", 1, "Ada", "Oslo"), (2, "insert", 2, "Bo", "Rome")]
    write(spark.createDataFrame(log, CHANGES), "ods.customers_log", operation="upsert")
    orders = [
        (10, 1, at("10:05"), 20.0),
        (11, 2, at("10:40"), 5.5),
        (12, 3, at("11:00"), 7.0),
    ]
    write(spark.createDataFrame(orders, ORDERS), "ods.orders", operation="upsert")
    refresh()

    print("a customer moves, another is deleted, an order is corrected:")
    log = [(3, "update", 1, "Ada", "Bonn"), (4, "delete", 2, None, None)]
    write(spark.createDataFrame(log, CHANGES), "ods.customers_log", operation="upsert")
    write(spark.createDataFrame([(12, 1, at("11:00"), 8.0)], ORDERS), "ods.orders", operation="upsert")
    refresh()
    read(spark, "dws.revenue").select("hour", "city", "revenue", "orders").orderBy("hour", "city").show()


if __name__ == "__main__":
    main()
