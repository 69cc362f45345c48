"""Decides which waiting long polls a new event wakes, with one query for all of them."""

import threading
from collections.abc import Callable

from eventbus.log.headlines import Headlines
from lake.protocol.events.filters import Filter
from metastore.store import Database


class EventWaits:
    """Keeps the newest events in memory to answer waiting long polls. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._headlines = Headlines()
        self._notifications = 0
        self._lock = threading.Lock()

    def predicate(self, wanted: Filter, after: int) -> Callable[[int], bool]:
        """A function that says whether there may be an event after number `after` that a filter accepts.

        Its argument is how many notifications of new events the worker has received so far. The log is read once per
        notification, for all readers. The function raises DatabaseUnavailable.
        """
        seen = after

        def matches(notifications: int) -> bool:
            nonlocal seen
            with self._lock:
                if notifications != self._notifications:
                    with self._database.read() as tx:
                        self._headlines.refresh(tx)
                    self._notifications = notifications
                if self._headlines.may_match(wanted, seen):
                    return True
                seen = max(seen, self._headlines.last)
                return False

        return matches
