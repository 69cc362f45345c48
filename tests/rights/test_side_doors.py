"""Ways around a right: other spellings of a name, fields that are easily forgotten, calls of other protocols."""

import json
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPartitionsRequest,
    AllocateTableWriteIdsRequest,
    Catalog,
    CreateCatalogRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    InvalidOperationException,
    MetaException,
    OpenTxnRequest,
    Order,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
    SkewedInfo,
)
from lake.protocol.hudi import MetaserverException, MetaserverStorageException, TAction, THoodieInstant, TState
from lake.protocol.lake import (
    BeginInstantRequest,
    CompleteInstantRequest,
    DataFile,
    ListPartitionsRequest,
    TableReference,
)
from tests.rights.world import grant
from tests.support import builders
from tests.support.expect import refused


def test_a_partition_names_another_catalog_than_the_call(user: ThriftClient, root: ThriftClient, db: str) -> None:
    """The right counts where the service looks: otherwise its answer tells which hidden tables there are."""
    other = f"cat_{db}"
    root.create_catalog(CreateCatalogRequest(Catalog(other, None, root.get_database(db).locationUri + f"/{other}")))
    root.create_database(builders.database(f"hidden_{db}"))
    root.create_table(builders.table(f"hidden_{db}", "there"))
    root.create_database(builders.database(f"hidden_{db}", catalogName=other))
    for name in ("there", "missing"):
        root.create_table(builders.table(f"hidden_{db}", name, catName=other, owner=f"u_{db}"))
    for privilege in ("SELECT", "INSERT", "UPDATE"):
        grant(root, f"u_{db}", privilege, db, "t")
    value = user.get_partition(db, "t", ["1"]).replace(dbName=f"hidden_{db}", catName=other)
    said = []
    for name in ("there", "missing"):
        with pytest.raises(TException) as error:
            user.alter_partition(db, "t", value.replace(tableName=name))
        said.append(str(error.value).replace(name, ""))
    assert said[0] == said[1]
    assert "not found" in said[0] or "Permission denied" in said[0]


class TestDecoratedNamesInReferences:
    """They show uncommitted partitions, as decorated names in arguments of their own do."""

    def test_of_our_own_calls(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "SELECT", db, "t")
        wanted = ListPartitionsRequest(TableReference(database=db, table=" T@includeUncommit"))
        with refused(MetaException, message=f"does not have [READ_UNCOMMITTED] privilege on [{db}.t]"):
            user.lake_list_partitions(wanted)
        with refused(MetaException, message="READ_UNCOMMITTED"):
            user.lake_get_watermark(wanted.table)
        grant(root, f"u_{db}", "READ_UNCOMMITTED", db, "t")
        assert len(user.lake_list_partitions(wanted).partitions) == 2

    def test_of_privileges(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        """The privileges of an uncommitted partition are read as the partition is."""
        grant(root, f"u_{db}", "SELECT", db, "t")
        of_partition = HiveObjectRef(HiveObjectType.PARTITION, db, "t", ["2"])
        info = PrivilegeGrantInfo("DROP", 0, "root", PrincipalType.USER, False)
        bag = PrivilegeBag([HiveObjectPrivilege(of_partition, f"u_{db}", PrincipalType.USER, info)])
        root.grant_privileges(bag)
        ref = of_partition.replace(objectName="t@includeuncommit")
        assert user.list_privileges(f"u_{db}", PrincipalType.USER, ref) == []
        assert user.get_privilege_set(ref, f"u_{db}", []).userPrivileges is None
        grant(root, f"u_{db}", "READ_UNCOMMITTED", db, "t")
        assert len(user.list_privileges(f"u_{db}", PrincipalType.USER, ref)) == 1


class TestAlteredTables:
    """Who writes rows may alter the table's statistics, and nothing else."""

    @pytest.mark.parametrize(
        "changed",
        [
            {"location": "somewhere"},
            {"bucketCols": ["id"]},
            {"numBuckets": 7},
            {"sortCols": [Order("id", 1)]},
            {"compressed": True},
            {"storedAsSubDirectories": True},
            {"skewedInfo": SkewedInfo(["id"], [["1"]], {})},
        ],
        ids=lambda changed: next(iter(changed)),
    )
    def test_storage(self, user: ThriftClient, root: ThriftClient, db: str, changed: dict[str, Any]) -> None:
        grant(root, f"u_{db}", "INSERT", db, "t")
        grant(root, f"u_{db}", "LOCATION", db, "t")
        table = user.get_table(db, "t")
        if "location" in changed:
            changed = {"location": f"{table.sd.location}_elsewhere"}
        with refused(InvalidOperationException, MetaException, message="does not have [ALTER]"):
            user.alter_table(db, "t", table.replace(sd=table.sd.replace(**changed)))
        assert root.get_table(db, "t").sd == table.sd
        same = table.sd.replace(location=table.sd.location.replace("file:/", "file:///") + "/", bucketCols=None)
        user.alter_table(db, "t", table.replace(sd=same, parameters={**table.parameters, "numRows": "7"}))

    def test_a_table_keeps_its_owner_if_none_is_named(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        """Not even the type of the owner changes: a role may be called like a user."""
        root.create_role(Role(f"r_{db}", 0, "root"))
        root.grant_role(f"r_{db}", f"u_{db}", PrincipalType.USER, "root", PrincipalType.USER, False)
        root.create_table(builders.table(db, "n", owner=f"r_{db}", parameters={}))
        grant(root, f"u_{db}", "ALTER", db, "n")
        table = user.get_table(db, "n")
        for kind in (None, PrincipalType.ROLE):
            user.alter_table(db, "n", table.replace(owner=None, ownerType=kind, parameters={"a": str(kind)}))
            found = root.get_table(db, "n")
            assert (found.owner, found.ownerType) == (f"r_{db}", PrincipalType.USER)


STAMP = "20260101000000001"


def complete(root: ThriftClient, db: str, action: str) -> TableReference:
    table = TableReference(database=db, table="t")
    root.lake_begin_instant(BeginInstantRequest(table, action, STAMP, "inflight"))
    root.lake_complete_instants([CompleteInstantRequest(table, STAMP, action)])
    return table


class TestInstants:
    """What an instant does decides about its right, by whatever call."""

    def test_savepoints_are_deleted_by_those_who_make_them(
        self, user: ThriftClient, root: ThriftClient, db: str
    ) -> None:
        grant(root, f"u_{db}", "INSERT", db, "t")
        complete(root, db, "commit")
        table = complete(root, db, "savepoint")
        with refused(MetaException, message="does not have [ROLLBACK]"):
            user.lake_delete_instant(table, STAMP, "savepoint")
        with refused(MetaserverStorageException, message="does not have [ROLLBACK]"):
            user.deleteInstant(db, "t", THoodieInstant(STAMP, TAction.SAVEPOINT, TState.COMPLETED))
        grant(root, f"u_{db}", "ROLLBACK", db, "t")
        user.lake_delete_instant(table, STAMP, "savepoint")

    @pytest.mark.parametrize(
        ("action", "right"),
        [
            (TAction.CLEAN, "CLEAN"),
            (TAction.ROLLBACK, "ROLLBACK"),
            (TAction.RESTORE, "ROLLBACK"),
            (TAction.SAVEPOINT, "ROLLBACK"),
        ],
    )
    def test_by_hudis_protocol(
        self, user: ThriftClient, root: ThriftClient, db: str, action: TAction, right: str
    ) -> None:
        grant(root, f"u_{db}", "INSERT", db, "t")
        complete(root, db, "commit")
        old = THoodieInstant(STAMP, action, TState.INFLIGHT)
        with refused(MetaserverStorageException, message=f"does not have [{right}]"):
            user.createNewInstantWithTime(db, "t", old, b"")
        with refused(MetaserverStorageException, message=f"does not have [{right}]"):
            user.transitionInstantState(db, "t", old, old.replace(state=TState.COMPLETED), b"")

    def test_other_columns_by_hudis_protocol(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "INSERT", db, "t")
        old = THoodieInstant(STAMP, TAction.COMMIT, TState.INFLIGHT)
        user.createNewInstantWithTime(db, "t", old, b"")
        fields = [{"name": "other", "type": "long"}]
        schema = json.dumps({"type": "record", "name": "r", "fields": fields})
        content = json.dumps({"partitionToWriteStats": {}, "extraMetadata": {"schema": schema}}).encode()
        with refused(MetaserverStorageException, MetaserverException, message="does not have [ALTER]"):
            user.transitionInstantState(db, "t", old, old.replace(state=TState.COMPLETED), content)
        assert user.transitionInstantState(db, "t", old, old.replace(state=TState.COMPLETED), b"").success


class TestOtherNames:
    """A second name in a request gives no right to the first."""

    def test_partitions_are_added_in_the_catalog_that_was_decided_on(
        self, user: ThriftClient, root: ThriftClient, db: str, tmp_path: Path
    ) -> None:
        catalog = f"cat_{db}"
        root.create_catalog(CreateCatalogRequest(Catalog(catalog, "", f"file:{tmp_path}")))
        root.create_database(builders.database(db, catalogName=catalog, ownerName=f"u_{db}"))
        root.create_table(builders.table(db, keys=("dt",), owner=f"u_{db}", catName=catalog))
        grant(root, f"u_{db}", "INSERT", db, "t")
        elsewhere = f"file:{tmp_path}/elsewhere"
        own = builders.partition(db, "t", "7")
        placed = builders.partition(db, "t", "8", catName=catalog)
        placed = placed.replace(sd=placed.sd.replace(location=elsewhere))
        for add in (
            lambda: user.add_partitions([own, placed]),
            lambda: user.add_partitions_req(AddPartitionsRequest(db, "t", [own, placed], ifNotExists=False)),
        ):
            with pytest.raises(MetaException, match="LOCATION"):
                add()
        assert user.add_partitions([own]) == 1

    def test_grants_of_a_new_table_are_in_the_name_of_its_maker(
        self, user: ThriftClient, root: ThriftClient, db: str
    ) -> None:
        grant(root, f"u_{db}", "CREATE", db)
        forged = PrivilegeGrantInfo("SELECT", 0, "root", PrincipalType.USER, False)
        user.create_table(
            builders.table(db, "made", owner=f"u_{db}", privileges=PrincipalPrivilegeSet({"friend": [forged]}, {}, {}))
        )
        ref = HiveObjectRef(HiveObjectType.TABLE, db, "made")
        [found] = [each.grantInfo for each in root.list_privileges("friend", PrincipalType.USER, ref)]
        assert found.grantor == f"u_{db}"

    def test_replicated_transactions_are_an_administrator_s(
        self, user: ThriftClient, root: ThriftClient, db: str
    ) -> None:
        grant(root, f"u_{db}", "INSERT", db, "t")
        with pytest.raises(TException, match="Permission denied"):
            user.open_txns(OpenTxnRequest(1, f"u_{db}", "host", replPolicy="default.*", replSrcTxnIds=[7]))
        with pytest.raises(TException, match="Permission denied"):
            user.allocate_table_write_ids(AllocateTableWriteIdsRequest(db, "t", replPolicy="default.*"))
        [number] = user.open_txns(OpenTxnRequest(1, f"u_{db}", "host")).txn_ids
        assert number


@pytest.mark.parametrize("path", ["file:/etc/passwd", "s3a:x/y.parquet", "dt=1/../x"])
def test_files_of_an_instant_lie_below_the_table(root: ThriftClient, db: str, path: str) -> None:
    table = TableReference(database=db, table="t")
    root.lake_begin_instant(BeginInstantRequest(table, "commit", STAMP, "inflight"))
    file = DataFile("dt=1", "g", STAMP, path, kind="base", size=1)
    with pytest.raises(InvalidOperationException, match="no path of a file"):
        root.lake_complete_instants([CompleteInstantRequest(table, STAMP, "commit", added=[file])])
