"""Spark's own tests of its Hive catalog and of the commands on it, unchanged, against our server.

A group of classes shares a JVM, as they do in Spark's build, and a server that nobody used before. Two things make them
meet it: `hive.metastore.uris`, and the replaced object `TestHiveContext`, which tells where the server has its
warehouse. With `--target hive` neither is there, and Spark runs Hive's server within itself, as a control.
"""

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from tests.interop import java, scala_suites, suites
from tests.support.server import MetastoreServer

VERSION = "4.0.1"
JARS = [*scala_suites.jars(VERSION), "org.apache.hive:hive-llap-common:2.3.10", "junit:junit:4.13.2"]
SOURCES = Path(__file__).with_name("spark_suite_java")
PACKAGE = "org.apache.spark.sql.hive"
#: How many tests each class has, by group.
GROUPS = {
    "catalog": {
        "HiveExternalCatalogSuite": 82,
        "HiveExternalSessionCatalogSuite": 91,
    },
    "definitions": {
        "execution.HiveDDLSuite": 233,
    },
    "namespaces": {
        "execution.command.AlterNamespaceSetLocationSuite": 6,
        "execution.command.AlterNamespaceSetPropertiesSuite": 8,
        "execution.command.AlterNamespaceUnsetPropertiesSuite": 6,
        "execution.command.CreateNamespaceSuite": 12,
        "execution.command.DescribeNamespaceSuite": 6,
        "execution.command.DropNamespaceSuite": 16,
        "execution.command.ShowColumnsSuite": 4,
        "execution.command.ShowCreateTableSuite": 60,
        "execution.command.ShowFunctionsSuite": 16,
        "execution.command.ShowNamespacesSuite": 12,
        "execution.command.ShowPartitionsSuite": 12,
        "execution.command.ShowTablesSuite": 46,
        "execution.command.ShowTblPropertiesSuite": 14,
    },
    "tables": {
        "execution.command.AlterTableAddColumnsSuite": 2,
        "execution.command.AlterTableAddPartitionSuite": 19,
        "execution.command.AlterTableClusterBySuite": 8,
        "execution.command.AlterTableDropColumnSuite": 1,
        "execution.command.AlterTableDropPartitionSuite": 19,
        "execution.command.AlterTableRecoverPartitionsSuite": 5,
        "execution.command.AlterTableRenameColumnSuite": 1,
        "execution.command.AlterTableRenamePartitionSuite": 14,
        "execution.command.AlterTableRenameSuite": 11,
        "execution.command.AlterTableSetLocationSuite": 3,
        "execution.command.AlterTableSetSerdeSuite": 2,
        "execution.command.AlterTableSetTblPropertiesSuite": 3,
        "execution.command.AlterTableUnsetTblPropertiesSuite": 4,
        "execution.command.CreateTableClusterBySuite": 8,
        "execution.command.DescribeTableSuite": 64,
        "execution.command.DropTableSuite": 7,
        "execution.command.MsckRepairTableSuite": 2,
        "execution.command.TruncateTableSuite": 14,
        "execution.command.V1WriteHiveCommandSuite": 5,
    },
    "partitions": {
        "HiveMetadataCacheSuite": 4,
        "HiveMetastoreCatalogSuite": 6,
        "HiveSchemaInferenceSuite": 7,
        "ListTablesSuite": 2,
        "MultiDatabaseSuite": 13,
        "PartitionProviderCompatibilitySuite": 25,
        "PartitionedTablePerfStatsSuite": 18,
        "QueryPartitionSuite": 2,
        "execution.PruneHiveTablePartitionsSuite": 9,
    },
}
#: Where the class path has the rows of the tables that tests share, and the schemas that tests name by their files.
FILES = ("data/files/", "schemaWith")
CLASSES = {name: group for group, names in GROUPS.items() for name in names}


class Suite:
    """Runs groups of classes, each once, and of a group only the classes that are wanted."""

    def __init__(
        self, program: Path, class_path: list[Path], directory: Path, wanted: list[str], *, control: bool
    ) -> None:
        self._program = program
        self._class_path = class_path
        self._directory = directory
        self._wanted = wanted
        self._control = control
        self._outcomes: dict[str, dict[str, list[suites.Outcome]]] = {}

    def outcomes(self, name: str) -> list[suites.Outcome]:
        """What became of the tests of a class."""
        group = CLASSES[name]
        if group not in self._outcomes:
            self._outcomes[group] = {}
            self._outcomes[group] = self._run(group)
        found = self._outcomes[group].get(f"{PACKAGE}.{name}")
        log = self._directory / group / "suite.log"
        assert found, f"{name} did not run to its end: {log.read_text(errors='replace')[-3000:]}"
        return found

    def _run(self, group: str) -> dict[str, list[suites.Outcome]]:
        directory = self._directory / group
        warehouse, temporary = directory / "warehouse", directory / "tmp"
        warehouse.mkdir(parents=True)
        temporary.mkdir()
        self._extract_files(directory)
        if self._control:
            return self._run_with(group, [], {"java.io.tmpdir": str(temporary)})
        classes = directory / "classes"
        java.compile(self._program, SOURCES, self._class_path, classes)
        # As Hive says where its warehouse is, and as Spark sets up its own metastore.
        # Tests rename partitions below the temporary directory: Hive moves data everywhere.
        options = ("--warehouse-dir", f"file:{warehouse}", "--allow-incompatible-column-types")
        with MetastoreServer(directory / "server", *options, "--delete-roots", str(temporary)) as server:
            settings = {
                "hive.in.test": "true",
                "hive.metastore.uris": server.uri,
                "hive.metastore.warehouse.dir": f"file:{warehouse}",
            }
            (directory / "hive-site.xml").write_text(_site(settings))
            properties = {
                "java.io.tmpdir": str(temporary),
                "interop.warehouse": str(warehouse),
                "spark.hadoop.hive.metastore.uris": server.uri,
            }
            return self._run_with(group, [classes], properties)

    def _extract_files(self, directory: Path) -> None:
        """Puts the files that tests name where they are found: LOAD DATA and Avro's serde read none out of a jar."""
        (jar,) = (each for each in self._class_path if each.name == f"spark-hive_2.13-{VERSION}-tests.jar")
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(directory, (name for name in archive.namelist() if name.startswith(FILES)))

    def _run_with(self, group: str, first: list[Path], properties: dict[str, str]) -> dict[str, list[suites.Outcome]]:
        names = [f"{PACKAGE}.{name}" for name in GROUPS[group] if name in self._wanted]
        directory = self._directory / group
        return scala_suites.outcomes(self._program, [*first, *self._class_path], directory, names, properties)


def _site(settings: dict[str, str]) -> str:
    properties = (f"<name>{name}</name><value>{escape(value)}</value>" for name, value in settings.items())
    return f"<configuration>{''.join(f'<property>{each}</property>' for each in properties)}</configuration>\n"


@pytest.fixture(scope="module")
def suite(
    class_path: Callable[..., list[Path]], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Suite]:
    program = scala_suites.program()
    jars = class_path(*JARS, exclusions=scala_suites.NOT_THESE)
    items = [each for each in request.session.items if each.path == request.path and isinstance(each, pytest.Function)]
    wanted = [each.callspec.params["name"] for each in items]
    yield Suite(program, jars, tmp_path_factory.mktemp("spark-suite"), wanted, control=suites.control(request))


@pytest.mark.parametrize("name", CLASSES)
def test_class(name: str, suite: Suite, request: pytest.FixtureRequest) -> None:
    expected = GROUPS[CLASSES[name]][name]
    suites.judge(request, f"{PACKAGE}.{name}", suite.outcomes(name), expected)
