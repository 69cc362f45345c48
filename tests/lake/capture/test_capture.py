"""Captures from a real Postgres: what each kind of change comes to."""

import json
import os
import threading
from collections.abc import Callable
from typing import Any

import psycopg2
import pytest

from lake.capture.errors import CaptureError, SlotLost
from lake.capture.postgres import capture as capture_module
from lake.capture.postgres.capture import Capture
from lake.capture.postgres.source import Source as CapturedSource
from lake.capture.postgres.source import open_source
from lake.capture.raw_table import RawTable
from lake.tables.lake import LakeClient
from tests.lake.capture.shop import Source
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

LARGE = "encode(sha512(random()::text::bytea), 'hex') || repeat(md5(random()::text) || md5(random()::text), 100)"


def test_rows_that_were_there_and_what_changes(source: Source) -> None:
    source.run("CREATE TABLE orders (id bigint PRIMARY KEY, item text, price numeric(10,2))")
    source.run("INSERT INTO orders SELECT n, 'item ' || n, n / 4.0 FROM generate_series(1, 50) n")
    source.capture(chunk_rows=20)
    assert source.ops("orders") == ["read"] * 50
    source.check("orders", "id")
    source.run("UPDATE orders SET price = 3.10 WHERE id < 4; DELETE FROM orders WHERE id = 7")
    source.run("UPDATE orders SET id = 100 WHERE id = 9")
    source.capture()
    assert source.ops("orders")[50:] == ["update"] * 3 + ["delete", "update"]
    source.check("orders", "id")
    latest = source.raw("orders")[-1]
    assert json.loads(latest["before"]) == {"id": 9}
    assert latest["committed_at"].tzinfo is not None
    positions = [(row["epoch"], row["commit_lsn"], row["ordinal"]) for row in source.raw("orders")]
    assert len(set(positions)) == len(positions)


def test_its_partitions_are_hidden(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    source.capture()
    lake = source.client.table(source.into)
    assert lake.partitions(ready=False) == ["source_table=public.t"]
    assert [*lake.snapshot()] == []


def test_several_keys_in_another_order_than_the_columns(source: Source) -> None:
    source.run("CREATE TABLE t (a text, v int, b int, PRIMARY KEY (b, a))")
    source.run("INSERT INTO t SELECT chr(97 + n % 7) || '''\"\\%s', n, n / 7 FROM generate_series(1, 100) n")
    source.capture(chunk_rows=7)
    source.check("t", "a", "b")
    assert source.ops("t") == ["read"] * 100, "no chunk overlaps another"
    source.run("UPDATE t SET a = 'moved' WHERE b = 3 AND v % 7 = 2; UPDATE t SET v = 0 WHERE b = 4")
    source.capture()
    source.check("t", "a", "b")


def test_a_large_value_that_an_update_leaves_alone(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, n int, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    source.run(f"INSERT INTO t SELECT n, 0, {LARGE} FROM generate_series(1, 3) n")
    source.capture()
    source.run("UPDATE t SET n = 1 WHERE id = 1")
    source.capture()
    row = source.raw("t")[-1]
    assert row["unchanged"] == ["body"]
    assert "body" not in json.loads(row["after"])
    source.check("t", "id")


def test_a_large_value_of_a_row_that_gets_another_key_is_read_again(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    source.run(f"INSERT INTO t SELECT n, {LARGE} FROM generate_series(1, 3) n")
    source.capture()
    source.run("UPDATE t SET id = 10 WHERE id = 2")
    source.capture()
    assert source.ops("t")[3:] == ["incomplete", "update", "read", "complete"]
    assert json.loads(source.raw("t")[-2]["after"]).keys() == {"id", "body"}
    source.check("t", "id")


def test_with_all_columns_as_identity_nothing_is_missing(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, n int, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    source.run("ALTER TABLE t REPLICA IDENTITY FULL")
    source.run(f"INSERT INTO t SELECT n, 0, {LARGE} FROM generate_series(1, 3) n")
    source.capture(chunk_rows=2)
    source.run("UPDATE t SET n = 1 WHERE id = 1; UPDATE t SET id = 7 WHERE id = 2; DELETE FROM t WHERE id = 3")
    source.capture()
    changes = source.raw("t")[-3:]
    assert [row["unchanged"] for row in changes] == [None] * 3
    assert all(json.loads(row["before"]).keys() == {"id", "n", "body"} for row in changes)
    source.check("t", "id")


def test_truncations(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)")
    source.run("INSERT INTO t VALUES (1), (2); INSERT INTO u VALUES (3)")
    source.capture()
    source.run("TRUNCATE t, u; INSERT INTO t VALUES (2), (5)")
    source.capture()
    assert source.ops("t")[2:] == ["truncate", "insert", "insert"]
    assert source.ops("u")[1:] == ["truncate"]
    source.check("t", "id")
    source.check("u", "id")


def test_a_definition_that_changes(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int, b text); INSERT INTO t VALUES (1, 2, 'x')")
    source.capture()
    source.run("ALTER TABLE t ADD c numeric DEFAULT 7; INSERT INTO t VALUES (2, 3, 'y', 1.50)")
    source.run("ALTER TABLE t RENAME a TO d; ALTER TABLE t DROP b; INSERT INTO t VALUES (3, 4, 2)")
    source.capture()
    schemas = [json.loads(row["after"]) for row in source.raw("t") if row["op"] == "schema"]
    assert len({each.pop("form") for columns in schemas for each in columns}) == 6, "the last two begin with id"
    assert len({each.pop("table") for columns in schemas for each in columns}) == 1, "it's the same table"
    assert [[each["name"] for each in columns] for columns in schemas] == [
        ["id", "a", "b"],
        ["id", "a", "b", "c"],
        ["id", "d", "c"],
    ]
    described = {"name": "a", "type": "int", "source_type": "integer", "key": False, "large": False, "number": 2}
    assert schemas[0][1] == described
    changes = [row for row in source.raw("t") if row["op"] == "insert"]
    assert json.loads(changes[-1]["after"]) == {"id": 3, "d": 4, "c": "2"}


def test_a_table_that_is_made_anew(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    source.capture()
    source.run("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (2, 2)")
    source.capture()
    source.check("t", "id")
    source.run("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY)")
    source.capture()
    source.check("t", "id")
    assert source.ops("t")[-2:] == ["truncate", "complete"]


def test_tables_without_a_key(source: Source) -> None:
    source.run("CREATE TABLE t (n int, s text); ALTER TABLE t REPLICA IDENTITY FULL; CREATE TABLE log (s text)")
    source.run("INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, NULL); INSERT INTO log VALUES ('x'), ('x')")
    source.capture()
    source.run("DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t); UPDATE t SET s = 'b' WHERE n = 2")
    source.run("INSERT INTO log VALUES ('x')")
    source.capture()
    source.check("t")
    source.check("log")
    source.run("CREATE TABLE later (n int); INSERT INTO later VALUES (1); INSERT INTO later VALUES (1)")
    source.capture()
    source.run("INSERT INTO later VALUES (2)")
    source.capture()
    source.check("later")


def test_a_publication_of_some_columns_and_rows(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, secret text, n int); CREATE TABLE u (id int PRIMARY KEY)")
    source.run("INSERT INTO t SELECT n, 's', n % 10 FROM generate_series(1, 40) n; INSERT INTO u VALUES (1)")
    source.run("CREATE PUBLICATION part FOR TABLE t (id, n) WHERE (id % 2 = 0)")
    source.capture(publication="part", chunk_rows=7)
    rows = [json.loads(row["after"]) for row in source.raw("t") if row["op"] == "read"]
    assert rows == [{"id": n, "n": n % 10} for n in range(2, 41, 2)]
    assert source.raw("u") == []


TAKEN_IN_AGAIN = {
    "by its name": ("FOR TABLE t", "DROP TABLE t", "ADD TABLE t"),
    "with its schema": ("FOR TABLES IN SCHEMA public", "DROP TABLES IN SCHEMA public", "ADD TABLES IN SCHEMA public"),
    "with another condition": ("FOR TABLE t", "SET TABLE t WHERE (id < 0)", "SET TABLE t"),
}


@pytest.mark.parametrize("is_noticed", [False, True])
@pytest.mark.parametrize("way", TAKEN_IN_AGAIN)
def test_a_table_that_was_left_out_for_a_time_is_read_anew(source: Source, way: str, is_noticed: bool) -> None:
    made, left_out, taken_in = TAKEN_IN_AGAIN[way]
    source.run("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t SELECT n, n FROM generate_series(1, 20) n")
    source.run(f"CREATE PUBLICATION lake {made}")
    source.capture(publication="lake")
    source.check("t", "id")
    source.run(f"ALTER PUBLICATION lake {left_out}")
    source.run("DELETE FROM t WHERE id < 5; UPDATE t SET n = 0 WHERE id = 7; INSERT INTO t VALUES (99, 99)")
    if is_noticed:
        source.capture(publication="lake")
    source.run(f"ALTER PUBLICATION lake {taken_in}; INSERT INTO t VALUES (100, 1)")
    source.capture(publication="lake")
    source.check("t", "id")
    rows = len(source.raw("t"))
    source.run("DELETE FROM t WHERE id = 8")
    source.capture(publication="lake")
    source.check("t", "id")
    assert len(source.raw("t")) == rows + 1, "it isn't read again and again"


def test_a_table_without_a_key_that_was_left_out_for_a_time(source: Source) -> None:
    source.run("CREATE TABLE t (n int); ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t VALUES (1), (1), (2)")
    source.run("CREATE PUBLICATION lake FOR TABLE t")
    source.capture(publication="lake")
    source.run("ALTER PUBLICATION lake DROP TABLE t; DELETE FROM t WHERE n = 2; INSERT INTO t VALUES (3)")
    source.run("ALTER PUBLICATION lake ADD TABLE t")
    source.capture(publication="lake")
    source.check("t")


def test_a_table_that_is_left_out_while_it_is_read(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """What had been read goes when it is taken in again."""
    monkeypatch.setattr(capture_module, "_LAG_SECONDS", 0.0)
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 500)")
    source.run("CREATE PUBLICATION lake FOR TABLE t")
    capture = Capture(source.client, source.options(publication="lake", chunk_rows=100))
    left_out = threading.Event()

    def pause(step: str) -> None:
        if step == "chunk" and not left_out.is_set():
            left_out.set()
            source.run("ALTER PUBLICATION lake DROP TABLE t; DELETE FROM t WHERE id < 50")

    capture.pause = pause
    capture.run(once=True)
    assert left_out.is_set()
    assert 0 < len(source.replayed("t", ("id",))) < 500
    source.run("ALTER PUBLICATION lake ADD TABLE t")
    source.capture(publication="lake")
    source.check("t", "id")


def test_nothing_is_written_twice_when_there_is_nothing_new(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    source.capture()
    position = source.client.table(source.into).position().position
    for _ in range(2):
        assert source.capture().rows == {}
    assert source.client.table(source.into).position().position == position


def test_a_transaction_that_fits_into_no_memory_is_one_instant(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lake.capture.raw_table.BUFFERED_ROWS", 1_000)
    source.run("CREATE TABLE t (id int PRIMARY KEY)")
    source.capture()
    before = source.client.table(source.into).position().position
    source.run("INSERT INTO t SELECT generate_series(1, 20000)")
    source.capture(batch_rows=10)
    assert source.client.table(source.into).position().position == before + 1
    source.check("t", "id")


class Held:
    """A capture in a thread that is held when it reaches a step."""

    def __init__(self, source: Source, step: str, **options: Any) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.client = LakeClient(source.client.connect)
        capture = Capture(self.client, source.options(**options))

        def pause(reached: str) -> None:
            if reached == step and not self.reached.is_set():
                self.reached.set()
                assert self.go_on.wait(60)

        capture.pause = pause
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(capture,))
        self._thread.start()
        assert self.reached.wait(60)

    def _run(self, capture: Capture) -> None:
        try:
            capture.run(once=True)
        except BaseException as error:
            self.error = error

    def end(self) -> None:
        self.go_on.set()
        self._thread.join(60)
        self.client.close()


def test_rows_change_between_two_chunks(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, n int, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    source.run(f"INSERT INTO t SELECT n, 0, {LARGE} FROM generate_series(1, 30) n")
    held = Held(source, "chunk", chunk_rows=10)
    source.run("UPDATE t SET n = 1 WHERE id % 7 = 0; DELETE FROM t WHERE id IN (3, 13, 23)")
    source.run("UPDATE t SET id = -id WHERE id IN (8, 18, 28); INSERT INTO t VALUES (3, 3, 'new')")
    held.end()
    assert held.error is None
    source.check("t", "id")


def test_a_transaction_that_is_committed_in_the_log_before_others_see_it(source: Source) -> None:
    """Waiting for a replica that never confirms, a transaction is in the log, and no snapshot sees it."""
    source.run("CREATE TABLE t (id int PRIMARY KEY, n int, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    source.run(f"INSERT INTO t SELECT n, 0, {LARGE} FROM generate_series(1, 20) n")
    source.capture()
    source.run("CREATE TABLE u (id int PRIMARY KEY, n int, body text); ALTER TABLE u ALTER body SET STORAGE EXTERNAL")
    source.run(f"INSERT INTO u SELECT n, 0, {LARGE} FROM generate_series(1, 20) n")
    waiting, probing = source.connect(), source.connect()
    reloaded = threading.Event()
    source.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    source.run("SELECT pg_reload_conf()")
    try:
        source.run("SET synchronous_commit = local")

        def waits(connection: Any) -> bool:
            waiting_for_replicas = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
            return bool(source.run(waiting_for_replicas, connection.info.backend_pid))

        def commit_until_it_waits() -> None:
            while not reloaded.is_set():
                _fetched(probing.cursor(), "SELECT pg_logical_emit_message(true, 'probe', '')")

        # Postgres's processes learn of the setting one after the other.
        probe = threading.Thread(target=commit_until_it_waits)
        probe.start()
        wait_until(lambda: waits(probing), what="transactions wait for a replica")
        reloaded.set()
        change = "UPDATE u SET n = 1 WHERE id = 5; UPDATE u SET id = 50 WHERE id = 6; DELETE FROM u WHERE id = 7"
        thread = threading.Thread(
            target=lambda: _fetched(waiting.cursor(), f"SET synchronous_commit = on; BEGIN; {change}; COMMIT")
        )
        thread.start()
        wait_until(lambda: waits(waiting), what="the transaction waits for a replica")
        assert source.run("SELECT count(*) FROM u WHERE n = 1") == [(0,)]
        held = Held(source, "chunk", chunk_rows=10)
    finally:
        reloaded.set()
        source.run("ALTER SYSTEM RESET synchronous_standby_names")
        source.run("SELECT pg_reload_conf()")
    probe.join(60)
    thread.join(60)
    held.end()
    assert held.error is None
    source.check("u", "id")


def _fetched(cursor: Any, statement: str) -> list[Any]:
    cursor.execute(statement)
    return cursor.fetchall() if cursor.description else []


def test_of_two_captures_one_ends(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    held = Held(source, "before")
    with pytest.raises(Exception, match="is active"):
        source.capture(retry_seconds=0.5)
    held.end()
    assert held.error is None
    source.check("t", "id")


def test_a_slot_is_dropped_once_its_capture_has_stopped(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    held = Held(source, "before")
    with open_source(source.url) as opened:
        with pytest.raises(CaptureError, match="is in use: stop the capture first"):
            opened.drop_slot(source.slot)
        ending = threading.Timer(0.5, held.end)
        ending.start()
        assert opened.drop_slot(source.slot)
        ending.join()
        assert not opened.drop_slot(source.slot)


def test_a_slot_that_is_gone(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    source.capture()
    source.drop_slot()
    source.run("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (3)")
    with pytest.raises(SlotLost, match=r"has no slot .*--new-snapshot"):
        source.capture()
    source.run("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", source.slot)
    with pytest.raises(SlotLost, match="made anew"):
        source.capture()
    source.capture(new_snapshot=True)
    source.check("t", "id")
    assert {row["epoch"] for row in source.raw("t")} == {1, 2}
    source.run("DELETE FROM t WHERE id = 2")
    source.capture()
    source.check("t", "id")


def test_an_instant_that_was_rolled_back(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    source.capture()
    source.run("INSERT INTO t VALUES (2)")
    source.capture()
    lake = source.client.table(source.into)
    lake.roll_back(next(lake.instants(actions=["commit"], latest_first=True)))
    with pytest.raises(CaptureError, match="were rolled back"):
        source.capture()
    source.capture(new_snapshot=True)
    source.check("t", "id")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"publication": "nothing"}, "no publication nothing: CREATE PUBLICATION"),
        ({"publication": "inserts"}, "leaves out changes: ALTER PUBLICATION"),
        ({"source": "mysql://host/db"}, "URL of the form postgresql://"),
        ({"source": "postgresql://host/db?sslmode=verify&nonsense=1"}, "doesn't take the source's URL"),
        ({"source": "postgresql://host:no/db"}, "can't connect to the source: invalid integer"),
    ],
)
def test_what_is_refused(source: Source, changes: dict[str, Any], message: str) -> None:
    source.run("CREATE PUBLICATION inserts FOR ALL TABLES WITH (publish = 'insert')")
    with pytest.raises(CaptureError, match=message):
        source.capture(**changes)


def test_a_raw_table_has_the_changes_of_one_source(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY)")
    source.capture()
    with pytest.raises(CaptureError, match="is captured by the slot"):
        source.capture(slot="another")
    source.run("CREATE DATABASE beside")
    beside = source.url.replace(str(source.run("SELECT current_database()")[0][0]), "beside")
    try:
        with pytest.raises(CaptureError):
            source.capture(source=beside)
    finally:
        source.run("DROP DATABASE beside")


def test_a_metastore_that_is_away_for_a_while(source: Source, metastore_server: MetastoreServer) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    source.capture()
    source.run("INSERT INTO t VALUES (2)")
    held = Held(source, "before")
    with metastore_server.hanging():
        held.go_on.set()
        os.sched_yield()
    held.end()
    assert held.error is None
    source.check("t", "id")


def test_a_raw_table_that_is_made_again_meanwhile_is_filled_again(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 1)")
    source.capture()
    source.run("INSERT INTO t VALUES (3, 1); UPDATE t SET v = 2 WHERE id = 1")
    held = Held(source, "before")
    database, name = source.into.split(".")
    source.client.call(lambda client: client.drop_table(database, name, True))
    RawTable(source.client, source.into).create()
    source.run("DELETE FROM t WHERE id = 2")
    held.go_on.set()
    wait_until(lambda: source.replayed("t", ("id",)) == source.rows("t"), what="all rows in the other raw table")
    held.end()
    assert held.error is None
    assert "read" in source.ops("t")


def test_another_table_is_no_raw_table(source: Source) -> None:
    source.capture()
    name = source.into.replace(".shop", ".other")
    table = source.client.table(source.into).describe()
    table.tableName, table.partitionKeys, table.sd.location = "other", [], None
    source.client.call(lambda client: client.create_table(table))
    with pytest.raises(CaptureError, match="other columns than a raw table"):
        RawTable(source.client, name).create()


TYPES = (
    ("smallint", "-32768", "-32768", "smallint"),
    ("bigint", "9223372036854775807", "9223372036854775807", "bigint"),
    ("numeric(38,10)", "1234567890123456789012345678.0000000001", "1234567890123456789012345678.0000000001", None),
    ("numeric", "1" + "0" * 60 + ".10", '"1' + "0" * 60 + '.10"', "string"),
    ("numeric", "NaN", '"NaN"', "string"),
    ("double precision", "0.1", "0.1", "double"),
    ("real", "-Infinity", '"-Infinity"', "float"),
    ("boolean", "t", "true", "boolean"),
    ("date", "0044-03-15", '"0044-03-15"', "date"),
    ("timestamp", "2024-02-29 23:59:59.999999", '"2024-02-29 23:59:59.999999"', "timestamp_ntz"),
    ("timestamptz", "2024-01-01 01:00:00.5+01", '"2024-01-01 00:00:00.5+00"', "timestamp"),
    ("timetz", "10:00:00+05:30", '"10:00:00+05:30"', "string"),
    ("interval", "1 mon -3 days 04:05:06.7", '"P1M-3DT4H5M6.7S"', "string"),
    ("bytea", "\\x00ff", '"\\\\x00ff"', "binary"),
    ("bit(10)", "1000000011", '"1000000011"', "string"),
    ("mood", "so so", '"so so"', "string"),
    ("json", '{"b":1, "a": 1.10}', '"{\\"b\\":1, \\"a\\": 1.10}"', "string"),
    ("jsonb", '{"b":1, "a": 1.10}', '"{\\"a\\": 1.10, \\"b\\": 1}"', "string"),
    ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"', "string"),
    ("integer[]", "{1,NULL,3}", '"{1,NULL,3}"', "string"),
    ("text", 'ä"\\\t', '"ä\\"\\\\\\t"', "string"),
)


def test_types_by_snapshot_and_by_log(source: Source) -> None:
    columns = ", ".join(f"c{number} {kind}" for number, (kind, *_) in enumerate(TYPES))
    source.run("CREATE TYPE mood AS ENUM ('so so', 'well')")
    source.run(f"CREATE TABLE t (id int PRIMARY KEY, {columns})")
    insert = f"INSERT INTO t VALUES (%s, {', '.join(['%s'] * len(TYPES))})"
    values = [each[1] for each in TYPES]
    source.run(insert, 1, *values)
    source.capture()
    source.run(insert, 2, *values)
    source.capture()
    schema, *rows = source.raw("t")
    assert [row["op"] for row in rows] == ["read", "insert"]
    for id, row in enumerate(rows, 1):
        wanted = ",".join(f'"c{number}":{each[2]}' for number, each in enumerate(TYPES))
        assert row["after"] == f'{{"id":{id},{wanted}}}'
    found = [each["type"] for each in json.loads(schema["after"])][1:]
    assert found == [each[3] or "decimal(38,10)" for each in TYPES]


def test_a_publication_that_is_dropped_while_it_is_captured(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_module, "_LAG_SECONDS", 0.0)
    source.run("CREATE TABLE t (id int PRIMARY KEY)")
    capture = Capture(source.client, source.options(interval=0.05))
    capture.on_commit = lambda state: source.run("DROP PUBLICATION shop") and None
    source.run("INSERT INTO t VALUES (1)")
    with pytest.raises((CaptureError, psycopg2.errors.UndefinedObject), match="publication"):
        capture.run()
    source.run("CREATE PUBLICATION shop FOR ALL TABLES; INSERT INTO t VALUES (2)")
    with pytest.raises(SlotLost, match="dropped and made anew: changes in between are missing"):
        source.capture()
    source.capture(new_snapshot=True)
    source.check("t", "id")


def test_a_capture_that_begins_while_another_writes(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY)")
    source.capture()
    looks = {name: getattr(CapturedSource, name) for name in ("slot", "identity")}
    numbers = iter(range(4))

    def another() -> None:
        source.run(f"INSERT INTO t VALUES ({next(numbers)})")
        source.capture()

    def between(name: str) -> Callable[..., Any]:
        def look(*arguments: Any) -> Any:
            monkeypatch.setattr(CapturedSource, name, looks[name])  # the first look of the capture alone
            another()
            result = looks[name](*arguments)
            another()
            return result

        return look

    for name in looks:
        monkeypatch.setattr(CapturedSource, name, between(name))
    source.capture()
    assert next(numbers, None) is None
    source.check("t", "id")
