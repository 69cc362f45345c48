"""Tables of the table management service: what it decided, and the queue of its jobs."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    text,
)

from metastore.store.schema.base import NAME, identifier, metadata

_PLAN = text("coalesce(instant, '')")


service_jobs = Table(
    "service_jobs",
    metadata,
    identifier(),
    Column("table_id", ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    Column("action", NAME, nullable=False),
    Column("state", NAME, nullable=False, comment="pending, running, succeeded, failed or cancelled"),
    Column("instant", NAME, comment="timestamp of its plan; NULL: none was made yet"),
    Column("reason", Text),
    Column("gain", Double),
    Column("cost", Double, comment="seconds: estimated, and once it has succeeded what it took"),
    Column("bytes", BigInteger, comment="that it reads"),
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("windows", Text, comment="when it may run; NULL: at any time"),
    Column("pool", Text, comment="by which running jobs are bounded; NULL: none"),
    Column(
        "attempt", Integer, nullable=False, server_default="0", comment="how often it was taken: fences who runs it"
    ),
    Column("failures", Integer, nullable=False, server_default="0", comment="attempts in a row that failed"),
    Column("worker", Text, comment="that took it last"),
    Column("call", NAME, comment="the call by which it was taken last, to know that again"),
    Column("enqueued_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Column("not_before", DateTime(timezone=True), nullable=False, server_default=text("'-infinity'")),
    Column("started_at", DateTime(timezone=True)),
    Column("lease_until", DateTime(timezone=True), comment="of a running one: without a heartbeat it is lost then"),
    Column("finished_at", DateTime(timezone=True)),
    Column("stopping", Boolean, nullable=False, server_default="false", comment="whoever runs it is asked to stop"),
    Column("outcome", NAME, comment="of the last attempt"),
    Column("log", Text, comment="of the last attempt"),
    Index(
        "service_jobs_waiting_idx", "table_id", "action", _PLAN, unique=True, postgresql_where=text("state = 'pending'")
    ),
    Index("service_jobs_running_idx", "table_id", "action", unique=True, postgresql_where=text("state = 'running'")),
    Index("service_jobs_live_idx", "state", postgresql_where=text("state IN ('pending', 'running')")),
    Index("service_jobs_call_idx", "call", postgresql_where=text("state = 'running'")),
    Index("service_jobs_table_idx", "table_id", "id"),
    comment="the queue of the table management service, and the latest jobs of each table that have ended",
)


service_decisions = Table(
    "service_decisions",
    metadata,
    identifier(),
    Column("table_id", ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    Column("service", NAME, nullable=False, comment="compaction, clustering or clean"),
    Column("action", NAME, comment="NULL: nothing is to be done"),
    Column("reason", Text, nullable=False),
    Column("figures", Text, comment="JSON"),
    Column("gain", Double),
    Column("cost", Double),
    Column("decided_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Column("position", BigInteger, nullable=False, comment="of the table then"),
    Index(None, "table_id", "service", "id"),
    comment="what was decided of tables and why, the latest of each",
)


service_tables = Table(
    "service_tables",
    metadata,
    Column(
        "table_id", ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True, autoincrement=False, nullable=False
    ),
    Column("paused", Text, comment="why it is paused; NULL: it isn't"),
    Column("resumed_at", DateTime(timezone=True), comment="what was set aside before is tried again"),
    Column("position", BigInteger, nullable=False, server_default="0", comment="that the last decisions are about"),
    Column("look_at", DateTime(timezone=True), comment="when time alone may change them"),
    Index(None, "look_at"),
    comment="how far the table management service has looked at tables",
)


engine_figures = Table(
    "engine_figures",
    metadata,
    Column("table_id", ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("day", Date, primary_key=True, comment="in UTC"),
    Column("scans", BigInteger, nullable=False),
    Column("files", BigInteger, nullable=False),
    Column("delete_files", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("planning_ms", BigInteger, nullable=False),
    Column("commits", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Index(None, "day"),
    comment="what engines reported of tables, summed up for each day",
)
