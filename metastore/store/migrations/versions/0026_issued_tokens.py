"""Delegation tokens that the metastore issues, and the keys that it signs them with."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None
compatible_from = "0025"


def upgrade() -> None:
    op.create_table(
        "token_keys",
        sa.Column("id", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("made", sa.BigInteger(), nullable=False, comment="milliseconds since 1970"),
        sa.PrimaryKeyConstraint("id", name=op.f("token_keys_pkey")),
        comment="with which this metastore signs the tokens that it issues; no client sees them",
    )
    op.create_table(
        "issued_tokens",
        sa.Column("sequence", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("renew_until", sa.BigInteger(), nullable=False, comment="milliseconds since 1970"),
        sa.Column("max_date", sa.BigInteger(), nullable=False, comment="milliseconds since 1970"),
        sa.PrimaryKeyConstraint("sequence", name=op.f("issued_tokens_pkey")),
        comment="delegation tokens that are neither cancelled nor too old",
    )
    op.create_index(op.f("issued_tokens_owner_idx"), "issued_tokens", ["owner"])
