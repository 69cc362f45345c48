"""A Hive metastore is read in its own database."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from pymysql.constants import CLIENT
from sqlalchemy import make_url

from bench.hive_server import HiveOnPostgres, why_not
from bench.postgres import LoopbackPostgres
from lake.protocol.connection.thrift_client import ThriftClient
from metastore.migration.hive_database import HiveDatabase
from metastore.migration.hive_rows import HiveRows
from metastore.migration.objects import Positions, TableKey
from metastore.migration.source import SourceFailed
from tests.metastore.migration.random_catalog import Catalog, Maker
from tests.metastore.migration.same_sources import assert_same
from tests.support import called, mariadb
from tests.support.mariadb import MariaDb
from tests.support.reference import missing
from tests.support.server import MetastoreServer


class SmallHive(HiveOnPostgres):
    java_options = ("-Xmx512m",)
    threads = (8, 64)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database that Java reaches, too."""
    if (reason := missing() or why_not()) is not None:
        pytest.skip(reason)
    server = LoopbackPostgres(tmp_path_factory.mktemp("hives_postgres") / "data")
    yield server.create("hive").render_as_string(hide_password=False)
    server.close()


@pytest.fixture(scope="module")
def hive(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallHive]:
    directory = tmp_path_factory.mktemp("hive_on_postgres")
    with SmallHive(directory, make_url(url), directory / "warehouse") as server:
        yield server


@pytest.fixture(scope="module")
def made(hive: SmallHive, tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    with ThriftClient(hive.host, hive.port) as client:
        return Maker(client, "mig", tmp_path_factory.mktemp("old"), seed=2).make()


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path / "data", "--workers", "1") as server:
        yield server


def run(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = called.run("migrate", *arguments, "--json")
    assert result.returncode == code, result
    return json.loads(result.stdout)


@pytest.mark.long
def test_rows_say_what_hives_server_says(url: str, hive: SmallHive, made: Catalog) -> None:
    assert_same(url, f"thrift://{hive.host}:{hive.port}", made)


@pytest.mark.long
def test_all_comes_over(url: str, hive: SmallHive, made: Catalog, ours: MetastoreServer) -> None:
    first = run("import", url, "--uri", ours.uri)
    assert (first["problems"], first["differences"]) == ([], [])
    assert first["added"] >= made.objects
    again = run("import", url, "--uri", ours.uri)
    assert (again["added"], again["problems"], again["differences"]) == (0, [], [])
    for source in (url, f"thrift://{hive.host}:{hive.port}"):
        found = run("verify", source, "--uri", ours.uri)
        assert found["differing"] == 0 and found["compared"] >= made.objects
    plan = run("plan", url)
    assert plan["objects"]["partitions"] > 0
    assert not [each for each in plan["remarks"] if "by Thrift" in each["text"]]


TABLES = """
CREATE TABLE "VERSION" ("SCHEMA_VERSION" text);
INSERT INTO "VERSION" VALUES ('3.1.0');
CREATE TABLE "DBS" ("DB_ID" int, "NAME" text);
INSERT INTO "DBS" VALUES (1, 'd');
CREATE TABLE "TBLS" (
    "TBL_ID" int, "DB_ID" int, "TBL_NAME" text, "SD_ID" int, "OWNER" text, "CREATE_TIME" int, "LAST_ACCESS_TIME" int,
    "RETENTION" int, "TBL_TYPE" text, "VIEW_ORIGINAL_TEXT" text, "VIEW_EXPANDED_TEXT" text
);
INSERT INTO "TBLS" ("TBL_ID", "DB_ID", "TBL_NAME", "SD_ID") VALUES (1, 1, 't', 1);
CREATE TABLE "SDS" (
    "SD_ID" int, "CD_ID" int, "SERDE_ID" int, "LOCATION" text, "INPUT_FORMAT" text, "OUTPUT_FORMAT" text,
    "IS_COMPRESSED" bool, "NUM_BUCKETS" int, "IS_STOREDASSUBDIRECTORIES" bool
);
INSERT INTO "SDS" ("SD_ID", "CD_ID") VALUES (1, 1);
CREATE TABLE "COLUMNS_V2" ("CD_ID" int, "COLUMN_NAME" text, "TYPE_NAME" text, "COMMENT" text, "INTEGER_IDX" int);
INSERT INTO "COLUMNS_V2" VALUES (1, 'a', 'int', NULL, 0);
CREATE TABLE txns (txn_id int, txn_state char);
CREATE TABLE next_txn_id (ntxn_next int);
INSERT INTO next_txn_id VALUES (8);
"""
"""Some of a Hive metastore's, with one table."""


@pytest.fixture(params=["postgres", pytest.param("mariadb", marks=pytest.mark.long)])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        changed(url, TABLES)
        yield url
        return
    if (reason := mariadb.missing()) is not None:
        pytest.skip(reason)
    server = MariaDb(tmp_path / "m")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE hive CHARACTER SET latin1")
    url = f"mysql://root@localhost/hive?unix_socket={server.socket}"
    changed(url, TABLES)
    yield url
    server.stop()


def changed(url: str, statements: str) -> None:
    """Executes statements, in one transaction."""
    of = make_url(url)
    options: dict[str, Any] = {}
    if of.drivername == "mysql":
        of = of.set(drivername="mysql+pymysql")
        options = {"init_command": "SET sql_mode = 'ANSI_QUOTES'", "client_flag": CLIENT.MULTI_STATEMENTS}
    engine = sqlalchemy.create_engine(of, isolation_level="AUTOCOMMIT", connect_args=options)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"BEGIN; {statements.strip().rstrip(';')}; COMMIT")
    engine.dispose()


def test_what_changes_while_it_is_read_is_read_before_or_after(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with neither the old columns nor the new ones; a transaction that is open, and counts as committed."""
    read = HiveRows._read
    columns = """UPDATE "SDS" SET "CD_ID" = 2; UPDATE "COLUMNS_V2" SET "CD_ID" = 2, "COLUMN_NAME" = 'b'"""
    begun = "UPDATE next_txn_id SET ntxn_next = 9; INSERT INTO txns VALUES (8, 'o')"
    changes = {'"SDS"': columns, '"txns"': begun}

    def meanwhile(rows: HiveRows, statement: str, values: Any) -> Any:
        found = list(read(rows, statement, values))
        for table in [each for each in changes if f"FROM {each}" in statement.replace("`", '"')]:
            changed(small, changes.pop(table))
        return iter(found)

    monkeypatch.setattr(HiveRows, "_read", meanwhile)
    source = HiveDatabase(small)
    try:
        for names, position in ((["a"], Positions(7, [], [])), (["b"], Positions(8, [8], []))):
            table = source.table(TableKey("hive", "d", "t"))
            assert table is not None
            assert (table.columns, source.positions()) == (names, position)
    finally:
        source.close()
    assert not changes


def test_bit_vectors_are_heard_by_what_they_hold(small: str) -> None:
    kind = "blob" if small.startswith("mysql") else "bytea"
    changed(small, f"""CREATE TABLE "PART_COL_STATS" ("PART_ID" int, "BIT_VECTOR" {kind})""")
    changed(small, """INSERT INTO "PART_COL_STATS" VALUES (1, 'one')""")
    rows = HiveRows(small)

    def heard() -> bytes | None:
        with rows.heard() as answers:
            rows.rows("PART_COL_STATS")
        return answers()

    before = heard()
    assert heard() == before
    changed(small, """UPDATE "PART_COL_STATS" SET "BIT_VECTOR" = 'two'""")
    assert heard() != before
    rows.close()


def test_constraints_whose_columns_have_changed_since_are_none(small: str) -> None:
    """Hive 2.3 leaves their rows, and its server doesn't tell them."""
    columns = "CHILD_CD_ID CHILD_INTEGER_IDX CHILD_TBL_ID PARENT_CD_ID PARENT_INTEGER_IDX PARENT_TBL_ID POSITION"
    numbers = ", ".join(f'"{each}" int' for each in columns.split())
    changed(
        small,
        f"""
        CREATE TABLE "KEY_CONSTRAINTS" (
            {numbers}, "CONSTRAINT_NAME" text, "CONSTRAINT_TYPE" int, "UPDATE_RULE" int, "DELETE_RULE" int,
            "ENABLE_VALIDATE_RELY" int
        );
        INSERT INTO "KEY_CONSTRAINTS" VALUES (NULL, NULL, NULL, 9, 0, 1, 1, 'old', 0, NULL, NULL, 1);
        INSERT INTO "KEY_CONSTRAINTS" VALUES (9, 0, 1, 1, 0, 1, 1, 'older', 1, 0, 0, 1);
        INSERT INTO "KEY_CONSTRAINTS" VALUES (NULL, NULL, NULL, 1, 0, 1, 1, 'pk', 0, NULL, NULL, 1);
        """,
    )
    found = HiveDatabase(small).table(TableKey("hive", "d", "t"))
    assert found is not None
    assert [(each.pk_name, each.column_name) for each in found.constraints.primaryKeys or ()] == [("pk", "a")]
    assert found.constraints.foreignKeys == []


def test_tables_that_may_not_be_read_are_not_taken_for_missing_ones(small: str) -> None:
    """Otherwise all constraints would be lost, and nobody would know."""
    tables = re.findall(r"CREATE TABLE (\S+)", TABLES)
    changed(small, 'CREATE TABLE "KEY_CONSTRAINTS" ("PARENT_TBL_ID" int, "CHILD_TBL_ID" int, "CONSTRAINT_TYPE" int)')
    if small.startswith("mysql"):
        reader, everything = "'reader_of_hive'@'localhost'", "hive.*"
        changed(small, f"CREATE USER {reader}")
    else:
        reader, everything = "reader_of_hive", "ALL TABLES IN SCHEMA public"
        changed(small, f"CREATE ROLE {reader} LOGIN")
    changed(small, "; ".join(f"GRANT SELECT ON {each} TO {reader}" for each in tables))
    key = TableKey("hive", "d", "t")
    url = make_url(small).set(username="reader_of_hive").render_as_string(hide_password=False)
    with pytest.raises(SourceFailed, match="the user may not read the table "):
        HiveDatabase(url).table(key)
    changed(small, f"GRANT SELECT ON {everything} TO {reader}")
    source = HiveDatabase(url)
    table = source.table(key)
    assert table is not None and table.columns == ["a"]
    source.close()


def test_what_is_no_hive_is_refused(postgres_url: str) -> None:
    line = called.complaint("migrate", "plan", postgres_url)
    assert "is not the database of a Hive metastore" in line and "password" not in line
    line = called.complaint("migrate", "plan", "postgresql://me:s3cret@127.0.0.1:1/hive")
    assert "can't be read" in line and "s3cret" not in line
