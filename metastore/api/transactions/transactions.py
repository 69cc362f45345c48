"""Transactions, write ids, and materialized views."""

from thrift.Thrift import TType

from lake.protocol.codec import binary
from lake.protocol.hive import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    AllocateTableWriteIdsRequest,
    AllocateTableWriteIdsResponse,
    CommitTxnRequest,
    CreationMetadata,
    GetAllWriteEventInfoRequest,
    GetOpenTxnsInfoResponse,
    GetOpenTxnsRequest,
    GetOpenTxnsResponse,
    GetValidWriteIdsRequest,
    GetValidWriteIdsResponse,
    LockResponse,
    Materialization,
    MaxAllocatedTableWriteIdRequest,
    MaxAllocatedTableWriteIdResponse,
    OpenTxnRequest,
    OpenTxnsResponse,
    ReplayedTxnsForPolicyResult,
    ReplTblWriteIdStateRequest,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    Table,
    UpdateTransactionalStatsRequest,
    WriteEventInfo,
)
from lake.protocol.struct import Struct, fields
from metastore.api.methods import Call, Encoded, answers


class OpenTransactionsOf23(Struct):
    """The field of GetOpenTxnsResponse that Hive 2.3 has as a set."""

    __slots__ = ("open_txns", "unknown")
    thrift_spec = fields(None, None, (2, "open_txns", TType.SET, (TType.I64, None, False)))

    def __init__(self, open_txns: set[int]) -> None:
        self.open_txns = open_txns


class AddDynamicPartitionsOf23(Struct):
    """AddDynamicPartitions as in Hive 2.3, where nothing stands between the transaction and the database."""

    __slots__ = ("dbname", "operationType", "partitionnames", "tablename", "unknown")
    thrift_spec = fields(
        None,
        None,
        (2, "dbname", TType.STRING, "UTF8"),
        (3, "tablename", TType.STRING, "UTF8"),
        (4, "partitionnames", TType.LIST, (TType.STRING, "UTF8", False)),
        (5, "operationType", TType.I32, None),
    )

    def __init__(self) -> None:
        self.dbname: str | None = None
        self.tablename: str | None = None
        self.partitionnames: list[str] | None = None
        self.operationType: int | None = None


@answers("open_txns", changes="TAKE_PART everything; ADMIN everything if=rqst.replPolicy", uncommitted="transactions")
def open_txns(call: Call, request: OpenTxnRequest) -> OpenTxnsResponse:
    return OpenTxnsResponse(call.metastore.transactions.open(request))


@answers("get_open_txns", reads="-", uncommitted="transactions", differs="field 2 is a set and a list")
def get_open_txns(call: Call) -> Encoded | GetOpenTxnsResponse:
    response = call.metastore.transactions.shown()
    if call.session.hive4:
        return response
    # Whose client it is isn't known. Hive 2.3 reads a set, later versions a list, and each skips the other.
    older = binary.encode_fields(OpenTransactionsOf23(set(response.open_txns or ())))
    return Encoded([older, binary.encode(response)])


@answers("get_open_txns_req", reads="-", uncommitted="transactions")
def get_open_txns_req(call: Call, request: GetOpenTxnsRequest) -> GetOpenTxnsResponse:
    return call.metastore.transactions.shown(request.excludeTxnTypes or ())


@answers("get_open_txns_info", reads="TAKE_PART everything | open_transactions", uncommitted="transactions")
def get_open_txns_info(call: Call) -> GetOpenTxnsInfoResponse:
    return call.metastore.transactions.details()


@answers(
    "commit_txn",
    changes=(
        "TAKE_PART everything;"
        " ADMIN everything if=rqst.keyValue;"
        " ADMIN everything if=rqst.replPolicy;"
        " WRITE table rqst.writeEventInfos[].database? rqst.writeEventInfos[].table?;"
        " ALTER table rqst.replLastIdInfo.database? rqst.replLastIdInfo.table? cat=rqst.replLastIdInfo.catalog"
    ),
    uncommitted="transactions",
    differs="looks for conflicts unless the request says not to; what is replayed is not marked",
)
def commit_txn(call: Call, request: CommitTxnRequest) -> None:
    call.metastore.transactions.commit(request, hive4=call.session.hive4 or request.exclWriteEnabled is not None)


@answers(
    "abort_txn",
    changes="TAKE_PART everything; ADMIN everything if=rqst.replPolicy",
    uncommitted="transactions",
    differs="what is replayed is not marked",
)
def abort_txn(call: Call, request: AbortTxnRequest) -> None:
    call.metastore.transactions.abort(request)


@answers("abort_txns", changes="TAKE_PART everything", uncommitted="transactions")
def abort_txns(call: Call, request: AbortTxnsRequest) -> None:
    call.metastore.transactions.abort_many(request.txn_ids or ())


@answers(
    "seed_txn_id",
    changes="ADMIN everything",
    uncommitted="transactions",
    differs="a number below the highest is a MetaException",
)
def seed_txn_id(call: Call, request: SeedTxnIdRequest) -> None:
    call.metastore.transactions.seed(request.seedTxnId or 0)


@answers(
    "add_dynamic_partitions", changes="WRITE table rqst.dbname rqst.tablename", uncommitted="transactions", stores=True
)
def add_dynamic_partitions(call: Call, request: AddDynamicPartitions) -> None:
    if request.writeid is None and hasattr(request, "unknown"):
        # What Hive 2.3 sends: the fields that have other types than here are among the unknown, one fits by chance.
        older = binary.decode(AddDynamicPartitionsOf23, request.unknown + binary.STOP)
        older.tablename = request.dbname
        call.metastore.transactions.add_partitions(
            request.txnid or 0,
            older.dbname,
            older.tablename,
            older.partitionnames or (),
            kind=older.operationType,
            write_id=None,
        )
        return
    call.metastore.transactions.add_partitions(
        request.txnid or 0,
        request.dbname,
        request.tablename,
        request.partitionnames or (),
        kind=request.operationType,
        write_id=request.writeid,
    )


@answers("get_latest_txnid_in_conflict", reads="TAKE_PART everything", uncommitted="transactions")
def get_latest_txnid_in_conflict(call: Call, transaction_id: int | None) -> int:
    return call.metastore.transactions.latest_conflict(transaction_id or 0)


@answers("get_replayed_txns_for_policy", reads="ADMIN everything", uncommitted="transactions")
def get_replayed_txns_for_policy(call: Call, policy: str | None) -> ReplayedTxnsForPolicyResult:
    found = call.metastore.transactions.replayed(policy)
    return ReplayedTxnsForPolicyResult({str(source): str(target) for source, target in found.items()})


@answers(
    "get_all_write_event_info",
    reads="ADMIN everything",
    uncommitted="transactions",
    differs="nothing is recorded, so there is nothing to tell",
)
def get_all_write_event_info(call: Call, request: GetAllWriteEventInfoRequest) -> list[WriteEventInfo]:
    """What transactions have reported to have written is not kept, see add_write_notification_log."""
    return []


# --- write ids ------------------------------------------------------------------------------------------------


@answers(
    "allocate_table_write_ids",
    changes="WRITE table rqst.dbName rqst.tableName; ADMIN everything if=rqst.replPolicy",
    uncommitted="transactions",
    differs="what is not open is a declared exception",
)
def allocate_table_write_ids(call: Call, request: AllocateTableWriteIdsRequest) -> AllocateTableWriteIdsResponse:
    return AllocateTableWriteIdsResponse(call.metastore.write_ids.allocate(request))


@answers("get_valid_write_ids", reads="SEE full rqst.fullTableNames[]", uncommitted="transactions")
def get_valid_write_ids(call: Call, request: GetValidWriteIdsRequest) -> GetValidWriteIdsResponse:
    return GetValidWriteIdsResponse(call.metastore.write_ids.valid(request))


@answers("get_max_allocated_table_write_id", reads="SEE table rqst.dbName rqst.tableName", uncommitted="transactions")
def get_max_allocated_table_write_id(
    call: Call, request: MaxAllocatedTableWriteIdRequest
) -> MaxAllocatedTableWriteIdResponse:
    return MaxAllocatedTableWriteIdResponse(call.metastore.write_ids.highest(request.dbName, request.tableName))


@answers(
    "seed_write_id",
    changes="ADMIN everything",
    uncommitted="transactions",
    differs="a table that has write ids is a MetaException",
)
def seed_write_id(call: Call, request: SeedTableWriteIdsRequest) -> None:
    call.metastore.write_ids.seed(request)


@answers("repl_tbl_writeid_state", changes="ADMIN everything", uncommitted="transactions")
def repl_tbl_writeid_state(call: Call, request: ReplTblWriteIdStateRequest) -> None:
    call.metastore.write_ids.replicate(request)


@answers(
    "add_write_ids_to_min_history",
    changes="TAKE_PART everything",
    uncommitted="transactions",
    off="no history of write ids is kept (Hive: txn.use.minhistory.write.id)",
)
def add_write_ids_to_min_history(call: Call, transaction_id: int | None, write_ids: dict[str, int] | None) -> None:
    """Without effect, as in Hive, which keeps no such history by default (txn.use.minhistory.write.id)."""


# --- materialized views ---------------------------------------------------------------------------------------


@answers("get_all_materialized_view_objects_for_rewriting", reads="- | table_structs", uncommitted="table itself")
def get_all_materialized_view_objects_for_rewriting(call: Call) -> list[Table]:
    return call.metastore.materializations.for_rewriting()


@answers(
    "update_creation_metadata",
    changes="ALTER table dbname tbl_name cat=catName; view_sources dbname tbl_name cat=catName new=creation_metadata",
    uncommitted="named",
    stores=True,
)
def update_creation_metadata(
    call: Call, catalog: str | None, database: str | None, table: str | None, metadata: CreationMetadata
) -> None:
    call.metastore.materializations.update_metadata(catalog, database, table, metadata)


@answers(
    "update_transaction_statistics",
    changes="ADMIN everything",
    uncommitted="table itself",
    differs="a source is identified by its name alone",
)
def update_transaction_statistics(call: Call, request: UpdateTransactionalStatsRequest) -> None:
    call.metastore.materializations.count_changes(request)


@answers(
    "get_materialization_invalidation_info",
    reads=(
        "SEE full creation_metadata.tablesUsed[];"
        " SEE table creation_metadata.sourceTables[].table.dbName?"
        " creation_metadata.sourceTables[].table.tableName? cat=creation_metadata.sourceTables[].table.catName"
    ),
    uncommitted="table itself",
)
def get_materialization_invalidation_info(
    call: Call, metadata: CreationMetadata, valid_transactions: str | None
) -> Materialization | None:
    return call.metastore.materializations.changes(metadata, valid_transactions or "")


@answers("get_lock_materialization_rebuild", changes="WRITE table dbName tableName", uncommitted="transactions")
def get_lock_materialization_rebuild(
    call: Call, database: str | None, table: str | None, transaction_id: int | None
) -> LockResponse:
    return call.metastore.materializations.begin_rebuild(database, table, transaction_id or 0)


@answers(
    "heartbeat_lock_materialization_rebuild",
    changes="WRITE table dbName tableName",
    uncommitted="transactions",
    differs="false where there is no rebuild",
)
def heartbeat_lock_materialization_rebuild(
    call: Call, database: str | None, table: str | None, transaction_id: int | None
) -> bool:
    return call.metastore.materializations.heartbeat_rebuild(database, table, transaction_id or 0)
