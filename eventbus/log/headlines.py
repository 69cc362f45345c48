"""Type and names of the newest events, in memory: one query answers all waiting long polls.

Otherwise a hundred long polls would each query the log after every commit.
"""

from typing import NamedTuple

from sqlalchemy import Connection, select

from eventbus.log import log
from eventbus.log.schema import events
from lake.protocol.events.filters import Filter

KEPT = 1_000
"""Events that are kept. A reader that is further behind has to query the log."""


class Headline(NamedTuple):
    """The parts of an event that filters use."""

    type: str
    catalog: str | None
    database: str | None
    table: str | None


class Headlines:
    """The newest events' headlines, without gaps. Not thread-safe."""

    def __init__(self) -> None:
        self._before = 0  # the number of the event before the first known one
        self._known: list[Headline] = []

    @property
    def last(self) -> int:
        """The number of the newest known event."""
        return self._before + len(self._known)

    def refresh(self, tx: Connection) -> None:
        """Reads the events since the last call. `tx` must be REPEATABLE READ, so that it sees one state."""
        now = log.positions(tx)
        if now.last - self.last > KEPT or now.trimmed > self.last or now.last < self.last:
            self._before, self._known = now.last, []
            return
        columns = (events.c.type, events.c.catalog, events.c.database_name, events.c.table_name)
        query = select(*columns).where(events.c.number > self.last).order_by(events.c.number)
        self._known += [Headline(*row) for row in tx.execute(query)]
        if len(self._known) > 2 * KEPT:
            self._before += len(self._known) - KEPT
            del self._known[:-KEPT]

    def may_match(self, wanted: Filter, after: int) -> bool:
        """Whether a filter accepts an event after a number. Also True if some of these are no longer in memory."""
        if after < self._before:
            return True
        return any(wanted.lets_pass(*headline) for headline in self._known[after - self._before :])
