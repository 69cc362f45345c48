"""The epochs of the event log: what an event's number means after a backup was restored.

A restored log gives out numbers again that subscribers already know. Every copy outside of Postgres (in Redis, in
Kafka, in a subscriber's bookmark) therefore carries the log's identity and the epoch.

An epoch begins when a restore is noticed. A server notices it by the Postgres instance that holds the log. An outlet
notices it by delivered events that the log doesn't have. An operator can also begin one by hand.

Each event has a random mark, which differs between copies of the log. If the event of a number still has a known mark,
then all events before it are the same, too.
"""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, insert, or_, select, text, true, update
from sqlalchemy.exc import ProgrammingError

from eventbus.log import group_positions, log
from eventbus.log.schema import event_epochs, event_groups, event_log, events
from lake.protocol.clock import now_ms
from lake.protocol.events.history import Epoch, History
from lake.protocol.events.types import EventType, NewEvent, Origin

_LONGEST = 200
"""The maximum length, in characters, of a history text (see `text_of`)."""

NONE = 0
"""The id of the first epoch, which has no row in the database."""


_EPOCH = select(
    event_epochs.c.id,
    event_epochs.c.name,
    event_epochs.c.after,
    event_epochs.c.lossy,
    event_epochs.c.reason,
    event_epochs.c.begun_at,
)


class Place(NamedTuple):
    """The Postgres instance that holds the log. A part that Postgres doesn't let its user read is empty."""

    cluster: str
    """Postgres' system identifier."""
    table: str
    """The object id of the log's table. It changes when a dump is restored."""
    timeline: str
    """Postgres' timeline. It changes with a point-in-time recovery, and also with a failover."""


def history(tx: Connection) -> History:
    """The log's identity and all its epochs."""
    identity: str = tx.execute(select(event_log.c.identity)).scalar_one()
    rows = tx.execute(_EPOCH.order_by(event_epochs.c.id))
    return History(identity, [Epoch(NONE, identity[:8], 0, False, "", None), *(Epoch(*row) for row in rows)])


def begin(tx: Connection, reason: str, *, lossy: bool, after: int | None = None) -> Epoch:
    """Begins an epoch, and appends a BEGIN_EPOCH event.

    `lossy`: events that subscribers have seen may be undone. `after`: the number of the last event that is surely
    unchanged; by default the last event of the log. Locks out the sequencer until `tx` ends.
    """
    last = tx.execute(select(event_log.c.last_number).with_for_update()).scalar_one()
    known = last if after is None else min(after, last)
    name = secrets.token_hex(4)
    row = tx.execute(
        insert(event_epochs)
        .values(name=name, after=known, lossy=lossy, reason=reason)
        .returning(event_epochs.c.id, event_epochs.c.begun_at)
    ).one()
    payload = {"version": 1, "epoch": name, "after": known, "lossy": lossy, "reason": reason}
    log.append(tx, [NewEvent(EventType.BEGIN_EPOCH, now_ms(), Origin(), None, None, None, 0, payload)])
    return Epoch(row.id, name, known, lossy, reason, row.begun_at)


def notice(tx: Connection) -> Epoch | None:
    """Begins an epoch if the log has moved to another Postgres since the last check. Returns it, else None."""
    found = place(tx)
    if _kept(tx.execute(select(event_log.c.place)).scalar_one()) == found:
        return None
    # Once more under a lock: another server may have been first.
    before = _kept(tx.execute(select(event_log.c.place).with_for_update()).scalar_one())
    if before == found:
        return None
    tx.execute(update(event_log).values(place="/".join(found)))
    if before is None:
        return None
    if before.table != found.table or _differ(before.cluster, found.cluster):
        return begin(tx, "the database was restored or copied from a backup", lossy=True)
    if _differ(before.timeline, found.timeline):
        return begin(tx, "the database was recovered to an earlier moment, or another server took over", lossy=False)
    return None


def _kept(place: str | None) -> Place | None:
    return None if place is None else Place(*place.split("/"))


def _differ(before: str, now: str) -> bool:
    """Whether both are known and different."""
    return bool(before and now) and before != now


def place(tx: Connection) -> Place:
    """The Postgres instance that holds the log now."""
    table = tx.execute(text("SELECT 'event_log'::regclass::oid::text")).scalar_one()
    try:
        with tx.begin_nested():
            row = tx.execute(
                text(
                    "SELECT (SELECT system_identifier FROM pg_control_system())::text AS cluster,"
                    " substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline"
                )
            ).one()
    except ProgrammingError:  # some cloud providers don't allow these functions
        return Place("", table, "")
    return Place(row.cluster, table, row.timeline)


def put_down(tx: Connection) -> None:
    """Stores the present place as the log's own. Call it after a move that lost nothing, to begin no epoch."""
    tx.execute(update(event_log).values(place="/".join(place(tx))))


def marks(tx: Connection, numbers: Sequence[int]) -> dict[int, str]:
    """The marks of events, by number. Left out are events without a mark, and trimmed ones but for the last."""
    query = select(events.c.number, events.c.mark).where(events.c.number.in_(numbers), events.c.mark.is_not(None))
    known: dict[int, str] = {row.number: row.mark for row in tx.execute(query)}
    gone = tx.execute(select(event_log.c.marked_number, event_log.c.mark)).one()
    if gone.mark is not None and gone.marked_number in numbers:
        known.setdefault(gone.marked_number, gone.mark)
    return known


def first_unknown(tx: Connection, group: str) -> Epoch | None:
    """The first lossy epoch that a group hasn't acknowledged yet; None if it knows all of them."""
    query = (
        _EPOCH.join(event_groups, true())
        .where(
            event_groups.c.name == group,
            event_epochs.c.lossy,
            or_(event_groups.c.epoch_id < event_epochs.c.id, event_groups.c.epoch_id.is_(None)),
        )
        .order_by(event_epochs.c.after, event_epochs.c.id)
        .limit(1)
    )
    row = tx.execute(query).first()
    return Epoch(*row) if row else None


def mark_known(tx: Connection, group: str) -> None:
    """Records that a group has acknowledged all epochs so far."""
    tx.execute(update(event_groups).where(event_groups.c.name == group).values(epoch_id=group_positions.LAST_EPOCH))


class BadHistory(ValueError):
    """The text is not a history that this module made (see `text_of`)."""


def text_of(tx: Connection, number: int) -> str:
    """The history text that a reader keeps beside its position: `identity/epoch/number/mark`."""
    found = history(tx)
    mark = marks(tx, [number]).get(number, "")
    return f"{found.identity}/{found.now.name}/{number}/{mark}"


def undone_after(tx: Connection, history_text: str, reached: int) -> int | None:
    """The last number up to which a reader's events are still valid; None if all of them are.

    `history_text`: from `text_of`, as the reader received it. `reached`: the greatest number that the reader has seen.
    Raises BadHistory.
    """
    identity, epoch, number, mark = _parsed(history_text)
    found = history(tx)
    if identity != found.identity:
        return 0
    common = found.common(epoch)
    if common is not None and reached > common:
        return common
    if mark and marks(tx, [number]).get(number, mark) != mark:
        return 0
    if max(reached, number) > tx.execute(select(event_log.c.last_number)).scalar_one():
        return 0
    return None


def _parsed(history_text: str) -> tuple[str, str, int, str]:
    identity, _, rest = history_text.partition("/")
    epoch, _, rest = rest.partition("/")
    number, _, mark = rest.partition("/")
    if not epoch or not (number or "0").isdecimal() or len(history_text) > _LONGEST:
        raise BadHistory(
            f"{history_text[:_LONGEST]!r} is no history of a log: send the `history` of an earlier response unchanged"
        )
    return identity, epoch, int(number or 0), mark
