"""Waiting for events: whom of many the news concern is found without asking the log for each."""

import threading
from collections.abc import Callable

from eventbus.filters import Filter
from eventbus.headlines import Headlines
from metastore.store import Database


class EventWaits:
    """The newest events of the log as those who wait go by them. Safe to be used by several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._headlines = Headlines()
        self._news = 0
        self._lock = threading.Lock()

    def concern(self, wanted: Filter, after: int) -> Callable[[int], bool]:
        """A function that tells whether news concern somebody who has seen the events up to a number.

        It takes the count of the news so far: the log is read once for each, whoever asks. Raises DatabaseUnavailable.
        """
        seen = after

        def concerned(news: int) -> bool:
            nonlocal seen
            with self._lock:
                if news != self._news:
                    with self._database.read() as tx:
                        self._headlines.refresh(tx)
                    self._news = news
                if self._headlines.concern(wanted, seen):
                    return True
                seen = max(seen, self._headlines.last)
                return False

        return concerned
