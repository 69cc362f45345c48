"""Jobs of the table management service may belong to a pool, of which so many run at a time."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None
compatible_from = "0030"  # a server that doesn't know of pools takes jobs whatever their pool


def upgrade() -> None:
    op.add_column("service_jobs", sa.Column("pool", sa.Text, comment="by which running jobs are bounded; NULL: none"))
