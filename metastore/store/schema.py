"""The tables of the metastore's database.

What Hive's own schema spreads over a row per attribute is here one row per object: columns for what queries look
for, and a `body`, the rest of the object's Thrift encoding, which goes out as it is. Names compare bytewise
(COLLATE "C"), as Java compares strings.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    }
)

NAME = Text(collation="C")


def identifier() -> Column[int]:
    return Column("id", BigInteger, Identity(always=True), primary_key=True)


metastore_properties = Table(
    "metastore_properties",
    metadata,
    Column("key", NAME, primary_key=True),
    Column("value", Text, nullable=False),
)

catalogs = Table(
    "catalogs",
    metadata,
    identifier(),
    Column("name", NAME, nullable=False, unique=True),
    Column("description", Text),
    Column("location", Text, nullable=False),
    Column("create_time", BigInteger, nullable=False),
)

databases = Table(
    "databases",
    metadata,
    identifier(),
    Column("catalog_id", ForeignKey("catalogs.id"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("location", NAME, index=True),
    Column("owner", Text),
    Column("body", LargeBinary, nullable=False, comment="encoded Database without name, catalog, location, owner"),
    Column("version", BigInteger, nullable=False, server_default="1"),
    UniqueConstraint("catalog_id", "name"),
)

storage_descriptors = Table(
    "storage_descriptors",
    metadata,
    identifier(),
    Column("digest", LargeBinary, nullable=False, unique=True, comment="SHA-256 of body"),
    Column("body", LargeBinary, nullable=False, comment="encoded StorageDescriptor without location and STOP"),
    comment="each distinct descriptor once: the partitions of a table mostly differ in their location alone",
)

tables = Table(
    "tables",
    metadata,
    identifier(),
    Column("database_id", ForeignKey("databases.id"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("type", NAME, nullable=False),
    Column("owner", Text),
    Column("last_access_time", Integer, nullable=False),
    Column("location", NAME, index=True, comment="NULL: none, as for a view"),
    Column("storage_descriptor_id", ForeignKey("storage_descriptors.id"), nullable=False),
    Column("parameters", JSONB, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="encoded Table without what the other columns hold"),
    Column("version", BigInteger, nullable=False, server_default="1"),
    UniqueConstraint("database_id", "name"),
    Index(None, "storage_descriptor_id"),
)

# No foreign keys here: one would cost a look-up per row in bulk changes. Whoever adds partitions holds a lock on the
# table's row, whoever removes a table removes its partitions in the same transaction.
partitions = Table(
    "partitions",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("name", NAME, nullable=False, comment="dt=2024-01-01/hr=00, values escaped as in a path"),
    Column("values", ARRAY(NAME), nullable=False),
    Column("ready", Boolean, nullable=False, server_default=text("true")),
    Column("commit_time", BigInteger, comment="when it was last committed, ms; kept while it is open again"),
    Column("path", Text, comment="location below the table's; NULL where location says it"),
    Column("location", Text, comment="location elsewhere than below the table's"),
    Column("storage_descriptor_id", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="encoded Partition without names, descriptor and STOP"),
    UniqueConstraint("table_id", "name"),
    Index("partitions_first_value_idx", "table_id", text('("values"[1])')),
    Index("partitions_uncommitted_idx", "table_id", postgresql_where=text("NOT ready")),
    Index("partitions_elsewhere_idx", "table_id", postgresql_where=text("path IS DISTINCT FROM name")),
    Index(None, "storage_descriptor_id"),
)

column_statistics = Table(
    "column_statistics",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("partition_id", BigInteger, nullable=False, server_default="0", comment="0: the table's own"),
    Column("column_name", NAME, nullable=False),
    Column("engine", NAME, nullable=False, server_default="hive"),
    Column("last_analyzed", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="encoded ColumnStatisticsObj"),
    UniqueConstraint("table_id", "partition_id", "column_name", "engine"),
)

partition_events = Table(
    "partition_events",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("partition_name", NAME, nullable=False),
    Column("event_type", SmallInteger, nullable=False),
    Column("event_time", BigInteger, nullable=False),
    Index(None, "table_id", "partition_name"),
    comment="markPartitionForEvent",
)

table_readiness = Table(
    "table_readiness",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("watermark", BigInteger, comment="ms; never goes back"),
    Column("filled_until", BigInteger, comment="ms; up to here empty partitions have been added"),
    Column("rows_rerouted", BigInteger, nullable=False, server_default="0"),
    Column("rows_reopened", BigInteger, nullable=False, server_default="0"),
    Column("rows_dropped", BigInteger, nullable=False, server_default="0"),
    comment="how far event time has come in a table, and what came late",
)

watermarks = Table(
    "watermarks",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("chain", NAME, primary_key=True),
    Column("source", NAME, primary_key=True),
    Column("watermark", BigInteger, nullable=False, comment="ms"),
    Column("reported_at", BigInteger, nullable=False, comment="ms"),
    comment="how far event time has come in each source of each chain of writers",
)

writers = Table(
    "writers",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", NAME, primary_key=True),
    Column("batch", BigInteger, nullable=False, comment="the last that was accepted"),
)

publications = Table(
    "publications",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("partition_id", BigInteger, nullable=False),
    Column("source", Text, nullable=False, comment="a staged file's location"),
    Column("name", Text, nullable=False, comment="of the file in the partition"),
    Index(None, "table_id"),
    Index(None, "partition_id"),
    comment="staged files of accepted batches, to be moved into their partitions; removed once that is done",
)

functions = Table(
    "functions",
    metadata,
    identifier(),
    Column("database_id", ForeignKey("databases.id"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="encoded Function without names"),
    UniqueConstraint("database_id", "name"),
)

moves = Table(
    "moves",
    metadata,
    identifier(),
    Column("source", Text, nullable=False),
    Column("target", Text, comment="NULL: the data is to be deleted"),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    comment="data to be moved or deleted: recorded with the change that asks for it, removed once it is done",
)

# --- constraints, privileges, locks ---------------------------------------------------------------------------

constraints = Table(
    "constraints",
    metadata,
    identifier(),
    Column("table_id", ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    Column("kind", SmallInteger, nullable=False, comment="metastore.store.constraints.Kind"),
    Column("name", NAME, nullable=False),
    Column("position", Integer, nullable=False, comment="of the column within the constraint, from 1"),
    Column("column_name", NAME, comment="NULL: a check of the whole row"),
    Column("parent_table_id", ForeignKey("tables.id", ondelete="CASCADE"), comment="what a foreign key refers to"),
    Column("parent_column_name", NAME),
    Column("body", LargeBinary, nullable=False, comment="encoded SQLPrimaryKey, SQLForeignKey, ... without names"),
    UniqueConstraint("table_id", "name", "position"),
    Index(None, "parent_table_id"),
    comment="one row per constraint and column",
)

roles = Table(
    "roles",
    metadata,
    identifier(),
    Column("name", NAME, nullable=False, unique=True),
    Column("owner", Text),
    Column("create_time", BigInteger, nullable=False),
)

role_grants = Table(
    "role_grants",
    metadata,
    identifier(),
    Column("role_id", ForeignKey("roles.id", ondelete="CASCADE"), nullable=False),
    Column("principal_type", SmallInteger, nullable=False, comment="PrincipalType"),
    Column("principal_name", NAME, nullable=False),
    Column("grant_time", BigInteger, nullable=False),
    Column("grantor", Text),
    Column("grantor_type", SmallInteger),
    Column("grant_option", Boolean, nullable=False),
    UniqueConstraint("principal_name", "principal_type", "role_id"),
    Index(None, "role_id"),
    comment="who is a member of a role",
)

privileges = Table(
    "privileges",
    metadata,
    identifier(),
    Column("object_type", SmallInteger, nullable=False, comment="HiveObjectType; the next four say which object"),
    Column("database_id", ForeignKey("databases.id", ondelete="CASCADE")),
    Column("table_id", ForeignKey("tables.id", ondelete="CASCADE")),
    Column("partition_id", BigInteger, comment="may be of a partition that is gone; ids are never used again"),
    Column("column_name", NAME),
    Column("principal_type", SmallInteger, nullable=False, comment="PrincipalType"),
    Column("principal_name", NAME, nullable=False),
    Column("privilege", NAME, nullable=False),
    Column("grant_time", BigInteger, nullable=False),
    Column("grantor", Text),
    Column("grantor_type", SmallInteger),
    Column("grant_option", Boolean, nullable=False),
    Column("authorizer", Text),
    Index(None, "principal_name"),
    Index(None, "database_id"),
    Index(None, "table_id"),
)

locks = Table(
    "locks",
    metadata,
    identifier(),
    Column("transaction_id", BigInteger, nullable=False, comment="0: of no transaction"),
    Column("user_name", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("heartbeat_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("acquired_at", DateTime(timezone=True), comment="NULL: it waits"),
    Index("locks_transaction_idx", "transaction_id", postgresql_where=text("transaction_id <> 0")),
    comment="a lock stands behind every lock with a smaller id",
)

lock_components = Table(
    "lock_components",
    metadata,
    Column("lock_id", ForeignKey("locks.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False, comment="within the lock, from 1"),
    Column("catalog", NAME, nullable=False),
    Column("database_name", NAME, nullable=False),
    Column("table_name", NAME, nullable=False, comment="empty: the whole database"),
    Column("partition_name", NAME, nullable=False, comment="empty: the whole table"),
    Column("type", SmallInteger, nullable=False, comment="LockType"),
    Column("transaction_id", BigInteger, nullable=False, comment="the lock's"),
    Column("blocked_by_lock", BigInteger, comment="what it was last found waiting for"),
    Column("blocked_by_number", Integer),
    Index("lock_components_object_idx", "catalog", "database_name", "table_name", "partition_name"),
)

# --- what Hive keeps beside tables ----------------------------------------------------------------------------

named_objects = Table(
    "named_objects",
    metadata,
    identifier(),
    Column("kind", SmallInteger, nullable=False, comment="metastore.store.named_objects.Kind"),
    Column("database_id", ForeignKey("databases.id", ondelete="CASCADE"), comment="NULL: of no database"),
    Column("name", NAME, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="the encoded struct without names"),
    UniqueConstraint("database_id", "kind", "name"),
    Index(
        "named_objects_of_no_database_idx", "kind", "name", unique=True, postgresql_where=text("database_id IS NULL")
    ),
    comment="structs that are looked up by name alone",
)

schema_versions = Table(
    "schema_versions",
    metadata,
    identifier(),
    Column("schema_id", ForeignKey("named_objects.id", ondelete="CASCADE"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("columns", JSONB, nullable=False, comment="name, type and comment of each, for searches"),
    Column("body", LargeBinary, nullable=False, comment="encoded SchemaVersion without schema and version"),
    UniqueConstraint("schema_id", "version"),
    comment="versions of the schemas in the schema registry",
)

table_indexes = Table(
    "table_indexes",
    metadata,
    identifier(),
    Column("table_id", ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("index_table_id", ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    Column("body", LargeBinary, nullable=False, comment="encoded Index without names"),
    UniqueConstraint("table_id", "name"),
    Index(None, "index_table_id"),
    comment="indexes of Hive 2.3, whose data are tables of their own",
)

master_keys = Table(
    "master_keys",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("key", Text, nullable=False),
    comment="with which delegation tokens are signed",
)

resource_plans = Table(
    "resource_plans",
    metadata,
    identifier(),
    Column("namespace", NAME, nullable=False),
    Column("name", NAME, nullable=False),
    Column("status", SmallInteger, nullable=False, comment="WMResourcePlanStatus"),
    Column("body", LargeBinary, nullable=False, comment="encoded WMFullResourcePlan"),
    UniqueConstraint("namespace", "name"),
    Index("resource_plans_active_idx", "namespace", unique=True, postgresql_where=text("status = 1")),
)

scheduled_queries = Table(
    "scheduled_queries",
    metadata,
    identifier(),
    Column("namespace", NAME, nullable=False),
    Column("name", NAME, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("next_execution", BigInteger, comment="seconds; NULL: never again"),
    Column("active_execution_id", BigInteger, comment="NULL: it isn't running"),
    Column("body", LargeBinary, nullable=False, comment="encoded ScheduledQuery without what the other columns hold"),
    UniqueConstraint("namespace", "name"),
)

scheduled_executions = Table(
    "scheduled_executions",
    metadata,
    identifier(),
    Column("scheduled_query_id", ForeignKey("scheduled_queries.id", ondelete="CASCADE"), nullable=False),
    Column("state", SmallInteger, nullable=False, comment="QueryState"),
    Column("executor_query_id", Text),
    Column("start_time", BigInteger, nullable=False, comment="seconds, as the next two"),
    Column("end_time", BigInteger),
    Column("last_update_time", BigInteger, comment="NULL: it has ended"),
    Column("error_message", Text),
    Index(None, "scheduled_query_id"),
    Index(None, "start_time"),
)

runtime_statistics = Table(
    "runtime_statistics",
    metadata,
    identifier(),
    Column("create_time", BigInteger, nullable=False, index=True, comment="seconds"),
    Column("weight", Integer, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    comment="what engines found out about their queries",
)

replication_metrics = Table(
    "replication_metrics",
    metadata,
    Column("scheduled_execution_id", BigInteger, primary_key=True, autoincrement=False),
    Column("policy", NAME, nullable=False, index=True),
    Column("start_time", BigInteger, nullable=False, index=True, comment="seconds"),
    Column("body", LargeBinary, nullable=False, comment="encoded ReplicationMetrics"),
)

# --- transactions, write ids, compactions ---------------------------------------------------------------------

counters = Table(
    "counters",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("next", BigInteger, nullable=False, comment="the number that is given next"),
    comment="numbers that rise in the order of commits: who takes one holds the row until it commits",
)

transactions = Table(
    "transactions",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("state", SmallInteger, nullable=False, comment="TxnState"),
    Column("type", SmallInteger, nullable=False, comment="TxnType"),
    Column("user_name", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("heartbeat_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("ended_at", DateTime(timezone=True), comment="NULL: it is open"),
    Column("commit_id", BigInteger, comment="the highest transaction id at its commit; NULL: it isn't committed"),
    # The few that are not committed: what every reader's snapshot is made of. 1 is TxnState.COMMITTED.
    Index("transactions_uncommitted_idx", "id", postgresql_where=text("state <> 1")),
    comment="ids are given by the counter `transaction`; committed ones are forgotten after a while",
)

transaction_components = Table(
    "transaction_components",
    metadata,
    identifier(),
    Column("transaction_id", BigInteger, nullable=False, index=True),
    Column("catalog", NAME, nullable=False),
    Column("database_name", NAME, nullable=False),
    Column("table_name", NAME, nullable=False),
    Column("partition_name", NAME, nullable=False, comment="empty: the whole table"),
    Column("operation", SmallInteger, nullable=False, comment="metastore.store.transactions.Operation"),
    Column("write_id", BigInteger),
    Index("transaction_components_table_idx", "catalog", "database_name", "table_name"),
    comment="what open transactions write, and aborted ones wrote that no compaction has cleaned up yet",
)

completed_components = Table(
    "completed_components",
    metadata,
    identifier(),
    Column("transaction_id", BigInteger, nullable=False),
    Column("catalog", NAME, nullable=False),
    Column("database_name", NAME, nullable=False),
    Column("table_name", NAME, nullable=False),
    Column("partition_name", NAME, nullable=False, comment="empty: the whole table"),
    Column("write_id", BigInteger),
    Column("changes_rows", Boolean, nullable=False, comment="the transaction updated or deleted something"),
    Index("completed_components_table_idx", "catalog", "database_name", "table_name"),
    comment="what committed transactions wrote since the last compaction",
)

write_sets = Table(
    "write_sets",
    metadata,
    identifier(),
    Column("transaction_id", BigInteger, nullable=False),
    Column("commit_id", BigInteger, nullable=False, index=True, comment="the highest transaction id at the commit"),
    Column("catalog", NAME, nullable=False),
    Column("database_name", NAME, nullable=False),
    Column("table_name", NAME, nullable=False),
    Column("partition_name", NAME, nullable=False, comment="empty: the whole table"),
    Column("operation", SmallInteger, nullable=False, comment="metastore.store.transactions.Operation"),
    Index("write_sets_table_idx", "catalog", "database_name", "table_name"),
    comment="what committed transactions wrote, while a transaction is open that began before they were committed",
)

table_write_ids = Table(
    "table_write_ids",
    metadata,
    Column("catalog", NAME, primary_key=True),
    Column("database_name", NAME, primary_key=True),
    Column("table_name", NAME, primary_key=True),
    Column("next", BigInteger, nullable=False, comment="the write id that is given next"),
)

transaction_write_ids = Table(
    "transaction_write_ids",
    metadata,
    Column("catalog", NAME, primary_key=True),
    Column("database_name", NAME, primary_key=True),
    Column("table_name", NAME, primary_key=True),
    Column("write_id", BigInteger, primary_key=True, autoincrement=False),
    Column("transaction_id", BigInteger, nullable=False, index=True),
)

replicated_transactions = Table(
    "replicated_transactions",
    metadata,
    Column("policy", NAME, primary_key=True),
    Column("source_id", BigInteger, primary_key=True, autoincrement=False),
    Column("target_id", BigInteger, nullable=False, index=True),
    comment="transactions that replay those of another warehouse",
)

materialization_rebuilds = Table(
    "materialization_rebuilds",
    metadata,
    Column("catalog", NAME, primary_key=True),
    Column("database_name", NAME, primary_key=True),
    Column("table_name", NAME, primary_key=True),
    Column("transaction_id", BigInteger, nullable=False, index=True),
    Column("heartbeat_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    comment="materialized views that are being rebuilt, each by one transaction",
)

compactions = Table(
    "compactions",
    metadata,
    identifier(),
    Column("catalog", NAME, nullable=False),
    Column("database_name", NAME, nullable=False),
    Column("table_name", NAME, nullable=False),
    Column("partition_name", NAME, nullable=False, comment="empty: the whole table"),
    Column("type", SmallInteger, nullable=False, comment="CompactionType"),
    Column("state", Text, nullable=False, comment="metastore.store.compactions.State"),
    Column("properties", Text),
    Column("pool", Text, comment="of workers that may do it; NULL: any that serve none"),
    Column("bucket_count", Integer),
    Column("order_by", Text),
    Column("run_as", Text),
    Column("initiator_id", Text),
    Column("initiator_version", Text),
    Column("worker_id", Text),
    Column("worker_version", Text),
    Column("hadoop_job_id", Text),
    Column("error_message", Text),
    Column("highest_write_id", BigInteger),
    Column("transaction_id", BigInteger, comment="in which it is done"),
    Column("next_transaction_id", BigInteger, comment="the highest transaction id when that was committed"),
    Column("enqueued_at", BigInteger, nullable=False, comment="ms, as the next ones"),
    Column("started_at", BigInteger),
    Column("committed_at", BigInteger),
    Column("ended_at", BigInteger),
    Index("compactions_table_idx", "catalog", "database_name", "table_name"),
    Index(None, "transaction_id"),
    Index("compactions_waiting_idx", "id", postgresql_where=text("state = 'i'")),
)

compaction_metrics = Table(
    "compaction_metrics",
    metadata,
    Column("catalog", NAME, primary_key=True),
    Column("database_name", NAME, primary_key=True),
    Column("table_name", NAME, primary_key=True),
    Column("partition_name", NAME, primary_key=True, comment="empty: the whole table"),
    Column("type", SmallInteger, primary_key=True, autoincrement=False, comment="CompactionMetricsMetricType"),
    Column("value", Integer, nullable=False),
    Column("version", Integer, nullable=False),
)

# --- timeline and files of lake tables ------------------------------------------------------------------------

timelines = Table(
    "timelines",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("last_timestamp", NAME, nullable=False, server_default="", comment="the greatest given, of either kind"),
    Column("position", BigInteger, nullable=False, server_default="0", comment="how many instants completed"),
    Column("oldest_readable", BigInteger, nullable=False, server_default="0", comment="position; what cleaning left"),
    Column(
        "forgotten",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="position up to which nobody finds conflicts any more",
    ),
    comment="tables that have a timeline; whoever completes an instant holds the row",
)

instants = Table(
    "instants",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("timestamp", NAME, nullable=False),
    Column("action", NAME, nullable=False),
    Column("begun_as", NAME, nullable=False, comment="the action until completion changed it"),
    Column("state", NAME, nullable=False, comment="requested, inflight or completed"),
    Column("requested_at", BigInteger, nullable=False, comment="ms"),
    Column("changed_at", BigInteger, nullable=False, comment="ms"),
    Column("heartbeat_at", DateTime(timezone=True), comment="by the database's clock; NULL: never"),
    Column("read_position", BigInteger, nullable=False),
    Column("completion_time", NAME),
    Column("position", BigInteger),
    Column("event_id", BigInteger, comment="the last event of the transaction that completed it"),
    Column("moment", BigInteger, comment="that event's number, once it has been looked up"),
    Column("digest", LargeBinary, comment="SHA-256 of the completion, to know it again"),
    Column("conflict", Text, comment="why its completion was refused"),
    Column("undone_by", NAME, comment="the timestamp of the rollback or restore that undid it"),
    Column("archived", Boolean, nullable=False, server_default="false"),
    UniqueConstraint("table_id", "timestamp", "action"),
    Index("instants_position_idx", "table_id", "position", unique=True, postgresql_where=text("position IS NOT NULL")),
    Index("instants_active_idx", "table_id", "timestamp", postgresql_where=text("NOT archived")),
    Index("instants_heartbeat_idx", "heartbeat_at", postgresql_where=text("position IS NULL")),
    Index("instants_unplaced_idx", "event_id", postgresql_where=text("moment IS NULL AND event_id IS NOT NULL")),
    Index("instants_moment_idx", "table_id", "moment"),
)

instant_metadata = Table(
    "instant_metadata",
    metadata,
    Column("instant_id", ForeignKey("instants.id", ondelete="CASCADE"), primary_key=True),
    Column("state", NAME, primary_key=True),
    Column("content", LargeBinary, nullable=False, comment="what the writer gave"),
)

instant_plans = Table(
    "instant_plans",
    metadata,
    Column("instant_id", ForeignKey("instants.id", ondelete="CASCADE"), primary_key=True),
    Column("partition_name", NAME, primary_key=True),
    Column("file_group", NAME, primary_key=True),
    comment="the file groups that a table service is going to rewrite",
)

instant_touches = Table(
    "instant_touches",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("partition_name", NAME, nullable=False),
    Column("file_group", NAME, comment="NULL: the whole partition"),
    Column("slice", NAME, comment="the oldest that got a file; NULL: it lost files only"),
    Column("logs_only", Boolean, nullable=False, comment="it got log files and lost none"),
    Column("compacted", Boolean, nullable=False, comment="by compaction: log files in later slices don't mind"),
    Column("columns", ARRAY(NAME), comment="NULL: all"),
    Index(None, "table_id", "position", "partition_name"),
    comment="what completed instants changed: by this conflicts are found",
)

refusals = Table(
    "refusals",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("timestamp", NAME, nullable=False),
    Column("action", NAME, nullable=False),
    Column("requested_at", BigInteger, nullable=False, comment="ms"),
    Column("refused_at", BigInteger, nullable=False, comment="ms"),
    Column("winners", ARRAY(BigInteger), nullable=False, comment="positions of what was quicker"),
    Column("reason", Text, nullable=False),
    Index(None, "table_id", "id"),
    comment="completions that lost to others, for people to look at",
)

leftover_files = Table(
    "leftover_files",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False, index=True),
    Column("instant_id", ForeignKey("instants.id", ondelete="SET NULL"), index=True),
    Column("path", Text, nullable=False, comment="below the table's location"),
    comment="files of refused completions, to be deleted once their instant is gone, and files that were cleaned",
)

data_files = Table(
    "data_files",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("partition_name", NAME, nullable=False, comment="empty: of a table without partition keys"),
    Column("file_group", NAME, nullable=False),
    Column("slice", NAME, nullable=False),
    Column("kind", SmallInteger, nullable=False, comment="metastore.store.data_files.Kind"),
    Column("version", Integer, nullable=False, comment="of a log file: its place in the slice"),
    Column("path", Text, nullable=False, comment="below the table's location"),
    Column("size", BigInteger, nullable=False),
    Column("row_count", BigInteger),
    Column("min_event_time", BigInteger, comment="ms"),
    Column("max_event_time", BigInteger, comment="ms"),
    Column("columns", ARRAY(NAME), comment="that it holds; NULL: all"),
    Column("statistics", LargeBinary),
    Column("added_at", BigInteger, nullable=False, comment="position from which on it belongs to the snapshot"),
    Column("removed_at", BigInteger, comment="position from which on it doesn't; NULL: it does"),
    Index(
        "data_files_live_idx", "table_id", "partition_name", "file_group", postgresql_where=text("removed_at IS NULL")
    ),
    Index("data_files_removed_idx", "table_id", "removed_at", postgresql_where=text("removed_at IS NOT NULL")),
    Index(
        "data_files_history_idx",
        "table_id",
        "partition_name",
        "removed_at",
        postgresql_where=text("removed_at IS NOT NULL"),
    ),
    Index("data_files_added_idx", "table_id", "added_at"),
    Index("data_files_pages_idx", "table_id", "partition_name", "file_group"),
    Index("data_files_path_idx", "table_id", text("md5(path)")),
    comment="which files made up a table's snapshot from which position to which",
)

lake_partitions = Table(
    "lake_partitions",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", NAME, primary_key=True),
    Column("values", ARRAY(NAME), nullable=False),
    Column("files", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False, comment="position"),
    comment="sums over the files of the latest snapshot of each partition",
)

# --- cache ----------------------------------------------------------------------------------------------------

# Filled by triggers (migration 0008). Crash recovery empties both, since it may give out again the ids of transactions
# that left no trace; so does a replica's taking over.
cache_changes = Table(
    "cache_changes",
    metadata,
    Column("xid", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", NAME, primary_key=True, comment="metastore.store.footprint.Kind"),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    prefixes=["UNLOGGED"],
    comment="what transactions changed",
)

cache_state = Table(
    "cache_state",
    metadata,
    Column("the_only", Boolean, primary_key=True),
    Column("incarnation", Text, nullable=False, comment="another one after each crash"),
    Column("floor", BigInteger, nullable=False, comment="changes of earlier transactions are forgotten"),
    Column("next_floor", BigInteger, nullable=False),
    Column("raised_at", DateTime(timezone=True), nullable=False),
    prefixes=["UNLOGGED"],
    comment="one row, or none since a crash",
)
