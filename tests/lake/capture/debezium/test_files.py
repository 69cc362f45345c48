"""Messages in files: once, whatever dies."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from lake.capture.debezium.capture import DebeziumCapture, DebeziumOptions
from lake.capture.debezium.state import DebeziumState
from lake.capture.definitions import columns_of, definition
from lake.capture.errors import CaptureError
from lake.capture.raw_table import RawTable, rows_of
from lake.capture.schema_changes.amendments import Amendment
from lake.capture.schema_changes.decisions import amend, decide, with_decisions
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Action, Kind
from lake.capture.schema_changes.policy import Policy, Rule
from lake.cli import main
from lake.tables.lake import LakeClient
from tests.lake.capture.debezium.messages import ID, NOTE, change, envelope, line, order
from tests.lake.capture.shop import NUMBERS, replayed
from tests.lake.capture.typed_duck import query_in, query_of, typed_rows
from tests.support.server import MetastoreServer

ROOT = Path(__file__).parents[4]
KILLED = """
import os, signal, sys
from lake.capture.debezium.capture import DebeziumCapture, DebeziumOptions
from lake.tables.lake import LakeClient
uri, source, into, step, count = sys.argv[1:]
left = int(count)
def pause(reached):
    global left
    left -= reached == step
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
with LakeClient(uri) as client:
    capture = DebeziumCapture(client, DebeziumOptions(source=source, into=into, batch_rows=400))
    capture.pause = pause
    capture.run(once=True)
"""


class Landing:
    """A directory of messages, captured into a raw table of its own."""

    def __init__(self, directory: Path, client: LakeClient) -> None:
        self.directory = directory
        self.client = client
        self.into = f"raw_{next(NUMBERS)}.landed"

    def write(self, name: str, *messages: Any) -> None:
        """Adds messages to a file."""
        with (self.directory / name).open("a") as opened:
            opened.writelines(map(line, messages))

    def capture(self, **options: Any) -> dict[str, int]:
        values = {"source": str(self.directory), "into": self.into, **options}
        return DebeziumCapture(self.client, DebeziumOptions(**values)).run(once=True).rows

    def raw(self, table: str = "public.orders") -> list[dict[str, Any]]:
        found = [row for each in rows_of(self.client.table(self.into), table) for row in each.to_pylist()]
        return sorted(found, key=lambda row: (row["epoch"], row["commit_lsn"], row["ordinal"]))

    def ops(self) -> list[str]:
        return [row["op"] for row in self.raw() if row["op"] != "schema"]

    def state(self) -> DebeziumState:
        found = RawTable(self.client, self.into).latest(DebeziumState.parse)
        assert found is not None
        return found


def test_files_that_grow_and_are_added(landing: Landing) -> None:
    landing.write("1.json", order("r", 1, "a"), order("r", 2, "b"), None, order("u", 1, "c"))
    landing.write("2.json", order("d", 2))
    (landing.directory / ".hidden").write_text("no message")
    assert landing.capture() == {"public.orders": 5}
    assert landing.ops() == ["read", "read", "update", "delete"]
    assert landing.capture() == {}
    landing.write("2.json", order("c", 3, "d"))
    landing.write("0.json", order("c", 4, "e"))
    with (landing.directory / "3.json").open("w") as opened:
        opened.write(line(order("c", 5, "f")) + line(order("c", 6, "g"))[:-30])
    assert landing.capture() == {"public.orders": 3}
    with (landing.directory / "3.json").open("a") as opened:
        opened.write(line(order("c", 6, "g"))[-30:].rstrip())
    assert landing.capture() == {"public.orders": 1}, "a last line needs no end once it is whole"
    kept = {json.loads(each)["id"]: json.loads(each)["note"] for each in replayed(landing.raw(), ("id",))}
    assert kept == {1: "c", 3: "d", 4: "e", 5: "f", 6: "g"}
    (landing.directory / "0.json").unlink()
    landing.write("3.json", None, order("d", 6))
    landing.capture()
    assert sorted(landing.state().offsets) == ["1.json", "2.json", "3.json"]


def test_a_file_that_was_replaced(landing: Landing) -> None:
    landing.write("1.json", order("c", 1, "a"))
    landing.capture()
    (landing.directory / "1.json").write_text("")
    with pytest.raises(CaptureError, match=r"1\.json was replaced"):
        landing.capture()
    (landing.directory / "1.json").write_text(line(order("c", 2, "b")) * 9)
    with pytest.raises(CaptureError, match=r"1\.json was replaced"):
        landing.capture()
    landing.capture(new_snapshot=True)
    assert [(row["op"], row["epoch"]) for row in landing.raw() if row["op"] != "schema"][:3] == [
        ("insert", 1),
        ("truncate", 2),
        ("insert", 2),
    ]


def test_a_state_of_a_later_version(landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = DebeziumState.metadata

    def of_later_version(state: DebeziumState, rows: int) -> bytes:
        found = json.loads(metadata(state, rows))
        found["capture"]["added"] = 1
        return json.dumps(found).encode()

    landing.write("1.json", order("c", 1, "a"))
    with monkeypatch.context() as patch:
        patch.setattr(DebeziumState, "metadata", of_later_version)
        landing.capture()
    for new_snapshot in (False, True):
        with pytest.raises(CaptureError, match="is of a later version than this one"):
            landing.capture(new_snapshot=new_snapshot)


def test_a_message_that_is_none(landing: Landing) -> None:
    landing.write("1.json", order("c", 1, "a"), {"id": 1})
    with pytest.raises(CaptureError, match=r"1\.json, byte \d+: it has no op"):
        landing.capture()
    assert RawTable(landing.client, landing.into).latest(DebeziumState.parse) is None, "nothing of the batch is there"


def test_other_columns_and_keys(landing: Landing) -> None:
    extra = {"field": "extra", "type": "int64", "optional": True}
    landing.write("1.json", envelope([ID, NOTE], change("c", None, {"id": 1, "note": "a"})))
    landing.write("1.json", envelope([ID, NOTE, extra], change("c", None, {"id": 2, "note": "a", "extra": 3})))
    with pytest.raises(CaptureError, match=r"public\.orders has no column nr"):
        landing.capture(keys={"public.orders": ("nr",)})
    landing.capture(keys={"public.orders": ("id",)})
    assert [row["op"] for row in landing.raw()] == ["schema", "insert", "schema", "insert"]
    lake = landing.client.table(landing.into)
    assert [(each.name, each.type, each.in_key) for each in columns_of(lake, "public.orders")] == [
        ("id", "int", True),
        ("note", "string", False),
        ("extra", "bigint", False),
    ]
    assert "KEYS (`id`)" in definition(lake, "public.orders")


def test_statements_of_schema_changes(landing: Landing) -> None:
    def stated(ddl: str, *ids: str, **more: object) -> dict[str, object]:
        changes = [
            {"type": "ALTER", "id": each, "table": {"columns": [{"name": "id", "length": 1.5}]}, **more} for each in ids
        ]
        return {"source": {"ts_ms": 9}, "ts_ms": 10, "databaseName": "shop", "ddl": ddl, "tableChanges": changes}

    altered = "ALTER TABLE orders ADD x int"
    landing.write("1.json", order("c", 1, "a"), stated(altered, '"shop"."public"."orders"', '"shop"."public"."others"'))
    landing.write("1.json", {"schema": {}, "payload": stated("DROP TABLE others", '"public"."others"')})
    landing.write("1.json", stated("RENAME", '"public"."sold"', previousId='"public"."orders"'), order("c", 2, "b"))
    assert landing.capture() == {"public.orders": 5}
    assert [row["op"] for row in landing.raw()] == ["schema", "insert", "statement", "statement", "insert"]
    first, second = [json.loads(row["after"]) for row in landing.raw() if row["op"] == "statement"]
    assert first["statement"] == altered
    assert first["change"]["table"]["columns"] == [{"name": "id", "length": "1.5"}]
    assert second["change"]["previousId"] == '"public"."orders"'
    assert landing.raw("public.others") == []
    query = query_of(landing.client, landing.into, "public.orders")
    assert [row["id"] for row in typed_rows(landing.client, landing.into, "public.orders", query)] == [1, 2]


def test_a_partition_that_is_behind(landing: Landing) -> None:
    extra = {"field": "extra", "type": "int64", "optional": True}

    def insert(id: int, at: int, *more: dict[str, object]) -> dict[str, object]:
        row = {"id": id, "note": "a"} | ({"extra": id} if more else {})
        return {"key": {"id": id}, "value": envelope([ID, NOTE, *more], change("c", None, row, ts_ms=at))}

    landing.write("0.json", insert(1, 100), insert(2, 200, extra))
    landing.capture()
    landing.write("1.json", insert(3, 150), insert(4, 199))
    landing.capture()
    landing.write("1.json", insert(5, 210, extra), insert(6, 180))
    landing.capture()
    assert [row["op"] for row in landing.raw()] == ["schema", "insert", "schema", *["insert"] * 5]
    query = query_of(landing.client, landing.into, "public.orders")
    found = typed_rows(landing.client, landing.into, "public.orders", query)
    assert [row["extra"] for row in found] == [None, 2, None, None, 5, None]
    landing.write("1.json", insert(7, 200))
    landing.capture()
    assert "hold" in [row["op"] for row in landing.raw()], "the column was dropped"


def test_the_kinds_of_changes(landing: Landing) -> None:
    extra = {"field": "extra", "type": "int64", "optional": True}
    filled = {"field": "filled", "type": "int64", "optional": True, "default": 7}
    fields = [[ID, NOTE], [ID, NOTE, extra], [ID, {**NOTE, "field": "remark"}, extra]]
    for number, each in enumerate([*fields, [*fields[-1], filled]]):
        landing.write("1.json", {"key": {"id": number}, "value": envelope(each, change("c", None, {"id": number}))})
    landing.capture()
    lake = landing.client.table(landing.into)
    found = changes_of(lake, "public.orders")
    assert [each.difference.kind for each in found] == [Kind.ADD, Kind.UNCLEAR, Kind.ADD_FILLED]
    assert [each.blocked is None for each in found] == [True, False, False]
    landing.write("1.json", envelope([*fields[-1], filled], change("t", None, None)))
    landing.capture()
    assert all(each.blocked is None for each in changes_of(lake, "public.orders"))


OTHER_COLUMNS = {
    "renamed": [ID, {**NOTE, "field": "remark"}],
    "dropped": [ID],
    "another type": [ID, {**NOTE, "type": "int64"}],
    "a default": [ID, NOTE, {"field": "extra", "type": "int64", "optional": True, "default": 7}],
    "never null": [ID, NOTE, {"field": "extra", "type": "int64", "optional": False}],
    "moved": [NOTE, ID],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", OTHER_COLUMNS)
def test_columns_by_which_older_messages_are_not_read(landing: Landing, what: str) -> None:
    keys = {"public.orders": ("id",)}
    landing.write("1.json", envelope([ID, NOTE], change("c", None, {"id": 1, "note": "a"})))
    landing.write("1.json", envelope(OTHER_COLUMNS[what], change("c", None, {"id": 2})))
    landing.capture(keys=keys)
    assert [row["op"] for row in landing.raw()] == ["schema", "insert", "hold", "schema", "insert"]
    query = query_of(landing.client, landing.into, "public.orders")
    with pytest.raises(duckdb.Error, match=r"public\.orders was altered at the source.*--new-snapshot"):
        typed_rows(landing.client, landing.into, "public.orders", query)
    landing.write("1.json", envelope(OTHER_COLUMNS[what], change("t", None, None)))
    landing.write("1.json", envelope(OTHER_COLUMNS[what], change("c", None, {"id": 3})))
    landing.capture(keys=keys)
    assert [row["id"] for row in typed_rows(landing.client, landing.into, "public.orders", query)] == [3]


def snapshot(id: int, flag: str, table: str = "orders", sent_at: int = 2) -> dict[str, Any]:
    """A row of a snapshot of Debezium's own, with `source.snapshot`."""
    payload = change("r", None, {"id": id, "note": "new"}, table, snapshot=flag) | {"ts_ms": sent_at}
    return {"key": {"id": id}, "value": envelope([ID, NOTE], payload)}


def shown(landing: Landing, table: str) -> list[Any]:
    """The keys of the typed rows of a table."""
    query = query_of(landing.client, landing.into, table)
    return [row["id"] for row in typed_rows(landing.client, landing.into, table, query)]


@pytest.mark.long
def test_a_new_snapshot_counts_once_it_is_whole(landing: Landing) -> None:
    tables = ("public.items", "public.orders")
    landing.write("old.json", *[snapshot(each, "false", t, 1) for each in (1, 2) for t in ("items", "orders")])
    landing.capture()
    (landing.directory / "old.json").unlink()
    landing.capture(new_snapshot=True)
    assert [shown(landing, each) for each in tables] == [[1, 2], [1, 2]], "nothing has come yet"
    landing.write("1.json", snapshot(7, "first"))
    landing.capture()
    landing.write("0.json", snapshot(8, "true"))
    landing.write("1.json", envelope([ID, NOTE], change("t", None, None, snapshot="true") | {"ts_ms": 2}))
    landing.write("1.json", snapshot(9, "true"))
    landing.capture()
    assert [shown(landing, each) for each in tables] == [[1, 2], [1, 2]]
    landing.write("1.json", snapshot(10, "last_in_data_collection", sent_at=3))
    landing.capture()
    assert [shown(landing, each) for each in tables] == [[1, 2], [9, 10]], "items may follow"
    assert [each.is_read_again for _, each in sorted(landing.state().tables.items())] == [True, False]
    landing.write("1.json", snapshot(11, "false", sent_at=4))
    landing.capture()
    assert [shown(landing, each) for each in tables] == [[], [9, 10, 11]], "the source has no items"
    landing.write("1.json", snapshot(12, "false", "items", sent_at=5))
    landing.capture()
    assert shown(landing, "public.items") == [12]


UNAVAILABLE = "__debezium_unavailable_value"
WITHOUT_VALUE = {
    "no row before": [order("u", 1, UNAVAILABLE)],
    "deleted before": [order("c", 1, "old"), order("d", 1), order("c", 1, UNAVAILABLE)],
    "another key": [order("c", 2, "a"), order("d", 2), order("c", 1, UNAVAILABLE)],
    "two updates": [order("u", 1, UNAVAILABLE), order("u", 1, UNAVAILABLE)],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", WITHOUT_VALUE)
def test_a_large_value_that_no_message_has(landing: Landing, what: str) -> None:
    landing.write("1.json", *WITHOUT_VALUE[what])
    landing.capture()
    query = query_of(landing.client, landing.into, "public.orders")
    with pytest.raises(duckdb.Error, match=r"public\.orders left out its large value note.*REPLICA IDENTITY FULL"):
        typed_rows(landing.client, landing.into, "public.orders", query)
    landing.write("1.json", order("u", 1, "sent again"), order("u", 1, UNAVAILABLE))
    landing.capture()
    rows = typed_rows(landing.client, landing.into, "public.orders", query)
    assert rows == [{"id": 1, "note": "sent again"}]
    landing.write("1.json", order("d", 1), order("u", 3, UNAVAILABLE), order("d", 3), order("c", 4, None))
    landing.write("1.json", order("u", 4, UNAVAILABLE))
    landing.capture()
    assert typed_rows(landing.client, landing.into, "public.orders", query) == [{"id": 4, "note": None}]


def test_a_placeholder_that_the_connector_was_given(landing: Landing) -> None:
    landing.write("1.json", order("c", 1, "a"), order("u", 1, "gone"), order("c", 2, UNAVAILABLE))
    landing.capture(placeholder="gone")
    found = [(row["after"], row["unchanged"]) for row in landing.raw() if row["op"] != "schema"]
    assert found[1:] == [('{"id":1}', ["note"]), (f'{{"id":2,"note":"{UNAVAILABLE}"}}', None)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("step", "count"), [("reading", 1), ("before", 1), ("before", 2), ("completed", 1)])
def test_a_capture_that_is_killed(landing: Landing, metastore_server: MetastoreServer, step: str, count: int) -> None:
    landing.write("1.json", *[order("c", each, "a") for each in range(1_500)])
    command = [sys.executable, "-c", KILLED, metastore_server.uri, str(landing.directory), landing.into, step]
    ended = subprocess.run([*command, str(count)], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    landing.write("1.json", *[order("d", each) for each in range(0, 1_500, 3)])
    landing.capture()
    assert len(landing.ops()) == 2_000, "nothing is missing, and nothing there twice"
    assert len(replayed(landing.raw(), ("id",))) == 1_000


@pytest.mark.long
def test_a_metastore_that_is_killed(landing: Landing, tmp_path: Path) -> None:
    with MetastoreServer(tmp_path / "own") as server, LakeClient(server.uri) as client:
        landing.client = client
        landing.write("1.json", *[order("c", each, "a") for each in range(100)])
        capture = DebeziumCapture(client, DebeziumOptions(source=str(landing.directory), into=landing.into))
        killed = []

        def pause(step: str) -> None:
            if step == "before" and not killed:
                killed.append(step)
                server.kill()
                server.start()

        capture.pause = pause
        capture.run(once=True)
        assert killed
        assert len(landing.ops()) == 100


def invoke(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["capture", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_the_commands(landing: Landing, metastore_server: MetastoreServer) -> None:
    landing.write("1.json", envelope([ID], change("c", None, {"id": 1})))
    uri = ("--into", landing.into, "--uri", metastore_server.uri)
    directory = str(landing.directory)
    run = ("run", directory, "--debezium", "--once", "--key", "public.orders=id", "--placeholder", "gone", *uri)
    assert json.loads(invoke(*run, "--json")) == {"batches": 1, "rows": {"public.orders": 2}, "troubles": {}}
    found = json.loads(invoke("status", "--json", *uri))
    assert found["messages"] == 1
    assert found["tables"] == [{"table": "public.orders", "snapshot": "done", "rows": 2}]
    assert found["offsets"] == {"1.json": (landing.directory / "1.json").stat().st_size}
    assert "CREATE STREAMING TABLE `orders`" in invoke("definitions", *uri)
    assert "there is no slot" in invoke("drop", "postgresql:///shop", "--yes", *uri, code=1)
    assert "not with --debezium" in invoke(*run, "--slot", "s", code=2)
    assert "give SCHEMA.TABLE" in invoke(*run, "--key", "orders", code=2)
    assert "go with --debezium" in invoke(
        "run", "postgresql:///shop", "--publication", "p", "--key", "a=b", *uri, code=2
    )
    assert "give another table" in invoke("run", str(landing.directory / "1.json"), "--debezium", *uri, code=1)
    assert "no file and no directory" in invoke("run", "/nowhere", "--debezium", *uri, code=1)
    assert "Debezium's messages alone" in invoke("kafka://db/shop", *uri, code=1)


def test_what_flows_on_until_it_is_approved(landing: Landing) -> None:
    """A new column is held, and then a rename, which no message calls one. Files arrive like partitions."""
    extra = {"field": "extra", "type": "int64", "optional": True}
    remark = {**NOTE, "field": "remark"}
    held = Policy((Rule("*", frozenset(), Action.HOLD),))
    lake, name = landing.client.table(landing.into), "public.orders"

    def write(file: str, op: str, fields: list[dict[str, object]], at: int, *values: object) -> None:
        row = dict(zip([str(each["field"]) for each in fields], values, strict=False)) if values else None
        before, after = (row, None) if op == "d" else (None, row)
        key = None if row is None else {"id": row["id"]}
        landing.write(file, {"key": key, "value": envelope(fields, change(op, before, after, ts_ms=at))})

    def shown() -> list[list[object]]:
        made = definition(lake, name, policy=with_decisions(held, lake))
        query = query_in(made)
        return [[*each.values()] for each in typed_rows(landing.client, landing.into, name, query)]

    def approve() -> None:
        for at in dict.fromkeys(str(each.at) for each in changes_of(lake, name)):
            decide(lake, held, name, at, Action.APPLY)

    write("0.json", "c", [ID, NOTE], 100, 1, "a")
    write("0.json", "c", [ID, NOTE], 110, 2, "b")
    write("0.json", "c", [ID, NOTE, extra], 200, 3, "c", 30)
    landing.capture()
    write("1.json", "c", [ID, NOTE], 150, 4, "d")
    write("1.json", "u", [ID, NOTE, extra], 210, 1, "A", 10)
    landing.capture()
    assert shown() == [[1, "A"], [2, "b"], [3, "c"], [4, "d"]]
    approve()
    added = [[1, "A", 10], [2, "b", None], [3, "c", 30], [4, "d", None]]
    assert shown() == added, "each row by the columns of its time"
    write("0.json", "c", [ID, remark, extra], 300, 5, "e", 50)
    write("0.json", "d", [ID, remark, extra], 310, 3)
    write("0.json", "u", [ID, remark, extra], 320, 2, "B", 20)
    landing.capture()
    assert [row["op"] for row in landing.raw()][-5:] == ["hold", "schema", "insert", "delete", "update"]
    waits = [each for each in added if each[0] != 3]
    assert shown() == waits, "a row goes that was deleted, and others wait: no message has their note"
    at = str(changes_of(lake, name)[-1].at)
    for refused in (
        lambda: decide(lake, held, name, at, Action.APPLY),
        lambda: amend(lake, held, name, at, [Amendment.parse("rename note=remark")]),
    ):
        with pytest.raises(CaptureError, match="older messages"):
            refused()
    assert shown() == waits
    write("0.json", "t", [ID, remark, extra], 400)
    for id, text, number in ((1, "A", 10), (2, "B", None), (5, "e", 50)):
        write("0.json", "r", [ID, remark, extra], 410, id, text, number)
    landing.capture()
    at = str(next(each for each in changes_of(lake, name) if each.difference.kind is Kind.UNCLEAR).at)
    assert shown() == []
    amend(lake, held, name, at, [Amendment.parse("rename note=remark")])
    rows = [[1, "A", 10], [2, "B", None], [5, "e", 50]]
    assert shown() == rows
    approve()
    assert shown() == rows
