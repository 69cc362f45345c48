"""Tables of Hive's objects beside tables, and of properties of the metastore as a whole."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from metastore.store.schema.base import NAME, identifier, metadata

metastore_properties = Table(
    "metastore_properties",
    metadata,
    Column("key", NAME, primary_key=True),
    Column("value", Text, nullable=False),
)


named_objects = Table(
    "named_objects",
    metadata,
    identifier(),
    Column("kind", SmallInteger, nullable=False, comment="metastore.store.registry.named_objects.Kind"),
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
