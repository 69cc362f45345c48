"""The way back: undoes what an instant brought into a table, and lets everything that follows from it follow.

Instants of tables from outside are undone by an instant that compensates: rows of keyed tables become again what they
were, files of others go. Instants of layers aren't undone themselves, since a layer shows its query's answer: those of
the sources are that they had read. Layers come after by their increments, which compute only what was touched.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lake.client.lake_types import Completion, Instant
from lake.layers.runner.records import Record, record_before, record_of
from lake.layers.runner.results import RefreshResult, named_counts
from lake.layers.runner.runner import Runner
from lake.layers.undo.undone_files import UndoneFiles, undone_files
from lake.layers.undo.undone_rows import UndoneRows
from lake.protocol.connection.closing import Closing
from lake.protocol.errors import UserError
from lake.protocol.hive import NoSuchObjectException
from lake.tables.keyed_writes import Action, committed
from lake.tables.lake import LakeTable, Writing

MOST_KEYS = 20
"""Keys that are listed of rows that were changed since."""


class ChangedSince(UserError):
    """Rows that are to be undone were changed by later instants, too. Nothing was written."""


class Range(NamedTuple):
    """The instants of a table after a position up to another."""

    after: int
    up_to: int


@dataclass(frozen=True)
class PlannedUndo:
    """What a rollback does with one table from outside.

    `instants` are undone. `rows` counts rows by what becomes of them: inserted, updated, deleted. `changed_since`
    counts those that later instants changed, too, and that would lose that; `keys` are the first of them.
    """

    table: str
    instants: Sequence[Instant]
    rows: Mapping[str, int]
    changed_since: int
    keys: Sequence[Mapping[str, Any]]

    @property
    def listed(self) -> str:
        """The first keys of rows that were changed since, in words."""
        shown = ["(" + ", ".join(f"{name}={value}" for name, value in key.items()) + ")" for key in self.keys]
        return ", ".join(shown) + (", …" if len(self.keys) == MOST_KEYS else "")


@dataclass(frozen=True)
class RollbackPlan:
    """What a rollback does. `layers`: the tables of the project that follow, those that others read first."""

    tables: Sequence[PlannedUndo]
    layers: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """The plan as the command's JSON has it."""
        tables = [
            {
                "table": each.table,
                "instants": [instant.timestamp for instant in each.instants],
                "rows": dict(each.rows),
                "changed_since": each.changed_since,
                "keys": [dict(key) for key in each.keys],
            }
            for each in self.tables
        ]
        return {"tables": tables, "layers": list(self.layers)}


class Rollback(Closing):
    """A rollback that has been planned, and can be applied. Ends with its block, as a context manager."""

    def __init__(self, runner: Runner, table: str, timestamp: str) -> None:
        """Plans to undo an instant of a layer, or of a table that the project reads.

        Raises NoSuchObjectException without the instant, CannotUndo, UserError for a table that isn't the project's,
        BadDefinition, NoSource if the refresh that follows couldn't compute the layers.
        """
        self._runner = runner
        self._engine = runner.engine()
        try:
            runner.compiled_by(self._engine)
            name = runner.graph.full_name(table)
            if name not in (*runner.graph.sources, *(each.name for each in runner.graph.nodes)):
                raise UserError(f"{name} isn't of the project: it neither makes nor reads such a table")
            ranges = _ranges(runner, name, timestamp)
            self._undone = [self._undo(name, each) for name, each in sorted(ranges.items())]
            self.plan = RollbackPlan(
                [_planned(each) for each in self._undone],
                runner.graph.below(ranges),
            )
        except BaseException:
            self._engine.close()
            raise

    def close(self) -> None:
        """Forgets what was computed for the plan."""
        self._engine.close()

    def check(self, *, force: bool) -> None:
        """Raises ChangedSince if rows were changed by later instants, too, unless `force`."""
        for each in self.plan.tables:
            if each.changed_since and not force:
                raise ChangedSince(
                    f"{each.table}: {each.changed_since:,} of these rows were changed since, and would lose that:"
                    f" {each.listed}. Undo the later instants first, or give --force"
                )

    def apply(self, *, force: bool = False) -> RefreshResult:
        """Undoes what was planned, then refreshes the project.

        `force`: rows that later instants changed, too, lose these changes. Raises ChangedSince without it,
        InstantConflict if others changed the same rows meanwhile.
        """
        self.check(force=force)
        actions = [action for each in self._undone if (action := each.action()) is not None]
        pause = self._runner.pause
        pause("planned")
        committed([_paused(each, pause) for each in actions], self._runner.heartbeat_seconds)
        pause("undone")
        return self._runner.refresh()

    def _undo(self, name: str, range: Range) -> UndoneFiles | UndoneRows:
        lake = self._runner.table(name)
        now = lake.position().position
        if lake.schema().keyed_table() is None:
            return undone_files(lake, range.after, range.up_to, now)
        return UndoneRows(self._engine, lake, range.after, range.up_to, now)


def _paused(action: Action, pause: Callable[[str], None]) -> Action:
    """The same action, which calls `pause` when it has written."""

    def write(writing: Writing) -> Completion:
        made = action.write(writing)
        pause("undoing")
        return made

    return action._replace(write=write)


def _planned(undone: UndoneFiles | UndoneRows) -> PlannedUndo:
    if isinstance(undone, UndoneFiles):
        return PlannedUndo(undone.lake.name, undone.instants, {"deleted": undone.rows}, 0, [])
    keys = undone.keys_changed_since(MOST_KEYS)
    return PlannedUndo(undone.lake.name, undone.instants, named_counts(undone.counts), undone.changed_since, keys)


def _ranges(runner: Runner, table: str, timestamp: str) -> Mapping[str, Range]:
    """By table from outside, the instants that brought what an instant of a table brought."""
    lake = runner.table(table)
    instant = _completed(lake, timestamp)
    position = instant.position or 0
    found: dict[str, Range] = {}
    _collect(runner, table, Range(position - 1, position), found)
    return found


def _collect(runner: Runner, table: str, range: Range, found: dict[str, Range]) -> None:
    """Adds the ranges of tables from outside from which the rows of a range of a table come."""
    if table in runner.graph.sources:
        old = found.get(table, range)
        found[table] = Range(min(old.after, range.after), max(old.up_to, range.up_to))
        return
    lake = runner.table(table)
    for record, before in _records_in(lake, range):
        for name, read in sorted(record.sources.items()):
            source = runner.table(name)
            first, last = (
                before.sources[name].position(source) if name in before.sources else None,
                read.position(source),
            )
            if first is None or last is None:
                raise UserError(f"{name} was made anew since {table} has read it: there is nothing to go back to")
            if first < last:
                _collect(runner, name, Range(first, last), found)


def _records_in(lake: LakeTable, range: Range) -> Collection[tuple[Record, Record]]:
    """The refreshes in a range of a layer, each with the one before it. Raises UserError."""
    found = []
    for changes in lake.changes(range.after, range.up_to, include_uncommitted=True):
        record = record_of(lake, changes.instant)
        if record is None:
            continue
        before = record_before(lake, changes.instant.position or 0)
        if before is None:
            raise UserError(
                f"{lake.name}: {changes.instant.timestamp} is its first refresh, which has read all there was:"
                " name an instant of a table that it reads"
            )
        found.append((record, before))
    if not found:
        raise UserError(
            f"{lake.name}: the instant isn't a refresh: name one that metastore timeline list shows as such"
        )
    return found


def _completed(lake: LakeTable, timestamp: str) -> Instant:
    """A completed instant that changed rows. Raises NoSuchObjectException."""
    for action in ("commit", "deltacommit", "replacecommit"):
        try:
            instant = lake.details(timestamp, action).instant
        except NoSuchObjectException:
            continue
        if instant.position is not None:
            return instant
    raise NoSuchObjectException(f"{lake.name} has no completed commit {timestamp}")
