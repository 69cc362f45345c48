"""Spark's own tests of inserts for other sources, unchanged, on lake tables of ours in a session with the extension.

They are classes that a source extends: lake_suite_scala has ours. One JVM and one server run all of them. Those of
deletes and of altered tables want another provider, or what Spark's own tables don't do either.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lake.spark import jar
from lake.spark.configuration import settings
from tests.interop import java, scala_suites, suites
from tests.spark.session import LINES, ROOT
from tests.support.server import MetastoreServer

VERSION = "4.2.0"
JARS = [
    f"org.apache.spark:spark-hive_2.13:{VERSION}",
    *(f"org.apache.spark:spark-{part}_2.13:{VERSION}:tests" for part in ("sql", "catalyst", "core", "tags")),
    *(f"org.apache.spark:spark-{part}_2.13:{VERSION}:tests" for part in ("common-utils", "sql-api")),
    "org.scala-lang:scala-compiler:2.13.16",
    # What its build tests with.
    "org.scalatest:scalatest_2.13:3.2.19",
    "org.scalatestplus:scalacheck-1-18_2.13:3.2.19.0",
    "org.scalatestplus:mockito-5-12_2.13:3.2.19.0",
    "org.mockito:mockito-core:5.12.0",
]
#: Only Spark's build has it.
NOT_THESE = ("org.apache.spark:spark-connect-shims_2.13",)
SOURCES = Path(__file__).with_name("lake_suite_scala")
PACKAGE = "lake.suites"
#: How many tests each class has.
CLASSES = {"SqlInserts": 28, "DataFrameInserts": 28}


@pytest.fixture(scope="module")
def found(
    class_path: Callable[..., list[Path]], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, list[suites.Outcome]]]:
    """What became of the tests, by class."""
    program = java.jdk(17, 24)
    if program is None:
        pytest.skip("Spark's tests need a JDK 17 (Debian: apt-get install openjdk-17-jdk-headless)")
    jars = class_path(*JARS, exclusions=NOT_THESE)
    directory = tmp_path_factory.mktemp("lake-suite")
    classes, extension, warehouse = directory / "classes", directory / "extension.jar", directory / "warehouse"
    scala_suites.compile(program, SOURCES, jars, classes)
    (package,) = LINES["3.5"].parents[1].glob("lib/python*/site-packages/pyspark")
    jar.build(ROOT / "spark_extension/src", package, extension)
    warehouse.mkdir()
    names = [each.callspec.params["name"] for each in request.session.items if each.path == request.path]
    with MetastoreServer(directory / "server", "--warehouse-dir", f"file:{warehouse}") as server:
        properties = {
            **settings(server.uri, extension),
            "spark.master": "local[2]",
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "java.io.tmpdir": str(directory),
        }
        names = [f"{PACKAGE}.{name}" for name in names]
        yield scala_suites.outcomes(program, [classes, extension, *jars], directory, names, properties)
    shutil.rmtree(warehouse)


@pytest.mark.parametrize("name", CLASSES)
def test_class(name: str, found: dict[str, list[suites.Outcome]], request: pytest.FixtureRequest) -> None:
    outcomes = found.get(f"{PACKAGE}.{name}")
    assert outcomes, f"{name} did not run to its end: see suite.log"
    suites.judge(request, f"{PACKAGE}.{name}", outcomes, CLASSES[name])
