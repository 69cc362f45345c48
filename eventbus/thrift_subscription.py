"""Following events over the metastore's own port: nothing is needed but its address."""

import json
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import structlog
from thrift.Thrift import TException

from eventbus.events import Event, EventType, Origin
from eventbus.filters import Filter
from eventbus.subscription import WAIT_SECONDS, Start, Subscription
from metastore.client.thrift_client import ThriftClient
from metastore.wire.hive import InvalidOperationException
from metastore.wire.lake import EventPositions, EventRecord, EventsGone, ReadEventsRequest, ReadEventsResponse

T = TypeVar("T")

_RETRY_SECONDS = 1.0

log = structlog.get_logger(__name__)


class ThriftSubscription(Subscription):
    """Long polls. A server that goes away is waited for, the next of the given addresses tried.

    Raises InvalidOperationException for a position that doesn't exist. A group's position is kept in the metastore;
    it is for one member at a time, whose work nobody shares.
    """

    def __init__(
        self,
        uris: Sequence[str],
        tables: Sequence[str],
        types: Sequence[str],
        group: str | None,
        start: Start,
    ) -> None:
        """See `eventbus.subscribe`."""
        super().__init__()
        Filter.parse(tables, types)
        self._uris = list(uris)
        self._tables, self._types = list(tables), [str(type) for type in types]
        self._group, self._start = group, start
        self._client: ThriftClient | None = None

    def acknowledge(self, event: Event | int | None = None) -> None:
        if self._group is None:
            raise ValueError("acknowledging needs a group: subscribe(..., group=...)")
        number = event.number if isinstance(event, Event) else event if event is not None else self._position
        if number is not None:
            self._call(lambda client: client.lake_acknowledge_events(self._group, number, False))

    def poll(self, wait: float = 0.0) -> list[Event]:
        if self._position is None:
            self._position = self._first_position()
        request = ReadEventsRequest(
            after=self._position, tables=self._tables or None, types=self._types or None, maxWait=int(wait * 1000)
        )
        answer: ReadEventsResponse = self._call(lambda client: client.lake_read_events(request))
        self._position = answer.position
        return [_event(record) for record in answer.events or ()]

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _first_position(self) -> int:
        since = int(self._start.timestamp() * 1000) if isinstance(self._start, datetime) else None
        found: EventPositions = self._call(lambda client: client.lake_event_positions(self._group, since))
        assert found.oldest is not None and found.last is not None
        if found.group is not None:
            return found.group
        if isinstance(self._start, int):
            return self._start
        if self._start == "earliest":
            return found.oldest - 1
        return found.last if found.since is None else max(found.since, found.oldest - 1)

    def _call(self, ask: Callable[[ThriftClient], Any]) -> Any:
        """Asks until there is an answer: of this server, or of the next one."""
        attempt = 0
        while True:
            try:
                if self._client is None:
                    uri = self._uris[attempt % len(self._uris)]
                    self._client = ThriftClient.from_uri(uri, timeout=WAIT_SECONDS * 3)
                return ask(self._client)
            except (EventsGone, InvalidOperationException):
                raise
            except (TException, OSError, EOFError) as error:
                self.close()
                attempt += 1
                log.warning("the metastore doesn't answer", error=str(error), retry_seconds=_RETRY_SECONDS)
                if attempt % len(self._uris) == 0:
                    time.sleep(_RETRY_SECONDS)


def _event(record: EventRecord) -> Event:
    assert record.number is not None and record.time is not None
    return Event(
        number=record.number,
        type=EventType(record.type or ""),
        time=record.time,
        origin=Origin(record.user, record.connection),
        catalog=record.catalog,
        database=record.database,
        table=record.table,
        payload=json.loads(record.payload or "{}"),
    )
