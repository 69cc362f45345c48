"""The tables that a request has altered, as of the commit of its own transaction.

Whoever alters a table has locked it, and so knows what the next reader will find. The cache renews its replies by that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from metastore.store.table.tables import LockedTable


@dataclass(slots=True)
class Altered:
    """What was altered. `assumed`: the last of these tables was altered by one message, since it was known."""

    tables: list[LockedTable] = field(default_factory=list)
    assumed: bool = False


_current: ContextVar[Altered | None] = ContextVar("altered tables", default=None)


@contextmanager
def collecting() -> Iterator[Altered]:
    """Collects what this call alters within the block."""
    altered = Altered()
    token = _current.set(altered)
    try:
        yield altered
    finally:
        _current.reset(token)


def record(altered: LockedTable, *, assumed: bool) -> None:
    """Records a table that was altered, see `Altered`. To be called after the commit."""
    collected = _current.get()
    if collected is not None:
        collected.tables.append(altered)
        collected.assumed = assumed
