"""What archived instants changed is forgotten once nobody under way has read so little; refusals are kept."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "timelines",
        sa.Column(
            "forgotten",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="position up to which nobody finds conflicts any more",
        ),
    )
    op.create_table(
        "refusals",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("timestamp", sa.Text(collation="C"), nullable=False),
        sa.Column("action", sa.Text(collation="C"), nullable=False),
        sa.Column("requested_at", sa.BigInteger(), nullable=False, comment="ms"),
        sa.Column("refused_at", sa.BigInteger(), nullable=False, comment="ms"),
        sa.Column(
            "winners", postgresql.ARRAY(sa.BigInteger()), nullable=False, comment="positions of what was quicker"
        ),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("refusals_pkey")),
        comment="completions that lost to others, for people to look at",
    )
    op.create_index(op.f("refusals_table_id_id_idx"), "refusals", ["table_id", "id"], unique=False)
