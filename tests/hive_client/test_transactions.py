"""Transactions through Hive's Java client, as its transaction manager runs them."""

from collections.abc import Callable
from typing import Any

import pytest

from lake.protocol.hive import DataOperationType, LockState, NoSuchTxnException, TxnAbortedException, TxnState
from tests.hive_client.conftest import HiveClient


def locked(client: HiveClient, number: int, db: str, name: str, operation: str) -> int:
    """Takes the lock of a write in a transaction; its state."""
    metastore = client.jvm.org.apache.hadoop.hive.metastore
    component = metastore.LockComponentBuilder().setDbName(db).setTableName(name).setShared()
    component.setOperationType(getattr(metastore.api.DataOperationType, operation)).setIsAcid(True)
    request = metastore.LockRequestBuilder("query 1").setUser("me").setTransactionId(number)
    return client.lock(request.addLockComponent(component.build()).build()).state


def test_open_and_commit(client: HiveClient) -> None:
    number = client.openTxn("me")
    shown = {each.id: each for each in client.showTxns().open_txns}
    assert (shown[number].state, shown[number].user) == (TxnState.OPEN, "me")
    client.heartbeat(number, 0)
    client.commitTxn(number)
    assert number not in {each.id for each in client.showTxns().open_txns}


def test_valid_transactions(client: HiveClient) -> None:
    """The client reads the list of open transactions, of which it gets both forms, into a ValidTxnList."""
    first, second, third, own = (client.openTxn("me") for _ in range(4))
    client.commitTxn(first)
    client.rollbackTxn(second)
    seen = client.getValidTxns()
    assert seen.getHighWatermark() >= own
    assert [seen.isTxnValid(each) for each in (first, second, third, own)] == [True, False, False, False]
    assert client.getValidTxns(own).isTxnValid(own)
    text = client.getValidTxns(own).writeToString()
    again = client.jvm.org.apache.hadoop.hive.common.ValidReadTxnList(text)
    assert [again.isTxnValid(each) for each in (first, second, third, own)] == [True, False, False, True]
    client.commitTxn(third)
    client.commitTxn(own)


def test_a_conflict(connect: Callable[[], HiveClient], db: str) -> None:
    one, other = connect(), connect()
    first, second = one.openTxn("me"), other.openTxn("you")
    assert locked(one, first, db, "t", "UPDATE") == LockState.ACQUIRED
    assert locked(other, second, db, "t", "UPDATE") == LockState.ACQUIRED
    one.commitTxn(first)
    with pytest.raises(TxnAbortedException, match=f"write conflict on {db}/t committed by"):
        other.commitTxn(second)
    with pytest.raises(TxnAbortedException):
        other.heartbeat(second, 0)


def test_partitions_found_out_later(client: HiveClient, db: str) -> None:
    numbers = [client.openTxn("me") for _ in range(3)]
    for number, part in zip(numbers, ("k=1", "k=2", "k=1"), strict=True):
        update: Any = client.jvm.org.apache.hadoop.hive.metastore.api.DataOperationType.findByValue(
            DataOperationType.UPDATE
        )
        client.addDynamicPartitions(number, db, "t", [part], update)
    client.commitTxn(numbers[0])
    client.commitTxn(numbers[1])
    with pytest.raises(TxnAbortedException, match=f"{db}/t/k=1"):
        client.commitTxn(numbers[2])


def test_several_at_once(client: HiveClient) -> None:
    numbers = client.openTxns("me", 4).txn_ids
    client.rollbackTxn(numbers[1])
    client.commitTxn(numbers[2])
    answer = client.heartbeatTxnRange(numbers[0], numbers[3])
    assert (answer.aborted, answer.nosuch) == ({numbers[1]}, {numbers[2]})
    client.rollbackTxn(numbers[0])
    client.rollbackTxn(numbers[3])
    with pytest.raises(TxnAbortedException):
        client.commitTxn(numbers[3])


def test_what_never_was(client: HiveClient) -> None:
    with pytest.raises(NoSuchTxnException, match="No such transaction txnid:"):
        client.commitTxn(2**62)


def test_compactions(client: HiveClient, db: str) -> None:
    kind = client.jvm.org.apache.hadoop.hive.metastore.api.CompactionType.MAJOR
    first = client.compact2(db, "t", None, kind, {"a": "b"})
    again = client.compact2(db, "t", None, kind, {})
    assert (first.state, first.accepted) == ("initiated", True)
    assert (again.id, again.state, again.accepted) == (first.id, "initiated", False)
    (shown,) = [each for each in client.showCompactions().compacts if each.dbname == db]
    assert (shown.id, shown.tablename, shown.state) == (first.id, "t", "initiated")
