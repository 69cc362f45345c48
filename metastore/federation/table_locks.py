"""The lock of a table that HiveCatalog takes before it commits."""

import re
import socket
import time
from collections.abc import Callable, Iterable

from lake.protocol.hive import (
    CheckLockRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
)

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._@-]")


def lock_request(database: str, table: str | None, user: str, agent: str) -> LockRequest:
    """What HiveCatalog asks for before it commits a table."""
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, database, table)
    # Hive puts these texts into its SQL as they are.
    user, host = (_NOT_PLAIN.sub("_", each) for each in (user, socket.gethostname()))
    return LockRequest([component], user=user, hostname=host, agentInfo=agent)


def waited_for(
    answer: LockResponse, look: Callable[[CheckLockRequest], LockResponse], pauses: Iterable[float]
) -> int | None:
    """The state (`LockState`) of a lock once it doesn't wait for others any more, or after all pauses, in seconds.

    `answer`: of the call that asked for the lock. `look`: asks again. Raises what that raises.
    """
    for seconds in pauses:
        if answer.state != LockState.WAITING:
            break
        time.sleep(seconds)
        answer = look(CheckLockRequest(lockid=answer.lockid))
    return answer.state
