"""The log of events knows which log it is and in which of its epochs; Postgres' clock says how old things are."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
compatible_from = "0011"

_UUID, _NOW = sa.text("gen_random_uuid()"), sa.text("clock_timestamp()")


def upgrade() -> None:
    # First without their defaults: those would write each row of the log anew, while writers wait.
    op.add_column("events", sa.Column("mark", sa.Uuid(as_uuid=False), nullable=True))
    op.add_column("events", sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=True))
    op.alter_column("events", "mark", server_default=_UUID, comment="what no other event has, in any copy of the log")
    op.alter_column("events", "recorded_at", server_default=_NOW, comment="by the database's clock; NULL: see time")

    op.add_column("event_log", sa.Column("identity", sa.Uuid(as_uuid=False), server_default=_UUID, nullable=False))
    op.add_column(
        "event_log",
        sa.Column("place", sa.Text(), nullable=True, comment="in which Postgres the log was when a server last looked"),
    )
    op.add_column(
        "event_log",
        sa.Column("marked_number", sa.BigInteger(), nullable=True, comment="of an event that is gone: see mark"),
    )
    op.add_column("event_log", sa.Column("mark", sa.Uuid(as_uuid=False), nullable=True, comment="that event's"))
    op.create_table(
        "event_epochs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "after", sa.BigInteger(), nullable=False, comment="up to this number events are those of the epoch before"
        ),
        sa.Column("lossy", sa.Boolean(), nullable=False, comment="events after it may have been told and are undone"),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("begun_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("event_epochs_pkey")),
        sa.UniqueConstraint("name", name=op.f("event_epochs_name_key")),
        comment="histories of the log: one begins when an older state of it was put back; the first has no row",
    )

    op.add_column("event_groups", sa.Column("seen_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE event_groups SET seen_at = clock_timestamp()")
    op.alter_column(
        "event_groups",
        "seen_at",
        server_default=_NOW,
        nullable=False,
        comment="when somebody last read for it, by the database's clock",
    )
    op.add_column(
        "event_groups",
        sa.Column(
            "epoch_id",
            sa.BigInteger(),
            nullable=True,
            comment="the epoch that its members know of; NULL: the first, or an older server made the group",
        ),
    )
    op.add_column(
        "event_dead_letters",
        sa.Column(
            "set_aside_at",
            sa.DateTime(timezone=True),
            server_default=_NOW,
            nullable=False,
            comment="by the database's clock",
        ),
    )
