"""A cache on the host of Postgres may hold a lease: no change is committed while it does."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None
compatible_from = "0030"

# A lease is a SHARE lock of `cache_lease`, held by an idle session of the cache's. Whoever records a change takes a
# ROW EXCLUSIVE lock, until it ends: these two conflict, and neither conflicts with itself.
_TAKE = """
CREATE FUNCTION take_cache_lease() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_class WHERE oid = 'cache_lease'::regclass AND pg_get_userbyid(relowner) = current_user
    ) THEN
        RETURN NULL;  -- who records a change could not end this session
    END IF;
    LOCK TABLE cache_lease IN SHARE MODE NOWAIT;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$
"""
# Ends the sessions that hold a lease, and waits for their locks. Before a session lets go of its lock it has sent the
# reason to its client. A lease that somebody takes meanwhile is found in the next round.
_END = """
CREATE FUNCTION end_cache_leases() RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '20ms' AS $$
BEGIN
    LOOP
        PERFORM pg_terminate_backend(pid) FROM pg_locks
            WHERE locktype = 'relation' AND relation = 'cache_lease'::regclass AND mode = 'ShareLock' AND granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
        BEGIN
            LOCK TABLE cache_lease IN ROW EXCLUSIVE MODE;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
        END;
    END LOOP;
END $$
"""
_REVOKE = """
CREATE FUNCTION revoke_cache_leases() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    LOCK TABLE cache_lease IN ROW EXCLUSIVE MODE NOWAIT;
    RETURN NULL;
EXCEPTION WHEN lock_not_available THEN
    PERFORM end_cache_leases();
    RETURN NULL;
END $$
"""
_TRIGGERS = {
    "cache_changes": "INSERT OR TRUNCATE",
    # What ends an incarnation. The row of a new one changes nothing for a cache that knows none.
    "cache_state": "UPDATE OF incarnation OR DELETE OR TRUNCATE",
}


def upgrade() -> None:
    op.create_table(
        "cache_lease",
        sa.Column("nothing", sa.Boolean(), nullable=True),
        prefixes=["UNLOGGED"],
        comment="always empty: its locks are the leases of caches",
    )
    op.execute(_TAKE)
    op.execute(_END)
    op.execute(_REVOKE)
    for table, events in _TRIGGERS.items():
        op.execute(
            f"CREATE TRIGGER cache_revoke_leases BEFORE {events} ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION revoke_cache_leases()"
        )
        # Also where somebody has switched the other triggers off.
        op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER cache_revoke_leases")
