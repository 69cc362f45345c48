"""Differences that generated scripts found, each as a short script of its own."""

import pytest

from lake.protocol.hive import (
    AbortTxnRequest,
    AddPartitionsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    EnvironmentContext,
    HeartbeatRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    LongColumnStatsData,
    OpenTxnRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    SetPartitionsStatsRequest,
    SkewedInfo,
    StorageDescriptor,
)
from tests.parity.calls import Call, Lock, Script, Txn
from tests.parity.partitions import setup
from tests.parity.play import Pair, explain
from tests.parity.statistics import SETUP as STATISTICS
from tests.support.builders import columns, database, external_table, partition, storage, table

pytestmark = pytest.mark.hive

DATABASE = Call("create_database", database("N_a"))
TWO_TABLES = setup((("ds", "string"),))
TXNS = Call("open_txns", OpenTxnRequest(num_txns=2, user="alice", hostname="here"))

ORC = "org.apache.hadoop.hive.ql.io.orc.Orc"
ACID = storage(
    inputFormat=f"{ORC}InputFormat",
    outputFormat=f"{ORC}OutputFormat",
    numBuckets=2,
    bucketCols=["id"],
    location="WAREHOUSE/N_a.db/t",
)


def of_partition(db: str, name: str) -> ColumnStatistics:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=1, numDVs=1))
    return ColumnStatistics(
        statsDesc=ColumnStatisticsDesc(isTblLevel=False, dbName=db, tableName=name, partName="k=1"),
        statsObj=[ColumnStatisticsObj(colName="lo", colType="bigint", statsData=data)],
    )


SELECT_TO_ALICE = HiveObjectPrivilege(
    principalName="N_alice",
    principalType=PrincipalType.USER,
    grantInfo=PrivilegeGrantInfo(privilege="SELECT", createTime=0, grantor="N_alice", grantorType=PrincipalType.USER),
)
OBJECTS = {
    "database": HiveObjectRef(objectType=HiveObjectType.DATABASE, dbName="N_a"),
    "table": HiveObjectRef(objectType=HiveObjectType.TABLE, dbName="N_a", objectName="t"),
    "partition": HiveObjectRef(objectType=HiveObjectType.PARTITION, dbName="N_a", objectName="t", partValues=["a"]),
    "column": HiveObjectRef(objectType=HiveObjectType.COLUMN, dbName="N_a", objectName="t", columnName="id"),
}


FOUND: dict[str, Script] = {
    "a transactional table stays one": [
        DATABASE,
        Call("create_table", table("N_a", "t", sd=ACID, parameters={"Transactional": "TRUE"})),
        Call("get_table", "N_a", "t"),
        Call("alter_table", "N_a", "t", table("N_a", "t", sd=ACID)),
        Call("alter_table", "N_a", "t", table("N_a", "t", sd=ACID, parameters={"transactional": "false"})),
        Call("alter_table", "N_a", "t", table("N_a", "t", sd=ACID, parameters={"transactional": "x"})),
        Call("alter_table", "N_a", "t", table("N_a", "t", sd=ACID, parameters={"TRANSACTIONAL": "true", "a": "b"})),
    ],
    "a table may become transactional, and nothing else of that name": [
        DATABASE,
        Call("create_table", table("N_a", "u", parameters={"transactional": "false", "a": "b"})),
        Call("create_table", table("N_a", "v", parameters={"transactional": "x"})),
        Call("create_table", external_table("N_a", "w", sd=ACID, parameters={"transactional": "true"})),
        Call("create_table", table("N_a", "t", sd=ACID)),
        Call("alter_table", "N_a", "t", table("N_a", "t", sd=ACID, parameters={"transactional": "false"})),
        Call("alter_table", "N_a", "t", table("N_a", "t", sd=ACID, parameters={"transactional": "true"})),
    ],
    "a renamed partition": [
        *TWO_TABLES,
        Call("append_partition", "N_a", "t", ["a"]),
        Call("rename_partition", "N_a", "t", ["a"], partition("N_a", "t", "b", location="SIDE/x")),
        Call("append_partition", "N_a", "e", ["a"]),
        Call("rename_partition", "N_a", "e", ["a"], partition("N_a", "e", "b", location="SIDE/elsewhere")),
    ],
    "a table's type may be empty": [
        DATABASE,
        Call("create_table", table("N_a", "t", tableType="")),
        Call("get_table", "N_a", "t"),
    ],
    "a table without a type but with a view's text is a view": [
        DATABASE,
        Call("create_table", table("N_a", "t", tableType=None, viewOriginalText="select 1")),
        Call("get_table", "N_a", "t"),
    ],
    "skewed columns are compared as they are written": [
        DATABASE,
        Call(
            "create_table",
            table("N_a", sd=storage("id:int", skewedInfo=SkewedInfo(skewedColNames=["Id"], skewedColValues=[["1"]]))),
        ),
    ],
    "a new table's name is looked up before its columns are": [
        DATABASE,
        Call("create_table", table("N_a", "t")),
        Call("create_table", table("N_a", "t", sd=storage("a:int", "a:int"))),
        Call("create_table", table("N_a", "t", sd=StorageDescriptor(cols=columns("a:int")))),
        Call("create_table", table("N_nosuch", "t", sd=storage("a:int", "a:int"))),
    ],
    "a table to alter is looked up before the new one's columns are": [
        DATABASE,
        Call("alter_table", "N_a", "t", table("N_a", "t").replace(partitionKeys=None)),
    ],
    "a new name is looked up before the columns are": [
        DATABASE,
        Call("create_table", table("N_a", "t")),
        Call("create_table", table("N_a", "u")),
        Call("alter_table", "N_a", "t", table("N_a", "u", sd=storage("a:int", "a:int"))),
    ],
    "an added partition is answered with Java's defaults": [
        *TWO_TABLES,
        Call("add_partition", partition("N_a", "t", "a")),
        Call("append_partition", "N_a", "t", ["b"]),
    ],
    "two columns of one name in a new partition": [
        *TWO_TABLES,
        Call("add_partition", partition("N_a", "t", "a", sd=storage("x:int", "X:int"))),
        Call("add_partitions", [partition("N_a", "t", "a", sd=storage("x:int", "x:string"))]),
        Call("get_partition_names", "N_a", "t", -1),
        Call("partition_name_to_vals", None),
        Call("partition_name_to_spec", None),
        Call("partition_name_to_spec", ""),
    ],
    "a limit of 0": [
        *TWO_TABLES,
        Call("append_partition", "N_a", "t", ["a"]),
        Call("get_partitions", "N_a", "t", 0),
        Call("get_partition_names", "N_a", "t", 0),
        Call("get_partitions_with_auth", "N_a", "t", 0, "alice", []),
        Call("get_partitions_ps", "N_a", "t", [""], 0),
        Call("get_partitions_ps_with_auth", "N_a", "t", [""], 0, "alice", []),
        Call("get_partitions_by_filter", "N_a", "t", "ds='a'", 0),
    ],
    "a list of partitions by a name in upper case": [
        *TWO_TABLES,
        Call("append_partition", "N_a", "t", ["a"]),
        Call("get_partitions_pspec", "N_A", "T", -1),
        Call("get_part_specs_by_filter", "N_A", "T", "", -1),
    ],
    "a partition altered to be nowhere": [
        *TWO_TABLES,
        Call("append_partition", "N_a", "t", ["a"]),
        Call(
            "alter_partitions_with_environment_context",
            "N_a",
            "t",
            [partition("N_a", "t", "a").replace(sd=storage("id:int"))],
            EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"}),
        ),
        Call("get_partition", "N_a", "t", ["a"]),
    ],
    "an added partition is answered under the names that were given": [
        *TWO_TABLES,
        Call("add_partition", partition("N_A", "T", "a")),
        Call("append_partition", "N_A", "T", ["b"]),
        Call("append_partition_by_name", "N_A", "T", "ds=c"),
    ],
    "the table that an altered partition names need only exist": [
        *TWO_TABLES,
        Call("append_partition", "N_a", "t", ["a"]),
        Call("alter_partition", "N_a", "t", partition("N_a", "u", "a", location="SIDE/x", parameters={"a": "b"})),
        Call("alter_partitions", "N_a", "t", [partition("N_a", "u", "a", location="SIDE/y")]),
        Call("alter_partition", "N_a", "t", partition("N_a", "nosuch", "a", location="SIDE/z")),
        Call("alter_partition", "N_a", "t", partition("N_a", "u", "nosuch", location="SIDE/z")),
        Call("rename_partition", "N_a", "t", ["a"], partition("N_a", "u", "b", location="SIDE/x")),
        Call("get_partitions", "N_a", "t", -1),
    ],
    "an exchange of one partition is answered with Java's defaults": [
        *TWO_TABLES,
        Call("append_partition", "N_a", "t", ["a"]),
        Call("exchange_partition", {"ds": "a"}, "N_a", "t", "N_a", "u"),
    ],
    "statistics to merge with those of a missing table's partitions": [
        *STATISTICS,
        *(
            Call(
                "set_aggr_stats_for",
                SetPartitionsStatsRequest(colStats=[of_partition("N_a", "nosuch")], needMerge=merge),
            )
            for merge in (None, False, True)
        ),
    ],
    "a new partition's name is looked up before its storage descriptor is": [
        *TWO_TABLES,
        Call("append_partition", "N_a", "t", ["a"]),
        Call("add_partition", partition("N_a", "t", "a").replace(sd=None)),
        Call("add_partition", partition("N_a", "t", "a", sd=StorageDescriptor(cols=columns("id:int")))),
        Call("add_partition", partition("N_a", "t", "b").replace(sd=None)),
        Call(
            "add_partitions_req",
            AddPartitionsRequest(
                dbName="N_a", tblName="t", parts=[partition("N_a", "t", "a").replace(sd=None)], ifNotExists=True
            ),
        ),
    ],
    "privileges on a partition need its values": [
        *TWO_TABLES,
        *(
            Call("list_privileges", "N_alice", PrincipalType.USER, privilege_object.replace(partValues=values))
            for privilege_object in (
                HiveObjectRef(objectType=HiveObjectType.PARTITION, dbName="N_a", objectName="t"),
                HiveObjectRef(objectType=HiveObjectType.PARTITION, dbName="N_a", objectName="nosuch"),
            )
            for values in (None, [], ["a"], ["a", "b"])
        ),
    ],
    **{
        f"the same privilege twice in one grant on a {name}": [
            DATABASE,
            Call(
                "create_table", table("N_a", "t", keys=("ds:string",), parameters={"PARTITION_LEVEL_PRIVILEGE": "TRUE"})
            ),
            Call("append_partition", "N_a", "t", ["a"]),
            Call("grant_privileges", PrivilegeBag(privileges=[SELECT_TO_ALICE.replace(hiveObject=each)] * 2)),
        ]
        for name, each in OBJECTS.items()
    },
    "partitions by no names at all": [
        *TWO_TABLES,
        Call("get_partitions_by_names", "N_a", "t", None),
        Call("get_partitions_by_names", "N_a", "nosuch", None),
    ],
    "partitions of a missing table, with privileges": [
        DATABASE,
        Call("get_partitions_with_auth", "N_a", "t", -1, "alice", []),
        Call("get_partitions_ps_with_auth", "N_a", "t", ["a"], -1, "alice", []),
    ],
    "a connection's setting may have any value": [
        Call("setMetaConf", "hive.metastore.try.direct.sql", "x"),
        Call("getMetaConf", "hive.metastore.try.direct.sql"),
        Call("setMetaConf", "hive.metastore.try.direct.sql", "true"),
    ],
    "of a missing lock and an aborted transaction the lock is reported": [
        TXNS,
        Call(
            "lock",
            LockRequest(
                component=[LockComponent(type=LockType.SHARED_READ, level=LockLevel.DB, dbname="N_a")],
                user="alice",
                hostname="here",
            ),
        ),
        Call("abort_txn", AbortTxnRequest(txnid=Txn(0))),
        Call("heartbeat", HeartbeatRequest(lockid=Lock(9), txnid=Txn(0))),
        Call("heartbeat", HeartbeatRequest(lockid=Lock(0), txnid=Txn(0))),
        Call("heartbeat", HeartbeatRequest(lockid=Lock(0), txnid=Txn(1))),
    ],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FOUND)
def test_answered_alike(pair: Pair, name: str) -> None:
    differences = pair.differences(FOUND[name])
    assert not differences, explain(FOUND[name], differences)
