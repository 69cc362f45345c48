"""Reads and writes tables of Hudi's through Hudi, which knows their files; its Spark bundle must be in the session."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lake.client.lake_types import AsOf
from lake.protocol.errors import UserError
from lake.spark.reading import hide_partitions
from lake.tables.lake import LakeTable

OPERATIONS = {"append": "insert", "overwrite": "insert_overwrite_table", "replace_partitions": "insert_overwrite"}
"""Hudi's operation for each mode of `write`."""

_SOURCE = "org.apache.hudi.DefaultSource"
_QUERY = "hoodie.datasource.query.type"


class HudiMissing(UserError):
    """The session doesn't have Hudi's Spark bundle."""


def read(
    spark: SparkSession,
    lake: LakeTable,
    *,
    as_of: AsOf | None,
    incremental: tuple[AsOf, AsOf | None] | None,
    read_optimized: bool,
    include_uncommitted: bool,
    filter: str | None,
) -> DataFrame:
    """The rows that Hudi finds; `filter` is SQL to Spark here. Uncommitted partitions are left out afterwards.

    Raises HudiMissing.
    """
    _require(spark)
    hidden = set() if include_uncommitted else set(lake.partitions(ready=False))
    rows = spark.read.format("hudi").options(**read_options(lake, as_of, incremental, read_optimized=read_optimized))
    found = rows.load(lake.location())
    if not include_uncommitted:
        # What was ready before and after Hudi looked for files is complete in what it found.
        found = hide_partitions(found, hidden | set(lake.partitions(ready=False)))
    return found if filter is None else found.where(filter)


def read_options(
    lake: LakeTable,
    as_of: AsOf | None,
    incremental: tuple[AsOf, AsOf | None] | None,
    *,
    read_optimized: bool,
) -> dict[str, str]:
    """Hudi's options for the arguments of `lake.spark.read`. Instants are named by their timestamps."""
    options = {_QUERY: "read_optimized" if read_optimized else "snapshot"}
    if as_of is not None:
        options["as.of.instant"] = lake.timestamp_of(as_of)
    if incremental is not None:
        after, up_to = incremental
        options[_QUERY] = "incremental"
        options["hoodie.datasource.read.begin.instanttime"] = lake.timestamp_of(after)
        if up_to is not None:
            options["hoodie.datasource.read.end.instanttime"] = lake.timestamp_of(up_to)
    return options


def write(rows: DataFrame, lake: LakeTable, operation: str, options: Mapping[str, str]) -> None:
    """Has Hudi write; what the table's own configuration doesn't say must be among `options`. Raises HudiMissing."""
    _require(rows.sparkSession)
    rows.write.format("hudi").options(**write_options(lake, operation), **options).mode("append").save(lake.location())


def write_options(lake: LakeTable, operation: str) -> dict[str, str]:
    """Hudi's options for the arguments of `lake.spark.write`."""
    options = {
        "hoodie.table.name": lake.named.table or "",
        "hoodie.datasource.write.operation": OPERATIONS[operation],
    }
    if keys := [key.name for key in lake.schema().keys]:
        options["hoodie.datasource.write.partitionpath.field"] = ",".join(keys)
    return options


def _require(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_SOURCE)
    except Exception as error:
        raise HudiMissing(
            "this is a table of Hudi's, and the session has no Hudi: start Spark with its bundle, for example"
            " --packages org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
        ) from error
