"""Locks through Hive's Java client and its builders, as Hive's lock manager takes them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lake.protocol.hive import LockResponse, LockState, LockType, NoSuchLockException, ShowLocksRequest
from tests.hive_client.conftest import HiveClient

Ask = Callable[..., LockResponse]


@pytest.fixture
def ask(client: HiveClient, db: str) -> Iterator[Ask]:
    """Asks for a lock of a kind on a table, or a partition of it; it is given back when the test ends."""
    asked: list[int] = []

    def locked(kind: str, table: str | None = None, partition: str | None = None) -> LockResponse:
        metastore = client.jvm.org.apache.hadoop.hive.metastore
        component = metastore.LockComponentBuilder().setDbName(db)
        component.setOperationType(client.jvm.org.apache.hadoop.hive.metastore.api.DataOperationType.UNSET)
        getattr(component, f"set{kind}")()
        if table is not None:
            component.setTableName(table)
        if partition is not None:
            component.setPartitionName(partition)
        request = metastore.LockRequestBuilder("query 1").setUser("me").addLockComponent(component.build()).build()
        answer = client.lock(request)
        asked.append(answer.lockid)
        return answer

    yield locked
    for lock in reversed(asked):
        client.unlock(lock)


def test_readers_share(client: HiveClient, ask: Ask) -> None:
    assert ask("Shared", "t").state == LockState.ACQUIRED
    assert ask("Shared", "t").state == LockState.ACQUIRED
    assert ask("SemiShared", "t").state == LockState.ACQUIRED
    assert ask("SemiShared", "t").state == LockState.WAITING


def test_wait_for_an_exclusive_one(client: HiveClient, ask: Ask) -> None:
    first = ask("Exclusive", "t")
    assert first.state == LockState.ACQUIRED
    second = ask("Shared", "t", "ds=a")
    assert second.state == LockState.WAITING
    assert client.checkLock(second.lockid).state == LockState.WAITING
    client.heartbeat(0, first.lockid)
    client.unlock(first.lockid)
    assert client.checkLock(second.lockid).state == LockState.ACQUIRED


def test_what_is_gone(client: HiveClient, ask: Ask) -> None:
    lock = ask("Shared", "t").lockid
    client.unlock(lock)
    with pytest.raises(NoSuchLockException):
        client.checkLock(lock)
    with pytest.raises(NoSuchLockException):
        client.heartbeat(0, lock)


def test_show(client: HiveClient, db: str, ask: Ask) -> None:
    held, waiting = ask("Exclusive", "t", "ds=a"), ask("Exclusive", "t", "ds=a")
    ask("Shared", "u")

    def shown(**conditions: Any) -> dict[int, Any]:
        return {each.lockid: each for each in client.showLocks(ShowLocksRequest(**conditions)).locks}

    found = shown(dbname=db, tablename="t")
    assert found.keys() == {held.lockid, waiting.lockid}
    one = found[held.lockid]
    assert (one.dbname, one.tablename, one.partname) == (db, "t", "ds=a")
    assert (one.state, one.type, one.user) == (LockState.ACQUIRED, LockType.EXCLUSIVE, "me")
    assert one.agentInfo == "query 1"
    assert found[waiting.lockid].state == LockState.WAITING
    assert len(shown(dbname=db)) == 3
