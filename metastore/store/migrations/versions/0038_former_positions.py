"""Names that tables lost keep the last positions of these: positions of a new table go on after them."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None
compatible_from = "0030"


def upgrade() -> None:
    name = sa.Text(collation="C")
    op.create_table(
        "former_positions",
        sa.Column("catalog", name, nullable=False),
        sa.Column("database_name", name, nullable=False),
        sa.Column("table_name", name, nullable=False),
        sa.Column(
            "position", sa.BigInteger(), nullable=False, comment="the greatest of tables that had the name before"
        ),
        sa.PrimaryKeyConstraint("catalog", "database_name", "table_name", name="former_positions_pkey"),
        comment="names that tables with completions had and lost; positions of a new table go on after them",
    )
    op.execute(
        "CREATE TRIGGER cache_end AFTER TRUNCATE ON former_positions FOR EACH STATEMENT EXECUTE FUNCTION cache_end()"
    )
