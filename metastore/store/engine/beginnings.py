"""What each transaction that writes begins with, on behalf of the call under way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlalchemy import Connection

Beginning = Callable[[Connection], None]

_current: ContextVar[Beginning | None] = ContextVar("beginning", default=None)


@contextmanager
def beginning(first: Beginning | None) -> Iterator[None]:
    """Within the block this thread's transactions that write begin with `first`; what it raises ends them."""
    token = _current.set(first)
    try:
        yield
    finally:
        _current.reset(token)


def begin(tx: Connection) -> None:
    """Called when a transaction that writes has begun."""
    first = _current.get()
    if first is not None:
        first(tx)
