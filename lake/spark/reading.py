"""Reads tables with or without uncommitted partitions, also where Spark finds partitions without the metastore.

Of most tables Spark takes the partitions from the metastore, which hides the uncommitted ones. Of some it lists the
directories itself, or asks the table's format: then what it returns must be limited. `read_table` does it for
sessions without our extension too; needs a session with a JVM (not Spark Connect).
"""

from collections.abc import Collection
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from lake.protocol.formats.commit_mode import UNCOMMITTED_NAME
from lake.protocol.formats.partition_names import DEFAULT_PARTITION, parse_name


def read_table(spark: SparkSession, table: str, *, include_uncommitted: bool = False) -> DataFrame:
    """The table `database.table`, or `table` of the current database, with what is in its files now.

    Only ready partitions, or with `include_uncommitted` all. Columns can be qualified with the table's bare name. A
    partition that the metastore doesn't know is not hidden. Raises what `spark.table` raises.
    """
    database, _, name = table.rpartition(".")
    database = database.strip("`") or spark.catalog.currentDatabase()
    name = name.strip("`")
    if include_uncommitted:
        return _fresh(spark, database, name + UNCOMMITTED_NAME).alias(name)
    # What is ready before and after Spark lists the files is complete in what it finds.
    ready, known = _names(spark, database, name)
    rows = _fresh(spark, database, name)
    if known:
        ready_now, known_now = _names(spark, database, name)
        rows = hide_partitions(rows, (known | known_now) - (ready & ready_now))
    return rows.alias(name)


def hide_partitions(rows: DataFrame, names: Collection[str]) -> DataFrame:
    """Without the rows of the partitions of these names."""
    if not names:
        return rows
    return rows.where(~reduce(or_, (_is_partition(name, rows.schema) for name in sorted(names))))


def _fresh(spark: SparkSession, database: str, name: str) -> DataFrame:
    qualified = f"`{database}`.`{name}`"
    spark.catalog.refreshTable(qualified)
    return spark.table(qualified)


def _names(spark: SparkSession, database: str, name: str) -> tuple[set[str], set[str]]:
    """The names of the ready partitions, and of all partitions in the metastore; empty for a table without partitions.

    SHOW PARTITIONS doesn't answer for tables whose partitions Spark lists itself.
    """
    session: Any = spark._jsparkSession
    catalog = session.sharedState().externalCatalog()
    if catalog.getTable(database, name).partitionColumnNames().isEmpty():
        return set(), set()
    none = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
    listed = [
        catalog.listPartitionNames(database, each, none).mkString("\n") for each in (name, name + UNCOMMITTED_NAME)
    ]
    ready, known = ({line for line in lines.split("\n") if line} for lines in listed)
    return ready, known


def _is_partition(name: str, schema: StructType) -> Column:
    types = {field.name.lower(): field.dataType for field in schema.fields}
    condition = sf.lit(True)
    for key, value in parse_name(name).items():
        typed = sf.lit(None if value == DEFAULT_PARTITION else value).cast(types[key.lower()])
        condition = condition & sf.col(f"`{key}`").eqNullSafe(typed)
    return condition
