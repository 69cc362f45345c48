"""Converts instants to Thrift objects and to texts."""

from collections.abc import Sequence

from eventbus.log import log as event_log
from lake.protocol.lake import Instant
from metastore.store.engine.database import Transaction
from metastore.store.timeline.instants import InstantRow


def describe_instant(instant: InstantRow) -> str:
    """An instant and its state, for messages."""
    return f"the instant {instant.timestamp} {instant.action} is {instant.state}"


def to_thrift(instant: InstantRow) -> Instant:
    """An instant in the form that clients receive."""
    return Instant(
        timestamp=instant.timestamp,
        action=instant.action,
        state=instant.state,
        requestedAt=instant.requested_at,
        changedAt=instant.changed_at,
        heartbeatAt=instant.heartbeat_at,
        completionTime=instant.completion_time,
        position=instant.position,
        moment=instant.moment,
        begunAs=instant.begun_as if instant.begun_as != instant.action else None,
        readPosition=instant.read_position,
        archived=instant.archived or None,
        conflict=instant.conflict,
        undoneBy=instant.undone_by,
        attempt=instant.attempt or None,
        tableId=instant.table_id,
        name=instant.name,
    )


def with_moments(tx: Transaction, some: Sequence[InstantRow]) -> list[InstantRow]:
    """Instants with their moments, looked up in the event log where they aren't stored with the instant yet."""
    missing = [each.event_id for each in some if each.moment is None and each.event_id is not None]
    numbers = event_log.numbers_of(tx, missing) if missing else {}
    return [each if each.moment else each._replace(moment=numbers.get(each.event_id or 0)) for each in some]
