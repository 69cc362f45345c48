"""A YARN cluster: the ResourceManager of Hadoop's MiniYARNCluster, and a NodeManager.

They have a JVM each: within one, the web applications of both would be the latter's, by a static field of Guice.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import py4j
import pytest
import urllib3
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError

from tests.interop import java
from tests.support.waiting import wait_until

MINICLUSTER = (
    "com.fasterxml.jackson.core:jackson-core:2.12.7",  # the one that Hadoop is built with, which Maven doesn't choose
    "com.fasterxml.jackson.core:jackson-annotations:2.12.7",
    "com.fasterxml.jackson.core:jackson-databind:2.12.7.1",
    "org.apache.hadoop:hadoop-minicluster:3.4.1",
    "junit:junit:4.13.2",
)
SETTINGS = {
    "fs.defaultFS": "file:///",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yarn.nodemanager.address": "127.0.0.1:0",
    "yarn.nodemanager.webapp.address": "127.0.0.1:0",
    "yarn.nodemanager.localizer.address": "127.0.0.1:0",
    "yarn.nodemanager.resource.memory-mb": "6144",
    "yarn.nodemanager.resource.cpu-vcores": "8",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.enable": "false",
    "yarn.nodemanager.delete.debug-delay-sec": "600",  # what containers wrote can be read when a test has failed
}
# Hadoop 3.4 reflects on these in Java 17.
OPENS = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in ("java.lang", "java.util", "java.net", "java.io")]


class Yarn(NamedTuple):
    """`url`: of the ResourceManager's web services. `configuration`: a directory for HADOOP_CONF_DIR."""

    url: str
    configuration: Path


@contextmanager
def yarn(class_path: Callable[..., list[Path]], directory: Path) -> Iterator[Yarn]:
    """Runs a cluster; skips the test without its jars, or without a Java that runs it."""
    program = java.find(11, 18)
    if program is None:
        pytest.skip("needs Java 11 to 17 (Debian: apt-get install openjdk-17-jre-headless)")
    configuration = directory / "conf"
    configuration.mkdir()
    jars = os.pathsep.join(map(str, [configuration, *class_path(*MINICLUSTER), _py4j()]))
    command = [str(program), "-Xmx400m", *OPENS, "-Djava.net.preferIPv4Stack=true", "-cp", jars]
    with _process([*command, "py4j.GatewayServer", "0"], directory / "manager.log"):
        ports: list[str] = []
        wait_until(lambda: ports.extend(_numbers(directory / "manager.log")) or ports, 120, "Py4J's port")
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(ports[0])))
        try:
            cluster = _started(gateway.jvm, directory, configuration)
            node = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
            with _process([*command, node], directory / "node.log"):
                wait_until(lambda: _nodes(cluster.url), 180, "a NodeManager")
                yield cluster
        except Py4JJavaError as error:
            raise AssertionError(java.failure(error.java_exception)) from None  # while its JVM can be asked
        finally:
            gateway.shutdown()


@contextmanager
def _process(command: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=log.parent,
            env={**os.environ, "JAVA_HOME": str(Path(command[0]).parents[1])},  # containers find their Java by it
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield
        finally:
            process.kill()
            process.wait()


def _started(jvm: Any, directory: Path, configuration: Path) -> Yarn:
    settings = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()
    for name, value in SETTINGS.items():
        settings.set(name, value)
    for kind in ("local", "log"):
        settings.set(f"yarn.nodemanager.{kind}-dirs", str(directory / f"node-{kind}"))
    cluster = jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("services", 0, 1, 1)
    cluster.init(settings)
    cluster.start()
    for name in ("core-site.xml", "yarn-site.xml"):
        written = jvm.java.io.FileOutputStream(str(configuration / name))
        cluster.getConfig().writeXml(written)
        written.close()
    return Yarn("http://" + cluster.getConfig().get("yarn.resourcemanager.webapp.address"), configuration)


def _numbers(log: Path) -> list[str]:
    """The lines of a log that are a number."""
    return [each for each in log.read_text().splitlines() if each.isdecimal()]


def _nodes(url: str) -> bool:
    """Whether there is a node on which something can run."""
    found = urllib3.request("GET", f"{url}/ws/v1/cluster/metrics", headers={"Accept": "application/json"})
    return bool(found.status == 200 and found.json()["clusterMetrics"]["activeNodes"])


def _py4j() -> Path:
    """Py4J's jar, which its package brings along."""
    for place in Path(py4j.__file__).parents[:5]:
        for jar in place.glob("share/py4j/py4j*.jar"):
            return jar
    raise AssertionError("Py4J has its jar")
