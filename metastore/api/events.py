"""The event log, for subscribers that need nothing but the metastore's address."""

import json

from metastore.api.registry import Call, NotYet, answers
from metastore.wire.lake import (
    DeadEvent,
    EventGroup,
    EventPositions,
    EventRecord,
    ReadEventsRequest,
    ReadEventsResponse,
)

LONGEST_WAIT = 60.0
"""Seconds; a subscriber simply asks again."""


@answers("lake_read_events")
def lake_read_events(call: Call, request: ReadEventsRequest) -> ReadEventsResponse:
    """A long poll: without an event it waits for one."""
    page = call.metastore.event_reads.read(request.after or 0, request.limit, request.tables, request.types)
    wait = min((request.maxWait or 0) / 1000, LONGEST_WAIT)
    if not page.events and call.may_wait and wait > 0:
        raise NotYet(wait)
    records = [
        EventRecord(
            number=event.number,
            type=event.type,
            time=event.time,
            user=event.origin.user,
            connection=event.origin.connection,
            catalog=event.catalog,
            database=event.database,
            table=event.table,
            payload=json.dumps(event.payload, separators=(",", ":")),
        )
        for event in page.events
    ]
    return ReadEventsResponse(records, page.position, page.last)


@answers("lake_event_positions")
def lake_event_positions(call: Call, group: str | None, since: int | None) -> EventPositions:
    return call.metastore.event_reads.positions(group, since)


@answers("lake_event_groups")
def lake_event_groups(call: Call) -> list[EventGroup]:
    return call.metastore.event_reads.groups()


@answers("lake_acknowledge_events")
def lake_acknowledge_events(call: Call, group: str | None, position: int | None, reset: bool | None) -> None:
    call.metastore.event_reads.acknowledge(group, position, back=bool(reset))


@answers("lake_dead_events")
def lake_dead_events(call: Call, outlet: str | None) -> list[DeadEvent]:
    return call.metastore.event_reads.dead(outlet)


@answers("lake_resend_events")
def lake_resend_events(call: Call, outlet: str | None, numbers: list[int] | None) -> list[int]:
    return call.metastore.event_reads.resend(outlet, numbers)
