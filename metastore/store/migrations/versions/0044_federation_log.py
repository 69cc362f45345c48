"""Fronts of several metastores keep one merged notification log."""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None
compatible_from = "0030"

_NAME = sa.Text(collation="C")
_NOW = sa.text("clock_timestamp()")


def upgrade() -> None:
    op.create_table(
        "federation_log",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False, comment="1: there is one row"),
        sa.Column("last_number", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column(
            "trimmed_number",
            sa.BigInteger(),
            nullable=False,
            server_default="0",
            comment="events up to here are gone",
        ),
        sa.Column("names", sa.Text(), comment="digest of the names under which the backends' events are taken"),
        sa.PrimaryKeyConstraint("id", name="federation_log_pkey"),
        comment="how far numbers of the merged log have been given; its row is held by whoever gives them",
    )
    op.execute("INSERT INTO federation_log (id) VALUES (1)")
    op.create_table(
        "federation_followed",
        sa.Column("backend", _NAME, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, comment="the last number of its log that is dealt with"),
        sa.Column("mark", sa.LargeBinary(), comment="digest of the event with that number; NULL: it was not read"),
        sa.Column(
            "last_there",
            sa.BigInteger(),
            nullable=False,
            comment="the last number of its log, when that was looked at",
        ),
        sa.Column("looked_at", sa.DateTime(timezone=True), nullable=False, server_default=_NOW),
        sa.Column(
            "current_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=_NOW,
            comment="when the merged log had all of its events last",
        ),
        sa.Column("trouble", sa.Text(), comment="why the merged log hasn't all of its events"),
        sa.PrimaryKeyConstraint("backend", name="federation_followed_pkey"),
        comment="how far the logs of backends are followed",
    )
    op.create_table(
        "federation_events",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("backend", _NAME, nullable=False),
        sa.Column("number_there", sa.BigInteger(), nullable=False, comment="in the backend's log; of a loss its last"),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("database_name", _NAME, comment="its database, by the name there"),
        sa.Column("other_database", _NAME, comment="another one that it is about"),
        sa.Column("table_name", _NAME),
        sa.Column(
            "body",
            sa.LargeBinary(),
            comment="the encoded NotificationEvent with the names there, zlib; NULL: a loss",
        ),
        sa.Column("loss", sa.Text(), comment="which events of the backend are lost, and why"),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False, server_default=_NOW),
        sa.PrimaryKeyConstraint("number", name="federation_events_pkey"),
        comment="the merged log; names are translated when events are read",
    )
    op.create_index("federation_events_there_idx", "federation_events", ["backend", "number_there"])
    op.create_index("federation_events_database_idx", "federation_events", ["backend", "database_name", "number"])
