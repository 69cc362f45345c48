"""The mirror of a small shop: its tables as lake tables, kept in step with the changes of a database.

    python examples/shop_mirror.py --uri thrift://localhost:9083

The changes come in batches, some of them late and some twice, as they do from the log of a database: each has what it
did to a row, and the place in the log (`lsn`) that orders the versions of a row. docs/keyed_tables.md has more.
"""

import argparse

from pyspark.sql import DataFrame, SparkSession

from lake.spark import configure, plan_compaction, publish, read, run_plan, write

TABLES = {
    "shop_mirror.customers": "id BIGINT, name STRING, city STRING, lsn BIGINT",
    "shop_mirror.orders": "id BIGINT, customer BIGINT, amount DECIMAL(10,2), state STRING, lsn BIGINT",
}

#: What the log says: the table, what happened, the row.
LOG = [
    [
        ("customers", "insert", (1, "Ada", "Oslo", 1)),
        ("customers", "insert", (2, "Bo", "Bergen", 2)),
        ("orders", "insert", (10, 1, "20.00", "new", 3)),
        ("orders", "insert", (11, 2, "5.50", "new", 4)),
    ],
    [
        ("orders", "update_postimage", (10, 1, "20.00", "paid", 6)),
        ("orders", "update_postimage", (10, 1, "20.00", "sent", 8)),
        ("customers", "update_postimage", (2, "Bo", "Tromsø", 7)),
    ],
    [
        ("orders", "update_postimage", (10, 1, "20.00", "paid", 6)),  # came again, late
        ("orders", "delete", (11, 2, "5.50", "new", 9)),
        ("orders", "insert", (12, 2, "7.25", "new", 10)),
    ],
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Mirrors a small shop into keyed lake tables.")
    parser.add_argument("--uri", default="thrift://localhost:9083")
    uri = parser.parse_args().uri

    spark = configure(SparkSession.builder.appName("shop-mirror"), uri).getOrCreate()
    spark.sql("CREATE DATABASE IF NOT EXISTS shop_mirror")
    for table, columns in TABLES.items():
        spark.sql(f"DROP TABLE IF EXISTS {table}")
        spark.sql(
            f"CREATE TABLE {table} ({columns}) USING parquet TBLPROPERTIES ("
            "'primary-key' = 'id', 'sequence.field' = 'lsn', 'table-type' = 'merge-on-read', 'bucket' = '2')"
        )
    for batch in LOG:
        for table in TABLES:
            changes = changes_of(spark, table, batch)
            if changes is not None:
                write(changes, table, operation="merge")

    print("the orders:")
    read(spark, "shop_mirror.orders").orderBy("id").show()
    print("what the last batch changed, the late row not:")
    changed = read(spark, "shop_mirror.orders", incremental=(2, None), changes=True)
    changed.drop("_commit_timestamp").orderBy("id", "_change_type").show()
    planned = plan_compaction(spark, "shop_mirror.orders")
    assert planned.instant is not None, planned.reason
    run_plan(spark, "shop_mirror.orders", planned.instant.timestamp)
    print(f"compacted: {planned.buckets} buckets; the orders are the same:")
    read(spark, "shop_mirror.orders").orderBy("id").show()
    publish(spark, "shop_mirror.orders")
    print("published, for Hive, Trino and Spark's own SQL:")
    spark.sql("SELECT * FROM shop_mirror.orders ORDER BY id").show()


def changes_of(spark: SparkSession, table: str, batch: list[tuple[str, str, tuple[object, ...]]]) -> DataFrame | None:
    """The changes of one table in a batch of the log; None if there are none."""
    rows = [(*row, kind) for name, kind, row in batch if table.endswith(f".{name}")]
    if not rows:
        return None
    columns = TABLES[table].replace("DECIMAL(10,2)", "STRING")  # as the log has it; `write` casts it
    return spark.createDataFrame(rows, f"{columns}, _change_type STRING")


if __name__ == "__main__":
    main()
