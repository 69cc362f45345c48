"""Other metastores are followed."""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None
compatible_from = "0030"


def upgrade() -> None:
    name = sa.Text(collation="C")
    op.create_table(
        "followed_sources",
        sa.Column("source", name, nullable=False, comment="another metastore, as its follower calls it"),
        sa.Column("databases", name, nullable=False, comment="which of its databases, as patterns"),
        sa.Column("holder", sa.BigInteger(), nullable=False, comment="rises each time that somebody takes it"),
        sa.Column(
            "position",
            sa.BigInteger(),
            nullable=False,
            comment="up to here its notification log is dealt with",
        ),
        sa.Column("state", sa.Text(), nullable=False, comment="JSON of the follower"),
        sa.PrimaryKeyConstraint("source", "databases", name="followed_sources_pkey"),
        comment="how far databases of other metastores have come over",
    )
