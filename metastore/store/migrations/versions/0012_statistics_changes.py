"""What committed transactions changed of the statistics of columns, for caches that keep these, too."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
compatible_from = "0011"

# As the triggers of other tables (0008): one call for each statement, however many rows it writes.
_CHANGED = """
CREATE FUNCTION cache_note_column_statistics_{event}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cache_changes (xid, kind, id)
        SELECT DISTINCT pg_current_xact_id()::text::bigint, 'c', table_id FROM changed
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
"""
_TRIGGER = """
CREATE TRIGGER cache_note_{event} AFTER {event} ON column_statistics REFERENCING {rows} TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION cache_note_column_statistics_{event}()
"""
_ROWS = {"insert": "NEW", "update": "NEW", "delete": "OLD"}


def upgrade() -> None:
    for event, rows in _ROWS.items():
        op.execute(_CHANGED.format(event=event))
        op.execute(_TRIGGER.format(event=event, rows=rows))
    op.execute(
        "CREATE TRIGGER cache_end AFTER TRUNCATE ON column_statistics FOR EACH STATEMENT EXECUTE FUNCTION cache_end()"
    )
