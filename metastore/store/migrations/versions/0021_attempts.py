"""A plan of a table service is run by one process at a time, and each attempt has a directory of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None
compatible_from = "0019"


def upgrade() -> None:
    op.add_column(
        "instants",
        sa.Column(
            "attempt", sa.Integer(), server_default="0", nullable=False, comment="how often it has become inflight"
        ),
    )
    op.add_column(
        "instants", sa.Column("runner", sa.Text(collation="C"), nullable=True, comment="the process that runs the plan")
    )
    op.add_column(
        "instants",
        sa.Column(
            "planned", sa.Boolean(), server_default="false", nullable=False, comment="a table service with a plan"
        ),
    )
    op.execute(
        "UPDATE instants SET planned = true WHERE position IS NULL"
        " AND begun_as IN ('compaction', 'logcompaction', 'clustering', 'replacecommit')"
        " AND EXISTS (SELECT FROM instant_plans WHERE instant_plans.instant_id = instants.id)"
    )
