"""Spark on a metastore of its own, for benchmarks of layers."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from lake.spark import configure
from tests.support.server import MetastoreServer

MEMORY = "6g"


@contextmanager
def spark_on_server(further: Mapping[str, str]) -> Iterator[tuple[SparkSession, Path]]:
    """A session of Spark on a server of its own, and their directory. `further`: more settings."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        home = Path(directory)
        with MetastoreServer(home / "data", "--log-level", "warning") as server:
            builder = SparkSession.builder.appName("bench").master("local[2]")
            settings = {
                "spark.driver.memory": MEMORY,
                "spark.sql.shuffle.partitions": "8",
                "spark.local.dir": str(home / "scratch"),
                "spark.sql.warehouse.dir": str(home / "warehouse"),
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.sql.session.timeZone": "UTC",
                **further,
            }
            for key, value in settings.items():
                builder = builder.config(key, value)
            spark = configure(builder, server.uri).getOrCreate()
            spark.sparkContext.setLogLevel("ERROR")
            try:
                yield spark, home
            finally:
                spark.stop()
