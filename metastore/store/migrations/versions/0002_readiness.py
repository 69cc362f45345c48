"""When partitions were committed, how far event time has come, and what streaming writers have staged."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "partitions",
        sa.Column(
            "commit_time",
            sa.BigInteger(),
            nullable=True,
            comment="when it was last committed, ms; kept while it is open again",
        ),
    )
    op.create_table(
        "table_readiness",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("watermark", sa.BigInteger(), nullable=True, comment="ms; never goes back"),
        sa.Column(
            "filled_until", sa.BigInteger(), nullable=True, comment="ms; up to here empty partitions have been added"
        ),
        sa.Column("rows_rerouted", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rows_reopened", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rows_dropped", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("table_id", name=op.f("table_readiness_pkey")),
        comment="how far event time has come in a table, and what came late",
    )
    op.create_table(
        "watermarks",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("chain", sa.Text(collation="C"), nullable=False),
        sa.Column("source", sa.Text(collation="C"), nullable=False),
        sa.Column("watermark", sa.BigInteger(), nullable=False, comment="ms"),
        sa.Column("reported_at", sa.BigInteger(), nullable=False, comment="ms"),
        sa.PrimaryKeyConstraint("table_id", "chain", "source", name=op.f("watermarks_pkey")),
        comment="how far event time has come in each source of each chain of writers",
    )
    op.create_table(
        "writers",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False, comment="the last that was accepted"),
        sa.PrimaryKeyConstraint("table_id", "name", name=op.f("writers_pkey")),
    )
    op.create_table(
        "publications",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("partition_id", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False, comment="a staged file's location"),
        sa.Column("name", sa.Text(), nullable=False, comment="of the file in the partition"),
        sa.PrimaryKeyConstraint("id", name=op.f("publications_pkey")),
        comment="staged files of accepted batches, to be moved into their partitions; removed once that is done",
    )
    op.create_index(op.f("publications_partition_id_idx"), "publications", ["partition_id"], unique=False)
    op.create_index(op.f("publications_table_id_idx"), "publications", ["table_id"], unique=False)
