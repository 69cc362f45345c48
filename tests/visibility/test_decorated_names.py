"""`t@includeuncommit` is table `t` with all its partitions, for reading only."""

import pytest
from thrift.Thrift import TApplicationException, TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPrimaryKeyRequest,
    AllocateTableWriteIdsRequest,
    AllTableConstraintsRequest,
    CommitTxnRequest,
    FieldSchema,
    ForeignKeysRequest,
    GetFieldsRequest,
    GetPartitionRequest,
    GetSchemaRequest,
    GetTableRequest,
    GetTablesExtRequest,
    GetTablesRequest,
    GetValidWriteIdsRequest,
    InvalidObjectException,
    InvalidOperationException,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    NoSuchObjectException,
    OpenTxnRequest,
    Partition,
    PartitionsByExprRequest,
    PrimaryKeysRequest,
    ShowLocksRequest,
    SQLPrimaryKey,
    TableStatsRequest,
    UnlockRequest,
)
from lake.protocol.services import METHODS
from metastore.api import load
from metastore.api.methods import HANDLERS
from metastore.api.uncommitted import Uncommitted
from tests.support.builders import table, view
from tests.support.expect import refused
from tests.support.expressions import serialised
from tests.visibility.flags import readiness
from tests.visibility.readers import DECORATION, Readers
from tests.visibility.writers import ALL, HIDDEN, HIDDEN_NAME, WRITERS, Writer, fill

load()

ALIAS = "t" + DECORATION
READY_NAME = "ds=2020-01-01/hr=2"
WRITING = {Uncommitted.NAMED, Uncommitted.SELECTED, Uncommitted.STREAMING, Uncommitted.TIMELINE}


@pytest.fixture(autouse=True)
def filled(client: ThriftClient, db: str) -> None:
    fill(client, db)


class TestReads:
    @pytest.mark.parametrize("name", [ALIAS, "T@includeUnCommit", "t@INCLUDEUNCOMMIT", f" {ALIAS} "])
    def test_in_any_case(self, client: ThriftClient, db: str, name: str) -> None:
        assert client.get_partition_names(db, name, -1) == [HIDDEN_NAME, READY_NAME]
        assert client.get_table(db, name).tableName == ALIAS

    def test_with_a_catalog(self, client: ThriftClient, db: str) -> None:
        where = f"@hive#{db}"
        assert client.get_partition_names(where, ALIAS, -1) == [HIDDEN_NAME, READY_NAME]
        assert client.get_table(where, ALIAS).tableName == ALIAS
        found = client.get_table_req(GetTableRequest(dbName=db, tblName=ALIAS, catName="hive")).table
        assert (found.catName, found.dbName, found.tableName) == ("hive", db, ALIAS)
        one = client.get_partition_req(GetPartitionRequest("hive", db, ALIAS, HIDDEN)).partition
        assert one.values == HIDDEN and one.tableName == ALIAS
        with refused(NoSuchObjectException):
            client.get_table_req(GetTableRequest(dbName=db, tblName=ALIAS, catName="nosuch"))

    def test_it_is_the_table(self, client: ThriftClient, db: str) -> None:
        assert client.get_table(db, ALIAS).replace(tableName="t") == client.get_table(db, "t")

    def test_tables_are_answered_under_the_name_they_were_asked_by(self, client: ThriftClient, db: str) -> None:
        names = ["t", ALIAS, "T@IncludeUncommit", "u" + DECORATION, "nosuch" + DECORATION]
        expected = ["t", ALIAS, "u" + DECORATION]
        assert [t.tableName for t in client.get_table_objects_by_name(db, names)] == expected
        found = client.get_table_objects_by_name_req(GetTablesRequest(dbName=db, tblNames=names)).tables
        assert [t.tableName for t in found] == expected

    def test_partitions_are_answered_under_the_name_they_were_asked_by(self, client: ThriftClient, db: str) -> None:
        request = PartitionsByExprRequest(dbName=db, tblName=ALIAS, expr=serialised(ALL), maxParts=-1)
        answers: list[list[Partition]] = [
            [client.get_partition(db, ALIAS, HIDDEN)],
            [client.get_partition_by_name(db, ALIAS, HIDDEN_NAME)],
            [client.get_partition_with_auth(db, ALIAS, HIDDEN, "me", [])],
            client.get_partitions(db, ALIAS, -1),
            client.get_partitions_ps(db, ALIAS, ["2020-01-01"], -1),
            client.get_partitions_by_filter(db, ALIAS, "hr = '1'", -1),
            client.get_partitions_by_names(db, ALIAS, [HIDDEN_NAME]),
            client.get_partitions_by_expr(request).partitions,
        ]
        for answer in answers:
            assert answer[0].values == HIDDEN
            assert {one.tableName for one in answer} == {ALIAS}
        for specs in (
            client.get_partitions_pspec(db, ALIAS, -1),
            client.get_partitions_spec_by_expr(request).partitionsSpec,
        ):
            for spec in specs:
                inside = spec.partitionList.partitions
                assert spec.tableName == ALIAS and {one.tableName for one in inside} == {ALIAS} and len(inside) == 2

    def test_statistics_are_answered_under_the_name_they_were_asked_by(self, client: ThriftClient, db: str) -> None:
        of_partition = client.get_partition_column_statistics(db, ALIAS, HIDDEN_NAME, "id")
        of_table = client.get_table_column_statistics(db, ALIAS, "id")
        assert [found.statsDesc.tableName for found in (of_partition, of_table)] == [ALIAS, ALIAS]
        request = TableStatsRequest(dbName=db, tblName=ALIAS, colNames=["id"])
        assert len(client.get_table_statistics_req(request).tableStats) == 1

    def test_columns(self, client: ThriftClient, db: str) -> None:
        for name in (ALIAS, ALIAS + ".id"):
            assert [f.name for f in client.get_fields(db, name)] == ["id", "name"]
        assert [f.name for f in client.get_schema(db, ALIAS)] == ["id", "name", "ds", "hr"]
        fields = client.get_fields_req(GetFieldsRequest(dbName=db, tblName=ALIAS)).fields
        schema = client.get_schema_req(GetSchemaRequest(dbName=db, tblName=ALIAS)).fields
        assert [len(fields), len(schema)] == [2, 4]

    def test_constraints(self, client: ThriftClient, db: str) -> None:
        """They are the table's, whose name they bear."""
        client.add_primary_key(AddPrimaryKeyRequest([SQLPrimaryKey(db, "t", "id", 1)]))
        keys = client.get_primary_keys(PrimaryKeysRequest(db, ALIAS)).primaryKeys
        assert [key.table_name for key in keys] == ["t"]
        found = client.get_all_table_constraints(AllTableConstraintsRequest(db, ALIAS, "hive")).allTableConstraints
        assert (len(found.primaryKeys), len(found.notNullConstraints)) == (1, 1)

    def test_foreign_keys(self, client: ThriftClient, db: str) -> None:
        next(w for w in WRITERS if w.method == "add_foreign_key").write(client, db, "t")
        for parent, child in ((None, ALIAS), ("k" + DECORATION, None), ("k", ALIAS)):
            keys = client.get_foreign_keys(
                ForeignKeysRequest(
                    parent_db_name=db, parent_tbl_name=parent, foreign_db_name=db, foreign_tbl_name=child
                )
            ).foreignKeys
            assert [(key.pktable_name, key.fktable_name) for key in keys] == [("k", "t")]

    def test_indexes(self, client: ThriftClient, db: str) -> None:
        assert client.get_index_names(db, ALIAS, -1) == ["i"]
        assert [index.indexName for index in client.get_indexes(db, ALIAS, -1)] == ["i"]
        assert client.get_index_by_name(db, ALIAS, "i").origTableName == "t"

    def test_write_ids(self, client: ThriftClient, db: str) -> None:
        """They are the table's; what is valid is answered under the name it was asked by."""
        transaction = client.open_txns(OpenTxnRequest(num_txns=1, user="me", hostname="here")).txn_ids[0]
        request = AllocateTableWriteIdsRequest(db, "t", txnIds=[transaction])
        given = client.allocate_table_write_ids(request).txnToWriteIds[0].writeId
        again = client.allocate_table_write_ids(request.replace(tableName=ALIAS)).txnToWriteIds[0].writeId
        assert given == again
        client.commit_txn(CommitTxnRequest(transaction))
        names = [f"{db}.t", f"{db}.{ALIAS}"]
        valid = client.get_valid_write_ids(GetValidWriteIdsRequest(names)).tblValidWriteIds
        assert [one.fullTableName for one in valid] == names
        assert [one.writeIdHighWaterMark for one in valid] == [given, given]

    def test_a_table_without_partitions(self, client: ThriftClient, db: str) -> None:
        found = client.get_table(db, "k" + DECORATION)
        assert found.tableName == "k" + DECORATION and found.sd == client.get_table(db, "k").sd
        assert client.get_partition_names(db, "k" + DECORATION, -1) == []

    def test_a_view(self, client: ThriftClient, db: str) -> None:
        """A decorated view is the view: what it selects from is its own matter."""
        client.create_table(view(db))
        found = client.get_table(db, "v" + DECORATION)
        assert found.replace(tableName="v") == client.get_table(db, "v")
        assert found.viewExpandedText == "select `t`.`id` from `d`.`t`"

    @pytest.mark.parametrize("name", ["nosuch" + DECORATION, DECORATION, ALIAS + DECORATION, "t@include", "t@"])
    def test_what_is_no_table(self, client: ThriftClient, db: str, name: str) -> None:
        with refused(NoSuchObjectException):
            client.get_table(db, name)
        with refused(NoSuchObjectException):
            client.get_partition_names(db, name, -1)
        assert client.get_table_objects_by_name(db, [name]) == []

    def test_never_listed(self, readers: Readers, db: str) -> None:
        client = readers.metaconf()
        client.get_table(db, ALIAS)
        names = ["data", "k", "t", "u"]
        assert client.get_all_tables(db) == names and client.get_tables(db, "*") == names
        assert client.get_tables_by_type(db, "*", "MANAGED_TABLE") == ["k", "t", "u"]
        assert client.get_table_names_by_filter(db, "", -1) == names
        assert [meta.tableName for meta in client.get_table_meta(db, "*", [])] == names
        found = client.get_tables_ext(
            GetTablesExtRequest(catalog="hive", database=db, tableNamePattern="*", requestedFields=3)
        )
        assert [info.tblName for info in found] == names
        assert client.get_tables(db, ALIAS) == [] and client.get_tables(db, "*@*") == []
        assert client.get_table_meta(db, ALIAS, []) == []


class TestLocks:
    def lock(self, client: ThriftClient, db: str, name: str, kind: LockType) -> tuple[int, LockState]:
        component = LockComponent(type=kind, level=LockLevel.TABLE, dbname=db, tablename=name)
        answer = client.lock(LockRequest([component], user="me", hostname="here"))
        return answer.lockid, answer.state

    def test_they_are_the_tables(self, client: ThriftClient, db: str) -> None:
        reading, state = self.lock(client, db, ALIAS, LockType.SHARED_READ)
        assert state == LockState.ACQUIRED
        writing, state = self.lock(client, db, "t", LockType.EXCLUSIVE)
        assert state == LockState.WAITING
        for asked in ("t", ALIAS, "T@IncludeUncommit"):
            shown = client.show_locks(ShowLocksRequest(dbname=db, tablename=asked)).locks
            assert sorted((one.lockid, one.tablename) for one in shown) == [(reading, "t"), (writing, "t")]
        for each in (reading, writing):
            client.unlock(UnlockRequest(each))


def everything(client: ThriftClient, db: str) -> list[object]:
    """What there is of a database's tables and partitions."""
    return [
        client.get_table_objects_by_name(db, client.get_all_tables(db)),
        client.get_partitions(db, ALIAS, -1),
        client.get_partition_names(db, "u" + DECORATION, -1),
        client.get_all_table_constraints(AllTableConstraintsRequest(db, "t", "hive")),
    ]


class TestWrites:
    def test_every_writing_method_is_tried(self) -> None:
        # lake_route_partitions needs a writer's right, but only says where rows go.
        refusing = {
            name
            for name, handler in HANDLERS.items()
            if handler.rule.changes and handler.uncommitted in WRITING and name != "lake_route_partitions"
        }
        assert {writer.method for writer in WRITERS} == refusing

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("writer", WRITERS, ids=str)
    def test_refused(self, client: ThriftClient, db: str, writer: Writer) -> None:
        declared = METHODS[writer.method].exceptions
        expected: type[TException] = TApplicationException  # of those that declare nothing
        for kind in (MetaException, InvalidOperationException):
            expected = kind if kind in declared else expected
        message = "is the read-only view of a table with its uncommitted partitions; write to"
        if writer.method.startswith("create_table"):
            expected, message = InvalidObjectException, f"{DECORATION} is not a valid object name"
        if str(writer) == "add_partitions_req-partition's":  # whose call names the table itself
            message = "does not belong to target table"
        before = everything(client, db)
        with refused(expected, message=message):
            writer.write(client, db, ALIAS)
        assert everything(client, db) == before
        writer.write(client, db, "t")  # under the table's own name it is a good call

    def test_for_those_with_a_scope_too(self, readers: Readers, db: str) -> None:
        for client in (readers.metaconf(), readers.listener()):
            with refused(MetaException, message="write to t instead"):
                client.drop_table(db, ALIAS, True)
        assert readiness(readers.plain(), db) == {HIDDEN_NAME: False, READY_NAME: True}

    def test_missing_tables_too(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, message="write to nosuch instead"):
            client.drop_table(db, "nosuch" + DECORATION, True)

    def test_no_table_may_be_named_so(self, client: ThriftClient, db: str) -> None:
        with refused(InvalidObjectException, message="is not a valid object name"):
            client.create_table(table(db, "x" + DECORATION, keys=("ds",)))
        assert "x" not in "".join(client.get_all_tables(db))
        with refused(InvalidOperationException):
            client.alter_table(db, "t", client.get_table(db, "t").replace(tableName="x" + DECORATION))
        assert client.get_all_tables(db) == ["data", "k", "t", "u"]

    def test_a_table_read_so_does_not_write_back(self, client: ThriftClient, db: str) -> None:
        """What was read under the decorated name is refused when it comes back, whatever name the call says."""
        read = client.get_table(db, ALIAS)
        read.sd.cols.append(FieldSchema("more", "int"))
        with refused(InvalidOperationException, message="write to t instead"):
            client.alter_table(db, "t", read)
        assert len(client.get_table(db, "t").sd.cols) == 2
