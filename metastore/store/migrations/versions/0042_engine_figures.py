"""What engines report of their reads and commits is kept for the table services."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None
compatible_from = "0030"

_COUNTS = ("scans", "files", "delete_files", "bytes", "planning_ms", "commits", "attempts")


def upgrade() -> None:
    op.create_table(
        "engine_figures",
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False, comment="in UTC"),
        *(sa.Column(each, sa.BigInteger(), nullable=False) for each in _COUNTS),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name="engine_figures_table_id_fkey", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("table_id", "day", name="engine_figures_pkey"),
        comment="what engines reported of tables, summed up for each day",
    )
    op.create_index("engine_figures_day_idx", "engine_figures", ["day"])
