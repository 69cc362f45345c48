"""Hive's own metastore servers, as the reference for our behaviour, each on an embedded Derby database.

Hive 2.3's comes out of the jars that PySpark brings. Its parts are put together through py4j as `HiveMetaStore.main`
does it, with two differences: it listens on the loopback interface only (Hive's main binds every interface), and the
tables for transactions and locks, which Hive expects an administrator to create, are made first. Being one process
with one embedded database, both have to happen inside that JVM.

Hive 4's is the newest one that is released as an archive in Maven's repositories, with the scripts that make its
database.
"""

import importlib.util
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from xml.sax.saxutils import escape

import psutil
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JNetworkError

from tests.interop import maven

LOG_CONFIGURATION = """
status = error
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss} %p %c{1} %m%n%ex
"""


#: What Hive 4's archive expects of the machine that it is unpacked on, without Hadoop's own logging.
HADOOP = [
    f"org.apache.hadoop:hadoop-{part}:3.3.6" for part in ("common", "hdfs", "hdfs-client", "mapreduce-client-core")
]
NOT_OF_HADOOP = ["org.slf4j:slf4j-reload4j", "org.slf4j:slf4j-log4j12", "ch.qos.reload4j:*", "log4j:*", "jdk.tools:*"]
START_SECONDS = 120

# Hive's classes look into the JDK's by reflection, which Java 17 allows only where told.
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.net", "java.util")]


def pyspark_jars() -> Path | None:
    """The directory of jars inside the installed PySpark, or None without PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "jars"


def missing() -> str | None:
    """Why the reference can't run on this machine, in one line, or None if it can."""
    if shutil.which("java") is None:
        return "Hive's own server needs Java (Debian: apt-get install default-jre-headless)"
    jars = pyspark_jars()
    if jars is None or not list(jars.glob("hive-metastore-*.jar")):
        return "Hive's own server needs PySpark with its jars (pip install pyspark)"
    return None


class HiveReference:
    """A running Hive metastore. Close it when done; it also dies with the process that started it."""

    #: What this version is told beside what all are.
    own_settings: dict[str, str] = {}
    log_configuration = "hive-log4j2.properties"

    def __init__(self, directory: Path, *, jars: Sequence[Path] = (), **settings: str) -> None:
        """Starts the server with its files in `directory` and waits until it accepts.

        `jars` are used beside PySpark's; `settings` are further Hive settings, with underscores for the dots of
        their names.
        """
        self.host = "127.0.0.1"
        self.warehouse = directory / "warehouse"
        self.log = directory / "hive.log"
        self._write_configuration(directory / "conf", {k.replace("_", "."): v for k, v in settings.items()})
        self._log_file = self.log.open("w", buffering=1)
        self._gateway, self._process = self._start_jvm(directory, [directory / "conf", *jars, *self._class_path()])
        self.port = self._serve()

    def _write_configuration(self, conf: Path, settings: dict[str, str]) -> None:
        conf.mkdir(parents=True)
        properties = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={conf.parent}/db;create=true",
            "datanucleus.schema.autoCreateAll": "true",
            # Not "None": without a pool that rolls back, a call that fails leaves its locks in the database.
            "datanucleus.connectionPoolingType": "HikariCP",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": str(self.warehouse),
            "hive.metastore.metrics.enabled": "false",
            "hive.async.log.enabled": "false",
            # A statement that Derby refused stays refused: by default Hive tries ten times, two seconds apart.
            "hive.hmshandler.retry.attempts": "1",
            "hive.hmshandler.retry.interval": "1ms",
            # Where Hive would move dropped files instead of deleting them.
            "fs.trash.interval": "0",
            **self.own_settings,
            **settings,
        }
        body = "".join(
            f"<property><name>{escape(k)}</name><value>{escape(v)}</value></property>\n" for k, v in properties.items()
        )
        (conf / "hive-site.xml").write_text(f"<configuration>\n{body}</configuration>\n")
        (conf / self.log_configuration).write_text(LOG_CONFIGURATION)

    def _class_path(self) -> list[Path]:
        jars = pyspark_jars()
        assert jars is not None, missing()
        return [jars / "*"]

    def _start_jvm(self, directory: Path, class_path: list[Path]) -> tuple[JavaGateway, "subprocess.Popen[bytes]"]:
        jars = pyspark_jars()
        assert jars is not None, missing()
        port, process = launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=":".join(map(str, class_path)),
            javaopts=[
                *OPENED,
                "-Xmx512m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Dderby.system.durability=test",
                "-Dderby.locks.waitTimeout=20",
                f"-Dderby.stream.error.file={directory / 'derby.log'}",
            ],
            die_on_exit=True,
            redirect_stdout=self._log_file,
            redirect_stderr=self._log_file,
            cwd=str(directory),
            return_proc=True,
        )
        return JavaGateway(gateway_parameters=GatewayParameters(port=port)), process

    def _serve(self) -> int:
        """Starts to serve; the port."""
        self._server, port = self._assemble()
        self._serving = threading.Thread(target=self._server.serve, name="hive-reference", daemon=True)
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
        hive.metastore.txn.TxnDbUtil.prepDb(conf)
        handler = hive.metastore.HiveMetaStore.newRetryingHMSHandler(
            hive.metastore.HiveMetaStore.HMSHandler("new db based metaserver", conf, False), conf
        )
        socket = thrift.transport.TServerSocket(jvm.java.net.InetSocketAddress(self.host, 0))
        arguments = thrift.server.TThreadPoolServer.Args(socket)
        arguments.processor(hive.metastore.TUGIBasedProcessor(handler))
        arguments.transportFactory(hive.thrift.TUGIContainingTransport.Factory())
        arguments.protocolFactory(thrift.protocol.TBinaryProtocol.Factory())
        arguments.minWorkerThreads(8).maxWorkerThreads(64).stopTimeoutVal(1)
        server = thrift.server.TThreadPoolServer(arguments)
        server.setServerEventHandler(self._connection_handler(jvm))
        return server, socket.getServerSocket().getLocalPort()

    def _connection_handler(self, jvm: Any) -> Any:
        """Hive's own (anonymous) handler, which forgets what a connection set when that connection ends."""
        constructor = jvm.java.lang.Class.forName(
            "org.apache.hadoop.hive.metastore.HiveMetaStore$3"
        ).getDeclaredConstructor(self._gateway.new_array(jvm.java.lang.Class, 0))
        constructor.setAccessible(True)
        return constructor.newInstance(self._gateway.new_array(jvm.java.lang.Object, 0))

    def close(self) -> None:
        """Stops the server and its JVM."""
        self._stop_serving()
        self._gateway.shutdown()
        self._process.terminate()
        self._process.wait(timeout=30)
        self._log_file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Hive4Reference(HiveReference):
    """A running metastore of Hive 4. Raises `maven.Unavailable` where its archive can't be had."""

    version = "4.0.1"
    own_settings = {
        "datanucleus.schema.autoCreateAll": "false",
        "hive.metastore.thrift.bind.host": "127.0.0.1",
        # Tables stay what the client made them: otherwise a managed table without transactions becomes an external one.
        "metastore.metadata.transformer.class": "",
    }
    log_configuration = "log4j2.properties"

    def __init__(self, directory: Path, **settings: str) -> None:
        self._home = maven.unpacked(f"org.apache.hive:hive-standalone-metastore-server:{self.version}:bin:tar.gz")
        self._hadoop = maven.class_path(HADOOP, exclusions=NOT_OF_HADOOP)
        super().__init__(directory, **settings)

    def _class_path(self) -> list[Path]:
        return [self._home / "lib" / "*", *self._hadoop]

    def _serve(self) -> int:
        metastore = self._gateway.jvm.org.apache.hadoop.hive.metastore
        conf = metastore.conf.MetastoreConf.newMetastoreConf()
        self._make_schema(conf)
        start = metastore.HiveMetaStore.startMetaStore

        def serve() -> None:
            with suppress(Py4JNetworkError):  # the server was closed
                start(0, None, conf)

        serving = threading.Thread(target=serve, name="hive4-reference", daemon=True)
        serving.start()
        deadline = time.monotonic() + START_SECONDS
        while serving.is_alive() and time.monotonic() < deadline:
            if ports := self._listening():
                return ports.pop()
            serving.join(timeout=0.1)
        raise AssertionError(f"Hive 4's server does not listen, see {self.log}")

    def _make_schema(self, conf: Any) -> None:
        """What `schematool -initSchema` does."""
        jvm = self._gateway.jvm
        options = jvm.org.apache.commons.cli.OptionGroup()
        arguments = self._gateway.new_array(jvm.java.lang.String, 3)
        for position, argument in enumerate(("-initSchema", "-dbType", "derby")):
            arguments[position] = argument
        tool = jvm.org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool()
        assert tool.run(str(self._home), arguments, options, conf) == 0, f"no schema, see {self.log}"

    def _listening(self) -> set[int]:
        """The ports on which the JVM listens, but for py4j's."""
        connections = psutil.Process(self._process.pid).net_connections("tcp")
        ports = {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}
        return ports - {self._gateway.gateway_parameters.port}

    def _stop_serving(self) -> None:
        """Its process ends with the gateway: Hive's server has no other way to stop."""
