"""Spark, unchanged, with the tickets of `kinit`."""

from pathlib import Path

import pytest

from lake.spark.configuration import kerberos_settings
from tests.spark.session import SparkSession
from tests.support.kerberos import REALM, SERVER, Realm, has_tickets
from tests.support.reference import missing
from tests.support.server import MetastoreServer

pytestmark = [pytest.mark.spark, pytest.mark.long]


CORE_SITE = """
<configuration>
  <property><name>hadoop.security.authentication</name><value>kerberos</value></property>
</configuration>
"""


def test_spark_writes_and_reads(realm: Realm, tickets: dict[str, dict[str, str]], tmp_path: Path) -> None:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    options = (
        *("--authentication", "kerberos", "--kerberos-principal", SERVER, "--kerberos-keytab", str(realm.keytab)),
        *("--kerberos-protection", "auth-conf", "--workers", "1"),
    )
    java = {"JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={realm.environment['KRB5_CONFIG']}"}
    by_ticket = kerberos_settings(f"metastore/_HOST@{REALM}")
    settings = {name.replace(".", "_"): value for name, value in by_ticket.items()}
    with (
        MetastoreServer(tmp_path / "data", *options, environment=realm.environment) as server,
        has_tickets(tickets["ann"] | java),
    ):
        uri, warehouse = f"thrift://localhost:{server.port}", str(tmp_path / "warehouse")
        (tmp_path / "core-site.xml").write_text(CORE_SITE)
        settings["spark_driver_extraClassPath"] = str(tmp_path)
        with SparkSession("4", uri, warehouse, tmp_path / "spark", **settings) as spark:
            spark.sql("CREATE DATABASE secured")
            spark.sql("CREATE TABLE secured.t (id INT, dt STRING) USING parquet PARTITIONED BY (dt)")
            spark.sql("INSERT INTO secured.t VALUES (1, 'a'), (2, 'b')")
            rows = spark.sql("SELECT id, dt FROM secured.t ORDER BY id")
            assert [tuple(row) for row in rows] == [(1, "a"), (2, "b")]
    assert "user=ann" in server.log.read_text()
