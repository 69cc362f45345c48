"""Texts, lists and tokens that ask for more than they look like get an answer that says so, and soon."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    CreationMetadata,
    GetProjectionsSpec,
    GetValidWriteIdsRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from lake.protocol.lake import (
    BeginInstantRequest,
    CompleteInstantRequest,
    DataFile,
    ReadEventsRequest,
    SnapshotRequest,
    TableReference,
)
from metastore.server.threads import ThreadPool
from metastore.services.access.privileges import MAX_AT_ONCE
from metastore.services.model.client_texts import MAX_GROUPS
from metastore.services.partition.projection import Projection
from metastore.services.transactions import write_ids as valid_ids
from metastore.services.transactions.compactions import CompactionService
from metastore.services.transactions.transactions import TransactionService
from metastore.services.transactions.write_ids import MAX_TABLES, WriteIdService
from metastore.store import Database, Unstorable
from metastore.store.access import privileges as privileges_store
from metastore.store.access.privileges import Principal
from metastore.store.engine.names import TableName
from metastore.store.transactions import write_ids
from metastore.store.transactions.write_ids import WriteId
from tests.support import builders
from tests.support.server import MetastoreServer

DB = "hostile_texts"
TABLE = HiveObjectRef(objectType=HiveObjectType.TABLE, dbName=DB, objectName="t")


@pytest.fixture(scope="module")
def server(metastore_server: MetastoreServer) -> Iterator[MetastoreServer]:
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        client.create_database(builders.database(DB))
        client.create_table(builders.external_table(DB, "t"))
        yield metastore_server
        client.drop_database(DB, True, True)


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        yield client


def committed(client: ThriftClient, name: str) -> SnapshotRequest:
    """Makes a lake table of ten file groups; what asks for its snapshot in pages."""
    client.create_table(builders.external_table(DB, name, parameters={"table_type": "hudi"}))
    table = TableReference(database=DB, table=name)
    begun = client.lake_begin_instant(BeginInstantRequest(table, "commit", state="inflight"))
    files = [
        DataFile(partition="", fileGroup=f"g{n}", slice=begun.timestamp, path=f"g{n}.parquet", kind="base", size=1)
        for n in range(10)
    ]
    request = CompleteInstantRequest(table=table, timestamp=begun.timestamp, action="commit", added=files)
    client.lake_complete_instants([request])
    return SnapshotRequest(table=table, limit=4)


def test_a_page_of_a_table_that_was_made_again(client: ThriftClient) -> None:
    """Half of the one and half of the other would look like a whole."""
    request = committed(client, "pages")
    first = client.lake_get_snapshot(request)
    second = client.lake_get_snapshot(request.replace(after=first.nextPage))
    assert [each.fileGroup for each in second.files] == ["g4", "g5", "g6", "g7"]
    client.drop_table(DB, "pages", True)
    committed(client, "pages")
    with pytest.raises(InvalidOperationException, match="made again since that page"):
        client.lake_get_snapshot(request.replace(after=first.nextPage))


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("value", ["\ud800", True, None, [], 1 << 70, "x" * 100_000])
def test_a_page_that_nobody_was_given(client: ThriftClient, place: int, value: object) -> None:
    if not client.get_tables(DB, "paged"):
        committed(client, "paged")
    request = SnapshotRequest(table=TableReference(database=DB, table="paged"), limit=4)
    page = client.lake_get_snapshot(request).nextPage
    assert page is not None
    given = json.loads(page)
    given[place] = value
    with pytest.raises(InvalidOperationException):
        client.lake_get_snapshot(request.replace(after=json.dumps(given)))


@pytest.mark.parametrize("text", ['{"validTxnList": 5}', '{"validTxnList": ["a"]}', '{"validTxnList": null}'])
def test_a_snapshot_of_sources_that_is_no_text(client: ThriftClient, text: str) -> None:
    metadata = CreationMetadata(catName="hive", dbName=DB, tblName="t", tablesUsed={f"{DB}.t"}, validTxnList=text)
    with pytest.raises(MetaException, match="no snapshot of a materialized view's sources"):
        client.get_materialization_invalidation_info(metadata, "1:1::")


def test_write_ids_of_many_tables(client: ThriftClient) -> None:
    names = [f"{DB}.t{number}" for number in range(MAX_TABLES + 1)]
    with pytest.raises(MetaException, match="1000 are allowed"):
        client.get_valid_write_ids(GetValidWriteIdsRequest(fullTableNames=names, validTxnList="1:1::"))
    asked = GetValidWriteIdsRequest(fullTableNames=names[:2] * 100_000, validTxnList="1:1::")
    assert [each.fullTableName for each in client.get_valid_write_ids(asked).tblValidWriteIds or ()] == names[:2]


def test_one_table_spelled_in_many_ways(upgraded_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read once, and all that the answer would list is counted."""
    database = Database(upgraded_url)
    name = TableName("hive", "d", "t")
    with database.write() as tx:
        write_ids.begin(tx, name, 21)
        write_ids.add(tx, name, [WriteId(each, each) for each in range(1, 21)])
    service = WriteIdService(database, cast(TransactionService, None), cast(CompactionService, None))
    reads: list[TableName] = []

    def counted(tx: Any, name: TableName, write_id: int) -> list[WriteId]:
        reads.append(name)
        return up_to(tx, name, write_id)

    up_to = write_ids.up_to
    monkeypatch.setattr(write_ids, "up_to", counted)
    # Of the transactions 1 to 20, those from 11 on were open.
    request = GetValidWriteIdsRequest(
        fullTableNames=["d.t", "D.t", "d.T", "D.T", "d.t"], validTxnList=f"20:11:{','.join(map(str, range(11, 21)))}:"
    )
    assert [len(each.invalidWriteIds or ()) for each in service.valid(request)] == [10] * 4
    assert reads == [name]
    monkeypatch.setattr(valid_ids, "MAX_INVALID", 39)
    with pytest.raises(MetaException, match="open or aborted: ask for fewer tables"):
        service.valid(request)
    database.close()


@pytest.mark.long
def test_groups_of_one_who_asks(client: ThriftClient) -> None:
    assert client.get_privilege_set(TABLE, "u", [f"g{number}" for number in range(MAX_GROUPS)])
    with pytest.raises(MetaException, match="4097 groups"):
        client.get_privilege_set(TABLE, "u", [f"g{number}" for number in range(MAX_GROUPS + 1)])


def test_a_statement_that_is_too_much_for_the_database(upgraded_url: str) -> None:
    database = Database(upgraded_url)
    principals = [Principal(PrincipalType.GROUP, f"g{number}") for number in range(100_000)]
    with pytest.raises(Unstorable, match="send fewer names"), database.read() as tx:
        privileges_store.find(tx, principals=principals)
    database.close()


def test_many_privileges_at_once(client: ThriftClient) -> None:
    def grant(principal: str, privilege: str) -> HiveObjectPrivilege:
        info = PrivilegeGrantInfo(privilege, 0, "g", PrincipalType.USER, False)
        return HiveObjectPrivilege(TABLE, principal, PrincipalType.USER, info)

    for bag in ([grant("u", ",".join(["SELECT"] * (MAX_AT_ONCE + 1)))], [grant("u", "")] * (MAX_AT_ONCE + 1)):
        with pytest.raises(MetaException, match="10000 at a time"):
            client.grant_privileges(PrivilegeBag(bag))


def test_a_field_that_is_asked_for_often() -> None:
    began = time.process_time()
    Projection(GetProjectionsSpec(fieldList=["s"] * 500_000))
    assert time.process_time() - began < 3


def test_a_long_pattern_of_timestamps(client: ThriftClient) -> None:
    parameters = {
        "partition.commit.mode": "event-time",
        "partition.time-extractor.timestamp-pattern": "$dt" + " " * 1_000_000,
    }
    with pytest.raises(InvalidObjectException, match="at most 1024 characters"):
        client.create_table(builders.external_table(DB, "pattern", keys=("dt",), parameters=parameters))


def test_a_long_event_does_not_stop_who_reads(client: ThriftClient) -> None:
    last = client.lake_read_events(ReadEventsRequest(after=0, limit=1)).last
    client.create_table(builders.external_table(DB, "long", parameters={"k": "v" * 17_000_000}))
    client.drop_table(DB, "long", True)
    found = client.lake_read_events(ReadEventsRequest(after=last, tables=[f"{DB}.long"])).events
    assert found and len(found[0].payload or "") > 17_000_000


def test_those_who_wait_for_events_do_not_hold_others_up() -> None:
    pool = ThreadPool(2)
    begun, go_on, done = threading.Semaphore(0), threading.Event(), threading.Event()
    order: list[str] = []

    def patient() -> None:
        begun.release()
        go_on.wait(30)
        order.append("patient")

    for _ in range(1_000):
        pool.submit_patient(patient)
    assert begun.acquire(timeout=30)
    assert pool.crowded
    answered = threading.Event()
    pool.submit(answered.set)
    assert answered.wait(30)  # by the other thread, though all others still wait
    assert not begun.acquire(blocking=False)
    go_on.set()
    for _ in range(999):
        assert begun.acquire(timeout=30)
    pool.submit_patient(done.set)
    assert done.wait(30)
    assert order == ["patient"] * 1_000
