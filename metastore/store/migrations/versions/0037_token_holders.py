"""Issued tokens say for whom they were issued, and end with the passwords of those users."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0035"
branch_labels = None
depends_on = None
compatible_from = "0030"  # a server that doesn't know the columns issues tokens without them


def upgrade() -> None:
    op.add_column("issued_tokens", sa.Column("renewer", sa.Text, comment="who may renew it; NULL: it isn't known"))
    op.add_column("issued_tokens", sa.Column("real_user", sa.Text, comment="who fetched it for the owner"))
    op.add_column("issued_tokens", sa.Column("issued", sa.BigInteger, comment="milliseconds since 1970"))
    op.add_column(
        "issued_tokens",
        sa.Column("owner_password", sa.Text, comment="version of the owner's password; NULL: the file had none"),
    )
    op.add_column(
        "issued_tokens", sa.Column("real_user_password", sa.Text, comment="the same of who fetched it for the owner")
    )
