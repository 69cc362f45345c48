"""Changelogs of keyed tables: which rows each completion changed, in files outside snapshots."""

import sqlalchemy as sa
from alembic import op

from metastore.store.schema.base import NAME

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None
compatible_from = "0025"


def upgrade() -> None:
    op.create_table(
        "changelogs",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("table_id", "position", name=op.f("changelogs_pkey")),
        comment="completions whose writers wrote down which rows they changed",
    )
    op.create_table(
        "changelog_files",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, comment="of the completion that changed these rows"),
        sa.Column("timestamp", NAME, nullable=False, comment="of its instant"),
        sa.Column("partition_name", NAME, nullable=False, comment="empty: of a table without partition keys"),
        sa.Column("file_group", NAME, nullable=False),
        sa.Column("path", sa.Text(), nullable=False, comment="below the table's location"),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("row_count", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name=op.f("changelog_files_pkey")),
        comment="files with the rows that completions changed; they belong to no snapshot",
    )
    op.create_index(op.f("changelog_files_table_id_position_idx"), "changelog_files", ["table_id", "position"])
