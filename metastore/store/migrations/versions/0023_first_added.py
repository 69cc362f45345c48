"""The position at which a file first joined the snapshot: a rollback that brings it back doesn't make it newer."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None
compatible_from = "0019"


def upgrade() -> None:
    op.add_column(
        "data_files",
        sa.Column(
            "first_added_at",
            sa.BigInteger(),
            nullable=True,
            comment="position at which its path first joined the snapshot; NULL: added_at",
        ),
    )
