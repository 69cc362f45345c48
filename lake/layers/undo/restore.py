"""Brings all layers of a project back to what they were at a moment, by rolling back what has completed since.

A refresh then goes on from there: it computes again what came after.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lake.client.lake_types import Completion, Instant, Moment
from lake.layers.runner.records import reverting_metadata
from lake.layers.runner.results import RefreshResult
from lake.layers.runner.runner import Runner
from lake.protocol.hive import NoSuchObjectException
from lake.tables.keyed_writes import Action, committed
from lake.tables.lake import LakeTable, Writing

_ADDING_NOTHING = frozenset({"savepoint", "rollback", "clean", "indexing", "publish", "readiness"})
"""Actions whose instants a rollback passes over (see `services/instants/states.py`)."""


@dataclass(frozen=True)
class RestoredLayer:
    """The instants of a layer that are rolled back, the latest first."""

    layer: str
    instants: Sequence[Instant]


@dataclass(frozen=True)
class Restore:
    """What it takes to bring layers back to a moment."""

    moment: Moment
    layers: Sequence[RestoredLayer]


def plan_restore(runner: Runner, moment: Moment) -> Restore:
    """What it takes to bring all layers of a project back to a moment. Layers made since become empty.

    Raises BadDefinition, NoSource if the refresh that follows couldn't compute the layers.
    """
    runner.compile()
    found = []
    for node in runner.graph.nodes:
        lake = runner.table(node.name)
        try:
            position = lake.position_of(moment)
        except NoSuchObjectException:
            continue
        if later := later_instants(lake, position):
            found.append(RestoredLayer(node.name, later))
    return Restore(moment, found)


def moment_at(runner: Runner, given: int | datetime) -> Moment:
    """The moment of a number, or the latest one of any layer that isn't after a time, 0 if there was none."""
    if isinstance(given, int):
        return Moment(given)
    found = 0
    for node in runner.graph.nodes:
        lake = runner.table(node.name)
        try:
            position = lake.position_of(given)
        except NoSuchObjectException:
            continue
        for change in lake.changes(position - 1, position, include_uncommitted=True) if position else ():
            found = max(found, change.instant.moment or 0)
    return Moment(found)


def apply_restore(runner: Runner, restore: Restore) -> RefreshResult:
    """Rolls layers back, all at one moment, and refreshes the project.

    Raises InvalidOperationException if others have written into a layer since it was planned, or if files of the
    layer's state then have been cleaned. Then nothing is written.
    """
    actions = [rolling_back(runner.table(each.layer), each.instants) for each in restore.layers]
    committed(actions, runner.heartbeat_seconds)
    return runner.refresh()


def rolling_back(lake: LakeTable, instants: Sequence[Instant], reverted: str | None = None) -> Action:
    """The instant that rolls instants of a table back, which are all that changed its rows since. `reverted`: when the
    table's definition is taken back by that; None if it isn't."""

    def write(_: Writing) -> Completion:
        return Completion(rolled_back=instants, metadata=None if reverted is None else reverting_metadata(reverted))

    return Action(lake, "rollback", write, None)


def later_instants(lake: LakeTable, position: int) -> list[Instant]:
    """The instants of a table after a position that a rollback undoes, the latest first."""
    found = [each.instant for each in lake.changes(position, include_uncommitted=True)]
    found = [each for each in found if each.action not in _ADDING_NOTHING and each.undone_by is None]
    return found[::-1]
