"""Starts a Spark session on a metastore, with everything Spark and its JVM print going to a file."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession


@contextmanager
def output_to(file: Path) -> Iterator[None]:
    """Points this process's stdout and stderr at `file`; processes started meanwhile keep it so."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (target, *saved):
            os.close(descriptor)


def plain_builder(uri: str, scratch: Path) -> SparkSession.Builder:
    """Of a session whose catalog is the metastore at `uri` (`thrift://HOST:PORT`), and that knows nothing more of it.

    The first two settings are all that a program of one's own needs.
    """
    return (
        SparkSession.builder.config("spark.sql.catalogImplementation", "hive")
        .config("spark.hadoop.hive.metastore.uris", uri)
        # Lets INSERT fill partitions of Hive tables by the rows' values alone.
        .config("spark.hadoop.hive.exec.dynamic.partition.mode", "nonstrict")
        .config("spark.sql.sources.partitionOverwriteMode", "dynamic")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    )


@contextmanager
def spark_session(builder: SparkSession.Builder, scratch: Path) -> Iterator[SparkSession]:
    """A local Spark session with the builder's settings; when the context ends, so has Spark's JVM.

    The settings added here keep a small machine quick and everything Spark leaves behind inside `scratch`.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    temporary = scratch / "tmp"
    temporary.mkdir(parents=True)
    builder = (
        builder.appName("metastore demo")
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(temporary))
        .config("spark.sql.artifact.copyFromLocalToFs.allowDestLocal", "true")
        .config("spark.hadoop.hive.exec.scratchdir", str(temporary / "hive"))
        .config("spark.hadoop.hive.exec.local.scratchdir", str(temporary / "hive"))
        .config("spark.hadoop.hive.downloaded.resources.dir", str(temporary / "resources"))
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={temporary}")
    )
    with output_to(scratch / "spark.log"):
        session = builder.getOrCreate()
    gateway = session.sparkContext._gateway
    try:
        yield session
    finally:
        # Stopped by its own hand: a JVM still busy when we leave would write into a directory being removed.
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=30)
