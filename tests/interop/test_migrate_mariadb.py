"""Hive metastores on MariaDB come over: Hive 4's, and one with the schema of Hive 3.1."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.hive4_server import Connection, Hive4Server
from bench.postgres import HOST, free_port
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from tests.interop import maven
from tests.interop.test_migrate_hive4 import add_constraints
from tests.metastore.migration.random_catalog import Catalog, Maker
from tests.metastore.migration.same_sources import assert_same
from tests.support import command, mariadb
from tests.support.mariadb import MariaDb
from tests.support.reference4 import BEFORE, SCHEMA
from tests.support.server import MetastoreServer

USER, PASSWORD = "hive", "s3cret"
DRIVER = "com.mysql.cj.jdbc.Driver"
OPTIONS = "useSSL=false&allowPublicKeyRetrieval=true&nullDatabaseMeansCurrent=true"


@pytest.fixture(scope="module")
def archive() -> Path:
    """Hive's scripts, and MySQL's driver, which lies beside them."""
    try:
        return maven.unpacked(BEFORE.scripts)
    except maven.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def driver(archive: Path) -> Path:
    [jar] = archive.glob("lib/mysql-connector-*.jar")
    return jar


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MariaDb, int]]:
    """A server that Java reaches by a port, too."""
    if (reason := mariadb.missing()) is not None:
        pytest.skip(reason)
    port = free_port()
    server = MariaDb(tmp_path_factory.mktemp("mariadb") / "m", skip_networking="0", bind_address=HOST, port=str(port))
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'")
        cursor.execute(f"GRANT ALL ON *.* TO '{USER}'@'%'")
    yield server, port
    server.stop()


def url_of(name: str, port: int) -> str:
    return f"mysql://{USER}:{PASSWORD}@{HOST}:{port}/{name}"


def make(server: MariaDb, name: str, script: Path | None = None) -> None:
    """A database with the tables of one of Hive's scripts."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET latin1")
    if script is not None:
        client = ["mariadb", "--no-defaults", f"--socket={server.socket}", "--user=root", name]
        with script.open() as statements:
            subprocess.run(client, stdin=statements, check=True, cwd=script.parent)


def script_of(archive: Path, version: str) -> Path:
    return archive / f"scripts/metastore/upgrade/mysql/hive-schema-{version}.mysql.sql"


def run(*arguments: str) -> dict[str, Any]:
    result = command.run("migrate", *arguments, "--json")
    assert result.stdout, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    assert result.returncode == 0, [found.get("problems"), found["differences"]]
    return found


@pytest.fixture(scope="module")
def hive4(
    archive: Path, driver: Path, database: tuple[MariaDb, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, Catalog]]:
    """The URLs of a Hive 4's database and of its server, and what was made there."""
    server, port = database
    make(server, "hive4", script_of(archive, SCHEMA))
    address = f"jdbc:mysql://{HOST}:{port}/hive4?{OPTIONS}"
    home = tmp_path_factory.mktemp("hive4_on_mariadb")
    connection = Connection(driver, DRIVER, address, USER, PASSWORD)
    try:
        hive = Hive4Server(home, connection, home / "warehouse", BEFORE, cached=False)
    except UserError as error:
        pytest.skip(str(error))
    with hive, ThriftClient(hive.host, hive.port) as client:
        made = Maker(client, "mig", tmp_path_factory.mktemp("old"), seed=4, latin=True).make()
        for name in made.databases:
            add_constraints(client, name)
        yield url_of("hive4", port), f"thrift://{hive.host}:{hive.port}", made


@pytest.fixture(scope="module")
def hive3(hive4: tuple[str, str, Catalog], archive: Path, database: tuple[MariaDb, int]) -> str:
    """The URL of a database of Hive 3.1 with the rows of Hive 4's.

    No server of Hive 3 runs on today's Java.
    """
    server, port = database
    make(server, "hive3", script_of(archive, "3.1.0"))
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT a.table_name, group_concat(concat('`', a.column_name, '`'))"
            " FROM information_schema.columns a JOIN information_schema.columns b"
            " ON lower(a.table_name) = lower(b.table_name) AND a.column_name = b.column_name"
            " WHERE a.table_schema = 'hive3' AND b.table_schema = 'hive4' GROUP BY a.table_name"
        )
        shared = cursor.fetchall()
        cursor.execute("SET foreign_key_checks = 0")
        for table, columns in shared:
            if table != "VERSION":
                cursor.execute(f"DELETE FROM hive3.`{table}`")
                cursor.execute(f"INSERT INTO hive3.`{table}` ({columns}) SELECT {columns} FROM hive4.`{table}`")
    return url_of("hive3", port)


@pytest.mark.parametrize("schema", ["4.0", "3.1"])
def test_rows_say_what_hives_server_says(hive4: tuple[str, str, Catalog], hive3: str, schema: str) -> None:
    url, uri, made = hive4
    assert_same(url if schema == "4.0" else hive3, uri, made)


@pytest.mark.parametrize("schema", ["4.0", "3.1"])
def test_all_comes_over(hive4: tuple[str, str, Catalog], hive3: str, tmp_path: Path, schema: str) -> None:
    url, uri, made = hive4
    source = url if schema == "4.0" else hive3
    with MetastoreServer(tmp_path / "data", "--workers", "1") as ours:
        first = run("import", source, "--uri", ours.uri)
        assert (first["problems"], first["differences"]) == ([], [])
        assert first["added"] >= made.objects
        assert run("import", source, "--uri", ours.uri)["added"] == 0
        # Hive 3.1 keeps no time for a database, so Hive 4's server tells another one.
        for each in (source, uri) if schema == "4.0" else (source,):
            found = run("verify", each, "--uri", ours.uri)
            assert found["differing"] == 0 and found["compared"] >= made.objects
