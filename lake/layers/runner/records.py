"""What a refresh keeps of itself, in the instants that it completes. There is no other checkpoint.

Each layer's instant says from which instants of its sources its rows come, by which definition, and what the refresh's
number is. Two runners that began from the same record give their instants the same number, and the metastore lets one
of them complete (see docs/streaming.md on batches).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from lake import __version__
from lake.client.lake_types import Changes, Instant
from lake.layers.compiler.defined import Defined
from lake.layers.runner.costs import Taken, Ways
from lake.protocol.errors import UserError
from lake.protocol.hive import NoSuchObjectException
from lake.tables.lake import LakeTable

STREAM = "pipeline"
"""The stream whose batches the refreshes of a layer are."""

_UNDOING = frozenset({"rollback", "restore"})
_FIELD = "pipeline"
_COMPLETE = "complete"
_DEFINED = "defined"
_RESTATED = "restated"
_REVERTED = "reverted"
_HELD = "held"
KEPT_FOR = 30
"""How many refreshes know a definition by the instant of one of them: texts can be long, and instants are deleted when
they are old."""
_PAGE = 50
_WRITING = ("commit", "deltacommit", "replacecommit")
SERVICES = frozenset({"compaction", "logcompaction", "clustering", "clean", "savepoint", "publish"})
"""The actions of instants that change no row."""


@dataclass(frozen=True)
class Read:
    """The last instant of a source that a refresh has read; timestamp None for a source that had none.

    `table`: the source's id; None in records of releases that didn't keep it.
    """

    timestamp: str | None
    action: str | None = None
    table: int | None = None

    def position(self, source: LakeTable) -> int | None:
        """The position of that instant now; None if the source is gone, another table, or doesn't know the instant."""
        try:
            if self.table is not None and source.id is not None and self.table != source.id:
                return None
            if self.timestamp is None or self.action is None:
                return 0
            return source.details(self.timestamp, self.action).instant.position
        except NoSuchObjectException:
            return None


@dataclass(frozen=True)
class Kept:
    """Where the definition is kept that a refresh went by: in its own record (`definition`), or in that of the refresh
    `number`, which completed the instant `timestamp` and `action`. `digest`: the definition's. `restated`: it consists
    of parts."""

    digest: str
    number: int
    definition: Mapping[str, Any] | None = None
    timestamp: str | None = None
    action: str | None = None
    restated: bool = False

    def content(self, layer: LakeTable) -> Mapping[str, Any] | None:
        """The definition, as its version has written it; None if the instant is gone that has it."""
        if self.definition is not None:
            return self.definition
        assert self.timestamp is not None and self.action is not None
        try:
            found = _record_in(layer.details(self.timestamp, self.action).metadata)
        except NoSuchObjectException:
            return None
        if found is None or found.kept is None or found.kept.digest != self.digest:
            return None
        return found.kept.definition


@dataclass(frozen=True)
class Record:
    """What the latest refresh of a layer says of itself.

    `definition` is a digest of the layer's query and table. `expected` counts, by expectation, rows that didn't meet it
    among those that were computed. `taken`: what the latest refreshes took, by way. `estimated`: what the two ways of
    this one would take, None where there was no choice. `complete`: each row is the query's answer over all that was
    read. After a replay by another definition, rows that weren't computed again aren't. `kept`: the definition, None in
    records of releases that didn't keep it. `reverted`: when this definition took the place of a later one that was
    taken back; None if it didn't. `held`: partitions that were ready, and that the refresh reopens once it has
    completed, since a row isn't as expected.
    """

    project: str
    number: int
    definition: str
    sources: Mapping[str, Read]
    how: str
    changed: Mapping[str, int] = field(default_factory=dict)
    expected: Mapping[str, int] = field(default_factory=dict)
    taken: Mapping[str, Taken] = field(default_factory=dict)
    estimated: Ways | None = None
    complete: bool = False
    kept: Kept | None = None
    reverted: str | None = None
    held: Sequence[str] = ()

    def metadata(self) -> bytes:
        """The instant's metadata."""
        said = asdict(self)
        # Beside it: 0.1.0 takes no other field for its own.
        complete, kept, reverted = said.pop("complete"), said.pop("kept"), said.pop(_REVERTED)
        held = said.pop(_HELD)
        if kept is not None and kept.pop(_RESTATED):
            said[_RESTATED] = True  # releases that don't know it refuse the record: they would compute all by one part
        beside = {_COMPLETE: complete, **({} if kept is None else {_DEFINED: kept})}
        beside |= {} if reverted is None else {_REVERTED: reverted}
        beside |= {_HELD: [*held]} if held else {}
        return json.dumps({"operation": "refresh", **beside, _FIELD: said}).encode()


@dataclass(frozen=True)
class LayerState:
    """How a layer stands: its latest refresh that isn't undone, and by which instant.

    `number` is the greatest number of any refresh, undone ones too. `is_ours`: nobody else has changed rows since.
    `reverted`: as of `Defining`.
    """

    record: Record | None
    instant: Instant | None
    number: int
    is_ours: bool
    reverted: str | None = None


def kept_next(state: LayerState, defined: Defined) -> Kept:
    """How the next refresh of a layer keeps the definition that it goes by."""
    number = state.number + 1
    before = None if state.record is None else state.record.kept
    if before is None or before.digest != defined.digest or number - before.number >= KEPT_FOR:
        return Kept(defined.digest, number, defined.as_json(), restated=defined.restated is not None)
    if before.definition is None:
        return before
    assert state.instant is not None
    timestamp, action = state.instant.timestamp, state.instant.action
    return Kept(before.digest, before.number, None, timestamp, action, before.restated)


def state_of(layer: LakeTable) -> LayerState:
    """How a layer stands."""
    number, reverted, is_latest = 0, None, True
    for instant, said in _steps(layer):
        if is_latest:
            reverted, is_latest = said.reverted, False
        if not isinstance(said, Record):
            continue
        number = max(number, said.number)
        if instant.undone_by is None:
            return LayerState(said, instant, number, not _changed_by_others(layer, instant.position or 0), reverted)
    return LayerState(None, None, number, layer.position().position == 0, reverted)


class Defining(NamedTuple):
    """The refresh that says by which definition a layer goes on. `reverted`: when it was reverted to that; None if it
    wasn't, or has got another one since."""

    instant: Instant
    record: Record
    reverted: str | None


def defining_refresh(layer: LakeTable) -> Defining | None:
    """The refresh that says by which definition a layer's table goes on: the latest one. That it was rolled back with
    the table's rows takes no definition back, unless the table was reverted. Raises NoSuchObjectException."""
    reverted, is_latest = None, True
    for instant, said in _steps(layer):
        if is_latest:
            reverted, is_latest = said.reverted, False
        if isinstance(said, Record) and (reverted is None or instant.undone_by is None):
            return Defining(instant, said, reverted)
    return None


def reverting_instant(layer: LakeTable) -> Instant | None:
    """The instant that has reverted a layer to the definition by which it stands; None as of `Defining`."""
    found, time = None, None
    for instant, said in _steps(layer):
        if said.reverted is None or time not in (None, said.reverted):
            break
        found, time = instant, said.reverted
    return found


def latest_refresh(layer: LakeTable) -> tuple[Instant, Record] | None:
    """A layer's latest refresh that isn't undone, and what it said of itself."""
    return next(standing_refreshes(layer), None)


def standing_refreshes(layer: LakeTable) -> Iterator[tuple[Instant, Record]]:
    """A layer's refreshes that aren't undone, the latest first."""
    return ((instant, record) for instant, record in _refreshes(layer) if instant.undone_by is None)


def record_of(layer: LakeTable, instant: Instant) -> Record | None:
    """What a refresh said of itself; None for an instant that is none."""
    if instant.position is None or instant.action not in _WRITING:
        return None
    return _record_in(layer.details(instant.timestamp, instant.action).metadata)


def record_before(layer: LakeTable, position: int) -> Record | None:
    """What the last refresh before a position said of itself; None if there was none. Those undone don't count."""
    return next((each for instant, each in standing_refreshes(layer) if (instant.position or 0) < position), None)


def _refreshes(layer: LakeTable) -> Iterator[tuple[Instant, Record]]:
    """A layer's refreshes, undone ones too, the latest first."""
    return ((instant, said) for instant, said in _steps(layer) if isinstance(said, Record))


@dataclass(frozen=True)
class _TakenBack:
    """What a rollback says of itself that is a part of a revert."""

    reverted: str


def _steps(layer: LakeTable) -> Iterator[tuple[Instant, Record | _TakenBack]]:
    """A layer's refreshes, undone ones too, and the rollbacks by which it was reverted, the latest first."""
    for instant in layer.instants(states=["completed"], latest_first=True, include_archived=True, page=_PAGE):
        record = record_of(layer, instant)
        if record is not None:
            yield instant, record
        elif instant.action in _UNDOING:
            for found in _objects_in(layer.details(instant.timestamp, instant.action).metadata):
                if isinstance(found.get(_REVERTED), str):
                    yield instant, _TakenBack(found[_REVERTED])


def _changed_by_others(layer: LakeTable, position: int) -> bool:
    """Whether others have changed rows after a position. What was rolled back since doesn't count."""
    return any(
        writes_rows(each) and each.instant.begun_as not in _UNDOING and each.instant.undone_by is None
        for each in layer.changes(position, include_uncommitted=True)
    )


def writes_rows(changes: Changes) -> bool:
    """Whether an instant has changed rows: table services change files alone."""
    return bool(changes.added or changes.removed) and changes.instant.begun_as not in SERVICES


def undoing_metadata(undone: Sequence[Instant]) -> bytes:
    """The metadata of an instant that undoes others."""
    return json.dumps({"operation": "rollback", "undoes": [each.timestamp for each in undone]}).encode()


def reverting_metadata(time: str) -> bytes:
    """The metadata of a rollback by which a layer is reverted."""
    return json.dumps({"operation": "revert", _REVERTED: time}).encode()


def _objects_in(metadata: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    for text in metadata.values():
        try:
            found: Any = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _record_in(metadata: Mapping[str, bytes]) -> Record | None:
    for found in _objects_in(metadata):
        if isinstance(found.get(_FIELD), dict):
            given = found[_FIELD]
            try:
                sources = {name: Read(**each) for name, each in given["sources"].items()}
                taken = {way: Taken(**each) for way, each in given.get("taken", {}).items()}
                estimated = Ways(**given["estimated"]) if given.get("estimated") else None
                made = {**given, "sources": sources, "taken": taken, "estimated": estimated}
                restated = made.pop(_RESTATED, False)
                kept = Kept(**found[_DEFINED], restated=restated) if found.get(_DEFINED) else None
                complete, reverted, held = found.get(_COMPLETE) is True, found.get(_REVERTED), found.get(_HELD, ())
                return Record(**made, complete=complete, kept=kept, reverted=reverted, held=tuple(held))
            except (TypeError, KeyError):
                raise UserError(
                    f"the layers were refreshed by a later version than this one, {__version__}: run that version"
                ) from None
    return None


def last_read(source: LakeTable, position: int) -> Read:
    """What a refresh says that it has read a source up to a position."""
    if position == 0:
        return Read(None, table=source.id)
    instant = next(each.instant for each in source.changes(position - 1, position, include_uncommitted=True))
    return Read(instant.timestamp, instant.action, source.id)
