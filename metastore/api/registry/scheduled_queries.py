"""Scheduled queries."""

from lake.protocol.hive import (
    MetaException,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryMaintenanceRequestType,
    ScheduledQueryPollRequest,
    ScheduledQueryPollResponse,
    ScheduledQueryProgressInfo,
)
from metastore.api.methods import Call, answers


@answers(
    "scheduled_query_maintenance",
    changes="ADMIN everything",
    uncommitted="no table",
    stores=True,
    differs="no schedules with `L-3` or `LW` in the day of month",
)
def scheduled_query_maintenance(call: Call, request: ScheduledQueryMaintenanceRequest) -> None:
    query = request.scheduledQuery or ScheduledQuery()
    if request.type == ScheduledQueryMaintenanceRequestType.CREATE:
        call.metastore.scheduled_queries.create(query)
    elif request.type == ScheduledQueryMaintenanceRequestType.ALTER:
        call.metastore.scheduled_queries.alter(query)
    elif request.type == ScheduledQueryMaintenanceRequestType.DROP:
        call.metastore.scheduled_queries.drop(query)
    else:
        raise MetaException("invalid request")


@answers("scheduled_query_poll", changes="ADMIN everything", uncommitted="no table")
def scheduled_query_poll(call: Call, request: ScheduledQueryPollRequest) -> ScheduledQueryPollResponse:
    return call.metastore.scheduled_queries.poll(request.clusterNamespace or "")


@answers("scheduled_query_progress", changes="ADMIN everything", uncommitted="no table")
def scheduled_query_progress(call: Call, info: ScheduledQueryProgressInfo) -> None:
    call.metastore.scheduled_queries.progress(info)


@answers("get_scheduled_query", reads="ADMIN everything", uncommitted="no table")
def get_scheduled_query(call: Call, key: ScheduledQueryKey) -> ScheduledQuery:
    return call.metastore.scheduled_queries.get(key)
