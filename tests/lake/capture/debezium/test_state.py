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
    {"s.t": TableState(("id",), "f", 5)},
)
DATABASE = State("slot", "shop", "7", 1, "shop")


def test_it_is_read_as_it_was_written() -> None:
    assert DebeziumState.parse(MESSAGES.metadata(1)) == MESSAGES
    assert any_state(MESSAGES.metadata(1)) == MESSAGES
    assert any_state(DATABASE.metadata(1)) == DATABASE
    for each in (None, b"not json", b'{"operation": "upsert"}'):
        assert DebeziumState.parse(each) is None
        assert any_state(each) is None


def test_captures_of_two_kinds_do_not_share_a_raw_table() -> None:
    with pytest.raises(CaptureError, match="another kind of source: give another with --into"):
        State.parse(MESSAGES.metadata(1))
    with pytest.raises(CaptureError, match="another kind of source: give another with --into"):
        DebeziumState.parse(DATABASE.metadata(1))
