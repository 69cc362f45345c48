"""Savepoints may have names."""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None
compatible_from = "0030"


def upgrade() -> None:
    op.add_column("instants", sa.Column("name", sa.Text(collation="C"), comment="of a savepoint"))
    op.create_index(
        "instants_name_idx",
        "instants",
        ["table_id", "name"],
        unique=True,
        postgresql_where=sa.text("name IS NOT NULL AND undone_by IS NULL"),
    )
