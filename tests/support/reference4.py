"""Hive's own metastore servers of 3.1 and 4, run out of Maven's jars.

Hive 4's is the reference for the calls that Hive 2.3 doesn't have: the newest that runs on Java 17, unless another
release is asked for. Its database is made by the scripts of the last release that has them in an archive of its own,
and brought up to the newest one's by what little changed between the two.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from py4j.protocol import Py4JError, Py4JJavaError

from tests.interop import maven
from tests.support.reference import HiveReference

SCHEMA = "4.0.0"
SCRIPTS_4 = "org.apache.hive:hive-standalone-metastore-server:4.0.1:bin:tar.gz"
SCRIPTS_3 = "org.apache.hive:hive-standalone-metastore:3.1.3:bin:tar.gz"


@dataclass(frozen=True)
class Release:
    """A release of Hive.

    `schema`: the version that its database has to name, `scripts` what makes it, and `script_schema` the version that
    they are of. `dropped_indexes`, `dropped_columns`: what its database lacks of what the scripts make. `settings`:
    what its server needs without the rest of Hive.
    """

    version: str
    schema: str
    scripts: str
    script_schema: str
    dropped_indexes: tuple[str, ...] = ()
    dropped_columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    def script(self, database: str) -> Path:
        """What makes the tables in a kind of database (`derby`, `postgres`, `mysql`). Raises `maven.Unavailable`."""
        directory = maven.unpacked(self.scripts) / "scripts/metastore/upgrade" / database
        return directory / f"hive-schema-{self.script_schema}.{database}.sql"

    def class_path(self) -> list[Path]:
        """The jars of Hive's server and of Hadoop. Raises `maven.Unavailable`."""
        server = maven.class_path(
            [f"org.apache.hive:hive-standalone-metastore:{self.version}"], exclusions=NOT_OF_HADOOP
        )
        return [*server, *maven.class_path(HADOOP, exclusions=NOT_OF_HADOOP)]


@dataclass(frozen=True)
class Release4(Release):
    """A release of Hive 4.

    `datanucleus`: the versions of DataNucleus for JDO, of its core, of it for databases, and of JDO itself.
    """

    datanucleus: tuple[str, str, str, str] = ("", "", "", "")

    def class_path(self) -> list[Path]:
        """The jars of Hive's server and of Hadoop. Raises `maven.Unavailable`."""
        server = maven.class_path(self._server, exclusions=["*:*"])
        return [*server, *maven.class_path(HADOOP, exclusions=NOT_OF_HADOOP)]

    @property
    def _server(self) -> list[str]:
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


NEWEST = Release4(
    "4.1.0",
    "4.1.0",
    SCRIPTS_4,
    SCHEMA,
    # Statistics don't repeat the names of what they belong to any more.
    ("TAB_COL_STATS_IDX", "PCS_STATS_IDX"),
    (
        ("TAB_COL_STATS", ("CAT_NAME", "DB_NAME", "TABLE_NAME")),
        ("PART_COL_STATS", ("CAT_NAME", "DB_NAME", "TABLE_NAME", "PARTITION_NAME")),
    ),
    datanucleus=("6.0.3", "6.0.10", "6.0.10", "3.2.0-release"),
)
BEFORE = Release4("4.0.1", SCHEMA, SCRIPTS_4, SCHEMA, datanucleus=("5.2.8", "5.2.10", "5.2.10", "3.2.0-m3"))
RELEASES = {each.version: each for each in (NEWEST, BEFORE)}
"""Of Hive 4."""

_PACKAGE = "org.apache.hadoop.hive.metastore"
HIVE3 = Release(
    "3.1.3",
    "3.1.0",
    SCRIPTS_3,
    "3.1.0",
    settings={
        "metastore.expression.proxy": f"{_PACKAGE}.DefaultPartitionExpressionProxy",
        "metastore.task.threads.always": f"{_PACKAGE}.events.EventCleanerTask",
    },
)
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


class Hive4Reference(HiveReference):
    """A running metastore of Hive 4. Raises `maven.Unavailable` where its jars can't be had."""

    own_settings = OWN_SETTINGS
    log_configuration = "log4j2.properties"
    release = NEWEST

    def _class_path(self) -> list[Path]:
        return self.release.class_path()

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
        script = self.release.script("derby")
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
