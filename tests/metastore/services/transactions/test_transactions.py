"""Transactions over a real Postgres: deadlines, what is forgotten when, and what readers see while others commit."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from lake.protocol.hive import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionType,
    DataOperationType,
    GetValidWriteIdsRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    NoSuchTxnException,
    OpenTxnRequest,
    ReplTblWriteIdStateRequest,
    TableValidWriteIds,
    TxnAbortedException,
    TxnType,
)
from metastore.services.transactions.compactions import CompactionService
from metastore.services.transactions.locks import LockService
from metastore.services.transactions.transactions import TransactionService
from metastore.services.transactions.valid_txns import NOTHING_OPEN, Snapshot, bits, parse, parse_materialization
from metastore.services.transactions.write_ids import WriteIdService
from metastore.store import Database
from metastore.store.transactions import transactions
from tests.support.postgres import Postgres

UPDATE = DataOperationType.UPDATE


class Services:
    """Everything about transactions over one pool of connections, as in one server."""

    def __init__(self, url: str, *, timeout_seconds: float = 300) -> None:
        self.database = Database(url)
        self.transactions = TransactionService(self.database, timeout_seconds=timeout_seconds)
        self.locks = LockService(self.database, self.transactions)
        self.compactions = CompactionService(self.database)
        self.write_ids = WriteIdService(self.database, self.transactions, self.compactions)

    def begin(self, kind: int = TxnType.DEFAULT) -> int:
        return self.transactions.open(OpenTxnRequest(1, "u", "h", txn_type=kind))[0]

    def commit(self, number: int, *, hive4: bool = True) -> None:
        self.transactions.commit(CommitTxnRequest(txnid=number), hive4=hive4)

    def abort(self, number: int) -> None:
        self.transactions.abort(AbortTxnRequest(txnid=number))

    def write(self, number: int, table: str = "t", operation: int = UPDATE) -> int:
        """Takes a write id, and the lock of a write; the write id."""
        given = self.write_ids.allocate(AllocateTableWriteIdsRequest("d", table, txnIds=[number]))
        component = LockComponent(
            LockType.SHARED_READ, LockLevel.TABLE, "d", table, operationType=operation, isTransactional=True
        )
        assert self.locks.lock(LockRequest([component], number, "u", "h"), hive4=True).state == LockState.ACQUIRED
        return given[0].writeId or 0

    def valid(self, seen: str | None = None, table: str = "t") -> TableValidWriteIds:
        return self.write_ids.valid(GetValidWriteIdsRequest([f"d.{table}"], validTxnList=seen))[0]

    def snapshot(self) -> str:
        """What a reader sees now, as clients write it."""
        shown = self.transactions.shown()
        marked = int.from_bytes(shown.abortedBits or b"", "little")
        ids = list(enumerate(shown.open_txns or ()))
        opened, aborted = ([n for at, n in ids if marked >> at & 1 == gone] for gone in (0, 1))
        oldest = shown.min_open_txn or NOTHING_OPEN
        return f"{shown.txn_high_water_mark}:{oldest}:{','.join(map(str, opened))}:{','.join(map(str, aborted))}"

    def count(self, table: str) -> int:
        with self.database.read() as tx:
            return tx.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()

    def forget(self) -> int:
        with self.database.write() as tx:
            return transactions.forget_ended(tx, timedelta(0))


@pytest.fixture(scope="module")
def schema(postgres: Postgres) -> Iterator[str]:
    """The URL of a database with our schema."""
    with postgres.fresh_database(upgraded=True) as url:
        yield url


@pytest.fixture
def services(schema: str) -> Iterator[Services]:
    """The services over that database, without transactions."""
    made = Services(schema)
    with made.database.write() as tx:
        tx.execute(
            text(
                "TRUNCATE locks, transactions, transaction_components, completed_components, write_sets,"
                " table_write_ids, transaction_write_ids, compactions CASCADE"
            )
        )
    yield made
    made.database.close()


@pytest.fixture
def impatient(schema: str, services: Services) -> Iterator[Services]:
    """The same, of a server to which every transaction is past its deadline."""
    made = Services(schema, timeout_seconds=0)
    yield made
    made.database.close()


class TestDeadlines:
    def test_a_silent_transaction_is_aborted(self, services: Services, impatient: Services) -> None:
        number = services.begin()
        services.write(number)
        services.transactions.sweep()
        services.transactions.heartbeat_range(number, number)
        impatient.transactions.sweep()
        with pytest.raises(TxnAbortedException, match=f"Transaction txnid:{number} already aborted"):
            services.commit(number)
        assert services.count("locks") == 0

    def test_one_that_replays_another_has_longer(self, services: Services, impatient: Services) -> None:
        request = OpenTxnRequest(1, "u", "h", replPolicy="d.*", replSrcTxnIds=[5], txn_type=TxnType.REPL_CREATED)
        (number,) = services.transactions.open(request)
        impatient.transactions.sweep()
        services.commit(number)

    def test_one_that_is_being_used_is_left_alone(self, services: Services, impatient: Services) -> None:
        number = services.begin()
        with services.database.write() as tx:
            services.transactions.require_open(tx, number)
            impatient.transactions.sweep()
        services.commit(number)


class TestForgetting:
    def test_what_everybody_sees_is_forgotten(self, services: Services) -> None:
        number = services.begin()
        services.write(number)
        services.commit(number)
        assert services.forget() == 1
        assert [services.count(each) for each in ("transactions", "transaction_write_ids", "write_sets")] == [0, 0, 0]
        valid = services.valid()
        assert (valid.writeIdHighWaterMark, valid.invalidWriteIds) == (1, [])
        with pytest.raises(NoSuchTxnException):
            services.commit(number)

    def test_not_what_an_open_one_does_not_see(self, services: Services) -> None:
        """A reader that began before the commit goes on seeing what it saw."""
        writer = services.begin()
        services.write(writer)
        reader = services.begin()
        seen = services.snapshot()
        before = services.valid(seen)
        services.commit(writer)
        assert services.forget() == 0
        assert services.valid(seen) == before
        assert before.invalidWriteIds == [1]
        services.commit(reader)
        assert services.forget() == 2

    def test_aborted_ones_until_they_are_cleaned_up(self, services: Services) -> None:
        number = services.begin()
        services.write(number)
        services.abort(number)
        services.forget()
        assert services.valid().invalidWriteIds == [1]
        info = CompactionInfoStruct(0, "d", "t", type=CompactionType.MAJOR, highestWriteId=1)
        services.compactions.cleaned(info)
        assert services.forget() == 1
        assert services.valid().invalidWriteIds == []

    def test_what_was_committed_after_an_aborted_one_stays_visible(self, services: Services) -> None:
        for aborts in (False, True, False):
            number = services.begin()
            services.write(number)
            (services.abort if aborts else services.commit)(number)
        before = services.valid()
        assert (before.writeIdHighWaterMark, before.invalidWriteIds) == (3, [2])
        assert services.forget() == 2
        after = services.valid()
        assert (after.writeIdHighWaterMark, after.invalidWriteIds) == (3, [2])

    def test_nothing_is_seen_of_a_write_that_began_later(self, services: Services) -> None:
        for _ in range(2):
            number = services.begin()
            services.write(number)
            services.commit(number)
        seen = services.snapshot()
        later = services.begin()
        services.write(later)
        services.forget()
        assert services.valid(seen).writeIdHighWaterMark == 2
        assert services.valid().invalidWriteIds == [3]

    def test_aborted_write_ids_of_a_source_stay_invisible(self, services: Services) -> None:
        state = f"d.t:7:{2**63 - 1}::3,5"
        services.write_ids.replicate(ReplTblWriteIdStateRequest(state, "u", "h", "d", "t"))
        for _ in range(2):
            valid = services.valid()
            assert (valid.writeIdHighWaterMark, valid.invalidWriteIds) == (7, [3, 5])
            services.forget()

    def test_conflicts_are_kept_while_they_matter(self, services: Services) -> None:
        late, early = services.begin(), services.begin()
        services.write(late)
        services.write(early)
        services.commit(early)
        services.forget()
        with pytest.raises(TxnAbortedException, match=r"u/u"):
            services.commit(late)

    def test_traces_of_commits_are_merged(self, services: Services) -> None:
        for operation in (UPDATE, UPDATE, DataOperationType.INSERT, UPDATE):
            number = services.begin()
            services.write(number, operation=operation)
            services.commit(number)
        assert services.count("completed_components") == 4
        services.transactions.sweep()
        assert services.count("completed_components") == 2

    @pytest.mark.parametrize(("kind", "left"), [(TxnType.COMPACTION, 0), (TxnType.SOFT_DELETE, 1)])
    def test_a_compaction_leaves_nothing_to_compact(self, services: Services, kind: int, left: int) -> None:
        number = services.begin(kind)
        services.write(number)
        services.commit(number)
        assert services.count("completed_components") == left
        assert services.count("transaction_components") == 0


class TestRaces:
    def test_no_update_is_lost(self, schema: str, services: Services) -> None:
        """Of transactions that all update one table, each that commits has seen all that were committed before it:
        no update is lost.
        """
        seen_by: dict[int, tuple[int, set[int]]] = {}
        start = Barrier(4)

        def run(_: int) -> None:
            own = Services(schema)
            start.wait()
            for _ in range(12):
                number = own.begin()
                snapshot = parse(own.snapshot()).before(number)
                text_ = f"{snapshot.highest}:{snapshot.oldest_open}:{','.join(map(str, snapshot.invalid))}:"
                valid = own.valid(text_)
                ids = set(range(1, (valid.writeIdHighWaterMark or 0) + 1)) - set(valid.invalidWriteIds or ())
                write_id = own.write(number)
                if random.random() < 0.2:
                    own.abort(number)
                    continue
                try:
                    own.commit(number)
                except TxnAbortedException:
                    continue
                seen_by[write_id] = (number, ids)
            own.database.close()

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(run, range(4)))
        # None of these overlaps another, so they committed in the order of their ids.
        committed = sorted(seen_by, key=lambda write_id: seen_by[write_id][0])
        assert committed
        for place, write_id in enumerate(committed):
            assert seen_by[write_id][1] & seen_by.keys() == set(committed[:place])

    def test_ends_and_locks_of_one_transaction_at_once(self, schema: str, services: Services) -> None:
        """Nobody waits for ever, and nothing is left of a transaction that ended."""

        def run(number: int) -> None:
            own = Services(schema)
            for attempt in range(40):
                target = ids[(number + attempt) % len(ids)]
                try:
                    match random.randrange(4):
                        case 0:
                            own.write(target, f"t{attempt % 3}", DataOperationType.INSERT)
                        case 1:
                            own.commit(target)
                        case 2:
                            own.abort(target)
                        case _:
                            own.transactions.heartbeat_range(ids[0], ids[-1])
                except (NoSuchTxnException, TxnAbortedException):
                    continue
            own.database.close()

        ids = [services.begin() for _ in range(12)]
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(run, range(4)))
        services.transactions.abort_many(ids)
        assert services.count("locks") == 0


class TestTexts:
    @given(st.sets(st.integers(0, 5000)))
    def test_bits_are_those_of_java(self, numbers: set[int]) -> None:
        encoded = bits(sorted(numbers))
        assert {at for at in range(8 * len(encoded)) if encoded[at // 8] >> at % 8 & 1} == numbers
        assert not encoded or encoded[-1]

    @given(st.integers(1, 60), st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)))
    def test_a_snapshot_out_of_its_text(self, highest: int, opened: set[int], aborted: set[int]) -> None:
        opened -= aborted
        words = [",".join(map(str, sorted(each))) for each in (opened, aborted)]
        snapshot = parse(f"{highest}:{min(opened, default=NOTHING_OPEN)}:{words[0]}:{words[1]}")
        for number in range(1, 62):
            assert snapshot.sees(number) == (number <= highest and number not in opened | aborted)
        assert snapshot.aborted == aborted

    @pytest.mark.parametrize("wrong", ["x", "1:y", "1:2:3,z", "1:2:3:4,", ":::"])
    def test_what_is_none(self, wrong: str) -> None:
        with pytest.raises(MetaException):
            parse(wrong)

    def test_of_a_materialized_view(self) -> None:
        plain = f"9$d.t:4:{NOTHING_OPEN}:2,3:$d.u:7:6:6:"
        expected = {"d.t": Snapshot(4, [2, 3], frozenset(), NOTHING_OPEN), "d.u": Snapshot(7, [6], frozenset(), 6)}
        assert parse_materialization(plain) == expected
        assert parse_materialization('{"validTxnList": "' + plain + '"}') == expected
        assert parse_materialization('{"tableSnapshots": {"d.t": {"snapshotId": 1}}}') is None
