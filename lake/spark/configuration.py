"""The settings of a Spark session on this metastore."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lake.protocol.errors import UserError
from lake.spark.jar import CATALOG_CLASS, EXTENSION_CLASS, ExtensionNotBuilt, extension_jar, spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Spark's settings that are lists; what is there already stays.
_LISTS = ("spark.sql.extensions", "spark.jars")
_WAREHOUSE = "spark.sql.warehouse.dir"

#: Spark's setting of the catalog that its own tables are in.
CATALOG = "spark.sql.catalog.spark_catalog"

#: How many compiled classes Spark keeps. Three layers have 240; with Spark's 100, each refresh compiles all again.
CODE_CACHE = "spark.sql.codegen.cache.maxEntries"
KEPT_CLASSES = 2_000


class SessionRunning(UserError):
    """A session exists already, and settings that it needs at its start can't be added."""


def configure(
    builder: SparkSession.Builder,
    uri: str,
    *,
    warehouse_dir: str | None = None,
    keep_listings: bool = False,
    trust_store: str | None = None,
    trust_store_password: str | None = None,
    kerberos_principal: str | None = None,
) -> SparkSession.Builder:
    """Makes `builder` build sessions on the metastore at `uri`, with the hint `includeUnCommit`; returns it.

    `uri` is `thrift://host:port`, or several with commas. `warehouse_dir` is where Spark puts new databases; by default
    that of the builder, else that of the server. With `keep_listings` Spark keeps lists of partitions' files until
    REFRESH TABLE, which is quicker and doesn't see what other writers add (see docs/spark.md). With `trust_store`, a
    keystore of Java's with the server's authority, Spark encrypts its calls; with `kerberos_principal`, the server's,
    it logs in with the tickets of `kinit`, and messages are encrypted. This module's own calls log in as the
    environment says (see docs/security.md). `settings` lists what is set; other settings of the builder stay.

    Raises SessionRunning if a session is running without the extension, ExtensionNotBuilt if there is no jar and none
    can be built, UserError if the server doesn't answer.
    """
    given: dict[str, Any] = builder._options
    wanted = settings(uri, extension_jar(), keep_listings=keep_listings)
    if trust_store is not None:
        wanted |= tls_settings(trust_store, trust_store_password)
    if kerberos_principal is not None:
        wanted |= kerberos_settings(kerberos_principal)
    _use_running_jvm(wanted["spark.jars"])
    for key in (CODE_CACHE, CATALOG):
        if _is_set(key, given):
            del wanted[key]
    for key, value in wanted.items():
        if key in _LISTS:
            value = _joined(str(given.get(key) or _configured(key)), value)
        builder.config(key, value)
    if warehouse_dir or not _is_set(_WAREHOUSE, given):
        builder.config(_WAREHOUSE, warehouse_dir or _server_warehouse(uri))
    return builder


def settings(uri: str, jar: Path | str, *, keep_listings: bool = False) -> dict[str, str]:
    """Spark's settings for the metastore at `uri`, as `configure` makes them."""
    chosen = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.sql.extensions": EXTENSION_CLASS,
        CATALOG: CATALOG_CLASS,
        "spark.jars": str(jar),
        # The default, static, removes the files of partitions that Spark isn't shown and leaves their entries.
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        # Partitions come from the metastore; else Spark takes every directory for one.
        "spark.sql.hive.manageFilesourcePartitions": "true",
        CODE_CACHE: str(KEPT_CLASSES),
    }
    if not keep_listings:
        chosen["spark.sql.hive.filesourcePartitionFileCacheSize"] = "0"
    return chosen


def tls_settings(trust_store: str, password: str | None) -> dict[str, str]:
    """Spark's settings to encrypt its calls to the metastore. `trust_store`: a keystore of Java's."""
    chosen = {
        "spark.hadoop.hive.metastore.use.SSL": "true",
        "spark.hadoop.hive.metastore.truststore.path": trust_store,
    }
    if password is not None:
        chosen["spark.hadoop.hive.metastore.truststore.password"] = password
    return chosen


def kerberos_settings(principal: str) -> dict[str, str]:
    """Spark's settings to log in to the metastore by Kerberos. `principal`: the server's, `service/_HOST@REALM`.

    That users have tickets at all, Hadoop reads in core-site.xml alone (`hadoop.security.authentication`): Spark has
    looked who its user is before it knows its own settings.
    """
    return {
        "spark.hadoop.hadoop.rpc.protection": "privacy",
        "spark.hadoop.hive.metastore.sasl.enabled": "true",
        "spark.hadoop.hive.metastore.kerberos.principal": principal,
    }


def _joined(present: str, added: str) -> str:
    """A list with commas, with one entry more unless it has it."""
    entries = [entry.strip() for entry in present.split(",") if entry.strip()]
    return ",".join([*entries, added] if added not in entries else entries)


def _is_set(key: str, given: Mapping[str, Any]) -> bool:
    """Whether the builder, whose settings are `given`, or Spark's own files say something about a setting."""
    return key in given or bool(_configured(key))


def _configured(key: str) -> str:
    """What Spark's own files, or `spark-submit`, say about a setting; empty if nothing."""
    if (context := _running()) is not None:
        return str(context._jvm.java.lang.System.getProperty(key) or "")
    directory = os.environ.get("SPARK_CONF_DIR")
    file = (Path(directory) if directory else spark_home() / "conf") / "spark-defaults.conf"
    if not file.exists():
        return ""
    found = re.findall(rf"^[ \t]*{re.escape(key)}[ \t]*[ \t=:][ \t]*(.*?)[ \t]*$", file.read_text(), re.MULTILINE)
    return str(found[-1]) if found else ""


def _running() -> Any:
    """PySpark's SparkContext class if it has a JVM, None if not."""
    from pyspark import SparkContext

    if "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()  # spark-submit started the JVM and this program
    return SparkContext if getattr(SparkContext, "_gateway", None) is not None else None


def _use_running_jvm(jar: str) -> None:
    """Prepares a JVM that is running for a session with the jar: jars named later don't reach its class loader."""
    if (context := _running()) is None:
        return
    if (active := context._active_spark_context) is not None:
        if EXTENSION_CLASS in str(active.getConf().get("spark.sql.extensions", "")):
            return
        raise SessionRunning("a Spark session is running without the metastore's extension: stop it before configure()")
    loader = context._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL(context._jvm.java.io.File(jar).toURI().toURL())


def _server_warehouse(uris: str) -> str:
    """Where the server puts new databases."""
    from thrift.Thrift import TException
    from thrift.transport.TTransport import TTransportException

    from lake.protocol.connection.thrift_client import ThriftClient

    for uri in uris.split(","):
        try:
            with ThriftClient.from_uri(uri.strip(), timeout=30) as client:
                return str(client.get_config_value("hive.metastore.warehouse.dir", ""))
        except ValueError as error:
            raise UserError(str(error)) from None
        except TTransportException:
            continue
        except TException as error:
            raise UserError(f"{uri}: {error}") from None
    raise UserError(f"no metastore answers at {uris}")


__all__ = ["ExtensionNotBuilt", "SessionRunning", "configure", "settings"]
