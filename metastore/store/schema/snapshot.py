"""Tables of data files, of changelogs, of pending deletions, and of readers' leases."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from metastore.store.schema.base import NAME, identifier, metadata

pending_deletions = Table(
    "pending_deletions",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False, index=True),
    Column("instant_id", ForeignKey("instants.id", ondelete="SET NULL"), index=True),
    Column("path", Text, nullable=False, comment="below the table's location"),
    Column("attempts", Integer, nullable=False, server_default="0", comment="that failed"),
    Column("next_attempt_at", DateTime(timezone=True), nullable=False, server_default=text("'-infinity'")),
    Column("failure", Text, comment="of the last attempt"),
    Index("pending_deletions_due_idx", "next_attempt_at", "id", postgresql_where=text("instant_id IS NULL")),
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
    Column("kind", SmallInteger, nullable=False, comment="metastore.store.snapshot.data_files.Kind"),
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
    Column(
        "first_added_at", BigInteger, comment="position at which its path first joined the snapshot; NULL: added_at"
    ),
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


changelogs = Table(
    "changelogs",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    comment="completions whose writers wrote down which rows they changed",
)


changelog_files = Table(
    "changelog_files",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False, comment="of the completion that changed these rows"),
    Column("timestamp", NAME, nullable=False, comment="of its instant"),
    Column("partition_name", NAME, nullable=False, comment="empty: of a table without partition keys"),
    Column("file_group", NAME, nullable=False),
    Column("path", Text, nullable=False, comment="below the table's location"),
    Column("size", BigInteger, nullable=False),
    Column("row_count", BigInteger),
    Index(None, "table_id", "position"),
    comment="files with the rows that completions changed; they belong to no snapshot",
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
    Column("published_at", BigInteger, comment="of a keyed table: the position that Hive sees"),
    comment="sums over the files of the latest snapshot of each partition",
)


reader_leases = Table(
    "reader_leases",
    metadata,
    Column(
        "table_id", ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True, autoincrement=False, nullable=False
    ),
    Column("name", NAME, primary_key=True, comment="of the reader's own"),
    Column("position", BigInteger, nullable=False, comment="whose snapshot cleans keep"),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("holder", Text, comment="for people to read"),
    Column("owner", Text, comment="the user who took it; NULL: there were no rights"),
    Column(
        "onwards",
        Boolean,
        server_default="false",
        nullable=False,
        comment="whether cleans keep all later snapshots, too",
    ),
    Index(None, "expires_at"),
    comment="snapshots that are being read",
)
