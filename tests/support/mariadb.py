"""A MariaDB of the tests' own, from Debian's packages."""

import getpass
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pymysql

SETTINGS = {
    "log-bin": "mariadb-bin",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "server-id": "7",
    "innodb-buffer-pool-size": "64M",
    "innodb-flush-log-at-trx-commit": "2",
    "sync-binlog": "0",
    "skip-networking": "1",
}

_COMMANDS = {
    "mariadbd": "mariadb-server-core",
    "mariadb-install-db": "mariadb-server-core",
    "my_print_defaults": "mariadb-client-core",
}
"""Debian's packages of the commands that are needed."""


def missing() -> str | None:
    """Why there is no MariaDB; None if there is one."""
    for command, package in _COMMANDS.items():
        if shutil.which(command) is None:
            return f"{command} is not installed (Debian: {package})"
    return None


class MariaDb:
    """A running server, reached by a Unix socket, with a user `root` without a password."""

    def __init__(self, directory: Path, **settings: str) -> None:
        """`settings`: more than SETTINGS, with `_` in the place of `-`."""
        self.directory = directory
        self.socket = directory / "s"
        self._data = directory / "data"
        self._settings = {**SETTINGS, **{name.replace("_", "-"): value for name, value in settings.items()}}
        directory.mkdir(parents=True)
        owner = ("--user", getpass.getuser())
        made = ["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run([*made, f"--datadir={self._data}", *owner], check=True, capture_output=True)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        command = ["mariadbd", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={self._data}"]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen([*command, f"--socket={self.socket}", *options], stdout=log, stderr=log)
        for _ in range(300):
            try:
                self.connect().close()
                return
            except pymysql.OperationalError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.1)
        raise RuntimeError((self.directory / "log").read_text()[-2_000:])

    def stop(self, *, kill: bool = False) -> None:
        """Stops it, or kills it."""
        if self._process is not None:
            (self._process.kill if kill else self._process.terminate)()
            self._process.wait()
            self._process = None

    def connect(self, database: str | None = None, **options: Any) -> "pymysql.Connection[Any]":
        """A connection of root's that commits each statement."""
        return pymysql.connect(
            unix_socket=str(self.socket), user="root", database=database, autocommit=True, charset="utf8mb4", **options
        )

    def url(self, database: str) -> str:
        return f"mysql://root@localhost/{database}?unix_socket={self.socket}"
