"""Readers' leases belong to the users who took them."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None
compatible_from = "0030"  # a server that doesn't know the column takes leases without an owner


def upgrade() -> None:
    op.add_column(
        "reader_leases", sa.Column("owner", sa.Text, comment="the user who took it; NULL: there were no rights")
    )
