"""Hive 4's own metastore server, run out of Maven's jars, as the reference for the calls that Hive 2.3 doesn't have.

It is the newest Hive that runs on Java 17, unless another release is asked for. Its database is made by the scripts of
the last release that has them in an archive of its own, and brought up to the newest one's by what little changed
between the two.
"""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from py4j.protocol import Py4JError, Py4JJavaError

from tests.interop import maven
from tests.support.reference import HiveReference

SCHEMA = "4.0.0"
SCRIPTS = "org.apache.hive:hive-standalone-metastore-server:4.0.1:bin:tar.gz"


@dataclass(frozen=True)
class Release:
    """A release of Hive 4.

    `schema`: the version that its database has to name. `datanucleus`: the versions of DataNucleus for JDO, of its
    core, of it for databases, and of JDO itself. `dropped_indexes`, `dropped_columns`: what its database lacks of what
    the scripts make.
    """

    version: str
    schema: str
    datanucleus: tuple[str, str, str, str]
    dropped_indexes: tuple[str, ...] = ()
    dropped_columns: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def server(self) -> list[str]:
        """The server, which lies in the jar of Hive's engine, and what it expects beside itself."""
        jdo, core, rdbms, api = self.datanucleus
        return [
            f"org.apache.hive:hive-exec:{self.version}",
            "com.cronutils:cron-utils:9.1.6",
            "com.github.ben-manes.caffeine:caffeine:2.8.4",
            "org.antlr:antlr4-runtime:4.9.3",
            "org.apache.commons:commons-dbcp2:2.12.0",
            "org.apache.commons:commons-pool2:2.12.0",
            "org.apache.derby:derby:10.14.2.0",
            "org.apache.derby:derbytools:10.14.2.0",
            *(f"org.apache.logging.log4j:log4j-{part}:2.18.0" for part in ("1.2-api", "api", "core", "slf4j-impl")),
            f"org.datanucleus:datanucleus-api-jdo:{jdo}",
            f"org.datanucleus:datanucleus-core:{core}",
            f"org.datanucleus:datanucleus-rdbms:{rdbms}",
            f"org.datanucleus:javax.jdo:{api}",
            "org.glassfish:javax.el:3.0.0",
            *(f"org.springframework:spring-{part}:5.3.39" for part in ("beans", "core", "jcl", "jdbc", "tx")),
        ]


NEWEST = Release(
    "4.1.0",
    "4.1.0",
    ("6.0.3", "6.0.10", "6.0.10", "3.2.0-release"),
    # Statistics don't repeat the names of what they belong to any more.
    ("TAB_COL_STATS_IDX", "PCS_STATS_IDX"),
    (
        ("TAB_COL_STATS", ("CAT_NAME", "DB_NAME", "TABLE_NAME")),
        ("PART_COL_STATS", ("CAT_NAME", "DB_NAME", "TABLE_NAME", "PARTITION_NAME")),
    ),
)
BEFORE = Release("4.0.1", SCHEMA, ("5.2.8", "5.2.10", "5.2.10", "3.2.0-m3"))
RELEASES = {each.version: each for each in (NEWEST, BEFORE)}
#: Hadoop with all that it needs, without its own logging.
HADOOP = [
    f"org.apache.hadoop:hadoop-{part}:3.3.6" for part in ("common", "hdfs", "hdfs-client", "mapreduce-client-core")
]
NOT_OF_HADOOP = ["org.slf4j:slf4j-reload4j", "org.slf4j:slf4j-log4j12", "ch.qos.reload4j:*", "log4j:*", "jdk.tools:*"]
START_SECONDS = 120
OWN_SETTINGS = {
    "datanucleus.schema.autoCreateAll": "false",
    "hive.metastore.thrift.bind.host": "127.0.0.1",
    # Without it only an administrator may read notifications.
    "hive.metastore.event.db.notification.api.auth": "false",
    # Tables stay what the client made them: otherwise a managed table without transactions becomes an external one.
    "metastore.metadata.transformer.class": " ",
}
"""Settings of Hive 4 alone."""


def class_path(release: Release) -> list[Path]:
    """The jars of Hive's server and of Hadoop. Raises `maven.Unavailable`."""
    server = maven.class_path(release.server, exclusions=["*:*"])
    return [*server, *maven.class_path(HADOOP, exclusions=NOT_OF_HADOOP)]


class Hive4Reference(HiveReference):
    """A running metastore of Hive 4. Raises `maven.Unavailable` where its jars can't be had."""

    own_settings = OWN_SETTINGS
    log_configuration = "log4j2.properties"
    release = NEWEST

    def _class_path(self) -> list[Path]:
        return class_path(self.release)

    def _serve(self) -> int:
        metastore = self._gateway.jvm.org.apache.hadoop.hive.metastore
        conf = metastore.conf.MetastoreConf.newMetastoreConf()
        self._make_database(conf.get("javax.jdo.option.ConnectionURL"))
        start = metastore.HiveMetaStore.startMetaStore

        def serve() -> None:
            try:
                start(0, None, conf)
            except Py4JJavaError:
                raise
            except Py4JError:
                pass  # the server was closed

        serving = threading.Thread(target=serve, name="hive4-reference", daemon=True)
        serving.start()
        deadline = time.monotonic() + START_SECONDS
        while serving.is_alive() and time.monotonic() < deadline:
            if ports := self._listening():
                return ports.pop()
            serving.join(timeout=0.1)
        raise AssertionError(f"Hive 4's server does not listen, see {self.log}")

    def _make_database(self, url: str) -> None:
        jvm = self._gateway.jvm
        script = maven.unpacked(SCRIPTS) / f"scripts/metastore/upgrade/derby/hive-schema-{SCHEMA}.derby.sql"
        connection = jvm.java.sql.DriverManager.getConnection(url)
        output = jvm.java.io.ByteArrayOutputStream()
        content = jvm.java.io.FileInputStream(str(script))
        errors = jvm.org.apache.derby.tools.ij.runScript(connection, content, "UTF-8", output, "UTF-8")
        assert errors == 0, output.toString()
        statement = connection.createStatement()
        for index in self.release.dropped_indexes:
            statement.execute(f'drop index "APP"."{index}"')
        for table, columns in self.release.dropped_columns:
            for column in columns:
                statement.execute(f'alter table "APP"."{table}" drop column "{column}"')
        statement.execute(f"update \"APP\".VERSION set SCHEMA_VERSION = '{self.release.schema}'")
        connection.close()

    def _listening(self) -> set[int]:
        """The ports on which the JVM listens, but for py4j's."""
        process = self._gateway.jvm.java.lang.ProcessHandle.current().pid()
        connections = psutil.Process(process).net_connections("tcp")
        ports = {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}
        return ports - {self._gateway.gateway_parameters.port}

    def _stop_serving(self) -> None:
        """Its process ends with the gateway: Hive's server has no other way to stop."""
