"""Claims of layers to which somebody applies another definition: of two at once the second is refused.

A claim is a lock of Hive's on the layers' tables, of a kind that readers pass and that no writer of lake tables asks
for. It spares the second one the work. That nobody undoes another's definition is found out from the records of
refreshes, whether there was a claim or not (`Applied`).
"""

import logging
import operator
import os
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from thrift.Thrift import TApplicationException, TException

from lake.client.lake_types import Instant
from lake.layers.runner.records import Record
from lake.protocol.errors import UserError
from lake.protocol.hive import (
    CheckLockRequest,
    LockComponent,
    LockLevel,
    LockRequest,
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


class DefinedElsewhere(UserError):
    """Somebody else applies another definition of a layer, or has done so meanwhile. Nothing was written."""


class Applied:
    """By which refreshes, and definitions, layers stood when a runner last looked."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, str]] = {}

    def note(self, layer: str, latest: tuple[Instant, Record] | None, *, is_other: bool) -> None:
        """Notes a layer's latest refresh, None if there is none. `is_other`: it went by another definition than the
        runner's.

        Raises DefinedElsewhere if that is a later refresh than the one that was noted, which has changed the
        definition.
        """
        if latest is None:
            self._seen[layer] = 0, ""
            return
        instant, record = latest
        if record.kept is None:
            return
        number, digest = self._seen.get(layer, (record.number, record.kept.digest))
        if is_other and record.number > number and record.kept.digest != digest:
            raise DefinedElsewhere(
                f"somebody else has applied another definition of {layer} meanwhile, by the refresh"
                f" {instant.timestamp}{_at(instant.changed_at)}. Bring this project up to date with it, and plan again"
            )
        self._seen[layer] = record.number, record.kept.digest


@contextmanager
def claimed(layers: Sequence[LakeTable], project: str, heartbeat_seconds: float) -> Iterator[None]:
    """Claims layers while the block runs; nothing for none. Raises DefinedElsewhere if somebody has claimed one."""
    if not layers:
        yield
        return
    client = layers[0].client
    agent = f"layers of {project}, {uuid.uuid4().hex}"
    components = [
        LockComponent(LockType.EXCL_WRITE, LockLevel.TABLE, each.named.database, each.named.table) for each in layers
    ]
    user = os.environ.get("USER") or "unknown"
    request = LockRequest(components, user=user, hostname=f"{socket.gethostname()}, process {os.getpid()}")
    request.agentInfo = agent
    answer = None
    try:
        answer = client.call(lambda thrift: thrift.lock(request))
    except (MetaException, TApplicationException) as error:  # nobody has to be allowed to lock tables
        logger.info("other definitions are applied without a claim: %s", error)
    if answer is None:
        yield
        return
    number, state = answer.lockid, answer.state
    try:
        while state != LockState.ACQUIRED:
            holder = _holder(client, layers, number)
            if holder is None or holder.agentInfo != agent:
                raise DefinedElsewhere(_said(holder, layers))
            _unlock(client, holder.lockid)  # of our own: its answer was lost, and the call was repeated
            state = client.call(lambda thrift: thrift.check_lock(CheckLockRequest(lockid=number))).state
        with client.heartbeats.sent_of_lock(number, heartbeat_seconds):
            yield
    finally:
        with suppress(ExceptionStruct, TException, OSError):  # the server forgets it after a while
            _unlock(client, number)


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
