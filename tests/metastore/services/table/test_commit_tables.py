"""Several tables committed in one transaction, and Iceberg's pointer that nobody overwrites unseen."""

from collections.abc import Iterator
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    EnvironmentContext,
    InvalidObjectException,
    InvalidOperationException,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    MetaException,
    NoSuchObjectException,
    NotificationEventRequest,
    Table,
    UnlockRequest,
)
from lake.protocol.lake import CommitTablesRequest, TableCommit, TablesNotCommitted
from tests.support import builders
from tests.support.server import MetastoreServer

MODIFIED = "The table has been modified. The parameter value for key 'metadata_location' is"


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        yield client


@pytest.fixture
def db(client: ThriftClient, request: pytest.FixtureRequest) -> str:
    name = f"commits_{abs(hash(request.node.name)) % 10**9}"
    client.create_database(builders.database(name))
    return name


def iceberg(db: str, name: str, at: str, previous: str | None = None, **more: str) -> Table:
    parameters = {"table_type": "ICEBERG", "metadata_location": at, **more}
    if previous is not None:
        parameters["previous_metadata_location"] = previous
    return builders.external_table(db, name, parameters=parameters)


def commit(client: ThriftClient, *commits: TableCommit, **named: Any) -> None:
    client.lake_commit_tables(CommitTablesRequest(list(commits), **named))


def location(client: ThriftClient, db: str, name: str) -> str:
    found: str = client.get_table(db, name).parameters["metadata_location"]
    return found


def changed(client: ThriftClient, db: str, name: str, at: str, **more: str) -> Table:
    """A table as it is, with new metadata."""
    stored = client.get_table(db, name)
    return stored.replace(parameters={**stored.parameters, "metadata_location": at, **more})


def test_all_or_none(client: ThriftClient, db: str) -> None:
    commit(client, TableCommit(iceberg(db, "a", "a0")), TableCommit(iceberg(db, "b", "b0")))
    last = client.get_current_notificationEventId().eventId
    commit(
        client,
        TableCommit(changed(client, db, "a", "a1"), "a0"),
        TableCommit(changed(client, db, "b", "b1"), "b0"),
        TableCommit(iceberg(db, "c", "c0")),
    )
    assert [location(client, db, name) for name in "abc"] == ["a1", "b1", "c0"]
    events = client.get_next_notification(NotificationEventRequest(last)).events
    told = sorted((each.eventType, each.tableName) for each in events if each.dbName == db)
    assert told == [("ALTER_TABLE", "a"), ("ALTER_TABLE", "b"), ("CREATE_TABLE", "c")]

    refusals: list[tuple[str, list[TableCommit]]] = [
        (
            "changed",
            [TableCommit(changed(client, db, "a", "a2"), "a1"), TableCommit(changed(client, db, "b", "b2"), "b0")],
        ),
        ("exists", [TableCommit(changed(client, db, "a", "a2"), "a1"), TableCommit(iceberg(db, "b", "b2"))]),
        ("missing", [TableCommit(changed(client, db, "a", "a2"), "a1"), TableCommit(iceberg(db, "d", "d1"), "d0")]),
    ]
    for reason, commits in refusals:
        for check_only in (True, False):
            with pytest.raises(TablesNotCommitted) as refused:
                commit(client, *commits, checkOnly=check_only)
            assert (refused.value.reason, refused.value.index) == (reason, 1)
        assert [location(client, db, name) for name in "abc"] == ["a1", "b1", "c0"]
    with pytest.raises(InvalidOperationException, match="named twice"):
        commit(client, *(TableCommit(changed(client, db, "a", "a2"), "a1") for _ in range(2)))
    with pytest.raises(InvalidObjectException):
        commit(client, TableCommit(changed(client, db, "a", "a2"), "a1"), TableCommit(iceberg("nowhere", "t", "t0")))
    assert location(client, db, "a") == "a1"


def test_a_check_changes_nothing(client: ThriftClient, db: str) -> None:
    commit(client, TableCommit(iceberg(db, "a", "a0")), checkOnly=True)
    with pytest.raises(NoSuchObjectException):
        client.get_table(db, "a")
    commit(client, TableCommit(iceberg(db, "a", "a0")))
    commit(client, TableCommit(changed(client, db, "a", "a1"), "a0"), checkOnly=True)
    assert location(client, db, "a") == "a0"


@pytest.mark.parametrize("check_only", [True, False])
def test_a_locked_table(client: ThriftClient, db: str, check_only: bool) -> None:
    commit(client, TableCommit(iceberg(db, "a", "a0")))
    change = TableCommit(changed(client, db, "a", "a1"), "a0")
    shared = LockComponent(LockType.SHARED_READ, LockLevel.TABLE, db, "a")
    reader = client.lock(LockRequest([shared], user="u", hostname="h"))
    commit(client, change, checkOnly=True)
    client.unlock(UnlockRequest(reader.lockid))
    for component in (
        LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, db, "a"),
        LockComponent(LockType.EXCLUSIVE, LockLevel.DB, db),
    ):
        held = client.lock(LockRequest([component], user="u", hostname="h"))
        with pytest.raises(TablesNotCommitted) as refused:
            commit(client, change, checkOnly=check_only)
        assert refused.value.reason == "locked"
        client.unlock(UnlockRequest(held.lockid))
    commit(client, change)
    assert location(client, db, "a") == "a1"


def test_a_commit_from_older_metadata_is_refused(client: ThriftClient, db: str) -> None:
    """As HiveCatalog with locks commits: without an expectation, and with the metadata that it began with."""
    client.create_table(iceberg(db, "t", "m0"))
    old = client.get_table(db, "t")
    commit(client, TableCommit(changed(client, db, "t", "m1", previous_metadata_location="m0"), "m0"))
    for stale in ("m0", "other"):
        at = {"metadata_location": "m2", "previous_metadata_location": stale}
        with pytest.raises(MetaException, match=MODIFIED):
            client.alter_table(db, "t", old.replace(parameters={**old.parameters, **at}))
    assert location(client, db, "t") == "m1"
    client.alter_table(db, "t", changed(client, db, "t", "m2", previous_metadata_location="m1"))
    client.alter_table(db, "t", changed(client, db, "t", "m2", mine="1"))
    assert location(client, db, "t") == "m2"


def test_a_pointer_set_by_hand(client: ThriftClient, db: str) -> None:
    """From the latest state, with the metadata before as it is stored, or without."""
    client.create_table(iceberg(db, "t", "m0"))
    client.alter_table(db, "t", changed(client, db, "t", "m1", previous_metadata_location="m0"))
    client.alter_table(db, "t", changed(client, db, "t", "m0"))
    assert location(client, db, "t") == "m0"
    stored = client.get_table(db, "t")
    del stored.parameters["previous_metadata_location"]
    stored.parameters["metadata_location"] = "m1"
    client.alter_table(db, "t", stored)
    assert location(client, db, "t") == "m1"


def test_an_old_read_that_comes_back_is_refused(client: ThriftClient, db: str) -> None:
    """An engine that sets a property sends back all parameters, with the metadata that it read."""
    client.create_table(iceberg(db, "t", "m0"))
    client.alter_table(db, "t", changed(client, db, "t", "m1", previous_metadata_location="m0"))
    old = client.get_table(db, "t")
    client.alter_table(db, "t", changed(client, db, "t", "m2", previous_metadata_location="m1"))
    old.parameters["mine"] = "1"
    with pytest.raises(MetaException, match=MODIFIED):
        client.alter_table_with_environment_context(db, "t", old, EnvironmentContext({}))
    client.create_table(builders.external_table(db, "h", parameters={"metadata_location": "a"}))
    client.alter_table(db, "h", changed(client, db, "h", "b", previous_metadata_location="x"))  # no table of Iceberg's


def test_views(client: ThriftClient, db: str) -> None:
    view = builders.view(db, "v", parameters={"table_type": "ICEBERG-VIEW", "metadata_location": "v0"})
    commit(client, TableCommit(view), TableCommit(iceberg(db, "t", "t0")))
    assert client.get_table(db, "v").tableType == "VIRTUAL_VIEW"
    commit(client, TableCommit(changed(client, db, "v", "v1"), "v0"))
    assert location(client, db, "v") == "v1"
