"""The newest events by their names, in memory: whether somebody who waits is concerned takes no look at the database.

A hundred long polls would otherwise each ask the log whenever anything is committed.
"""

from typing import NamedTuple

from sqlalchemy import Connection, select

from eventbus import log
from eventbus.filters import Filter
from eventbus.schema import events

KEPT = 1_000
"""Whoever has not looked for longer than so many events has to ask the log."""


class Headline(NamedTuple):
    """What filters go by."""

    type: str
    catalog: str | None
    database: str | None
    table: str | None


class Headlines:
    """Of the newest events, without gaps. For one thread at a time."""

    def __init__(self) -> None:
        self._before = 0
        """The number before the first one's."""
        self._known: list[Headline] = []

    @property
    def last(self) -> int:
        return self._before + len(self._known)

    def refresh(self, tx: Connection) -> None:
        """Reads what is new in the log; `tx` must see one snapshot throughout."""
        now = log.positions(tx)
        if now.last - self.last > KEPT or now.trimmed > self.last:
            self._before, self._known = now.last, []
            return
        columns = (events.c.type, events.c.catalog, events.c.database_name, events.c.table_name)
        query = select(*columns).where(events.c.number > self.last).order_by(events.c.number)
        self._known += [Headline(*row) for row in tx.execute(query)]
        if len(self._known) > 2 * KEPT:
            self._before += len(self._known) - KEPT
            del self._known[:-KEPT]

    def concern(self, wanted: Filter, after: int) -> bool:
        """Whether an event after a number is wanted, or may be: those up to it are not known any more."""
        if after < self._before:
            return True
        return any(wanted.lets_pass(*headline) for headline in self._known[after - self._before :])
