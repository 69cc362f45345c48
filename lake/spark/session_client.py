"""The `LakeClient` of a Spark session. The driver keeps one per metastore, with its cache, and the session's leases.

A DataFrame doesn't say when nobody needs it any more. So what a session has read stays readable while the session
lives, at most for as many hours as its setting `spark.metastore.readerLeaseHours` says; 0 turns that off.
"""

import threading
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark.sql import SparkSession

from lake.protocol.errors import UserError
from lake.protocol.lake import TableReference
from lake.spark.jar import EXTENSION_CLASS
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.session_leases import SessionLeases

LEASE_HOURS = "spark.metastore.readerLeaseHours"
"""The setting that says for how many hours a snapshot that was read is kept."""

DEFAULT_LEASE_HOURS = 12.0


class OtherTable(UserError):
    """A query's checkpoint is of another table than the one that has its name now."""


class NoMetastore(UserError):
    """The session doesn't say where its metastore is."""


class NoExtension(UserError):
    """The session doesn't have the extension for Spark, or one of an earlier version."""


def check_extension(spark: SparkSession) -> None:
    """Raises NoExtension for a session without the extension, which reads and writes the rows of lake tables."""
    if EXTENSION_CLASS not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise NoExtension(
            "rows of lake tables are read and written by the extension for Spark, which this session doesn't have: make"
            " it with lake.spark.configure"
        )


def extension_class(spark: SparkSession, name: str) -> Any:
    """A class of the extension, by Py4J: the session has the jar, if not the extension's rules. Raises NoExtension."""
    jvm: Any = spark._jvm
    found = getattr(jvm.lake.metastore.spark, name)
    if isinstance(found, JavaPackage):
        check_extension(spark)
        raise NoExtension("the session's extension is of an earlier version than this client: give both the same")
    return found


def lake_table(spark: SparkSession, table: str | TableReference, uri: str | None) -> LakeTable:
    """The lake table of that name, on the metastore at `uri`, by default the session's.

    `table` is `table` in the current database, `database.table` or `catalog.database.table`; or a reference, with the
    id of the one table that is meant.

    Raises NoMetastore for a session without one, ValueError for a name of another form.
    """
    client = _client(uri or metastore_uri(spark))
    if isinstance(table, TableReference):
        return client.table(table)
    name = table.replace("`", "")
    if "." not in name:
        name = f"{spark.catalog.currentDatabase()}.{name}"
    return client.table(name)


def keep_readable(
    spark: SparkSession, lake: LakeTable, position: int, *, uri: str | None, changes: bool = False
) -> None:
    """Keeps cleans off the snapshot of a table at a position, and off all later ones, while the session needs them.

    With `changes`, what came and went after the position is kept, too, unless some of it is gone. Raises SnapshotGone,
    ValueError for a setting that means nothing.
    """
    leases = _leases(spark, uri or metastore_uri(spark))
    if leases is not None:
        leases.keep(lake, position, changes=changes)


_of_sessions: dict[tuple[str, str], SessionLeases] = {}
_lock = threading.Lock()


def _leases(spark: SparkSession, uri: str) -> SessionLeases | None:
    """The leases of the running application; None if its setting turns them off."""
    text = spark.conf.get(LEASE_HOURS, str(DEFAULT_LEASE_HOURS)) or ""
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours <= 8_760:
        raise ValueError(f"{LEASE_HOURS} is {text!r}: expected a number of hours from 0 on")
    if not hours:
        return None
    context = spark.sparkContext
    key = context.applicationId, uri
    with _lock:
        if key not in _of_sessions:
            for other in [each for each in _of_sessions if each[0] != context.applicationId]:
                del _of_sessions[other]  # its leases end by themselves
            _of_sessions[key] = SessionLeases(
                _client(uri).connect,
                holder=f"Spark {context.appName} {context.applicationId}"[:200],
                kept_seconds=hours * 3_600,
                is_over=lambda: context._jsc is None,
            )
        return _of_sessions[key]


@lru_cache(maxsize=16)
def _client(uri: str) -> LakeClient:
    return LakeClient(uri)


def metastore_uri(spark: SparkSession) -> str:
    """The URI of the session's metastore. Raises NoMetastore."""
    configuration = spark._jsc.hadoopConfiguration()
    found = configuration.get("hive.metastore.uris")
    if not found:
        raise NoMetastore("the session has no hive.metastore.uris: build it with lake.spark.configure, or give uri=…")
    return str(found)
