"""How far a project's layers are behind their sources, from what their instants say. Needs no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lake.layers.compiler.graph import Graph, Node
from lake.layers.runner.costs import Ways
from lake.layers.runner.layer_tables import if_there
from lake.layers.runner.records import state_of, writes_rows
from lake.layers.runner.sinks import undelivered
from lake.tables.lake import LakeClient, LakeTable


@dataclass(frozen=True)
class SourceLag:
    """How far a layer is behind one of the tables that it reads.

    `behind` counts completions since that change rows, None for a table that isn't there or was made anew. `since` is
    when the first of them completed.
    """

    table: str
    behind: int | None
    since: datetime | None


@dataclass(frozen=True)
class LayerStatus:
    """How a layer stands. `how` is how its latest refresh was computed, `estimated` what its two ways would have taken,
    None where there was no choice. `trouble`: why the next can't be as usual, or
    what its sink hasn't got. `undelivered` counts batches that its sink hasn't got, None without a sink."""

    layer: str
    refreshed_at: datetime | None
    number: int
    how: str | None
    changed: Mapping[str, int] = field(default_factory=dict)
    expected: Mapping[str, int] = field(default_factory=dict)
    lags: tuple[SourceLag, ...] = ()
    trouble: str | None = None
    undelivered: int | None = None
    estimated: Ways | None = None

    @property
    def behind(self) -> int | None:
        """Completions of all its sources that it hasn't read; None if that can't be said."""
        counts = [each.behind for each in self.lags]
        return None if any(each is None for each in counts) else sum(each or 0 for each in counts)

    @property
    def since(self) -> datetime | None:
        """When the first of them completed."""
        return min((each.since for each in self.lags if each.since is not None), default=None)

    def as_json(self) -> dict[str, Any]:
        """The status as the command's JSON has it."""
        return {
            "layer": self.layer,
            "refreshed_at": self.refreshed_at,
            "refresh": self.number,
            "how": self.how,
            "estimated_seconds": None if self.estimated is None else self.estimated.as_json(),
            "changed": dict(self.changed),
            "expected": dict(self.expected),
            "behind": self.behind,
            "since": self.since,
            "sources": {each.table: {"behind": each.behind, "since": each.since} for each in self.lags},
            "trouble": self.trouble,
            "undelivered": self.undelivered,
        }


def status_of(graph: Graph, client: LakeClient) -> list[LayerStatus]:
    """The status of each layer, those that others read first."""
    return [_status(node, client) for node in graph.nodes]


def _status(node: Node, client: LakeClient) -> LayerStatus:
    layer = client.table(node.name)
    state = if_there(layer, state_of)
    if state is None:
        return LayerStatus(node.name, None, 0, None, trouble="the table isn't there: the next refresh makes it")
    if state.record is None or state.instant is None:
        return LayerStatus(node.name, None, state.number, None, trouble="there was no refresh yet")
    lags = []
    trouble = None if state.is_ours else "others have changed its rows: the next refresh computes all of it"
    for name in sorted(node.reads):
        read = state.record.sources.get(name)
        lag, reason = _lag(client.table(name), None if read is None else read.position(client.table(name)))
        lags.append(lag)
        trouble = trouble or reason
    waiting = None if node.sink is None else len(undelivered(layer))
    if waiting and trouble is None:
        trouble = f"its sink lacks {waiting:,} of its batches: the next refresh delivers them"
    return LayerStatus(
        node.name,
        state.instant.changed_at,
        state.record.number,
        state.record.how,
        state.record.changed,
        state.record.expected,
        tuple(lags),
        trouble,
        waiting,
        state.record.estimated,
    )


def _lag(source: LakeTable, position: int | None) -> tuple[SourceLag, str | None]:
    """How far a layer is behind a source of which it read a position, and what is in the way of its increment."""
    name = source.name
    now = if_there(source, LakeTable.position)
    if now is None:
        return SourceLag(name, None, None), f"there is no table {name}"
    if position is None or position > now.position:
        return SourceLag(name, None, None), f"{name} has been made anew: the next refresh computes all"
    if position < now.oldest_readable:
        return SourceLag(name, None, None), f"{name} has lost files since the last refresh: the next computes all"
    times = [
        each.instant.changed_at
        for each in source.changes(position, now.position, include_uncommitted=True)
        if writes_rows(each)
    ]
    return SourceLag(name, len(times), min(times, default=None)), None
