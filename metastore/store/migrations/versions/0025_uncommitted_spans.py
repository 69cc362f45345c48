"""At which positions of a lake table its partitions were uncommitted, so that earlier snapshots can be read again."""

import sqlalchemy as sa
from alembic import op

from metastore.store.schema.base import NAME

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "uncommitted_spans",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("partition_name", NAME, nullable=False),
        sa.Column(
            "opened_at",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="position from which on it was",
        ),
        sa.Column("committed_at", sa.BigInteger(), comment="position from which on it wasn't; NULL: it is"),
        sa.PrimaryKeyConstraint("table_id", "partition_name", "opened_at", name=op.f("uncommitted_spans_pkey")),
        comment="at which positions partitions were uncommitted; at all others they were ready",
    )
    op.execute(
        "CREATE TRIGGER cache_end AFTER TRUNCATE ON uncommitted_spans FOR EACH STATEMENT EXECUTE FUNCTION cache_end()"
    )
    # Since when they are isn't known. No reader of any position saw them so far.
    op.execute(
        "INSERT INTO uncommitted_spans (table_id, partition_name, opened_at)"
        " SELECT p.table_id, p.name, 0 FROM partitions p JOIN timelines t ON t.table_id = p.table_id WHERE NOT p.ready"
    )
