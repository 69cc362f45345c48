"""Events, in the order in which they were committed."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column(
            "number",
            sa.BigInteger(),
            nullable=True,
            comment="its place in the order of commits; NULL until the sequencer has seen it",
        ),
        sa.Column("notifications", sa.Integer(), nullable=False, comment="so many it makes in Hive's notification log"),
        sa.Column(
            "first_notification",
            sa.BigInteger(),
            nullable=True,
            comment="the first of their numbers; NULL until it has them",
        ),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("catalog", sa.Text(), nullable=True),
        sa.Column("database_name", sa.Text(), nullable=True),
        sa.Column("table_name", sa.Text(), nullable=True),
        sa.Column(
            "time", sa.BigInteger(), nullable=False, comment="ms, by the clock of the server that made the change"
        ),
        sa.Column("user_name", sa.Text(), nullable=True),
        sa.Column("connection", sa.Text(), nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=False, comment="JSON, zlib"),
        sa.PrimaryKeyConstraint("id", name=op.f("events_pkey")),
    )
    op.create_index(op.f("events_number_idx"), "events", ["number"], unique=True)
    op.create_index("events_unnumbered_idx", "events", ["id"], unique=False, postgresql_where=sa.text("number IS NULL"))
    op.create_index(
        "events_notifications_idx",
        "events",
        ["first_notification"],
        unique=False,
        postgresql_where=sa.text("notifications > 0"),
    )
    op.create_table(
        "event_groups",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, comment="the last event that the group has dealt with"),
        sa.Column("updated_at", sa.BigInteger(), nullable=False, comment="ms"),
        sa.PrimaryKeyConstraint("name", name=op.f("event_groups_pkey")),
    )
    log = op.create_table(
        "event_log",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False, comment="1: there is one row"),
        sa.Column("last_number", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_notification", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "trimmed_number", sa.BigInteger(), server_default="0", nullable=False, comment="events up to here are gone"
        ),
        sa.Column("trimmed_notification", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("event_log_pkey")),
        comment="how far numbers have been given; its row is held by whoever gives them",
    )
    op.bulk_insert(log, [{"id": 1}])
    op.create_table(
        "event_dead_letters",
        sa.Column("outlet", sa.Text(), nullable=False, comment="the group's name"),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("error", sa.Text(), nullable=False, comment="of the last attempt"),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failed_at", sa.BigInteger(), nullable=False, comment="ms"),
        sa.Column("resend", sa.Boolean(), server_default="false", nullable=False, comment="asked for"),
        sa.Column(
            "type",
            sa.Text(),
            nullable=True,
            comment="like the rest NULL where the event was gone before it could be delivered",
        ),
        sa.Column("catalog", sa.Text(), nullable=True),
        sa.Column("database_name", sa.Text(), nullable=True),
        sa.Column("table_name", sa.Text(), nullable=True),
        sa.Column("time", sa.BigInteger(), nullable=True),
        sa.Column("user_name", sa.Text(), nullable=True),
        sa.Column("connection", sa.Text(), nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("outlet", "number", name=op.f("event_dead_letters_pkey")),
        comment="events that an outlet could not deliver, kept although the log may be trimmed",
    )
