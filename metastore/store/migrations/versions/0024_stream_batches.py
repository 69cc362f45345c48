"""How far streams have come that write into lake tables: a repeated batch is known by it."""

import sqlalchemy as sa
from alembic import op

from metastore.store.schema.base import NAME

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
compatible_from = "0019"


def upgrade() -> None:
    op.create_table(
        "stream_batches",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stream", NAME, nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False, comment="the greatest number that completed"),
        sa.Column("timestamp", NAME, nullable=False, comment="of the instant that completed it"),
        sa.Column("position", sa.BigInteger(), nullable=False, comment="of that instant"),
        sa.PrimaryKeyConstraint("table_id", "stream", name=op.f("stream_batches_pkey")),
        comment="how far streams have come that write into a table: each batch is part of it once",
    )
