"""A reader's lease may be on all later snapshots, too."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
compatible_from = "0030"  # a server that doesn't know of it would let a clean delete what is being read


def upgrade() -> None:
    op.add_column(
        "reader_leases",
        sa.Column(
            "onwards",
            sa.Boolean(),
            server_default="false",
            nullable=False,
            comment="whether cleans keep all later snapshots, too",
        ),
    )
