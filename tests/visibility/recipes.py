"""How each read could give away a partition that its caller may not see."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    FieldSchema,
    GetPartitionNamesPsRequest,
    GetPartitionRequest,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsFilterSpec,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsRequest,
    GetProjectionsSpec,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LongColumnStatsData,
    PartitionEventType,
    PartitionFilterMode,
    PartitionsByExprRequest,
    PartitionsRequest,
    PartitionsStatsRequest,
    PartitionValuesRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    SetPartitionsStatsRequest,
)
from lake.protocol.lake import (
    BeginInstantRequest,
    CompleteInstantRequest,
    DataFile,
    ListPartitionsRequest,
    ReadChangesRequest,
    ReadChangesResponse,
    SnapshotRequest,
    SnapshotResponse,
    TableReference,
)
from tests.support.builders import database, partition, table
from tests.support.expressions import serialised
from tests.visibility.readers import CALL, CONNECTION, LISTENER, NAME, Reader, Scope

TOKEN = "qzx7"
NOTE = "vk3p"
"""In what is kept of the hidden partition beside its values."""
HIDDEN = (f"{TOKEN}-day", "10")
HIDDEN_NAME = f"ds={HIDDEN[0]}/hr=10"
READY = [("2020-01-01", "10"), ("2020-01-02", "10")]
NUMBER = 0x7A7A_5B5B_4C4C
"""In the hidden partition's statistics."""

TRACES = (TOKEN.encode(), NOTE.encode(), struct.pack(">q", NUMBER))
ALL = "ds is not null"


def fill(client: ThriftClient, db: str, *, with_hidden: bool) -> None:
    """Makes a database with table `t`, partitioned by `ds` and `hr`, and an empty `u` of the same form.

    What there is besides, with the hidden partition, is what could tell of it: statistics, privileges, an event.
    """
    client.create_database(database(db))
    for name in ("t", "u"):
        client.create_table(table(db, name, keys=("ds", "hr")))
    client.add_partitions([partition(db, "t", *values) for values in READY])
    keep_statistics(client, db, "ds=2020-01-01/hr=10", numDVs=3)
    if with_hidden:
        client.add_partition(partition(db, "t", *HIDDEN, parameters={"commit": "false", "note": NOTE}))
        keep_statistics(client, db, HIDDEN_NAME, numDVs=NUMBER)
        client.grant_privileges(PrivilegeBag([_grant(db, PARTITION), _grant(db, COLUMN, columnName="id")]))
        client.markPartitionForEvent(db, "t", SPEC, PartitionEventType.LOAD_DONE)


def commit_files(client: ThriftClient, db: str, *, with_hidden: bool) -> None:
    """Puts an instant on the table's timeline that adds files to its partitions."""
    named = TableReference(database=db, table="t")
    client.lake_begin_instant(BeginInstantRequest(table=named, action="commit", timestamp="1", state="inflight"))
    names = ["ds=2020-01-01/hr=10", *([HIDDEN_NAME] if with_hidden else [])]
    files = [DataFile(partition=each, fileGroup="g", slice="1", path=f"{each}/g.parquet", size=1) for each in names]
    client.lake_complete_instants([CompleteInstantRequest(table=named, timestamp="1", action="commit", added=files)])


PARTITION, COLUMN = HiveObjectType.PARTITION, HiveObjectType.COLUMN
SPEC = {"ds": HIDDEN[0], "hr": "10"}
USER = f"user of {HIDDEN_NAME}"


def keep_statistics(client: ThriftClient, db: str, name: str, *, numDVs: int) -> None:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=numDVs, lowValue=1, highValue=numDVs))
    client.set_aggr_stats_for(
        SetPartitionsStatsRequest(
            [
                ColumnStatistics(
                    ColumnStatisticsDesc(isTblLevel=False, dbName=db, tableName="t", partName=name),
                    [ColumnStatisticsObj("id", "bigint", data)],
                )
            ]
        )
    )


def _object(db: str, kind: HiveObjectType, name: str = "t", **more: Any) -> HiveObjectRef:
    return HiveObjectRef(objectType=kind, dbName=db, objectName=name, partValues=list(HIDDEN), **more)


def _grant(db: str, kind: HiveObjectType, **more: Any) -> HiveObjectPrivilege:
    info = PrivilegeGrantInfo("SELECT", 0, f"{NOTE} boss", PrincipalType.USER, False)
    return HiveObjectPrivilege(_object(db, kind, **more), USER, PrincipalType.USER, info)


BY_TABLE = (NAME, CONNECTION, LISTENER)


@dataclass(frozen=True)
class Recipe:
    """One way to ask, through which the hidden partition would be found if it weren't hidden.

    `scopes`: those in which it is found. `tells`: whether the answer then holds something of the partition's own;
    otherwise it only differs.
    """

    method: str
    ask: Callable[[Reader], Any]
    how: str = ""
    scopes: Sequence[Scope] = BY_TABLE
    tells: bool = True

    def __str__(self) -> str:
        return f"{self.method}-{self.how}" if self.how else self.method


def _call(method: str, *arguments: Any, how: str = "", tells: bool = True) -> Recipe:
    """A method whose first arguments are database and table."""
    return Recipe(method, lambda r: r.client.call(method, r.db, r.table(), *arguments), how, tells=tells)


def _request(
    method: str, request: type[Any], where: tuple[str, str] = ("dbName", "tblName"), *, how: str = "", **more: Any
) -> Recipe:
    """A method with one request struct; `where` names its fields for database and table."""

    def ask(r: Reader) -> Any:
        return r.client.call(method, request(**{where[0]: r.db, where[1]: r.table()}, **more))

    return Recipe(method, ask, how)


def _privileges(how: str, ref: Callable[[Reader], HiveObjectRef], scopes: Sequence[Scope] = BY_TABLE) -> Recipe:
    return Recipe(
        "list_privileges", lambda r: r.client.list_privileges(USER, PrincipalType.USER, ref(r)), how, scopes=scopes
    )


_EXPRESSION: dict[str, Any] = {"expr": serialised(ALL), "maxParts": -1}
_KEYS = [FieldSchema("ds", "string"), FieldSchema("hr", "string")]
_PARTIAL = ["", "10"]
_STATISTICS: dict[str, Any] = {"colNames": ["id"], "partNames": ["ds=2020-01-01/hr=10", HIDDEN_NAME]}


def _snapshot(reader: Reader, request: SnapshotRequest) -> SnapshotResponse:
    """Without the table's version, which says how many changes there were."""
    return reader.client.lake_get_snapshot(request).replace(tableVersion=None)


def _changes(reader: Reader, request: ReadChangesRequest) -> ReadChangesResponse:
    """Without the table's version, which says how many changes there were."""
    return reader.client.lake_read_changes(request).replace(tableVersion=None)


RECIPES = [
    _call("get_partition", list(HIDDEN)),
    _call("get_partition_by_name", HIDDEN_NAME),
    _request("get_partition_req", GetPartitionRequest, partVals=list(HIDDEN)),
    _call("get_partitions", -1),
    _call("get_partitions", 10, how="limited"),
    _call("get_partitions_with_auth", -1, "me", []),
    _request("get_partitions_req", PartitionsRequest, maxParts=-1),
    _request(
        "get_partitions_req",
        PartitionsRequest,
        how="in part",
        maxParts=-1,
        skipColumnSchemaForPartition=True,
        excludeParamKeyPattern="n%",
    ),
    _call("get_partitions_ps", _PARTIAL, -1),
    _call("get_partitions_ps", list(HIDDEN), -1, how="exact"),
    _call("get_partitions_ps_with_auth", _PARTIAL, -1, "me", []),
    _request("get_partitions_ps_with_auth_req", GetPartitionsPsWithAuthRequest, partVals=_PARTIAL, maxParts=-1),
    _request("get_partitions_ps_with_auth_req", GetPartitionsPsWithAuthRequest, how="names", partNames=[HIDDEN_NAME]),
    _call("get_partitions_by_filter", "hr = '10'", -1),
    _request("get_partitions_by_filter_req", GetPartitionsByFilterRequest, filter="hr = '10'"),
    _call("get_partitions_by_names", [HIDDEN_NAME]),
    _request("get_partitions_by_names_req", GetPartitionsByNamesRequest, ("db_name", "tbl_name"), names=[HIDDEN_NAME]),
    _request(
        "get_partitions_by_names_req",
        GetPartitionsByNamesRequest,
        ("db_name", "tbl_name"),
        how="statistics",
        names=[HIDDEN_NAME],
        get_col_stats=True,
    ),
    _request("get_partitions_by_expr", PartitionsByExprRequest, **_EXPRESSION),
    _request("get_partitions_spec_by_expr", PartitionsByExprRequest, **_EXPRESSION),
    _request("get_partition_names_req", PartitionsByExprRequest, **_EXPRESSION),
    _request("get_partitions_with_specs", GetPartitionsRequest),
    _request(
        "get_partitions_with_specs",
        GetPartitionsRequest,
        how="projected",
        projectionSpec=GetProjectionsSpec(["parameters"]),
        filterSpec=GetPartitionsFilterSpec(filterMode=PartitionFilterMode.BY_VALUES, filters=_PARTIAL),
    ),
    _call("get_partitions_pspec", -1),
    _call("get_part_specs_by_filter", "hr = '10'", -1),
    _call("get_num_partitions_by_filter", "hr = '10'", tells=False),
    _call("get_num_partitions_by_filter", "", how="everything", tells=False),
    _call("get_partition_names", -1),
    _request("fetch_partition_names_req", PartitionsRequest, maxParts=-1),
    _call("get_partition_names_ps", _PARTIAL, -1),
    _request("get_partition_names_ps_req", GetPartitionNamesPsRequest, partValues=_PARTIAL, maxParts=-1),
    _request("get_partition_values", PartitionValuesRequest, partitionKeys=_KEYS),
    _call("get_partition_column_statistics", HIDDEN_NAME, "id"),
    _request("get_partitions_statistics_req", PartitionsStatsRequest, **_STATISTICS),
    _request("get_aggr_stats_for", PartitionsStatsRequest, **_STATISTICS),
    Recipe(
        "get_privilege_set",
        lambda r: r.client.get_privilege_set(_object(r.db, PARTITION, r.table()), USER, []),
    ),
    Recipe(
        "get_privilege_set",
        lambda r: r.client.get_privilege_set(_object(r.db, COLUMN, r.table(), columnName="id"), USER, []),
        how="column",
    ),
    _privileges("partition", lambda r: _object(r.db, PARTITION, r.table())),
    _privileges("column", lambda r: _object(r.db, COLUMN, r.table(), columnName="id")),
    _privileges("partitions", lambda r: HiveObjectRef(PARTITION), (CONNECTION, LISTENER)),
    _privileges("columns", lambda r: HiveObjectRef(COLUMN), (CONNECTION, LISTENER)),
    _privileges("everything", lambda r: HiveObjectRef(), (CONNECTION, LISTENER)),
    _call("isPartitionMarkedForEvent", SPEC, PartitionEventType.LOAD_DONE, tells=False),
    Recipe(
        "lake_list_partitions",
        lambda r: r.client.lake_list_partitions(ListPartitionsRequest(r.reference, includeUncommitted=r.include)),
        scopes=(*BY_TABLE, CALL),
    ),
    Recipe(
        "lake_list_partitions",
        lambda r: r.client.lake_list_partitions(
            ListPartitionsRequest(
                r.reference, filter="hr = '10'", limit=1, after="ds=2020-01-02/hr=10", includeUncommitted=r.include
            )
        ),
        how="filter",
        scopes=(*BY_TABLE, CALL),
    ),
    Recipe(
        "lake_get_snapshot",
        lambda r: _snapshot(r, SnapshotRequest(r.reference, includeUncommitted=r.include)),
        scopes=(*BY_TABLE, CALL),
    ),
    Recipe(
        "lake_get_snapshot",
        lambda r: _snapshot(
            r,
            SnapshotRequest(r.reference, asOf="1", filter="hr = '10'", includeUncommitted=r.include, allVersions=True),
        ),
        how="filter",
        scopes=(*BY_TABLE, CALL),
    ),
    Recipe(
        "lake_get_snapshot",
        lambda r: _snapshot(r, SnapshotRequest(r.reference, partitions=[HIDDEN_NAME], includeUncommitted=r.include)),
        how="name",
        scopes=(*BY_TABLE, CALL),
        tells=False,
    ),
    Recipe(
        "lake_read_changes",
        lambda r: _changes(r, ReadChangesRequest(r.reference, after=0, includeUncommitted=r.include)),
        scopes=(*BY_TABLE, CALL),
    ),
]
