"""The timelines and instants of lake tables, with their metadata, plans and changed file groups."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    ColumnElement,
    Connection,
    Float,
    Row,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    extract,
    func,
    literal_column,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from metastore.postgres.prepared import Call, Prepared, execute_all, put_off
from metastore.store.engine import bulk
from metastore.store.engine.clock import NOW_MS
from metastore.store.engine.read_set import Kind, record_read
from metastore.store.files import publications
from metastore.store.schema.base import NAME
from metastore.store.schema.snapshot import changelogs, data_files
from metastore.store.schema.table import tables
from metastore.store.schema.timeline import (
    changed_groups,
    instant_metadata,
    instant_plans,
    instants,
    rejected_commits,
    timelines,
)
from metastore.store.timeline import uncommitted_spans


class Timeline(NamedTuple):
    """A table's timeline.

    `last_timestamp`: the greatest timestamp that was given to an instant or a completion. `position`: the number of
    completions. `oldest_readable`: the first position whose snapshot has all its files. `forgotten`: up to this
    position, the changed file groups have been removed, so that conflicts can't be checked any more.
    """

    last_timestamp: str = ""
    position: int = 0
    oldest_readable: int = 0
    forgotten: int = 0


class InstantRow(NamedTuple):
    """A stored instant. Times are in milliseconds since 1970. `completion_time`: a timestamp, like `timestamp`.

    `begun_as`: the action at the begin, which a completion may change. `digest`: a hash of the completion's request.
    `conflict`: why a completion was rejected. `undone_by`: the timestamp of the rollback that undid it. `attempt`: how
    often it has become inflight. `runner`: what the process calls itself that runs it. `planned`: it is a table service
    with a plan. `name`: a savepoint's.
    """

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
    attempt: int
    runner: str | None
    planned: bool
    name: str | None


class ChangedGroup(NamedTuple):
    """A file group that an instant changed; a whole partition if `file_group` is None.

    `slice`: the oldest slice that got a file; None if the group only lost files. `logs_only`: it got log files, and
    lost none. `compacted`: a compaction changed it. `columns`: the columns that were written; None means all.
    """

    partition: str
    file_group: str | None
    slice: str | None = None
    logs_only: bool = False
    compacted: bool = False
    columns: frozenset[str] | None = None


_WRITES = ("commit", "deltacommit", "replacecommit", "compaction", "logcompaction", "clustering")
_READING = (*_WRITES, "indexing", "publish")
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
    instants.c.attempt,
    instants.c.runner,
    instants.c.planned,
    instants.c.name,
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
# The time is read once the row is locked: a query with FOR UPDATE isn't merged into the one around it.
_HELD = _LINE.add_columns(timelines.c.table_id).with_for_update().cte("held")
_HELD_LINE = [_HELD.c[each] for each in Timeline._fields]
# The timeline is locked before the table, as by all who lock both: a row is updated once it is joined.
_HOLD_TIMELINE_TO_COMPLETE = Prepared(
    update(tables)
    .where(tables.c.id == bindparam("table_id"), tables.c.id == _HELD.c.table_id)
    .values(version=tables.c.version + 1)
    .returning(*_HELD_LINE, NOW_MS.label("now"), tables.c.version)
)
_LOCK = Prepared(select(func.pg_advisory_xact_lock(func.hashtextextended(bindparam("lock", type_=Text), 0))))


def timeline(tx: Connection, table_id: int) -> Timeline:
    """A table's timeline; an empty one if nothing has ever begun. Records the read."""
    record_read(Kind.TIMELINE, table_id)
    row = _TIMELINE.first(tx, {"table_id": table_id})
    return Timeline(*row) if row else Timeline()


def start_timeline(tx: Connection, table_id: int) -> None:
    """Creates a table's timeline unless it exists. The caller has locked the table's row."""
    started = tx.execute(insert(timelines).values(table_id=table_id).on_conflict_do_nothing())
    if started.rowcount:
        uncommitted_spans.of_all_uncommitted(tx, table_id)


def hold_timeline(tx: Connection, table_id: int) -> Timeline | None:
    """Locks a table's timeline until the transaction ends: no instant begins or completes. None if there is none.

    Take this lock last and briefly, since every begin of an instant waits for it.
    """
    row = _HOLD_TIMELINE.first(tx, {"table_id": table_id})
    return Timeline(*row) if row else None


class TimelineToBegin(NamedTuple):
    """A timeline that is locked until the transaction ends, and the database's time in milliseconds since then.

    `next_id`: for the instant that begins. `silent`: whether the table has an open instant whose heartbeats have
    stopped.
    """

    line: Timeline
    now: int
    next_id: int
    silent: bool


def hold_timeline_to_begin(
    tx: Connection, table_id: int, silent_seconds: float | None = None
) -> TimelineToBegin | None:
    """As `hold_timeline`, with what a new instant needs.

    `silent_seconds`: heartbeats have stopped after so long; None: they never have.
    """
    row = _HOLD_TIMELINE_TO_BEGIN.first(tx, {"table_id": table_id, "seconds": silent_seconds})
    return TimelineToBegin(Timeline(*row[:4]), *row[4:]) if row else None


class TimelineToComplete(NamedTuple):
    """A timeline that is locked until the transaction ends, and the database's time in milliseconds since then.

    `version`: the table's new one, as of `tables.touch`.
    """

    line: Timeline
    now: int
    version: int


def hold_timeline_to_complete(tx: Connection, table_id: int) -> TimelineToComplete | None:
    """As `hold_timeline`; then gives the table a new version, for the instant that completes."""
    row = _HOLD_TIMELINE_TO_COMPLETE.first(tx, {"table_id": table_id})
    return TimelineToComplete(Timeline(*row[:4]), *row[4:]) if row else None


class HeldInstant(NamedTuple):
    """An instant, locked until the transaction ends as are its table's completions.

    `line`: as of `hold_completions`. `pending`: whether files staged below a place are still to be moved.
    """

    line: Timeline
    pending: bool
    instant: InstantRow


def hold_to_complete(
    tx: Connection, table_id: int, timestamp: str, action: str, staged_below: str
) -> HeldInstant | None:
    """Locks out completions as `hold_completions` does, and locks an instant as `find` does. None without the instant.

    `staged_below`: the place of HeldInstant's `pending`.
    """
    values = {"table_id": table_id, "timestamp": timestamp, "action": action, "begin": f"{staged_below}/"}
    lock = Call(_LOCK, {"lock": f"completions {table_id}"})
    row = _HOLD_TO_COMPLETE.first(tx, values, after=[lock])
    return HeldInstant(Timeline(*row[:4]), row[4], _row(row[5:])) if row else None


def hold_completions(tx: Connection, table_id: int) -> Timeline:
    """Locks out completions until the transaction ends. Returns the table's timeline.

    Instants may still begin, so `last_timestamp` may be outdated; only `hold_timeline` fixes it.
    """
    record_read(Kind.TIMELINE, table_id)
    row = _TIMELINE.first(tx, {"table_id": table_id, "lock": f"completions {table_id}"}, after=[_LOCK])
    return Timeline(*row) if row else Timeline()


def has_timeline(tx: Connection, table_id: int) -> bool:
    """Whether a table has a timeline."""
    record_read(Kind.TIMELINE, table_id)
    return _TIMELINE.first(tx, {"table_id": table_id}) is not None


def put_timeline(tx: Connection, table_id: int, new: Timeline) -> None:
    """Stores a timeline that the caller has locked."""
    execute_all(tx, [to_put_timeline(table_id, new)])


def to_put_timeline(table_id: int, new: Timeline) -> Call:
    """What stores a timeline that the caller has locked."""
    return Call(_PUT_TIMELINE, {"of_table": table_id, **new._asdict()})


def end_earlier(tx: Connection, table_id: int) -> int | None:
    """Lets the latest snapshot be the first that can be read. Returns its position; None without a timeline.

    The caller has locked the table, so that no instant completes.
    """
    latest = update(timelines).where(timelines.c.table_id == table_id).values(oldest_readable=timelines.c.position)
    found: int | None = tx.execute(latest.returning(timelines.c.position)).scalar_one_or_none()
    return found


_PUT_TIMELINE = Prepared(update(timelines).where(timelines.c.table_id == bindparam("of_table")), Timeline._fields)


def find(tx: Connection, table_id: int, timestamp: str, action: str, *, lock: bool = False) -> InstantRow | None:
    """The instant with a timestamp and an action, which may be the one at its begin or at its completion.

    `lock`: it is locked until the transaction ends.
    """
    record_read(Kind.TIMELINE, table_id)
    values = {"table_id": table_id, "timestamp": timestamp, "action": action}
    row = (_HOLD if lock else _FIND).first(tx, values)
    return _row(row) if row else None


_ACTION = bindparam("action", type_=Text)
_HAS_KEY = and_(
    instants.c.table_id == bindparam("table_id"),
    instants.c.timestamp == bindparam("timestamp"),
    or_(instants.c.action == _ACTION, instants.c.begun_as == _ACTION),
)
_WITH_KEY = _ROW.where(_HAS_KEY).order_by(instants.c.action != _ACTION)
_FIND, _HOLD = Prepared(_WITH_KEY), Prepared(_WITH_KEY.with_for_update())
_HOLD_TO_COMPLETE = Prepared(
    select(
        timelines.c.last_timestamp,
        timelines.c.position.label("last_position"),
        timelines.c.oldest_readable,
        timelines.c.forgotten,
        publications.ANY_BELOW.label("pending"),
        *_COLUMNS,
    )
    .join(timelines, timelines.c.table_id == instants.c.table_id)
    .where(_HAS_KEY)
    .order_by(instants.c.action != _ACTION)
    .with_for_update(of=instants)
)


def completed_at(tx: Connection, table_id: int, timestamp: str) -> InstantRow | None:
    """The completed instant with a timestamp; the first one, since a savepoint or rollback may have the same."""
    record_read(Kind.TIMELINE, table_id)
    query = _ROW.where(
        instants.c.table_id == table_id, instants.c.timestamp == timestamp, instants.c.position.is_not(None)
    )
    row = tx.execute(query.order_by(instants.c.position).limit(1)).one_or_none()
    return _row(row) if row else None


def saved_as(tx: Connection, table_id: int, name: str) -> InstantRow | None:
    """The savepoint with a name that nothing has undone, completed or not."""
    record_read(Kind.TIMELINE, table_id)
    query = _ROW.where(instants.c.table_id == table_id, instants.c.name == name, instants.c.undone_by.is_(None))
    row = tx.execute(query).one_or_none()
    return _row(row) if row else None


def last_completed(tx: Connection, table_id: int, but: str | None = None) -> InstantRow | None:
    """The instant with the last completion. `but`: an action that doesn't count."""
    record_read(Kind.TIMELINE, table_id)
    query = _ROW.where(instants.c.table_id == table_id, instants.c.position.is_not(None))
    if but is not None:
        query = query.where(instants.c.action != but)
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
    """Instants, ordered by timestamp. Archived and undone ones are left out unless `all_of_them`."""
    record_read(Kind.TIMELINE, table_id)
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
    """The instants that a Hudi client needs, ordered by timestamp; the latest `limit` of them.

    These are all open instants, all savepoints, and the completed instants from the earliest of three on: the `writes`
    latest writes (all if `writes` isn't positive); the first open instant; the first instant that replaced files which
    haven't been cleaned. Archived and undone instants are left out, and completed ones without metadata.
    """
    record_read(Kind.TIMELINE, table_id)
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
    """The instants with positions after one up to another, ordered by position."""
    record_read(Kind.TIMELINE, table_id)
    query = _ROW.where(instants.c.table_id == table_id, instants.c.position > position, instants.c.position <= up_to)
    return [_row(row) for row in tx.execute(query.order_by(instants.c.position).limit(limit))]


def by_positions(tx: Connection, table_id: int, positions: Collection[int]) -> list[InstantRow]:
    """The instants with these positions, ordered by position."""
    record_read(Kind.TIMELINE, table_id)
    query = _ROW.where(instants.c.table_id == table_id, instants.c.position.in_(positions))
    return [_row(row) for row in tx.execute(query.order_by(instants.c.position))]


def add(
    tx: Connection,
    instant_id: int,
    table_id: int,
    timestamp: str,
    action: str,
    state: str,
    now: int,
    read_position: int,
    *,
    attempt: int,
    planned: bool = False,
    name: str | None = None,
    line: Timeline | None = None,
) -> InstantRow:
    """Adds an open instant, with an id of `hold_timeline_to_begin`. `line`: the table's timeline, to store it.

    Both go with the transaction's next message, see `put_off`. That is a store.Conflict if there is an instant with
    that timestamp and action.
    """
    new = InstantRow(
        instant_id,
        table_id,
        timestamp,
        action,
        begun_as=action,
        state=state,
        requested_at=now,
        changed_at=now,
        heartbeat_at=None,
        read_position=read_position,
        completion_time=None,
        position=None,
        event_id=None,
        moment=None,
        digest=None,
        conflict=None,
        undone_by=None,
        archived=False,
        attempt=attempt,
        runner=None,
        planned=planned,
        name=name,
    )
    stored = [] if line is None else [to_put_timeline(table_id, line)]
    put_off(tx, [*stored, Call(_ADD, {each: getattr(new, each) for each in _OF_NEW})])
    return new


_OF_NEW = (
    "id",
    "table_id",
    "timestamp",
    "action",
    "begun_as",
    "state",
    "requested_at",
    "changed_at",
    "read_position",
    "attempt",
    "planned",
    "name",
)
_ADD = Prepared(
    text(
        f"INSERT INTO instants ({', '.join(_OF_NEW)}) OVERRIDING SYSTEM VALUE"
        f" VALUES ({', '.join(f':{each}' for each in _OF_NEW)})"
    )
)


def change_state(tx: Connection, changed: InstantRow) -> None:
    """Stores the state of an open instant, which the caller has locked, with its attempt and its runner.

    Without `heartbeat_at`, its heartbeats are forgotten.
    """
    values = {name: getattr(changed, name) for name in ("state", "changed_at", "attempt", "runner")}
    if changed.heartbeat_at is None:
        values["heartbeat_at"] = None
    tx.execute(update(instants).where(instants.c.id == changed.id).values(values))


def to_complete(completed: InstantRow) -> Call:
    """What stores a completed instant, with the event that was appended last.

    It raises store.Conflict if an instant with the new action exists.
    """
    return Call(_COMPLETE, {"instant_id": completed.id, **completed._asdict()})


_LAST_EVENT = func.lastval()
"""The id of the event that was appended last. No table that a completion writes to after that numbers its rows."""

_COMPLETE = Prepared(
    update(instants).where(instants.c.id == bindparam("instant_id")).values(event_id=_LAST_EVENT),
    ("action", "state", "changed_at", "completion_time", "position", "digest", "conflict"),
)


def put_last_event(tx: Connection, instant_ids: Sequence[int]) -> None:
    """Stores for completed instants the event that was appended last."""
    _PUT_LAST_EVENT.execute(tx, {"instant_ids": list(instant_ids)})


_PUT_LAST_EVENT = Prepared(
    update(instants)
    .where(instants.c.id == any_(bindparam("instant_ids", type_=ARRAY(BigInteger))))
    .values(event_id=_LAST_EVENT)
)


def record_conflict(tx: Connection, instant_id: int, reason: str) -> None:
    """Stores why an instant's completion was rejected."""
    tx.execute(update(instants).where(instants.c.id == instant_id).values(conflict=reason))


class RejectedCommitRow(NamedTuple):
    """A rejected completion. `winners`: positions of the conflicting instants. Times in milliseconds since 1970."""

    timestamp: str
    action: str
    requested_at: int
    rejected_at: int
    winners: Sequence[int]
    reason: str


def add_rejected_commit(tx: Connection, table_id: int, rejected: RejectedCommitRow, keep: int) -> None:
    """Stores a rejected commit, and removes all but the table's latest `keep`."""
    tx.execute(insert(rejected_commits).values(table_id=table_id, **rejected._asdict()))
    older = (
        select(rejected_commits.c.id)
        .where(rejected_commits.c.table_id == table_id)
        .order_by(rejected_commits.c.id.desc())
    )
    too_old = rejected_commits.c.id <= older.offset(keep).limit(1).scalar_subquery()
    tx.execute(delete(rejected_commits).where(rejected_commits.c.table_id == table_id, too_old))


def latest_rejected_commits(tx: Connection, table_id: int) -> list[RejectedCommitRow]:
    """A table's stored rejected commits, the latest last."""
    query = select(*(rejected_commits.c[name] for name in RejectedCommitRow._fields)).where(
        rejected_commits.c.table_id == table_id
    )
    return [RejectedCommitRow(*row) for row in tx.execute(query.order_by(rejected_commits.c.id))]


def undo(tx: Connection, instant_ids: Sequence[int], by: str) -> None:
    """Marks completed instants as undone. `by`: the timestamp of the rollback or restore."""
    tx.execute(update(instants).where(instants.c.id.in_(instant_ids)).values(undone_by=by))


def remove(tx: Connection, instant_ids: Sequence[int]) -> None:
    """Removes instants. Deletions that wait for them become due."""
    tx.execute(delete(instants).where(instants.c.id.in_(instant_ids)))


def beat(tx: Connection, instant_id: int) -> None:
    """Stores a heartbeat of an instant's writer."""
    tx.execute(update(instants).where(instants.c.id == instant_id).values(heartbeat_at=func.clock_timestamp()))


def dead(tx: Connection, seconds: float, table_id: int | None = None) -> list[InstantRow]:
    """The open instants whose last heartbeat is older than `seconds`, locked until the transaction ends.

    Instants that another transaction has locked are left out.
    """
    if table_id is None:
        return [_row(row) for row in _DEAD.all(tx, {"seconds": seconds})]
    return [_row(row) for row in _DEAD_OF_TABLE.all(tx, {"seconds": seconds, "table_id": table_id})]


_IS_SILENT = and_(
    instants.c.position.is_(None),
    instants.c.heartbeat_at
    < func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, bindparam("seconds", type_=Float)),
)
_SILENT = _ROW.where(_IS_SILENT).order_by(instants.c.id).with_for_update(skip_locked=True)
_DEAD = Prepared(_SILENT)
_DEAD_OF_TABLE = Prepared(_SILENT.where(instants.c.table_id == bindparam("table_id")))
_IDS: ColumnElement[Any] = literal_column(f"'{instants.name}_id_seq'::regclass")  # Postgres looks it up once
# OFFSET has the few that are silent looked up among those of all tables, instead of all instants of this one.
_SILENT_ONES = select(instants.c.table_id).where(_IS_SILENT).offset(literal_column("0")).subquery("silent_ones")
_HOLD_TIMELINE_TO_BEGIN = Prepared(
    select(
        *_HELD_LINE,
        NOW_MS.label("now"),
        func.nextval(_IDS).label("next_id"),
        exists().where(_SILENT_ONES.c.table_id == bindparam("table_id")).label("silent"),
    )
)


def archive(tx: Connection, table_id: int, keep: int) -> int:
    """Archives a table's completed instants but for the latest `keep`, and but for savepoints. Returns how many."""
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


ARCHIVED_DAYS = "timeline.archived-days"
"""The property of a table that says after how many days its archived instants are removed: a whole number."""


def forget_archived(tx: Connection, days: float, limit: int) -> int:
    """Removes archived instants, with their metadata, at most `limit`. Returns how many.

    They were completed at least `days` ago, or the days of their table's ARCHIVED_DAYS, by the database's clock.
    Instants stay whose snapshots can be read, those that have a changelog or follow one that has, and those that are
    still needed to check for conflicts.
    """
    now = cast(extract("epoch", func.clock_timestamp()), Float) * 1_000
    own_days = tables.c.parameters[ARCHIVED_DAYS].astext
    kept_days = case((own_days.regexp_match("^[0-9]{1,6}$"), cast(own_days, Float)), else_=days)
    followed = select(changelogs.c.position).where(
        changelogs.c.table_id == instants.c.table_id, changelogs.c.position <= instants.c.position
    )
    old = (
        select(instants.c.id)
        .join(timelines, timelines.c.table_id == instants.c.table_id)
        .outerjoin(tables, tables.c.id == instants.c.table_id)
        .where(
            instants.c.archived,
            instants.c.changed_at < now - kept_days * 86_400_000,
            instants.c.position < timelines.c.oldest_readable,
            instants.c.position <= timelines.c.forgotten,
            ~followed.exists(),
        )
        .limit(limit)
    )
    return tx.execute(delete(instants).where(instants.c.id.in_(old))).rowcount


def open_timestamps(tx: Connection, table_id: int) -> set[str]:
    """The timestamps of a table's instants that aren't completed."""
    query = select(instants.c.timestamp).where(instants.c.table_id == table_id, instants.c.position.is_(None))
    return set(tx.execute(query).scalars())


def with_many(tx: Connection, more_than: int) -> list[int]:
    """The ids of tables with more than so many active completed instants."""
    query = (
        select(instants.c.table_id)
        .where(instants.c.position.is_not(None), ~instants.c.archived)
        .group_by(instants.c.table_id)
        .having(func.count() > more_than)
    )
    return list(tx.execute(query).scalars())


def first_being_read(tx: Connection, table_id: int) -> int | None:
    """The first position that the writer of an open instant reads, as long as its heartbeats come; None for none.

    Writers merge what they write with the files of that snapshot, and table services rewrite these.
    """
    record_read(Kind.TIMELINE, table_id)
    query = select(func.min(instants.c.read_position)).where(
        instants.c.table_id == table_id,
        instants.c.position.is_(None),
        instants.c.state == "inflight",
        instants.c.heartbeat_at.is_not(None),
        instants.c.begun_as.in_(_READING),
    )
    found: int | None = tx.execute(query).scalar_one()
    return found


def needless(tx: Connection, table_id: int) -> int:
    """The last position whose changed file groups are no longer needed to check for conflicts.

    Its instant and all before it are archived, and all open instants have read it. The caller has locked the timeline,
    so that no instant begins.
    """
    archived = select(instants.c.position).where(instants.c.table_id == table_id, instants.c.archived)
    last = tx.execute(archived.order_by(instants.c.position.desc()).limit(1)).scalar()
    under_way = select(func.min(instants.c.read_position)).where(
        instants.c.table_id == table_id,
        instants.c.position.is_(None),
        instants.c.action != "savepoint",  # it changes no file; its read position is the one that it protects
    )
    read = tx.execute(under_way).scalar()
    return min(last or 0, last or 0 if read is None else read)


# --- metadata, plans and changed file groups ------------------------------------------------------------------


def put_metadata(tx: Connection, instant_id: int, state: str, content: bytes) -> None:
    """Stores the metadata that a writer sent with a state."""
    statement = insert(instant_metadata).values(instant_id=instant_id, state=state, content=content)
    key = [instant_metadata.c.instant_id, instant_metadata.c.state]
    tx.execute(statement.on_conflict_do_update(index_elements=key, set_={"content": content}))


def metadata_of(tx: Connection, instant_id: int) -> dict[str, bytes]:
    """An instant's metadata, by state."""
    query = select(instant_metadata.c.state, instant_metadata.c.content)
    return {
        row.state: bytes(row.content) for row in tx.execute(query.where(instant_metadata.c.instant_id == instant_id))
    }


def put_plan(tx: Connection, instant_id: int, groups: Iterable[tuple[str, str]]) -> None:
    """Stores the plan of a table service: the file groups to rewrite, as (partition, file group)."""
    rows = [{"instant_id": instant_id, "partition_name": p, "file_group": g} for p, g in sorted(set(groups))]
    if rows:
        tx.execute(insert(instant_plans), rows)


def plan_of(tx: Connection, instant_id: int) -> list[tuple[str, str]]:
    """The plan of a table service: the file groups to rewrite, as (partition, file group)."""
    query = select(instant_plans.c.partition_name, instant_plans.c.file_group)
    query = query.where(instant_plans.c.instant_id == instant_id)
    return [(row[0], row[1]) for row in tx.execute(query.order_by(*query.selected_columns))]


def to_put_changed_groups(table_id: int, position: int, some: Iterable[ChangedGroup]) -> list[Call]:
    """What stores the file groups that a completion changed."""
    rows = [
        (
            each.partition,
            each.file_group,
            each.slice,
            each.logs_only,
            each.compacted,
            None if each.columns is None else bulk.array(sorted(each.columns)),
        )
        for each in some
    ]
    if not rows:
        return []
    names = ("partitions", "file_groups", "slices", "logs_only", "compacted", "columns")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return [Call(_PUT_CHANGED_GROUPS, {"table_id": table_id, "position": position, **columns})]


_PUT_CHANGED_GROUPS = Prepared(
    text(
        "INSERT INTO changed_groups"
        " (table_id, position, partition_name, file_group, slice, logs_only, compacted, columns)"
        " SELECT :table_id, :position, n.partition_name, n.file_group, n.slice, n.logs_only, n.compacted,"
        " CAST(n.columns AS text[]) FROM unnest(:partitions, :file_groups, :slices, :logs_only, :compacted, :columns)"
        " AS n (partition_name, file_group, slice, logs_only, compacted, columns)"
    ).bindparams(
        bindparam("table_id", type_=BigInteger),
        bindparam("position", type_=BigInteger),
        *(bindparam(name, type_=ARRAY(Text)) for name in ("partitions", "file_groups", "slices", "columns")),
        *(bindparam(name, type_=ARRAY(Boolean)) for name in ("logs_only", "compacted")),
    )
)


def find_changed_groups(
    tx: Connection, table_id: int, after: int, up_to: int, partitions: Collection[str] | None = None
) -> Mapping[int, list[ChangedGroup]]:
    """The changed file groups of completions after one position up to another, by position.

    `partitions`: only changes in these; None means all.
    """
    values: dict[str, Any] = {"table_id": table_id, "after": after, "up_to": up_to}
    if partitions is None:
        rows = _CHANGED_GROUPS.all(tx, values)
    else:
        rows = _CHANGED_GROUPS_IN.all(tx, {**values, "partitions": list(partitions)})
    found: dict[int, list[ChangedGroup]] = {}
    for position, *rest, columns in rows:
        found.setdefault(position, []).append(
            ChangedGroup._make((*rest, None if columns is None else frozenset(columns)))
        )
    return found


_CHANGES = (
    select(
        changed_groups.c.position,
        changed_groups.c.partition_name,
        changed_groups.c.file_group,
        changed_groups.c.slice,
        changed_groups.c.logs_only,
        changed_groups.c.compacted,
        changed_groups.c.columns,
    )
    .where(
        changed_groups.c.table_id == bindparam("table_id"),
        changed_groups.c.position > bindparam("after"),
        changed_groups.c.position <= bindparam("up_to"),
    )
    .order_by(changed_groups.c.position, changed_groups.c.id)
)
_CHANGED_GROUPS = Prepared(_CHANGES)
_CHANGED_GROUPS_IN = Prepared(
    _CHANGES.where(changed_groups.c.partition_name == any_(bindparam("partitions", type_=ARRAY(NAME))))
)


def forget_changed_groups(tx: Connection, table_id: int, up_to: int, limit: int) -> int:
    """Removes changed file groups of completions up to a position, at most `limit`. Returns how many."""
    some = (
        select(changed_groups.c.id)
        .where(changed_groups.c.table_id == table_id, changed_groups.c.position <= up_to)
        .limit(limit)
    )
    return tx.execute(delete(changed_groups).where(changed_groups.c.id.in_(some))).rowcount


# --- moments: the order of all completions --------------------------------------------------------------------


def unplaced(tx: Connection, table_id: int | None = None, limit: int = 1_000) -> dict[int, int]:
    """Completions without a stored moment: event ids by instant id."""
    query = select(instants.c.id, instants.c.event_id).where(
        instants.c.moment.is_(None), instants.c.event_id.is_not(None)
    )
    if table_id is not None:
        query = query.where(instants.c.table_id == table_id)
    return {row[0]: row[1] for row in tx.execute(query.order_by(instants.c.event_id).limit(limit))}


def place(tx: Connection, moments: Mapping[int, int]) -> None:
    """Stores the moments of completions, given by instant id."""
    for instant_id, moment in moments.items():
        tx.execute(update(instants).where(instants.c.id == instant_id).values(moment=moment))


def position_at_moment(tx: Connection, table_id: int, moment: int) -> int:
    """The last position of a table at a moment; 0 if none. Only completions with a stored moment count."""
    record_read(Kind.TIMELINE, table_id)
    query = select(func.max(instants.c.position)).where(instants.c.table_id == table_id, instants.c.moment <= moment)
    return int(tx.execute(query).scalar() or 0)


def nth_latest(tx: Connection, table_id: int, number: int, besides: Collection[str]) -> int:
    """The position of the `number`th latest completion, without undone ones and the actions `besides`; 0 if none."""
    record_read(Kind.TIMELINE, table_id)
    query = select(instants.c.position).where(
        instants.c.table_id == table_id,
        instants.c.position.is_not(None),
        instants.c.action.not_in(besides),
        instants.c.undone_by.is_(None),
    )
    return tx.execute(query.order_by(instants.c.position.desc()).offset(number - 1).limit(1)).scalar() or 0


def last_position_of(tx: Connection, instant_ids: Sequence[int]) -> int:
    """The greatest position of some completions; 0 if there are none."""
    query = select(func.max(instants.c.position)).where(instants.c.id.in_(instant_ids))
    return int(tx.execute(query).scalar() or 0) if instant_ids else 0


def position_at_time(tx: Connection, table_id: int, completion_time: str) -> int:
    """The last position of a table at a time, given as a timestamp; 0 if none."""
    record_read(Kind.TIMELINE, table_id)
    query = select(func.max(instants.c.position)).where(
        instants.c.table_id == table_id, instants.c.completion_time <= completion_time
    )
    return int(tx.execute(query).scalar() or 0)


def saved_positions(tx: Connection, table_id: int) -> list[int]:
    """The positions whose snapshots savepoints protect."""
    record_read(Kind.TIMELINE, table_id)
    query = select(instants.c.read_position).where(
        instants.c.table_id == table_id,
        instants.c.action == "savepoint",
        instants.c.position.is_not(None),
        instants.c.undone_by.is_(None),
    )
    return sorted(tx.execute(query).scalars())
