"""What Hive keeps beside tables: resource plans, schemas, scheduled queries and their like."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "master_keys",
        sa.Column("id", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("master_keys_pkey")),
        comment="with which delegation tokens are signed",
    )
    op.create_table(
        "replication_metrics",
        sa.Column("scheduled_execution_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("policy", sa.Text(collation="C"), nullable=False),
        sa.Column("start_time", sa.BigInteger(), nullable=False, comment="seconds"),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="encoded ReplicationMetrics"),
        sa.PrimaryKeyConstraint("scheduled_execution_id", name=op.f("replication_metrics_pkey")),
    )
    op.create_index(op.f("replication_metrics_policy_idx"), "replication_metrics", ["policy"], unique=False)
    op.create_index(op.f("replication_metrics_start_time_idx"), "replication_metrics", ["start_time"], unique=False)
    op.create_table(
        "resource_plans",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("namespace", sa.Text(collation="C"), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False, comment="WMResourcePlanStatus"),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="encoded WMFullResourcePlan"),
        sa.PrimaryKeyConstraint("id", name=op.f("resource_plans_pkey")),
        sa.UniqueConstraint("namespace", "name", name=op.f("resource_plans_namespace_name_key")),
    )
    op.create_index(
        "resource_plans_active_idx",
        "resource_plans",
        ["namespace"],
        unique=True,
        postgresql_where=sa.text("status = 1"),
    )
    op.create_table(
        "runtime_statistics",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False, comment="seconds"),
        sa.Column("weight", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("runtime_statistics_pkey")),
        comment="what engines found out about their queries",
    )
    op.create_index(op.f("runtime_statistics_create_time_idx"), "runtime_statistics", ["create_time"], unique=False)
    op.create_table(
        "scheduled_queries",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("namespace", sa.Text(collation="C"), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("next_execution", sa.BigInteger(), nullable=True, comment="seconds; NULL: never again"),
        sa.Column("active_execution_id", sa.BigInteger(), nullable=True, comment="NULL: it isn't running"),
        sa.Column(
            "body",
            sa.LargeBinary(),
            nullable=False,
            comment="encoded ScheduledQuery without what the other columns hold",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("scheduled_queries_pkey")),
        sa.UniqueConstraint("namespace", "name", name=op.f("scheduled_queries_namespace_name_key")),
    )
    op.create_table(
        "scheduled_executions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("scheduled_query_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False, comment="QueryState"),
        sa.Column("executor_query_id", sa.Text(), nullable=True),
        sa.Column("start_time", sa.BigInteger(), nullable=False, comment="seconds, as the next two"),
        sa.Column("end_time", sa.BigInteger(), nullable=True),
        sa.Column("last_update_time", sa.BigInteger(), nullable=True, comment="NULL: it has ended"),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["scheduled_query_id"],
            ["scheduled_queries.id"],
            name=op.f("scheduled_executions_scheduled_query_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("scheduled_executions_pkey")),
    )
    op.create_index(
        op.f("scheduled_executions_scheduled_query_id_idx"),
        "scheduled_executions",
        ["scheduled_query_id"],
        unique=False,
    )
    op.create_index(op.f("scheduled_executions_start_time_idx"), "scheduled_executions", ["start_time"], unique=False)
    op.create_table(
        "named_objects",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False, comment="metastore.store.registry.named_objects.Kind"),
        sa.Column("database_id", sa.BigInteger(), nullable=True, comment="NULL: of no database"),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="the encoded struct without names"),
        sa.ForeignKeyConstraint(
            ["database_id"], ["databases.id"], name=op.f("named_objects_database_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("named_objects_pkey")),
        sa.UniqueConstraint("database_id", "kind", "name", name=op.f("named_objects_database_id_kind_name_key")),
        comment="structs that are looked up by name alone",
    )
    op.create_index(
        "named_objects_of_no_database_idx",
        "named_objects",
        ["kind", "name"],
        unique=True,
        postgresql_where=sa.text("database_id IS NULL"),
    )
    op.create_table(
        "schema_versions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("schema_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column(
            "columns", postgresql.JSONB(), nullable=False, comment="name, type and comment of each, for searches"
        ),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="encoded SchemaVersion without schema and version"),
        sa.ForeignKeyConstraint(
            ["schema_id"], ["named_objects.id"], name=op.f("schema_versions_schema_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("schema_versions_pkey")),
        sa.UniqueConstraint("schema_id", "version", name=op.f("schema_versions_schema_id_version_key")),
        comment="versions of the schemas in the schema registry",
    )
    op.create_table(
        "table_indexes",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("index_table_id", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="encoded Index without names"),
        sa.ForeignKeyConstraint(
            ["index_table_id"], ["tables.id"], name=op.f("table_indexes_index_table_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name=op.f("table_indexes_table_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("table_indexes_pkey")),
        sa.UniqueConstraint("table_id", "name", name=op.f("table_indexes_table_id_name_key")),
        comment="indexes of Hive 2.3, whose data are tables of their own",
    )
    op.create_index(op.f("table_indexes_index_table_id_idx"), "table_indexes", ["index_table_id"], unique=False)
