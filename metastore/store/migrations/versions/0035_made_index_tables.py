"""Records which tables the server made for the data of an index: nothing else is deleted with the index."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None
compatible_from = "0030"  # an index that an older server adds leaves its table behind when it is dropped


def upgrade() -> None:
    op.add_column(
        "table_indexes",
        sa.Column(
            "made",
            sa.Boolean,
            nullable=False,
            server_default=sa.false(),
            comment="whether the table of the data was made with the index",
        ),
    )
    # Hive's clients give the table that they send along with an index this type, and put it into the same database.
    op.execute(
        "UPDATE table_indexes SET made = true FROM tables AS data, tables AS base"
        " WHERE data.id = table_indexes.index_table_id AND base.id = table_indexes.table_id"
        " AND data.database_id = base.database_id AND data.id <> base.id AND data.type = 'INDEX_TABLE'"
    )
