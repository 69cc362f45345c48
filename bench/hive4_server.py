"""The metastore server of Hive 3.1 or 4 on Postgres, for comparison, with and without its cache.

It runs as its users run it: its own main class in a Java virtual machine of its own.
"""

import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sqlalchemy import URL

from bench.hive_server import DRIVER, why_not
from bench.postgres import HOST, free_port, transaction
from lake.protocol.errors import UserError
from tests.interop import maven
from tests.support.jvm import OPENED
from tests.support.reference import COMMON_SETTINGS, write_configuration, write_log_configuration
from tests.support.reference4 import OWN_SETTINGS, START_SECONDS, Release

MAIN_CLASS = "org.apache.hadoop.hive.metastore.HiveMetaStore"
CACHED_STORE = {
    "metastore.rawstore.impl": "org.apache.hadoop.hive.metastore.cache.CachedStore",
    "metastore.cached.rawstore.max.cache.memory": "1gb",
}
"""Switches Hive's cache on. Otherwise it has its defaults: others' changes are seen within a minute."""

OPENED_FOR_CACHE = [
    f"--add-opens=java.base/java.{package}=ALL-UNNAMED"
    for package in (
        *("io", "math", "nio", "time", "util.concurrent", "util.concurrent.atomic"),
        *("util.concurrent.locks", "util.regex"),
    )
]
"""Packages that Hive's cache looks into to find out how much memory an object takes."""


@dataclass(frozen=True)
class Connection:
    """How Java reaches a database: the jar and the class of its driver, JDBC's URL, and a login."""

    jar: Path
    driver: str
    url: str
    user: str
    password: str


class Hive4Server:
    """A running server with the memory, threads and pools of its documentation and defaults, and a quiet log."""

    def __init__(
        self,
        directory: Path,
        connection: Connection,
        warehouse: Path,
        release: Release,
        *,
        cached: bool,
        jars: Sequence[Path] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Starts it on a database with its tables. `jars`, `settings`: further ones.

        Raises UserError without its jars, or if it doesn't start.
        """
        own = {
            "javax.jdo.option.ConnectionURL": connection.url,
            "javax.jdo.option.ConnectionDriverName": connection.driver,
            "javax.jdo.option.ConnectionUserName": connection.user,
            "javax.jdo.option.ConnectionPassword": connection.password,
            "hive.metastore.warehouse.dir": str(warehouse),
            "hive.metastore.warehouse.external.dir": str(warehouse),
            **(CACHED_STORE if cached else {}),
        }
        try:
            jars = [connection.jar, *jars, *release.class_path()]
        except maven.Unavailable as error:
            raise UserError(str(error)) from None
        conf = directory / "conf"
        write_configuration(conf, {**COMMON_SETTINGS, **OWN_SETTINGS, **release.settings, **own, **(settings or {})})
        write_log_configuration(conf / "log4j2.properties", "warn")
        self.host, self.port = HOST, free_port()
        self._log = directory / "hive.log"
        # `setpriv`: it ends with this process, however that ends.
        command = ["setpriv", "--pdeathsig=KILL", "java", "-Xmx2g", *OPENED, *OPENED_FOR_CACHE]
        command += ["-cp", os.pathsep.join(map(str, [conf, *jars])), MAIN_CLASS, "-p", str(self.port)]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            with closing(socket.socket()) as trial:
                if trial.connect_ex((self.host, self.port)) == 0:
                    return
            time.sleep(0.1)
        raise UserError(f"Hive's server doesn't start; the end of its log:\n{self._log.read_text()[-2000:]}")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Hive4OnPostgres(Hive4Server):
    """On a Postgres."""

    def __init__(
        self, directory: Path, url: URL, warehouse: Path, release: Release, *, cached: bool, **more: Any
    ) -> None:
        """Starts it on an empty database. `more`: as for any server.

        Raises UserError without the driver or the jars, or if it doesn't start.
        """
        if (reason := why_not()) is not None:
            raise UserError(reason)
        try:
            _make_tables(url, release)
        except maven.Unavailable as error:
            raise UserError(str(error)) from None
        address = f"jdbc:postgresql://{url.host}:{url.port}/{url.database}"
        connection = Connection(DRIVER, "org.postgresql.Driver", address, url.username or "", str(url.password))
        super().__init__(directory, connection, warehouse, release, cached=cached, **more)


def _make_tables(url: URL, release: Release) -> None:
    """Makes Hive's tables by its own scripts. Raises `maven.Unavailable`."""
    script = release.script("postgres")
    with transaction(url) as cursor:
        cursor.execute(script.read_text())
        cursor.execute("SET search_path TO public")  # the script has emptied it
        for index in release.dropped_indexes:
            cursor.execute(f'DROP INDEX IF EXISTS "{index}"')
        for table, columns in release.dropped_columns:
            for column in columns:
                cursor.execute(f'ALTER TABLE "{table}" DROP COLUMN IF EXISTS "{column}" CASCADE')
        cursor.execute('UPDATE "VERSION" SET "SCHEMA_VERSION" = %s', [release.schema])
