"""The table management service keeps its decisions and its queue here, and readers have leases on snapshots."""

import sqlalchemy as sa
from alembic import op

from metastore.store.schema.base import NAME

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None
compatible_from = "0025"

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _jobs()
    _decisions()
    op.create_table(
        "reader_leases",
        _table_id(),
        sa.Column("name", NAME, nullable=False, comment="of the reader's own"),
        sa.Column("position", sa.BigInteger(), nullable=False, comment="whose snapshot cleans keep"),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("holder", sa.Text(), comment="for people to read"),
        sa.PrimaryKeyConstraint("table_id", "name", name=op.f("reader_leases_pkey")),
        _of_table("reader_leases"),
        comment="snapshots that are being read",
    )
    op.create_index(op.f("reader_leases_expires_at_idx"), "reader_leases", ["expires_at"])


def _jobs() -> None:
    op.create_table(
        "service_jobs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        _table_id(),
        sa.Column("action", NAME, nullable=False),
        sa.Column("state", NAME, nullable=False, comment="pending, running, succeeded, failed or cancelled"),
        sa.Column("instant", NAME, comment="timestamp of its plan; NULL: none was made yet"),
        sa.Column("reason", sa.Text()),
        sa.Column("gain", sa.Double()),
        sa.Column("cost", sa.Double(), comment="seconds: estimated, and once it has succeeded what it took"),
        sa.Column("bytes", sa.BigInteger(), comment="that it reads"),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("windows", sa.Text(), comment="when it may run; NULL: at any time"),
        sa.Column(
            "attempt",
            sa.Integer(),
            server_default="0",
            nullable=False,
            comment="how often it was taken: fences who runs it",
        ),
        sa.Column(
            "failures", sa.Integer(), server_default="0", nullable=False, comment="attempts in a row that failed"
        ),
        sa.Column("worker", sa.Text(), comment="that took it last"),
        sa.Column("call", NAME, comment="the call by which it was taken last, to know that again"),
        sa.Column("enqueued_at", _TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("not_before", _TIME, server_default=sa.text("'-infinity'"), nullable=False),
        sa.Column("started_at", _TIME),
        sa.Column("lease_until", _TIME, comment="of a running one: without a heartbeat it is lost then"),
        sa.Column("finished_at", _TIME),
        sa.Column(
            "stopping",
            sa.Boolean(),
            server_default="false",
            nullable=False,
            comment="whoever runs it is asked to stop",
        ),
        sa.Column("outcome", NAME, comment="of the last attempt"),
        sa.Column("log", sa.Text(), comment="of the last attempt"),
        sa.PrimaryKeyConstraint("id", name=op.f("service_jobs_pkey")),
        _of_table("service_jobs"),
        comment="the queue of the table management service, and the latest jobs of each table that have ended",
    )
    op.create_index(
        "service_jobs_waiting_idx",
        "service_jobs",
        ["table_id", "action", sa.text("coalesce(instant, '')")],
        unique=True,
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_index(
        "service_jobs_running_idx",
        "service_jobs",
        ["table_id", "action"],
        unique=True,
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_index(
        "service_jobs_live_idx",
        "service_jobs",
        ["state"],
        postgresql_where=sa.text("state IN ('pending', 'running')"),
    )
    op.create_index("service_jobs_call_idx", "service_jobs", ["call"], postgresql_where=sa.text("state = 'running'"))
    op.create_index("service_jobs_table_idx", "service_jobs", ["table_id", "id"])


def _decisions() -> None:
    op.create_table(
        "service_decisions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        _table_id(),
        sa.Column("service", NAME, nullable=False, comment="compaction, clustering or clean"),
        sa.Column("action", NAME, comment="NULL: nothing is to be done"),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("figures", sa.Text(), comment="JSON"),
        sa.Column("gain", sa.Double()),
        sa.Column("cost", sa.Double()),
        sa.Column("decided_at", _TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, comment="of the table then"),
        sa.PrimaryKeyConstraint("id", name=op.f("service_decisions_pkey")),
        _of_table("service_decisions"),
        comment="what was decided of tables and why, the latest of each",
    )
    op.create_index(
        op.f("service_decisions_table_id_service_id_idx"), "service_decisions", ["table_id", "service", "id"]
    )
    op.create_table(
        "service_tables",
        _table_id(),
        sa.Column("paused", sa.Text(), comment="why it is paused; NULL: it isn't"),
        sa.Column("resumed_at", _TIME, comment="what was set aside before is tried again"),
        sa.Column(
            "position",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="that the last decisions are about",
        ),
        sa.Column("look_at", _TIME, comment="when time alone may change them"),
        sa.PrimaryKeyConstraint("table_id", name=op.f("service_tables_pkey")),
        _of_table("service_tables"),
        comment="how far the table management service has looked at tables",
    )
    op.create_index(op.f("service_tables_look_at_idx"), "service_tables", ["look_at"])


def _table_id() -> sa.Column:
    return sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False)


def _of_table(name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name=op.f(f"{name}_table_id_fkey"), ondelete="CASCADE")
