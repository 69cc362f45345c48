"""Iceberg's own tests of its Hive catalog, unchanged, against our server.

All classes meet one server, each in a JVM of its own. Meanwhile a client of the REST catalog makes, changes and drops
tables in another catalog there, since the tests drop all databases of theirs, and loads the tables of the tests. One
class of theirs is replaced: `TestHiveMetastore`, which would start Hive's server. With `--target hive` nothing is
replaced and Hive's server runs, as a control.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError, NoSuchNamespaceError, NoSuchTableError, ServerError

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import Catalog, CreateCatalogRequest
from metastore.iceberg.routes import BASE
from tests.interop import java, suites
from tests.support.exposition import http_address
from tests.support.jvm import OPENED, SMALL
from tests.support.server import MetastoreServer

VERSION = "1.11.0"
JARS = [
    f"org.apache.iceberg:iceberg-hive-metastore:{VERSION}",
    *(f"org.apache.iceberg:iceberg-{part}:{VERSION}:tests" for part in ("hive-metastore", "core", "api")),
    # What its build tests with.
    "org.junit.jupiter:junit-jupiter:5.14.4",
    "org.junit.platform:junit-platform-console:1.14.4",
    "org.assertj:assertj-core:3.27.7",
    "org.awaitility:awaitility:4.3.0",
    *(f"org.mockito:mockito-{part}:4.11.0" for part in ("core", "inline", "junit-jupiter")),
    "org.apache.hive:hive-metastore:2.3.10",
    "org.apache.hive:hive-exec:2.3.10:core",
    "org.apache.hadoop:hadoop-client:3.4.3",
    "org.slf4j:slf4j-simple:2.0.17",
]
#: As in its build: newer versions come with others, or they aren't needed.
NOT_THESE = (
    "org.slf4j:slf4j-log4j12",
    "org.slf4j:slf4j-reload4j",
    "org.apache.logging.log4j:*",
    "org.apache.hbase:*",
    "org.apache.calcite:*",
    "org.apache.calcite.avatica:*",
    "org.apache.hive:hive-llap-tez",
    "org.apache.parquet:parquet-hadoop-bundle",
    "org.eclipse.jetty.aggregate:*",
    "org.eclipse.jetty.orbit:*",
    "org.pentaho:*",
    "co.cask.tephra:*",
    "com.google.code.findbugs:jsr305",
    "com.tdunning:json",
    "com.zaxxer:HikariCP",
    "javax.transaction:transaction-api",
)
SOURCES = Path(__file__).with_name("iceberg_suite_java")
PACKAGE = "org.apache.iceberg.hive"
#: How many tests each class has.
CLASSES = {
    "TestCachedClientPool": 3,
    "TestHiveCatalog": 140,
    "TestHiveClientPool": 6,
    "TestHiveCommitLocks": 20,
    "TestHiveCommits": 16,
    "TestHiveCreateReplaceTable": 15,
    "TestHiveSchemaUtil": 11,
    "TestHiveTable": 24,
    "TestHiveTableConcurrency": 2,
    "TestHiveViewCatalog": 58,
    "TestHiveViewCommits": 12,
    "TestLoadHiveCatalog": 1,
}
SECONDS = 600


@dataclass(frozen=True)
class Suite:
    """The tests' class path and the server they meet: none if they start Hive's."""

    program: Path
    class_path: list[Path]
    server: dict[str, str]

    def run(self, name: str, directory: Path) -> list[suites.Outcome]:
        """What became of the tests of a class, with its files in `directory`."""
        properties = {"java.io.tmpdir": str(directory), **self.server}
        options = [*OPENED, *SMALL, "-Xmx2g", *(f"-D{key}={value}" for key, value in properties.items())]
        launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner", "--details=none"]
        command = [str(self.program), *options, "-cp", os.pathsep.join(map(str, self.class_path)), *launcher]
        reports, log = directory / "reports", directory / "suite.log"
        selected = [f"--select-class={PACKAGE}.{name}", f"--reports-dir={reports}"]
        java.run([*command, *selected], directory, log, seconds=SECONDS)
        outcomes = suites.junit(reports.glob("TEST-*.xml")).get(f"{PACKAGE}.{name}")
        assert outcomes, f"no test of {name} ran: {log.read_text(errors='replace')[-3000:]}"
        return outcomes


@pytest.fixture(scope="module")
def suite(
    class_path: Callable[..., list[Path]], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Suite]:
    program = java.jdk(17, 24)
    if program is None:
        pytest.skip("Iceberg's tests need a JDK 17 (Debian: apt-get install openjdk-17-jdk-headless)")
    jars = class_path(*JARS, exclusions=NOT_THESE)
    if suites.control(request):
        yield Suite(program, jars, {})
        return
    directory = tmp_path_factory.mktemp("iceberg-suite")
    classes, warehouse = directory / "classes", directory / "warehouse"
    warehouse.mkdir()
    java.compile(program, SOURCES, jars, classes)
    # As Hive says where its warehouse is.
    options = ("--warehouse-dir", f"file:{warehouse}", "--http-port", "0")
    with MetastoreServer(directory / "data", *options) as server, by_rest(server) as done:
        asked = {"interop.uri": server.uri, "interop.warehouse": str(warehouse)}
        yield Suite(program, [classes, *jars], asked)
        assert done, "no round by REST was done"


@contextmanager
def by_rest(server: MetastoreServer) -> Iterator[list[int]]:
    """A client of the REST catalog that works until the end. The list is of its rounds."""
    rounds: list[int] = []
    failures: list[BaseException] = []
    ended = threading.Event()

    def work() -> None:
        try:
            uri = f"{http_address(server)}{BASE}"
            with ThriftClient(server.host, server.port) as client:
                place = f"file:{server.data_dir}/beside"
                client.create_catalog(CreateCatalogRequest(Catalog("beside", None, place)))
            own, theirs = RestCatalog("beside", uri=uri, warehouse="beside"), RestCatalog("hive", uri=uri)
            own.create_namespace("n")
            while not ended.wait(0.05):
                rounds.append(_round(own, theirs, len(rounds)))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield rounds
    finally:
        ended.set()
        thread.join(60)
    assert not failures, failures


def _round(own: RestCatalog, theirs: RestCatalog, number: int) -> int:
    """Returns how many tables of the tests it loaded."""
    name = f"n.t{number}"
    table = own.create_table(name, pa.schema([("id", pa.int64())]))
    with table.transaction() as change:
        change.set_properties({"round": str(number)})
    assert own.load_table(name).properties["round"] == str(number)
    own.rename_table(name, f"{name}_renamed")
    own.drop_table(f"{name}_renamed")
    loaded = 0
    for namespace in theirs.list_namespaces():
        try:
            for each in theirs.list_tables(namespace):
                theirs.load_table(each)
                loaded += 1
        except (NoSuchNamespaceError, NoSuchTableError, ServerError, BadRequestError):
            continue  # the tests drop them meanwhile, and write metadata that can't be read
    return loaded


@pytest.mark.parametrize("name", CLASSES)
def test_class(name: str, suite: Suite, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    suites.judge(request, f"{PACKAGE}.{name}", suite.run(name, tmp_path), CLASSES[name])
