"""How far a capture of any kind has come."""

from typing import TypeAlias

from lake.capture.debezium.state import DebeziumState
from lake.capture.mysql.state import MysqlState
from lake.capture.postgres.state import State
from lake.capture.state import sent_state

AnyState: TypeAlias = State | DebeziumState | MysqlState


def any_state(metadata: bytes | None) -> AnyState | None:
    """The state in an instant's metadata, whatever is captured; None if it isn't one of a capture."""
    kind = (sent_state(metadata) or {}).get("kind")
    if kind == DebeziumState.kind:
        return DebeziumState.parse(metadata)
    return MysqlState.parse(metadata) if kind == MysqlState.kind else State.parse(metadata)
