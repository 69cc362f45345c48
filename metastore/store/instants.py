"""Timelines: the instants of lake tables."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, Text, and_, bindparam, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from metastore.store.footprint import Kind, note
from metastore.store.prepared import Prepared
from metastore.store.schema import (
    data_files,
    instant_metadata,
    instant_plans,
    instant_touches,
    instants,
    refusals,
    timelines,
)


class Timeline(NamedTuple):
    """`last_timestamp`: the greatest that was given, to an instant or a completion; `position`: how many completed;
    `oldest_readable`: the first position of which no file has been cleaned; `forgotten`: the last one of those of which
    it isn't kept any more what they changed.
    """

    last_timestamp: str = ""
    position: int = 0
    oldest_readable: int = 0
    forgotten: int = 0


class InstantRow(NamedTuple):
    """An instant as it is kept; times in milliseconds since 1970."""

    id: int
    table_id: int
    timestamp: str
    action: str
    begun_as: str
    state: str
    requested_at: int
    changed_at: int
    heartbeat_at: int | None
    read_position: int
    completion_time: str | None
    position: int | None
    event_id: int | None
    moment: int | None
    digest: bytes | None
    conflict: str | None
    undone_by: str | None
    archived: bool


class Touch(NamedTuple):
    """What an instant changed in a file group, or in a whole partition if `file_group` is None.

    `slice`: the oldest that got a file, None if the group lost files only; `logs_only`: it got log files and lost
    none; `compacted`: by a compaction; `columns`: those that were written, None for all.
    """

    partition: str
    file_group: str | None
    slice: str | None = None
    logs_only: bool = False
    compacted: bool = False
    columns: frozenset[str] | None = None


_WRITES = ("commit", "deltacommit", "replacecommit", "compaction", "logcompaction", "clustering")
_REPLACING = ("replacecommit", "clustering")

_COLUMNS = (
    instants.c.id,
    instants.c.table_id,
    instants.c.timestamp,
    instants.c.action,
    instants.c.begun_as,
    instants.c.state,
    instants.c.requested_at,
    instants.c.changed_at,
    (func.extract("epoch", instants.c.heartbeat_at) * 1000).label("heartbeat_at"),
    instants.c.read_position,
    instants.c.completion_time,
    instants.c.position,
    instants.c.event_id,
    instants.c.moment,
    instants.c.digest,
    instants.c.conflict,
    instants.c.undone_by,
    instants.c.archived,
)
_ROW: Select[Any] = select(*_COLUMNS)


def _row(row: Row[Any]) -> InstantRow:
    found = InstantRow._make(row)
    return found._replace(
        heartbeat_at=None if found.heartbeat_at is None else int(found.heartbeat_at),
        digest=None if found.digest is None else bytes(found.digest),
    )


_LINE = select(
    timelines.c.last_timestamp, timelines.c.position, timelines.c.oldest_readable, timelines.c.forgotten
).where(timelines.c.table_id == bindparam("table_id"))
_TIMELINE, _HOLD_TIMELINE = Prepared(_LINE), Prepared(_LINE.with_for_update())


def timeline(tx: Connection, table_id: int) -> Timeline:
    """How far a table's timeline has come."""
    note(Kind.TIMELINE, table_id)
    row = _TIMELINE.first(tx, {"table_id": table_id})
    return Timeline(*row) if row else Timeline()


def start_timeline(tx: Connection, table_id: int) -> None:
    """Gives a table, which the caller holds, a timeline if it has none."""
    tx.execute(insert(timelines).values(table_id=table_id).on_conflict_do_nothing())


def hold_timeline(tx: Connection, table_id: int) -> Timeline | None:
    """How far a table's timeline has come, None without one; nothing begins or completes until the transaction ends.

    Everybody takes it last, and for a short while: whoever begins an instant waits here.
    """
    row = _HOLD_TIMELINE.first(tx, {"table_id": table_id})
    return Timeline(*row) if row else None


def hold_completions(tx: Connection, table_id: int) -> Timeline:
    """How far a table's timeline has come; nothing completes until the transaction ends.

    Others begin meanwhile: the last timestamp is known only to who holds the timeline itself.
    """
    key = func.hashtextextended(f"completions {table_id}", 0)
    tx.execute(select(func.pg_advisory_xact_lock(key)))
    return timeline(tx, table_id)


def has_timeline(tx: Connection, table_id: int) -> bool:
    """Whether anything has ever begun on a table's timeline."""
    return _TIMELINE.first(tx, {"table_id": table_id}) is not None


def put_timeline(tx: Connection, table_id: int, new: Timeline) -> None:
    """Replaces what is kept of a timeline that is held."""
    _PUT_TIMELINE.execute(tx, {"of_table": table_id, **new._asdict()})


_PUT_TIMELINE = Prepared(update(timelines).where(timelines.c.table_id == bindparam("of_table")), Timeline._fields)


def find(tx: Connection, table_id: int, timestamp: str, action: str, *, lock: bool = False) -> InstantRow | None:
    """The instant with that key; one whose action its completion changed is found by either."""
    values = {"table_id": table_id, "timestamp": timestamp, "action": action}
    row = (_HOLD if lock else _FIND).first(tx, values)
    return _row(row) if row else None


_ACTION = bindparam("action", type_=Text)
_WITH_KEY = _ROW.where(
    instants.c.table_id == bindparam("table_id"),
    instants.c.timestamp == bindparam("timestamp"),
    or_(instants.c.action == _ACTION, instants.c.begun_as == _ACTION),
).order_by(instants.c.action != _ACTION)
_FIND, _HOLD = Prepared(_WITH_KEY), Prepared(_WITH_KEY.with_for_update())


def completed_at(tx: Connection, table_id: int, timestamp: str) -> InstantRow | None:
    """The completed instant of a timestamp: the first, where a savepoint, a rollback or the like bears another's."""
    query = _ROW.where(
        instants.c.table_id == table_id, instants.c.timestamp == timestamp, instants.c.position.is_not(None)
    )
    row = tx.execute(query.order_by(instants.c.position).limit(1)).one_or_none()
    return _row(row) if row else None


def last_completed(tx: Connection, table_id: int) -> InstantRow | None:
    """The instant that was completed last."""
    query = _ROW.where(instants.c.table_id == table_id, instants.c.position.is_not(None))
    row = tx.execute(query.order_by(instants.c.position.desc()).limit(1)).one_or_none()
    return _row(row) if row else None


def listing(
    tx: Connection,
    table_id: int,
    *,
    actions: Collection[str] | None = None,
    states: Collection[str] | None = None,
    after: str | None = None,
    up_to: str | None = None,
    limit: int | None = None,
    latest_first: bool = False,
    all_of_them: bool = False,
) -> list[InstantRow]:
    """Instants in the order of their timestamps; without those that are archived or undone unless `all_of_them`."""
    note(Kind.TIMELINE, table_id)
    query = _ROW.where(instants.c.table_id == table_id)
    if not all_of_them:
        query = query.where(~instants.c.archived, instants.c.undone_by.is_(None))
    if actions is not None:
        query = query.where(instants.c.action.in_(actions))
    if states is not None:
        query = query.where(instants.c.state.in_(states))
    if after is not None:
        query = query.where(instants.c.timestamp > after)
    if up_to is not None:
        query = query.where(instants.c.timestamp <= up_to)
    order = (
        (instants.c.timestamp.desc(), instants.c.id.desc()) if latest_first else (instants.c.timestamp, instants.c.id)
    )
    return [_row(row) for row in tx.execute(query.order_by(*order).limit(limit))]


def active(tx: Connection, table_id: int, *, writes: int, limit: int) -> list[InstantRow]:
    """Instants in the order of their timestamps, the latest of them: those that aren't completed, savepoints, and the
    completed ones from the first on of: the latest `writes` (all if not positive), those that aren't completed, those
    that replaced files which are still there. Without what is archived or undone, or was completed without metadata.
    """
    own = and_(instants.c.table_id == table_id, ~instants.c.archived, instants.c.undone_by.is_(None))
    pending, completed = and_(own, instants.c.position.is_(None)), and_(own, instants.c.position.is_not(None))
    first_write = (
        select(instants.c.timestamp)
        .where(completed, instants.c.action.in_(_WRITES))
        .order_by(instants.c.timestamp.desc())
        .offset(max(writes, 1) - 1)
        .limit(1)
    )
    replaced_files = exists().where(
        data_files.c.table_id == instants.c.table_id, data_files.c.removed_at == instants.c.position
    )
    first_pending = select(func.min(instants.c.timestamp)).where(pending)
    first_replacing = select(func.min(instants.c.timestamp)).where(
        completed, instants.c.action.in_(_REPLACING), replaced_files
    )
    since = tx.execute(first_write).scalar() if writes > 0 else None
    if since is not None:
        others = (tx.execute(first_pending).scalar(), tx.execute(first_replacing).scalar())
        since = min([since, *(each for each in others if each is not None)])
    has_metadata = exists().where(
        instant_metadata.c.instant_id == instants.c.id, instant_metadata.c.state == "completed"
    )
    listed = or_(instants.c.timestamp >= (since or ""), instants.c.action == "savepoint")
    query = _ROW.where(or_(pending, and_(completed, has_metadata, listed)))
    found = tx.execute(query.order_by(instants.c.timestamp.desc(), instants.c.id.desc()).limit(limit))
    return [_row(row) for row in found][::-1]


def completed_after(tx: Connection, table_id: int, position: int, up_to: int, limit: int) -> list[InstantRow]:
    """Instants in the order of their completions, by position."""
    query = _ROW.where(instants.c.table_id == table_id, instants.c.position > position, instants.c.position <= up_to)
    return [_row(row) for row in tx.execute(query.order_by(instants.c.position).limit(limit))]


def by_positions(tx: Connection, table_id: int, positions: Collection[int]) -> list[InstantRow]:
    """The instants whose completions have these positions, in their order."""
    query = _ROW.where(instants.c.table_id == table_id, instants.c.position.in_(positions))
    return [_row(row) for row in tx.execute(query.order_by(instants.c.position))]


def add(
    tx: Connection, table_id: int, timestamp: str, action: str, state: str, now: int, read_position: int
) -> InstantRow:
    """Adds an instant. Raises store.Conflict if there is one with that key."""
    values = {
        "table_id": table_id,
        "timestamp": timestamp,
        "action": action,
        "begun_as": action,
        "state": state,
        "requested_at": now,
        "changed_at": now,
        "read_position": read_position,
    }
    return _row(_ADD.first(tx, values))


_ADD = Prepared(
    insert(instants).returning(*_COLUMNS),
    ("table_id", "timestamp", "action", "begun_as", "state", "requested_at", "changed_at", "read_position"),
)


def change_state(tx: Connection, instant_id: int, state: str, now: int) -> None:
    """Brings an instant that is not completed into another state."""
    tx.execute(update(instants).where(instants.c.id == instant_id).values(state=state, changed_at=now))


def complete(tx: Connection, completed: InstantRow) -> None:
    """Keeps what has become of an instant by its completion. Raises store.Conflict if its new action's key is taken."""
    _COMPLETE.execute(tx, {"instant_id": completed.id, **completed._asdict()})


_COMPLETE = Prepared(
    update(instants).where(instants.c.id == bindparam("instant_id")),
    ("action", "state", "changed_at", "completion_time", "position", "digest", "conflict"),
)


def put_event(tx: Connection, instant_ids: Sequence[int], event_id: int) -> None:
    """Keeps which event tells of some completions."""
    tx.execute(update(instants).where(instants.c.id.in_(instant_ids)).values(event_id=event_id))


def note_conflict(tx: Connection, instant_id: int, reason: str) -> None:
    """Keeps why an instant's completion was refused."""
    tx.execute(update(instants).where(instants.c.id == instant_id).values(conflict=reason))


class RefusalRow(NamedTuple):
    """A completion that lost to others, whose positions are the `winners`; times in milliseconds since 1970."""

    timestamp: str
    action: str
    requested_at: int
    refused_at: int
    winners: Sequence[int]
    reason: str


def add_refusal(tx: Connection, table_id: int, refusal: RefusalRow, keep: int) -> None:
    """Keeps a refusal, of all of a table the latest `keep`."""
    tx.execute(insert(refusals).values(table_id=table_id, **refusal._asdict()))
    older = select(refusals.c.id).where(refusals.c.table_id == table_id).order_by(refusals.c.id.desc())
    too_old = refusals.c.id <= older.offset(keep).limit(1).scalar_subquery()
    tx.execute(delete(refusals).where(refusals.c.table_id == table_id, too_old))


def latest_refusals(tx: Connection, table_id: int) -> list[RefusalRow]:
    """The refusals that are kept, the latest last."""
    query = select(*(refusals.c[name] for name in RefusalRow._fields)).where(refusals.c.table_id == table_id)
    return [RefusalRow(*row) for row in tx.execute(query.order_by(refusals.c.id))]


def undo(tx: Connection, instant_ids: Sequence[int], by: str) -> None:
    """Keeps that completed instants were undone."""
    tx.execute(update(instants).where(instants.c.id.in_(instant_ids)).values(undone_by=by))


def remove(tx: Connection, instant_ids: Sequence[int]) -> None:
    """Forgets instants; their files are left over."""
    tx.execute(delete(instants).where(instants.c.id.in_(instant_ids)))


def beat(tx: Connection, instant_id: int) -> None:
    """Keeps that an instant's writer lives."""
    tx.execute(update(instants).where(instants.c.id == instant_id).values(heartbeat_at=func.clock_timestamp()))


def dead(tx: Connection, seconds: float, table_id: int | None = None) -> list[InstantRow]:
    """Instants that are not completed and whose writer's last heartbeat is older than that, but for those that others
    hold; they are held until the transaction ends."""
    query = _ROW.where(
        instants.c.position.is_(None),
        instants.c.heartbeat_at < func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, seconds),
    )
    if table_id is not None:
        query = query.where(instants.c.table_id == table_id)
    return [_row(row) for row in tx.execute(query.order_by(instants.c.id).with_for_update(skip_locked=True))]


def archive(tx: Connection, table_id: int, keep: int) -> int:
    """Takes old completed instants out of the active list but for the latest `keep`; how many. Savepoints stay."""
    horizon = (
        select(instants.c.position)
        .where(instants.c.table_id == table_id, instants.c.position.is_not(None), ~instants.c.archived)
        .order_by(instants.c.position.desc())
        .offset(keep)
        .limit(1)
        .scalar_subquery()
    )
    statement = update(instants).where(
        instants.c.table_id == table_id,
        instants.c.position <= horizon,
        instants.c.action != "savepoint",
        ~instants.c.archived,
    )
    return tx.execute(statement.values(archived=True)).rowcount


def with_many(tx: Connection, more_than: int) -> list[int]:
    """The tables with more than so many active completed instants."""
    query = (
        select(instants.c.table_id)
        .where(instants.c.position.is_not(None), ~instants.c.archived)
        .group_by(instants.c.table_id)
        .having(func.count() > more_than)
    )
    return list(tx.execute(query).scalars())


def needless(tx: Connection, table_id: int) -> int:
    """The last position of which nobody needs to know what it changed: the instant is archived, as are those before
    it, and whoever is under way has read it. The caller holds the timeline, so that nobody begins.
    """
    archived = select(instants.c.position).where(instants.c.table_id == table_id, instants.c.archived)
    last = tx.execute(archived.order_by(instants.c.position.desc()).limit(1)).scalar()
    under_way = select(func.min(instants.c.read_position)).where(
        instants.c.table_id == table_id,
        instants.c.position.is_(None),
        instants.c.action != "savepoint",  # it changes nothing; what it has read is what it protects
    )
    read = tx.execute(under_way).scalar()
    return min(last or 0, last or 0 if read is None else read)


# --- what instants carry --------------------------------------------------------------------------------------


def put_metadata(tx: Connection, instant_id: int, state: str, content: bytes) -> None:
    """Keeps what a writer gave with a state."""
    statement = insert(instant_metadata).values(instant_id=instant_id, state=state, content=content)
    key = [instant_metadata.c.instant_id, instant_metadata.c.state]
    tx.execute(statement.on_conflict_do_update(index_elements=key, set_={"content": content}))


def metadata_of(tx: Connection, instant_id: int) -> dict[str, bytes]:
    """What writers gave, by state."""
    query = select(instant_metadata.c.state, instant_metadata.c.content)
    return {
        row.state: bytes(row.content) for row in tx.execute(query.where(instant_metadata.c.instant_id == instant_id))
    }


def put_plan(tx: Connection, instant_id: int, groups: Iterable[tuple[str, str]]) -> None:
    """Keeps which file groups, as (partition, file group), a table service is going to rewrite."""
    rows = [{"instant_id": instant_id, "partition_name": p, "file_group": g} for p, g in sorted(set(groups))]
    if rows:
        tx.execute(insert(instant_plans), rows)


def plan_of(tx: Connection, instant_id: int) -> list[tuple[str, str]]:
    """The file groups that a table service is going to rewrite, as (partition, file group)."""
    query = select(instant_plans.c.partition_name, instant_plans.c.file_group)
    query = query.where(instant_plans.c.instant_id == instant_id)
    return [(row[0], row[1]) for row in tx.execute(query.order_by(*query.selected_columns))]


def put_touches(tx: Connection, table_id: int, position: int, some: Iterable[Touch]) -> None:
    """Keeps what the completion with that position changed."""
    rows = [
        {
            "table_id": table_id,
            "position": position,
            "partition_name": each.partition,
            "file_group": each.file_group,
            "slice": each.slice,
            "logs_only": each.logs_only,
            "compacted": each.compacted,
            "columns": None if each.columns is None else sorted(each.columns),
        }
        for each in some
    ]
    if rows:
        tx.execute(insert(instant_touches), rows)


def touches(
    tx: Connection, table_id: int, after: int, up_to: int, partitions: Collection[str] | None = None
) -> Mapping[int, list[Touch]]:
    """What completions after one position up to another changed, by position; in some partitions or all."""
    query = select(
        instant_touches.c.position,
        instant_touches.c.partition_name,
        instant_touches.c.file_group,
        instant_touches.c.slice,
        instant_touches.c.logs_only,
        instant_touches.c.compacted,
        instant_touches.c.columns,
    ).where(
        and_(
            instant_touches.c.table_id == table_id,
            instant_touches.c.position > after,
            instant_touches.c.position <= up_to,
        )
    )
    if partitions is not None:
        query = query.where(instant_touches.c.partition_name == func.any(list(partitions)))
    found: dict[int, list[Touch]] = {}
    for position, *rest, columns in tx.execute(query.order_by(instant_touches.c.position, instant_touches.c.id)):
        found.setdefault(position, []).append(Touch._make((*rest, None if columns is None else frozenset(columns))))
    return found


def forget_touches(tx: Connection, table_id: int, up_to: int, limit: int) -> int:
    """Forgets what completions up to a position changed, at most `limit` such things; how many."""
    some = (
        select(instant_touches.c.id)
        .where(instant_touches.c.table_id == table_id, instant_touches.c.position <= up_to)
        .limit(limit)
    )
    return tx.execute(delete(instant_touches).where(instant_touches.c.id.in_(some))).rowcount


# --- the order of all completions -----------------------------------------------------------------------------


def unplaced(tx: Connection, table_id: int | None = None, limit: int = 1_000) -> dict[int, int]:
    """Completions whose moment has not been looked up yet: event ids by instant id."""
    query = select(instants.c.id, instants.c.event_id).where(
        instants.c.moment.is_(None), instants.c.event_id.is_not(None)
    )
    if table_id is not None:
        query = query.where(instants.c.table_id == table_id)
    return {row[0]: row[1] for row in tx.execute(query.order_by(instants.c.event_id).limit(limit))}


def place(tx: Connection, moments: Mapping[int, int]) -> None:
    """Keeps the moments of completions, by instant id."""
    for instant_id, moment in moments.items():
        tx.execute(update(instants).where(instants.c.id == instant_id).values(moment=moment))


def position_at_moment(tx: Connection, table_id: int, moment: int) -> int:
    """How many instants of a table were complete at a moment, of those whose moment has been looked up."""
    query = select(func.max(instants.c.position)).where(instants.c.table_id == table_id, instants.c.moment <= moment)
    return int(tx.execute(query).scalar() or 0)


def nth_latest(tx: Connection, table_id: int, number: int, besides: Collection[str]) -> int:
    """The position of the `number`th latest completion, `besides` those of some actions and those undone; 0: none."""
    query = select(instants.c.position).where(
        instants.c.table_id == table_id,
        instants.c.position.is_not(None),
        instants.c.action.not_in(besides),
        instants.c.undone_by.is_(None),
    )
    return tx.execute(query.order_by(instants.c.position.desc()).offset(number - 1).limit(1)).scalar() or 0


def last_position_of(tx: Connection, instant_ids: Sequence[int]) -> int:
    """The greatest position of some completions, 0 without any."""
    query = select(func.max(instants.c.position)).where(instants.c.id.in_(instant_ids))
    return int(tx.execute(query).scalar() or 0) if instant_ids else 0


def position_at_time(tx: Connection, table_id: int, completion_time: str) -> int:
    """How many instants of a table were complete at a time, given as completion times are."""
    query = select(func.max(instants.c.position)).where(
        instants.c.table_id == table_id, instants.c.completion_time <= completion_time
    )
    return int(tx.execute(query).scalar() or 0)


def saved_positions(tx: Connection, table_id: int) -> list[int]:
    """The positions that savepoints protect."""
    query = select(instants.c.read_position).where(
        instants.c.table_id == table_id,
        instants.c.action == "savepoint",
        instants.c.position.is_not(None),
        instants.c.undone_by.is_(None),
    )
    return sorted(tx.execute(query).scalars())
