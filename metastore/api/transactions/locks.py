"""Locks."""

from lake.protocol.hive import (
    CheckLockRequest,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    HeartbeatTxnRangeResponse,
    LockRequest,
    LockResponse,
    LockType,
    ShowLocksRequest,
    ShowLocksResponse,
    UnlockRequest,
)
from metastore.api.methods import Call, answers


@answers(
    "lock",
    changes="TAKE_PART everything; locks rqst.component[]",
    uncommitted="locks",
    differs="nobody overtakes, as in Hive 4",
)
def lock(call: Call, request: LockRequest) -> LockResponse:
    newer = (
        call.session.hive4
        or request.zeroWaitReadEnabled is not None
        or request.exclusiveCTAS is not None
        or any(component.type == LockType.EXCL_WRITE for component in request.component or ())
    )
    return call.metastore.locks.lock(request, hive4=newer)


@answers("check_lock", changes="TAKE_PART everything", uncommitted="locks")
def check_lock(call: Call, request: CheckLockRequest) -> LockResponse:
    return call.metastore.locks.check(request.lockid or 0)


@answers("unlock", changes="TAKE_PART everything", uncommitted="locks")
def unlock(call: Call, request: UnlockRequest) -> None:
    call.metastore.locks.unlock(request.lockid or 0)


@answers("heartbeat", changes="TAKE_PART everything", uncommitted="locks")
def heartbeat(call: Call, request: HeartbeatRequest) -> None:
    call.metastore.locks.heartbeat(request)


@answers("heartbeat_txn_range", changes="TAKE_PART everything", uncommitted="locks")
def heartbeat_txn_range(call: Call, request: HeartbeatTxnRangeRequest) -> HeartbeatTxnRangeResponse:
    return call.metastore.transactions.heartbeat_range(request.min or 0, request.max or 0)


@answers("show_locks", reads="- | locks", uncommitted="locks", differs="looks at the transaction, as in Hive 4")
def show_locks(call: Call, request: ShowLocksRequest) -> ShowLocksResponse:
    return call.metastore.locks.show(request, hive4=call.session.hive4)
