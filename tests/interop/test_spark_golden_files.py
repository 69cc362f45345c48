"""Spark's own queries, with the answers and the analysed plans that its build has on file, beside the extension.

Once the session has the extension alone, beside Spark's catalog in memory: all answers and plans must be Spark's. Once
it is set up as `configure` does it, with our catalog and a server: answers are compared, plans name the catalog. Names
of tests are Spark's names of files. With `--target hive` Spark runs without the extension, as a control.
"""

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lake.spark import jar
from lake.spark.configuration import settings
from lake.spark.jar import EXTENSION_CLASS
from tests.interop import scala_suites, suites
from tests.interop.test_spark_lake_suite import JARS, VERSION
from tests.spark.session import ROOT, spark_of
from tests.support.server import MetastoreServer

SOURCES = Path(__file__).with_name("spark_golden_scala")
EXCLUSIONS = Path(__file__).with_name("spark_golden_exclusions.tsv")
SPARKS = "org.apache.spark.sql.lake.ExtensionQueries"
OURS = "org.apache.spark.sql.lake.LakeQueries"
TESTS = {SPARKS: 801, OURS: 801}
SECONDS = 5400
RESOURCES = "sql/core/src/test/resources"


class Suite:
    """A class path with Spark's tests and the extension, and the files that they read."""

    def __init__(self, program: Path, jars: list[Path], directory: Path) -> None:
        self._program = program
        self._directory = directory
        self.extension = directory / "extension.jar"
        classes = directory / "classes"
        scala_suites.compile(program, SOURCES, jars, classes)
        jar.build(ROOT / "spark_extension/src", spark_of("3.5"), self.extension)
        self._jars = [classes, self.extension, *jars]
        self.tests = next(each for each in jars if each.name == f"spark-sql_2.13-{VERSION}-tests.jar")

    def outcomes(self, name: str, properties: Mapping[str, str]) -> list[suites.Outcome]:
        """What became of the tests of a class under these settings."""
        directory = self._directory / name.rpartition(".")[2]
        temporary = directory / "tmp"
        temporary.mkdir(parents=True)
        with zipfile.ZipFile(self.tests) as archive:
            names = archive.namelist()
            archive.extractall(directory, [each for each in names if each.startswith("test-data/")])
            archive.extractall(directory / RESOURCES, [each for each in names if each.startswith("sql-tests/")])
        given = {"java.io.tmpdir": str(temporary), "spark.ui.enabled": "false", **properties}
        found = scala_suites.outcomes(self._program, self._jars, directory, [name], given, seconds=SECONDS)
        log = directory / "suite.log"
        assert name in found, f"{name} did not run to its end: {log.read_text(errors='replace')[-3000:]}"
        return found[name]


@pytest.fixture(scope="module")
def suite(class_path: Callable[..., list[Path]], tmp_path_factory: pytest.TempPathFactory) -> Suite:
    program = scala_suites.program()
    jars = class_path(*JARS, exclusions=scala_suites.NOT_THESE)
    return Suite(program, jars, tmp_path_factory.mktemp("spark-golden-files"))


@pytest.mark.timeout(SECONDS + 300)
def test_the_extension_changes_no_answer_and_no_plan(suite: Suite, request: pytest.FixtureRequest) -> None:
    properties = {} if suites.control(request) else {"spark.sql.extensions": EXTENSION_CLASS}
    _judge(request, SPARKS, suite.outcomes(SPARKS, properties))


@pytest.mark.timeout(SECONDS + 300)
def test_the_catalog_changes_no_answer(suite: Suite, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    warehouse = tmp_path / OURS  # the suite leaves what is below a directory of this name out of its comparisons
    warehouse.mkdir()
    options = ("--warehouse-dir", f"file:{warehouse}", "--delete-roots", str(tmp_path))
    with MetastoreServer(tmp_path / "server", *options) as server:
        properties = {**settings(server.uri, suite.extension), "spark.sql.warehouse.dir": str(warehouse)}
        _judge(request, OURS, suite.outcomes(OURS, properties))


def _judge(request: pytest.FixtureRequest, name: str, found: list[suites.Outcome]) -> None:
    excluded = suites.exclusions(EXCLUSIONS).get(name.rpartition(".")[2], [])
    suites.judge(request, name, found, TESTS[name], excluded)
