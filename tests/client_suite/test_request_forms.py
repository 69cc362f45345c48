"""The request forms of Hive 4.0.1 and later, each beside the older form that it stands for.

The Hive 4 that we can run is 4.0.1: what came after it runs against our server alone.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AbortCompactionRequest,
    AddPartitionsRequest,
    AlreadyExistsException,
    AlterDatabaseRequest,
    AlterPartitionsRequest,
    AlterTableRequest,
    AppendPartitionsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CompactionRequest,
    CompactionType,
    CreateDatabaseRequest,
    DeleteColumnStatisticsRequest,
    DropCatalogRequest,
    DropDatabaseRequest,
    DropPartitionRequest,
    DropPartitionsRequest,
    DropTableRequest,
    Function,
    FunctionType,
    GetAllWriteEventInfoRequest,
    GetDatabaseObjectsRequest,
    GetDatabaseRequest,
    GetFunctionsRequest,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsPsWithAuthRequest,
    GetTableRequest,
    InvalidObjectException,
    InvalidOperationException,
    LongColumnStatsData,
    MetaException,
    NoSuchObjectException,
    NotificationEventRequest,
    OpenTxnRequest,
    Partition,
    PartitionsByExprRequest,
    PartitionsRequest,
    PartitionsStatsRequest,
    PrincipalType,
    PropertyGetRequest,
    PropertySetRequest,
    RequestPartsSpec,
    ShowCompactRequest,
    Table,
    TableStatsRequest,
    TxnType,
)
from tests.support.builders import columns, database, partition, storage, table
from tests.support.expect import refused
from tests.support.expressions import serialised
from tests.support.target import Target

pytestmark = pytest.mark.hive4

DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]
NAMES = [f"ds={day}" for day in DAYS]


@pytest.fixture
def newest(target: Target) -> None:
    """For what 4.0.1 doesn't have, or not on the database on which it runs here."""
    if target.name != "ours":
        pytest.skip("the Hive 4 that runs here doesn't have it")


def stored(client: ThriftClient, db: str) -> Table:
    value: Table = client.get_table_req(GetTableRequest(db, "t")).table
    return value


@pytest.fixture
def filled(client: ThriftClient, db: str) -> str:
    """A database with table `t`, partitioned by `ds`, of three days."""
    client.create_table(table(db, keys=("ds",)))
    client.add_partitions([partition(db, "t", day, parameters={"a": day, "b": "x"}) for day in DAYS])
    return db


class TestDatabases:
    def test_created(self, client: ThriftClient, unused_name: str) -> None:
        about = {"description": "d", "parameters": {"a": "b"}, "ownerName": "me", "ownerType": PrincipalType.GROUP}
        older = f"{unused_name}_older"
        try:
            client.create_database_req(CreateDatabaseRequest(databaseName=unused_name, **about))
            client.create_database(database(older, **about))
            made, expected = client.get_database(unused_name), client.get_database(older)
            assert made.createTime > 0
            same = {"name": None, "createTime": None}
            assert made.locationUri == expected.locationUri.replace(older, unused_name)
            assert made.replace(locationUri=None, **same) == expected.replace(locationUri=None, **same)
            with refused(AlreadyExistsException):
                client.create_database_req(CreateDatabaseRequest(databaseName=unused_name))
        finally:
            for name in (unused_name, older):
                client.drop_database(name, True, True)

    def test_altered(self, client: ThriftClient, db: str) -> None:
        new = client.get_database(db).replace(parameters={"a": "b"}, ownerName="other")
        client.alter_database_req(AlterDatabaseRequest(db, new))
        changed = client.get_database(db)
        client.alter_database(db, new)
        assert changed == client.get_database(db)
        assert changed.parameters == {"a": "b"}
        with refused(NoSuchObjectException):
            client.alter_database_req(AlterDatabaseRequest("no_such", new))

    @pytest.mark.usefixtures("newest")
    def test_listed(self, client: ThriftClient, db: str) -> None:
        found = client.get_databases_req(GetDatabaseObjectsRequest(pattern=f"{db}|default")).databases
        assert [one.name for one in found] == client.get_databases(f"{db}|default")
        assert found == [client.get_database(one.name) for one in found]
        everything = client.get_databases_req(GetDatabaseObjectsRequest()).databases
        assert [one.name for one in everything] == client.get_all_databases()
        assert client.get_databases_req(GetDatabaseObjectsRequest("no_such")).databases == []

    def test_one(self, client: ThriftClient, db: str) -> None:
        assert client.get_database_req(GetDatabaseRequest(db, "hive")) == client.get_database(db)
        with refused(NoSuchObjectException):
            client.get_database_req(GetDatabaseRequest("no_such", "hive"))

    def test_dropped(self, client: ThriftClient, db: str) -> None:
        request = DropDatabaseRequest(db, "hive", ignoreUnknownDb=False, deleteData=True, cascade=True)
        client.create_table(table(db))
        with refused(InvalidOperationException):
            client.drop_database_req(request.replace(cascade=False))
        client.drop_database_req(request)
        assert db not in client.get_all_databases()
        with refused(NoSuchObjectException):
            client.drop_database_req(request)

    @pytest.mark.usefixtures("newest")
    def test_dropped_if_it_exists(self, client: ThriftClient) -> None:
        """Hive's client sees to it by itself; its server doesn't look."""
        client.drop_database_req(DropDatabaseRequest("no_such", "hive", True, True, True))

    @pytest.mark.usefixtures("newest")
    def test_catalog_dropped_if_it_exists(self, client: ThriftClient) -> None:
        client.drop_catalog(DropCatalogRequest("no_such", ifExists=True))
        with refused(NoSuchObjectException):
            client.drop_catalog(DropCatalogRequest("no_such"))


class TestTables:
    def test_dropped(self, client: ThriftClient, filled: str, home: Path) -> None:
        client.drop_table_req(DropTableRequest("hive", filled, "t", True, dropPartitions=True))
        assert client.get_all_tables(filled) == []
        assert not (home / "t").exists()
        with refused(NoSuchObjectException):
            client.drop_table_req(DropTableRequest("hive", filled, "t"))

    @pytest.mark.usefixtures("newest")
    def test_altered_if_as_expected(self, client: ThriftClient, db: str) -> None:
        """As by the properties of the environment context."""
        client.create_table(table(db, parameters={"version": "1"}))
        new = stored(client, db)
        new.parameters["version"] = "2"
        request = AlterTableRequest(
            dbName=db, tableName="t", table=new, expectedParameterKey="version", expectedParameterValue="0"
        )
        with refused(MetaException, message="The table has been modified"):
            client.alter_table_req(request)
        client.alter_table_req(request.replace(expectedParameterValue="1"))
        assert stored(client, db).parameters["version"] == "2"

    def test_summary_names_the_owner(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, owner="alice"))
        assert [one.ownerName for one in client.get_table_meta(db, "t", None)] == ["alice"]


class TestFunctions:
    @pytest.mark.usefixtures("newest")
    def test_listed(self, client: ThriftClient, db: str) -> None:
        for name in ("f1", "f2", "g"):
            client.create_function(Function(name, db, "C", "me", PrincipalType.USER, 0, FunctionType.JAVA))
        names = client.get_functions_req(GetFunctionsRequest(db, pattern="f*", returnNames=True))
        assert names.function_names == client.get_functions(db, "f*")
        assert names.functions is None
        whole = client.get_functions_req(GetFunctionsRequest(db, pattern="f*"))
        assert whole.functions == [client.get_function(db, name) for name in ("f1", "f2")]
        assert whole.function_names is None
        assert client.get_functions_req(GetFunctionsRequest("no_such", returnNames=True)).function_names == []


# The same question in the older form, and in the newer one.
QUESTIONS: dict[str, tuple[Callable[[ThriftClient, str], Any], Callable[[ThriftClient, str], Any]]] = {
    "names": (
        lambda client, db: client.get_partition_names(db, "t", -1),
        lambda client, db: client.fetch_partition_names_req(PartitionsRequest("hive", db, "t")),
    ),
    "some names": (
        lambda client, db: client.get_partition_names(db, "t", 2),
        lambda client, db: client.fetch_partition_names_req(PartitionsRequest("hive", db, "t", 2)),
    ),
    "filter": (
        lambda client, db: client.get_partitions_by_filter(db, "t", f"ds > '{DAYS[0]}'", -1),
        lambda client, db: client.get_partitions_by_filter_req(
            GetPartitionsByFilterRequest("hive", db, "t", f"ds > '{DAYS[0]}'")
        ),
    ),
    "limited filter": (
        lambda client, db: client.get_partitions_by_filter(db, "t", f"ds > '{DAYS[0]}'", 1),
        lambda client, db: client.get_partitions_by_filter_req(
            GetPartitionsByFilterRequest("hive", db, "t", f"ds > '{DAYS[0]}'", 1)
        ),
    ),
    "names for partitions": (
        lambda client, db: client.get_partitions_by_names(db, "t", NAMES[1:]),
        lambda client, db: (
            client.get_partitions_ps_with_auth_req(
                GetPartitionsPsWithAuthRequest("hive", db, "t", partNames=NAMES[1:])
            ).partitions
        ),
    ),
}


class TestReads:
    @pytest.mark.parametrize("question", QUESTIONS)
    def test_as_the_older_form(self, client: ThriftClient, filled: str, question: str) -> None:
        older, newer = QUESTIONS[question]
        assert newer(client, filled) == older(client, filled) != []

    def test_of_no_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException):
            client.get_partitions_by_filter_req(GetPartitionsByFilterRequest("hive", db, "no_such", "ds = '1'"))
        with refused(NoSuchObjectException):
            client.get_partitions_ps_with_auth_req(GetPartitionsPsWithAuthRequest("hive", db, "no_such"))

    @pytest.mark.parametrize("values", [None, [], [""]])
    @pytest.mark.parametrize("reader", [{}, {"userName": "alice", "groupNames": ["staff"]}])
    def test_with_privileges_without_values(
        self, client: ThriftClient, filled: str, values: list[str] | None, reader: dict[str, object]
    ) -> None:
        """That is how Hive 4's listPartitionsWithAuthInfo asks for all."""
        request = GetPartitionsPsWithAuthRequest("hive", filled, "t", partVals=values, **reader)
        assert client.get_partitions_ps_with_auth_req(request).partitions == client.get_partitions(filled, "t", -1)
        found = client.get_partitions_ps_with_auth_req(request.replace(maxParts=2)).partitions
        assert [one.values for one in found] == [[day] for day in DAYS[:2]]

    def test_names_of_a_table_that_is_not_there_yet(self, client: ThriftClient, db: str) -> None:
        names = PartitionsRequest("hive", db, "t")
        assert client.fetch_partition_names_req(names) == []
        client.create_table(table(db, keys=("ds",)))
        assert client.fetch_partition_names_req(names) == []
        client.add_partition(partition(db, "t", DAYS[0]))
        assert client.fetch_partition_names_req(names) == NAMES[:1]
        client.drop_table(db, "t", True)
        assert client.fetch_partition_names_req(names) == []
        with refused(NoSuchObjectException, MetaException):
            client.fetch_partition_names_req(PartitionsRequest("hive", db, ""))

    def test_by_names_that_are_not_said(self, client: ThriftClient, filled: str) -> None:
        with refused(MetaException):
            client.get_partitions_by_names_req(GetPartitionsByNamesRequest(filled, "t"))
        assert client.get_partitions_by_names_req(GetPartitionsByNamesRequest(filled, "t", [])).partitions == []

    @pytest.mark.parametrize("statistics", [False, True])
    def test_by_names_of_a_missing_table(self, client: ThriftClient, db: str, statistics: bool) -> None:
        how = {"get_col_stats": True, "engine": "hive"} if statistics else {}
        for name in (db, "no_such"):
            with refused(InvalidObjectException):
                client.get_partitions_by_names_req(GetPartitionsByNamesRequest(name, "t", NAMES, **how))

    def test_by_names_with_an_empty_name(self, client: ThriftClient, filled: str) -> None:
        for name, table_name in (("@hive#!", "t"), (filled, "")):
            with refused(NoSuchObjectException):
                client.get_partitions_by_names_req(GetPartitionsByNamesRequest(name, table_name, NAMES))

    def test_in_part(self, client: ThriftClient, filled: str) -> None:
        """Without columns, or with some parameters alone, whatever selects the partitions."""
        whole = client.get_partitions(filled, "t", -1)
        for read in self.reads(client, filled):
            bare = read(skipColumnSchemaForPartition=True)
            assert bare == [one.replace(sd=one.sd.replace(cols=[])) for one in whole]
            assert [set(one.parameters) for one in read(includeParamKeyPattern="a%")] == [{"a"}] * 3
            assert [set(one.parameters) for one in read(excludeParamKeyPattern="b")] == [
                set(one.parameters) - {"b"} for one in whole
            ]
            assert read(includeParamKeyPattern="", excludeParamKeyPattern="") == whole

    @pytest.mark.usefixtures("newest")
    def test_selected_by_an_expression_in_part(self, client: ThriftClient, filled: str) -> None:
        """What a standalone server of Hive 4 can't decide."""
        request = PartitionsByExprRequest(
            filled, "t", serialised("ds is not null"), skipColumnSchemaForPartition=True, includeParamKeyPattern="a%"
        )
        [spec] = client.get_partitions_spec_by_expr(request).partitionsSpec
        found = client.get_partitions_by_expr(request).partitions
        assert found == spec.partitionList.partitions
        assert [(one.sd.cols, set(one.parameters)) for one in found] == [([], {"a"})] * 3

    @staticmethod
    def reads(client: ThriftClient, db: str) -> list[Callable[..., list[Partition]]]:
        return [
            lambda **how: client.get_partitions_req(PartitionsRequest("hive", db, "t", **how)).partitions,
            lambda **how: client.get_partitions_by_filter_req(
                GetPartitionsByFilterRequest("hive", db, "t", "ds > ''", **how)
            ),
            lambda **how: (
                client.get_partitions_by_names_req(GetPartitionsByNamesRequest(db, "t", NAMES, **how)).partitions
            ),
            lambda **how: (
                client.get_partitions_by_names_req(
                    GetPartitionsByNamesRequest(db, "t", NAMES, get_col_stats=True, **how)
                ).partitions
            ),
            lambda **how: (
                client.get_partitions_ps_with_auth_req(
                    GetPartitionsPsWithAuthRequest("hive", db, "t", [""], **how)
                ).partitions
            ),
        ]


class TestPartitions:
    def test_appended(self, client: ThriftClient, filled: str) -> None:
        by_values = client.append_partition_req(
            AppendPartitionsRequest(dbName=filled, tableName="t", partVals=["2026-02-01"])
        )
        by_name = client.append_partition_req(
            AppendPartitionsRequest(dbName=filled, tableName="t", name="ds=2026-02-02")
        )
        older = client.append_partition(filled, "t", ["2026-02-03"])
        assert (by_values.values, by_name.values) == (["2026-02-01"], ["2026-02-02"])
        assert by_values.sd.cols == older.sd.cols
        assert by_values.sd.location == older.sd.location.replace("2026-02-03", "2026-02-01")
        with refused(AlreadyExistsException):
            client.append_partition_req(AppendPartitionsRequest(dbName=filled, tableName="t", partVals=["2026-02-01"]))
        with refused(MetaException):
            client.append_partition_req(AppendPartitionsRequest(dbName=filled, tableName="t"))
        with refused(InvalidObjectException):
            client.append_partition_req(AppendPartitionsRequest(dbName=filled, tableName="no_such", partVals=["1"]))

    def test_dropped(self, client: ThriftClient, filled: str, home: Path) -> None:
        assert client.drop_partition_req(DropPartitionRequest("hive", filled, "t", partVals=[DAYS[0]], deleteData=True))
        assert client.drop_partition_req(DropPartitionRequest("hive", filled, "t", partName=NAMES[1]))
        assert client.get_partition_names(filled, "t", -1) == NAMES[2:]
        assert [(home / "t" / name).exists() for name in NAMES] == [False, True, True]
        with refused(NoSuchObjectException):
            client.drop_partition_req(DropPartitionRequest("hive", filled, "t", partVals=[DAYS[0]]))
        with refused(MetaException):
            client.drop_partition_req(DropPartitionRequest("hive", filled, "t"))

    def test_added_without_columns(self, client: ThriftClient, filled: str) -> None:
        """They have the table's, which come once with the answer."""
        own = columns("id:bigint", "name:string")
        new = partition(filled, "t", "2026-02-01", sd=storage(cols=[]))
        request = AddPartitionsRequest(filled, "t", [new], False, skipColumnSchemaForPartition=True)
        answer = client.add_partitions_req(request)
        assert answer.partitionColSchema == own
        assert [one.sd.cols for one in answer.partitions] == [[]]
        assert client.get_partition(filled, "t", ["2026-02-01"]).sd.cols == own

    def test_altered_without_columns(self, client: ThriftClient, filled: str) -> None:
        """They get the table's, which may have changed since they were made."""
        changed = stored(client, filled)
        changed.sd.cols = columns("id:bigint", "name:string", "more:int")
        client.alter_table(filled, "t", changed)
        before = client.get_partition(filled, "t", [DAYS[0]])
        bare = before.replace(sd=before.sd.replace(cols=[]), parameters={**before.parameters, "c": "d"})
        client.alter_partitions_req(
            AlterPartitionsRequest(dbName=filled, tableName="t", partitions=[bare], skipColumnSchemaForPartition=True)
        )
        after = client.get_partition(filled, "t", [DAYS[0]])
        assert after.parameters["c"] == "d"
        assert before.sd.cols == columns("id:bigint", "name:string")
        assert after.sd.cols == changed.sd.cols

    def test_dropped_and_returned_without_columns(self, client: ThriftClient, filled: str) -> None:
        request = DropPartitionsRequest(filled, "t", RequestPartsSpec(names=NAMES), skipColumnSchemaForPartition=True)
        assert [one.sd.cols for one in client.drop_partitions_req(request).partitions] == [[]] * 3


def statistics(db: str, part: str | None, *names: str) -> ColumnStatistics:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1, histogram=b"sketch"))
    return ColumnStatistics(
        ColumnStatisticsDesc(isTblLevel=part is None, dbName=db, tableName="t", partName=part),
        [ColumnStatisticsObj(name, "bigint", data) for name in names],
    )


class TestStatistics:
    @pytest.fixture
    def counted(self, client: ThriftClient, db: str) -> str:
        """Table `t` of two days with statistics of columns `a` and `b`, the table's and the partitions'."""
        client.create_table(table(db, keys=("ds",), sd=storage("a:bigint", "b:bigint")))
        client.add_partitions([partition(db, "t", day, sd=storage("a:bigint", "b:bigint")) for day in DAYS[:2]])
        client.update_table_column_statistics(statistics(db, None, "a", "b"))
        for name in NAMES[:2]:
            client.update_partition_column_statistics(statistics(db, name, "a", "b"))
        return db

    @staticmethod
    def left(client: ThriftClient, db: str) -> dict[str, str]:
        """The columns of which there are statistics: by partition, the table's own under its name."""
        own = client.get_table_statistics_req(TableStatsRequest(db, "t", ["a", "b"])).tableStats
        others = client.get_partitions_statistics_req(PartitionsStatsRequest(db, "t", ["a", "b"], NAMES)).partStats
        found = {"t": own, **others}
        return {name: "".join(sorted(one.colName for one in value)) for name, value in found.items()}

    def test_histogram_is_not_returned(self, client: ThriftClient, counted: str) -> None:
        """As other sketches: who merges statistics wants them, not who reads them."""
        [found] = client.get_table_statistics_req(TableStatsRequest(counted, "t", ["a"], "hive", "hive")).tableStats
        assert found.statsData.longStats.histogram is None

    @pytest.mark.usefixtures("newest")
    @pytest.mark.parametrize(
        ("what", "left"),
        [
            ({"tableLevel": True}, {"t": "", NAMES[0]: "ab", NAMES[1]: "ab"}),
            ({"tableLevel": True, "col_names": ["A"]}, {"t": "b", NAMES[0]: "ab", NAMES[1]: "ab"}),
            ({"part_names": NAMES[:1]}, {"t": "ab", NAMES[1]: "ab"}),
            ({"part_names": NAMES[:2], "col_names": ["b"]}, {"t": "ab", NAMES[0]: "a", NAMES[1]: "a"}),
            ({"col_names": ["a"]}, {"t": "ab", NAMES[0]: "b", NAMES[1]: "b"}),
            ({}, {"t": "ab"}),
            ({"engine": "other"}, {"t": "ab", NAMES[0]: "ab", NAMES[1]: "ab"}),
        ],
        ids=["table", "table's column", "partition", "partitions' column", "column", "partitions", "engine"],
    )
    def test_deleted(self, client: ThriftClient, counted: str, what: dict[str, Any], left: dict[str, str]) -> None:
        assert client.delete_column_statistics_req(DeleteColumnStatisticsRequest(None, counted, "t", **what))
        assert self.left(client, counted) == left

    @pytest.mark.usefixtures("newest")
    def test_as_the_older_form(self, client: ThriftClient, counted: str) -> None:
        """What was deleted counts as accurate no more."""
        client.delete_column_statistics_req(DeleteColumnStatisticsRequest(None, counted, "t", NAMES[:1], ["a"]))
        client.delete_partition_column_statistics(counted, "t", NAMES[1], "a", None)
        client.delete_column_statistics_req(DeleteColumnStatisticsRequest(None, counted, "t", None, ["a"], None, True))
        client.delete_table_column_statistics(counted, "t", "b", None)
        first, second = (one.parameters for one in client.get_partitions(counted, "t", -1))
        assert first["COLUMN_STATS_ACCURATE"] == second["COLUMN_STATS_ACCURATE"]
        assert '"a"' not in first["COLUMN_STATS_ACCURATE"]
        assert "COLUMN_STATS" not in stored(client, counted).parameters["COLUMN_STATS_ACCURATE"]

    @pytest.mark.usefixtures("newest")
    def test_not_deleted(self, client: ThriftClient, counted: str) -> None:
        with refused(NoSuchObjectException):
            client.delete_column_statistics_req(DeleteColumnStatisticsRequest(None, counted, "no_such"))
        with refused(NoSuchObjectException):
            client.delete_column_statistics_req(DeleteColumnStatisticsRequest(None, counted, "t", ["ds=1999-01-01"]))
        changed = stored(client, counted)
        changed.parameters["transactional"] = "true"
        client.alter_table(counted, "t", changed)
        with refused(MetaException, message="transactional"):
            client.delete_column_statistics_req(DeleteColumnStatisticsRequest(None, counted, "t"))


class TestCompactions:
    def test_aborted(self, client: ThriftClient, unused_name: str) -> None:
        """One that waits is taken out of the queue; any other is left as it is."""
        waiting = client.compact2(CompactionRequest(unused_name, "t", type=CompactionType.MAJOR, poolName="forms")).id
        request = CompactionRequest(unused_name, "u", type=CompactionType.MAJOR)
        assert client.submit_for_cleanup(request, 7, 3)
        [done] = client.show_compact(ShowCompactRequest(dbName=unused_name, tbName="u")).compacts
        assert (done.state, done.hightestTxnId, done.txnId) == ("ready for cleaning", 7, 3)
        ids = [waiting, done.id, 1 << 40]
        answer = client.abort_Compactions(AbortCompactionRequest(ids)).abortedcompacts
        assert {number: one.status for number, one in answer.items()} == dict(
            zip(ids, ["Success", "Error", "Error"], strict=True)
        )
        assert [one.compactionId for one in answer.values()] == list(answer)
        [shown] = client.show_compact(ShowCompactRequest(dbName=unused_name, tbName="t")).compacts
        assert shown.state == "aborted"
        assert client.abort_Compactions(AbortCompactionRequest([waiting])).abortedcompacts[waiting].status == "Error"

    @pytest.mark.usefixtures("newest")
    def test_of_a_table_that_optimises_itself(self, client: ThriftClient, unused_name: str) -> None:
        request = CompactionRequest(unused_name, "t", type=CompactionType.SMART_OPTIMIZE, poolName="forms")
        number = client.compact2(request).id
        client.abort_Compactions(AbortCompactionRequest([number]))
        [shown] = client.show_compact(ShowCompactRequest(dbName=unused_name)).compacts
        assert shown.type == CompactionType.SMART_OPTIMIZE


class TestTransactions:
    @pytest.mark.usefixtures("newest")
    def test_replayed(self, client: ThriftClient, unused_name: str) -> None:
        policy = f"{unused_name}.*"
        [first, second] = client.open_txns(
            OpenTxnRequest(2, "me", "host", replPolicy=policy, replSrcTxnIds=[70, 71], txn_type=TxnType.REPL_CREATED)
        ).txn_ids
        found = client.get_replayed_txns_for_policy(policy).replTxnMapEntry
        assert found == {"70": str(first), "71": str(second)}
        assert client.get_replayed_txns_for_policy("no such policy").replTxnMapEntry == {}

    def test_nothing_is_kept(self, client: ThriftClient) -> None:
        client.add_write_ids_to_min_history(1, {"db.t": 1})
        assert client.get_all_write_event_info(GetAllWriteEventInfoRequest(1)) == []


class TestProperties:
    @pytest.mark.usefixtures("newest")
    def test_of_no_namespace(self, client: ThriftClient) -> None:
        with refused(NoSuchObjectException, message="hms"):
            client.get_properties(PropertyGetRequest("hms"))
        with refused(NoSuchObjectException, message="hms"):
            client.set_properties(PropertySetRequest("hms", {"a": "b"}))


class TestNotifications:
    @pytest.mark.usefixtures("newest")
    def test_of_some_types(self, client: ThriftClient, db: str) -> None:
        """Those that are named, instead of those that are not."""
        start = client.get_current_notificationEventId().eventId
        client.create_table(table(db, keys=("ds",)))
        client.add_partition(partition(db, "t", "1"))
        client.drop_table(db, "t", True)
        request = NotificationEventRequest(start, dbName=db, eventTypeList=["CREATE_TABLE", "DROP_TABLE"])
        assert [one.eventType for one in client.get_next_notification(request).events] == ["CREATE_TABLE", "DROP_TABLE"]
