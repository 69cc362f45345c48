"""Which materialized views there are is found without a look at the other tables."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
compatible_from = "0011"


def upgrade() -> None:
    op.create_index(
        "tables_materialized_views_idx",
        "tables",
        ["database_id"],
        unique=False,
        postgresql_where=sa.text("type = 'MATERIALIZED_VIEW'"),
    )
