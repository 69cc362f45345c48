"""The metastore of a Spark session, as a client that the driver keeps: what it remembers is asked for once."""

from functools import lru_cache

from pyspark.sql import SparkSession

from metastore.client.lake import LakeClient, LakeTable
from metastore.errors import UserError


class NoMetastore(UserError):
    """The session doesn't say where its metastore is."""


def lake_table(spark: SparkSession, table: str, uri: str | None) -> LakeTable:
    """`table` of the current database, `database.table` or `catalog.database.table`, on the metastore at `uri`, by
    default the session's.

    Raises NoMetastore for a session without one, ValueError for a name of another form.
    """
    name = table.replace("`", "")
    if "." not in name:
        name = f"{spark.catalog.currentDatabase()}.{name}"
    return _client(uri or _uri(spark)).table(name)


@lru_cache(maxsize=16)
def _client(uri: str) -> LakeClient:
    return LakeClient(uri)


def _uri(spark: SparkSession) -> str:
    configuration = spark._jsc.hadoopConfiguration()
    found = configuration.get("hive.metastore.uris")
    if not found:
        raise NoMetastore(
            "the session has no hive.metastore.uris: build it with metastore.spark.configure, or give uri=…"
        )
    return str(found)
