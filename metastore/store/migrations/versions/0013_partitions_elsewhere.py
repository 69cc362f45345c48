"""Partitions that don't lie in their default place are found without a look at the others."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
compatible_from = "0011"


def upgrade() -> None:
    op.create_index(
        "partitions_elsewhere_idx",
        "partitions",
        ["table_id"],
        unique=False,
        postgresql_where=sa.text("path IS DISTINCT FROM name"),
    )
