"""Moves that fail are tried again after growing pauses; deletions that older servers recorded are looked at first."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
compatible_from = "0019"


def upgrade() -> None:
    op.add_column(
        "moves", sa.Column("attempts", sa.Integer(), server_default="0", nullable=False, comment="that failed")
    )
    op.add_column(
        "moves",
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), server_default=sa.text("'-infinity'"), nullable=False),
    )
    op.add_column("moves", sa.Column("failure", sa.Text(), nullable=True, comment="of the last attempt"))
    op.add_column(
        "moves",
        sa.Column(
            "checked",
            sa.Boolean(),
            server_default="false",
            nullable=False,
            comment="whether it was looked who lives there; older servers don't",
        ),
    )
