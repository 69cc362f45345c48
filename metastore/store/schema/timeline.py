"""Tables of timelines and their instants."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from metastore.store.schema.base import NAME, identifier, metadata

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


former_positions = Table(
    "former_positions",
    metadata,
    Column("catalog", NAME, primary_key=True, nullable=False),
    Column("database_name", NAME, primary_key=True, nullable=False),
    Column("table_name", NAME, primary_key=True, nullable=False),
    Column("position", BigInteger, nullable=False, comment="the greatest of tables that had the name before"),
    comment="names that tables with completions had and lost; positions of a new table go on after them",
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
    Column("attempt", Integer, nullable=False, server_default="0", comment="how often it has become inflight"),
    Column("runner", NAME, comment="the process that runs the plan"),
    Column("planned", Boolean, nullable=False, server_default="false", comment="a table service with a plan"),
    Column("name", NAME, comment="of a savepoint"),
    UniqueConstraint("table_id", "timestamp", "action"),
    Index("instants_position_idx", "table_id", "position", unique=True, postgresql_where=text("position IS NOT NULL")),
    Index("instants_active_idx", "table_id", "timestamp", postgresql_where=text("NOT archived")),
    Index("instants_archived_idx", "changed_at", postgresql_where=text("archived")),
    Index("instants_heartbeat_idx", "heartbeat_at", postgresql_where=text("position IS NULL")),
    Index("instants_unplaced_idx", "event_id", postgresql_where=text("moment IS NULL AND event_id IS NOT NULL")),
    Index("instants_moment_idx", "table_id", "moment"),
    Index(
        "instants_name_idx",
        "table_id",
        "name",
        unique=True,
        postgresql_where=text("name IS NOT NULL AND undone_by IS NULL"),
    ),
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


changed_groups = Table(
    "changed_groups",
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


stream_batches = Table(
    "stream_batches",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("stream", NAME, primary_key=True),
    Column("batch", BigInteger, nullable=False, comment="the greatest number that completed"),
    Column("timestamp", NAME, nullable=False, comment="of the instant that completed it"),
    Column("position", BigInteger, nullable=False, comment="of that instant"),
    comment="how far streams have come that write into a table: each batch is part of it once",
)


uncommitted_spans = Table(
    "uncommitted_spans",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("partition_name", NAME, primary_key=True),
    Column("opened_at", BigInteger, primary_key=True, autoincrement=False, comment="position from which on it was"),
    Column("committed_at", BigInteger, comment="position from which on it wasn't; NULL: it is"),
    comment="at which positions partitions were uncommitted; at all others they were ready",
)


rejected_commits = Table(
    "rejected_commits",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("timestamp", NAME, nullable=False),
    Column("action", NAME, nullable=False),
    Column("requested_at", BigInteger, nullable=False, comment="ms"),
    Column("rejected_at", BigInteger, nullable=False, comment="ms"),
    Column("winners", ARRAY(BigInteger), nullable=False, comment="positions of what was quicker"),
    Column("reason", Text, nullable=False),
    Index(None, "table_id", "id"),
    comment="completions that lost to others, for people to look at",
)
