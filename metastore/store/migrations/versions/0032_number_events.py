"""Events get their numbers in one call of the database instead of four."""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None
compatible_from = "0030"

# Each statement of a volatile function has a snapshot of its own: the second one sees all that was committed before
# the first had its lock. So who waits for another sequencer doesn't number what that has numbered.
_NUMBER = """
CREATE FUNCTION number_events() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    before event_log;
    numbered bigint;
    notified bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM events WHERE number IS NULL) THEN
        RETURN false;
    END IF;
    SELECT * INTO STRICT before FROM event_log FOR UPDATE;
    WITH fresh AS (
        SELECT id, row_number() OVER (ORDER BY id) AS place,
            sum(notifications) OVER (ORDER BY id) - notifications AS earlier
        FROM events WHERE number IS NULL
    ), done AS (
        UPDATE events SET number = before.last_number + fresh.place,
            first_notification = before.last_notification + fresh.earlier + 1
        FROM fresh WHERE events.id = fresh.id RETURNING events.notifications
    )
    SELECT count(*), coalesce(sum(notifications), 0) INTO numbered, notified FROM done;
    IF numbered = 0 THEN
        RETURN false;
    END IF;
    UPDATE event_log SET last_number = before.last_number + numbered,
        last_notification = before.last_notification + notified;
    PERFORM pg_notify('metastore_events', (before.last_number + numbered)::text);
    RETURN true;
END $$
"""


def upgrade() -> None:
    op.execute(_NUMBER)
