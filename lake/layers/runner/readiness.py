"""Makes partitions of layers ready once those of their sources are, and keeps back those that aren't as expected."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.lineage import Origin, origins
from lake.layers.compiler.restating import parts_in
from lake.layers.compiler.texts.restated import Restated
from lake.protocol.formats.commit_mode import COMMIT_MODE, CommitMode
from lake.protocol.formats.partition_names import parse_name
from lake.protocol.lake import CommitPartitionsRequest, ReopenPartitionsRequest
from lake.tables.lake import LakeTable

COMMITTED_BY = "pipeline"
"""Who commits partitions of layers, as the metastore keeps it."""


@dataclass(frozen=True)
class Turned:
    """What became of a layer's partitions, by their names. `waiting`: those that aren't ready, with the reason."""

    committed: Sequence[str]
    reopened: Sequence[str]
    waiting: Mapping[str, str]


class _Among(NamedTuple):
    """Partitions whose value of a column is of one of the parts by which a layer is defined."""

    column: str
    parts: Restated
    number: int

    def may_have(self, values: Mapping[str, str]) -> bool:
        return self.parts.number_of(values[self.column]) in (self.number, None)


class _Needed(NamedTuple):
    """What a layer's partitions wait for: a reference to a table. `among`: only those that are of all of these."""

    origin: Origin
    among: tuple[_Among, ...]


class _Partitions:
    """A table's partitions by their values. `is_open`: it has partitions that come before they are complete."""

    def __init__(self, lake: LakeTable, readiness: Mapping[str, bool] | None = None) -> None:
        """`readiness`: by name, whether each is ready; None: it is looked up if need be."""
        schema = lake.schema()
        self.keys = frozenset(each.name.lower() for each in schema.keys)
        self.is_open = (
            bool(self.keys) and schema.properties.get(COMMIT_MODE, CommitMode.NONE).strip().lower() != CommitMode.NONE
        )
        known = {} if not self.is_open else lake.readiness() if readiness is None else readiness
        self._values: dict[bool, list[Mapping[str, str]]] = {True: [], False: []}
        for name, ready in known.items():
            self._values[ready].append({key.lower(): value for key, value in parse_name(name).items()})
        self._found: dict[tuple[bool, tuple[str, ...]], set[tuple[str, ...]]] = {}

    def any(self, wanted: Mapping[str, str], *, ready: bool) -> bool:
        """Whether there is a partition with some values that is ready, or one that isn't."""
        columns = tuple(sorted(wanted))
        if (ready, columns) not in self._found:
            values = self._values[ready]
            self._found[ready, columns] = {tuple(each[column] for column in columns) for each in values}
        return tuple(wanted[column] for column in columns) in self._found[ready, columns]


class Readiness:
    """The partitions of one refresh's tables.

    Those of sources are looked up when this is made: before the moment is chosen that the refresh reads. So a partition
    that is ready here has no rows that the refresh doesn't read, but for late ones.
    """

    def __init__(self, layers: Sequence[Compiled], lakes: Mapping[str, LakeTable]) -> None:
        """`lakes`: all tables that layers read, and those that they are, by name."""
        self._layers = {each.name: each for each in layers}
        self._lakes = lakes
        self._origins = {each.name: list(self._origins_of(each)) for each in layers if each.node.waits_for_sources}
        named = {each.origin.table for found in self._origins.values() for each in found} - self._layers.keys()
        self._known = {name: _Partitions(lakes[name]) for name in sorted(named)}

    def _origins_of(self, made: Compiled) -> Iterator[_Needed]:
        """References to tables that have partitions that may not be ready, through layers that don't say so."""
        yield from self._resolved(made, {name: made.layer.outputs[name] for name in made.node.partitions}, ())

    def _resolved(self, made: Compiled, columns: Mapping[str, str], among: tuple[_Among, ...]) -> Iterator[_Needed]:
        """The same for a layer, of which some columns are those of the partitions, by their names."""
        for needed in _read_by(made, columns):
            origin, within = needed.origin, (*among, *needed.among)
            below = self._layers.get(origin.table)
            if below is None or below.node.waits_for_sources:
                yield _Needed(origin, within)
                continue
            outputs = below.layer.outputs
            inner = {name: outputs[column] for name, column in origin.columns.items() if column in outputs}
            yield from self._resolved(below, inner, within)

    def settle(self, name: str, held: Mapping[str, str]) -> Turned:
        """Commits and reopens a layer's partitions as they should be, after its sources that are layers.

        `held`: partitions that stay back, or are reopened, with the reason.
        """
        lake = self._lakes[name]
        readiness = lake.readiness()
        waiting = {each: why for each in readiness if (why := held.get(each) or self._waits_for(name, each))}
        committed = [each for each, ready in readiness.items() if not ready and each not in waiting]
        reopened = [each for each, ready in readiness.items() if ready and each in waiting]
        if committed:
            request = CommitPartitionsRequest(lake.reference, committed, committedBy=COMMITTED_BY)
            lake.client.call(lambda client: client.lake_commit_partitions(request))
        if reopened:
            asked = ReopenPartitionsRequest(lake.reference, reopened)
            lake.client.call(lambda client: client.lake_reopen_partitions(asked))
        self._known[name] = _Partitions(lake, {each: each not in waiting for each in readiness})
        return Turned(committed, reopened, waiting)

    def _waits_for(self, name: str, partition: str) -> str | None:
        """Which partition of a source a layer's partition waits for, in words; None for none."""
        values = {key.lower(): value for key, value in parse_name(partition).items()}
        for origin, among in self._origins[name]:
            if not all(each.may_have(values) for each in among):
                continue
            found = self._known[origin.table]
            wanted = {column: values[own] for own, column in origin.columns.items() if column in found.keys}
            if not wanted or not found.is_open:
                continue
            shown = ", ".join(f"{column}={value}" for column, value in sorted(wanted.items()))
            if found.any(wanted, ready=False):
                return f"{origin.table} has uncommitted partitions of {shown}"
            if not found.any(wanted, ready=True):
                return f"{origin.table} has no partition of {shown} yet"
        return None


def _read_by(made: Compiled, columns: Mapping[str, str]) -> Iterator[_Needed]:
    """The references of a layer's query to tables; where it consists of parts, those of each for its own rows."""
    parts = made.node.restated
    names = [] if parts is None else [name for name in columns if columns[name] == made.layer.outputs[parts.column]]
    found = parts_in(made.layer, parts) if parts is not None and names else None
    if parts is None or found is None:
        yield from (_Needed(each, ()) for each in origins(made.layer.operator, columns))
        return
    for number, operator in enumerate(found):
        within = tuple(_Among(name, parts, number) for name in names)
        yield from (_Needed(each, within) for each in origins(operator, columns))
