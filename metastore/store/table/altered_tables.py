"""The tables that a request has altered, as of the commit of its own transaction.

A request that alters a table has locked it, and so knows what the next reader will find. The cache renews its replies
by that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from metastore.store.table.tables import LockedTable

_current: ContextVar[list[LockedTable] | None] = ContextVar("altered tables", default=None)


@contextmanager
def collecting() -> Iterator[list[LockedTable]]:
    """Collects what this call alters within the block."""
    altered: list[LockedTable] = []
    token = _current.set(altered)
    try:
        yield altered
    finally:
        _current.reset(token)


def record(altered: LockedTable) -> None:
    """Records a table that was altered. To be called after the commit."""
    collected = _current.get()
    if collected is not None:
        collected.append(altered)
