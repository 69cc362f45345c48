"""Engines get an error where they are about to read a keyed table that was never published, not an empty table."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    DataOperationType,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    NoSuchObjectException,
    PartitionsRequest,
)
from lake.protocol.lake import ReopenPartitionsRequest
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.publishing import publish
from tests.lake.tables.keyed.histories import make_table
from tests.support.server import MetastoreServer

NEVER = "was never published"
COLUMNS = {"id": "bigint", "v": "int", "part": "string"}
Read = Callable[[ThriftClient, str, str], Any]

READS: dict[str, Read] = {
    "get_partitions": lambda c, db, t: c.get_partitions(db, t, -1),
    "get_partitions_with_auth": lambda c, db, t: c.get_partitions_with_auth(db, t, -1, "u", []),
    "get_partitions_req": lambda c, db, t: c.get_partitions_req(PartitionsRequest(dbName=db, tblName=t)).partitions,
    "get_partitions_by_filter": lambda c, db, t: c.get_partitions_by_filter(db, t, "part = 'x'", -1),
    "get_partitions_by_filter_req": lambda c, db, t: c.get_partitions_by_filter_req(
        GetPartitionsByFilterRequest(dbName=db, tblName=t, filter="part = 'x'")
    ),
    "get_partitions_by_names": lambda c, db, t: c.get_partitions_by_names(db, t, ["part=x"]),
    "get_partitions_by_names_req": lambda c, db, t: (
        c.get_partitions_by_names_req(GetPartitionsByNamesRequest(db_name=db, tbl_name=t, names=["part=x"])).partitions
    ),
}
"""What engines send before they list the directories of partitions."""

DEFINITIONS: dict[str, Read] = {
    "get_table": lambda c, db, t: [c.get_table(db, t)],
    "get_partition_names": lambda c, db, t: c.get_partition_names(db, t, -1),
    "get_partitions_ps_with_auth": lambda c, db, t: c.get_partitions_ps_with_auth(db, t, ["x"], -1, "u", []),
    "get_partition_by_name": lambda c, db, t: [c.get_partition_by_name(db, t, "part=x")],
}
"""What engines send to change definitions, too."""


@pytest.fixture
def lakes(metastore_server: MetastoreServer) -> Iterator[LakeClient]:
    with LakeClient(metastore_server.uri) as lakes:
        yield lakes


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        yield client


def upsert(lake: LakeTable, part: str | None = "x") -> None:
    columns = {"id": [1], "v": pa.array([1], pa.int32()), **({} if part is None else {"part": [part]})}
    lake.upsert(pa.table(columns))


def names(lake: LakeTable) -> tuple[str, str]:
    return lake.reference.database or "", lake.reference.table or ""


def test_a_table_that_was_never_published(lakes: LakeClient, client: ThriftClient) -> None:
    lake = make_table(lakes, {"primary-key": "id,part"}, COLUMNS)
    table = names(lake)
    assert client.get_partitions(*table, -1) == []
    upsert(lake)
    for read in READS.values():
        with pytest.raises((MetaException, NoSuchObjectException), match=NEVER):
            read(client, *table)
    for read in DEFINITIONS.values():
        assert len(read(client, *table)) == 1
    publish(lake)
    upsert(lake, "y")  # not published, as in any table between two publishes
    for read in READS.values():
        assert len(read(client, *table)) > 0


def test_uncommitted_partitions(lakes: LakeClient, client: ThriftClient) -> None:
    """To who doesn't see them the table is empty, and that is right."""
    lake = make_table(lakes, {"primary-key": "id,part"}, COLUMNS)
    database, table = names(lake)
    upsert(lake)
    client.lake_reopen_partitions(ReopenPartitionsRequest(lake.reference, ["part=x"]))
    assert client.get_partitions(database, table, -1) == []
    with pytest.raises(MetaException, match=NEVER):
        client.get_partitions(database, f"{table}@includeuncommit", -1)


def lock(client: ThriftClient, database: str, table: str) -> Any:
    component = LockComponent(LockType.SHARED_READ, LockLevel.TABLE, database, table)
    component.operationType = DataOperationType.SELECT
    return client.lock(LockRequest([component], user="u", hostname="h"))


@pytest.mark.parametrize("partitioned", [True, False])
def test_hive_s_lock(lakes: LakeClient, client: ThriftClient, partitioned: bool) -> None:
    columns = COLUMNS if partitioned else {"id": "bigint", "v": "int"}
    key = {"primary-key": "id,part" if partitioned else "id"}
    lake = make_table(lakes, key, columns, partitioned)
    assert lock(client, *names(lake)).state == LockState.ACQUIRED
    upsert(lake, "x" if partitioned else None)
    with pytest.raises(TApplicationException, match=NEVER):
        lock(client, *names(lake))
    publish(lake)
    assert lock(client, *names(lake)).state == LockState.ACQUIRED


def test_the_setting(tmp_path: Path) -> None:
    with (
        MetastoreServer(tmp_path / "data", "--no-refuse-unpublished-reads") as server,
        LakeClient(server.uri) as lakes,
        ThriftClient(server.host, server.port) as client,
    ):
        lake = make_table(lakes, {"primary-key": "id,part"}, COLUMNS)
        upsert(lake)
        for read in READS.values():
            assert len(read(client, *names(lake))) == 1
        assert lock(client, *names(lake)).state == LockState.ACQUIRED
