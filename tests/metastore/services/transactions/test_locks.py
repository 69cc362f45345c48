"""Locks over a real Postgres: who gets what, in which order, and who never gets it at the same time as another."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import pairwise
from typing import NamedTuple

import pytest
from sqlalchemy import text
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    CheckLockRequest,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    MetaException,
    NoSuchLockException,
    NoSuchTxnException,
    ShowLocksRequest,
    ShowLocksResponseElement,
    TxnAbortedException,
    TxnOpenException,
    TxnType,
    UnlockRequest,
)
from metastore.services.transactions.locks import Claim, LockService, conflict
from metastore.services.transactions.transactions import TransactionService
from metastore.store import Database
from metastore.store.transactions import locks, transactions
from metastore.store.transactions.locks import Component
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer

READ, WRITE, EXCLUSIVE, EXCL_WRITE = (
    LockType.SHARED_READ,
    LockType.SHARED_WRITE,
    LockType.EXCLUSIVE,
    LockType.EXCL_WRITE,
)
ACQUIRED, WAITING, NOT_ACQUIRED = LockState.ACQUIRED, LockState.WAITING, LockState.NOT_ACQUIRED

TRANSACTION = 7


class Object(NamedTuple):
    database: str
    table: str | None = None
    partition: str | None = None

    def overlaps(self, other: "Object") -> bool:
        return self.database == other.database and all(
            mine is None or theirs is None or mine == theirs for mine, theirs in zip(self[1:], other[1:], strict=True)
        )


TABLE = Object("d", "t")


def component(kind: LockType, what: Object) -> LockComponent:
    level = LockLevel.PARTITION if what.partition else LockLevel.TABLE if what.table else LockLevel.DB
    return LockComponent(kind, level, what.database, what.table, what.partition)


def request(*components: LockComponent, **fields: object) -> LockRequest:
    return LockRequest(component=list(components), user="u", hostname="h", **fields)


@pytest.fixture(scope="module")
def schema(postgres: Postgres) -> Iterator[str]:
    """The URL of a database with our schema."""
    with postgres.fresh_database(upgraded=True) as url:
        yield url


@pytest.fixture
def database(schema: str) -> Iterator[Database]:
    """That database, without locks."""
    database = Database(schema)
    with database.write() as tx:
        tx.execute(text("TRUNCATE locks, transactions, transaction_components CASCADE"))
    yield database
    database.close()


@pytest.fixture
def service(database: Database) -> LockService:
    return lock_service(database)


def lock_service(database: Database, **timeout: float) -> LockService:
    return LockService(database, TransactionService(database), **timeout)


@pytest.fixture
def in_transactions(service: LockService, database: Database) -> LockService:
    """A service while TRANSACTION is open."""
    open_transaction(database)
    return service


def open_transaction(database: Database) -> None:
    with database.write() as tx:
        transactions.add(tx, [TRANSACTION], type=TxnType.DEFAULT, user="u", host="h")


def ask(service: LockService, kind: LockType, what: Object = TABLE, *, hive4: bool = True) -> LockResponse:
    return service.lock(request(component(kind, what)), hive4=hive4)


def shown(service: LockService, **filters: object) -> list[ShowLocksResponseElement]:
    found = service.show(ShowLocksRequest(**filters), hive4=True).locks
    assert found is not None
    return found


class TestQueue:
    def test_the_second_waits_until_the_first_is_gone(self, service: LockService) -> None:
        first, second = ask(service, EXCLUSIVE), ask(service, EXCLUSIVE)
        assert (first.state, second.state) == (ACQUIRED, WAITING)
        assert service.check(second.lockid).state == WAITING
        service.unlock(first.lockid)
        assert service.check(second.lockid).state == ACQUIRED
        assert service.check(second.lockid).state == ACQUIRED

    def test_ids_rise(self, service: LockService) -> None:
        ids = [ask(service, READ).lockid for _ in range(5)]
        assert ids == sorted(set(ids))

    def test_nobody_overtakes(self, service: LockService) -> None:
        reader = ask(service, READ)
        writer = ask(service, EXCLUSIVE)
        late_reader = ask(service, READ)
        assert [reader.state, writer.state, late_reader.state] == [ACQUIRED, WAITING, WAITING]
        service.unlock(reader.lockid)
        assert service.check(late_reader.lockid).state == WAITING
        assert service.check(writer.lockid).state == ACQUIRED
        service.unlock(writer.lockid)
        assert service.check(late_reader.lockid).state == ACQUIRED

    def test_one_who_gives_up_waiting_blocks_nobody(self, service: LockService) -> None:
        reader, writer, late_reader = ask(service, READ), ask(service, EXCLUSIVE), ask(service, READ)
        service.unlock(writer.lockid)
        assert service.check(late_reader.lockid).state == ACQUIRED
        assert service.check(reader.lockid).state == ACQUIRED

    def test_all_components_or_none(self, service: LockService) -> None:
        first = ask(service, EXCLUSIVE, Object("d", "a"))
        both = service.lock(
            request(component(EXCLUSIVE, Object("d", "a")), component(EXCLUSIVE, Object("d", "b"))), hive4=True
        )
        behind = ask(service, EXCLUSIVE, Object("d", "b"))
        assert (both.state, behind.state) == (WAITING, WAITING)
        service.unlock(first.lockid)
        assert service.check(behind.lockid).state == WAITING
        assert service.check(both.lockid).state == ACQUIRED

    def test_components_of_one_lock_get_along(self, service: LockService) -> None:
        parts = [component(READ, TABLE), component(EXCLUSIVE, TABLE), component(EXCLUSIVE, Object("d"))]
        assert service.lock(request(*parts), hive4=True).state == ACQUIRED

    def test_names_are_compared_as_tables_names_are(self, service: LockService) -> None:
        ask(service, EXCLUSIVE, Object("D", "T"))
        assert ask(service, EXCLUSIVE, Object("d", "t")).state == WAITING
        assert ask(service, EXCLUSIVE, Object("@hive#d", "t")).state == WAITING
        assert ask(service, EXCLUSIVE, Object("@other#d", "t")).state == ACQUIRED

    def test_partitions_keys_are_compared_in_lower_case_and_values_are_not(self, service: LockService) -> None:
        ask(service, EXCLUSIVE, Object("d", "t", "Dt=A/HR=1"))
        assert ask(service, EXCLUSIVE, Object("d", "t", "dt=A/hr=1")).state == WAITING
        assert ask(service, EXCLUSIVE, Object("d", "t", "dt=a/hr=1")).state == ACQUIRED

    def test_many_tables_at_once(self, service: LockService) -> None:
        many = [component(EXCLUSIVE, Object("d", f"t{n}")) for n in range(1000)]
        lock = service.lock(request(*many), hive4=True)
        assert ask(service, READ, Object("d", "t999")).state == WAITING
        assert ask(service, READ, Object("d", "u")).state == ACQUIRED
        service.unlock(lock.lockid)

    def test_nothing_to_lock(self, service: LockService) -> None:
        with pytest.raises(MetaException):
            service.lock(request(), hive4=True)
        with pytest.raises(MetaException):
            service.lock(request(LockComponent(9, LockLevel.TABLE, "d", "t")), hive4=True)
        assert shown(service) == []


# Held on a database, a table, a partition -> what must wait, by type and by what it is on, as Hive 2.3 does it: "db" is
# the database, "t" the table, "p" the partition, "q" another one of the table, "o" another table of the database.
HIVE_2_3 = {
    ("read", "db"): {"exclusive": "db"},
    ("read", "t"): {"exclusive": "db t p q"},
    ("read", "p"): {"exclusive": "db t p"},
    ("write", "db"): {"write": "db t p q o", "exclusive": "db t p q o"},
    ("write", "t"): {"write": "db t p q", "exclusive": "db t p q"},
    ("write", "p"): {"write": "db t p", "exclusive": "db t p"},
    ("exclusive", "db"): {"read": "db t p q o", "write": "db t p q o", "exclusive": "db t p q o"},
    ("exclusive", "t"): {"read": "t p q", "write": "db t p q", "exclusive": "db t p q"},
    ("exclusive", "p"): {"read": "t p", "write": "db t p", "exclusive": "db t p"},
}
TYPES = {"read": READ, "write": WRITE, "exclusive": EXCLUSIVE}
OBJECTS = {
    "db": Object("d"),
    "t": TABLE,
    "p": Object("d", "t", "k=1"),
    "q": Object("d", "t", "k=2"),
    "o": Object("d", "o"),
}


class TestHive2:
    @pytest.mark.parametrize(("kind", "level"), HIVE_2_3)
    def test_what_waits_for_what(self, service: LockService, kind: str, level: str) -> None:
        held = ask(service, TYPES[kind], OBJECTS[level], hive4=False)
        waiting: dict[str, list[str]] = {}
        for wanted, wanted_type in TYPES.items():
            for name, what in OBJECTS.items():
                answer = ask(service, wanted_type, what, hive4=False)
                service.unlock(answer.lockid)
                if answer.state == WAITING:
                    waiting.setdefault(wanted, []).append(name)
        assert {wanted: " ".join(names) for wanted, names in waiting.items()} == HIVE_2_3[kind, level]
        service.unlock(held.lockid)

    def test_its_writers_exclude_each_other_and_those_of_hive_4(self, service: LockService) -> None:
        ask(service, WRITE, hive4=False)
        assert ask(service, WRITE, hive4=False).state == WAITING
        assert ask(service, WRITE, hive4=True).state == WAITING

    def test_writers_of_hive_4_share(self, service: LockService) -> None:
        assert [ask(service, WRITE).state, ask(service, WRITE).state] == [ACQUIRED, ACQUIRED]
        assert ask(service, EXCL_WRITE).state == WAITING

    def test_it_is_never_shown_a_type_that_it_does_not_have(self, service: LockService) -> None:
        ask(service, EXCL_WRITE)
        ask(service, WRITE, Object("d", "u"), hive4=False)
        answers = {h: service.show(ShowLocksRequest(), hive4=h).locks for h in (False, True)}
        assert [e.type for e in answers[False] or ()] == [WRITE, WRITE]
        assert [e.type for e in answers[True] or ()] == [EXCL_WRITE, EXCL_WRITE]


class TestUnlockAndHeartbeat:
    def test_unlocking_twice_is_fine(self, service: LockService) -> None:
        lock = ask(service, EXCLUSIVE)
        service.unlock(lock.lockid)
        service.unlock(lock.lockid)
        assert shown(service) == []

    def test_a_lock_that_is_gone(self, service: LockService) -> None:
        lock = ask(service, EXCLUSIVE)
        service.unlock(lock.lockid)
        with pytest.raises(NoSuchLockException, match=f"No such lock lockid:{lock.lockid}"):
            service.check(lock.lockid)
        with pytest.raises(NoSuchLockException, match=f"No such lock: lockid:{lock.lockid}"):
            service.heartbeat(HeartbeatRequest(lockid=lock.lockid))

    def test_a_heartbeat_without_anything(self, service: LockService) -> None:
        service.heartbeat(HeartbeatRequest())
        service.heartbeat(HeartbeatRequest(lockid=0, txnid=0))

    def test_transactions_are_not_there(self, service: LockService) -> None:
        with pytest.raises(NoSuchTxnException, match="No such transaction txnid:77"):
            service.lock(request(component(READ, TABLE), txnid=77), hive4=True)
        with pytest.raises(NoSuchTxnException, match="No such transaction txnid:77"):
            service.heartbeat(HeartbeatRequest(txnid=77))
        assert shown(service) == []


class TestInTransactions:
    def lock(self, service: LockService, kind: LockType, **fields: object) -> LockResponse:
        return service.lock(request(component(kind, TABLE), txnid=TRANSACTION, **fields), hive4=True)

    def test_locks_of_one_transaction_get_along(self, in_transactions: LockService) -> None:
        assert self.lock(in_transactions, EXCLUSIVE).state == ACQUIRED
        assert self.lock(in_transactions, EXCLUSIVE).state == ACQUIRED
        assert ask(in_transactions, READ).state == WAITING

    def test_they_go_with_the_transaction(self, in_transactions: LockService) -> None:
        lock = self.lock(in_transactions, EXCLUSIVE)
        with pytest.raises(TxnOpenException) as caught:
            in_transactions.unlock(lock.lockid)
        assert caught.value.message == (
            f"Unlocking locks associated with transaction not permitted.  lockid:{lock.lockid} intLockId:1"
            f" txnid:{TRANSACTION} db:d table:t partition:null state:ACQUIRED type:EXCLUSIVE"
        )

    def test_one_that_waits_may_be_given_up(self, in_transactions: LockService) -> None:
        held = ask(in_transactions, EXCLUSIVE)
        waiting = self.lock(in_transactions, READ)
        assert waiting.state == WAITING
        in_transactions.unlock(waiting.lockid)
        assert [e.lockid for e in shown(in_transactions)] == [held.lockid]

    def test_a_reader_that_does_not_want_to_wait(self, in_transactions: LockService) -> None:
        held = ask(in_transactions, EXCLUSIVE)
        refused = self.lock(in_transactions, READ, zeroWaitReadEnabled=True)
        assert refused.state == NOT_ACQUIRED
        assert refused.errorMessage == (
            f"Unable to acquire read lock due to an existing exclusive lock {{lockid:{held.lockid} intLockId:1 txnid:0"
            " db:d table:t partition:null state:ACQUIRED type:EXCLUSIVE}"
        )
        assert self.lock(in_transactions, WRITE, zeroWaitReadEnabled=True).state == WAITING
        assert refused.lockid not in [e.lockid for e in shown(in_transactions)]

    def test_a_ctas_that_wants_the_name_for_itself(self, in_transactions: LockService) -> None:
        ask(in_transactions, EXCL_WRITE)
        refused = self.lock(in_transactions, EXCL_WRITE, exclusiveCTAS=True)
        assert refused.state == NOT_ACQUIRED
        assert "concurrent CTAS" in (refused.errorMessage or "")

    def test_nobody_waits_for_a_transaction_past_its_deadline(
        self, in_transactions: LockService, database: Database
    ) -> None:
        self.lock(in_transactions, EXCLUSIVE)
        waiting = ask(in_transactions, READ)
        assert waiting.state == WAITING
        impatient = LockService(database, TransactionService(database, timeout_seconds=0))
        assert impatient.check(waiting.lockid).state == ACQUIRED
        with pytest.raises(TxnAbortedException):
            self.lock(in_transactions, EXCLUSIVE)

    def test_they_do_not_expire(self, database: Database) -> None:
        open_transaction(database)
        service = lock_service(database, timeout_seconds=0)
        self.lock(service, EXCLUSIVE)
        assert service.sweep() == 0
        assert [(e.txnid, e.lastheartbeat) for e in shown(service)] == [(TRANSACTION, 0)]


class TestShow:
    def test_everything_about_a_lock(self, service: LockService) -> None:
        before = int(time.time() * 1000) - 1
        held = service.lock(request(component(EXCLUSIVE, Object("d", "t", "k=1")), agentInfo="query 1"), hive4=True)
        waiting = ask(service, READ)
        first, second = shown(service)
        assert first.lastheartbeat == first.acquiredat
        assert before <= (first.acquiredat or 0) <= time.time() * 1000
        assert first == ShowLocksResponseElement(
            lockid=held.lockid,
            dbname="d",
            tablename="t",
            partname="k=1",
            state=ACQUIRED,
            type=EXCLUSIVE,
            txnid=0,
            lastheartbeat=first.lastheartbeat,
            acquiredat=first.acquiredat,
            user="u",
            hostname="h",
            agentInfo="query 1",
            lockIdInternal=1,
        )
        assert second == ShowLocksResponseElement(
            lockid=waiting.lockid,
            dbname="d",
            tablename="t",
            state=WAITING,
            type=READ,
            txnid=0,
            lastheartbeat=second.lastheartbeat,
            user="u",
            hostname="h",
            agentInfo="Unknown",
            blockedByExtId=held.lockid,
            blockedByIntId=1,
            lockIdInternal=1,
        )
        service.unlock(held.lockid)
        service.check(waiting.lockid)
        assert [(e.state, e.blockedByExtId) for e in shown(service)] == [(ACQUIRED, None)]

    def test_order(self, service: LockService) -> None:
        """Those that are had first, then by how much they exclude, then by id."""
        kinds = [EXCLUSIVE, READ, EXCL_WRITE, WRITE, READ]
        had = [ask(service, kind, Object("d", f"t{n}")).lockid for n, kind in enumerate(kinds)]
        waits = ask(service, READ, Object("d", "t0")).lockid
        assert [e.lockid for e in shown(service)] == [had[1], had[4], had[3], had[2], had[0], waits]

    def test_filters(self, service: LockService) -> None:
        ids = [ask(service, READ, what).lockid for what in (*OBJECTS.values(), Object("e"))]
        everything, database, table = set(ids), set(ids[:5]), set(ids[1:4])
        for filters, expected in (
            ({}, everything),
            ({"dbname": "", "tablename": ""}, everything),
            ({"dbname": "D"}, database),
            ({"dbname": "d", "tablename": "T"}, table),
            ({"dbname": "d", "tablename": "t", "partname": "k=2"}, {ids[3]}),
            ({"dbname": "none"}, set()),
            ({"txnid": 0}, everything),
            ({"txnid": 1}, set()),
        ):
            assert {e.lockid for e in shown(service, **filters)} == expected, filters


TIMEOUT = 60.0
"""Seconds without a heartbeat after which a lock of the tests of expiry is dead."""


class TestExpiry:
    """A lock whose last heartbeat is too old. Time passes by setting heartbeats back."""

    @pytest.fixture
    def impatient(self, database: Database) -> LockService:
        return lock_service(database, timeout_seconds=TIMEOUT)

    @pytest.fixture
    def pass_(self, database: Database) -> Callable[[float], None]:
        """Lets a part of the timeout pass for all locks that there are."""

        def pass_(share: float) -> None:
            with database.write() as tx:
                query = text("UPDATE locks SET heartbeat_at = heartbeat_at - make_interval(secs => :seconds)")
                tx.execute(query, {"seconds": share * TIMEOUT})

        return pass_

    def test_a_dead_holder_is_not_waited_for(self, impatient: LockService, pass_: Callable[[float], None]) -> None:
        dead = ask(impatient, EXCLUSIVE)
        assert ask(impatient, EXCLUSIVE).state == WAITING
        pass_(1.25)
        assert ask(impatient, EXCLUSIVE).state == ACQUIRED
        with pytest.raises(NoSuchLockException):
            impatient.check(dead.lockid)

    def test_heartbeats_and_checks_keep_a_lock(self, impatient: LockService, pass_: Callable[[float], None]) -> None:
        held, waiting = ask(impatient, EXCLUSIVE), ask(impatient, EXCLUSIVE)
        behind = ask(impatient, EXCLUSIVE)
        for _ in range(4):
            pass_(0.5)
            impatient.heartbeat(HeartbeatRequest(lockid=held.lockid))
            assert impatient.check(waiting.lockid).state == WAITING
            assert impatient.check(behind.lockid).state == WAITING
        impatient.unlock(held.lockid)
        assert impatient.check(behind.lockid).state == WAITING
        assert impatient.check(waiting.lockid).state == ACQUIRED

    def test_one_that_waits_can_die_too(self, impatient: LockService, pass_: Callable[[float], None]) -> None:
        held, _, behind = (ask(impatient, EXCLUSIVE) for _ in range(3))
        pass_(1.25)
        impatient.heartbeat(HeartbeatRequest(lockid=held.lockid))
        assert impatient.check(behind.lockid).state == WAITING
        assert [e.lockid for e in shown(impatient)] == [held.lockid, behind.lockid]

    def test_sweep(self, impatient: LockService, pass_: Callable[[float], None]) -> None:
        ask(impatient, EXCLUSIVE)
        ask(impatient, EXCLUSIVE, Object("e"))
        assert impatient.sweep() == 0
        pass_(1.25)
        living = ask(impatient, EXCLUSIVE, Object("f"))
        assert impatient.sweep() == 2
        assert [e.lockid for e in shown(impatient)] == [living.lockid]

    def test_one_that_is_being_used_is_left_alone(
        self, impatient: LockService, pass_: Callable[[float], None], schema: str
    ) -> None:
        """Neither removed nor waited for, although its last heartbeat that can be seen is too old."""
        used = ask(impatient, EXCLUSIVE)
        pass_(1.25)
        with closing(Database(schema)) as other, other.write() as tx:
            locks.heartbeat(tx, used.lockid)
            assert impatient.sweep() == 0
            assert ask(impatient, EXCLUSIVE).state == WAITING
        assert impatient.check(used.lockid).state == ACQUIRED


class TestConcurrency:
    """Every thread has a connection pool of its own, as separate servers have."""

    THREADS = 8

    def in_threads(self, schema: str, work: Callable[[LockService, int], None]) -> None:
        with ExitStack() as stack:
            services = []
            for _ in range(self.THREADS):
                database = Database(schema, pool_size=1, statement_timeout=30)
                stack.callback(database.close)
                services.append(lock_service(database))
            with ThreadPoolExecutor(self.THREADS) as pool:
                for future in [pool.submit(work, service, n) for n, service in enumerate(services)]:
                    future.result(timeout=120)

    @staticmethod
    def wait_for(service: LockService, answer: LockResponse) -> None:
        deadline = time.monotonic() + 60
        while answer.state != ACQUIRED:
            assert time.monotonic() < deadline, "a lock is never had"
            time.sleep(0.002)
            answer = service.check(answer.lockid)

    def test_commits_under_an_exclusive_lock(self, schema: str, service: LockService) -> None:
        """As PyIceberg commits: lock, read, write what was read plus one, unlock."""
        inside = threading.Semaphore(1)
        order: list[int] = []
        value = [0]

        def commit(own: LockService, _: int) -> None:
            for _ in range(10):
                answer = ask(own, EXCLUSIVE)
                self.wait_for(own, answer)
                assert inside.acquire(blocking=False), "two have the lock"
                read = value[0]
                order.append(answer.lockid)
                time.sleep(0.001)  # others run, and would read the same
                value[0] = read + 1
                inside.release()
                own.unlock(answer.lockid)

        self.in_threads(schema, commit)
        assert value == [self.THREADS * 10]
        assert all(earlier < later for earlier, later in pairwise(order)), "a lock was had out of turn"
        assert shown(service) == []

    def test_any_locks_on_anything(self, schema: str, service: LockService) -> None:
        """Locks of every type on overlapping objects, several at once, in any order: no two that exclude each other
        are had at one time, none is lost, and nobody waits for ever."""
        objects = [*OBJECTS.values(), Object("e"), Object("e", "t")]
        guard = threading.Lock()
        had: dict[int, list[tuple[LockType, Object]]] = {}
        granted = [0]

        def excluded(mine: list[tuple[LockType, Object]]) -> bool:
            return any(
                what.overlaps(other) and conflict(Claim(kind, what.table is None), Claim(held, other.table is None))
                for kind, what in mine
                for theirs in had.values()
                for held, other in theirs
            )

        def storm(own: LockService, number: int) -> None:
            choose = random.Random(number)
            for _ in range(25):
                mine = [
                    (choose.choice([READ, READ, WRITE, EXCL_WRITE, EXCLUSIVE]), choose.choice(objects))
                    for _ in range(choose.randint(1, 3))
                ]
                answer = own.lock(request(*(component(*each) for each in mine)), hive4=True)
                self.wait_for(own, answer)
                with guard:
                    assert not excluded(mine)
                    had[answer.lockid] = mine
                    granted[0] += 1
                time.sleep(choose.random() * 0.004)  # it is had for a while
                with guard:
                    del had[answer.lockid]
                own.unlock(answer.lockid)

        self.in_threads(schema, storm)
        assert granted == [self.THREADS * 25]
        assert shown(service) == []

    def test_a_place_in_the_queue_is_not_passed_before_it_is_committed(
        self, service: LockService, database: Database
    ) -> None:
        """Ids are given out and committed in one order, per object; other objects don't wait for that."""
        entered, leave = threading.Event(), threading.Event()

        def slow() -> int:
            with database.write() as tx:
                place = [Component("hive", "d", "t", "", EXCLUSIVE)]
                locks.enter_queue(tx, place)
                lock_id = locks.add(tx, place, transaction_id=0, user="u", host="h", agent="a")
                entered.set()
                assert leave.wait(20)
                return lock_id

        with ThreadPoolExecutor(3) as pool:
            first = pool.submit(slow)
            assert entered.wait(20)
            same = pool.submit(ask, service, EXCLUSIVE, TABLE)
            whole = pool.submit(ask, service, EXCLUSIVE, Object("d"))
            assert ask(service, EXCLUSIVE, Object("e")).state == ACQUIRED
            time.sleep(0.3)  # in which neither may return
            assert not same.done()
            assert not whole.done()
            leave.set()
            assert [same.result(20).state, whole.result(20).state] == [WAITING, WAITING]
            assert first.result(20) < min(same.result().lockid, whole.result().lockid)

    def test_check_and_unlock_of_one_lock_at_once(self, schema: str, service: LockService) -> None:
        """It is gone afterwards, whoever came first; nothing is granted to a lock that was given up."""
        for _ in range(20):
            held, waiting = ask(service, EXCLUSIVE), ask(service, EXCLUSIVE)
            service.unlock(held.lockid)
            behind = ask(service, EXCLUSIVE)
            with ThreadPoolExecutor(2) as pool:
                checked = pool.submit(service.check, waiting.lockid)
                pool.submit(service.unlock, waiting.lockid).result(20)
                assert isinstance(checked.exception(20), NoSuchLockException | None)
            assert service.check(behind.lockid).state == ACQUIRED
            service.unlock(behind.lockid)


class TestClients:
    """Over the wire, from several connections to a server with several workers."""

    def test_commits_under_an_exclusive_lock(self, metastore_server: MetastoreServer) -> None:
        inside = threading.Semaphore(1)
        order: list[int] = []

        def commit(_: int) -> None:
            with ThriftClient(metastore_server.host, metastore_server.port) as client:
                for _ in range(5):
                    answer = client.lock(request(component(EXCLUSIVE, Object("race", "t"))))
                    deadline = time.monotonic() + 60
                    while answer.state != ACQUIRED:
                        assert time.monotonic() < deadline, "a lock is never had"
                        time.sleep(0.005)
                        answer = client.check_lock(CheckLockRequest(answer.lockid))
                    assert inside.acquire(blocking=False), "two have the lock"
                    order.append(answer.lockid)
                    client.heartbeat(HeartbeatRequest(lockid=answer.lockid))
                    inside.release()
                    client.unlock(UnlockRequest(answer.lockid))

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(commit, range(6)))
        assert len(order) == 30
        assert order == sorted(order), "a lock was had out of turn"

    def test_a_connection_is_of_hive_4_once_it_shows(self, metastore_server: MetastoreServer) -> None:
        """SHARED_WRITE means what it means to the client that says it."""
        what = component(WRITE, Object("dialects", "t"))
        with ThriftClient(metastore_server.host, metastore_server.port) as client:
            older = [client.lock(request(what)) for _ in range(2)]
            assert [answer.state for answer in older] == [ACQUIRED, WAITING]
            assert {e.type for e in client.show_locks(ShowLocksRequest(dbname="dialects")).locks} == {WRITE}
            for answer in older:
                client.unlock(UnlockRequest(answer.lockid))
            newer = [client.lock(request(what, zeroWaitReadEnabled=False)) for _ in range(2)]
            assert [answer.state for answer in newer] == [ACQUIRED, ACQUIRED]

    def test_errors(self, metastore_server: MetastoreServer) -> None:
        with ThriftClient(metastore_server.host, metastore_server.port) as client:
            with pytest.raises(NoSuchLockException):
                client.check_lock(CheckLockRequest(10**15))
            with pytest.raises(NoSuchTxnException):
                client.lock(request(component(READ, TABLE), txnid=2**62))
            with pytest.raises(TApplicationException):
                client.lock(request())
            client.unlock(UnlockRequest(10**15))
            top = 2**62
            answer = client.heartbeat_txn_range(HeartbeatTxnRangeRequest(min=top, max=top + 1))
            assert (answer.aborted, answer.nosuch) == (set(), {top, top + 1})
            for low, high in ((5, 3), (0, 2**62), (-(2**63), 2**63 - 1)):
                with pytest.raises(TApplicationException):
                    client.heartbeat_txn_range(HeartbeatTxnRangeRequest(min=low, max=high))
