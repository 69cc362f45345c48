"""What is kept of replies ends when somebody changes by hand what the notes of changes don't tell of."""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
compatible_from = "0011"

# Replies are read from these, too, but their rows change only with others that have triggers of their own.
_EMPTIED = ("cache_changes", "catalogs", "data_files", "lake_partitions", "publications", "storage_descriptors")

# What is found by a name depends on the names of what it lies in; no server changes these.
_RENAMED = {"catalogs": ("name",), "databases": ("catalog_id", "name"), "storage_descriptors": ("body",)}

# A note that a round may still have to tell of must stay. The housekeeping raises the floor before it deletes.
_NOTES_DELETED = """
CREATE FUNCTION cache_notes_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM cache_state WHERE EXISTS (SELECT FROM gone WHERE gone.xid >= cache_state.floor);
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    for table in _EMPTIED:
        op.execute(
            f"CREATE TRIGGER cache_end AFTER TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION cache_end()"
        )
    for table, columns in _RENAMED.items():
        changed = " OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in columns)
        op.execute(
            f"CREATE TRIGGER cache_end_renamed AFTER UPDATE OF {', '.join(columns)} ON {table}"
            f" FOR EACH ROW WHEN ({changed}) EXECUTE FUNCTION cache_end()"
        )
    op.execute(_NOTES_DELETED)
    op.execute(
        "CREATE TRIGGER cache_notes_deleted AFTER DELETE ON cache_changes REFERENCING OLD TABLE AS gone"
        " FOR EACH STATEMENT EXECUTE FUNCTION cache_notes_deleted()"
    )
