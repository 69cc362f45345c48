"""A session of each Spark line with the extension, as `lake.spark.configure` makes it."""

import itertools
import os
import socket
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.session import LINES, SparkSession, mark_spark_tests
from tests.spark_extension.lake import Lake
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
DIFFERING = ("test_pruning.py::test_statements_skip_them_too", "test_pruning.py::test_changes_skip_partitions")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The jar is the same for both lines: on the older one a tenth of the tests does, and more where the lines differ.
    mark_spark_tests(
        items,
        Path(__file__).parent,
        on_older_line=lambda test: zlib.crc32(test.encode()) % 10 == 0 or test.endswith(DIFFERING),
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def lake(metastore_server: MetastoreServer) -> Lake:
    return Lake(metastore_server)


@pytest.fixture(scope="session", params=list(LINES), ids=lambda line: f"spark{line}")
def spark(request: pytest.FixtureRequest, hinting_session: Callable[[str], SparkSession]) -> SparkSession:
    """A session of each Spark line, with the extension."""
    return hinting_session(request.param)


@pytest.fixture
def static(spark: SparkSession) -> Iterator[None]:
    """Spark's default, which `configure` changes."""
    spark.sql("SET spark.sql.sources.partitionOverwriteMode = static")
    yield
    spark.sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    """A database of the test's own, the session's current one; dropped afterwards."""
    name = f"hint_{next(NUMBERS)}"
    spark.sql(f"CREATE DATABASE {name}")
    spark.sql(f"USE {name}")
    yield name
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")


@pytest.fixture(scope="session")
def readable(spark: SparkSession, lake: Lake) -> str:
    """A database of tables that tests only read, each with a ready and an uncommitted partition.

    In the ready one `id` is 1 and 2, in the other 10. The session's current database has to be named.
    """
    name = f"readable_{spark.line.replace('.', '')}"
    spark.sql(f"CREATE DATABASE {name}")
    for table, layout in LAYOUTS.items():
        spark.sql(f"CREATE TABLE {name}.{table} {layout}")
        fill(spark, lake, name, table)
    spark.sql(f"CREATE VIEW {name}.seen AS SELECT id, v FROM {name}.source")
    spark.sql(f"CREATE VIEW {name}.seen_with AS WITH c AS (SELECT * FROM {name}.source) SELECT id FROM c")
    spark.sql(f"CREATE VIEW {name}.hinted AS SELECT /*+ includeUnCommit=true */ id FROM {name}.source")
    return name


#: A table of a data source, and Hive's: read by Spark's own reader, and by Hive's serde.
LAYOUTS = {
    "source": "(id INT, v STRING, dt STRING) USING parquet PARTITIONED BY (dt)",
    "hive": "(id INT, v STRING) PARTITIONED BY (dt STRING) STORED AS PARQUET",
    "serde": "(id INT, v STRING) PARTITIONED BY (dt STRING) STORED AS TEXTFILE",
}


def fill(spark: SparkSession, lake: Lake, database: str, table: str) -> None:
    spark.sql(f"INSERT INTO {database}.{table} PARTITION (dt = 'ready') VALUES (1, 'r'), (2, 'r')")
    spark.sql(f"INSERT INTO {database}.{table} PARTITION (dt = 'open') VALUES (10, 'o')")
    lake.reopen(database, table, "dt=open")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Jars that are built go into a directory of the tests."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before
