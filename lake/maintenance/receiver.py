"""The event receiver: looks at tables in which instants completed, and at those whose time has come.

A burst of commits of a table is one look. Events are acknowledged after the decisions are stored: what a crash undoes
comes again. Members of one group share the tables, so any number of services may run.
"""

import threading
import time
from collections.abc import Iterable

import structlog
from thrift.Thrift import TException

from lake.maintenance import metrics
from lake.maintenance.planner import Planner
from lake.maintenance.queue import Queue
from lake.protocol.events.types import Event, EventType
from lake.protocol.lake import EventsGone, TableReference
from lake.subscriptions import subscribe
from lake.subscriptions.base import SourceUnavailable, Subscription

GROUP = "table-services"
"""The group of subscribers that services are members of."""

TYPES = (EventType.COMPLETE_INSTANT, EventType.ALTER_TABLE)
"""What may change a decision: completions, and properties."""

BURST_SECONDS = 0.5
"""How long events are gathered before their tables are looked at."""

MAX_BURST = 50_000
"""Events that are gathered at most."""

POLL_SECONDS = 2.0
"""How long one poll waits: how soon a stop is noticed."""

SWEEP_SECONDS = 15.0
"""Time between two sweeps for tables whose time has come."""

RETRY_SECONDS = 2.0
"""Pause after a failure."""

log = structlog.get_logger(__name__)


class Receiver:
    """One member of the group. `run` returns after `stop` is set."""

    def __init__(self, uri: str, planner: Planner, queue: Queue, stop: threading.Event) -> None:
        self._uri = uri
        self._planner = planner
        self._queue = queue
        self._stop = stop
        self._swept = 0.0  # by time.monotonic()

    def run(self) -> None:
        """Receives events and sweeps, whatever fails meanwhile."""
        with subscribe(self._uri, types=TYPES, group=GROUP, start="latest") as subscription:
            while not self._stop.is_set():
                try:
                    self.receive(subscription)
                    if time.monotonic() - self._swept >= SWEEP_SECONDS:
                        self.sweep()
                        self._swept = time.monotonic()
                except (TException, OSError, SourceUnavailable) as error:
                    log.warning("tables can't be looked at", error=str(error), retry_seconds=RETRY_SECONDS)
                    self._stop.wait(RETRY_SECONDS)

    def receive(self, subscription: Subscription, wait: float = POLL_SECONDS) -> int:
        """Looks at the tables of the next burst of events. Returns how many events that was."""
        try:
            events = self._burst(subscription, wait)
            if not events:
                return 0
            for table in _tables(events):
                self._planner.look(table)
            subscription.acknowledge()
        except EventsGone as gone:
            # Which tables changed meanwhile the server knows.
            log.warning("events were removed before they were received", oldest=gone.oldest)
            self.sweep()
            subscription.acknowledge((gone.oldest or 1) - 1)
            return 0
        metrics.decided(events)
        return len(events)

    def _burst(self, subscription: Subscription, wait: float) -> list[Event]:
        events = subscription.poll(wait)
        until = time.monotonic() + BURST_SECONDS
        while events and len(events) < MAX_BURST and not self._stop.is_set():
            left = until - time.monotonic()
            if left <= 0:
                break
            events += subscription.poll(left)
        return events

    def sweep(self) -> int:
        """Looks at all tables that are due, each once. Returns how many jobs of theirs are pending."""
        seen: set[tuple[str | None, ...]] = set()
        pending = 0
        while not self._stop.is_set():
            found = [each for each in self._queue.due() if _key(each) not in seen]
            if not found:
                break
            for each in found:
                seen.add(_key(each))
                pending += len(self._planner.look(each))
                if self._stop.is_set():
                    break
        return pending


def _tables(events: Iterable[Event]) -> list[TableReference]:
    """The tables that events are about, each once."""
    named = dict.fromkeys((each.catalog, each.database, each.table) for each in events if each.table)
    return [TableReference(catalog, database, table) for catalog, database, table in named]


def _key(table: TableReference) -> tuple[str | None, ...]:
    return table.catalog, table.database, table.table
