"""Claims of layers to which somebody applies another definition: of two at once the second is refused.

A claim is a lock of Hive's on the layers' tables, of a kind that readers pass and that no writer of lake tables asks
for. It spares the second one the work. That nobody undoes another's definition is found out from the records of
refreshes, whether there was a claim or not (`Applied`).

Whoever cuts layers over to tables beside them says so by another lock, of the kind that readers take. Refreshes wait
until that is done: each would make the cut-over begin again, and it takes longer than they do.
"""

import logging
import operator
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from thrift.Thrift import TApplicationException, TException

from lake.client.lake_types import Instant
from lake.layers.errors import RefreshLost
from lake.layers.runner.definitions import Definitions
from lake.layers.runner.records import Record
from lake.protocol.errors import UserError
from lake.protocol.hive import (
    CheckLockRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    MetaException,
    ShowLocksRequest,
    ShowLocksResponse,
    ShowLocksResponseElement,
    UnlockRequest,
)
from lake.protocol.struct import ExceptionStruct
from lake.tables.lake import LakeClient, LakeTable

logger = logging.getLogger(__name__)

_CUT_OVER = "cut-over of layers of "
"""How what a lock says of itself begins while layers are cut over."""

_MISSED_HEARTBEATS = 3
"""So many of a lock that nobody sends: who held it has ended."""

_POLL_SECONDS = 0.5


class DefinedElsewhere(UserError):
    """Somebody else applies another definition of a layer, or has done so meanwhile. Nothing was written."""


class Applied:
    """By which refreshes, and definitions, layers stood when a runner last looked."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int | None, Record | None]] = {}

    def note(
        self,
        layer: str,
        lake: LakeTable,
        latest: tuple[Instant, Record] | None,
        *,
        other_than: Definitions | None,
    ) -> None:
        """Notes the latest refresh of a layer's table, None if there is none. `other_than`: what compares definitions,
        if it went by another one than the runner's; else None.

        Raises DefinedElsewhere if that is a later refresh than the one that was noted, or one of a table that was made
        since, and it has changed the definition.
        """
        if latest is None:
            self._seen[layer] = None, None  # there may be no table
            return
        instant, record = latest
        if record.kept is None:
            return
        table, before = self._seen.get(layer, (lake.id, record))
        is_later = before is None or lake.id != table or record.number > before.number
        if other_than is not None and is_later and not (before and other_than.are_same(lake, before, record)):
            raise DefinedElsewhere(
                f"somebody else has applied another definition of {layer} meanwhile, by the refresh"
                f" {instant.timestamp}{_at(instant.changed_at)}. Bring this project up to date with it, and plan again"
            )
        self._seen[layer] = lake.id, record


@contextmanager
def claimed(layers: Sequence[LakeTable], project: str, heartbeat_seconds: float) -> Iterator[None]:
    """Claims layers while the block runs; nothing for none. Raises DefinedElsewhere if somebody has claimed one."""
    agent = f"layers of {project}, {uuid.uuid4().hex}"
    with _locked(layers, LockType.EXCL_WRITE, agent) as lock:
        if lock is None:
            yield
            return
        client, (number, state) = layers[0].client, lock
        while state != LockState.ACQUIRED:
            holder = _holder(client, layers, number)
            if holder is None or holder.agentInfo != agent:
                raise DefinedElsewhere(_said(holder, layers))
            _unlock(client, holder.lockid)  # of our own: its answer was lost, and the call was repeated
            state = client.call(lambda thrift: thrift.check_lock(CheckLockRequest(lockid=number))).state
        with client.heartbeats.sent_of_lock(number, heartbeat_seconds):
            yield


@contextmanager
def announced(layers: Sequence[LakeTable], project: str, heartbeat_seconds: float) -> Iterator[None]:
    """Tells others that layers are cut over while the block runs (`wait_for_cut_over`); nothing for none."""
    with _locked(layers, LockType.SHARED_READ, f"{_CUT_OVER}{project}, {uuid.uuid4().hex}") as lock:
        if lock is None:
            yield
            return
        with layers[0].client.heartbeats.sent_of_lock(lock[0], heartbeat_seconds):
            yield


def wait_for_cut_over(layers: Sequence[LakeTable], heartbeat_seconds: float, progress: Callable[[str], None]) -> None:
    """Waits until nobody cuts one of some layers over, or whoever did has ended. `progress` gets words for users.

    Raises RefreshLost if it has waited for one: the layers may be others now.
    """
    beats: dict[int | None, tuple[int | None, float]] = {}
    while True:
        alive, locks = [], _cut_overs(layers)
        for lock in locks:
            if lock.lockid not in beats:
                progress(f"waits for {lock.user} on {lock.hostname}, who cuts {lock.dbname}.{lock.tablename} over")
            if lock.lockid not in beats or beats[lock.lockid][0] != lock.lastheartbeat:
                beats[lock.lockid] = lock.lastheartbeat, time.monotonic()
            if time.monotonic() - beats[lock.lockid][1] <= _MISSED_HEARTBEATS * heartbeat_seconds:
                alive.append(lock)
        if not alive:
            break
        time.sleep(_POLL_SECONDS)
    if set(beats) - {each.lockid for each in locks}:
        raise RefreshLost("the layers were cut over meanwhile")


def _cut_overs(layers: Sequence[LakeTable]) -> list[ShowLocksResponseElement]:
    """The locks by which some layers are cut over."""
    names = {(each.named.database, each.named.table) for each in layers}
    found: list[ShowLocksResponseElement] = []
    for database in dict.fromkeys(database for database, _ in names):
        request = ShowLocksRequest(dbname=database)
        try:
            answer: ShowLocksResponse = layers[0].client.call(operator.methodcaller("show_locks", request))
        except (MetaException, TApplicationException) as error:  # nobody has to be allowed to see locks
            logger.info("refreshed without a look for cut-overs: %s", error)
            return []
        found += answer.locks or []
    return [
        each
        for each in found
        if (each.dbname, each.tablename) in names and (each.agentInfo or "").startswith(_CUT_OVER)
    ]


@contextmanager
def _locked(layers: Sequence[LakeTable], kind: LockType, agent: str) -> Iterator[tuple[int, int | None] | None]:
    """A lock of the tables of layers, as of `_lock`, given back after the block; None for none."""
    lock = _lock(layers, kind, agent) if layers else None
    try:
        yield lock
    finally:
        if lock is not None:
            with suppress(ExceptionStruct, TException, OSError):  # the server forgets it after a while
                _unlock(layers[0].client, lock[0])


def _lock(layers: Sequence[LakeTable], kind: LockType, agent: str) -> tuple[int, int | None] | None:
    """Asks for a lock of the tables of layers: its number and state; None where that isn't allowed."""
    components = [LockComponent(kind, LockLevel.TABLE, each.named.database, each.named.table) for each in layers]
    user = os.environ.get("USER") or "unknown"
    request = LockRequest(components, user=user, hostname=f"{socket.gethostname()}, process {os.getpid()}")
    request.agentInfo = agent
    try:
        answer: LockResponse = layers[0].client.call(lambda thrift: thrift.lock(request))
    except (MetaException, TApplicationException) as error:  # nobody has to be allowed to lock tables
        logger.info("other definitions are applied without a lock: %s", error)
        return None
    assert answer.lockid is not None
    return answer.lockid, answer.state


def _unlock(client: LakeClient, number: int | None) -> None:
    client.call(lambda thrift: thrift.unlock(UnlockRequest(number)))


def _holder(client: LakeClient, layers: Sequence[LakeTable], number: int) -> ShowLocksResponseElement | None:
    """The lock that one of ours waits for; None if that can't be found out."""
    for each in layers:
        request = ShowLocksRequest(dbname=each.named.database, tablename=each.named.table)
        answer: ShowLocksResponse = client.call(operator.methodcaller("show_locks", request))
        found = answer.locks or []
        blockers = {lock.blockedByExtId for lock in found if lock.lockid == number and lock.blockedByExtId is not None}
        for lock in found:
            if lock.lockid in blockers:
                return lock
    return None


def _said(holder: ShowLocksResponseElement | None, layers: Sequence[LakeTable]) -> str:
    if holder is None:
        return f"somebody else is applying another definition of {layers[0].name}, or of another of these layers"
    since = None if holder.acquiredat is None else datetime.fromtimestamp(holder.acquiredat / 1000, UTC)
    return (
        f"{holder.dbname}.{holder.tablename} gets another definition already: {holder.user} on {holder.hostname}"
        f" ({holder.agentInfo}) applies one{_at(since, 'since')}. Try again when that is done"
    )


def _at(time: datetime | None, word: str = "at") -> str:
    return "" if time is None else f" {word} {time:%Y-%m-%d %H:%M:%S} UTC"
