"""Thrift calls with retries over several servers, for subscriptions."""

import json
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import structlog
from thrift.Thrift import TException

from lake.protocol.connection.login import Login, LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.events.types import Event, EventType, Origin
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import EventPositions, EventRecord, EventsGone
from lake.subscriptions.base import ANSWER_SECONDS, SourceUnavailable, Start

Ask = Callable[[ThriftClient], Any]

_RETRY_SECONDS = 1.0
_FAULTS = (TException, OSError, EOFError)
_ANSWERS = (EventsGone, InvalidOperationException, LoginRefused)

log = structlog.get_logger(__name__)


class ThriftCalls:
    """One connection, to the first of several servers that answers."""

    def __init__(self, uris: Sequence[str], login: Login | None = None) -> None:
        """`login`: by default what the environment says."""
        self._uris = list(uris)
        self._login = login
        self._client: ThriftClient | None = None

    def call(self, ask: Ask, *, wait: float = 0.0, patience: float = 0.0) -> Any:
        """Calls the servers in turn until one answers. Returns its result, or raises its error.

        `wait`: how long the server may delay the response, in seconds. Raises SourceUnavailable if no server answers,
        after at least `patience` seconds.
        """
        deadline = time.monotonic() + patience
        attempt = 0
        while True:
            try:
                return self._ask(ask, attempt, wait)
            except _ANSWERS:
                raise
            except _FAULTS as error:
                attempt += 1
                left = deadline - time.monotonic()
                log.warning("the metastore doesn't answer", error=str(error), retry_seconds=_RETRY_SECONDS)
                if attempt % len(self._uris) == 0:
                    if left <= 0:
                        raise SourceUnavailable(
                            f"the metastore at {', '.join(self._uris)} doesn't answer: {error}"
                        ) from error
                    time.sleep(min(_RETRY_SECONDS, left))

    def try_once(self, ask: Ask) -> Any:
        """Calls the connected server once; None if there is no connection, or no answer."""
        if self._client is None:
            return None
        try:
            return self._ask(ask, 0, 0.0)
        except _FAULTS as error:
            log.warning("the metastore doesn't answer", error=str(error))
            return None

    def close(self) -> None:
        """Closes the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _ask(self, ask: Ask, attempt: int, wait: float) -> Any:
        try:
            if self._client is None:
                uri = self._uris[attempt % len(self._uris)]
                self._client = ThriftClient.from_uri(uri, timeout=ANSWER_SECONDS, login=self._login)
            self._client.set_timeout(wait + ANSWER_SECONDS)
            return ask(self._client)
        except _ANSWERS:
            raise
        except _FAULTS:
            self.close()
            raise


def first_position(calls: ThriftCalls, group: str | None, start: Start, wait: float) -> tuple[int, str | None]:
    """The number after which a subscription begins, from its group's position or `start`; and the log's history."""
    since = int(start.timestamp() * 1000) if isinstance(start, datetime) else None
    found: EventPositions = calls.call(lambda client: client.lake_event_positions(group, since), patience=wait)
    assert found.oldest is not None and found.last is not None
    if found.group is not None:
        position = found.group
    elif isinstance(start, int):
        position = start
    elif start == "earliest":
        position = found.oldest - 1
    else:
        position = found.last if found.since is None else max(found.since, found.oldest - 1)
    return position, found.history


def event_of(record: EventRecord) -> Event:
    """Converts an event of a response."""
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
