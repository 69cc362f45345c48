"""Trino in one process, of an older release and of a newer one, for a newer Java."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.interop import java
from tests.support import jvm
from tests.support import object_store as s3

#: The Java versions that a release runs on, from the first to below the second.
RELEASES = {"411": (17, 24), "476": (24, 99)}
JARS = {
    "411": ("io.trino:trino-testing:411", "io.trino:trino-hive:411"),
    "476": (
        # What Trino's own build says of these versions isn't in what it publishes.
        *("io.airlift:http-client:336", "io.airlift:jaxrs:336", "io.airlift:jmx:336"),
        *("io.trino:trino-testing:476", "io.trino:trino-hive:476"),
    ),
}
ICEBERG = (*JARS["476"][:-1], "io.trino:trino-iceberg:476")
"""The jars of the newer release with Iceberg's connector."""
FACTORIES = {
    "hive": "io.trino.plugin.hive.HiveConnectorFactory",
    "iceberg": "io.trino.plugin.iceberg.IcebergConnectorFactory",
}
OPTIONS = {"411": (), "476": ("--add-modules=jdk.incubator.vector",)}


class TrinoError(Exception):
    """A statement failed; the text is what Trino's exception and its causes say."""


class Trino:
    """A Trino of one node."""

    def __init__(self, machine: Any, release: str, catalogs: Mapping[str, Mapping[str, str]], connector: str) -> None:
        """`catalogs`: settings of catalogs of a connector, by their names. The first is the usual one."""
        usual = next(iter(catalogs))
        self._session = machine.io.trino.testing.TestingSession.testSessionBuilder().setCatalog(usual).build()
        try:
            self._runner = self._start(machine, release, catalogs, connector)
        except Py4JJavaError as error:
            raise TrinoError(java.failure(error.java_exception)) from None

    def _start(self, machine: Any, release: str, catalogs: Mapping[str, Mapping[str, str]], connector: str) -> Any:
        builder = machine.io.trino.testing.DistributedQueryRunner.builder(self._session)
        runner = (builder.setNodeCount(1) if release == "411" else builder.setWorkerCount(0)).build()
        factory = operator.attrgetter(FACTORIES[connector])(machine)()
        runner.installPlugin(machine.io.trino.connector.MockConnectorPlugin(factory))
        for catalog, settings in catalogs.items():
            properties = machine.java.util.HashMap()
            for key, value in settings.items():
                properties[key] = value
            runner.createCatalog(catalog, connector, properties)
        return runner

    def sql(self, statement: str) -> list[list[Any]]:
        """The rows that a statement answers. Raises TrinoError."""
        try:
            rows = self._runner.execute(self._session, statement).getMaterializedRows()
        except Py4JJavaError as error:
            raise TrinoError(java.failure(error.java_exception)) from None
        return [list(row.getFields()) for row in rows]

    def column(self, query: str) -> list[Any]:
        return [row[0] for row in self.sql(query)]

    def close(self) -> None:
        self._runner.close()


@contextmanager
def running(
    release: str,
    jars: Sequence[Path],
    directory: Path,
    catalogs: Mapping[str, Mapping[str, str]],
    options: Sequence[str] = (),
    connector: str = "hive",
) -> Iterator[Trino]:
    """A Trino in a JVM of its own, which gets further `options`. Raises TrinoError."""
    program = java.find(*RELEASES[release])
    assert program is not None
    needed = ("-Xmx1g", *jvm.SMALL, "--add-opens=java.base/java.nio=ALL-UNNAMED", *OPTIONS[release])
    with jvm.running(jars, directory, java=program, options=[*needed, *options]) as gateway:
        engine = Trino(gateway.jvm, release, catalogs, connector)
        yield engine
        engine.close()


def missing(release: str) -> str | None:
    """Why a release can't run here; None if it can."""
    first, below = RELEASES[release]
    if java.find(first, below) is None:
        return f"Trino {release} needs a Java of at least {first} and below {below}"
    return None


@contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """A stand-in for S3 with an empty bucket `lake`, for what this process does or starts; Trino's settings for it."""
    with s3.running("lake") as address:
        yield {
            "fs.native-s3.enabled": "true",
            "s3.endpoint": f"http://{address}",
            "s3.region": s3.REGION,
            "s3.path-style-access": "true",
            "s3.aws-access-key": s3.KEY,
            "s3.aws-secret-key": s3.SECRET,
        }
