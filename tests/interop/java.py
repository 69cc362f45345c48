"""A Java virtual machine with another system's jars, driven through py4j."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.support.reference import OPENED, pyspark_jars


def find(at_least: int, below: int) -> Path | None:
    """The `java` of an installed version in this range: the user's own, or one in Debian's place for them."""
    usual = shutil.which("java")
    homes = [Path(os.environ.get("JAVA_HOME", "/nonexistent")), *([Path(usual).resolve().parents[1]] if usual else [])]
    for home in (*homes, *sorted(Path("/usr/lib/jvm").glob("*"))):
        release = home / "release"
        version = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(), re.M) if release.exists() else None
        if version is not None and at_least <= int(version[1]) < below and (home / "bin/java").exists():
            return home / "bin/java"
    return None


@contextmanager
def running(
    class_path: Sequence[Path], directory: Path, *, java: Path, options: Sequence[str] = ()
) -> Iterator[JavaGateway]:
    """A running JVM with these jars. What it prints goes to `java.log` in the directory, where it also starts."""
    jars = pyspark_jars()
    assert jars is not None
    with (directory / "java.log").open("w", buffering=1) as log:
        port, process = launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=os.pathsep.join(map(str, class_path)),
            java_path=str(java),
            javaopts=[*OPENED, "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options],
            die_on_exit=True,
            redirect_stdout=log,
            redirect_stderr=log,
            cwd=str(directory),
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        try:
            yield gateway
        finally:
            gateway.shutdown()
            process.terminate()
            process.wait(timeout=60)


def failure(error: Any) -> str:
    """What a Java exception and its causes say, a line each."""
    lines = []
    while error is not None:
        lines.append(error.toString())
        error = error.getCause()
    return "\n".join(lines)
