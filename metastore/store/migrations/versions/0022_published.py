"""Which position of a partition of a keyed table Hive sees."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None
compatible_from = "0019"


def upgrade() -> None:
    op.add_column(
        "lake_partitions",
        sa.Column(
            "published_at", sa.BigInteger(), nullable=True, comment="of a keyed table: the position that Hive sees"
        ),
    )
