"""SQL for requests that clients may send again: each has a key, by which it has its effect once.

The call that makes a change on behalf of such a request says so to its thread (`claiming`). The service that makes the
change notes it in the change's transaction (`claim`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from metastore.postgres.prepared import Prepared
from metastore.store.engine.read_set import mark_uncacheable
from metastore.store.schema.access import request_keys

MOST_REFUSALS = 10_000
"""Refusals that are kept of a caller. What is refused beyond them is decided again when it is sent again."""

_REMOVED_AT_ONCE = 10_000


class Repeated(RuntimeError):
    """The request has had its effect, or was refused, before."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A request under way. `caller`: the user, "" for nobody. `answer`: what is kept with its effect."""

    caller: str
    key: UUID
    digest: bytes
    answer: str | None = None


class KeptRequest(NamedTuple):
    """What is kept of a request. `refusal`: the status with which it was refused; None if it was done.

    `table_id`: the one table that it changed.
    """

    digest: bytes
    refusal: int | None
    table_id: int | None
    answer: str | None


_current: ContextVar[Claim | None] = ContextVar("request", default=None)

_COLUMNS = ("caller", "key", "digest", "refusal", "table_id", "answer")
_ADD = Prepared(insert(request_keys).on_conflict_do_nothing(), _COLUMNS)
_FIND = Prepared(
    select(request_keys.c.digest, request_keys.c.refusal, request_keys.c.table_id, request_keys.c.answer).where(
        request_keys.c.caller == bindparam("caller"), request_keys.c.key == bindparam("key")
    )
)


@contextmanager
def claiming(claim: Claim | None) -> Iterator[None]:
    """The change that this thread makes within the block is a request's; None: it is nobody's."""
    token = _current.set(claim)
    try:
        yield
    finally:
        _current.reset(token)


def claim(tx: Connection, table_id: int | None = None) -> None:
    """Notes that the transaction is the effect of the request under way, if there is one. Raises Repeated.

    `table_id`: the one table that it changes. A request with the same key that is under way is waited for.
    """
    found = _current.get()
    if found is not None and not _add(tx, found, None, table_id, found.answer):
        raise Repeated


def find(tx: Connection, caller: str, key: UUID) -> KeptRequest | None:
    """What is kept of a request."""
    mark_uncacheable()
    row = _FIND.first(tx, {"caller": caller, "key": str(key)})
    return None if row is None else KeptRequest(bytes(row.digest), row.refusal, row.table_id, row.answer)


def keep_refusal(tx: Connection, refused: Claim, status: int, answer: str) -> None:
    """Keeps that a request was refused, unless something is kept of it, or too many refusals of the caller are."""
    of_caller = select(literal(1)).where(request_keys.c.caller == refused.caller, request_keys.c.refusal.is_not(None))
    count = select(func.count()).select_from(of_caller.limit(MOST_REFUSALS).subquery())
    if tx.execute(count).scalar_one() < MOST_REFUSALS:
        _add(tx, refused, status, None, answer)


def forget(tx: Connection, older_than: timedelta) -> int:
    """Forgets old requests, some at once. Returns how many."""
    old = select(request_keys.c.caller, request_keys.c.key).where(request_keys.c.at < func.now() - older_than)
    some = old.limit(_REMOVED_AT_ONCE).subquery()
    statement = delete(request_keys).where(request_keys.c.caller == some.c.caller, request_keys.c.key == some.c.key)
    return int(tx.execute(statement).rowcount)


def _add(tx: Connection, of: Claim, refusal: int | None, table_id: int | None, answer: str | None) -> bool:
    values = {
        "caller": of.caller,
        "key": str(of.key),
        "digest": of.digest,
        "refusal": refusal,
        "table_id": table_id,
        "answer": answer,
    }
    return _ADD.execute(tx, values) == 1
