"""What committed transactions changed, as caches ask for it: the statement of a round, and how long changes are kept.

A round is one statement, so that what it says of one snapshot of the database is all of one moment.
"""

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from metastore.store.footprint import INCARNATION

KEEP_SECONDS = 300
"""Changes are kept for so long, and for up to twice as long. A cached reply that nobody proved since then is lost."""

MAX_CHANGES = 50_000
"""That a round tells."""

# What is visible now, and was not in a snapshot to which $1 is the first unknown transaction and $2 were under way.
PREPARE = f"""
PREPARE cache_round (bigint, bigint[]) AS
SELECT pg_current_snapshot()::text, {INCARNATION}, floor, changed.xid, changed.kind, changed.id
FROM cache_state LEFT JOIN LATERAL (
    SELECT xid, kind, id FROM cache_changes WHERE xid >= $1 OR xid = ANY ($2) LIMIT {MAX_CHANGES}
) AS changed ON true
"""
ROUND = "EXECUTE cache_round(%s, %s::bigint[])"


class Round(NamedTuple):
    """`snapshot`: as Postgres writes it. `changes`: (xid, kind, id). `complete`: whether these are all."""

    snapshot: str
    incarnation: str
    floor: int
    changes: list[tuple[int, str, int]]
    complete: bool


def round_of(rows: Sequence[Sequence[Any]]) -> Round | None:
    """What the rows of a round say; None: there has been a crash, and nobody has begun anew yet."""
    if not rows:
        return None
    snapshot, incarnation, floor, *_ = rows[0]
    changes = [(xid, kind, number) for _, _, _, xid, kind, number in rows if xid is not None]
    return Round(snapshot, incarnation, floor, changes, len(changes) < MAX_CHANGES)


def begin(tx: Connection) -> None:
    """Begins an incarnation if there is none, as after a crash."""
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
    """Forgets changes that were committed before the last time but one that this was called and did something."""
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
