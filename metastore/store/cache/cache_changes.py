"""The changes of committed transactions, for caches: the statement of a poll, and the removal of old changes.

Triggers record each change as (xid, kind, id): the transaction, the kind of object, and the object's number. An
incarnation is the time between two crashes of Postgres. A crash loses the record, so replies kept before are invalid.

A poll is a single statement, so that all its results belong to one snapshot of the database.
"""

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from metastore.postgres.prepared import Prepared
from metastore.store.engine.read_set import INCARNATION

KEEP_SECONDS = 300
"""Changes are kept for at least this time, and for at most twice as long. A cached reply that hasn't been checked
against a poll for longer no longer holds."""

MAX_CHANGES = 50_000
"""The most changes that a poll returns."""

# The changes that are visible now, and weren't in an earlier snapshot. $1: that snapshot's xmax, the first transaction
# id that hadn't been assigned. $2: the transactions that were in progress then.
PREPARE = f"""
PREPARE cache_round (bigint, bigint[]) AS
SELECT pg_current_snapshot()::text, {INCARNATION}, floor, changed.xid, changed.kind, changed.id
FROM cache_state LEFT JOIN LATERAL (
    SELECT xid, kind, id FROM cache_changes WHERE xid >= $1 OR xid = ANY ($2) LIMIT {MAX_CHANGES}
) AS changed ON true
"""
POLL = "EXECUTE cache_round(%s, %s::bigint[])"
_POLL = Prepared(
    text(
        f"SELECT pg_current_snapshot()::text AS snapshot, {INCARNATION} AS incarnation, floor,"
        " changed.xid, changed.kind, changed.id"
        " FROM cache_state LEFT JOIN LATERAL (SELECT xid, kind, id FROM cache_changes"
        f" WHERE xid >= :begun OR xid = ANY (CAST(:open AS bigint[])) LIMIT {MAX_CHANGES}) AS changed ON true"
    )
)


class Poll(NamedTuple):
    """The result of a poll. `snapshot`: the text of a pg_snapshot. `changes`: (xid, kind, id).

    `floor`: changes of transactions before this id may have been removed. `complete`: whether `changes` has all.
    """

    snapshot: str
    incarnation: str
    floor: int
    changes: list[tuple[int, str, int]]
    complete: bool


def poll_of(rows: Sequence[Sequence[Any]]) -> Poll | None:
    """Parses the rows of a poll. None after a crash, until `begin` has started a new incarnation."""
    if not rows:
        return None
    snapshot, incarnation, floor, *_ = rows[0]
    changes = [(xid, kind, number) for _, _, _, xid, kind, number in rows if xid is not None]
    return Poll(snapshot, incarnation, floor, changes, len(changes) < MAX_CHANGES)


def poll(tx: Connection, begun: int, open_: Sequence[int]) -> Poll | None:
    """A poll within a transaction: `begun` and `open_` are those of the last poll's snapshot. None as in `poll_of`."""
    return poll_of(_POLL.all(tx, {"begun": begun, "open": list(open_)}))


def begin(tx: Connection) -> None:
    """Starts a new incarnation if there is none, as after a crash."""
    tx.execute(
        text(
            "INSERT INTO cache_state (the_only, incarnation, floor, next_floor, raised_at)"
            " SELECT true, :incarnation, xmin, xmin, now() FROM ("
            "  SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) AS current"
            " ON CONFLICT DO NOTHING"
        ),
        {"incarnation": secrets.token_hex(8)},
    )


def forget_old(tx: Connection) -> None:
    """Removes old changes, see KEEP_SECONDS: those committed before the last run but one that removed something."""
    raised = tx.execute(
        text(
            "UPDATE cache_state SET floor = next_floor, raised_at = now(),"
            " next_floor = pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
            " WHERE raised_at < now() - make_interval(secs => :seconds) RETURNING floor"
        ),
        {"seconds": KEEP_SECONDS},
    ).scalar_one_or_none()
    if raised is not None:
        tx.execute(text("DELETE FROM cache_changes WHERE xid < :floor"), {"floor": raised})
