"""Fixtures for every test: servers, databases, and which server the client suite runs against."""

import fcntl
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from lake.spark import jar
from tests.interop import maven, record
from tests.spark.session import LINES, ROOT, ConfiguredSession, SparkSession, require, spark_of
from tests.support import reference
from tests.support.front import FrontServer
from tests.support.postgres import Postgres
from tests.support.reference4 import Hive4Reference
from tests.support.server import MetastoreServer
from tests.support.target import Target

pytest_plugins = [f"tests.support.{name}" for name in ("method_record", "sampling", "scheduling", "fast")]

settings.register_profile("tests", deadline=None)  # how long an example takes depends on what else the machine does
settings.load_profile("tests")

TARGETS = {
    "ours": ["ours"],
    "hive": ["hive"],
    "hive4": ["hive4"],
    "both": ["ours", "hive"],
    "all": ["ours", "hive", "hive4"],
    "front": ["front"],
}
SAMPLE = 6
"""One of so many tests of the client suite runs against Hive, too, in an ordinary run."""
MARKS = {"ours": (), "front": (), "hive": (pytest.mark.hive,), "hive4": (pytest.mark.interop,)}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        choices=sorted(TARGETS),
        default=os.environ.get("METASTORE_TEST_TARGET"),
        help="which server tests run against that can run against either: ours, Hive's own (hive is 2.3, hive4 is 4), "
        "both (ours and 2.3), all in turn, or ours behind a front (default: the client suite against both, its calls "
        "of Hive 4 against ours and Hive 4, others against ours; also METASTORE_TEST_TARGET)",
    )

    parser.addoption(
        "--interop-record", type=Path, metavar="FILE", help="where to write down what the interop tests showed"
    )


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("--interop-record"):
        config.pluginmanager.register(record.Record(file))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("hive4")
        hive4 = marker is not None or "hive4" in metafunc.fixturenames
        usual = "ours"
        if "client_suite" in metafunc.definition.path.parts:
            usual = "all" if hive4 else "both"
        names = TARGETS[metafunc.config.getoption("--target") or usual]
        if hive4:
            names = [name for name in names if name != "hive"]
        if metafunc.definition.get_closest_marker("hive2") or (marker is not None and "differs" in marker.kwargs):
            names = [name for name in names if name != "hive4"]
        given = metafunc.config.getoption("--target")
        parameters = [pytest.param(name, marks=_marks(name, metafunc, given), id=name) for name in names]
        metafunc.parametrize("target", parameters, indirect=True, scope="session")


def _marks(target: str, metafunc: pytest.Metafunc, given: str | None) -> list[pytest.MarkDecorator]:
    """Hive 2.3 doesn't change: an ordinary run asks it for a sample. All of it runs where `--target` names it."""
    sampled = zlib.crc32(metafunc.definition.nodeid.encode()) % SAMPLE == 0
    return [*MARKS[target], *([] if given or target != "hive" or sampled else [pytest.mark.long])]


@pytest.fixture(scope="session")
def metastore_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """Our server on its embedded default, shared by all tests."""
    with MetastoreServer(tmp_path_factory.mktemp("server") / "data") as server:
        yield server


@pytest.fixture(scope="session")
def plain_front(metastore_server: MetastoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontServer]:
    """A front before our server alone, whose databases keep their names."""
    with FrontServer(tmp_path_factory.mktemp("front"), {"ours": f'uris = "{metastore_server.uri}"'}) as server:
        yield server


@pytest.fixture(scope="session")
def hive_reference(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[reference.HiveReference]":
    """Hive's own metastore server, shared by all tests; skips where it can't run."""
    if (reason := reference.missing()) is not None:
        pytest.skip(reason)
    with reference.HiveReference(tmp_path_factory.mktemp("hive")) as server:
        yield server


@pytest.fixture(scope="session")
def hive4_reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive4Reference]:
    """The metastore server of Hive 4, shared by all tests; skips where it can't run."""
    if (reason := reference.missing()) is not None:
        pytest.skip(reason)
    try:
        server = Hive4Reference(tmp_path_factory.mktemp("hive4"))
    except maven.Unavailable as unavailable:
        pytest.skip(f"Hive 4's own server: {unavailable}")
    with server:
        yield server


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> Target:
    """The server that the client suite runs against."""
    fixtures = {
        "ours": "metastore_server",
        "hive": "hive_reference",
        "hive4": "hive4_reference",
        "front": "plain_front",
    }
    server = request.getfixturevalue(fixtures[request.param])
    name = "ours" if request.param == "front" else request.param
    return Target(name, server.host, server.port, server.log)


@pytest.fixture(scope="session")
def spark_session(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], SparkSession]]:
    """The session of a line, by its name. A session starts at its first use and serves the whole run."""
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


@pytest.fixture(scope="session")
def released_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jar of the extension as a released wheel has it: compiled against Spark 3.5, where that is set up."""
    home = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        home = home.parent  # that of all processes of the run
    built = home / "lake-metastore-spark.jar"
    with (home / "jar.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            jar.build(ROOT / "spark_extension/src", spark_of("3.5" if LINES["3.5"].exists() else "4"), built)
    return built


@pytest.fixture(scope="session")
def hinting_session(
    metastore_server: MetastoreServer, released_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], SparkSession]]:
    """The session of a line with the extension, by its name: of both with the same jar. It serves the whole run."""
    target = Target("ours", metastore_server.host, metastore_server.port, metastore_server.log)
    sessions: dict[str, SparkSession] = {}

    def session(line: str) -> SparkSession:
        require(line)
        if line not in sessions:
            directory = tmp_path_factory.mktemp(f"hints-{line}")
            warehouse = str(target.warehouse())
            sessions[line] = ConfiguredSession(line, metastore_server.uri, warehouse, released_jar, directory)
        return sessions[line]

    yield session
    for started in sessions.values():
        started.close()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A Postgres server without databases of ours."""
    server = Postgres(tmp_path_factory.mktemp("postgres") / "data")
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The SQLAlchemy URL of an empty Postgres database that is this test's alone."""
    with postgres.fresh_database() as url:
        yield url


@pytest.fixture
def upgraded_url(postgres: Postgres) -> Iterator[str]:
    """The SQLAlchemy URL of a Postgres database with the schema that is this test's alone."""
    with postgres.fresh_database(upgraded=True) as url:
        yield url


LOG_SIZE = pytest.StashKey[dict[Path, int]]()


def _logs(item: pytest.Item) -> set[Path]:
    """The log files of the servers that a test uses."""
    values = getattr(item, "funcargs", {}).values()
    logs = (getattr(value, "log", None) for value in values)
    return {log for log in logs if isinstance(log, Path) and log.exists()}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    item.stash[LOG_SIZE] = {log: log.stat().st_size for log in _logs(item)}
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Shows, with a failure, what the servers logged during the test."""
    report = yield
    if report.failed and call.when == "call":
        for log, size in item.stash.get(LOG_SIZE, {}).items():
            with log.open("rb") as file:
                file.seek(size)
                text = file.read(20_000).decode(errors="replace")
            if text:
                report.sections.append((f"log of {log.name}", text))
    return report
