"""After a restore, ids go on far behind those that were given between the backup and the restore.

Clients remember tables and jobs by their ids. A restored sequence would give the same ids to others.
"""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None
compatible_from = "0030"

STEP = 1_000_000_000
"""More ids than a server gives between a backup and a restore. Millions of restores stay below 2^53, for JSON."""


def upgrade() -> None:
    op.execute(
        f"""
        CREATE FUNCTION leave_out_ids() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM setval(ids, nextval(ids) + {STEP})
            FROM (VALUES (pg_get_serial_sequence('tables', 'id')), (pg_get_serial_sequence('service_jobs', 'id')))
                AS sequences (ids);
            RETURN NULL;
        END $$
        """
    )
    # Whoever begins the epoch: a server, an outlet or an operator.
    op.execute(
        "CREATE TRIGGER leave_out_ids AFTER INSERT ON event_epochs FOR EACH ROW WHEN (NEW.lossy)"
        " EXECUTE FUNCTION leave_out_ids()"
    )
