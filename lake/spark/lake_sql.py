"""SQL over lake tables: all of those that a query names are read as of one moment.

The extension for Spark reads them so while it analyses the query; nothing is done to the query's text.
"""

from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from lake.client.lake_types import Moment
from lake.spark.configuration import CATALOG
from lake.spark.jar import CATALOG_CLASS
from lake.spark.keyed import extension
from lake.spark.session_client import NoExtension, check_extension, metastore_uri


def sql(
    spark: SparkSession,
    query: str,
    *,
    as_of: Moment | datetime | None = None,
    include_uncommitted: bool = False,
    uri: str | None = None,
) -> DataFrame:
    """The result of a query in Spark's SQL, for which all lake tables are read as of one moment, by default now.

    Lake tables are those with completed instants, and keyed tables; in views, too. All others are read by Spark's own
    catalog, and what `read` has returned stays what it is. `as_of` is a `Moment`, or a time with its zone. Uncommitted
    partitions of lake tables are hidden unless `include_uncommitted`. `uri` is the metastore's, which is that of the
    session. What is read is decided by this call, and kept by a lease, as by `read`.

    Raises NoExtension in a session that `configure` hasn't made; ValueError for what isn't one query, another metastore
    than the session's, or another `as_of`: instants and positions are of one table. Further: SnapshotGone, and Spark's
    exceptions, also for a table of another system that has a timeline, such as Hudi's, and for VERSION AS OF.
    """
    if as_of is not None and not isinstance(as_of, Moment | datetime):
        raise ValueError(f"as_of={as_of!r} is of one table: give a Moment or a time, which hold for all")
    if isinstance(as_of, datetime) and as_of.tzinfo is not None and as_of > datetime.now(UTC):
        raise ValueError(f"as_of={as_of} is in the future: what will be there then isn't known")
    if uri is not None and uri != metastore_uri(spark):
        raise ValueError(f"queries read the tables of the session's metastore {metastore_uri(spark)}, not of {uri}")
    check_extension(spark)
    if spark.conf.get(CATALOG, "") != CATALOG_CLASS:
        raise NoExtension(f"this session can't read lake tables in SQL: set {CATALOG}={CATALOG_CLASS}")
    return extension.query_rows(spark, query, as_of, include_uncommitted=include_uncommitted)
