"""PySpark 3.5 and 4 logged in: by Kerberos within TLS, and jobs that have nothing but a delegation token."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lake.spark.configuration import kerberos_settings, tls_settings
from tests.interop.logins import hive_clients
from tests.interop.logins.conftest import Door
from tests.interop.logins.hive_clients import CAROL
from tests.spark.session import LINES, SparkSession, require
from tests.support.certificates import STORE_PASSWORD
from tests.support.jvm import SMALL, pyspark_class_path, running
from tests.support.kerberos import REALM, Realm

CORE_SITE = """
<configuration>
  <property><name>hadoop.security.authentication</name><value>kerberos</value></property>
</configuration>
"""


@pytest.fixture(params=list(LINES))
def line(request: pytest.FixtureRequest) -> str:
    require(request.param)
    return request.param


@contextmanager
def spark(line: str, door: Door, trust_store: Path, directory: Path, environment: dict[str, str]) -> Iterator[Any]:
    """A session with the settings that `lake.spark.configure` makes, and core-site.xml beside them."""
    made = kerberos_settings(f"metastore/_HOST@{REALM}") | tls_settings(str(trust_store), STORE_PASSWORD)
    settings = {name.replace(".", "_"): value for name, value in made.items()}
    (directory / "core-site.xml").write_text(CORE_SITE)
    settings["spark_driver_extraClassPath"] = str(directory)
    warehouse = str(directory / "warehouse")
    with SparkSession(line, door.uri, warehouse, directory / "spark", environment, **settings) as session:
        yield session


def of_realm(realm: Realm) -> dict[str, str]:
    return {"JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={realm.environment['KRB5_CONFIG']}"}


def use(session: SparkSession, name: str) -> None:
    session.sql(f"CREATE DATABASE {name}")
    session.sql(f"CREATE TABLE {name}.t (id INT, dt STRING) USING parquet PARTITIONED BY (dt)")
    session.sql(f"INSERT INTO {name}.t VALUES (1, 'a'), (2, 'b')")
    assert session.sql(f"SELECT id, dt FROM {name}.t ORDER BY id") == [[1, "a"], [2, "b"]]
    session.sql(f"DROP DATABASE {name} CASCADE")


def test_kerberos_within_tls(
    line: str, door: Door, realm: Realm, tickets: dict[str, dict[str, str]], trust_store: Path, tmp_path: Path
) -> None:
    name = f"spark{line.replace('.', '')}_tickets"
    with spark(line, door, trust_store, tmp_path, tickets["ann"] | of_realm(realm)) as session:
        use(session, name)
    assert door.came_in("create_table", name) == {("ann", "kerberos")}


@pytest.fixture(scope="module")
def submitting(keytab: Path, of_java: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A JVM that does for carol what spark-submit does before it starts a job in cluster mode."""
    options = ["-Xmx256m", *SMALL, *of_java, "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]
    with running([pyspark_class_path()], tmp_path_factory.mktemp("submitting"), options=options) as gateway:
        hive_clients.log_in(gateway.jvm, CAROL, keytab)
        yield gateway.jvm


def fetched_token(jvm: Any, door: Door, trust_store: Path, file: Path) -> None:
    """By Spark's own class for Hive's tokens, into a file as launchers hand it to a job."""
    hadoop = jvm.org.apache.hadoop.conf.Configuration()
    settings = hive_clients.by_kerberos() | hive_clients.within_tls(trust_store) | {"hive.metastore.uris": door.uri}
    for name, value in settings.items():
        hadoop.set(name, value)
    credentials = jvm.org.apache.hadoop.security.Credentials()
    provider = jvm.org.apache.spark.sql.hive.security.HiveDelegationTokenProvider()
    provider.obtainDelegationTokens(hadoop, jvm.org.apache.spark.SparkConf(False), credentials)
    assert credentials.numberOfTokens() == 1
    credentials.writeTokenStorageFile(jvm.org.apache.hadoop.fs.Path(f"file:{file}"), hadoop)


def test_a_token_alone(line: str, door: Door, realm: Realm, submitting: Any, trust_store: Path, tmp_path: Path) -> None:
    fetched_token(submitting, door, trust_store, tmp_path / "tokens")
    name = f"spark{line.replace('.', '')}_token"
    job = of_realm(realm) | {"HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "tokens"), "KRB5CCNAME": "/nonexistent"}
    with spark(line, door, trust_store, tmp_path, job) as session:
        use(session, name)
    assert door.came_in("create_table", name) == {("carol", "token")}
