"""A table that somebody wants to be read again: the capture does so once, wherever it is killed."""

import json

import pytest

from lake.capture import said
from lake.capture.errors import CaptureError
from lake.capture.postgres.capture import Capture
from lake.capture.postgres.state import State
from lake.capture.raw_table import ORDERS, RawTable
from lake.capture.rereads import order, ordered
from lake.capture.schema_changes import decisions
from lake.capture.schema_changes.model import Action
from lake.capture.schema_changes.policy import Policy
from lake.tables.properties import keep_property
from tests.lake.capture.schema_changes.test_held import shown
from tests.lake.capture.shop import Source
from tests.lake.capture.test_commands import invoke
from tests.support.server import MetastoreServer


class Killed(Exception):
    """The capture ends where it is."""


def test_a_table_is_read_again_once(source: Source, metastore_server: MetastoreServer) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int); INSERT INTO t SELECT n, n FROM generate_series(1, 250) n")
    source.run("CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1)")
    source.capture()
    lake = source.client.table(source.into)
    assert "orders" not in json.loads(lake_metadata(source)), "earlier versions don't know the field"
    to = ("--into", source.into, "--uri", metastore_server.uri)
    assert "has no table public.none" in invoke("read-again", *to, "--table", "public.none", code=1)
    invoke("read-again", *to, "--table", "public.t")
    for left in range(1, 12):  # the steps at which a capture is killed, one after the other

        def pause(_: str) -> None:
            nonlocal steps
            steps -= 1
            if not steps:
                raise Killed

        steps = left
        killed = Capture(source.client, source.options(batch_rows=3, chunk_rows=100))
        killed.pause = pause
        try:
            killed.run(once=True)
        except Killed:
            source.run("UPDATE t SET a = a + 1 WHERE id = %s", left * 20)
    source.capture()
    assert source.ops("t").count("complete") == 1
    assert source.ops("u") == ["read"]
    source.check("t", "id")
    assert shown(source, "t") == [[*row] for row in source.run("SELECT * FROM t ORDER BY id")]
    assert source.capture().rows == {}, "nothing twice"
    order(lake, ["public.t", "public.u"])
    source.capture()
    assert (source.ops("t").count("complete"), source.ops("u")) == (2, ["read", "truncate", "read", "complete"])


def lake_metadata(source: Source) -> str:
    """The state of the capture, as it is sent."""
    state = RawTable(source.client, source.into).latest(State.parse)
    assert state is not None
    return json.dumps(state.sent(), default=str)


def test_orders_and_decisions_leave_each_other_alone(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    source.capture()
    source.run("ALTER TABLE t ADD email text; INSERT INTO t VALUES (2, 'a')")
    source.capture()
    lake = source.client.table(source.into)
    [change] = decisions.changes_of(lake, "public.t")

    def late(*args: object) -> None:
        monkeypatch.setattr(said, "keep_property", keep_property)
        decisions.decide(lake, Policy(), "public.t", str(change.at), Action.IGNORE)
        keep_property(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(said, "keep_property", late)
    order(lake, ["public.t"])
    assert [*ordered(lake)] == ["public.t"]
    assert decisions.with_decisions(Policy(), lake).decided == {("public.t", str(change.at)): Action.IGNORE}
    keep_property(lake, ORDERS, "[1]")
    with pytest.raises(CaptureError, match=r"capture\.read-again of .* isn't readable"):
        source.capture()
