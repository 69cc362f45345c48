"""Runs classes of Hive's own test suite of its client, unchanged out of Maven, against a server.

By hand, one class or one of its tests (a server of ours is started for it):

    python -m tests.interop.hive4_suite TestDatabases
    python -m tests.interop.hive4_suite TestDatabases testAlterDatabase
    python -m tests.interop.hive4_suite --release 3.1.3 TestDatabases

`--uri thrift://… --warehouse DIRECTORY` asks a server that is there already, in that warehouse.
"""

import argparse
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interop import java, maven, suites
from tests.interop.suites import Outcome
from tests.support import method_record
from tests.support.jvm import OPENED, SMALL
from tests.support.reference4 import HADOOP, NOT_OF_HADOOP
from tests.support.server import MetastoreServer

SOURCES = Path(__file__).with_name("hive4_suite_java")
PACKAGE = "org.apache.hadoop.hive.metastore"


@dataclass(frozen=True)
class Release:
    """A release of Hive whose tests are published.

    `artifact`: the one with the tests. `outside`: the classes that are not in the package `client`. `replaced`: our
    sources that stand before Hive's classes.
    """

    version: str
    artifact: str
    replaced: tuple[str, ...]
    outside: tuple[str, ...] = ()

    @property
    def jars(self) -> list[str]:
        suite = f"org.apache.hive:{self.artifact}:{self.version}"
        return [*HADOOP, f"{suite}:tests", suite, "junit:junit:4.13.2", "org.mockito:mockito-core:3.4.4"]


HIVE3 = Release("3.1.3", "hive-standalone-metastore", ("MetaStoreFactoryForTests",))
HIVE4 = Release(
    "4.0.1",
    "hive-standalone-metastore-server",
    ("MetaStoreFactoryForTests", "HiveMetaStore"),
    (
        "TestCatalogNonDefaultClient",
        "TestGetPartitionsUsingProjectionAndFilterSpecs",
        "TestHiveMetaStorePartitionSpecs",
        "TestRemoteHiveMetaStore",
        "TestStats",
    ),
)
RELEASES = {each.version: each for each in (HIVE3, HIVE4)}
#: As the other classes start Hive's own service: with metastore.limit.partition.request at 100.
CONFIGURED = ("--max-partitions-per-request", "100")
#: A test expects one of these classes to refuse by an assertion.
ASSERTING = f"-ea:{PACKAGE}.partition.spec..."
#: What the server logs of every call that was understood.
CALLED = re.compile(r"\bmethod=(\w+)\b.*\boutcome=(?!unknown)")
RUN_SECONDS = 900
JAVA = 17


class SuiteFailed(Exception):
    """The JVM ended before it had run the class. The message is what it printed last."""


class HiveSuite:
    """A release's suite, with our replacements of the classes that choose its server compiled into `directory`.

    Raises `maven.Unavailable` where its jars can't be had, or Java 17 is missing.
    """

    def __init__(self, release: Release, directory: Path) -> None:
        self.release = release
        program = java.find(JAVA, 24)
        if program is None or not program.with_name("javac").exists():
            raise maven.Unavailable("Hive's tests need a JDK 17 (Debian: apt-get install openjdk-17-jdk-headless)")
        self._java = program
        self._jars = maven.class_path(release.jars, exclusions=NOT_OF_HADOOP)
        self._ours = directory / "server-of-ours"
        self._runner = directory / "runner"
        replaced = [SOURCES.rglob(f"{name}.java") for name in release.replaced]
        self._compile(self._ours, {source for found in replaced for source in found})
        self._compile(self._runner, {SOURCES / "suite/Run.java"})

    def _compile(self, target: Path, sources: set[Path]) -> None:
        command = [str(self._java.with_name("javac")), "-d", str(target), "-nowarn", "-proc:none"]
        command += ["--release", str(JAVA), "-cp", ":".join(map(str, self._jars))]
        subprocess.run([*command, *map(str, sorted(sources))], check=True)

    def run(self, name: str, directory: Path, server: tuple[str, Path], *, only: str | None = None) -> list[Outcome]:
        """What became of the tests of the class `name`, with its files in `directory`.

        `server` is the URI and the warehouse of the server to ask; `only` is how the name of the only test to run
        begins.
        """
        inside = "" if name in self.release.outside else "client."
        results, temporary = directory / "results.tsv", directory / "tmp"
        temporary.mkdir(parents=True)
        uri, warehouse = server
        properties: dict[str, object] = {
            "test.tmp.dir": temporary,
            "java.io.tmpdir": temporary,
            "metastore.thrift.uris": uri,
            "metastore.warehouse.dir": warehouse,
            "metastore.warehouse.external.dir": warehouse,
            # Some tests look into a database: this process has one of its own, which isn't the server's.
            "derby.system.home": temporary,
            "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:own;create=true",
            "datanucleus.schema.autoCreateAll": "true",
            "metastore.schema.verification": "false",
        }
        _write_empty_schema(temporary)
        class_path = [self._ours, self._runner, *self._jars]
        options = [f"-D{key}={value}" for key, value in properties.items()]
        arguments = [f"{PACKAGE}.{inside}{name}", str(results), *([only] if only else [])]
        command = [str(self._java), *OPENED, *SMALL, ASSERTING, "-Xmx700m", *options]
        log = directory / "suite.log"
        with log.open("wb") as output:
            ended = subprocess.run(
                [*command, "-cp", ":".join(map(str, class_path)), "suite.Run", *arguments],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=RUN_SECONDS,
            )
        if ended.returncode != 0 or not results.exists():
            raise SuiteFailed(f"exit code {ended.returncode}: {log.read_text(errors='replace')[-3000:]}")
        return [_outcome(line) for line in results.read_text().splitlines()]


def _write_empty_schema(temporary: Path) -> None:
    """What tests run to prepare the database of a server that they start: there is none of theirs."""
    script = temporary / "scripts/metastore/upgrade/derby/hive-schema-4.0.0.derby.sql"
    script.parent.mkdir(parents=True)
    script.write_text("")


def _outcome(line: str) -> Outcome:
    outcome, test, reason = line.split("\t")
    return Outcome(test, outcome, reason.replace("\\n", "\n"))


def run_on_fresh_server(
    suite: HiveSuite, name: str, directory: Path, only: str | None = None
) -> tuple[list[Outcome], set[str]]:
    """What became of the class's tests on a server of ours that nobody used before, and which methods they called."""
    options = () if name in suite.release.outside else CONFIGURED
    with MetastoreServer(directory / "data", *options) as server:
        outcomes = suite.run(name, directory / "suite", (server.uri, server.data_dir / "warehouse"), only=only)
        return outcomes, set(CALLED.findall(server.log.read_text(errors="replace")))


def judge_on_fresh_server(
    suite: HiveSuite, name: str, expected: int, exclusions: Path, directory: Path, request: pytest.FixtureRequest
) -> None:
    """Runs the class `name` on a server that nobody used before, and fails as `suites.judge` does."""
    outcomes, called = run_on_fresh_server(suite, name, directory)
    if (recorder := request.config.pluginmanager.get_plugin(method_record.NAME)) is not None:
        recorder.others_called(called)
    suites.judge(request, name, outcomes, expected, suites.exclusions(exclusions).get(name, []))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="hive4_suite", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", help="the class, without its package")
    parser.add_argument("only", nargs="?", help="how the name of the only test to run begins")
    parser.add_argument("--release", choices=sorted(RELEASES), default=HIVE4.version, help="Hive's (default: 4.0.1)")
    parser.add_argument("--uri", help="a running server")
    parser.add_argument("--warehouse", type=Path, help="its warehouse directory")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="hive4-suite-") as temporary:
        directory = Path(temporary)
        suite = HiveSuite(RELEASES[chosen.release], directory / "classes")
        if chosen.uri:
            outcomes = suite.run(chosen.name, directory / "suite", (chosen.uri, chosen.warehouse), only=chosen.only)
        else:
            outcomes, _ = run_on_fresh_server(suite, chosen.name, directory, chosen.only)
    for each in sorted(outcomes, key=lambda each: each.test):
        print(each.outcome, each.test, each.reason.partition("\n")[0], sep="\t")
        if chosen.only:
            print(each.reason)


if __name__ == "__main__":
    main()
