"""Requests that clients may send again are known by their keys."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None
compatible_from = "0030"


def upgrade() -> None:
    name = sa.Text(collation="C")
    op.create_table(
        "request_keys",
        sa.Column("caller", name, nullable=False, comment="the user; empty: nobody has logged in"),
        sa.Column("key", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False, comment="SHA-256 of the request"),
        sa.Column("refusal", sa.SmallInteger(), comment="the status with which it was refused; NULL: it was done"),
        sa.Column("table_id", sa.BigInteger(), comment="of the one table that it changed"),
        sa.Column("answer", sa.Text(), comment="for who sends the request again"),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("clock_timestamp()")),
        sa.PrimaryKeyConstraint("caller", "key", name="request_keys_pkey"),
        comment="requests that were done or refused for good, by the keys that clients gave them",
    )
    op.create_index("request_keys_at_idx", "request_keys", ["at"])
