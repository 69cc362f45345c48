"""MariaDB captured by its binary log: what comes to the raw table, whatever is written, killed or lost meanwhile."""

import json
import random
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest
from pymysqlreplication.event import NotImplementedEvent

from lake.capture.errors import CaptureError, SlotLost
from lake.capture.mysql.log import Log
from lake.capture.mysql.positions import Position
from lake.capture.mysql.source import MysqlSource
from lake.tables.lake import LakeClient
from tests.lake.capture.mysql.conftest import Source
from tests.support import mariadb
from tests.support.called import output
from tests.support.server import MetastoreServer


def rows_of(source: Source, table: str, *columns: str) -> list[str]:
    """The rows of the source, as the raw table has them."""
    found = source.run(f"SELECT {', '.join(columns)} FROM {table}")
    return sorted(json.dumps(dict(zip(columns, row, strict=True)), separators=(",", ":")) for row in found)


def check(source: Source, table: str, *columns: str, key: tuple[str, ...] = ("id",)) -> None:
    assert source.replayed(table, *key) == rows_of(source, table, *columns), table


def test_rows_and_changes(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))")
    source.run("INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, 'c')")
    assert source.capture().rows == {f"{source.name}.t": 4}  # and the columns
    source.run("UPDATE t SET v = 'b' WHERE id = 2")
    source.run("UPDATE t SET id = 9 WHERE id = 3")
    source.run("DELETE FROM t WHERE id = 1")
    source.capture()
    assert source.ops("t") == ["read"] * 3 + ["update", "update", "delete"]
    check(source, "t", "id", "v")
    assert source.capture().rows == {}, "nothing twice"
    source.run("TRUNCATE TABLE t")
    source.run("INSERT INTO t VALUES (4, 'd')")
    source.capture()
    assert source.ops("t")[-2:] == ["truncate", "insert"]
    check(source, "t", "id", "v")


def test_a_transaction_is_whole_or_not_there(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    source.capture()
    source.run("BEGIN")
    source.run("INSERT INTO t VALUES (1, 1)")
    source.capture()
    assert source.ops("t") == []
    source.run("INSERT INTO t VALUES (2, 2)")
    source.run("SAVEPOINT a")
    source.run("INSERT INTO t VALUES (3, 3)")
    source.run("ROLLBACK TO a")
    source.run("COMMIT")
    source.run("BEGIN")
    source.run("INSERT INTO t VALUES (4, 4)")
    source.run("ROLLBACK")
    source.capture()
    assert source.ops("t") == ["insert", "insert"]
    assert len({row["transaction_id"] for row in source.raw("t") if row["op"] == "insert"}) == 1
    check(source, "t", "id", "v")


def test_chunks_by_keys_of_several_columns(source: Source) -> None:
    source.run("CREATE TABLE t (a VARCHAR(10), b DATETIME(3), c VARBINARY(4), v INT, PRIMARY KEY (a, b, c))")
    source.run(
        "INSERT INTO t SELECT CONCAT('k%', seq % 5), TIMESTAMP('2026-01-01') + INTERVAL seq % 7 DAY, CHAR(seq), seq"
        " FROM seq_1_to_200"
    )
    source.capture(chunk_rows=7)
    [_, *rows] = source.raw("t")
    assert len(rows) == 200
    assert sorted(json.loads(row["after"])["v"] for row in rows) == list(range(1, 201))


@pytest.mark.parametrize(
    "definition", ["a INT, b TEXT", "e ENUM('x','y') PRIMARY KEY, a INT", "a FLOAT PRIMARY KEY, b INT"]
)
def test_tables_that_have_no_chunks(source: Source, definition: str) -> None:
    source.run(f"CREATE TABLE t ({definition})")
    source.run("SET sql_mode = ''")
    source.run("INSERT INTO t VALUES (1, 1), (2, 2)")
    source.capture()
    source.run("DELETE FROM t LIMIT 1")
    source.capture()
    assert source.ops("t") == ["truncate", "read", "read", "delete"]
    assert len(source.replayed("t")) == 1


def test_changed_and_exchanged_tables(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    source.run("INSERT INTO t VALUES (1, 1)")
    source.capture()
    source.run("ALTER TABLE t ADD COLUMN w VARCHAR(5) DEFAULT 'x', DROP COLUMN v")
    source.run("INSERT INTO t VALUES (2, 'y')")
    source.capture()
    assert source.ops("t") == ["read", "truncate", "insert", "read", "read", "complete"]
    source.check("t", "id")
    source.run("CREATE TABLE `new t` (id INT PRIMARY KEY, w VARCHAR(5))")
    source.run("INSERT INTO `new t` VALUES (7, 'z')")
    source.run("RENAME TABLE t TO old, `new t` TO t")  # as tools that change schemas online do
    source.run("UPDATE t SET w = 'zz' WHERE id = 7")
    source.capture()
    check(source, "t", "id", "w")
    source.run("DROP TABLE t")
    source.capture()
    assert source.replayed("t", "id") == ['{"id":7,"w":"zz"}'], "rows of a dropped table stay"
    source.run("CREATE TABLE t (id INT PRIMARY KEY, w VARCHAR(5))")
    source.run("INSERT INTO t VALUES (8, 'n')")
    source.capture()
    check(source, "t", "id", "w")
    source.run(f"CREATE OR REPLACE TABLE {source.name}.`t` (id INT PRIMARY KEY, w VARCHAR(5)) SELECT 9 AS id, 'o' AS w")
    source.capture()
    check(source, "t", "id", "w")


def test_some_tables(source: Source) -> None:
    for table in ("a", "b"):
        source.run(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
        source.run(f"INSERT INTO {table} VALUES (1)")
    source.capture(tables=(f"{source.name}.a",))
    source.run("INSERT INTO b VALUES (2)")
    source.run("DROP TABLE b")
    source.capture(tables=(f"{source.name}.a",))
    assert source.ops("a") == ["read"]
    assert source.raw("b") == []
    with pytest.raises(CaptureError, match=r"give DATABASE\.TABLE"):
        source.capture(tables=("a",))


class Killed(BaseException):
    """What a test raises in the place of a kill."""


def dying(chance: random.Random) -> Callable[[str], None]:
    def pause(step: str) -> None:
        if chance.random() < 0.3:
            raise Killed(step)

    return pause


def writing(source: Source, seed: int, seconds: float) -> None:
    """Random transactions over few keys, until some seconds have passed."""
    chance, end = random.Random(seed), time.monotonic() + seconds
    with source.server.connect(source.name) as connection, connection.cursor() as cursor:
        while time.monotonic() < end:
            try:
                cursor.execute("BEGIN")
                for _ in range(chance.randint(1, 5)):
                    id, v = chance.randint(1, 400), chance.randint(0, 9)
                    cursor.execute(
                        *chance.choice(
                            [
                                ("REPLACE INTO t VALUES (%s, %s)", (id, v)),
                                ("UPDATE t SET v = v + 1 WHERE id BETWEEN %s AND %s", (id, id + v)),
                                ("DELETE FROM t WHERE id = %s", (id,)),
                                ("UPDATE IGNORE t SET id = %s WHERE id = %s", (id, id + v)),
                            ]
                        )
                    )
                cursor.execute(chance.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
            except pymysql.err.OperationalError:  # a deadlock
                cursor.execute("ROLLBACK")
            if chance.random() < 0.02:
                cursor.execute("FLUSH BINARY LOGS")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_random_transactions_during_the_snapshot_and_kills(source: Source, seed: int) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    source.run("INSERT INTO t SELECT seq, 0 FROM seq_1_to_400")
    writers = [threading.Thread(target=writing, args=(source, 10 * seed + number, 6)) for number in range(3)]
    for each in writers:
        each.start()
    chance = random.Random(seed)
    deaths = 0
    while any(each.is_alive() for each in writers):
        capture = source.capturing(chunk_rows=13, interval=0.2)
        capture.pause = dying(chance)
        try:
            capture.run(once=True)
        except Killed:
            deaths += 1
    for each in writers:
        each.join()
    source.capture(chunk_rows=13)
    check(source, "t", "id", "v")
    assert deaths > 3
    positions = [(row["epoch"], row["commit_lsn"], row["ordinal"]) for row in source.raw("t")]
    assert len(set(positions)) == len(positions), "nothing twice"


def test_a_source_that_is_killed(metastore_server: MetastoreServer, tmp_path: Any) -> None:
    if (reason := mariadb.missing()) is not None:
        pytest.skip(reason)
    server = mariadb.MariaDb(tmp_path / "m", innodb_flush_log_at_trx_commit="1", sync_binlog="1")
    try:
        with LakeClient(metastore_server.uri) as client:
            source = Source(server, client)
            source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
            source.run("INSERT INTO t SELECT seq, 0 FROM seq_1_to_50")
            capture = source.capturing(interval=0.2)
            running = threading.Thread(target=capture.run)
            running.start()
            for number in range(2):
                source.run("UPDATE t SET v = v + 1 WHERE MOD(id, 2) = %s", number)
                time.sleep(0.5)
                server.stop(kill=True)
                server.start()
                source.connection = server.connect(source.name)
            source.run("DELETE FROM t WHERE id > 40")
            time.sleep(1.5)
            capture.stop()
            running.join(30)
            assert not running.is_alive()
            source.capture()
            check(source, "t", "id", "v")
            gone = source.capturing()
            source.run("FLUSH BINARY LOGS")
            source.run("INSERT INTO t VALUES (100, 1)")
            source.run(f"PURGE BINARY LOGS TO '{source.run('SHOW MASTER STATUS')[0][0]}'")
            with pytest.raises(SlotLost, match="the source has removed"):
                gone.run(once=True)
            source.capture(new_snapshot=True)
            check(source, "t", "id", "v")
            source.run("RESET MASTER")
            source.run("UPDATE t SET v = 77")
            with pytest.raises(SlotLost, match=r"start again with --new-snapshot"):
                source.capture()
            source.capture(new_snapshot=True)
            check(source, "t", "id", "v")
            assert {row["epoch"] for row in source.raw("t")} == {1, 2, 3}
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SET GLOBAL binlog_row_metadata = 'MINIMAL'", "binlog_row_metadata is MINIMAL, not FULL: SET GLOBAL"),
        ("SET GLOBAL binlog_row_image = 'MINIMAL'", "binlog_row_image is MINIMAL"),
        ("SET GLOBAL binlog_format = 'MIXED'", "binlog_format is MIXED"),
    ],
)
def test_a_source_that_is_set_otherwise(source: Source, statement: str, message: str) -> None:
    name = statement.split()[2]
    before = source.run(f"SELECT @@GLOBAL.{name}")[0][0]
    source.run(statement)
    try:
        with pytest.raises(CaptureError, match=message):
            source.capture()
    finally:
        source.run(f"SET GLOBAL {name} = %s", before)


def test_what_is_not_in_the_log_is_read(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    source.run("CREATE TABLE u (id INT PRIMARY KEY)")
    source.run("CREATE TRIGGER after_t AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (NEW.id)")
    source.capture()
    source.run("SET SESSION binlog_format = 'STATEMENT'")
    source.run("USE mysql")
    source.run(f"INSERT INTO {source.name}.t VALUES (1, 'a')")
    source.run(f"USE {source.name}")
    source.run("SET SESSION binlog_format = 'ROW'")
    source.run("SET SESSION binlog_row_image = 'MINIMAL'")
    source.run("UPDATE t SET v = 'b' WHERE id = 1")
    source.run("SET SESSION binlog_row_image = 'FULL'")
    source.run("INSERT INTO t VALUES (2, 'c')")
    source.capture()
    source.check("t", "id")
    source.check("u", "id")


def test_rows_that_are_taken_back(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    source.run("CREATE TABLE kept (id INT) ENGINE = MyISAM")
    source.capture()
    for end in ("ROLLBACK TO s", "COMMIT", "ROLLBACK"):
        source.run("BEGIN")
        source.run("INSERT INTO t SELECT 1 + count(*) FROM kept")
        source.run("INSERT INTO kept VALUES (1)")
        source.run("SAVEPOINT s")
        source.run("INSERT INTO t SELECT 101 + count(*) FROM kept")
        source.run("INSERT INTO kept VALUES (1)")
        source.run(end)
        source.run("COMMIT")
    source.capture()
    source.check("t", "id")
    assert len(source.replayed("t", "id")) == 3


def test_data_that_is_loaded_by_a_statement(source: Source, tmp_path: Any) -> None:
    (tmp_path / "rows").write_text("1\n2\n")
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    source.capture()
    source.run("SET SESSION binlog_format = 'STATEMENT'")
    with source.server.connect(source.name, local_infile=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute(f"LOAD DATA LOCAL INFILE '{tmp_path / 'rows'}' INTO TABLE t")
    source.run("SET SESSION binlog_format = 'ROW'")
    source.capture()
    source.check("t", "id")
    assert len(source.replayed("t", "id")) == 2


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u:secret@h/d", "a password doesn't belong on the command line"),
        ("mysql://u@h", "of the form mysql://"),
        ("mysql://u@h/d?x=1", "has the option x"),
        ("mysql://u@localhost:1/d", "can't connect to the source"),
    ],
)
def test_other_urls(source: Source, url: str, message: str) -> None:
    with pytest.raises(CaptureError, match=message) as caught:
        source.capturing(source=url).run(once=True)
    assert "secret" not in str(caught.value)


def test_another_server(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    source.capture()
    source.run("SET GLOBAL server_id = 8")
    try:
        with pytest.raises(CaptureError, match="has the changes of the server 7, and the source is 8"):
            source.capture()
    finally:
        source.run("SET GLOBAL server_id = 7")


def test_the_commands(source: Source, metastore_server: MetastoreServer) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP(3) NULL, v VARBINARY(9))")
    source.run("INSERT INTO t VALUES (1, '2026-01-01 00:00:00', 'x')")
    place = ("--into", source.into, "--uri", metastore_server.uri)
    said = json.loads(output("capture", source.url, *place, "--once", "--json"))
    assert said["rows"] == {f"{source.name}.t": 2}
    status = json.loads(output("capture", "status", source.url, *place, "--json"))
    assert (status["server"], status["snapshot"], status["alarm"]) == (7, "done", None)
    assert status["lag_bytes"] == 0
    defined = output("capture", "definitions", *place)
    assert "try_cast(both_images.image.`at` AS TIMESTAMP)" in defined
    assert "unhex(substring(both_images.image.`v`, 3))" in defined


@pytest.mark.parametrize(("kind", "message"), [(26, "has lost a part of its log"), (199, "of the type 199")])
def test_events_of_the_log_that_are_not_known(source: Source, kind: int, message: str) -> None:
    with Log(MysqlSource(source.url), Position("mariadb-bin.000001", 4)) as log:
        event = NotImplementedEvent.__new__(NotImplementedEvent)
        event.event_type, event.packet = kind, SimpleNamespace(flags=0)
        with pytest.raises(CaptureError, match=message):
            list(log._taken(event))
        event.packet.flags = 0x80
        event.event_type = 199
        assert list(log._taken(event)) == []
