"""Reads lake tables as streams: the rows that are there, then what changes.

orders = read_stream(spark, "shop.orders", changes=True)
write_stream(orders, "shop.mirror", checkpoint, operation="merge")

The extension for Spark reads: this is `spark.readStream.table` with Python's types and checks. A query's offset is a
position of the table. Each micro-batch is what came between two positions, so that a batch that is repeated has the
same rows.
"""

from datetime import datetime
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from lake.client.lake_types import AsOf, Schema, from_millis, to_millis
from lake.protocol.formats.spark_names import quoted
from lake.spark.configuration import CATALOG
from lake.spark.jar import CATALOG_CLASS
from lake.spark.session_client import lake_table, metastore_uri
from lake.spark.table_schema import check_parquet, is_hudi
from lake.tables.keyed_tables import NotKeyed
from lake.tables.lake import LakeTable

_PROVIDER = "spark.sql.sources.provider"


def read_stream(
    spark: SparkSession,
    table: str,
    *,
    since: AsOf | None = None,
    changes: bool | Literal["all"] = False,
    include_uncommitted: bool = False,
    filter: str | None = None,
    uri: str | None = None,
) -> DataFrame:
    """A streaming DataFrame of what comes into the table `database.table`.

    It begins with all rows, as they are when the query starts; with `since`, with what came after that. Of a table
    without primary key, these are the rows that are added. Of a keyed table they are inserted and updated rows;
    `changes` gives all net changes of a micro-batch instead, or with `"all"` those of each commit, with `_change_type`,
    `_commit_version` and `_commit_timestamp`, as `read` does. Of the rows that the query begins with, all changes are
    inserts, and the version is the position that is read.

    The columns are those that the table has now: start the query again after they have changed. `filter` and
    `include_uncommitted` are as of `read`. `uri` is the metastore's, which is that of the session.

    A query ends if what comes next has been cleaned, or if its table is dropped and another one has the name: start a
    query with a new checkpoint then. Raises NotKeyed for changes of a table without primary key, NoSuchObjectException,
    NotParquet, ValueError for a table of Hudi's or one without a key that Hive made, and in a session that
    `lake.spark.configure` hasn't made.
    """
    _check_session(spark, uri)
    lake = lake_table(spark, table, uri)
    schema = lake.schema()
    _check(lake.name, schema)
    if changes and schema.keyed_table() is None:
        raise NotKeyed(f"{lake.name} has no primary-key among its properties: nobody can tell which rows changed")
    reader = spark.readStream.option("timeline", "true").option("changes", str(changes).lower())
    if since is not None:
        reader = reader.option("since", _since(lake, since))
    if include_uncommitted:
        reader = reader.option("includeUnCommit", "true")
    if filter is not None:
        reader = reader.option("filter", filter)
    return reader.table(f"{quoted(lake.reference.database or '')}.{quoted(lake.reference.table or '')}")


def _since(lake: LakeTable, since: AsOf) -> str:
    """A point as the extension takes it. It isn't looked up: a query that goes on needs none, and what it names may
    have been cleaned since. Raises ValueError for a time without a zone."""
    match since:
        case datetime():
            return from_millis(to_millis(since)).isoformat()
        case int() | str():
            return str(since)
        case _:
            return str(lake.position_of(since))


def _check_session(spark: SparkSession, uri: str | None) -> None:
    """Raises ValueError for a session without the extension, and for another metastore than its own."""
    if spark.conf.get(CATALOG, "") != CATALOG_CLASS:
        raise ValueError(
            "streams are read by the extension for Spark: make the session with lake.spark.configure, or take"
            " for_each_increment"
        )
    if uri is not None and uri != metastore_uri(spark):
        raise ValueError(f"streams are read from the session's metastore {metastore_uri(spark)}, not from {uri}")


def _check(name: str, schema: Schema) -> None:
    """Raises ValueError for what the extension can't read as a stream, NotParquet."""
    if is_hudi(schema):
        raise ValueError(f"{name} is a table of Hudi's: Hudi reads its streams, spark.readStream.format('hudi')")
    check_parquet(schema.properties, schema.input_format)
    if schema.keyed_table() is None and _PROVIDER not in schema.properties:
        raise ValueError(
            f"{name} has no primary-key and is Hive's own: Spark has no streams of such tables; take for_each_increment"
        )
