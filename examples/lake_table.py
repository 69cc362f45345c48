"""A lake table from PySpark: a day's orders are corrected and read as they are, as they were, and what has changed.

    python examples/lake_table.py --uri thrift://localhost:9083

Readers see all of a `write` or nothing. docs/lake_tables.md has more.
"""

import argparse

from pyspark.sql import SparkSession

from lake.spark import configure, read, write

TABLE = "lake_example.orders"


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes and reads a lake table by its timeline.")
    parser.add_argument("--uri", default="thrift://localhost:9083")
    uri = parser.parse_args().uri

    spark = configure(SparkSession.builder.appName("lake-table"), uri).getOrCreate()
    spark.sql("CREATE DATABASE IF NOT EXISTS lake_example")
    columns = "id BIGINT, amount DOUBLE, dt DATE"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {TABLE} ({columns}) USING parquet PARTITIONED BY (dt)")

    orders = spark.sql("SELECT id, id * 1.5 AS amount, date_add(DATE '2026-01-01', int(id % 3)) AS dt FROM range(9)")
    first = write(orders, TABLE, operation="overwrite").instant
    assert first is not None
    corrected = read(spark, TABLE, filter="dt = '2026-01-02'").selectExpr("id", "amount * 2 AS amount", "dt")
    write(corrected, TABLE, operation="replace_partitions")

    print("as it is:")
    read(spark, TABLE).groupBy("dt").agg({"amount": "sum"}).orderBy("dt").show()
    print(f"as it was at {first.timestamp}:")
    read(spark, TABLE, as_of=first.timestamp).groupBy("dt").agg({"amount": "sum"}).orderBy("dt").show()
    print("what has changed since:")
    changed = read(spark, TABLE, incremental=(first.timestamp, None), with_removed=True)
    changed.orderBy("id", "_change").show()


if __name__ == "__main__":
    main()
