"""The timelines of lake tables, and the files that made up their snapshots."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "data_files",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "partition_name", sa.Text(collation="C"), nullable=False, comment="empty: of a table without partition keys"
        ),
        sa.Column("file_group", sa.Text(collation="C"), nullable=False),
        sa.Column("slice", sa.Text(collation="C"), nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False, comment="metastore.store.snapshot.data_files.Kind"),
        sa.Column("version", sa.Integer(), nullable=False, comment="of a log file: its place in the slice"),
        sa.Column("path", sa.Text(), nullable=False, comment="below the table's location"),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=True),
        sa.Column("min_event_time", sa.BigInteger(), nullable=True, comment="ms"),
        sa.Column("max_event_time", sa.BigInteger(), nullable=True, comment="ms"),
        sa.Column(
            "columns", postgresql.ARRAY(sa.Text(collation="C")), nullable=True, comment="that it holds; NULL: all"
        ),
        sa.Column("statistics", sa.LargeBinary(), nullable=True),
        sa.Column(
            "added_at", sa.BigInteger(), nullable=False, comment="position from which on it belongs to the snapshot"
        ),
        sa.Column(
            "removed_at", sa.BigInteger(), nullable=True, comment="position from which on it doesn't; NULL: it does"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("data_files_pkey")),
        comment="which files made up a table's snapshot from which position to which",
    )
    op.create_index("data_files_added_idx", "data_files", ["table_id", "added_at"], unique=False)
    op.create_index(
        "data_files_history_idx",
        "data_files",
        ["table_id", "partition_name", "removed_at"],
        unique=False,
        postgresql_where=sa.text("removed_at IS NOT NULL"),
    )
    op.create_index(
        "data_files_live_idx",
        "data_files",
        ["table_id", "partition_name", "file_group"],
        unique=False,
        postgresql_where=sa.text("removed_at IS NULL"),
    )
    op.create_index("data_files_path_idx", "data_files", ["table_id", sa.literal_column("md5(path)")], unique=False)
    op.create_index(
        "data_files_removed_idx",
        "data_files",
        ["table_id", "removed_at"],
        unique=False,
        postgresql_where=sa.text("removed_at IS NOT NULL"),
    )
    op.create_table(
        "instant_touches",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("partition_name", sa.Text(collation="C"), nullable=False),
        sa.Column("file_group", sa.Text(collation="C"), nullable=True, comment="NULL: the whole partition"),
        sa.Column(
            "slice",
            sa.Text(collation="C"),
            nullable=True,
            comment="the oldest that got a file; NULL: it lost files only",
        ),
        sa.Column("logs_only", sa.Boolean(), nullable=False, comment="it got log files and lost none"),
        sa.Column(
            "compacted", sa.Boolean(), nullable=False, comment="by compaction: log files in later slices don't mind"
        ),
        sa.Column("columns", postgresql.ARRAY(sa.Text(collation="C")), nullable=True, comment="NULL: all"),
        sa.PrimaryKeyConstraint("id", name=op.f("instant_touches_pkey")),
        comment="what completed instants changed: by this conflicts are found",
    )
    op.create_index(
        op.f("instant_touches_table_id_position_partition_name_idx"),
        "instant_touches",
        ["table_id", "position", "partition_name"],
        unique=False,
    )
    op.create_table(
        "instants",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("timestamp", sa.Text(collation="C"), nullable=False),
        sa.Column("action", sa.Text(collation="C"), nullable=False),
        sa.Column("begun_as", sa.Text(collation="C"), nullable=False, comment="the action until completion changed it"),
        sa.Column("state", sa.Text(collation="C"), nullable=False, comment="requested, inflight or completed"),
        sa.Column("requested_at", sa.BigInteger(), nullable=False, comment="ms"),
        sa.Column("changed_at", sa.BigInteger(), nullable=False, comment="ms"),
        sa.Column(
            "heartbeat_at", sa.DateTime(timezone=True), nullable=True, comment="by the database's clock; NULL: never"
        ),
        sa.Column("read_position", sa.BigInteger(), nullable=False),
        sa.Column("completion_time", sa.Text(collation="C"), nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column(
            "event_id", sa.BigInteger(), nullable=True, comment="the last event of the transaction that completed it"
        ),
        sa.Column("moment", sa.BigInteger(), nullable=True, comment="that event's number, once it has been looked up"),
        sa.Column("digest", sa.LargeBinary(), nullable=True, comment="SHA-256 of the completion, to know it again"),
        sa.Column("conflict", sa.Text(), nullable=True, comment="why its completion was refused"),
        sa.Column(
            "undone_by",
            sa.Text(collation="C"),
            nullable=True,
            comment="the timestamp of the rollback or restore that undid it",
        ),
        sa.Column("archived", sa.Boolean(), server_default="false", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("instants_pkey")),
        sa.UniqueConstraint("table_id", "timestamp", "action", name=op.f("instants_table_id_timestamp_action_key")),
    )
    op.create_index(
        "instants_active_idx",
        "instants",
        ["table_id", "timestamp"],
        unique=False,
        postgresql_where=sa.text("NOT archived"),
    )
    op.create_index(
        "instants_heartbeat_idx",
        "instants",
        ["heartbeat_at"],
        unique=False,
        postgresql_where=sa.text("position IS NULL"),
    )
    op.create_index("instants_moment_idx", "instants", ["table_id", "moment"], unique=False)
    op.create_index(
        "instants_position_idx",
        "instants",
        ["table_id", "position"],
        unique=True,
        postgresql_where=sa.text("position IS NOT NULL"),
    )
    op.create_index(
        "instants_unplaced_idx",
        "instants",
        ["event_id"],
        unique=False,
        postgresql_where=sa.text("moment IS NULL AND event_id IS NOT NULL"),
    )
    op.create_table(
        "lake_partitions",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("values", postgresql.ARRAY(sa.Text(collation="C")), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False, comment="position"),
        sa.PrimaryKeyConstraint("table_id", "name", name=op.f("lake_partitions_pkey")),
        comment="sums over the files of the latest snapshot of each partition",
    )
    op.create_table(
        "timelines",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "last_timestamp",
            sa.Text(collation="C"),
            server_default="",
            nullable=False,
            comment="the greatest given, of either kind",
        ),
        sa.Column(
            "position", sa.BigInteger(), server_default="0", nullable=False, comment="how many instants completed"
        ),
        sa.Column(
            "oldest_readable",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="position; what cleaning left",
        ),
        sa.PrimaryKeyConstraint("table_id", name=op.f("timelines_pkey")),
        comment="tables that have a timeline; whoever completes an instant holds the row",
    )
    op.create_table(
        "instant_metadata",
        sa.Column("instant_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(collation="C"), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False, comment="what the writer gave"),
        sa.ForeignKeyConstraint(
            ["instant_id"], ["instants.id"], name=op.f("instant_metadata_instant_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("instant_id", "state", name=op.f("instant_metadata_pkey")),
    )
    op.create_table(
        "instant_plans",
        sa.Column("instant_id", sa.BigInteger(), nullable=False),
        sa.Column("partition_name", sa.Text(collation="C"), nullable=False),
        sa.Column("file_group", sa.Text(collation="C"), nullable=False),
        sa.ForeignKeyConstraint(
            ["instant_id"], ["instants.id"], name=op.f("instant_plans_instant_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("instant_id", "partition_name", "file_group", name=op.f("instant_plans_pkey")),
        comment="the file groups that a table service is going to rewrite",
    )
    op.create_table(
        "leftover_files",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("instant_id", sa.BigInteger(), nullable=True),
        sa.Column("path", sa.Text(), nullable=False, comment="below the table's location"),
        sa.ForeignKeyConstraint(
            ["instant_id"], ["instants.id"], name=op.f("leftover_files_instant_id_fkey"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("leftover_files_pkey")),
        comment="files of refused completions, to be deleted once their instant is gone, and files that were cleaned",
    )
    op.create_index(op.f("leftover_files_instant_id_idx"), "leftover_files", ["instant_id"], unique=False)
    op.create_index(op.f("leftover_files_table_id_idx"), "leftover_files", ["table_id"], unique=False)
