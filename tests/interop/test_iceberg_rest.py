"""Iceberg's compatibility kit for REST catalogs, unchanged, against our catalog."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metastore.iceberg.routes import BASE
from tests.interop import java, suites
from tests.support.exposition import http_address
from tests.support.jvm import OPENED, SMALL
from tests.support.server import MetastoreServer

VERSION = "1.11.0"
JARS = [
    *(f"org.apache.iceberg:iceberg-open-api:{VERSION}:{part}" for part in ("tests", "test-fixtures")),
    *(f"org.apache.iceberg:iceberg-{part}:{VERSION}" for part in ("core", "api")),
    *(f"org.apache.iceberg:iceberg-{part}:{VERSION}:tests" for part in ("core", "api")),
    # What its build tests with.
    "org.apache.hadoop:hadoop-client-api:3.4.3",
    "org.apache.hadoop:hadoop-client-runtime:3.4.3",
    "org.junit.jupiter:junit-jupiter:5.14.4",
    "org.junit.platform:junit-platform-suite-engine:1.14.4",
    "org.junit.platform:junit-platform-console-standalone:1.14.4",
    "org.assertj:assertj-core:3.27.7",
    "org.awaitility:awaitility:4.3.0",
    "org.mockito:mockito-core:4.11.0",
    "org.slf4j:slf4j-simple:2.0.17",
]
SUITE = "org.apache.iceberg.rest.RESTCompatibilityKitSuite"
#: How many tests each class has.
CLASSES = {
    "org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests": 106,
    "org.apache.iceberg.rest.RESTCompatibilityKitViewCatalogTests": 51,
}
SECONDS = 1200


@pytest.fixture
def uri(tmp_path: Path) -> Iterator[str]:
    """The catalog of a server that nobody used before."""
    with MetastoreServer(tmp_path / "data", "--http-port", "0") as server:
        yield f"{http_address(server)}{BASE}"


def test_kit(uri: str, class_path: Callable[..., list[Path]], tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program = java.jdk(17, 24)
    if program is None:
        pytest.skip("Iceberg's tests need a JDK 17 (Debian: apt-get install openjdk-17-jdk-headless)")
    reports, log = tmp_path / "reports", tmp_path / "suite.log"
    settings = {"rck.local": "false", "rck.requires-namespace-create": "true", "uri": uri, "warehouse": "hive"}
    options = [*OPENED, *SMALL, "-Xmx1g", *(f"-D{key}={value}" for key, value in settings.items())]
    jars = os.pathsep.join(map(str, class_path(*JARS)))
    launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner", "--details=none"]
    selected = [f"--select-class={SUITE}", f"--reports-dir={reports}"]
    java.run([str(program), *options, "-cp", jars, *launcher, *selected], tmp_path, log, seconds=SECONDS)
    outcomes = suites.junit(reports.glob("TEST-*.xml"))
    assert outcomes, f"no test ran: {log.read_text(errors='replace')[-3000:]}"
    for name, expected in CLASSES.items():
        suites.judge(request, name, outcomes.get(name, []), expected)
