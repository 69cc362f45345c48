"""Transactions, and the write ids of tables."""

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    AllocateTableWriteIdsRequest,
    CheckLockRequest,
    ClientCapabilities,
    ClientCapability,
    CommitTxnKeyValue,
    CommitTxnRequest,
    CreationMetadata,
    DataOperationType,
    GetOpenTxnsRequest,
    GetOpenTxnsResponse,
    GetTableRequest,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    MaxAllocatedTableWriteIdRequest,
    MetaException,
    NoSuchTxnException,
    OpenTxnRequest,
    ReplTblWriteIdStateRequest,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    ShowCompactRequest,
    ShowLocksRequest,
    Table,
    TableValidWriteIds,
    TxnAbortedException,
    TxnOpenException,
    TxnState,
    TxnToWriteId,
    TxnType,
    UnlockRequest,
    UpdateTransactionalStatsRequest,
)
from tests.support.builders import partition, table
from tests.support.expect import UNDECLARED, refused
from tests.support.target import Target
from tests.support.waiting import wait_until

INSERT, UPDATE, DELETE, SELECT = (
    DataOperationType.INSERT,
    DataOperationType.UPDATE,
    DataOperationType.DELETE,
    DataOperationType.SELECT,
)
UNKNOWN = 10**15
TRANSACTIONAL = {"transactional": "true", "transactional_properties": "insert_only"}
NUMBERS = itertools.count(1)


class Transactions:
    """Opens transactions and, in the end, aborts those that a case left open."""

    def __init__(self, client: ThriftClient) -> None:
        self.client = client
        self._open: list[int] = []

    def begin(self, count: int = 1, **fields: object) -> list[int]:
        request = OpenTxnRequest(num_txns=count, user="alice", hostname="here", **fields)
        ids = self.client.open_txns(request).txn_ids
        self._open += ids
        return ids

    def one(self, **fields: object) -> int:
        (number,) = self.begin(1, **fields)
        return number

    def commit(self, number: int, **fields: object) -> None:
        self._open = [each for each in self._open if each != number]
        self.client.commit_txn(CommitTxnRequest(txnid=number, **fields))

    def abort(self, number: int) -> None:
        self._open.remove(number)
        self.client.abort_txn(AbortTxnRequest(txnid=number))

    def lock(
        self,
        number: int,
        db: str,
        name: str,
        operation: int,
        *,
        partition: str | None = None,
        kind: int = LockType.SHARED_READ,
        dynamic: bool = False,
    ) -> LockResponse:
        level = LockLevel.TABLE if partition is None else LockLevel.PARTITION
        component = LockComponent(
            type=kind,
            level=level,
            dbname=db,
            tablename=name,
            partitionname=partition,
            operationType=operation,
            isTransactional=True,
            isDynamicPartitionWrite=dynamic,
        )
        return self.client.lock(LockRequest(component=[component], txnid=number, user="alice", hostname="here"))

    def abort_all(self) -> None:
        if self._open:
            self.client.abort_txns(AbortTxnsRequest(txn_ids=self._open))


@pytest.fixture
def transactions(client: ThriftClient) -> Iterator[Transactions]:
    made = Transactions(client)
    yield made
    made.abort_all()


@pytest.fixture
def name(unused_name: str) -> str:
    """A database name: what transactions write need not exist."""
    return unused_name


@pytest.fixture
def hive4(target: Target) -> Iterator[Transactions]:
    """Transactions of a client that is known to be of Hive 4."""
    with target.connect() as client:
        client.get_open_txns_req(GetOpenTxnsRequest(excludeTxnTypes=[]))
        made = Transactions(client)
        yield made
        made.abort_all()


def open_ids(client: ThriftClient) -> GetOpenTxnsResponse:
    return client.get_open_txns()


class TestLife:
    def test_ids_rise_without_gaps(self, transactions: Transactions) -> None:
        first, second = transactions.begin(2), transactions.begin(3)
        assert first[1] == first[0] + 1
        assert second == list(range(second[0], second[0] + 3))
        assert second[0] > first[1]

    def test_several_are_aborted_at_once(self, client: ThriftClient, transactions: Transactions) -> None:
        ids = transactions.begin(3)
        client.abort_txns(AbortTxnsRequest(txn_ids=ids[:2]))
        states = {each.id: each.state for each in client.get_open_txns_info().open_txns}
        assert [states[each] for each in ids] == [TxnState.ABORTED, TxnState.ABORTED, TxnState.OPEN]

    def test_none(self, transactions: Transactions) -> None:
        assert transactions.begin(0) == []

    def test_at_most_a_thousand_at_once(self, client: ThriftClient) -> None:
        ids = client.open_txns(OpenTxnRequest(num_txns=1500, user="alice", hostname="here")).txn_ids
        assert len(ids) == 1000
        client.abort_txns(AbortTxnsRequest(txn_ids=ids))

    def test_fewer_than_none(self, client: ThriftClient) -> None:
        with refused(TApplicationException):
            client.open_txns(OpenTxnRequest(num_txns=-1, user="alice", hostname="here"))

    def test_commit(self, client: ThriftClient, transactions: Transactions) -> None:
        number = transactions.one()
        assert number in {each.id for each in client.get_open_txns_info().open_txns}
        transactions.commit(number)
        assert number not in {each.id for each in client.get_open_txns_info().open_txns}

    @pytest.mark.hive4
    def test_committing_again_is_fine(self, client: ThriftClient, transactions: Transactions) -> None:
        number = transactions.one()
        transactions.commit(number)
        transactions.commit(number)

    def test_abort(self, client: ThriftClient, transactions: Transactions) -> None:
        number = transactions.one()
        transactions.abort(number)
        (shown,) = [each for each in client.get_open_txns_info().open_txns if each.id == number]
        assert shown.state == TxnState.ABORTED
        with refused(TxnAbortedException, message=f"Transaction txnid:{number} already aborted"):
            transactions.commit(number)

    def test_aborting_again_is_fine(self, client: ThriftClient, transactions: Transactions) -> None:
        number = transactions.one()
        transactions.abort(number)
        client.abort_txn(AbortTxnRequest(txnid=number))
        client.abort_txns(AbortTxnsRequest(txn_ids=[number, UNKNOWN]))

    def test_what_is_committed_cannot_be_aborted(self, client: ThriftClient, transactions: Transactions) -> None:
        number = transactions.one()
        transactions.commit(number)
        with refused(NoSuchTxnException):
            client.abort_txn(AbortTxnRequest(txnid=number))

    def test_unknown_ones(self, client: ThriftClient) -> None:
        with refused(NoSuchTxnException, message=f"No such transaction txnid:{UNKNOWN}"):
            client.commit_txn(CommitTxnRequest(txnid=UNKNOWN))
        with refused(NoSuchTxnException, message=f"No such transaction txnid:{UNKNOWN}"):
            client.abort_txn(AbortTxnRequest(txnid=UNKNOWN))


class TestHeartbeats:
    def test_of_one(self, client: ThriftClient, transactions: Transactions) -> None:
        number = transactions.one()
        (before,) = [each for each in client.get_open_txns_info().open_txns if each.id == number]

        def beat() -> Any:
            client.heartbeat(HeartbeatRequest(txnid=number))
            (after,) = [each for each in client.get_open_txns_info().open_txns if each.id == number]
            return after if after.lastHeartbeatTime > before.lastHeartbeatTime else None  # not within a millisecond

        after = wait_until(beat, 10, "a heartbeat is noted")
        assert after is not None
        assert after.startedTime == before.startedTime

    def test_of_one_that_is_over(self, client: ThriftClient, transactions: Transactions) -> None:
        committed, aborted = transactions.begin(2)
        transactions.commit(committed)
        transactions.abort(aborted)
        with refused(NoSuchTxnException):  # Hive 2.3 doesn't know what was committed
            client.heartbeat(HeartbeatRequest(txnid=committed))
        with refused(TxnAbortedException, message=f"Transaction txnid:{aborted} already aborted"):
            client.heartbeat(HeartbeatRequest(txnid=aborted))

    def test_of_a_range(self, client: ThriftClient, transactions: Transactions) -> None:
        ids = transactions.begin(4)
        transactions.abort(ids[1])
        transactions.commit(ids[2])
        answer = client.heartbeat_txn_range(HeartbeatTxnRangeRequest(min=ids[0], max=ids[3] + 2))
        assert answer.aborted == {ids[1]}
        assert answer.nosuch == {ids[2], ids[3] + 1, ids[3] + 2}


class TestShown:
    def test_details(self, client: ThriftClient, transactions: Transactions) -> None:
        number = transactions.one(agentInfo="me")
        response = client.get_open_txns_info()
        assert response.txn_high_water_mark >= number
        assert [each.id for each in response.open_txns] == sorted(each.id for each in response.open_txns)
        (shown,) = [each for each in response.open_txns if each.id == number]
        assert (shown.state, shown.user, shown.hostname) == (TxnState.OPEN, "alice", "here")
        assert shown.agentInfo == "Unknown"
        now = 1000 * time.time()
        assert abs(now - shown.startedTime) < 120_000
        assert abs(now - shown.lastHeartbeatTime) < 120_000

    def test_the_highest_and_the_oldest(self, client: ThriftClient, transactions: Transactions) -> None:
        ids = transactions.begin(2)
        response = open_ids(client)
        assert response.txn_high_water_mark >= ids[1]
        assert response.min_open_txn <= ids[0]

    def test_both_forms_of_the_list(self, client: ThriftClient, transactions: Transactions, target: Target) -> None:
        """Hive 2.3 reads field 2 as a set, Hive 4 as a list. Ours sends both, since it can't know who asks."""
        number = transactions.one()
        fields = raw_reply(target, "get_open_txns")
        kinds = [kind for field, kind, _ in fields if field == 2]
        assert TType.SET in kinds
        assert (TType.LIST in kinds) == (target.name == "ours")
        assert all(number in value for field, _, value in fields if field == 2)

    def test_aborted_ones_are_marked(self, hive4: Transactions) -> None:
        ids = hive4.begin(3)
        hive4.abort(ids[1])
        response = hive4.client.get_open_txns()
        assert set(ids) <= set(response.open_txns)
        marked = int.from_bytes(response.abortedBits, "little")
        for each in ids:
            place = response.open_txns.index(each)
            assert (marked >> place) & 1 == (each == ids[1])

    def test_types_may_be_left_out(self, hive4: Transactions) -> None:
        reader, writer = hive4.one(txn_type=TxnType.READ_ONLY), hive4.one()
        everything = hive4.client.get_open_txns_req(GetOpenTxnsRequest(excludeTxnTypes=[]))
        assert {reader, writer} <= set(everything.open_txns)
        without = hive4.client.get_open_txns_req(GetOpenTxnsRequest(excludeTxnTypes=[TxnType.READ_ONLY]))
        assert writer in without.open_txns and reader not in without.open_txns
        assert reader not in hive4.client.get_open_txns().open_txns


def raw_reply(target: Target, method: str) -> list[tuple[int, int, object]]:
    """The fields of the struct that a method without arguments answers: id, wire type, and value."""
    with target.connect() as client:
        protocol = TBinaryProtocol(client._transport)
        protocol.writeMessageBegin(method, TMessageType.CALL, 1)
        client._transport.write(b"\0")
        client._transport.flush()
        protocol.readMessageBegin()
        _, kind, field = protocol.readFieldBegin()
        assert (kind, field) == (TType.STRUCT, 0)
        found: list[tuple[int, int, object]] = []
        while True:
            _, kind, field = protocol.readFieldBegin()
            if kind == TType.STOP:
                return found
            if kind in (TType.LIST, TType.SET):
                _, count = protocol.readListBegin() if kind == TType.LIST else protocol.readSetBegin()
                found.append((field, kind, [protocol.readI64() for _ in range(count)]))
            elif kind == TType.I64:
                found.append((field, kind, protocol.readI64()))
            else:
                found.append((field, kind, protocol.readBinary()))


class TestConflicts:
    @pytest.mark.parametrize(
        ("first", "second", "letters"),
        [
            (UPDATE, UPDATE, "u/u"),
            (UPDATE, DELETE, "d/u"),
            (DELETE, UPDATE, "u/d"),
            (DELETE, DELETE, None),
            (UPDATE, INSERT, None),
            (INSERT, UPDATE, None),
            (INSERT, INSERT, None),
            (SELECT, UPDATE, None),
        ],
    )
    def test_who_commits_first_wins(
        self, transactions: Transactions, name: str, first: int, second: int, letters: str | None
    ) -> None:
        one, other = transactions.begin(2)
        assert transactions.lock(one, name, "t", first).state == LockState.ACQUIRED
        assert transactions.lock(other, name, "t", second).state == LockState.ACQUIRED
        transactions.commit(one)
        if letters is None:
            transactions.commit(other)
            return
        message = (
            f"Aborting [txnid:{other},{other}] due to a write conflict on {name}/t committed by"
            f" [txnid:{one},{other}] {letters}"
        )
        with refused(TxnAbortedException, message=message):
            transactions.commit(other)
        with refused(TxnAbortedException):
            transactions.commit(other)

    def test_other_partitions_are_free(self, transactions: Transactions, name: str) -> None:
        ids = transactions.begin(3)
        for number, part in zip(ids, ("k=1", "k=2", "k=1"), strict=True):
            transactions.lock(number, name, "t", UPDATE, partition=part)
        transactions.commit(ids[0])
        transactions.commit(ids[1])
        with refused(TxnAbortedException, message=f"{name}/t/k=1"):
            transactions.commit(ids[2])

    def test_those_that_follow_each_other_are_free(self, transactions: Transactions, name: str) -> None:
        for _ in range(3):
            number = transactions.one()
            transactions.lock(number, name, "t", UPDATE)
            transactions.commit(number)

    def test_an_aborted_one_is_in_nobodys_way(self, transactions: Transactions, name: str) -> None:
        one, other = transactions.begin(2)
        transactions.lock(one, name, "t", UPDATE)
        transactions.lock(other, name, "t", UPDATE)
        transactions.abort(one)
        transactions.commit(other)

    def test_deletes_conflict_in_hive_4(self, hive4: Transactions, name: str) -> None:
        one, other = hive4.begin(2)
        hive4.lock(one, name, "t", DELETE)
        hive4.lock(other, name, "t", DELETE)
        hive4.commit(one)
        assert hive4.client.get_latest_txnid_in_conflict(other) == one
        with refused(TxnAbortedException, message="d/d"):
            hive4.commit(other, exclWriteEnabled=False)

    def test_one_who_locked_exclusively_needs_no_look(self, hive4: Transactions, name: str) -> None:
        one, other = hive4.begin(2)
        hive4.lock(one, name, "t", UPDATE)
        hive4.lock(other, name, "t", UPDATE)
        assert hive4.client.get_latest_txnid_in_conflict(other) == 0
        hive4.commit(one, exclWriteEnabled=True)
        assert hive4.client.get_latest_txnid_in_conflict(other) == one
        hive4.commit(other, exclWriteEnabled=True)

    def test_of_a_race_one_survives(self, target: Target, name: str) -> None:
        def run(ids: list[int]) -> list[bool]:
            with target.connect() as client:
                own, done = Transactions(client), []
                for place, number in enumerate(ids):
                    own.lock(number, name, f"t{place}", UPDATE)
                for number in ids:
                    try:
                        own.commit(number)
                        done.append(True)
                    except TxnAbortedException:
                        done.append(False)
                return done

        with target.connect() as client:
            batches = [Transactions(client).begin(20) for _ in range(4)]
        with ThreadPoolExecutor(4) as threads:
            results = list(threads.map(run, batches))
        assert [sum(column) for column in zip(*results, strict=True)] == [1] * 20


class TestDynamicPartitions:
    def send(self, target: Target, number: int, db: str, name: str, parts: list[str], operation: int) -> None:
        """The call as each version's clients encode it: Hive 2.3 has no write id between transaction and database."""
        body = TMemoryBuffer()
        writer = TBinaryProtocol(body)
        writer.writeMessageBegin("add_dynamic_partitions", TMessageType.CALL, 1)
        writer.writeFieldBegin("rqst", TType.STRUCT, 1)
        writer.writeFieldBegin("txnid", TType.I64, 1)
        writer.writeI64(number)
        for field, text in ((2, db), (3, name)):
            writer.writeFieldBegin("", TType.STRING, field)
            writer.writeString(text)
        writer.writeFieldBegin("", TType.LIST, 4)
        writer.writeListBegin(TType.STRING, len(parts))
        for part in parts:
            writer.writeString(part)
        writer.writeFieldBegin("", TType.I32, 5)
        writer.writeI32(operation)
        for _ in range(2):
            writer.writeFieldStop()
        with target.connect() as client:
            client._transport.write(body.getvalue())
            client._transport.flush()
            reader = TBinaryProtocol(client._transport)
            assert reader.readMessageBegin()[1] == TMessageType.REPLY
            assert reader.readFieldBegin()[1] == TType.STOP

    def test_as_hive_2_sends_them(self, transactions: Transactions, target: Target, name: str) -> None:
        ids = transactions.begin(3)
        for number, part in zip(ids, ("k=1", "k=2", "k=1"), strict=True):
            transactions.lock(number, name, "t", UPDATE, dynamic=True)
            self.send(target, number, name, "t", [part, "k=own" + str(number)], UPDATE)
        transactions.commit(ids[0])
        transactions.commit(ids[1])
        with refused(TxnAbortedException, message=f"{name}/t/k=1"):
            transactions.commit(ids[2])

    def test_hive_2_writes_nothing_until_it_tells(self, transactions: Transactions, name: str) -> None:
        one, other = transactions.begin(2)
        transactions.lock(one, name, "t", UPDATE, dynamic=True)
        transactions.lock(other, name, "t", UPDATE, dynamic=True)
        transactions.commit(one)
        transactions.commit(other)

    def test_as_hive_4_sends_them(self, hive4: Transactions, name: str) -> None:
        ids = hive4.begin(3)
        for number, part in zip(ids, ("k=1", "k=2", "k=1"), strict=True):
            hive4.lock(number, name, "t", UPDATE, dynamic=True)
            hive4.client.add_dynamic_partitions(
                AddDynamicPartitions(
                    txnid=number,
                    writeid=number,
                    dbname=name,
                    tablename="T",
                    partitionnames=[part],
                    operationType=UPDATE,
                )
            )
        hive4.commit(ids[0])
        hive4.commit(ids[1])
        with refused(TxnAbortedException, message=f"{name}/t/k=1"):
            hive4.commit(ids[2], exclWriteEnabled=False)

    def test_hive_4_writes_the_table_until_it_tells(self, hive4: Transactions, name: str) -> None:
        one, other = hive4.begin(2)
        hive4.lock(one, name, "t", UPDATE, dynamic=True)
        hive4.lock(other, name, "t", UPDATE, dynamic=True)
        hive4.commit(one)
        with refused(TxnAbortedException):
            hive4.commit(other, exclWriteEnabled=False)

    def test_in_one_that_is_over(self, hive4: Transactions, name: str) -> None:
        number = hive4.one()
        hive4.abort(number)
        with refused(TxnAbortedException):
            hive4.client.add_dynamic_partitions(
                AddDynamicPartitions(txnid=number, writeid=1, dbname=name, tablename="t", partitionnames=["k=1"])
            )


class TestLocks:
    def test_they_go_with_a_commit(self, client: ThriftClient, transactions: Transactions, name: str) -> None:
        one, other = transactions.begin(2)
        assert transactions.lock(one, name, "t", SELECT, kind=LockType.EXCLUSIVE).state == LockState.ACQUIRED
        waiting = transactions.lock(other, name, "t", SELECT, kind=LockType.EXCLUSIVE)
        assert waiting.state == LockState.WAITING
        transactions.commit(one)
        assert client.check_lock(CheckLockRequest(lockid=waiting.lockid)).state == LockState.ACQUIRED
        transactions.abort(other)
        assert client.show_locks(ShowLocksRequest(dbname=name)).locks == []

    def test_they_go_with_nothing_else(self, client: ThriftClient, transactions: Transactions, name: str) -> None:
        number = transactions.one()
        lock = transactions.lock(number, name, "t", SELECT, kind=LockType.EXCLUSIVE)
        with refused(TxnOpenException, message=f"lockid:{lock.lockid} intLockId:1 txnid:{number} db:{name} table:t"):
            client.unlock(UnlockRequest(lockid=lock.lockid))
        (shown,) = client.show_locks(ShowLocksRequest(dbname=name)).locks
        assert (shown.txnid, shown.lastheartbeat) == (number, 0)

    def test_locks_of_one_transaction_get_along(self, transactions: Transactions, name: str) -> None:
        number = transactions.one()
        for _ in range(2):
            assert transactions.lock(number, name, "t", SELECT, kind=LockType.EXCLUSIVE).state == LockState.ACQUIRED

    def test_none_for_one_that_is_over(self, transactions: Transactions, name: str) -> None:
        number = transactions.one()
        transactions.abort(number)
        with refused(TxnAbortedException, message=f"Transaction txnid:{number} already aborted"):
            transactions.lock(number, name, "t", SELECT)


def allocated(client: ThriftClient, db: str, ids: list[int], name: str = "t", **fields: object) -> dict[int, int]:
    request = AllocateTableWriteIdsRequest(dbName=db, tableName=name, txnIds=ids, **fields)
    return {each.txnId: each.writeId for each in client.allocate_table_write_ids(request).txnToWriteIds}


def valid(client: ThriftClient, db: str, name: str = "t", **fields: object) -> TableValidWriteIds:
    request = GetValidWriteIdsRequest(fullTableNames=[f"{db}.{name}"], **fields)
    (answer,) = client.get_valid_write_ids(request).tblValidWriteIds
    assert answer.fullTableName == f"{db}.{name}"
    return answer


def read_table(client: ThriftClient, db: str, name: str = "t") -> Table:
    capabilities = ClientCapabilities([ClientCapability.INSERT_ONLY_TABLES])
    return client.get_table_req(GetTableRequest(db, name, capabilities)).table


def as_tuple(answer: TableValidWriteIds) -> tuple[int, list[int], int | None, bytes]:
    return answer.writeIdHighWaterMark, answer.invalidWriteIds, answer.minOpenWriteId, answer.abortedBits


class TestWriteIds:
    def test_each_table_counts_from_one(self, hive4: Transactions, name: str) -> None:
        ids = hive4.begin(3)
        assert allocated(hive4.client, name, ids[1:]) == {ids[1]: 1, ids[2]: 2}
        assert allocated(hive4.client, name, [ids[0]]) == {ids[0]: 3}
        assert allocated(hive4.client, name, ids, "other") == dict(zip(ids, (1, 2, 3), strict=True))

    def test_a_transaction_keeps_its_id(self, hive4: Transactions, name: str) -> None:
        one, other = hive4.begin(2)
        assert allocated(hive4.client, name, [one]) == {one: 1}
        assert allocated(hive4.client, name, [one]) == {one: 1}
        assert allocated(hive4.client, name, [other]) == {other: 2}

    @pytest.mark.hive4(differs="gives ids to all of the transactions or to none")
    def test_those_without_one_get_one(self, hive4: Transactions, name: str) -> None:
        one, other = hive4.begin(2)
        allocated(hive4.client, name, [one])
        assert allocated(hive4.client, name, [one, other]) == {one: 1, other: 2}

    def test_a_transaction_may_ask_for_another(self, hive4: Transactions, name: str) -> None:
        one, other = hive4.begin(2)
        allocated(hive4.client, name, [one])
        allocated(hive4.client, name, [other])
        assert allocated(hive4.client, name, [one], reallocate=True) == {one: 3}
        assert allocated(hive4.client, name, [one]) == {one: 3}

    def test_names_in_any_case(self, hive4: Transactions, name: str) -> None:
        one, other = hive4.begin(2)
        assert allocated(hive4.client, name.upper(), [one], "T") == {one: 1}
        assert allocated(hive4.client, name, [other]) == {other: 2}

    @pytest.mark.hive4(differs="knows no uncommitted partitions")
    def test_names_decorated(self, hive4: Transactions, name: str) -> None:
        one, other = hive4.begin(2)
        assert allocated(hive4.client, name, [one]) == {one: 1}
        assert allocated(hive4.client, name, [other], "t@includeuncommit") == {other: 2}

    def test_not_for_what_is_over_or_only_reads(self, hive4: Transactions, name: str) -> None:
        aborted, committed = hive4.begin(2)
        hive4.abort(aborted)
        hive4.commit(committed)
        with refused(TxnAbortedException, UNDECLARED):
            allocated(hive4.client, name, [aborted])
        with refused(NoSuchTxnException, UNDECLARED):
            allocated(hive4.client, name, [committed])
        with refused(MetaException, UNDECLARED):
            allocated(hive4.client, name, [hive4.one(txn_type=TxnType.READ_ONLY)])
        request = MaxAllocatedTableWriteIdRequest(dbName=name, tableName="t")
        assert hive4.client.get_max_allocated_table_write_id(request).maxWriteId == 0

    def test_the_highest(self, hive4: Transactions, name: str) -> None:
        allocated(hive4.client, name, hive4.begin(3))
        request = MaxAllocatedTableWriteIdRequest(dbName=name, tableName="t")
        assert hive4.client.get_max_allocated_table_write_id(request).maxWriteId == 3

    def test_a_table_that_becomes_transactional(self, hive4: Transactions, name: str) -> None:
        hive4.client.seed_write_id(SeedTableWriteIdsRequest(dbName=name, tableName="t", seedWriteId=10))
        number = hive4.one()
        assert allocated(hive4.client, name, [number]) == {number: 11}
        with refused(MetaException):
            hive4.client.seed_write_id(SeedTableWriteIdsRequest(dbName=name, tableName="t", seedWriteId=20))

    @pytest.mark.hive4
    def test_of_a_race_each_gets_its_own(self, target: Target, name: str) -> None:
        def run(_: int) -> list[int]:
            with target.connect() as client:
                own = Transactions(client)
                return [next(iter(allocated(client, name, [own.one()]).values())) for _ in range(15)]

        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(run, range(4)))
        assert sorted(itertools.chain(*found)) == list(range(1, 61))
        assert all(each == sorted(each) for each in found)

    def test_they_go_on_when_the_table_is_renamed(self, hive4: Transactions, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, parameters=TRANSACTIONAL))
        number = hive4.one()
        allocated(hive4.client, db, [number])
        hive4.commit(number)
        client.alter_table(db, "t", read_table(client, db).replace(tableName="renamed"))
        following = hive4.one()
        assert allocated(hive4.client, db, [following], "renamed") == {following: 2}
        assert allocated(hive4.client, db, [following]) == {following: 1}

    @pytest.mark.hive4(differs="can't rename it")
    def test_renamed_to_one_that_has_them(self, hive4: Transactions, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, parameters=TRANSACTIONAL))
        number = hive4.one()
        allocated(hive4.client, db, [number])
        allocated(hive4.client, db, [number], "renamed")
        client.alter_table(db, "t", read_table(client, db).replace(tableName="renamed"))
        following = hive4.one()
        assert allocated(hive4.client, db, [following], "renamed") == {following: 2}

    def test_a_new_table_of_the_name_begins_anew(self, hive4: Transactions, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, parameters=TRANSACTIONAL))
        allocated(hive4.client, db, hive4.begin(2))
        client.drop_table(db, "t", True)
        number = hive4.one()
        assert allocated(hive4.client, db, [number]) == {number: 1}


class TestValidWriteIds:
    def test_of_a_table_that_nobody_wrote(self, hive4: Transactions, name: str) -> None:
        assert as_tuple(valid(hive4.client, name)) == (0, [], None, b"")

    def test_open_aborted_and_committed(self, hive4: Transactions, name: str) -> None:
        ids = hive4.begin(5)
        allocated(hive4.client, name, ids)
        hive4.commit(ids[0])
        hive4.abort(ids[1])
        hive4.abort(ids[3])
        assert as_tuple(valid(hive4.client, name)) == (5, [2, 3, 4, 5], 3, bytes([0b0101]))

    def test_nothing_valid(self, hive4: Transactions, name: str) -> None:
        ids = hive4.begin(2)
        allocated(hive4.client, name, ids)
        assert as_tuple(valid(hive4.client, name)) == (1, [1], 1, b"")
        hive4.abort(ids[0])
        assert as_tuple(valid(hive4.client, name)) == (1, [1], 2, b"\x01")

    def test_by_a_list_of_transactions(self, hive4: Transactions, name: str) -> None:
        ids = hive4.begin(4)
        allocated(hive4.client, name, ids)
        for each in ids:
            hive4.commit(each)
        text = f"{ids[2]}:{ids[1]}:{ids[1]}:"
        assert as_tuple(valid(hive4.client, name, validTxnList=text)) == (3, [2], 2, b"")
        text = f"{ids[2]}:{2**63 - 1}::{ids[1]}"
        assert as_tuple(valid(hive4.client, name, validTxnList=text)) == (3, [2], None, b"\x01")

    def test_as_of_a_write_id(self, hive4: Transactions, name: str) -> None:
        ids = hive4.begin(3)
        allocated(hive4.client, name, ids)
        hive4.commit(ids[0])
        assert as_tuple(valid(hive4.client, name, writeId=2)) == (2, [], None, b"")
        assert as_tuple(valid(hive4.client, name, writeId=3)) == (3, [2], 2, b"")
        with refused(MetaException, message="invalid write id 9 for table"):
            valid(hive4.client, name, writeId=9)

    def test_what_is_no_list_and_no_name(self, hive4: Transactions, name: str) -> None:
        with refused(MetaException, UNDECLARED):
            valid(hive4.client, name, validTxnList="five")
        with refused(MetaException, UNDECLARED):
            hive4.client.get_valid_write_ids(GetValidWriteIdsRequest(fullTableNames=["t"]))

    def test_a_commit_may_set_a_parameter_of_the_table(
        self, hive4: Transactions, client: ThriftClient, db: str
    ) -> None:
        client.create_table(table(db, parameters={"_metaoffset": "1", "other": "1"}))
        number, table_id = hive4.one(), read_table(client, db).id
        with refused(TApplicationException, MetaException):
            hive4.commit(number, keyValue=CommitTxnKeyValue(tableId=table_id, key="other", value="2"))
        hive4.commit(number, keyValue=CommitTxnKeyValue(tableId=table_id, key="_metaoffset", value="2"))
        parameters = read_table(client, db).parameters
        assert (parameters["_metaoffset"], parameters["other"]) == ("2", "1")


class TestReplication:
    def test_transactions_are_replayed(self, hive4: Transactions, name: str) -> None:
        policy = {"replPolicy": f"{name}.*", "txn_type": TxnType.REPL_CREATED}
        ids = hive4.begin(2, replSrcTxnIds=[71, 72], **policy)
        assert hive4.begin(2, replSrcTxnIds=[71, 72], **policy) == ids
        hive4._open = []
        request = AllocateTableWriteIdsRequest(
            dbName=name,
            tableName="t",
            replPolicy=policy["replPolicy"],
            srcTxnToWriteIdList=[TxnToWriteId(71, 5), TxnToWriteId(72, 6)],
        )
        given = hive4.client.allocate_table_write_ids(request).txnToWriteIds
        assert given == [TxnToWriteId(ids[0], 5), TxnToWriteId(ids[1], 6)]
        hive4.client.commit_txn(CommitTxnRequest(txnid=71, **policy))
        hive4.client.commit_txn(CommitTxnRequest(txnid=71, **policy))
        hive4.client.abort_txn(AbortTxnRequest(txnid=72, **policy))
        assert hive4.client.allocate_table_write_ids(request).txnToWriteIds == []
        states = {each.id: each.state for each in hive4.client.get_open_txns_info().open_txns}
        assert [states.get(each) for each in ids] == [None, TxnState.ABORTED]

    def test_a_tables_write_ids_are_taken_over(self, hive4: Transactions, name: str) -> None:
        request = ReplTblWriteIdStateRequest(
            validWriteIdlist=f"{name}.t:7:{2**63 - 1}::3,5", user="alice", hostName="here", dbName=name, tableName="t"
        )
        hive4.client.repl_tbl_writeid_state(request)
        hive4.client.repl_tbl_writeid_state(request)
        number = hive4.one()
        assert allocated(hive4.client, name, [number]) == {number: 8}
        hive4.commit(number)
        assert as_tuple(valid(hive4.client, name)) == (8, [3, 5], None, b"\x03")
        (queued,) = [each for each in hive4.client.show_compact(ShowCompactRequest()).compacts if each.dbname == name]
        assert queued.state == "initiated"


def test_the_next_id_may_be_raised(hive4: Transactions) -> None:
    number = hive4.one()
    hive4.client.seed_txn_id(SeedTxnIdRequest(seedTxnId=number + 100))
    assert hive4.one() == number + 100
    with refused(MetaException, UNDECLARED):
        hive4.client.seed_txn_id(SeedTxnIdRequest(seedTxnId=number + 100))


@pytest.mark.hive4(differs="takes any number, and gives none after the last")
class TestNumbersThatLeaveNoRoom:
    """They would end the giving of ids for good: 64 bits are all there is."""

    LAST = 2**63 - 1

    def test_of_transactions(self, hive4: Transactions) -> None:
        with refused(MetaException, message="the next transaction's id can't be 9223372036854775807"):
            hive4.client.seed_txn_id(SeedTxnIdRequest(seedTxnId=self.LAST))
        assert hive4.one() < 2**53

    @pytest.mark.parametrize("number", [LAST, -1])
    def test_of_a_table(self, hive4: Transactions, name: str, number: int) -> None:
        with refused(MetaException, message=f"the write id before a table's first can't be {number}"):
            hive4.client.seed_write_id(SeedTableWriteIdsRequest(dbName=name, tableName="t", seedWriteId=number))
        first = hive4.one()
        assert allocated(hive4.client, name, [first]) == {first: 1}

    def test_of_a_replicated_table(self, hive4: Transactions, name: str) -> None:
        state = f"{name}.t:{self.LAST}:{self.LAST}::"
        request = ReplTblWriteIdStateRequest(state, "alice", "here", name, "t")
        with refused(UNDECLARED):
            hive4.client.repl_tbl_writeid_state(request)
        first = hive4.one()
        assert allocated(hive4.client, name, [first]) == {first: 1}

    def test_of_a_replicated_transaction(self, hive4: Transactions, name: str) -> None:
        hive4.begin(1, replPolicy=name, replSrcTxnIds=[7], txn_type=TxnType.REPL_CREATED)
        given = [TxnToWriteId(7, self.LAST)]
        request = AllocateTableWriteIdsRequest(name, "t", replPolicy=name, srcTxnToWriteIdList=given)
        with refused(MetaException, message="a write id of the source can't be"):
            hive4.client.allocate_table_write_ids(request)


class TestMaterializedViews:
    @pytest.fixture
    def view(self, hive4: Transactions, client: ThriftClient, db: str) -> str:
        """The name of a materialized view over `t`."""
        client.create_table(table(db))
        metadata = CreationMetadata(
            catName="hive", dbName=db, tblName="v", tablesUsed={f"{db}.t"}, validTxnList="1:1::"
        )
        client.create_table(
            table(
                db,
                "v",
                tableType="MATERIALIZED_VIEW",
                rewriteEnabled=True,
                creationMetadata=metadata,
                viewOriginalText="select 1",
                viewExpandedText="select 1",
            )
        )
        return "v"

    def snapshot(self, hive4: Transactions, db: str) -> tuple[str, str]:
        """What a reader sees now: of transactions, and with that of table `t`, as clients write it."""
        opened = hive4.client.get_open_txns_req(GetOpenTxnsRequest(excludeTxnTypes=[]))
        aborted = int.from_bytes(opened.abortedBits, "little")
        states = [(each, aborted >> place & 1) for place, each in enumerate(opened.open_txns)]
        text = ":".join(
            (
                str(opened.txn_high_water_mark),
                str(opened.min_open_txn or 2**63 - 1),
                ",".join(str(each) for each, gone in states if not gone),
                ",".join(str(each) for each, gone in states if gone),
            )
        )
        ids = valid(hive4.client, db, validTxnList=text)
        invalid = ",".join(map(str, ids.invalidWriteIds))
        return text, f"1${db}.t:{ids.writeIdHighWaterMark}:{ids.minOpenWriteId or 2**63 - 1}:{invalid}:"

    def write(self, hive4: Transactions, db: str, operation: int) -> None:
        number = hive4.one()
        allocated(hive4.client, db, [number])
        hive4.lock(number, db, "t", operation)
        hive4.commit(number)

    def test_for_rewriting(self, hive4: Transactions, client: ThriftClient, db: str, view: str) -> None:
        views = hive4.client.get_all_materialized_view_objects_for_rewriting()
        (found,) = [each for each in views if each.dbName == db]
        assert (found.tableName, found.creationMetadata.tablesUsed) == (view, {f"{db}.t"})

    def test_its_metadata_change(self, hive4: Transactions, client: ThriftClient, db: str, view: str) -> None:
        metadata = CreationMetadata(
            catName="hive", dbName=db, tblName=view, tablesUsed={f"{db}.t"}, validTxnList="9:1::"
        )
        hive4.client.update_creation_metadata("hive", db, view, metadata)
        kept = read_table(client, db, view).creationMetadata
        assert kept.validTxnList == "9:1::"
        assert abs(kept.materializationTime - 1000 * time.time()) < 120_000

    def test_changes_of_its_sources_are_counted(
        self, hive4: Transactions, client: ThriftClient, db: str, view: str
    ) -> None:
        source = read_table(client, db).id
        for counts in ((1, 2, 3), (10, 20, 30)):
            hive4.client.update_transaction_statistics(UpdateTransactionalStatsRequest(source, *counts))
        (counted,) = read_table(client, db, view).creationMetadata.sourceTables
        assert counted.table.tableName == "t"
        assert (counted.insertedCount, counted.updatedCount, counted.deletedCount) == (11, 22, 33)

    def test_whether_it_is_up_to_date(self, hive4: Transactions, db: str, view: str) -> None:
        self.write(hive4, db, INSERT)
        _, built = self.snapshot(hive4, db)
        metadata = CreationMetadata("hive", db, view, tablesUsed={f"{db}.t"}, validTxnList=built)

        def changes() -> tuple[bool, bool]:
            now, _ = self.snapshot(hive4, db)
            answer = hive4.client.get_materialization_invalidation_info(metadata, now)
            return answer.sourceTablesUpdateDeleteModified, answer.sourceTablesCompacted

        assert changes() == (False, False)
        self.write(hive4, db, INSERT)
        assert changes() == (False, False)
        self.write(hive4, db, DELETE)
        assert changes() == (True, False)

    def test_one_rebuilds_at_a_time(self, hive4: Transactions, db: str, view: str) -> None:
        one, other = hive4.begin(2)
        assert hive4.client.get_lock_materialization_rebuild(db, view, one).state == LockState.ACQUIRED
        assert hive4.client.get_lock_materialization_rebuild(db, view, other).state == LockState.NOT_ACQUIRED
        assert hive4.client.heartbeat_lock_materialization_rebuild(db, view, one) is True

    @pytest.mark.hive4(differs="keeps the lock until it is tidied up")
    def test_the_next_may_once_it_is_done(self, hive4: Transactions, db: str, view: str) -> None:
        one, other = hive4.begin(2)
        hive4.client.get_lock_materialization_rebuild(db, view, one)
        hive4.commit(one)
        assert hive4.client.get_lock_materialization_rebuild(db, view, other).state == LockState.ACQUIRED

    @pytest.mark.hive4(differs="has an internal error")
    def test_who_does_not_rebuild_is_told_so(self, hive4: Transactions, db: str, view: str) -> None:
        assert hive4.client.heartbeat_lock_materialization_rebuild(db, view, hive4.one()) is False


def test_dropped_partitions_leave_no_trace(hive4: Transactions, client: ThriftClient, db: str) -> None:
    client.create_table(table(db, keys=("k",)))
    client.add_partition(partition(db, "t", "1"))
    number = hive4.one()
    hive4.lock(number, db, "t", UPDATE, partition="k=1")
    client.drop_partition(db, "t", ["1"], True)
    other = hive4.one()
    hive4.lock(other, db, "t", UPDATE, partition="k=1")
    hive4.commit(other)
    hive4.commit(number)
