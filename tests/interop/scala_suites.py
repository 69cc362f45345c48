"""Suites of Spark's own build: ScalaTest runs their classes in a JVM."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.interop import java, suites
from tests.support.jvm import SMALL

OPENED = [
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
]
LOG = """
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = spark.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss} %p %c{1} %m%n%ex
"""
#: The parts of Spark whose tests, or what they are made of, are needed.
TESTED = ("hive", "sql", "catalyst", "core", "tags", "common-utils", "sql-api")
#: Only Spark's build has it.
NOT_THESE = ("org.apache.spark:spark-connect-shims_2.13",)
SECONDS = 1500


def jars(version: str) -> list[str]:
    """The coordinates of a Spark with Hive for Scala 2.13, of its tests, and of what its build tests with."""
    return [
        f"org.apache.spark:spark-hive_2.13:{version}",
        *(f"org.apache.spark:spark-{part}_2.13:{version}:tests" for part in TESTED),
        "org.scalatest:scalatest_2.13:3.2.19",
        "org.scalatestplus:scalacheck-1-18_2.13:3.2.19.0",
        "org.scalatestplus:mockito-5-12_2.13:3.2.19.0",
        "org.mockito:mockito-core:5.12.0",
    ]


def program() -> Path:
    """The `java` of a JDK that Spark's tests run on; without one the test is skipped."""
    found = java.jdk(17, 24)
    if found is None:
        pytest.skip("Spark's tests need a JDK 17 (Debian: apt-get install openjdk-17-jdk-headless)")
    return found


def compile(program: Path, sources: Path, class_path: Sequence[Path], target: Path) -> None:
    """Puts the classes of all Scala files below `sources` into `target`; the compiler is in the class path."""
    target.mkdir()
    command = [str(program), *SMALL, "-Xmx1g", "-Xss8m", "scala.tools.nsc.Main", "-usejavacp", "-nowarn"]
    files = sorted(map(str, sources.rglob("*.scala")))
    path = os.pathsep.join(map(str, class_path))
    subprocess.run([*command, "-d", str(target), *files], env={**os.environ, "CLASSPATH": path}, check=True)


def outcomes(
    program: Path,
    class_path: Sequence[Path],
    directory: Path,
    names: Sequence[str],
    properties: Mapping[str, str],
    *,
    seconds: int = SECONDS,
) -> dict[str, list[suites.Outcome]]:
    """What became of the tests of classes, given by their full names. What came to its end in time has its report.

    `program`: a `java`. `properties`: the JVM's. `seconds`: how long it may run. The
    directory gets `suite.log`, `spark.log` and the reports.
    """
    (directory / "log4j2.properties").write_text(LOG)
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    properties = {
        "spark.testing": "true",
        "spark.test.home": str(directory),
        "derby.system.home": str(directory),
        "jdk.reflect.useDirectMethodHandle": "false",
        **properties,
    }
    options = [*opened, *SMALL, "-Xmx2g", "-Xss4m", *(f"-D{key}={value}" for key, value in properties.items())]
    command = [str(program), *options, "-cp", os.pathsep.join(map(str, [directory, *class_path]))]
    runner = ["org.scalatest.tools.Runner", "-R", str(directory), "-u", "reports", "-oWDF"]
    named = [argument for name in names for argument in ("-s", name)]
    with suppress(subprocess.TimeoutExpired):
        java.run([*command, *runner, *named], directory, directory / "suite.log", seconds=seconds)
    return suites.junit((directory / "reports").glob("TEST-*.xml"))
