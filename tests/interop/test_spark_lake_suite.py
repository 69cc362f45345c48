"""Spark's own tests for other sources, and of its commands on tables, on keyed tables and tables with a timeline.

They are classes that a source extends: spark_lake_scala has ours, and says what it replaces. A group of classes shares
a JVM with the extension, and a server. `Plain…` tables have no key, `Keyed…` ones have one; `Merged…` ones, and the
keyed ones of inserts, have log files, and keys that are unique in a partition. Many tests of single rows look into a
table in memory afterwards: here they pass if the rows that they read before were right.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lake.spark import jar
from lake.spark.configuration import settings
from tests.interop import scala_suites, suites
from tests.spark.session import ROOT, spark_of
from tests.support.server import MetastoreServer

VERSION = "4.2.0"
JARS = [*scala_suites.jars(VERSION), "org.scala-lang:scala-compiler:2.13.16"]
SOURCES = Path(__file__).with_name("spark_lake_scala")
EXCLUSIONS = Path(__file__).with_name("spark_lake_exclusions.tsv")
PACKAGE = "org.apache.spark.sql.lake"
#: How many tests each class has, by group.
GROUPS = {
    "rows": {
        "PlainSqlInserts": 28,
        "PlainDataFrameInserts": 28,
        "KeyedSqlInserts": 28,
        "KeyedDataFrameInserts": 28,
        "PlainPartitionDeletes": 8,
        "KeyedPartitionDeletes": 8,
        "KeyedDeletes": 34,
        "KeyedUpdates": 40,
        "KeyedMerges": 68,
        "KeyedDataFrameMerges": 44,
    },
    "merged rows": {
        "MergedDeletes": 34,
        "MergedUpdates": 40,
        "MergedMerges": 68,
    },
    "definitions": {
        "KeyedColumns": 71,
        "KeyedAlterTableAddColumns": 1,
        "KeyedAlterTableAddPartition": 18,
        "KeyedAlterTableClusterBy": 8,
        "KeyedAlterTableDropColumn": 1,
        "KeyedAlterTableDropPartition": 18,
        "KeyedAlterTableRecoverPartitions": 5,
        "KeyedAlterTableRenameColumn": 1,
        "KeyedAlterTableRenamePartition": 13,
        "KeyedAlterTableRename": 11,
        "KeyedAlterTableSetLocation": 3,
        "KeyedAlterTableSetSerde": 2,
        "KeyedAlterTableSetTblProperties": 3,
        "KeyedAlterTableUnsetTblProperties": 4,
        "KeyedCreateTableClusterBy": 8,
        "KeyedDescribeTable": 68,
        "KeyedDropTable": 7,
        "KeyedMsckRepairTable": 2,
        "KeyedShowColumns": 4,
        "KeyedShowCreateTable": 30,
        "KeyedShowPartitions": 14,
        "KeyedShowTables": 46,
        "KeyedShowTblProperties": 14,
        "KeyedTruncateTable": 15,
    },
    "definitions without a key": {
        "PlainAlterTableAddPartition": 18,
        "PlainAlterTableDropPartition": 18,
        "PlainAlterTableRecoverPartitions": 5,
        "PlainAlterTableRenamePartition": 13,
        "PlainAlterTableRename": 11,
        "PlainAlterTableSetLocation": 3,
        "PlainDropTable": 7,
        "PlainMsckRepairTable": 2,
        "PlainShowPartitions": 14,
        "PlainTruncateTable": 15,
    },
}
CLASSES = {name: group for group, names in GROUPS.items() for name in names}


class Suite:
    """Runs groups of classes, each once, and of a group only the classes that are wanted."""

    def __init__(self, program: Path, jars: list[Path], directory: Path, wanted: list[str]) -> None:
        self._program = program
        self._jars = jars
        self._directory = directory
        self._wanted = wanted
        self._outcomes: dict[str, dict[str, list[suites.Outcome]]] = {}
        self._classes, self._extension = directory / "classes", directory / "extension.jar"
        scala_suites.compile(program, SOURCES, jars, self._classes)
        jar.build(ROOT / "spark_extension/src", spark_of("3.5"), self._extension)

    def outcomes(self, name: str) -> list[suites.Outcome]:
        """What became of the tests of a class."""
        group = CLASSES[name]
        if group not in self._outcomes:
            self._outcomes[group] = {}
            self._outcomes[group] = self._run(group)
        log = self._directory / group / "suite.log"
        found = self._outcomes[group].get(f"{PACKAGE}.{name}")
        assert found, f"{name} did not run to its end: {log.read_text(errors='replace')[-3000:]}"
        return found

    def _run(self, group: str) -> dict[str, list[suites.Outcome]]:
        directory = self._directory / group
        warehouse, temporary = directory / "warehouse", directory / "tmp"
        warehouse.mkdir(parents=True)
        temporary.mkdir()
        names = [f"{PACKAGE}.{name}" for name in GROUPS[group] if name in self._wanted]
        options = ("--warehouse-dir", f"file:{warehouse}", "--delete-roots", str(temporary))
        with MetastoreServer(directory / "server", *options) as server:
            properties = {
                **settings(server.uri, self._extension),
                "spark.master": "local[2]",
                "spark.sql.warehouse.dir": str(warehouse),
                "spark.sql.shuffle.partitions": "2",
                "spark.ui.enabled": "false",
                "java.io.tmpdir": str(temporary),
            }
            path = [self._classes, self._extension, *self._jars]
            found = scala_suites.outcomes(self._program, path, directory, names, properties)
        shutil.rmtree(warehouse)
        return found


@pytest.fixture(scope="module")
def suite(
    class_path: Callable[..., list[Path]], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Suite:
    program = scala_suites.program()
    jars = class_path(*JARS, exclusions=scala_suites.NOT_THESE)
    items = [each for each in request.session.items if each.path == request.path and hasattr(each, "callspec")]
    wanted = [each.callspec.params["name"] for each in items]
    return Suite(program, jars, tmp_path_factory.mktemp("spark-lake-suite"), wanted)


@pytest.mark.parametrize("name", CLASSES)
def test_class(name: str, suite: Suite, request: pytest.FixtureRequest) -> None:
    excluded = suites.exclusions(EXCLUSIONS).get(name, [])
    suites.judge(request, f"{PACKAGE}.{name}", suite.outcomes(name), GROUPS[CLASSES[name]][name], excluded)


def test_exclusions_are_of_classes_that_run() -> None:
    assert set(suites.exclusions(EXCLUSIONS)) <= set(CLASSES)
