"""Groups of subscribers share their work by shards; attempts to deliver an event are counted before they are made."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "event_group_members",
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("alive_until", sa.BigInteger(), nullable=False, comment="ms, by the database's clock"),
        sa.ForeignKeyConstraint(
            ["group_name"], ["event_groups.name"], name=op.f("event_group_members_group_name_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("group_name", "name", name=op.f("event_group_members_pkey")),
        comment="those that read for a group; without a sign of life they are dead after alive_until",
    )
    op.create_table(
        "event_group_shards",
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("shard", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, comment="the last event of it that is dealt with"),
        sa.Column("tenure", sa.BigInteger(), nullable=False, comment="rises whenever the shard changes hands"),
        sa.Column("owner", sa.Text(), nullable=True, comment="a member; NULL: nobody"),
        sa.Column("updated_at", sa.BigInteger(), nullable=False, comment="ms"),
        sa.ForeignKeyConstraint(
            ["group_name"], ["event_groups.name"], name=op.f("event_group_shards_group_name_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("group_name", "shard", name=op.f("event_group_shards_pkey")),
        comment="the parts of a group's work; where there are some, the least of their positions is the group's",
    )
    op.add_column(
        "event_groups",
        sa.Column("attempted", sa.BigInteger(), nullable=True, comment="the event that an outlet was about to deliver"),
    )
    op.add_column(
        "event_groups",
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False, comment="so often it was about to"),
    )
