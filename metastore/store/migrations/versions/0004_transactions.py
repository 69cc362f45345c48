"""Transactions, write ids and compactions."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "compaction_metrics",
        sa.Column("catalog", sa.Text(collation="C"), nullable=False),
        sa.Column("database_name", sa.Text(collation="C"), nullable=False),
        sa.Column("table_name", sa.Text(collation="C"), nullable=False),
        sa.Column("partition_name", sa.Text(collation="C"), nullable=False, comment="empty: the whole table"),
        sa.Column(
            "type", sa.SmallInteger(), autoincrement=False, nullable=False, comment="CompactionMetricsMetricType"
        ),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint(
            "catalog", "database_name", "table_name", "partition_name", "type", name=op.f("compaction_metrics_pkey")
        ),
    )
    op.create_table(
        "compactions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("catalog", sa.Text(collation="C"), nullable=False),
        sa.Column("database_name", sa.Text(collation="C"), nullable=False),
        sa.Column("table_name", sa.Text(collation="C"), nullable=False),
        sa.Column("partition_name", sa.Text(collation="C"), nullable=False, comment="empty: the whole table"),
        sa.Column("type", sa.SmallInteger(), nullable=False, comment="CompactionType"),
        sa.Column("state", sa.Text(), nullable=False, comment="metastore.store.transactions.compactions.State"),
        sa.Column("properties", sa.Text(), nullable=True),
        sa.Column("pool", sa.Text(), nullable=True, comment="of workers that may do it; NULL: any that serve none"),
        sa.Column("bucket_count", sa.Integer(), nullable=True),
        sa.Column("order_by", sa.Text(), nullable=True),
        sa.Column("run_as", sa.Text(), nullable=True),
        sa.Column("initiator_id", sa.Text(), nullable=True),
        sa.Column("initiator_version", sa.Text(), nullable=True),
        sa.Column("worker_id", sa.Text(), nullable=True),
        sa.Column("worker_version", sa.Text(), nullable=True),
        sa.Column("hadoop_job_id", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("highest_write_id", sa.BigInteger(), nullable=True),
        sa.Column("transaction_id", sa.BigInteger(), nullable=True, comment="in which it is done"),
        sa.Column(
            "next_transaction_id",
            sa.BigInteger(),
            nullable=True,
            comment="the highest transaction id when that was committed",
        ),
        sa.Column("enqueued_at", sa.BigInteger(), nullable=False, comment="ms, as the next ones"),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("committed_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("compactions_pkey")),
    )
    op.create_index("compactions_table_idx", "compactions", ["catalog", "database_name", "table_name"], unique=False)
    op.create_index(op.f("compactions_transaction_id_idx"), "compactions", ["transaction_id"], unique=False)
    op.create_index(
        "compactions_waiting_idx", "compactions", ["id"], unique=False, postgresql_where=sa.text("state = 'i'")
    )
    op.create_table(
        "completed_components",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.Column("catalog", sa.Text(collation="C"), nullable=False),
        sa.Column("database_name", sa.Text(collation="C"), nullable=False),
        sa.Column("table_name", sa.Text(collation="C"), nullable=False),
        sa.Column("partition_name", sa.Text(collation="C"), nullable=False, comment="empty: the whole table"),
        sa.Column("write_id", sa.BigInteger(), nullable=True),
        sa.Column("changes_rows", sa.Boolean(), nullable=False, comment="the transaction updated or deleted something"),
        sa.PrimaryKeyConstraint("id", name=op.f("completed_components_pkey")),
        comment="what committed transactions wrote since the last compaction",
    )
    op.create_index(
        "completed_components_table_idx",
        "completed_components",
        ["catalog", "database_name", "table_name"],
        unique=False,
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("next", sa.BigInteger(), nullable=False, comment="the number that is given next"),
        sa.PrimaryKeyConstraint("name", name=op.f("counters_pkey")),
        comment="numbers that rise in the order of commits: who takes one holds the row until it commits",
    )
    op.create_table(
        "materialization_rebuilds",
        sa.Column("catalog", sa.Text(collation="C"), nullable=False),
        sa.Column("database_name", sa.Text(collation="C"), nullable=False),
        sa.Column("table_name", sa.Text(collation="C"), nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "heartbeat_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("catalog", "database_name", "table_name", name=op.f("materialization_rebuilds_pkey")),
        comment="materialized views that are being rebuilt, each by one transaction",
    )
    op.create_index(
        op.f("materialization_rebuilds_transaction_id_idx"),
        "materialization_rebuilds",
        ["transaction_id"],
        unique=False,
    )
    op.create_table(
        "replicated_transactions",
        sa.Column("policy", sa.Text(collation="C"), nullable=False),
        sa.Column("source_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("target_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("policy", "source_id", name=op.f("replicated_transactions_pkey")),
        comment="transactions that replay those of another warehouse",
    )
    op.create_index(
        op.f("replicated_transactions_target_id_idx"), "replicated_transactions", ["target_id"], unique=False
    )
    op.create_table(
        "table_write_ids",
        sa.Column("catalog", sa.Text(collation="C"), nullable=False),
        sa.Column("database_name", sa.Text(collation="C"), nullable=False),
        sa.Column("table_name", sa.Text(collation="C"), nullable=False),
        sa.Column("next", sa.BigInteger(), nullable=False, comment="the write id that is given next"),
        sa.PrimaryKeyConstraint("catalog", "database_name", "table_name", name=op.f("table_write_ids_pkey")),
    )
    op.create_table(
        "transaction_components",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.Column("catalog", sa.Text(collation="C"), nullable=False),
        sa.Column("database_name", sa.Text(collation="C"), nullable=False),
        sa.Column("table_name", sa.Text(collation="C"), nullable=False),
        sa.Column("partition_name", sa.Text(collation="C"), nullable=False, comment="empty: the whole table"),
        sa.Column(
            "operation",
            sa.SmallInteger(),
            nullable=False,
            comment="metastore.store.transactions.transactions.Operation",
        ),
        sa.Column("write_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("transaction_components_pkey")),
        comment="what open transactions write, and aborted ones wrote that no compaction has cleaned up yet",
    )
    op.create_index(
        "transaction_components_table_idx",
        "transaction_components",
        ["catalog", "database_name", "table_name"],
        unique=False,
    )
    op.create_index(
        op.f("transaction_components_transaction_id_idx"), "transaction_components", ["transaction_id"], unique=False
    )
    op.create_table(
        "transaction_write_ids",
        sa.Column("catalog", sa.Text(collation="C"), nullable=False),
        sa.Column("database_name", sa.Text(collation="C"), nullable=False),
        sa.Column("table_name", sa.Text(collation="C"), nullable=False),
        sa.Column("write_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "catalog", "database_name", "table_name", "write_id", name=op.f("transaction_write_ids_pkey")
        ),
    )
    op.create_index(
        op.f("transaction_write_ids_transaction_id_idx"), "transaction_write_ids", ["transaction_id"], unique=False
    )
    op.create_table(
        "transactions",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False, comment="TxnState"),
        sa.Column("type", sa.SmallInteger(), nullable=False, comment="TxnType"),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column(
            "started_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "heartbeat_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True, comment="NULL: it is open"),
        sa.Column(
            "commit_id",
            sa.BigInteger(),
            nullable=True,
            comment="the highest transaction id at its commit; NULL: it isn't committed",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("transactions_pkey")),
        comment="ids are given by the counter `transaction`; committed ones are forgotten after a while",
    )
    op.create_index(
        "transactions_uncommitted_idx", "transactions", ["id"], unique=False, postgresql_where=sa.text("state <> 1")
    )
    op.create_table(
        "write_sets",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.BigInteger(), nullable=False, comment="the highest transaction id at the commit"),
        sa.Column("catalog", sa.Text(collation="C"), nullable=False),
        sa.Column("database_name", sa.Text(collation="C"), nullable=False),
        sa.Column("table_name", sa.Text(collation="C"), nullable=False),
        sa.Column("partition_name", sa.Text(collation="C"), nullable=False, comment="empty: the whole table"),
        sa.Column(
            "operation",
            sa.SmallInteger(),
            nullable=False,
            comment="metastore.store.transactions.transactions.Operation",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("write_sets_pkey")),
        comment="what committed transactions wrote, while a transaction is open that began before they were committed",
    )
    op.create_index(op.f("write_sets_commit_id_idx"), "write_sets", ["commit_id"], unique=False)
    op.create_index("write_sets_table_idx", "write_sets", ["catalog", "database_name", "table_name"], unique=False)
    op.create_index(
        "locks_transaction_idx",
        "locks",
        ["transaction_id"],
        unique=False,
        postgresql_where=sa.text("transaction_id <> 0"),
    )
    op.execute("INSERT INTO counters (name, next) VALUES ('transaction', 1)")
