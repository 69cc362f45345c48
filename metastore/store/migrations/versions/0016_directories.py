"""Deletes are confined: what the server made outside its warehouse is remembered, and where links lead."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
compatible_from = "0011"


def upgrade() -> None:
    op.create_table(
        "made_directories",
        sa.Column("place", sa.Text(collation="C"), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("made_directories_pkey")),
        comment="outside the warehouse's roots, and yet the server's to delete; without links on the way",
    )
    op.create_table(
        "linked_directories",
        sa.Column("location", sa.Text(collation="C"), nullable=False),
        sa.Column("leads_to", sa.Text(collation="C"), nullable=False),
        sa.PrimaryKeyConstraint("location", name=op.f("linked_directories_pkey")),
        comment="locations of tables, databases and partitions that were reached through links",
    )
    op.create_index(op.f("linked_directories_leads_to_idx"), "linked_directories", ["leads_to"], unique=False)
    op.alter_column("partitions", "location", type_=sa.Text(collation="C"))  # no row is written for that
    op.create_index(
        "partitions_location_idx",
        "partitions",
        [sa.text('"left"(location, 600)')],
        unique=False,
        postgresql_where=sa.text("location IS NOT NULL"),
    )
    op.add_column(
        "databases",
        sa.Column(
            "managed_location", sa.Text(collation="C"), nullable=True, comment="of managed tables; NULL: as the others"
        ),
    )
    op.create_index(op.f("databases_managed_location_idx"), "databases", ["managed_location"], unique=False)
    op.add_column(
        "leftover_files",
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False, comment="that failed"),
    )
    op.add_column(
        "leftover_files",
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), server_default=sa.text("'-infinity'"), nullable=False),
    )
    op.add_column("leftover_files", sa.Column("failure", sa.Text(), nullable=True, comment="of the last attempt"))
    op.create_index(
        "instants_archived_idx", "instants", ["changed_at"], unique=False, postgresql_where=sa.text("archived")
    )
    op.create_index(
        "leftover_files_due_idx",
        "leftover_files",
        ["next_attempt_at", "id"],
        unique=False,
        postgresql_where=sa.text("instant_id IS NULL"),
    )
