"""Hive 4's own Java client, unchanged, against our server."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    Catalog,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CommitTxnRequest,
    DataConnector,
    DataOperationType,
    ForeignKeysRequest,
    Function,
    FunctionType,
    GetTableRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    LongColumnStatsData,
    NoSuchObjectException,
    NotNullConstraintsRequest,
    PartitionsByExprRequest,
    PrimaryKeysRequest,
    PrincipalType,
    ResourceType,
    ResourceUri,
    ShowLocksRequest,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    TxnAbortedException,
)
from tests.hive_client.conftest import HiveClient
from tests.interop import java
from tests.support.builders import columns, database, partition, table
from tests.support.expressions import Planner, all_expressions, serialised
from tests.support.jvm import SMALL, running
from tests.support.reference import missing
from tests.support.reference4 import HADOOP, NEWEST, NOT_OF_HADOOP
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
DEFAULT = "__HIVE_DEFAULT_PARTITION__"
EVERYTHING = -1


@pytest.fixture(scope="module")
def jvm(class_path: Callable[..., list[Path]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A JVM with Hive 4's classes."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    program = java.find(17, 24)
    if program is None:
        pytest.skip("Hive 4's client needs Java 17 (Debian: apt-get install openjdk-17-jre-headless)")
    jars = [*class_path(*NEWEST.server, exclusions=("*:*",)), *class_path(*HADOOP, exclusions=tuple(NOT_OF_HADOOP))]
    directory = tmp_path_factory.mktemp("hive4-client")
    with running(jars, directory, java=program, options=["-Xmx1g", *SMALL]) as gateway:
        yield gateway.jvm


@pytest.fixture(scope="module")
def client(jvm: Any, metastore_server: MetastoreServer) -> Iterator[HiveClient]:
    made = HiveClient(jvm, metastore_server.host, metastore_server.port)
    yield made
    made.close()


@pytest.fixture
def db(client: HiveClient) -> Iterator[str]:
    """The name of an empty database, dropped afterwards with all that is in it."""
    name = f"hive4_{next(NUMBERS)}"
    client.createDatabase(database(name))
    yield name
    with suppress(NoSuchObjectException):
        client.dropDatabase(name, True, True, True)


def partitions(client: HiveClient, db: str) -> list[list[str]]:
    return [each.values for each in client.listPartitions("hive", db, "t", EVERYTHING)]


def statistics(db: str, nulls: int, part: str | None = None) -> ColumnStatistics:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(1, 9, nulls, 5))
    return ColumnStatistics(
        statsDesc=ColumnStatisticsDesc(isTblLevel=part is None, dbName=db, tableName="t", partName=part),
        statsObj=[ColumnStatisticsObj("id", "bigint", data)],
        engine="hive",
    )


def test_catalogs(client: HiveClient, tmp_path: Path) -> None:
    client.createCatalog(Catalog("hive4_catalog", "first", str(tmp_path)))
    assert "hive4_catalog" in client.getCatalogs()
    client.alterCatalog("hive4_catalog", Catalog("hive4_catalog", "second", str(tmp_path)))
    assert client.getCatalog("hive4_catalog").description == "second"
    client.createDatabase(database("inner", catalogName="hive4_catalog"))
    assert set(client.getAllDatabases("hive4_catalog")) == {"default", "inner"}
    client.dropDatabase("hive4_catalog", "inner", True, False, True)
    client.dropCatalog("hive4_catalog")
    with pytest.raises(NoSuchObjectException):
        client.getCatalog("hive4_catalog")


def test_databases(client: HiveClient, db: str) -> None:
    with pytest.raises(AlreadyExistsException):
        client.createDatabase(database(db))
    found = client.getDatabase(db)
    found.parameters = {"k": "v"}
    found.ownerName, found.ownerType = "alice", PrincipalType.USER
    client.alterDatabase(db, found)
    changed = client.getDatabase(db)
    assert (changed.parameters, changed.ownerName) == ({"k": "v"}, "alice")
    assert db in client.getDatabases(f"{db}*")
    client.dropDatabase(db)
    with pytest.raises(NoSuchObjectException):
        client.getDatabase(db)


class TestTables:
    def test_created_altered_renamed_dropped(self, client: HiveClient, db: str) -> None:
        client.createTable(table(db, parameters={"a": "1"}))
        found = client.getTable(db, "t")
        assert [(each.name, each.type) for each in found.sd.cols] == [("id", "bigint"), ("name", "string")]
        found.sd.cols = columns("id:bigint", "name", "more:double")
        client.alter_table(db, "t", found)
        renamed = client.getTable(db, "t")
        assert len(renamed.sd.cols) == 3
        renamed.tableName = "u"
        client.alter_table(db, "t", renamed)
        assert client.getAllTables(db) == ["u"]
        assert client.tableExists(db, "u") and not client.tableExists(db, "t")
        client.dropTable(db, "u", True, False)
        with pytest.raises(NoSuchObjectException):
            client.getTable(db, "u")

    def test_found(self, client: HiveClient, db: str) -> None:
        for name in ("a1", "a2", "b"):
            client.createTable(table(db, name))
        assert sorted(client.getTables(db, "a*")) == ["a1", "a2"]
        assert sorted(each.tableName for each in client.getTableObjectsByName(db, ["a1", "b"])) == ["a1", "b"]
        assert client.getTable(GetTableRequest(db, "b")).tableName == "b"
        assert sorted(each.tableName for each in client.getTableMeta(db, "a*", ["MANAGED_TABLE"])) == ["a1", "a2"]


class TestPartitions:
    @pytest.fixture(autouse=True)
    def keyed(self, client: HiveClient, db: str) -> None:
        client.createTable(table(db, keys=("ds", "hr:int")))
        new = [partition(db, "t", day, hour) for day in ("2026-01-01", "2026-01-02") for hour in "12"]
        assert len(client.add_partitions(new, True, True)) == 4

    def test_read(self, client: HiveClient, db: str) -> None:
        assert len(partitions(client, db)) == 4
        assert client.getPartition(db, "t", "ds=2026-01-01/hr=2").values == ["2026-01-01", "2"]
        found = client.listPartitionsByFilter("hive", db, "t", "ds = '2026-01-02' and hr > 1", EVERYTHING)
        assert [each.values for each in found] == [["2026-01-02", "2"]]
        names = client.listPartitionNames("hive", db, "t", ["2026-01-01"], EVERYTHING)
        assert names == ["ds=2026-01-01/hr=1", "ds=2026-01-01/hr=2"]
        assert client.getNumPartitionsByFilter(db, "t", "hr = 1") == 2
        by_names = client.getPartitionsByNames(db, "t", ["ds=2026-01-02/hr=1"])
        assert [each.values for each in by_names] == [["2026-01-02", "1"]]

    def test_appended_altered_renamed_dropped(self, client: HiveClient, db: str) -> None:
        added = client.appendPartition(db, "t", ["2026-01-03", "1"])
        added.parameters["k"] = "v"
        client.alter_partition(db, "t", added)
        assert client.getPartition(db, "t", added.values).parameters["k"] == "v"
        client.renamePartition(db, "t", ["2026-01-03", "1"], added.replace(values=["2026-01-03", "9"]))
        assert ["2026-01-03", "9"] in partitions(client, db)
        client.dropPartition(db, "t", ["2026-01-03", "9"], True)
        assert len(partitions(client, db)) == 4
        with pytest.raises(AlreadyExistsException):
            client.add_partition(partition(db, "t", "2026-01-01", "1"))


class Hive4Planner(Planner):
    """Builds and writes expressions as the planner of Hive 4 does."""

    def constant(self, value: Any, kind: str = "string") -> Any:
        if kind == "date":
            value = self._hive.common.type.Date.valueOf(value)
        return self._hive.ql.plan.ExprNodeConstantDesc(self._types.getPrimitiveTypeInfo(kind), value)

    def serialise(self, expression: Any) -> bytes:
        return bytes(self._hive.ql.exec.SerializationUtilities.serializeObjectWithTypeInformation(expression))


class TestExpressions:
    """Conditions that Hive 4's planner wrote find what the same ones of Hive 2.3's do."""

    @pytest.fixture
    def plan(self, jvm: Any) -> Hive4Planner:
        return Hive4Planner(jvm)

    @pytest.fixture(autouse=True)
    def keyed(self, client: HiveClient, db: str) -> None:
        client.createTable(table(db, keys=("ds", "hr")))
        texts = [("2020-01-01", "10"), ("2020-01-01", "2"), ("2020-01-02", "1"), ("2020-01-02", "10"), ("Z", "1")]
        client.add_partitions([partition(db, "t", *values) for values in (*texts, (DEFAULT, "1"))])
        client.createTable(table(db, "typed", keys=("n:int", "d:date")))
        typed = [("1", "2020-01-01"), ("2", "2020-01-02"), ("10", "2020-02-01"), ("7", DEFAULT)]
        client.add_partitions([partition(db, "typed", *values) for values in typed])

    def test_found(self, client: HiveClient, db: str, plan: Hive4Planner, metastore_server: MetastoreServer) -> None:
        with ThriftClient(metastore_server.host, metastore_server.port) as older:
            for text, expression in all_expressions(plan).items():
                name = "typed" if text.startswith(("n ", "d ")) else "t"
                request = PartitionsByExprRequest(db, name, serialised(text), DEFAULT)
                expected = [each.values for each in older.get_partitions_by_expr(request).partitions]
                found = client.jvm.java.util.ArrayList()
                data = plan.serialise(expression)
                unsure = client.listPartitionsByExpr(db, name, data, DEFAULT, EVERYTHING, found)
                assert ([each.values for each in client.to_python(found)], unsure) == (expected, False), text

    def test_dropped(self, client: HiveClient, db: str, plan: Hive4Planner) -> None:
        pairs = client.jvm.java.util.ArrayList()
        for day in ("2020-01-01", "Z"):
            expression = plan.call("OPEqual", plan.column("ds", "string"), plan.constant(day))
            pairs.add(client.jvm.org.apache.commons.lang3.tuple.Pair.of(0, plan.serialise(expression)))
        dropped = client.dropPartitions(db, "t", pairs, True, False, True)
        assert sorted(each.values[0] for each in dropped) == ["2020-01-01", "2020-01-01", "Z"]
        assert len(partitions(client, db)) == 3


class TestStatistics:
    def test_of_a_table(self, client: HiveClient, db: str) -> None:
        client.createTable(table(db))
        assert client.updateTableColumnStatistics(statistics(db, 7))
        (found,) = client.getTableColumnStatistics(db, "t", ["id"], "hive")
        assert found.statsData.longStats.numNulls == 7
        assert client.deleteTableColumnStatistics(db, "t", "id", "hive")
        assert client.getTableColumnStatistics(db, "t", ["id"], "hive") == []

    def test_of_partitions(self, client: HiveClient, db: str) -> None:
        client.createTable(table(db, keys=("k",)))
        client.add_partitions([partition(db, "t", value) for value in "12"])
        for value in "12":
            assert client.updatePartitionColumnStatistics(statistics(db, int(value), f"k={value}"))
        found = client.getPartitionColumnStatistics(db, "t", ["k=1", "k=2"], ["id"], "hive")
        assert {name: each[0].statsData.longStats.numNulls for name, each in found.items()} == {"k=1": 1, "k=2": 2}
        together = client.getAggrColStatsFor(db, "t", ["id"], ["k=1", "k=2"], "hive")
        assert (together.partsFound, together.colStats[0].statsData.longStats.numNulls) == (2, 3)
        assert client.deletePartitionColumnStatistics(db, "t", "k=1", "id", "hive")
        assert list(client.getPartitionColumnStatistics(db, "t", ["k=1", "k=2"], ["id"], "hive")) == ["k=2"]


def test_functions(client: HiveClient, db: str) -> None:
    uris = [ResourceUri(ResourceType.JAR, "file:/a.jar")]
    made = Function("f", db, "com.example.F", "alice", PrincipalType.USER, 1, FunctionType.JAVA, uris)
    client.createFunction(made)
    assert client.getFunction(db, "f").className == "com.example.F"
    client.alterFunction(db, "f", made.replace(className="com.example.G"))
    assert [each.className for each in client.getAllFunctions().functions if each.dbName == db] == ["com.example.G"]
    client.dropFunction(db, "f")
    assert client.getFunctions(db, "*") == []


def test_constraints(client: HiveClient, db: str) -> None:
    key = SQLPrimaryKey(db, "t", "id", 1, "pk", False, False, True)
    required = SQLNotNullConstraint("hive", db, "t", "name", "nn", False, False, True)
    client.createTableWithConstraints(table(db), [key], [], [], [required], [], [])
    client.createTable(table(db, "u"))
    client.addForeignKey(
        [SQLForeignKey(db, "t", "id", db, "u", "id", 1, 0, 0, "fk", "pk", False, False, True)],
    )
    assert [each.pk_name for each in client.getPrimaryKeys(PrimaryKeysRequest(db, "t"))] == ["pk"]
    assert [each.nn_name for each in client.getNotNullConstraints(NotNullConstraintsRequest("hive", db, "t"))] == ["nn"]
    request = ForeignKeysRequest(db, "t", db, "u")
    assert [each.fk_name for each in client.getForeignKeys(request)] == ["fk"]
    client.dropConstraint(db, "u", "fk")
    assert client.getForeignKeys(request) == []


class TestTransactions:
    def test_write_ids(self, client: HiveClient, db: str) -> None:
        one, other = client.openTxn("alice"), client.openTxn("alice")
        assert client.allocateTableWriteId(one, db, "t") == 1
        assert client.allocateTableWriteId(other, db, "t") == 2
        client.commitTxn(one)
        client.rollbackTxn(other)
        seen = client.getValidWriteIds(f"{db}.t")
        assert (seen.getHighWatermark(), seen.isWriteIdValid(1), seen.isWriteIdAborted(2)) == (2, True, True)
        assert client.getMaxAllocatedWriteId(db, "t") == 2
        assert client.getValidTxns().isTxnAborted(other)

    def test_conflicts(self, client: HiveClient, db: str) -> None:
        numbers = [client.openTxn("alice") for _ in range(2)]
        component = LockComponent(
            type=LockType.SHARED_WRITE,
            level=LockLevel.TABLE,
            dbname=db,
            tablename="t",
            operationType=DataOperationType.UPDATE,
            isTransactional=True,
        )
        first, second = (client.lock(LockRequest([component], number, "alice", "here")) for number in numbers)
        assert (first.state, second.state) == (LockState.ACQUIRED, LockState.ACQUIRED)
        client.commitTxn(CommitTxnRequest(txnid=numbers[0], exclWriteEnabled=False))
        with pytest.raises(TxnAbortedException):
            client.commitTxn(CommitTxnRequest(txnid=numbers[1], exclWriteEnabled=False))

    def test_locks(self, client: HiveClient, db: str) -> None:
        component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, db, "t", isTransactional=False)
        component.operationType = DataOperationType.NO_TXN
        request = LockRequest([component], user="alice", hostname="here")
        held, waiting = client.lock(request), client.lock(request)
        assert (held.state, waiting.state) == (LockState.ACQUIRED, LockState.WAITING)
        client.heartbeat(0, held.lockid)
        assert len(client.showLocks(ShowLocksRequest(db)).locks) == 2
        client.unlock(held.lockid)
        assert client.checkLock(waiting.lockid).state == LockState.ACQUIRED
        client.unlock(waiting.lockid)


def test_notifications(client: HiveClient, db: str) -> None:
    before = client.getCurrentNotificationEventId().eventId
    client.createTable(table(db))
    client.dropTable(db, "t")
    events = client.getNextNotification(before, 100, None).events
    assert [each.eventType for each in events if each.dbName == db] == ["CREATE_TABLE", "DROP_TABLE"]
    assert client.getCurrentNotificationEventId().eventId == before + len(events)


def test_data_connectors(client: HiveClient) -> None:
    client.createDataConnector(DataConnector(name="hive4_connector", type="mysql", url="jdbc:mysql://host:3306"))
    assert client.getDataConnector("hive4_connector").url == "jdbc:mysql://host:3306"
    client.dropDataConnector("hive4_connector", False, False)
    assert "hive4_connector" not in client.getAllDataConnectorNames()
