"""A Java virtual machine, driven through py4j."""

import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

# Hive's classes look into the JDK's by reflection, which Java 17 allows only for packages that are opened.
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.net", "java.util")]

SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options of one that starts soon and stays small."""


def pyspark_jars() -> Path | None:
    """The directory of jars inside the installed PySpark, or None without PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "jars"


def pyspark_class_path() -> Path:
    """All those jars, as a class path names them. Only where there is PySpark."""
    jars = pyspark_jars()
    assert jars is not None, "Hive's classes and py4j's come with PySpark"
    return jars / "*"


@contextmanager
def running(
    class_path: Sequence[Path],
    directory: Path,
    *,
    options: Sequence[str] = (),
    java: Path | None = None,
    log: str = "java.log",
    auto_convert: bool = False,
) -> Iterator[JavaGateway]:
    """A JVM with these jars, by default of the `java` on the path; it also dies with the process that started it.

    It starts in `directory`, where what it prints goes to the file `log`. `auto_convert` is py4j's: collections
    of Python are passed as those of Java.
    """
    py4j = next(pyspark_class_path().parent.glob("py4j-*.jar"))
    with (directory / log).open("w", buffering=1) as output:
        port, process = launch_gateway(
            jarpath=str(py4j),
            classpath=os.pathsep.join(map(str, class_path)),
            java_path="java" if java is None else str(java),
            javaopts=[*OPENED, *options],
            die_on_exit=True,
            redirect_stdout=output,
            redirect_stderr=output,
            cwd=str(directory),
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=auto_convert))
        try:
            yield gateway
        finally:
            gateway.shutdown()
            process.terminate()
            process.wait(timeout=60)
