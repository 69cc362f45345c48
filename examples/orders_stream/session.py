"""The Spark session of a job."""

import os
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession
from thrift.transport.TTransport import TTransportException

from examples.orders_stream.table import TIME_ZONE
from lake.client.reconnecting import ReconnectingClient, connect_to
from lake.protocol.errors import UserError
from lake.spark import configure


def start_session(
    name: str,
    uri: str,
    *,
    master: str = "local[2]",
    packages: str | None = None,
    settings: Sequence[str] = (),
    retry_seconds: float = 10.0,
) -> SparkSession:
    """A session whose catalog is the metastore at `uri`.

    `master` is Spark's, `packages` are Maven coordinates to load, `settings` are further ones of Spark's, each
    `name=value`. `retry_seconds` is how long a metastore that is away is waited for.
    Raises UserError for a setting or URI of another form, and if no metastore answers.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if master.startswith("local"):  # else Spark would run functions by the python3 of the PATH, without our packages
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with ReconnectingClient(connect_to(uri), retry_seconds=retry_seconds) as metastore:
            warehouse = metastore.call(lambda client: client.get_config_value("hive.metastore.warehouse.dir", ""))
    except ValueError as error:
        raise UserError(str(error)) from None
    except (TTransportException, OSError):
        raise UserError(f"no metastore answers at {uri}") from None
    builder = (
        configure(SparkSession.builder.appName(name).master(master), uri, warehouse_dir=warehouse)
        .config("spark.sql.session.timeZone", TIME_ZONE)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    if packages:
        builder = builder.config("spark.jars.packages", packages)
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise UserError(f"{setting!r} is not of the form name=value")
        builder = builder.config(key.strip(), value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
