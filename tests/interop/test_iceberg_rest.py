"""Iceberg's compatibility kit for REST catalogs, unchanged, against ours; and Spark by all of Iceberg's catalogs."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metastore.iceberg.routes import BASE
from tests.interop import java, suites
from tests.interop.test_iceberg import CATALOG, RETRIES, RUNTIME
from tests.spark.session import SparkSession, require
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
APPENDS = 6


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


def test_spark_by_all_catalogs(class_path: Callable[..., list[Path]], tmp_path: Path) -> None:
    """One table by REST, and by HiveCatalog with and without locks: no append of either is lost."""
    require("3.5")
    with MetastoreServer(tmp_path / "data", "--http-port", "0") as server:
        warehouse = str(tmp_path / "data/warehouse")
        hive = {"type": "hive", "uri": server.uri, "warehouse": warehouse}
        waits = {f"hadoop_iceberg.hive.lock-check-{end}-wait-ms": time for end, time in (("min", "20"), ("max", "100"))}
        catalogs = {
            "rest": {"type": "rest", "uri": f"{http_address(server)}{BASE}"},
            "locked": {**hive, **waits},
            "unlocked": {**hive, "hadoop_iceberg.engine.hive.lock-enabled": "false"},
        }
        settings = {"spark_jars": str(class_path(RUNTIME)[0])}
        settings["spark_sql_extensions"] = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        for name, of_catalog in catalogs.items():
            prefix = f"spark_sql_catalog_{name}"
            settings |= {prefix: CATALOG, f"{prefix}_cache-enabled": "false"}
            settings |= {f"{prefix}_{key}": value for key, value in of_catalog.items()}
        with SparkSession("3.5", server.uri, warehouse, tmp_path / "spark", **settings) as spark:
            spark.sql("CREATE DATABASE rest.d")
            spark.sql(f"CREATE TABLE rest.d.t (writer STRING, number INT) USING iceberg TBLPROPERTIES ({RETRIES})")
            spark.python(
                f"""
from concurrent.futures import ThreadPoolExecutor

def append(catalog):
    for number in range({APPENDS}):
        spark.sql(f"INSERT INTO {{catalog}}.d.t VALUES ('{{catalog}}', {{number}})")

with ThreadPoolExecutor() as pool:
    list(pool.map(append, {list(catalogs)!r}))
"""
            )
            for catalog in catalogs:
                rows = sorted(map(tuple, spark.sql(f"SELECT writer, number FROM {catalog}.d.t")))
                assert rows == sorted((writer, number) for writer in catalogs for number in range(APPENDS))
            assert spark.value("SELECT count(DISTINCT snapshot_id) FROM rest.d.t.history") == 3 * APPENDS
            spark.sql("CREATE VIEW rest.d.v AS SELECT count(*) AS n FROM rest.d.t")
            assert spark.sql("SELECT n FROM locked.d.v") == [[3 * APPENDS]]
            spark.sql("CREATE OR REPLACE TABLE rest.d.made USING iceberg AS SELECT 7 AS seven")
            spark.sql("ALTER TABLE rest.d.made RENAME COLUMN seven TO eight")
            assert spark.sql("SELECT eight FROM unlocked.d.made") == [[7]]
            spark.sql("DROP TABLE rest.d.made PURGE")
            assert sorted(spark.column("SHOW TABLES IN rest.d", 1)) == ["t"]
