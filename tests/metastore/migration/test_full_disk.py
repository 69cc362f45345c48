"""A follower whose own metastore takes no changes: it says why, halts after a while, and goes on afterwards."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg2
import pytest
from sqlalchemy import make_url

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import DATABASE_FULL, DATABASE_READ_ONLY
from metastore.migration.followed import all_of
from metastore.migration.following import Follower, Halted
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.following import complaint, differences, follow, run
from tests.support import builders
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long


@contextmanager
def session(url: str) -> Iterator[psycopg2.extensions.cursor]:
    connection = psycopg2.connect(
        make_url(url).set(drivername="postgresql").render_as_string(hide_password=False),
        options="-c default_transaction_read_only=off",
    )
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


class Small:
    """A database on a disk of 256 MB of its own. `full`: nothing more fits."""

    said = f"{DATABASE_FULL}: could not extend file"

    def __init__(self, directory: Path) -> None:
        self._disk = directory / "disk"
        self._disk.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", str(self._disk)]
        if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("a small disk needs the right to mount one")
        self._space = self._disk / "space"
        self._space.mkdir()
        self._postgres = Postgres(directory / "postgres")
        owner = next((directory / "postgres").rglob("PG_VERSION")).stat()
        shutil.chown(self._space, owner.st_uid, owner.st_gid)
        self._disk.chmod(0o755)
        for parent in self._disk.parents:
            if parent.stat().st_uid == 0 and str(parent).startswith("/tmp/"):
                parent.chmod(parent.stat().st_mode | 0o011)
        self.url = self._postgres.url("small")
        with session(self._postgres.url("postgres")) as cursor:
            cursor.execute(f"CREATE TABLESPACE small LOCATION '{self._space}'")
            cursor.execute("CREATE DATABASE small TABLESPACE small")

    def fill(self) -> None:
        with (self._disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
            while True:
                ballast.write(b"\0" * 4096)

    def free(self) -> None:
        (self._disk / "ballast").unlink()

    def close(self) -> None:
        self._postgres.close()
        subprocess.run(["umount", "-l", str(self._disk)], check=True)


class Refusing:
    """A database that is read-only. `full`: also for sessions that are there already."""

    said = f"{DATABASE_READ_ONLY}: it is a standby, or its default_transaction_read_only is on"

    def __init__(self, directory: Path) -> None:
        self._postgres = Postgres(directory / "postgres")
        self.url = self._postgres.url("small")
        with session(self._postgres.url("postgres")) as cursor:
            cursor.execute("CREATE DATABASE small")

    def _set(self, value: str) -> None:
        with session(self.url) as cursor:
            cursor.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
            cursor.execute("SELECT pg_reload_conf()")

        def is_set() -> bool:
            connection = psycopg2.connect(make_url(self.url).set(drivername="postgresql").render_as_string(False))
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SHOW default_transaction_read_only")
                    return bool(cursor.fetchone() == (value,))
            finally:
                connection.close()

        wait_until(is_set)

    def fill(self) -> None:
        self._set("on")

    def free(self) -> None:
        self._set("off")

    def close(self) -> None:
        self._postgres.close()


@pytest.mark.parametrize("kind", [Small, Refusing])
def test_it_halts_and_goes_on(kind: type[Small] | type[Refusing], tmp_path: Path) -> None:
    disk = kind(tmp_path)
    (tmp_path / "ours").mkdir()
    try:
        with (
            MetastoreServer(tmp_path / "old", "--workers", "1") as old,
            MetastoreServer.on_database(disk.url, tmp_path / "ours") as ours,
            ThriftClient(old.host, old.port) as there,
            ThriftClient(ours.host, ours.port) as here,
        ):
            there.create_database(builders.database("f", locationUri=f"file:{tmp_path}/f"))
            sd = builders.storage(location=f"file:{tmp_path}/f/t")
            there.create_table(builders.table("f", "t", sd=sd, keys=("dt",)))
            run("import", old.uri, "--uri", ours.uri, "--databases", "f")
            before = follow(old.uri, ours, "--databases", "f")["position"]
            disk.fill()
            for number in range(4):
                values = [f"{number}-{some}" for some in range(1_000)]
                long = {"p": "x" * 2_000}
                there.add_partitions([builders.partition("f", "t", value, parameters=long) for value in values])
            said: list[str] = []
            source, target = ThriftSource(old.uri), ThriftSource(ours.uri)
            [followed] = all_of(target, old.uri)
            follower = Follower(
                source,
                target,
                followed,
                threads=2,
                patience=3,
                compare_every=1_000,
                say=lambda standing: None,
                warn=said.append,
            )
            with pytest.raises(Halted, match=r"^halted at [0-9,]+, after 3 s: ") as halted:
                follower.run(until_current=True)
            assert disk.said in str(halted.value)
            assert [each.startswith("waits: ") and disk.said in each for each in said] == [True]
            # What else an operator tries meanwhile says the same.
            hand = ("--uri", ours.uri, "--databases", "f", "--frozen-by-hand")
            assert disk.said in complaint("cut-over", old.uri, "f", *hand)
            assert disk.said in complaint("import", old.uri, "--uri", ours.uri, "--databases", "f")
            assert here.get_all_tables("f") == ["t"]
            disk.free()
            # Of a command that couldn't say how it ended it isn't known.
            run("import", old.uri, "--uri", ours.uri, "--databases", "f", code=None)
            found = follow(old.uri, ours, "--databases", "f", code=None)
            assert found["position"] > before
            assert found["problems"] == []
            assert differences(old.uri, ours, "--databases", "f") == []
    finally:
        disk.close()
