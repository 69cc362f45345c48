"""Calls to a metastore that may go away and come back, for subscriptions."""

import json
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import structlog
from thrift.Thrift import TException

from eventbus.events import Event, EventType, Origin
from eventbus.subscription import WAIT_SECONDS, Start
from metastore.client.thrift_client import ThriftClient
from metastore.wire.hive import InvalidOperationException
from metastore.wire.lake import EventPositions, EventRecord, EventsGone

Ask = Callable[[ThriftClient], Any]

_RETRY_SECONDS = 1.0
_FAULTS = (TException, OSError, EOFError)

log = structlog.get_logger(__name__)


class ThriftCalls:
    """One connection: to the first of several servers that answers."""

    def __init__(self, uris: Sequence[str]) -> None:
        self._uris = list(uris)
        self._client: ThriftClient | None = None

    def call(self, ask: Ask) -> Any:
        """Asks until there is an answer: of this server, or of the next one. Raises what the answer is, if an error."""
        attempt = 0
        while True:
            try:
                return self._ask(ask, attempt)
            except (EventsGone, InvalidOperationException):
                raise
            except _FAULTS as error:
                attempt += 1
                log.warning("the metastore doesn't answer", error=str(error), retry_seconds=_RETRY_SECONDS)
                if attempt % len(self._uris) == 0:
                    time.sleep(_RETRY_SECONDS)

    def try_once(self, ask: Ask) -> Any:
        """Asks the server to which there is a connection; None if there is none, or it doesn't answer."""
        if self._client is None:
            return None
        try:
            return self._ask(ask, 0)
        except _FAULTS as error:
            log.warning("the metastore doesn't answer", error=str(error))
            return None

    def close(self) -> None:
        """Ends the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _ask(self, ask: Ask, attempt: int) -> Any:
        try:
            if self._client is None:
                self._client = ThriftClient.from_uri(self._uris[attempt % len(self._uris)], timeout=WAIT_SECONDS * 3)
            return ask(self._client)
        except (EventsGone, InvalidOperationException):
            raise
        except _FAULTS:
            self.close()
            raise


def first_position(calls: ThriftCalls, group: str | None, start: Start) -> int:
    """After which event a subscription begins: where its group stands, or at its `start`."""
    since = int(start.timestamp() * 1000) if isinstance(start, datetime) else None
    found: EventPositions = calls.call(lambda client: client.lake_event_positions(group, since))
    assert found.oldest is not None and found.last is not None
    if found.group is not None:
        return found.group
    if isinstance(start, int):
        return start
    if start == "earliest":
        return found.oldest - 1
    return found.last if found.since is None else max(found.since, found.oldest - 1)


def event_of(record: EventRecord) -> Event:
    """The event that an answer tells of."""
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
