"""Tables and columns bear the names that the code has for what is in them."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
compatible_from = "0019"

_TABLES = {
    "refusals": "rejected_commits",
    "leftover_files": "pending_deletions",
    "instant_touches": "changed_groups",
}
_INDEXES = {
    "refusals": ["pkey", "table_id_id_idx"],
    "leftover_files": ["pkey", "instant_id_idx", "table_id_idx", "due_idx"],
    "instant_touches": ["pkey", "table_id_position_partition_name_idx"],
}
_LOSSY = "later events may have been sent to subscribers and are undone"


def upgrade() -> None:
    for old, new in _TABLES.items():
        op.rename_table(old, new)
        op.execute(f"ALTER SEQUENCE {old}_id_seq RENAME TO {new}_id_seq")
        for index in _INDEXES[old]:
            op.execute(f"ALTER INDEX {old}_{index} RENAME TO {new}_{index}")
    op.execute(
        "ALTER TABLE pending_deletions"
        " RENAME CONSTRAINT leftover_files_instant_id_fkey TO pending_deletions_instant_id_fkey"
    )
    op.alter_column("rejected_commits", "refused_at", new_column_name="rejected_at")
    op.alter_column("event_group_shards", "tenure", new_column_name="generation")
    op.alter_column("event_dead_letters", "set_aside_at", new_column_name="dead_lettered_at")
    op.alter_column("event_epochs", "lossy", comment=_LOSSY)
