"""A wide table of three streams: each writes the columns that it knows, and none waits for another.

    python examples/wide_table.py --uri thrift://localhost:9083

What would be a join of three streams is a partial update of one table: the storage puts the rows together by their key.
Each stream has columns with a version of their own, so that its late rows overwrite nothing. docs/keyed_tables.md has
more.
"""

import argparse
from collections.abc import Sequence

from pyspark.sql import SparkSession

from lake.spark import configure, read, write

TABLE = "wide_example.rides"

STREAMS = {
    "requests": "ride BIGINT, requested_at BIGINT, rider STRING",
    "drivers": "ride BIGINT, driver_at BIGINT, driver STRING, car STRING",
    "payments": "ride BIGINT, paid_at BIGINT, price DOUBLE",
}

#: What comes, in the order in which it comes.
ARRIVALS: Sequence[tuple[str, list[tuple[object, ...]]]] = [
    ("requests", [(1, 100, "ada"), (2, 101, "bo")]),
    ("payments", [(1, 190, 12.5)]),
    ("drivers", [(1, 120, "kim", "blue"), (2, 130, "kim", "blue")]),
    ("drivers", [(2, 140, "lou", "red")]),  # another driver took over
    ("drivers", [(2, 110, "max", "green")]),  # an older message, late
    ("payments", [(2, 195, None)]),  # a ride for free: the price is known to be none
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Puts three streams together in one keyed lake table.")
    parser.add_argument("--uri", default="thrift://localhost:9083")
    uri = parser.parse_args().uri

    spark = configure(SparkSession.builder.appName("wide-table"), uri).getOrCreate()
    spark.sql("CREATE DATABASE IF NOT EXISTS wide_example")
    spark.sql(f"DROP TABLE IF EXISTS {TABLE}")
    spark.sql(
        f"CREATE TABLE {TABLE} (ride BIGINT, requested_at BIGINT, rider STRING, driver_at BIGINT, driver STRING,"
        " car STRING, paid_at BIGINT, price DOUBLE) USING parquet TBLPROPERTIES ("
        "'primary-key' = 'ride', 'table-type' = 'merge-on-read', 'merge-engine' = 'partial-update',"
        " 'ignore-delete' = 'true', 'fields.requested_at.sequence-group' = 'rider',"
        " 'fields.driver_at.sequence-group' = 'driver,car', 'fields.paid_at.sequence-group' = 'price')"
    )
    for stream, rows in ARRIVALS:
        write(spark.createDataFrame(rows, STREAMS[stream]), TABLE, operation="upsert")

    print("the rides:")
    read(spark, TABLE).select("ride", "rider", "driver", "car", "price", "paid_at").orderBy("ride").show()
    print("after the first three arrivals:")
    read(spark, TABLE, as_of=3).select("ride", "rider", "driver", "car", "price", "paid_at").orderBy("ride").show()


if __name__ == "__main__":
    main()
