"""Locks: who waits for whom, and how a lock is kept and given back."""

import time
from collections.abc import Callable, Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    CheckLockRequest,
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    NoSuchLockException,
    NoSuchTxnException,
    ShowLocksRequest,
    ShowLocksResponseElement,
    UnlockRequest,
)
from tests.support.expect import refused
from tests.support.target import Target

READ, WRITE, EXCLUSIVE = LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCLUSIVE
ACQUIRED, WAITING = LockState.ACQUIRED, LockState.WAITING


def on(kind: int, db: str, table: str | None = None, partition: str | None = None) -> LockComponent:
    """A component on a database, on a table, or on a partition."""
    level = LockLevel.DB if table is None else LockLevel.TABLE if partition is None else LockLevel.PARTITION
    return LockComponent(type=kind, level=level, dbname=db, tablename=table, partitionname=partition)


class Locks:
    """Asks for locks and gives back, in the end, those that a case left."""

    def __init__(self, client: ThriftClient) -> None:
        self._client = client
        self._held: set[int] = set()

    def ask(self, *components: LockComponent) -> tuple[int, int]:
        """The lock's id and state."""
        request = LockRequest(component=list(components), user="alice", hostname="here")
        answer = self._client.lock(request)
        self._held.add(answer.lockid)
        return answer.lockid, answer.state

    def state(self, lock: int) -> int:
        answer = self._client.check_lock(CheckLockRequest(lockid=lock))
        assert answer.lockid == lock
        return answer.state

    def release(self, lock: int) -> None:
        self._client.unlock(UnlockRequest(lockid=lock))
        self._held.discard(lock)

    def release_all(self) -> None:
        for lock in sorted(self._held, reverse=True):
            self.release(lock)


@pytest.fixture
def locks(client: ThriftClient) -> Iterator[Locks]:
    made = Locks(client)
    yield made
    made.release_all()


Show = Callable[..., list[ShowLocksResponseElement]]


@pytest.fixture
def show(client: ThriftClient, unused_name: str) -> Show:
    """Shows the locks on the database `unused_name`, or on one of its tables."""

    def shown(table: str | None = None) -> list[ShowLocksResponseElement]:
        request = ShowLocksRequest(dbname=unused_name, tablename=table)
        found = client.show_locks(request).locks
        return sorted(found, key=lambda each: (each.lockid, each.lockIdInternal))

    return shown


@pytest.fixture
def name(unused_name: str) -> str:
    """A database name: what is locked need not exist."""
    return unused_name


class TestTwoLocksOnOneTable:
    @pytest.mark.parametrize(
        ("held", "asked", "state"),
        [
            (EXCLUSIVE, EXCLUSIVE, WAITING),
            (EXCLUSIVE, WRITE, WAITING),
            (EXCLUSIVE, READ, WAITING),
            (WRITE, EXCLUSIVE, WAITING),
            (WRITE, WRITE, WAITING),
            (WRITE, READ, ACQUIRED),
            (READ, EXCLUSIVE, WAITING),
            (READ, WRITE, ACQUIRED),
            (READ, READ, ACQUIRED),
        ],
    )
    def test_the_second(self, locks: Locks, name: str, held: int, asked: int, state: int) -> None:
        first, granted = locks.ask(on(held, name, "t"))
        assert granted == ACQUIRED
        second, answered = locks.ask(on(asked, name, "t"))
        assert answered == locks.state(second) == state
        locks.release(first)
        assert locks.state(second) == ACQUIRED

    def test_exclusive_locks_are_granted_in_the_order_of_asking(self, locks: Locks, name: str) -> None:
        first, _ = locks.ask(on(EXCLUSIVE, name, "t"))
        second, _ = locks.ask(on(EXCLUSIVE, name, "t"))
        third, _ = locks.ask(on(EXCLUSIVE, name, "t"))
        locks.release(first)
        assert (locks.state(third), locks.state(second)) == (WAITING, ACQUIRED)
        locks.release(second)
        assert locks.state(third) == ACQUIRED


class TestWhatIsLocked:
    def test_other_tables_and_databases_are_free(self, locks: Locks, name: str) -> None:
        locks.ask(on(EXCLUSIVE, name, "t"))
        assert locks.ask(on(EXCLUSIVE, name, "u"))[1] == ACQUIRED
        assert locks.ask(on(EXCLUSIVE, name + "_other", "t"))[1] == ACQUIRED

    def test_partitions_of_one_table_are_free_of_each_other(self, locks: Locks, name: str) -> None:
        assert locks.ask(on(EXCLUSIVE, name, "t", "k=1"))[1] == ACQUIRED
        assert locks.ask(on(EXCLUSIVE, name, "t", "k=2"))[1] == ACQUIRED
        assert locks.ask(on(EXCLUSIVE, name, "t", "k=1"))[1] == WAITING

    @pytest.mark.parametrize("kind", [READ, EXCLUSIVE])
    def test_a_table_waits_for_its_partitions(self, locks: Locks, name: str, kind: int) -> None:
        part, _ = locks.ask(on(EXCLUSIVE, name, "t", "k=1"))
        whole, state = locks.ask(on(kind, name, "t"))
        assert state == WAITING
        locks.release(part)
        assert locks.state(whole) == ACQUIRED

    def test_partitions_wait_for_their_table(self, locks: Locks, name: str) -> None:
        locks.ask(on(EXCLUSIVE, name, "t"))
        assert locks.ask(on(READ, name, "t", "k=1"))[1] == WAITING

    def test_a_database_waits_for_its_tables(self, locks: Locks, name: str) -> None:
        inside, _ = locks.ask(on(READ, name, "t"))
        whole, state = locks.ask(on(EXCLUSIVE, name))
        assert state == WAITING
        locks.release(inside)
        assert locks.state(whole) == ACQUIRED

    def test_a_shared_lock_on_a_database_leaves_its_tables_free(self, locks: Locks, name: str) -> None:
        locks.ask(on(READ, name))
        assert locks.ask(on(EXCLUSIVE, name, "t"))[1] == ACQUIRED

    def test_several_at_once_are_granted_together_or_not_at_all(self, locks: Locks, name: str) -> None:
        first, state = locks.ask(on(EXCLUSIVE, name, "t"), on(READ, name, "u"))
        assert state == ACQUIRED
        both, state = locks.ask(on(READ, name, "free"), on(EXCLUSIVE, name, "u"))
        assert state == WAITING
        locks.release(first)
        assert locks.state(both) == ACQUIRED


class TestLifetime:
    def test_released_is_gone(self, client: ThriftClient, locks: Locks, name: str) -> None:
        lock, _ = locks.ask(on(EXCLUSIVE, name, "t"))
        locks.release(lock)
        with refused(NoSuchLockException, message=f"No such lock lockid:{lock}"):
            locks.state(lock)
        with refused(NoSuchLockException, message=f"No such lock: lockid:{lock}"):
            client.heartbeat(HeartbeatRequest(lockid=lock))

    def test_a_waiting_lock_can_be_given_up(self, locks: Locks, name: str) -> None:
        locks.ask(on(READ, name, "t"))
        waiting, _ = locks.ask(on(EXCLUSIVE, name, "t"))
        locks.release(waiting)
        with refused(NoSuchLockException):
            locks.state(waiting)

    def test_releasing_twice_or_the_unknown_is_fine(self, client: ThriftClient, locks: Locks, name: str) -> None:
        lock, _ = locks.ask(on(EXCLUSIVE, name, "t"))
        locks.release(lock)
        locks.release(lock)
        client.unlock(UnlockRequest(lockid=10**12))

    def test_unknown_locks(self, client: ThriftClient) -> None:
        with refused(NoSuchLockException):
            client.check_lock(CheckLockRequest(lockid=10**12))
        with refused(NoSuchLockException):
            client.heartbeat(HeartbeatRequest(lockid=10**12))

    def test_unknown_transactions(self, client: ThriftClient, name: str) -> None:
        with refused(NoSuchTxnException):
            client.heartbeat(HeartbeatRequest(txnid=10**12))
        with refused(NoSuchTxnException):
            client.lock(LockRequest(component=[on(READ, name, "t")], txnid=10**12, user="alice", hostname="here"))

    def test_a_heartbeat_of_nothing_is_fine(self, client: ThriftClient) -> None:
        assert client.heartbeat(HeartbeatRequest()) is None

    def test_a_lock_outlives_its_connection(self, target: Target, locks: Locks, name: str) -> None:
        with target.connect() as other:
            request = LockRequest(component=[on(EXCLUSIVE, name, "t")], user="bob", hostname="there")
            held = other.lock(request).lockid
        assert locks.ask(on(READ, name, "t"))[1] == WAITING
        locks.release(held)


class TestShow:
    def test_an_acquired_lock(self, locks: Locks, name: str, show: Show) -> None:
        lock, _ = locks.ask(on(EXCLUSIVE, name, "t", "k=1"))
        (shown,) = show()
        assert (shown.lockid, shown.lockIdInternal) == (lock, 1)
        assert (shown.dbname, shown.tablename, shown.partname) == (name, "t", "k=1")
        assert (shown.state, shown.type) == (ACQUIRED, EXCLUSIVE)
        assert (shown.user, shown.hostname) == ("alice", "here")
        assert shown.agentInfo == "Unknown"
        now = 1000 * time.time()
        assert abs(now - shown.acquiredat) < 120_000
        assert abs(now - shown.lastheartbeat) < 120_000

    def test_a_lock_on_a_database(self, locks: Locks, name: str, show: Show) -> None:
        locks.ask(on(READ, name))
        (shown,) = show()
        assert (shown.dbname, shown.tablename, shown.partname) == (name, None, None)

    def test_a_waiting_lock(self, locks: Locks, name: str, show: Show) -> None:
        first, _ = locks.ask(on(READ, name, "t"))
        second, _ = locks.ask(on(EXCLUSIVE, name, "t"))
        shown = {each.lockid: each for each in show()}
        assert shown[second].state == WAITING
        assert shown[second].acquiredat is None
        assert shown[second].blockedByExtId == first

    def test_each_component(self, locks: Locks, name: str, show: Show) -> None:
        lock, _ = locks.ask(on(READ, name, "t"), on(EXCLUSIVE, name, "u"))
        shown = show()
        assert {(each.lockid, each.tablename, each.type) for each in shown} == {
            (lock, "t", READ),
            (lock, "u", EXCLUSIVE),
        }
        assert [each.lockIdInternal for each in shown] == [1, 2]

    def test_by_table(self, locks: Locks, name: str, show: Show) -> None:
        locks.ask(on(READ, name, "t"))
        locks.ask(on(READ, name, "u"))
        assert [each.tablename for each in show("u")] == ["u"]
        assert show("nosuch") == []

    def test_all(self, client: ThriftClient, locks: Locks, name: str) -> None:
        lock, _ = locks.ask(on(READ, name, "t"))
        assert lock in {each.lockid for each in client.show_locks(ShowLocksRequest()).locks}
