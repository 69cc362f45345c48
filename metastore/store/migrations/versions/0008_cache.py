"""What committed transactions changed, so that caches can tell what of theirs still holds."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# Triggers, so that nothing can change an object and forget to say so. Those of each statement, not of each row.
_CHANGED = """
CREATE FUNCTION cache_note_{table}_{event}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cache_changes (xid, kind, id)
        SELECT DISTINCT pg_current_xact_id()::text::bigint, kind, id FROM ({query}) AS changed
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
"""
_TRIGGER = """
CREATE TRIGGER cache_note_{event} AFTER {event} ON {table} REFERENCING {transition}
FOR EACH STATEMENT EXECUTE FUNCTION cache_note_{table}_{event}()
"""
# Nothing that was read before holds any more.
_EMPTIED = """
CREATE FUNCTION cache_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM cache_state;
    RETURN NULL;
END $$
"""
_TRANSITIONS = {
    "insert": "NEW TABLE AS fresh",
    "update": "OLD TABLE AS gone NEW TABLE AS fresh",
    "delete": "OLD TABLE AS gone",
}
_QUERIES = {
    ("databases", "insert"): "SELECT 'D' AS kind, 0 AS id FROM fresh",
    ("databases", "update"): "SELECT 'd' AS kind, id FROM fresh",
    ("databases", "delete"): "SELECT 'd' AS kind, id FROM gone UNION ALL SELECT 'D', 0 FROM gone",
    ("tables", "insert"): "SELECT 'T' AS kind, database_id AS id FROM fresh",
    ("tables", "update"): """
        SELECT 't' AS kind, id FROM fresh
        UNION ALL
        SELECT 'T', unnest(ARRAY[gone.database_id, fresh.database_id]) FROM gone JOIN fresh USING (id)
        WHERE (gone.database_id, gone.name, gone.type) <> (fresh.database_id, fresh.name, fresh.type)
    """,
    ("tables", "delete"): "SELECT 't' AS kind, id FROM gone UNION ALL SELECT 'T', database_id FROM gone",
    ("partitions", "insert"): "SELECT 'p' AS kind, table_id AS id FROM fresh",
    ("partitions", "update"): "SELECT 'p' AS kind, table_id AS id FROM gone UNION ALL SELECT 'p', table_id FROM fresh",
    ("partitions", "delete"): "SELECT 'p' AS kind, table_id AS id FROM gone",
    ("timelines", "insert"): "SELECT 'l' AS kind, table_id AS id FROM fresh",
    ("timelines", "update"): "SELECT 'l' AS kind, table_id AS id FROM fresh",
    ("timelines", "delete"): "SELECT 'l' AS kind, table_id AS id FROM gone",
    ("instants", "insert"): "SELECT 'l' AS kind, table_id AS id FROM fresh",
    ("instants", "update"): "SELECT 'l' AS kind, table_id AS id FROM fresh",
    ("instants", "delete"): "SELECT 'l' AS kind, table_id AS id FROM gone",
}


def upgrade() -> None:
    # Unlogged: crash recovery empties both, as it must, since it gives out again the ids of transactions that left no
    # trace. A replica that takes over finds them empty, too.
    op.create_table(
        "cache_changes",
        sa.Column("xid", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(collation="C"), nullable=False, comment="metastore.store.engine.read_set.Kind"),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("xid", "kind", "id", name=op.f("cache_changes_pkey")),
        prefixes=["UNLOGGED"],
        comment="what transactions changed",
    )
    op.create_table(
        "cache_state",
        sa.Column("the_only", sa.Boolean(), nullable=False),
        sa.Column("incarnation", sa.Text(), nullable=False, comment="another one after each crash"),
        sa.Column("floor", sa.BigInteger(), nullable=False, comment="changes of earlier transactions are forgotten"),
        sa.Column("next_floor", sa.BigInteger(), nullable=False),
        sa.Column("raised_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("the_only", name=op.f("cache_state_pkey")),
        prefixes=["UNLOGGED"],
        comment="one row, or none since a crash",
    )
    for (table, event), query in _QUERIES.items():
        op.execute(_CHANGED.format(table=table, event=event, query=query))
        op.execute(_TRIGGER.format(table=table, event=event, transition=_TRANSITIONS[event]))
    op.execute(_EMPTIED)
    for table in sorted({table for table, _ in _QUERIES}):
        op.execute(
            f"CREATE TRIGGER cache_end AFTER TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION cache_end()"
        )
