"""Thrift calls for the event log: subscribers read events over the metastore's own port.

`history`: a text with the identity of the log and its epoch, which a bookmark contains.
"""

import json
from collections.abc import Mapping
from typing import Any

from lake.protocol.events.assignment import LONGEST_POLL, Held
from lake.protocol.events.shards import shard_of
from lake.protocol.events.types import Event
from lake.protocol.lake import (
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
from metastore.api.methods import Call, NotYet, answers

LONGEST_WAIT = 60.0
"""The longest time that a poll waits for an event, in seconds. A subscriber then polls again."""


@answers("lake_read_events", reads="- | events", uncommitted="event log")
def lake_read_events(call: Call, request: ReadEventsRequest) -> ReadEventsResponse:
    """A long poll: without an event it waits for one."""
    page, history = call.metastore.event_reads.read(
        request.after or 0, request.limit, request.tables, request.types, request.history, call.shown
    )
    answer = ReadEventsResponse([_record(event) for event in page.events], page.position, page.last, history)
    if call.may_wait and (wait := patience(request, answer)):
        raise NotYet(wait, call.metastore.event_reads.predicate(page.position, request.tables, request.types))
    return answer


@answers("lake_read_group_events", reads="GROUPS everything | events", uncommitted="event log")
def lake_read_group_events(call: Call, request: ReadGroupEventsRequest) -> ReadGroupEventsResponse:
    """A long poll, but one that ends when the member's share changes."""
    page = call.metastore.event_members.read(request, _wait(request.maxWait), call.shown)
    records = [
        _record(event).replace(shard=shard_of(event.catalog, event.database, event.table)) for event in page.events
    ]
    answer = ReadGroupEventsResponse(records, _positions(page.held), page.members, page.last, page.history)
    if call.may_wait and (wait := patience(request, answer)):
        raise NotYet(wait, call.metastore.event_reads.predicate(page.last, request.tables, request.types))
    return answer


def patience(request: ReadEventsRequest | ReadGroupEventsRequest, answer: Any) -> float:
    """How long a long poll may wait for another answer than this one, in seconds; 0 if it is to be given now."""
    wait = _wait(request.maxWait)
    if answer.events:
        return 0.0
    if isinstance(request, ReadEventsRequest):
        return wait if answer.position >= answer.last else 0.0
    if any(each.read < answer.last for each in answer.shards) or request.members not in (None, answer.members):
        return 0.0
    if {(each.shard, each.generation) for each in request.shards or ()} != {
        (each.shard, each.generation) for each in answer.shards
    }:
        return 0.0
    return wait if request.members == 1 else min(wait, LONGEST_POLL)


@answers("lake_acknowledge_shards", changes="GROUPS everything", uncommitted="event log")
def lake_acknowledge_shards(
    call: Call, group: str | None, member: str | None, shards: list[ShardPosition] | None, history: str | None = None
) -> list[ShardPosition]:
    return _positions(call.metastore.event_members.acknowledge(group, member, shards, history))


@answers("lake_leave_group", changes="GROUPS everything", uncommitted="event log")
def lake_leave_group(
    call: Call, group: str | None, member: str | None, shards: list[ShardPosition] | None, history: str | None = None
) -> None:
    call.metastore.event_members.leave(group, member, shards, history)


@answers("lake_event_positions", reads="-", uncommitted="event log")
def lake_event_positions(call: Call, group: str | None, since: int | None) -> EventPositions:
    return call.metastore.event_reads.positions(group, since)


@answers("lake_event_groups", reads="GROUPS everything", uncommitted="event log")
def lake_event_groups(call: Call) -> list[EventGroup]:
    return call.metastore.event_reads.groups()


@answers("lake_acknowledge_events", changes="GROUPS everything", uncommitted="event log")
def lake_acknowledge_events(call: Call, group: str | None, position: int | None, reset: bool | None) -> None:
    call.metastore.event_reads.acknowledge(group, position, back=bool(reset))


@answers("lake_delete_event_group", changes="ADMIN everything", uncommitted="event log")
def lake_delete_event_group(call: Call, name: str | None) -> None:
    call.metastore.event_reads.delete_group(name)


@answers("lake_dead_events", reads="ADMIN everything", uncommitted="event log")
def lake_dead_events(call: Call, outlet: str | None) -> list[DeadEvent]:
    return call.metastore.event_reads.dead(outlet)


@answers("lake_resend_events", changes="ADMIN everything", uncommitted="event log")
def lake_resend_events(call: Call, outlet: str | None, numbers: list[int] | None) -> list[int]:
    return call.metastore.event_reads.resend(outlet, numbers)


@answers("lake_discard_events", changes="ADMIN everything", uncommitted="event log")
def lake_discard_events(call: Call, outlet: str | None, numbers: list[int] | None) -> list[int]:
    return call.metastore.event_reads.discard(outlet, numbers)


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
    return [ShardPosition(shard, each.generation, each.read, each.done) for shard, each in held.items()]
