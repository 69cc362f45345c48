"""PyIceberg's own tests of its catalogs, as far as they are of Hive's and of REST's, against our server.

They come out of the source package of the version that is installed. One thing in them is changed: the address of
Hive's server. With `--target hive4` they meet Hive 4's server, as a control: older ones don't take their names.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.iceberg.routes import BASE
from tests.interop import java, maven, suites
from tests.support.exposition import http_address
from tests.support.server import MetastoreServer

NAME = "tests.integration.test_catalog"
FILE = "tests/integration/test_catalog.py"
ADDRESS = "thrift://localhost:9083"
#: How many tests it has of Hive's catalog.
TESTS = 40
#: And of a catalog of REST that is given from outside.
REST_TESTS = 40
#: What the tests are told of it: namespaces have one level.
SUPPORTED = {
    "SUPPORTS_NESTED_NAMESPACES": "false",
    "SUPPORTS_DOT_IN_IDENTIFIER": "false",
    "SUPPORTS_SLASH_IN_IDENTIFIER": "false",
}
#: What the tests import beside what is installed for ours.
NEEDS = "pytest-lazy-fixtures==1.4.1"
FETCH_SECONDS = 300
SECONDS = 600


@pytest.fixture(scope="module")
def fetched() -> Path:
    """A directory of the user's cache with the package's source (`*.tar.gz`) and, in `lib`, what its tests need."""
    version = importlib.metadata.version("pyiceberg")
    place = maven.cache_directory() / f"pyiceberg-{version}-tests"
    if not place.exists():
        partial = place.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        _pip("download", "--no-deps", "--no-binary", "pyiceberg", "--dest", str(partial), f"pyiceberg=={version}")
        _pip("install", "--no-deps", "--target", str(partial / "lib"), NEEDS)
        partial.rename(place)
    return place


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip did not fetch PyIceberg's tests in {FETCH_SECONDS} seconds; run it again")
    if run.returncode != 0:
        pytest.skip(f"pip can't fetch PyIceberg's tests: {run.stderr.strip().splitlines()[-1:]}")


@pytest.fixture
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of a server that nobody used before."""
    if suites.control(request):
        server = request.getfixturevalue("hive4_reference")
        yield f"thrift://{server.host}:{server.port}"
        return
    with MetastoreServer(tmp_path / "data") as server:
        yield server.uri


def test_hive_catalog(fetched: Path, uri: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    directory = tmp_path / "suite"
    _unpack(fetched, directory)
    file = directory / FILE
    assert ADDRESS in file.read_text(), f"{FILE} names another address of Hive's server"
    file.write_text(file.read_text().replace(ADDRESS, uri))
    suites.judge(request, NAME, _run(fetched / "lib", directory, "hive_catalog"), TESTS)


def test_rest_catalog(fetched: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    directory = tmp_path / "suite"
    _unpack(fetched, directory)
    with MetastoreServer(tmp_path / "data", "--http-port", "0") as server:
        place = {"TYPE": "rest", "URI": f"{http_address(server)}{BASE}", **SUPPORTED}
        settings = [f"PYICEBERG_CATALOG__OURS__{key}={value}" for key, value in place.items()]
        outcomes = _run(fetched / "lib", directory, "rest_test_catalog", "PYICEBERG_TEST_CATALOG=ours", *settings)
    suites.judge(request, f"{NAME}.rest", outcomes, REST_TESTS)


def _unpack(fetched: Path, target: Path) -> None:
    """The tests and pytest's settings for them: the package itself is the installed one."""
    (archive,) = fetched.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(target.with_name("source"), filter="data")
    (top,) = target.with_name("source").iterdir()
    target.mkdir()
    (top / "pyproject.toml").rename(target / "pyproject.toml")
    (top / "tests").rename(target / "tests")
    # So that theirs, and not ours, is the package `tests`.
    (target / "tests/__init__.py").touch()


def _run(library: Path, directory: Path, chosen: str, *settings: str) -> list[suites.Outcome]:
    arguments = ["-q", "-p", "no:cacheprovider", "-k", chosen, "--junitxml=reports.xml", FILE]
    path = os.pathsep.join(map(str, (directory, library)))
    command = ["env", f"PYTHONPATH={path}", *settings, sys.executable, "-m", "pytest", *arguments]
    log = directory / "suite.log"
    java.run(command, directory, log, seconds=SECONDS)
    report = directory / "reports.xml"
    assert report.exists(), f"no test ran: {log.read_text(errors='replace')[-3000:]}"
    return suites.junit([report]).get(NAME, [])
