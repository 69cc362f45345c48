"""Spark sessions of both lines on the server under test: one of each for the whole run."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.session import LINES, SparkSession
from tests.support.target import Target

NUMBERS = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)


def require(line: str) -> None:
    """Skips the test where a Spark line or Java is missing."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java (Debian: apt-get install openjdk-17-jre-headless)")
    if not LINES[line].exists():
        pytest.skip(f"PySpark {line} is not set up: tools/setup.sh --spark35")


@pytest.fixture(scope="session")
def spark_session(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], SparkSession]]:
    """The session of a line, by its name; started when first asked for, the same one ever after."""
    sessions: dict[str, SparkSession] = {}

    def session(line: str) -> SparkSession:
        require(line)
        if line not in sessions:
            directory = tmp_path_factory.mktemp(f"spark-{line}")
            sessions[line] = SparkSession(
                line, f"thrift://{target.host}:{target.port}", str(target.warehouse()), directory
            )
        return sessions[line]

    yield session
    for started in sessions.values():
        started.close()


@pytest.fixture(scope="session", params=list(LINES), ids=lambda line: f"spark{line}")
def spark(request: pytest.FixtureRequest, spark_session: Callable[[str], SparkSession]) -> SparkSession:
    """A session of each Spark line."""
    return spark_session(request.param)


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    """A database of the test's own, the session's current one; dropped afterwards."""
    name = f"spark_{next(NUMBERS)}"
    spark.sql(f"CREATE DATABASE {name}")
    spark.sql(f"USE {name}")
    yield name
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")
