"""How far a capture of any kind has come."""

from typing import TypeAlias

from lake.capture.debezium.state import KIND as DEBEZIUM
from lake.capture.debezium.state import DebeziumState
from lake.capture.mysql.state import KIND as MYSQL
from lake.capture.mysql.state import MysqlState
from lake.capture.postgres.state import State, sent_state

AnyState: TypeAlias = State | DebeziumState | MysqlState


def any_state(metadata: bytes | None) -> AnyState | None:
    """The state in an instant's metadata, whatever is captured; None if it isn't one of a capture."""
    kind = (sent_state(metadata) or {}).get("kind")
    if kind == DEBEZIUM:
        return DebeziumState.parse(metadata)
    return MysqlState.parse(metadata) if kind == MYSQL else State.parse(metadata)
