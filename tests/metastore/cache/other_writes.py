"""How each writing method is called that tests/visibility has no recipe of: each list is written in its order."""

from collections.abc import Callable
from typing import Any, NamedTuple

from lake.protocol import hudi
from lake.protocol.hive import (
    AbortCompactionRequest,
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    AddPackageRequest,
    AllocateTableWriteIdsRequest,
    AlterCatalogRequest,
    AlterDatabaseRequest,
    AlterDataConnectorRequest,
    AlterISchemaRequest,
    CacheFileMetadataRequest,
    Catalog,
    CheckLockRequest,
    ClearFileMetadataRequest,
    CmRecycleRequest,
    CommitTxnRequest,
    CompactionMetricsDataRequest,
    CompactionMetricsDataStruct,
    CompactionRequest,
    CompactionType,
    CreateCatalogRequest,
    CreateDatabaseRequest,
    CreateDataConnectorRequest,
    DataConnector,
    DropCatalogRequest,
    DropDatabaseRequest,
    DropDataConnectorRequest,
    DropPackageRequest,
    FindNextCompactRequest,
    Function,
    FunctionType,
    GrantRevokeRoleRequest,
    GrantRevokeType,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    ISchema,
    ISchemaName,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    MapSchemaVersionToSerdeRequest,
    OpenTxnRequest,
    PrincipalType,
    PutFileMetadataRequest,
    QueryState,
    ReplicationMetricList,
    ReplicationMetrics,
    Role,
    RuntimeStat,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryMaintenanceRequestType,
    ScheduledQueryPollRequest,
    ScheduledQueryProgressInfo,
    SchemaCompatibility,
    SchemaType,
    SchemaValidation,
    SchemaVersion,
    SchemaVersionDescriptor,
    SchemaVersionState,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    SerDeInfo,
    SetSchemaVersionStateRequest,
    StoredProcedure,
    StoredProcedureRequest,
    Type,
    UnlockRequest,
    UpdateTransactionalStatsRequest,
    WMAlterPoolRequest,
    WMAlterResourcePlanRequest,
    WMAlterTriggerRequest,
    WMCreateOrDropTriggerToPoolMappingRequest,
    WMCreateOrUpdateMappingRequest,
    WMCreatePoolRequest,
    WMCreateResourcePlanRequest,
    WMCreateTriggerRequest,
    WMDropMappingRequest,
    WMDropPoolRequest,
    WMDropResourcePlanRequest,
    WMDropTriggerRequest,
    WMMapping,
    WMNullablePool,
    WMNullableResourcePlan,
    WMPool,
    WMResourcePlan,
    WMTrigger,
)
from lake.protocol.lake import (
    CommitTablesRequest,
    EngineFigures,
    FinishJobRequest,
    ImportRequest,
    JobRequest,
    LeaseRequest,
    ReadGroupEventsRequest,
    RecordDecisionsRequest,
    RequestKey,
    RoutePartitionsRequest,
    ServiceDecision,
    ShardPosition,
    TableCommit,
    TableReference,
    TakeJobRequest,
)
from tests.support.builders import columns, database, table, view

Client = Any


class Step(NamedTuple):
    """One call; `write` gets a client, the database's name, and what the steps before it have put into a dict."""

    method: str
    write: Callable[[Client, str, dict[str, Any]], Any]


def _step(method: str, *arguments: Any) -> Step:
    """A call that knows nothing of the database."""
    return Step(method, lambda client, _db, _memory: client.call(method, *arguments))


def _of(method: str, arguments: Callable[[str], tuple[Any, ...]]) -> Step:
    """A call with the database's name in its arguments."""
    return Step(method, lambda client, db, _memory: client.call(method, *arguments(db)))


def _with(method: str, arguments: Callable[[str, dict[str, Any]], tuple[Any, ...]]) -> Step:
    """A call with something in its arguments that an earlier one answered, or the next step puts there."""
    return Step(method, lambda client, db, memory: client.call(method, *arguments(db, memory)))


def _remembering(name: str, step: Step, part: Callable[[Any], Any] = lambda answer: answer) -> Step:
    """A step of whose answer a part is kept for later ones."""

    def write(client: Client, db: str, memory: dict[str, Any]) -> None:
        memory[name] = part(step.write(client, db, memory))

    return Step(step.method, write)


def _place(db: str, name: str) -> str:
    return f"file:/tmp/metastore_no_such_place/{db}/{name}"


CATALOGS = [
    _of("create_catalog", lambda db: (CreateCatalogRequest(Catalog(f"c{db}", None, _place(db, "c"))),)),
    _of("alter_catalog", lambda db: (AlterCatalogRequest(f"c{db}", Catalog(f"c{db}", "new", _place(db, "c"))),)),
    _of("create_database", lambda db: (database("e", catalogName=f"c{db}"),)),
    _of("drop_database", lambda db: (f"@c{db}#e", True, True)),
    _of("drop_catalog", lambda db: (DropCatalogRequest(f"c{db}"),)),
]
DATABASES = [
    _of("create_database", lambda db: (database(db + "b"),)),
    _of("alter_database", lambda db: (db, database(db, description="first"))),
    _of("alter_database_req", lambda db: (AlterDatabaseRequest(db, database(db, description="second")),)),
    _of("drop_database", lambda db: (db + "b", True, False)),
    _of("create_database_req", lambda db: (CreateDatabaseRequest(db + "b"),)),
    _of("drop_database_req", lambda db: (DropDatabaseRequest(db + "b", deleteData=True),)),
    _of("drop_database", lambda db: (db, True, True)),
    _of("create_database", lambda db: (database(db),)),
]
FUNCTIONS = [
    _of("create_function", lambda db: (_function(db, "a.B"),)),
    _of("alter_function", lambda db: (db, "f", _function(db, "a.C"))),
    _of("drop_function", lambda db: (db, "f")),
]
ROLES = [
    _step("create_role", Role("cache_role")),
    _step("grant_role", "cache_role", "me", PrincipalType.USER, "boss", PrincipalType.USER, False),
    _step("revoke_role", "cache_role", "me", PrincipalType.USER),
    _step(
        "grant_revoke_role",
        GrantRevokeRoleRequest(GrantRevokeType.GRANT, "cache_role", "me", PrincipalType.USER, "boss", 1, False),
    ),
    _step("drop_role", "cache_role"),
]
CONNECTORS = [
    _step("create_dataconnector", DataConnector("cache_a", "mysql", "jdbc:mysql://host")),
    _step("alter_dataconnector", "cache_a", DataConnector("cache_a", "mysql", "jdbc:mysql://other")),
    _step("drop_dataconnector", "cache_a", False, False),
    _step("create_dataconnector_req", CreateDataConnectorRequest(DataConnector("cache_b", "mysql", "jdbc:mysql://h"))),
    _step("alter_dataconnector_req", AlterDataConnectorRequest("cache_b", DataConnector(url="jdbc:mysql://i"))),
    _step("drop_dataconnector_req", DropDataConnectorRequest("cache_b", False, False)),
]
TYPES = [_step("create_type", Type("cache_type", "int")), _step("drop_type", "cache_type")]
PROCEDURES = [
    _of("create_stored_procedure", lambda db: (StoredProcedure("p", db, "hive", "me", "begin end"),)),
    _of("drop_stored_procedure", lambda db: (StoredProcedureRequest("hive", db, "p"),)),
    _of("add_package", lambda db: (AddPackageRequest("hive", db, "p", "me", "header", "body"),)),
    _of("drop_package", lambda db: (DropPackageRequest("hive", db, "p"),)),
]
SCHEMAS = [
    _of("create_ischema", lambda db: (_schema(db),)),
    _of("alter_ischema", lambda db: (AlterISchemaRequest(_schema_name(db), _schema(db)),)),
    _of("add_schema_version", lambda db: (SchemaVersion(_schema_name(db), 1, 17, columns("a:int")),)),
    _of("add_serde", lambda db: (SerDeInfo(_serde(db), "lib"),)),
    _of(
        "map_schema_version_to_serde",
        lambda db: (MapSchemaVersionToSerdeRequest(_schema_version(db), _serde(db)),),
    ),
    _of(
        "set_schema_version_state",
        lambda db: (SetSchemaVersionStateRequest(_schema_version(db), SchemaVersionState.ENABLED),),
    ),
    _of("drop_schema_version", lambda db: (_schema_version(db),)),
    _of("drop_ischema", lambda db: (_schema_name(db),)),
]
PLANS = [
    _step("create_resource_plan", WMCreateResourcePlanRequest(WMResourcePlan("plan"))),
    _step("alter_resource_plan", WMAlterResourcePlanRequest("plan", WMNullableResourcePlan(queryParallelism=2))),
    _step("create_wm_pool", WMCreatePoolRequest(WMPool("plan", "p", 0.5, 1))),
    _step("alter_wm_pool", WMAlterPoolRequest(WMNullablePool("plan", "p", queryParallelism=2), "p")),
    _step("create_wm_trigger", WMCreateTriggerRequest(WMTrigger("plan", "x"))),
    _step("alter_wm_trigger", WMAlterTriggerRequest(WMTrigger("plan", "x", triggerExpression="ELAPSED > 1"))),
    _step(
        "create_or_drop_wm_trigger_to_pool_mapping",
        WMCreateOrDropTriggerToPoolMappingRequest("plan", "x", "p", False),
    ),
    _step("create_or_update_wm_mapping", WMCreateOrUpdateMappingRequest(WMMapping("plan", "USER", "me", "p"), False)),
    _step("drop_wm_mapping", WMDropMappingRequest(WMMapping("plan", "USER", "me"))),
    _step(
        "create_or_drop_wm_trigger_to_pool_mapping",
        WMCreateOrDropTriggerToPoolMappingRequest("plan", "x", "p", True),
    ),
    _step("drop_wm_trigger", WMDropTriggerRequest("plan", "x")),
    _step("drop_wm_pool", WMDropPoolRequest("plan", "p")),
    _step("drop_resource_plan", WMDropResourcePlanRequest("plan")),
]
SCHEDULED = [
    _of(
        "scheduled_query_maintenance",
        lambda db: (ScheduledQueryMaintenanceRequest(ScheduledQueryMaintenanceRequestType.CREATE, _query(db)),),
    ),
    _of(
        "scheduled_query_maintenance",
        lambda db: (
            ScheduledQueryMaintenanceRequest(
                ScheduledQueryMaintenanceRequestType.ALTER, _query(db).replace(nextExecution=17)
            ),
        ),
    ),
    _remembering(
        "execution",
        _of("scheduled_query_poll", lambda db: (ScheduledQueryPollRequest(db),)),
        lambda found: found.executionId,
    ),
    _with(
        "scheduled_query_progress",
        lambda db, memory: (ScheduledQueryProgressInfo(memory["execution"], QueryState.EXECUTING, "hive_1"),),
    ),
]
TOKENS = [
    _step("add_token", "cache", "token"),
    _step("remove_token", "cache"),
    _remembering("key", _step("add_master_key", "key")),
    _with("update_master_key", lambda db, memory: (memory["key"], "other")),
    _with("remove_master_key", lambda db, memory: (memory["key"],)),
]
REPORTS = [
    _step("add_runtime_stats", RuntimeStat(weight=1, payload=b"")),
    _step("add_replication_metrics", ReplicationMetricList([ReplicationMetrics(1, "policy", 1)])),
    _of("put_file_metadata", lambda db: (PutFileMetadataRequest([1], [b"m"]),)),
    _of("clear_file_metadata", lambda db: (ClearFileMetadataRequest([1]),)),
    _of("cache_file_metadata", lambda db: (CacheFileMetadataRequest(db, "t"),)),
    _of("cm_recycle", lambda db: (CmRecycleRequest(_place(db, "gone"), True),)),
    _step("update_transaction_statistics", UpdateTransactionalStatsRequest(1, 1, 1, 1)),
]
TRANSACTIONS = [
    _remembering(
        "transaction", _step("open_txns", OpenTxnRequest(3, "me", "here")), lambda found: sorted(found.txn_ids)
    ),
    _with(
        "allocate_table_write_ids",
        lambda db, memory: (AllocateTableWriteIdsRequest(db, "t", [memory["transaction"][0]]),),
    ),
    _with(
        "add_dynamic_partitions",
        lambda db, memory: (AddDynamicPartitions(memory["transaction"][0], 1, db, "t", ["ds=2020-01-01/hr=1"], 1),),
    ),
    _with("add_write_ids_to_min_history", lambda db, memory: (memory["transaction"][0], {f"{db}.t": 1})),
    _with("get_lock_materialization_rebuild", lambda db, memory: (db, "k", memory["transaction"][0])),
    _with("heartbeat_lock_materialization_rebuild", lambda db, memory: (db, "k", memory["transaction"][0])),
    _remembering(
        "lock",
        _with("lock", lambda db, memory: (LockRequest([_component(db)], memory["transaction"][0], "me", "here"),)),
        lambda found: found.lockid,
    ),
    _with("check_lock", lambda db, memory: (CheckLockRequest(memory["lock"]),)),
    _with("heartbeat", lambda db, memory: (HeartbeatRequest(memory["lock"], memory["transaction"][0]),)),
    _with(
        "heartbeat_txn_range",
        lambda db, memory: (HeartbeatTxnRangeRequest(memory["transaction"][0], memory["transaction"][-1]),),
    ),
    _with("commit_txn", lambda db, memory: (CommitTxnRequest(memory["transaction"][0]),)),
    _with("abort_txn", lambda db, memory: (AbortTxnRequest(memory["transaction"][1]),)),
    _with("abort_txns", lambda db, memory: (AbortTxnsRequest([memory["transaction"][2]]),)),
    _remembering(
        "lock", _of("lock", lambda db: (LockRequest([_component(db)], 0, "me", "here"),)), lambda found: found.lockid
    ),
    _with("unlock", lambda db, memory: (UnlockRequest(memory["lock"]),)),
    _of("seed_write_id", lambda db: (SeedTableWriteIdsRequest(db, "u", 10),)),
    _with("seed_txn_id", lambda db, memory: (SeedTxnIdRequest(memory["transaction"][-1] + 1_000),)),
]
COMPACTIONS = [
    _of("compact", lambda db: (_compaction(db, "t", "ds=2020-01-01/hr=1"),)),
    _remembering("asked", _of("compact2", lambda db: (_compaction(db, "k"),)), lambda found: found.id),
    _with("abort_Compactions", lambda db, memory: (AbortCompactionRequest([memory["asked"]]),)),
    *(
        step
        for ending in ("mark_compacted", "mark_failed", "mark_refused")
        for step in (
            _of("compact", lambda db: (_compaction(db, "k"),)),
            _remembering(
                "found",
                _step("find_next_compact2", FindNextCompactRequest(workerId="w", workerVersion="4")),
                lambda found: found.ci,
            ),
            _with("set_hadoop_jobid", lambda db, memory: ("job", memory["found"].id)),
            _with("update_compactor_state", lambda db, memory: (memory["found"], 0)),
            _with(ending, lambda db, memory: (memory["found"],)),
        )
    ),
    _with("mark_cleaned", lambda db, memory: (memory["found"],)),
    _step("find_next_compact", "w"),
    _of("submit_for_cleanup", lambda db: (_compaction(db, "k"), 0, 0)),
    _of("update_compaction_metrics_data", lambda db: (CompactionMetricsDataStruct(db, "k", None, 1, 5, 1, 1),)),
    _of("remove_compaction_metrics_data", lambda db: (CompactionMetricsDataRequest(db, "k", None, 1),)),
]
HUDI = [
    _of("createDatabase", lambda db: (db + "h",)),
    _of("createTable", lambda db: (hudi.Table("h", db + "h", "me", 0, _place(db, "h"), "COPY_ON_WRITE"),)),
    _remembering("instant", _of("createNewInstantTime", lambda db: (db + "h", "h"))),
    _with("createNewInstantWithTime", lambda db, memory: (db + "h", "h", _instant(memory, hudi.TState.REQUESTED), b"")),
    _with(
        "transitionInstantState",
        lambda db, memory: (
            db + "h",
            "h",
            _instant(memory, hudi.TState.REQUESTED),
            _instant(memory, hudi.TState.INFLIGHT),
            b"",
        ),
    ),
    _with("deleteInstant", lambda db, memory: (db + "h", "h", _instant(memory, hudi.TState.INFLIGHT))),
]
LAKE = [
    _of("lake_route_partitions", lambda db: (RoutePartitionsRequest(_table(db), ["ds=2020-01-03/hr=1"]),)),
    _remembering(
        "shards",
        _step("lake_read_group_events", ReadGroupEventsRequest("cache", "me", start=0, limit=1, maxWait=0)),
        lambda found: [ShardPosition(each.shard, each.generation, each.read, each.done) for each in found.shards or ()],
    ),
    _with("lake_acknowledge_shards", lambda db, memory: ("cache", "me", memory["shards"])),
    _with("lake_leave_group", lambda db, memory: ("cache", "me", memory["shards"])),
    _step("lake_acknowledge_events", "cache_group", 0, True),
]
TABLE_SERVICES = [
    _of("lake_import", lambda db: (ImportRequest(tables=[table(db, "brought")]),)),
    _of("lake_import", lambda db: (ImportRequest(tables=[table(db, "brought", owner="him")], overwrite=True),)),
    _of("lake_commit_tables", lambda db: (_commit(db, "m0"),)),
    _of("lake_commit_tables", lambda db: (_commit(db, "m1", "m0"),)),
    _of("lake_lease_snapshot", lambda db: (LeaseRequest(_table(db), "me", seconds=60),)),
    _of("lake_release_lease", lambda db: (_table(db), "me")),
    _of("lake_report_figures", lambda db: (_table(db), EngineFigures(1, 2, 0, 3, 4, 0, 0))),
    _of("lake_data_place", lambda db: (_table(db), True, False)),
    _of(
        "lake_record_decisions",
        lambda db: (RecordDecisionsRequest(_table(db), 0, [ServiceDecision("clean", "clean", "why")]),),
    ),
    _remembering("job", _of("lake_submit_job", lambda db: (_table(db), JobRequest("compaction")))),
    _remembering(
        "job",
        _with("lake_take_job", lambda db, memory: (TakeJobRequest("me", db, [memory["job"].id], 60),)),
        lambda taken: taken.job,
    ),
    _with("lake_heartbeat_job", lambda db, memory: (memory["job"].id, memory["job"].attempts, 60)),
    _with("lake_claim_plan", lambda db, memory: (memory["job"].id, memory["job"].attempts, "20260101000000000")),
    _with(
        "lake_finish_job",
        lambda db, memory: (FinishJobRequest(memory["job"].id, memory["job"].attempts, "pending", "stopped"),),
    ),
    _with("lake_cancel_job", lambda db, memory: (memory["job"].id,)),
    _of("lake_pause_table_services", lambda db: (_table(db), "a test")),
]
CONNECTION = [
    _step("set_ugi", "me", []),
    _step("setMetaConf", "includeUnCommit", "false"),
    _step("flushCache"),
    _step("reinitialize"),
    _step("lake_begin_request", RequestKey("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", b"d" * 32)),
    _step("lake_end_request", 409, "no"),
    _remembering("followed", _step("lake_take_followed", "thrift://other:9083", "*", None)),
    _with("lake_keep_followed", lambda db, memory: (memory["followed"].replace(position=5),)),
]

CHAINS = {
    "catalogs": CATALOGS,
    "databases": DATABASES,
    "functions": FUNCTIONS,
    "roles": ROLES,
    "connectors": CONNECTORS,
    "types": TYPES,
    "procedures": PROCEDURES,
    "schemas": SCHEMAS,
    "plans": PLANS,
    "scheduled": SCHEDULED,
    "tokens": TOKENS,
    "reports": REPORTS,
    "transactions": TRANSACTIONS,
    "compactions": COMPACTIONS,
    "hudi": HUDI,
    "lake": LAKE,
    "table services": TABLE_SERVICES,
    "connection": CONNECTION,
}


def _function(db: str, class_name: str) -> Function:
    return Function("f", db, class_name, "me", PrincipalType.USER, 0, FunctionType.JAVA, [])


def _schema(db: str) -> ISchema:
    return ISchema(
        SchemaType.AVRO, "s", "hive", db, SchemaCompatibility.BACKWARD, SchemaValidation.LATEST, canEvolve=True
    )


def _schema_name(db: str) -> ISchemaName:
    return ISchemaName("hive", db, "s")


def _query(db: str) -> ScheduledQuery:
    """A scheduled query in a namespace of the database's name."""
    return ScheduledQuery(ScheduledQueryKey("q", db), True, "0 0 0 1 1 ? *", "me", "select 1")


def _serde(db: str) -> str:
    """The name of a serde, which is known in all databases."""
    return f"serde_{db}"


def _schema_version(db: str) -> SchemaVersionDescriptor:
    return SchemaVersionDescriptor(_schema_name(db), 1)


def _component(db: str) -> LockComponent:
    return LockComponent(LockType.SHARED_READ, LockLevel.TABLE, db, "t")


def _compaction(db: str, name: str, part: str | None = None) -> CompactionRequest:
    return CompactionRequest(db, name, part, CompactionType.MAJOR, "me")


def _instant(memory: dict[str, Any], state: int) -> hudi.THoodieInstant:
    return hudi.THoodieInstant(memory["instant"], hudi.TAction.COMMIT, state)


def _commit(db: str, location: str, before: str | None = None) -> CommitTablesRequest:
    parameters = {"table_type": "ICEBERG-VIEW", "metadata_location": location}
    return CommitTablesRequest([TableCommit(view(db, "i", parameters=parameters), before)])


def _table(db: str) -> TableReference:
    return TableReference(database=db, table="t")
