"""Iceberg's tables and views, and tables that are shown as Iceberg, are found by indexes.

The kept list of a database's names ends when one of its tables becomes one of these, or ceases to be one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None
compatible_from = "0030"

_INDEXES = {
    "tables_iceberg_idx": "lower(parameters ->> 'table_type') = 'iceberg'",
    "tables_iceberg_views_idx": "lower(parameters ->> 'table_type') = 'iceberg-view'",
    "tables_exposing_idx": "lower(parameters ->> 'iceberg.expose') = 'true'",
}
_KINDS = " OR ".join(
    f"lower(gone.parameters ->> '{each}') IS DISTINCT FROM lower(fresh.parameters ->> '{each}')"
    for each in ("table_type", "iceberg.expose")
)
# As of 0008, with the last condition.
_CHANGED = f"""
CREATE OR REPLACE FUNCTION cache_note_tables_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cache_changes (xid, kind, id)
        SELECT DISTINCT pg_current_xact_id()::text::bigint, kind, id FROM (
            SELECT 't' AS kind, id FROM fresh
            UNION ALL
            SELECT 'T', unnest(ARRAY[gone.database_id, fresh.database_id]) FROM gone JOIN fresh USING (id)
            WHERE (gone.database_id, gone.name, gone.type) <> (fresh.database_id, fresh.name, fresh.type) OR {_KINDS}
        ) AS changed
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    for name, condition in _INDEXES.items():
        op.create_index(name, "tables", ["database_id", "name"], postgresql_where=sa.text(condition))
    op.execute(_CHANGED)
