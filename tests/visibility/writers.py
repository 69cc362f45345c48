"""How each writing method is called, with the name of the table left open."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPartitionsRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    AlterPartitionsRequest,
    AlterTableRequest,
    AppendPartitionsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CreateTableRequest,
    CreationMetadata,
    DeleteColumnStatisticsRequest,
    DropConstraintRequest,
    DropPartitionRequest,
    DropPartitionsExpr,
    DropPartitionsRequest,
    DropTableRequest,
    FireEventRequest,
    FireEventRequestData,
    GrantRevokePrivilegeRequest,
    GrantRevokeType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    Index,
    InsertEventRequestData,
    LongColumnStatsData,
    Partition,
    PartitionEventType,
    PartitionListComposingSpec,
    PartitionSpec,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    RenamePartitionRequest,
    RequestPartsSpec,
    SetPartitionsStatsRequest,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Table,
    TruncateTableRequest,
    WriteNotificationLogBatchRequest,
    WriteNotificationLogRequest,
)
from lake.protocol.lake import (
    BeginInstantRequest,
    CommitPartitionsRequest,
    CommitTablesRequest,
    CompleteInstantRequest,
    ImportRequest,
    ReopenPartitionsRequest,
    TableCommit,
    TableReference,
    TransitionInstantRequest,
)
from tests.support.builders import partition, storage, table
from tests.support.expressions import serialised
from tests.visibility.flags import COMMITTED, MODE

HIDDEN, READY, NEW = ["2020-01-01", "1"], ["2020-01-01", "2"], ["2020-01-02", "1"]
HIDDEN_NAME = "ds=2020-01-01/hr=1"
SPEC = {"ds": "2020-01-01", "hr": "1"}
ALL = "ds is not null"


def fill(client: ThriftClient, db: str) -> None:
    """Table `t` with something of everything that can be changed; an empty `u`; `k` with a primary key."""
    for name in ("t", "u"):
        client.create_table(table(db, name, keys=("ds", "hr"), parameters={MODE: "manual"}))
    client.create_table(table(db, "k"))
    client.add_primary_key(AddPrimaryKeyRequest([SQLPrimaryKey(db, "k", "id", 1)]))
    client.add_partitions([partition(db, "t", *HIDDEN), partition(db, "t", *READY, parameters=dict(COMMITTED))])
    client.add_not_null_constraint(AddNotNullConstraintRequest([SQLNotNullConstraint("hive", db, "t", "name", "nn")]))
    client.add_index(_index(db, "t", "i"), table(db, "data", tableType="INDEX_TABLE"))
    client.grant_privileges(_bag(db, "t", "INSERT"))
    client.update_table_column_statistics(_statistics(db, "t", None))
    client.update_partition_column_statistics(_statistics(db, "t", HIDDEN_NAME))


def _index(db: str, name: str, index: str) -> Index:
    """An index on a table; the data of `i` are in `data`, those of others in `new`."""
    data = "data" if index == "i" else "new"
    return Index(index, "handler", db, name, indexTableName=data, sd=storage("id:bigint"), deferredRebuild=True)


_INSERT = FireEventRequestData(InsertEventRequestData(filesAdded=["file:/new"]))


@dataclass(frozen=True)
class Writer:
    """One way to write; `write` gets a connection, the database and the table's name."""

    method: str
    write: Callable[[ThriftClient, str, str], Any]
    how: str = ""

    def __str__(self) -> str:
        return f"{self.method}-{self.how}" if self.how else self.method


def _call(method: str, *arguments: Any, how: str = "") -> Writer:
    """A method whose first arguments are database and table."""
    return Writer(method, lambda client, db, name: client.call(method, db, name, *arguments), how)


def _request(method: str, request: Callable[[str, str], Any], how: str = "") -> Writer:
    """A method whose only argument depends on database and table."""
    return Writer(method, lambda client, db, name: client.call(method, request(db, name)), how)


def _with(method: str, value: Callable[[ThriftClient, str, str], Any], *more: Any, how: str = "") -> Writer:
    """A method that takes database, table, and a value that is about them."""
    return Writer(method, lambda c, db, name: c.call(method, db, name, value(c, db, name), *more), how)


def _changed_table(client: ThriftClient, db: str, name: str) -> Table:
    value = client.get_table(db, "t")
    return value.replace(parameters={**value.parameters, "changed": "1"})  # type: ignore[no-any-return]


def _changed(client: ThriftClient, db: str, name: str) -> Partition:
    value = client.get_partition_with_auth(db, "t", HIDDEN, "me", [])
    return value.replace(tableName=name, parameters={"changed": "1"})  # type: ignore[no-any-return]


def _listed(client: ThriftClient, db: str, name: str) -> list[Partition]:
    return [_changed(client, db, name)]


def _renamed(client: ThriftClient, db: str, name: str) -> Partition:
    return _changed(client, db, name).replace(values=NEW)


def _bag(db: str, name: str, privilege: str = "SELECT", *, of_partition: bool = False) -> PrivilegeBag:
    kind = HiveObjectType.PARTITION if of_partition else HiveObjectType.TABLE
    ref = HiveObjectRef(kind, db, name, HIDDEN if of_partition else None)
    info = PrivilegeGrantInfo(privilege, 0, "boss", PrincipalType.USER, False)
    return PrivilegeBag([HiveObjectPrivilege(ref, "me", PrincipalType.USER, info)])


def _statistics(db: str, name: str, part: str | None) -> ColumnStatistics:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1))
    description = ColumnStatisticsDesc(isTblLevel=part is None, dbName=db, tableName=name, partName=part)
    return ColumnStatistics(description, [ColumnStatisticsObj("id", "bigint", data)])


def _set(part: str | None) -> Callable[[str, str], SetPartitionsStatsRequest]:
    return lambda db, name: SetPartitionsStatsRequest([_statistics(db, name, part)])


def _drop_request(wanted: RequestPartsSpec) -> Callable[[str, str], DropPartitionsRequest]:
    return lambda db, name: DropPartitionsRequest(db, name, wanted, deleteData=True, ifExists=True)


def _fresh(db: str, name: str) -> Table:
    """A table to be made."""
    return table(db, _free(name), keys=("ds",))


def _free(name: str) -> str:
    """A name that no table has, decorated if `name` is."""
    return "fresh" + name.removeprefix("t")


def _foreign_key(db: str, parent: str, child: str) -> AddForeignKeyRequest:
    return AddForeignKeyRequest([SQLForeignKey(db, parent, "id", db, child, "id", 1)])


def _table(db: str, name: str) -> TableReference:
    return TableReference(database=db, table=name)


def _begun(client: ThriftClient, db: str) -> str:
    """The timestamp of an instant that is inflight on the table's timeline."""
    begun = client.lake_begin_instant(BeginInstantRequest(_table(db, "t"), "commit", state="inflight"))
    return str(begun.timestamp)


WRITERS = [
    _request("create_table", _fresh),
    Writer(
        "create_table_with_environment_context",
        lambda client, db, name: client.create_table_with_environment_context(_fresh(db, name), None),
    ),
    Writer(
        "create_table_with_constraints",
        lambda client, db, name: client.create_table_with_constraints(_fresh(db, name), [], [], [], [], [], []),
    ),
    _request("create_table_req", lambda db, name: CreateTableRequest(_fresh(db, name))),
    _request("lake_import", lambda db, name: ImportRequest(tables=[_fresh(db, name)]), how="table"),
    _request("lake_import", lambda db, name: ImportRequest(partitions=[partition(db, name, *NEW)]), how="partition"),
    _request("lake_commit_tables", lambda db, name: CommitTablesRequest([TableCommit(_fresh(db, name))])),
    _with("alter_table", _changed_table),
    Writer(
        "alter_table",
        lambda client, db, name: client.alter_table(db, "u", client.get_table(db, "u").replace(tableName=_free(name))),
        how="rename",
    ),
    _with("alter_table_with_environment_context", _changed_table, None),
    _with("alter_table_with_cascade", _changed_table, True),
    Writer(
        "alter_table_req",
        lambda client, db, name: client.alter_table_req(
            AlterTableRequest(dbName=db, tableName=name, table=_changed_table(client, db, name))
        ),
    ),
    _call("drop_table", True),
    _call("drop_table_with_environment_context", True, None),
    _request("drop_table_req", lambda db, name: DropTableRequest(dbName=db, tableName=name, deleteData=True)),
    _call("truncate_table", None),
    _call("truncate_table", [HIDDEN_NAME], how="partition"),
    _request("truncate_table_req", TruncateTableRequest),
    _request("add_primary_key", lambda db, name: AddPrimaryKeyRequest([SQLPrimaryKey(db, name, "id", 1)])),
    _request("add_foreign_key", lambda db, name: _foreign_key(db, "k", name)),
    Writer(
        "add_foreign_key",
        lambda client, db, name: client.add_foreign_key(_foreign_key(db, "k" + name.removeprefix("t"), "t")),
        how="parent",
    ),
    _request(
        "add_unique_constraint",
        lambda db, name: AddUniqueConstraintRequest([SQLUniqueConstraint("hive", db, name, "id", 1)]),
    ),
    _request(
        "add_not_null_constraint",
        lambda db, name: AddNotNullConstraintRequest([SQLNotNullConstraint("hive", db, name, "id")]),
    ),
    _request(
        "add_default_constraint",
        lambda db, name: AddDefaultConstraintRequest([SQLDefaultConstraint("hive", db, name, "id", "1")]),
    ),
    _request(
        "add_check_constraint",
        lambda db, name: AddCheckConstraintRequest([SQLCheckConstraint("hive", db, name, "id", "id > 0")]),
    ),
    _request("drop_constraint", lambda db, name: DropConstraintRequest(db, name, "nn")),
    _request("add_partition", lambda db, name: partition(db, name, *NEW)),
    Writer(
        "add_partition_with_environment_context",
        lambda client, db, name: client.add_partition_with_environment_context(partition(db, name, *NEW), None),
    ),
    _request("add_partitions", lambda db, name: [partition(db, name, *NEW)]),
    _request(
        "add_partitions_pspec",
        lambda db, name: [
            PartitionSpec(db, name, partitionList=PartitionListComposingSpec([partition(db, name, *NEW)]))
        ],
    ),
    _request("add_partitions_req", lambda db, name: AddPartitionsRequest(db, name, [partition(db, "t", *NEW)], False)),
    _request(
        "add_partitions_req",
        lambda db, name: AddPartitionsRequest(db, "t", [partition(db, name, *NEW)], False),
        how="partition's",
    ),
    _call("append_partition", NEW),
    _call("append_partition_with_environment_context", NEW, None),
    _call("append_partition_by_name", "ds=2020-01-02/hr=1"),
    _call("append_partition_by_name_with_environment_context", "ds=2020-01-02/hr=1", None),
    _request("append_partition_req", lambda db, name: AppendPartitionsRequest(dbName=db, tableName=name, partVals=NEW)),
    _with("alter_partition", _changed),
    Writer(
        "alter_partition",
        lambda client, db, name: client.alter_partition(db, "t", _changed(client, db, name)),
        how="partition's",
    ),
    _with("alter_partition_with_environment_context", _changed, None),
    _with("alter_partitions", _listed),
    _with("alter_partitions_with_environment_context", _listed, None),
    Writer(
        "alter_partitions_req",
        lambda client, db, name: client.alter_partitions_req(
            AlterPartitionsRequest(dbName=db, tableName=name, partitions=_listed(client, db, name))
        ),
    ),
    Writer(
        "rename_partition",
        lambda client, db, name: client.rename_partition(db, name, HIDDEN, _renamed(client, db, name)),
    ),
    Writer(
        "rename_partition_req",
        lambda client, db, name: client.rename_partition_req(
            RenamePartitionRequest(dbName=db, tableName=name, partVals=HIDDEN, newPart=_renamed(client, db, name))
        ),
    ),
    _call("drop_partition", HIDDEN, True),
    _call("drop_partition_with_environment_context", HIDDEN, True, None),
    _call("drop_partition_by_name", HIDDEN_NAME, True),
    _call("drop_partition_by_name_with_environment_context", HIDDEN_NAME, True, None),
    _request(
        "drop_partition_req",
        lambda db, name: DropPartitionRequest(dbName=db, tblName=name, partName=HIDDEN_NAME, deleteData=True),
    ),
    _request("drop_partitions_req", _drop_request(RequestPartsSpec(names=[HIDDEN_NAME])), how="names"),
    _request(
        "drop_partitions_req",
        _drop_request(RequestPartsSpec(exprs=[DropPartitionsExpr(expr=serialised(ALL))])),
        how="expression",
    ),
    Writer("exchange_partition", lambda client, db, name: client.exchange_partition(SPEC, db, name, db, "u")),
    Writer("exchange_partitions", lambda client, db, name: client.exchange_partitions(SPEC, db, name, db, "u")),
    Writer(
        "exchange_partitions",
        lambda client, db, name: client.exchange_partitions(SPEC, db, "t", db, "u" + name.removeprefix("t")),
        how="target",
    ),
    Writer("add_index", lambda client, db, name: client.add_index(_index(db, name, "new"), table(db, "new"))),
    Writer("alter_index", lambda client, db, name: client.alter_index(db, name, "i", _index(db, "t", "i"))),
    _call("drop_index_by_name", "i", True),
    Writer(
        "update_creation_metadata",
        lambda client, db, name: client.update_creation_metadata(
            "hive", db, name, CreationMetadata("hive", db, "t", {f"{db}.k"})
        ),
    ),
    _call("markPartitionForEvent", SPEC, PartitionEventType.LOAD_DONE),
    _request("fire_listener_event", lambda db, name: FireEventRequest(True, _INSERT, db, name, HIDDEN)),
    _request(
        "add_write_notification_log",
        lambda db, name: WriteNotificationLogRequest(1, 1, db, name, InsertEventRequestData(filesAdded=[]), HIDDEN),
    ),
    _request(
        "add_write_notification_log_in_batch",
        lambda db, name: WriteNotificationLogBatchRequest(
            "hive",
            db,
            name,
            [WriteNotificationLogRequest(1, 1, db, name, InsertEventRequestData(filesAdded=[]), HIDDEN)],
        ),
    ),
    _request("grant_privileges", _bag),
    _request("grant_privileges", lambda db, name: _bag(db, name, of_partition=True), how="partition"),
    _request("revoke_privileges", lambda db, name: _bag(db, name, "INSERT")),
    _request(
        "grant_revoke_privileges",
        lambda db, name: GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, _bag(db, name)),
    ),
    Writer(
        "refresh_privileges",
        lambda client, db, name: client.refresh_privileges(
            HiveObjectRef(HiveObjectType.TABLE, db, name), None, GrantRevokePrivilegeRequest(privileges=_bag(db, "t"))
        ),
    ),
    _request("update_table_column_statistics", lambda db, name: _statistics(db, name, None)),
    _request("update_partition_column_statistics", lambda db, name: _statistics(db, name, HIDDEN_NAME)),
    _request("update_table_column_statistics_req", _set(None)),
    _request("update_partition_column_statistics_req", _set(HIDDEN_NAME)),
    _request("set_aggr_stats_for", _set(HIDDEN_NAME)),
    _request("set_aggr_stats_for", _set(None), how="table"),
    _call("delete_table_column_statistics", "id", None),
    _call("delete_partition_column_statistics", HIDDEN_NAME, "id", None),
    _request(
        "delete_column_statistics_req",
        lambda db, name: DeleteColumnStatisticsRequest(db_name=db, tbl_name=name, part_names=[HIDDEN_NAME]),
    ),
    _request(
        "delete_column_statistics_req",
        lambda db, name: DeleteColumnStatisticsRequest(db_name=db, tbl_name=name, tableLevel=True),
        how="table",
    ),
    _request("lake_commit_partitions", lambda db, name: CommitPartitionsRequest(_table(db, name), [HIDDEN_NAME])),
    _request("lake_reopen_partitions", lambda db, name: ReopenPartitionsRequest(_table(db, name), [HIDDEN_NAME])),
    _request("lake_begin_instant", lambda db, name: BeginInstantRequest(_table(db, name), "commit")),
    Writer(
        "lake_transition_instant",
        lambda client, db, name: client.lake_transition_instant(
            TransitionInstantRequest(_table(db, name), _begun(client, db), "commit", "inflight")
        ),
    ),
    Writer(
        "lake_heartbeat_instant",
        lambda client, db, name: client.lake_heartbeat_instant(_table(db, name), _begun(client, db), "commit"),
    ),
    Writer(
        "lake_delete_instant",
        lambda client, db, name: client.lake_delete_instant(_table(db, name), _begun(client, db), "commit"),
    ),
    Writer(
        "lake_complete_instants",
        lambda client, db, name: client.lake_complete_instants(
            [CompleteInstantRequest(_table(db, name), _begun(client, db), "commit")]
        ),
    ),
]
