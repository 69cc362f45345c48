"""Changes of privileges, roles and owners are recorded for caches, so that kept decisions end with them."""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None
compatible_from = "0025"

_CHANGED = """
CREATE FUNCTION cache_note_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cache_changes (xid, kind, id)
        SELECT DISTINCT pg_current_xact_id()::text::bigint, 'a', id FROM ({query}) AS changed
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
"""
_TRIGGER = """
CREATE TRIGGER cache_note_access_{event} AFTER {event} ON {table} REFERENCING {transition}
FOR EACH STATEMENT EXECUTE FUNCTION cache_note_{name}()
"""
_TRANSITIONS = {
    "insert": ("fresh",),
    "update": ("gone", "fresh"),
    "delete": ("gone",),
}
_NAMES = {"fresh": "NEW TABLE AS fresh", "gone": "OLD TABLE AS gone"}

# A privilege counts as a change of its database, one on everything as number 0, like roles. A table that is dropped
# takes its privileges along: its own row is gone by then, and its own change says all.
_OF_PRIVILEGES = """
SELECT coalesce({rows}.database_id, 0) AS id FROM {rows} WHERE {rows}.table_id IS NULL
UNION ALL
SELECT tables.database_id FROM {rows} JOIN tables ON tables.id = {rows}.table_id
"""
_OF_ROLES = "SELECT 0 AS id FROM {rows}"
_QUERIES = {"privileges": _OF_PRIVILEGES, "role_grants": _OF_ROLES, "roles": _OF_ROLES}

# The list of a database's tables doesn't change with the owner of one; what somebody sees of the list does.
_OWNER = """
CREATE FUNCTION cache_note_table_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cache_changes (xid, kind, id)
        VALUES (pg_current_xact_id()::text::bigint, 'a', NEW.database_id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    for table, query in _QUERIES.items():
        for event, transitions in _TRANSITIONS.items():
            name = f"access_{table}_{event}"
            rows = " UNION ALL ".join(query.format(rows=each) for each in transitions)
            op.execute(_CHANGED.format(name=name, query=rows))
            transition = " ".join(_NAMES[each] for each in transitions)
            op.execute(_TRIGGER.format(event=event, table=table, transition=transition, name=name))
        op.execute(
            f"CREATE TRIGGER cache_end AFTER TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION cache_end()"
        )
    op.execute(_OWNER)
    # The body has the owner's type, and everything else that an owner may change.
    op.execute(
        "CREATE TRIGGER cache_note_owner AFTER UPDATE OF owner, body ON tables FOR EACH ROW"
        " WHEN (OLD.owner IS DISTINCT FROM NEW.owner OR OLD.body IS DISTINCT FROM NEW.body)"
        " EXECUTE FUNCTION cache_note_table_owner()"
    )
