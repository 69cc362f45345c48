"""Hive's notification log: reads, and what writers report to it."""

from collections.abc import Iterator
from contextlib import contextmanager

from thrift.Thrift import TApplicationException

from lake.protocol.hive import (
    CurrentNotificationEventId,
    FireEventRequest,
    FireEventResponse,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    NotificationEventRequest,
    NotificationEventResponse,
    NotificationEventsCountRequest,
    NotificationEventsCountResponse,
    WriteNotificationLogBatchRequest,
    WriteNotificationLogBatchResponse,
    WriteNotificationLogRequest,
    WriteNotificationLogResponse,
)
from metastore.api.methods import Call, answers
from metastore.api.subscriptions.insert_data import understood


@contextmanager
def _undeclared() -> Iterator[None]:
    """These methods declare no exceptions; the client learns the reason all the same."""
    try:
        yield
    except (InvalidOperationException, MetaException, NoSuchObjectException) as error:
        raise TApplicationException(TApplicationException.INTERNAL_ERROR, str(error)) from None


@answers(
    "get_next_notification",
    reads="- | events",
    uncommitted="notifications",
    differs="a view of the event log; none about transactions",
)
def get_next_notification(call: Call, request: NotificationEventRequest) -> NotificationEventResponse:
    found = call.metastore.notifications.read(
        request.lastEvent or 0,
        request.maxEvents,
        skip=request.eventTypeSkipList,
        only=request.eventTypeList,
        catalog=request.catName,
        database=request.dbName,
        tables=request.tableNames,
        shown=call.shown,
    )
    return NotificationEventResponse(found)


@answers("get_current_notificationEventId", reads="-", uncommitted="notifications")
def get_current_notification_event_id(call: Call) -> CurrentNotificationEventId:
    return CurrentNotificationEventId(call.metastore.notifications.last())


@answers("get_notification_events_count", reads="- | events", uncommitted="notifications")
@_undeclared()
def get_notification_events_count(
    call: Call, request: NotificationEventsCountRequest
) -> NotificationEventsCountResponse:
    found = call.metastore.notifications.count(
        request.fromEventId or 0,
        request.toEventId,
        request.limit,
        catalog=request.catName,
        database=request.dbName,
        tables=request.tableNames,
        shown=call.shown,
    )
    return NotificationEventsCountResponse(found)


# With its unknown fields: by them the form of Hive 2.3 is recognised.
@answers(
    "fire_listener_event",
    changes="WRITE table rqst.dbName rqst.tableName cat=rqst.catName",
    uncommitted="named",
    stores=True,
    differs="only inserts that succeeded; reloads (Hive 4.0.1) are refused",
)
@_undeclared()
def fire_listener_event(call: Call, request: FireEventRequest) -> FireEventResponse:
    """Inserts are the only events that clients report. One that failed is none."""
    data = request.data
    if data is None or (data.insertData is None and not data.insertDatas):
        raise MetaException("the event is none that the metastore knows: only inserts are")
    if data.insertDatas:
        inserts = list(data.insertDatas)
    else:
        assert data.insertData is not None
        inserts = [understood(data.insertData)]
        if inserts[0].partitionVal is None:
            inserts[0].partitionVal = request.partitionVals
    if not request.successful:
        return FireEventResponse([])
    return FireEventResponse(
        call.metastore.notifications.insert(request.dbName, request.tableName, inserts, request.catName)
    )


@answers(
    "add_write_notification_log",
    changes="WRITE table rqst.db rqst.table",
    uncommitted="named",
    differs="checks names, keeps nothing",
)
@_undeclared()
def add_write_notification_log(call: Call, request: WriteNotificationLogRequest) -> WriteNotificationLogResponse:
    call.metastore.notifications.check_written(request.db, request.table, request.partitionVals)
    return WriteNotificationLogResponse()


@answers(
    "add_write_notification_log_in_batch",
    changes=(
        "WRITE table rqst.db rqst.table cat=rqst.catalog;"
        " WRITE table rqst.requestList[].db? rqst.requestList[].table? cat=rqst.catalog"
    ),
    uncommitted="named",
    differs="checks names, keeps nothing",
)
@_undeclared()
def add_write_notification_log_in_batch(
    call: Call, request: WriteNotificationLogBatchRequest
) -> WriteNotificationLogBatchResponse:
    for each in request.requestList or ():
        call.metastore.notifications.check_written(request.db, request.table, each.partitionVals, request.catalog)
    return WriteNotificationLogBatchResponse()
