"""The event log, for subscribers that need nothing but the metastore's address."""

import json
from collections.abc import Mapping

from eventbus.events import Event
from eventbus.shards import shard_of
from eventbus.sharing import LONGEST_POLL, Held
from metastore.api.registry import Call, NotYet, answers
from metastore.wire.lake import (
    DeadEvent,
    EventGroup,
    EventPositions,
    EventRecord,
    ReadEventsRequest,
    ReadEventsResponse,
    ReadGroupEventsRequest,
    ReadGroupEventsResponse,
    ShardPosition,
)

LONGEST_WAIT = 60.0
"""Seconds; a subscriber simply asks again."""


@answers("lake_read_events")
def lake_read_events(call: Call, request: ReadEventsRequest) -> ReadEventsResponse:
    """A long poll: without an event it waits for one."""
    page = call.metastore.event_reads.read(request.after or 0, request.limit, request.tables, request.types)
    wait = _wait(request.maxWait)
    if not page.events and call.may_wait and wait > 0:
        raise NotYet(wait, call.metastore.event_reads.concerned(page.position, request.tables, request.types))
    return ReadEventsResponse([_record(event) for event in page.events], page.position, page.last)


@answers("lake_read_group_events")
def lake_read_group_events(call: Call, request: ReadGroupEventsRequest) -> ReadGroupEventsResponse:
    """A long poll, but one that ends when the member's share changes."""
    wait = _wait(request.maxWait)
    page = call.metastore.event_members.read(request, wait)
    if page.members > 1 or request.members is None:
        wait = min(wait, LONGEST_POLL)
    if not page.events and page.as_known and call.may_wait and wait > 0:
        raise NotYet(wait, call.metastore.event_reads.concerned(page.last, request.tables, request.types))
    records = [
        _record(event).replace(shard=shard_of(event.catalog, event.database, event.table)) for event in page.events
    ]
    return ReadGroupEventsResponse(records, _positions(page.held), page.members, page.last)


@answers("lake_acknowledge_shards")
def lake_acknowledge_shards(
    call: Call, group: str | None, member: str | None, shards: list[ShardPosition] | None
) -> list[ShardPosition]:
    return _positions(call.metastore.event_members.acknowledge(group, member, shards))


@answers("lake_leave_group")
def lake_leave_group(call: Call, group: str | None, member: str | None, shards: list[ShardPosition] | None) -> None:
    call.metastore.event_members.leave(group, member, shards)


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


def _wait(milliseconds: int | None) -> float:
    return min((milliseconds or 0) / 1000, LONGEST_WAIT)


def _record(event: Event) -> EventRecord:
    return EventRecord(
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


def _positions(held: Mapping[int, Held]) -> list[ShardPosition]:
    return [ShardPosition(shard, each.tenure, each.read, each.done) for shard, each in held.items()]
