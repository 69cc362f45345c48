"""Hive's own metastore server, run out of the jars that PySpark brings, as the reference for our behaviour.

The server is Hive 2.3's, on an embedded Derby database in a temporary directory. Its parts are put together through
py4j as `HiveMetaStore.main` does it, with two differences: it listens on the loopback interface only (Hive's main
binds every interface), and the tables for transactions and locks, which Hive expects an administrator to create, are
made first. Being one process with one embedded database, both have to happen inside that JVM.
"""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from xml.sax.saxutils import escape

import pytest
from py4j.protocol import Py4JError

from tests.support import jvm
from tests.support.jvm import pyspark_jars

LOG_CONFIGURATION = """
status = error
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}} %m%n%ex
"""


LISTENER = "org.apache.hive.hcatalog:hive-hcatalog-server-extensions:2.3.10"
"""What writes Hive's notification log. PySpark doesn't bring it."""


def missing() -> str | None:
    """Why the reference can't run on this machine, in one line, or None if it can."""
    if shutil.which("java") is None:
        return "Hive's own server needs Java (Debian: apt-get install default-jre-headless)"
    jars = pyspark_jars()
    if jars is None or not list(jars.glob("hive-metastore-*.jar")):
        return "Hive's own server needs PySpark with its jars (pip install pyspark)"
    return None


COMMON_SETTINGS = {
    # Not "None": without a pool that rolls back, a call that fails leaves its locks in the database.
    "datanucleus.connectionPoolingType": "HikariCP",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.metrics.enabled": "false",
    "hive.async.log.enabled": "false",
    # A statement that Derby refused stays refused: by default Hive tries ten times, two seconds apart.
    "hive.hmshandler.retry.attempts": "1",
    "hive.hmshandler.retry.interval": "1ms",
    # Where Hive would move dropped files instead of deleting them.
    "fs.trash.interval": "0",
}
"""Settings of all versions of Hive's server here."""


def write_configuration(conf: Path, properties: Mapping[str, str]) -> None:
    """Writes `hive-site.xml` into a new directory."""
    conf.mkdir(parents=True)
    body = "".join(
        f"<property><name>{escape(k)}</name><value>{escape(v)}</value></property>\n" for k, v in properties.items()
    )
    (conf / "hive-site.xml").write_text(f"<configuration>\n{body}</configuration>\n")


def write_log_configuration(file: Path, level: str) -> None:
    """Writes a configuration of Log4j: everything of `level` goes to the standard output."""
    file.write_text(LOG_CONFIGURATION.format(level=level))


class HiveReference:
    """A running Hive metastore. Close it when done; it also dies with the process that started it."""

    #: Settings of this version, beside those of all versions.
    own_settings: dict[str, str] = {}
    log_configuration = "hive-log4j2.properties"
    log_level = "info"
    java_options: Sequence[str] = ("-Xmx512m", *jvm.SMALL)
    #: Fewest and most, one for each connection.
    threads = (8, 64)
    #: Derby's: whether it waits for the disk. Without that, one that was killed may not come back.
    durability = "test"

    def __init__(self, directory: Path, *, jars: Sequence[Path] = (), **settings: str) -> None:
        """Starts the server with its files in `directory` and waits until it accepts.

        `jars` are used beside PySpark's; `settings` are further Hive settings, with underscores for the dots of
        their names.
        """
        self.host = "127.0.0.1"
        self.warehouse = directory / "warehouse"
        self.log = directory / "hive.log"
        self.port = 0
        self._directory, self._jars = directory, jars
        self._write_configuration(directory / "conf", {k.replace("_", "."): v for k, v in settings.items()})
        self.start()

    def start(self) -> None:
        """Starts it; after `kill` on the same port, if it is one of Hive 2.3."""
        class_path = [self._directory / "conf", *self._jars, *self._class_path()]
        options = [
            *self.java_options,
            f"-Dderby.system.durability={self.durability}",
            "-Dderby.locks.waitTimeout=20",
            f"-Dderby.stream.error.file={self._directory / 'derby.log'}",
        ]
        self._jvm = ExitStack()
        running = jvm.running(class_path, self._directory, options=options, log=self.log.name)
        self._gateway = self._jvm.enter_context(running)
        self._pid = int(self._gateway.jvm.java.lang.ProcessHandle.current().pid())
        self.port = self._serve()

    def kill(self) -> None:
        """Kills it at once (SIGKILL)."""
        os.kill(self._pid, signal.SIGKILL)
        with suppress(Exception):  # py4j tells it to end
            self._jvm.close()

    def _write_configuration(self, conf: Path, settings: dict[str, str]) -> None:
        local = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={conf.parent}/db;create=true",
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.warehouse.dir": str(self.warehouse),
        }
        write_configuration(conf, {**COMMON_SETTINGS, **local, **self.own_settings, **settings})
        write_log_configuration(conf / self.log_configuration, self.log_level)

    def _class_path(self) -> list[Path]:
        return [jvm.pyspark_class_path()]

    def _serve(self) -> int:
        """Starts to serve; the port."""
        self._server, port = self._assemble()
        server = self._server

        def serve() -> None:
            with suppress(Py4JError):  # it was killed
                server.serve()

        self._serving = threading.Thread(target=serve, name="hive-reference", daemon=True)
        self._serving.start()
        return port

    def _stop_serving(self) -> None:
        self._server.stop()
        self._serving.join(timeout=30)

    def _assemble(self) -> tuple[Any, int]:
        """Hive's server object, listening but not yet serving, and its port."""
        jvm = self._gateway.jvm
        hive, thrift = jvm.org.apache.hadoop.hive, jvm.org.apache.thrift
        conf = hive.conf.HiveConf()
        self._make_transaction_tables(conf)
        handler = hive.metastore.HiveMetaStore.newRetryingHMSHandler(
            hive.metastore.HiveMetaStore.HMSHandler("new db based metaserver", conf, False), conf
        )
        socket = thrift.transport.TServerSocket(jvm.java.net.InetSocketAddress(self.host, self.port))
        arguments = thrift.server.TThreadPoolServer.Args(socket)
        arguments.processor(hive.metastore.TUGIBasedProcessor(handler))
        arguments.transportFactory(hive.thrift.TUGIContainingTransport.Factory())
        arguments.protocolFactory(thrift.protocol.TBinaryProtocol.Factory())
        fewest, most = self.threads
        arguments.minWorkerThreads(fewest).maxWorkerThreads(most).stopTimeoutVal(1)
        server = thrift.server.TThreadPoolServer(arguments)
        server.setServerEventHandler(self._connection_handler(jvm))
        return server, socket.getServerSocket().getLocalPort()

    def _make_transaction_tables(self, conf: Any) -> None:
        self._gateway.jvm.org.apache.hadoop.hive.metastore.txn.TxnDbUtil.prepDb(conf)

    def _connection_handler(self, jvm: Any) -> Any:
        """Hive's own (anonymous) handler, which drops a connection's settings when the connection ends."""
        constructor = jvm.java.lang.Class.forName(
            "org.apache.hadoop.hive.metastore.HiveMetaStore$3"
        ).getDeclaredConstructor(self._gateway.new_array(jvm.java.lang.Class, 0))
        constructor.setAccessible(True)
        return constructor.newInstance(self._gateway.new_array(jvm.java.lang.Object, 0))

    def close(self) -> None:
        """Stops the server and its JVM."""
        self._stop_serving()
        self._jvm.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DurableHive(HiveReference):
    """One that may be killed, and started again."""

    durability = "default"

    def _make_transaction_tables(self, conf: Any) -> None:
        if not self.port:  # they are there when it is started again
            super()._make_transaction_tables(conf)


@contextmanager
def notifying(directory: Path, kind: type[HiveReference] = HiveReference) -> Iterator[HiveReference]:
    """A server that keeps a notification log. Skips where Maven, which brings the listener, is missing."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    if shutil.which("mvn") is None:
        pytest.skip("Hive's notification log needs Maven (Debian: apt-get install maven)")
    jars = directory / "listener"
    jars.mkdir(parents=True)
    copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={LISTENER}", f"-DoutputDirectory={jars}"]
    subprocess.run(copy, check=True, cwd=jars)
    with kind(
        directory / "hive",
        jars=list(jars.glob("*.jar")),
        hive_metastore_transactional_event_listeners="org.apache.hive.hcatalog.listener.DbNotificationListener",
    ) as running:
        yield running
