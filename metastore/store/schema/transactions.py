"""Tables of transactions, write ids, locks and compactions."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    func,
    text,
)

from metastore.store.schema.base import NAME, identifier, metadata

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
    Column("operation", SmallInteger, nullable=False, comment="metastore.store.transactions.transactions.Operation"),
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
    Column("operation", SmallInteger, nullable=False, comment="metastore.store.transactions.transactions.Operation"),
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
    Column("state", Text, nullable=False, comment="metastore.store.transactions.compactions.State"),
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
