"""Hive's locks on databases, tables and partitions, as used by Hive's DbTxnManager and by PyIceberg's commits.

Locks are granted in the order of their ids: a lock is acquired when no lock with a smaller id, acquired or waiting,
conflicts with it (Hive 4's rule; in Hive 2.3 readers overtake waiting writers). All components of a lock are acquired
together.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import NamedTuple

from thrift.Thrift import TApplicationException

from lake.protocol.hive import (
    DataOperationType,
    HeartbeatRequest,
    LockComponent,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    MetaException,
    NoSuchLockException,
    ShowLocksRequest,
    ShowLocksResponse,
    ShowLocksResponseElement,
    TxnOpenException,
)
from metastore.services.instant_rules import engine_writes, unpublished
from metastore.services.model import names as given
from metastore.services.model.client_texts import hint
from metastore.services.transactions.transactions import TransactionService
from metastore.services.transactions.write_sets import partition as partition_name
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.table import tables
from metastore.store.transactions import locks
from metastore.store.transactions.locks import NO_TRANSACTION, WHOLE, Blocker, Component, ComponentRow, ConflictRule

TIMEOUT_SECONDS = 300.0
"""Hive's hive.txn.timeout."""

UNKNOWN_AGENT = "Unknown"  # LockRequest's default

# From the least to the most restrictive: the order in which Hive shows locks.
_RANKS: dict[int, int] = {
    LockType.SHARED_READ: 0,
    LockType.SHARED_WRITE: 1,
    LockType.EXCL_WRITE: 2,
    LockType.EXCLUSIVE: 3,
}
_TYPE_NAMES: dict[int, str] = {
    LockType.SHARED_READ: "SHARED_READ",
    LockType.SHARED_WRITE: "SHARED_WRITE",
    LockType.EXCL_WRITE: "EXCL_WRITE",
    LockType.EXCLUSIVE: "EXCLUSIVE",
}


class Claim(NamedTuple):
    """The properties of a lock's component that decide about conflicts."""

    type: int
    whole_database: bool


def conflict(wanted: Claim, held: Claim) -> bool:
    """Whether a lock must wait for one before it on an overlapping object (Hive 4's CheckLockFunction).

    SHARED_WRITE is Hive 4's: writers that don't exclude each other. What older clients call so is EXCL_WRITE here.
    Readers hold a database against its removal only: they and exclusive locks on what is inside get along.
    """
    match wanted.type:
        case LockType.SHARED_READ:
            return held.type == LockType.EXCLUSIVE and not (wanted.whole_database and not held.whole_database)
        case LockType.SHARED_WRITE:
            return held.type in (LockType.EXCL_WRITE, LockType.EXCLUSIVE)
        case LockType.EXCL_WRITE:
            return held.type != LockType.SHARED_READ
        case _:
            reader = held.type == LockType.SHARED_READ and held.whole_database
            return not (reader and not wanted.whole_database)


_WRITES = (DataOperationType.INSERT, DataOperationType.UPDATE, DataOperationType.DELETE)

_CLAIMS = [Claim(kind, whole) for kind, whole in product(_RANKS, (False, True))]
CONFLICTS: frozenset[ConflictRule] = frozenset(
    (*wanted, *held) for wanted, held in product(_CLAIMS, _CLAIMS) if conflict(wanted, held)
)


class LockService:
    """Hive's calls for locks. Any number of servers may share a database."""

    def __init__(
        self,
        database: Database,
        transactions: TransactionService,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        refuse_unpublished: bool = False,
    ) -> None:
        """A lock without a heartbeat for `timeout_seconds` may be removed; a transaction's goes with it.

        `refuse_unpublished`: a lock to read a keyed table that was never published is refused.
        """
        self._database = database
        self._transactions = transactions
        self._timeout = timedelta(seconds=timeout_seconds)
        self._refuse_unpublished = refuse_unpublished

    def lock(self, request: LockRequest, *, hive4: bool) -> LockResponse:
        """Asks for a lock: ACQUIRED, or WAITING until `check` says otherwise.

        A reader in a transaction that doesn't want to wait (`zeroWaitReadEnabled`), or the transaction of an
        exclusive CTAS, gets NOT_ACQUIRED instead of WAITING, and the lock is gone. `hive4`: whether the client's
        SHARED_WRITE is that of Hive 4. Raises NoSuchTxnException, TxnAbortedException, MetaException for a
        request without components, or with one that is not complete, and TApplicationException for a write into a table
        whose rows belong to its timeline, or a read of a keyed table that was never published.
        """
        components = [_component(each, hive4=hive4) for each in request.component or ()]
        if not components:
            raise MetaException("a lock needs at least one component")
        transaction_id = request.txnid or NO_TRANSACTION
        with self._database.write() as tx:
            self._check_timelines(tx, request.component or ())
            if transaction_id != NO_TRANSACTION:
                self._transactions.require_open(tx, transaction_id)
                self._transactions.note_locks(tx, transaction_id, request.component or (), hive4=hive4)
            locks.enter_queue(tx, components)
            lock_id = locks.add(
                tx,
                components,
                transaction_id=transaction_id,
                user=hint(request.user),
                host=hint(request.hostname),
                agent=UNKNOWN_AGENT if request.agentInfo is None else hint(request.agentInfo),
            )
            blocker = self._decide(tx, lock_id)
            if blocker is None:
                return LockResponse(lock_id, LockState.ACQUIRED)
            rejection = _reason_to_reject(tx, request, blocker) if transaction_id != NO_TRANSACTION else None
            if rejection is not None:
                locks.release(tx, lock_id)
                return LockResponse(lock_id, LockState.NOT_ACQUIRED, rejection)
            return LockResponse(lock_id, LockState.WAITING)

    def _check_timelines(self, tx: Transaction, components: Sequence[LockComponent]) -> None:
        """Refuses locks to write rows past a table's timeline, or to read a keyed table that was never published.

        Raises TApplicationException: the call declares no exception that would take the message to the client.
        """
        kinds = {(each.dbname, each.tablename, each.operationType) for each in components if each.tablename}
        for database, table, kind in kinds:
            reads = self._refuse_unpublished and kind == DataOperationType.SELECT
            if not reads and kind not in _WRITES:
                continue
            name = given.decorated_name(database, table)
            row = tables.find(tx, given.base(name))
            if row is None:
                continue
            try:
                if reads:
                    unpublished.check_read(tx, row, uncommitted=given.is_decorated(name))
                else:
                    engine_writes.check_report(tx, row)
            except MetaException as error:
                raise TApplicationException(TApplicationException.INTERNAL_ERROR, error.message) from None

    def check(self, lock_id: int) -> LockResponse:
        """Whether a lock is had by now; counts as its heartbeat. Raises NoSuchLockException."""
        with self._database.write() as tx:
            # The transaction before its locks, as whoever ends it.
            transaction_id = locks.transaction_of(tx, lock_id)
            if transaction_id:
                self._transactions.heartbeat(tx, transaction_id)
            found = locks.heartbeat(tx, lock_id)
            if found is None:
                raise NoSuchLockException(f"No such lock lockid:{lock_id}")
            had = found.acquired or self._decide(tx, lock_id) is None
        return LockResponse(lock_id, LockState.ACQUIRED if had else LockState.WAITING)

    def _decide(self, tx: Transaction, lock_id: int) -> Blocker | None:
        """Grants a waiting lock whose row this transaction holds, or says what is in its way.

        Locks and transactions that expired are removed when a lock is in the way of another.
        """
        # What is before this lock can only become less: a lock for the same objects with a smaller id was committed
        # before this one got its id. So nothing has to be held while the answer is worked out.
        blocker = locks.find_blocker(tx, lock_id, CONFLICTS)
        while blocker is not None and (locks.remove_expired(tx, self._timeout) or self._transactions.abort_expired(tx)):
            blocker = locks.find_blocker(tx, lock_id, CONFLICTS)
        if blocker is None:
            locks.acquire(tx, lock_id)
        else:
            locks.note_blocker(tx, lock_id, blocker)
        return blocker

    def unlock(self, lock_id: int) -> None:
        """Removes a lock, had or waiting; nothing happens if it is gone already, as in Hive.

        Raises TxnOpenException for a lock that a transaction has: it goes with the transaction.
        """
        with self._database.write() as tx:
            if locks.release(tx, lock_id):
                return
            rows = locks.find(tx, lock_id=lock_id)
            if rows:
                raise TxnOpenException(
                    f"Unlocking locks associated with transaction not permitted.  {_described(rows[0])}"
                )

    def heartbeat(self, request: HeartbeatRequest) -> None:
        """The holder of a lock, or of a transaction, is alive. Raises NoSuchLockException, NoSuchTxnException."""
        with self._database.write() as tx:
            missing = NoSuchLockException(f"No such lock: lockid:{request.lockid}")
            # If both are missing, the error names the lock, as in Hive. The transaction's row is locked first.
            if request.lockid and locks.transaction_of(tx, request.lockid) is None:
                raise missing
            if request.txnid:
                self._transactions.heartbeat(tx, request.txnid)
            if request.lockid and locks.heartbeat(tx, request.lockid) is None:
                raise missing

    def show(self, request: ShowLocksRequest, *, hive4: bool) -> ShowLocksResponse:
        """All locks, or those on the named object or of the given transaction; those that are had come first.

        Clients before Hive 4 have no EXCL_WRITE and couldn't read it: to them it is SHARED_WRITE.
        """
        with self._database.read() as tx:
            rows = locks.find(
                tx,
                transaction_id=request.txnid,
                database=given.database_name(request.dbname) if request.dbname else None,
                table=given.plain_table(request.tablename) if request.tablename else None,
                partition=partition_name(request.partname) if request.partname else None,
            )
        rows.sort(key=lambda r: (r.acquired_at is None, _RANKS[r.component.type], r.lock_id, r.number))
        return ShowLocksResponse([_shown(row, hive4=hive4) for row in rows])

    def sweep(self) -> int:
        """Removes locks that expired, and returns how many."""
        with self._database.write() as tx:
            return locks.remove_expired(tx, self._timeout)


def _component(component: LockComponent, *, hive4: bool) -> Component:
    """What is kept of a component. Names alone say what it is on; like Hive we don't look at its level."""
    if component.type not in _RANKS:
        raise MetaException(f"there is no lock type {component.type}")
    kind = component.type
    if kind == LockType.SHARED_WRITE and not hive4:
        kind = LockType.EXCL_WRITE
    if not component.tablename:
        name = given.database_name(component.dbname)
        return Component(name.catalog, name.database, WHOLE, WHOLE, kind)
    table = given.base(given.decorated_name(component.dbname, component.tablename))
    return Component(table.catalog, table.database, table.table, partition_name(component.partitionname), kind)


def _reason_to_reject(tx: Transaction, request: LockRequest, blocker: Blocker) -> str | None:
    """Why a lock that may not wait is not had; None if it may wait."""
    if not request.exclusiveCTAS and not (request.zeroWaitReadEnabled and blocker.type == LockType.SHARED_READ):
        return None
    held = locks.find(tx, lock_id=blocker.held_lock, number=blocker.held_number)
    described = _described(held[0]) if held else f"lockid:{blocker.held_lock}, gone by now"
    if request.exclusiveCTAS:
        return f"Failed to initiate a concurrent CTAS operation with the same table name, lockInfo : {described}"
    return f"Unable to acquire read lock due to an existing exclusive lock {{{described}}}"


def _described(row: ComponentRow) -> str:
    """A component of a lock in words, as Hive's messages have it."""
    component = row.component
    return (
        f"lockid:{row.lock_id} intLockId:{row.number} txnid:{row.transaction_id} db:{component.database}"
        f" table:{component.table or 'null'} partition:{component.partition or 'null'}"
        f" state:{'ACQUIRED' if row.acquired_at else 'WAITING'} type:{_TYPE_NAMES[component.type]}"
    )


def _shown(row: ComponentRow, *, hive4: bool) -> ShowLocksResponseElement:
    component = row.component
    older = component.type == LockType.EXCL_WRITE and not hive4
    blocking_lock, blocking_number = row.blocked_by or (None, None)
    return ShowLocksResponseElement(
        lockid=row.lock_id,
        dbname=component.database,
        tablename=component.table or None,
        partname=component.partition or None,
        state=LockState.ACQUIRED if row.acquired_at else LockState.WAITING,
        type=LockType.SHARED_WRITE if older else component.type,
        txnid=row.transaction_id,
        # The heartbeat of a transaction's lock is the transaction's.
        lastheartbeat=_milliseconds(row.heartbeat_at) if row.transaction_id == NO_TRANSACTION else 0,
        acquiredat=_milliseconds(row.acquired_at) if row.acquired_at else None,
        user=row.user,
        hostname=row.host,
        agentInfo=row.agent,
        blockedByExtId=blocking_lock,
        blockedByIntId=blocking_number,
        lockIdInternal=row.number,
    )


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
