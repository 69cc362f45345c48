"""The `LakeClient` of a Spark session. The driver keeps one per metastore, with its cache."""

from functools import lru_cache

from pyspark.sql import SparkSession

from metastore.client.lake import LakeClient, LakeTable
from metastore.errors import UserError


class NoMetastore(UserError):
    """The session doesn't say where its metastore is."""


def lake_table(spark: SparkSession, table: str, uri: str | None) -> LakeTable:
    """The lake table of that name, on the metastore at `uri`, by default the session's.

    `table` is `table` in the current database, `database.table` or `catalog.database.table`.

    Raises NoMetastore for a session without one, ValueError for a name of another form.
    """
    name = table.replace("`", "")
    if "." not in name:
        name = f"{spark.catalog.currentDatabase()}.{name}"
    return _client(uri or metastore_uri(spark)).table(name)


@lru_cache(maxsize=16)
def _client(uri: str) -> LakeClient:
    return LakeClient(uri)


def metastore_uri(spark: SparkSession) -> str:
    """The URI of the session's metastore. Raises NoMetastore."""
    configuration = spark._jsc.hadoopConfiguration()
    found = configuration.get("hive.metastore.uris")
    if not found:
        raise NoMetastore(
            "the session has no hive.metastore.uris: build it with metastore.spark.configure, or give uri=…"
        )
    return str(found)
