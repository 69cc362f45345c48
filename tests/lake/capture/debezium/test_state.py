"""How far a capture of messages has come, as its instants say it."""

import pytest

from lake.capture.any_state import any_state
from lake.capture.debezium.state import DebeziumState, Offset, TableState
from lake.capture.errors import CaptureError
from lake.capture.postgres.state import State

MESSAGES = DebeziumState(
    "topics a b",
    2,
    3,
    99,
    {"a/0": Offset(7), "x.json": Offset(10, 4_000_000_000)},
    {"s.t": TableState(("id",), "f", 5), "s.u": TableState(("id",), "g", 5, earlier=(("f", 1_000_000),))},
)
DATABASE = State("slot", "shop", "7", 1, "shop")


def test_it_is_read_as_it_was_written() -> None:
    assert DebeziumState.parse(MESSAGES.metadata(1)) == MESSAGES
    assert any_state(MESSAGES.metadata(1)) == MESSAGES
    assert any_state(DATABASE.metadata(1)) == DATABASE
    for each in (None, b"not json", b'{"operation": "upsert"}'):
        assert DebeziumState.parse(each) is None
        assert any_state(each) is None


def test_what_earlier_versions_do_not_know_is_left_out_while_it_is_empty() -> None:
    tables = MESSAGES.sent()["tables"]
    assert "earlier" not in tables["s.t"]
    assert tables["s.u"]["earlier"]


def test_captures_of_two_kinds_do_not_share_a_raw_table() -> None:
    with pytest.raises(CaptureError, match="another kind of source: give another with --into"):
        State.parse(MESSAGES.metadata(1))
    with pytest.raises(CaptureError, match="another kind of source: give another with --into"):
        DebeziumState.parse(DATABASE.metadata(1))
