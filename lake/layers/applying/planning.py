"""What a refresh will do since definitions have changed, said before it is done. Nothing is written."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lake.client.lake_types import DataFile
from lake.layers.applying.restating import understood
from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.defined import Change, Defined, text_difference
from lake.layers.compiler.restating import copied, divided
from lake.layers.compiler.texts.restated import Restated
from lake.layers.errors import BadDefinition
from lake.layers.runner.definitions import Definitions, definition_of, is_reverted
from lake.layers.runner.engine import Engine
from lake.layers.runner.layer_tables import BUCKETS, Fit, check_table, kept_properties
from lake.layers.runner.records import latest_refresh
from lake.layers.runner.runner import Runner
from lake.protocol.formats.partition_names import values_of
from lake.protocol.hive import NoSuchObjectException
from lake.tables.lake import LakeTable


class Other(StrEnum):
    """What else a plan says of a definition, beside a `Change`."""

    NEW = "new"  # the layer was never refreshed
    FORMATTING = "formatting"  # the text is another one, which means the same
    PROPERTIES = "properties"  # or what partitions the table
    REWRITTEN = "rewritten below"  # a table that it reads is rewritten
    REVERTED = "reverted before"  # its table was reverted to an earlier definition, and this is another one
    RESTATED = "restated before"  # earlier rows of its table have a definition of their own, and this is for all


class Computes(StrEnum):
    """What a refresh computes of a layer because of changed definitions."""

    ALL = "all"
    RANGE = "a range"  # rows from a value of some column on
    DIFFERENCES = "what follows"  # from rows that differ in a layer that it reads
    NOTHING = "nothing"


@dataclass(frozen=True)
class Reading:
    """What computing all of a layer reads of a table: its snapshot. `rows` is None where files don't say it; rows that
    a table has in log files, too, count more than once."""

    table: str
    rows: int | None
    bytes: int


@dataclass(frozen=True)
class LayerPlan:
    """What becomes of a layer. `changes`: in what its definition differs from that of its latest refresh.

    `rewrites`: its table gets other columns, another key or other buckets, all at one moment; `asks`: only if somebody
    names the layer for that.
    `refused`: why no refresh can be done as things are. `reads`: what is read if all of it is computed, of each table.
    `keeps`: properties that the definition has and the table has otherwise, as it was made with them; by name, the
    table's value. `below`: the layers that read it, directly or through others. `difference`: of its texts, for people,
    in lines that begin with a minus, a plus or a blank; empty if the text of before isn't known. `since`: the column
    and its value from which on the layer is restated; `reads` is then of the partitions that have such rows, where
    these can be told.
    """

    layer: str
    changes: tuple[Change | Other, ...]
    computes: Computes
    rewrites: bool = False
    asks: bool = False
    refused: str | None = None
    reads: tuple[Reading, ...] = ()
    keeps: Mapping[str, str] = field(default_factory=dict)
    below: tuple[str, ...] = ()
    difference: tuple[str, ...] = ()
    since: tuple[str, str] | None = None

    @property
    def rows(self) -> int | None:
        """The rows of all tables that are read."""
        return None if any(each.rows is None for each in self.reads) else sum(each.rows or 0 for each in self.reads)

    @property
    def bytes(self) -> int:
        """The bytes of all tables that are read."""
        return sum(each.bytes for each in self.reads)

    def as_json(self) -> dict[str, Any]:
        """The plan as the command's JSON has it."""
        return {
            "table": self.layer,
            "changes": [each.value for each in self.changes],
            "computes": self.computes.value,
            "rewrites": self.rewrites,
            "asks_for_full_refresh": self.asks,
            "refused": self.refused,
            "rows": self.rows,
            "bytes": self.bytes,
            "reads": {each.table: {"rows": each.rows, "bytes": each.bytes} for each in self.reads},
            "keeps": dict(self.keeps),
            "below": list(self.below),
            "since": None if self.since is None else dict([self.since]),
            "difference": list(self.difference),
        }


def plan_of(runner: Runner) -> list[LayerPlan]:
    """What the next refresh does because of changed definitions, by layer, those that others read first.

    Raises BadDefinition, NoSource.
    """
    engine = runner.engine()
    try:
        return _Planning(runner, engine).layers()
    finally:
        engine.close()


def reverted_in(plan: Sequence[LayerPlan]) -> list[str]:
    """The layers of a plan that get another definition although they were reverted to an earlier one."""
    return [each.layer for each in plan if Other.REVERTED in each.changes]


def asked_in(plan: Sequence[LayerPlan]) -> list[str]:
    """The layers of a plan whose tables are rewritten only if somebody says so."""
    return [each.layer for each in plan if each.asks]


class _Planning:
    def __init__(self, runner: Runner, engine: Engine) -> None:
        self._runner = runner
        self._engine = engine
        self._definitions = Definitions(engine)
        self._rewritten: set[str] = set()
        self._computed: set[str] = set()
        self._files: dict[str, list[DataFile]] = {}

    def layers(self) -> list[LayerPlan]:
        return [self._layer(each) for each in understood(self._runner, self._engine)]

    def _layer(self, made: Compiled) -> LayerPlan:
        lake, sources, parts = self._runner.table(made.name), made.layer.sources, made.node.restated
        fit, refused = self._fit(made, lake)
        changes, before = self._changes(made, lake, fit)
        if sources & self._rewritten:
            changes.append(Other.REWRITTEN)
        rewrites = fit is Fit.OTHER_COLUMNS
        computes = Computes.NOTHING
        if rewrites or any(isinstance(each, Change) or each in (Other.NEW, Other.REWRITTEN) for each in changes):
            computes = Computes.RANGE if self._is_restated(made, changes, rewrites=rewrites) else Computes.ALL
        elif sources & self._computed:
            computes = Computes.DIFFERENCES
        if rewrites:
            self._rewritten.add(made.name)
        if computes is not Computes.NOTHING:
            self._computed.add(made.name)
        return LayerPlan(
            made.name,
            tuple(changes),
            computes,
            rewrites,
            rewrites and not made.node.is_captured,
            refused,
            self._reads(made, computes),
            {} if fit is Fit.MISSING else self._kept(made, lake, rewrites=rewrites),
            tuple(self._runner.graph.below([made.name])) if computes in (Computes.ALL, Computes.RANGE) else (),
            () if before is None else tuple(text_difference(before, made.defined)),
            None if computes is not Computes.RANGE or parts is None else (parts.column, parts.since),
        )

    @staticmethod
    def _is_restated(made: Compiled, changes: Sequence[Change | Other], *, rewrites: bool) -> bool:
        """Whether a part of a layer is computed alone."""
        of_query = {Change.QUERY, Other.PROPERTIES, Other.REVERTED}
        can_be = made.kind != "full" and not rewrites
        return bool(made.node.restates) and can_be and {*changes} <= of_query

    def _reads(self, made: Compiled, computes: Computes) -> tuple[Reading, ...]:
        """What computing a layer reads."""
        parts = made.node.restated
        if computes is Computes.ALL:
            return tuple(map(self._size, sorted(made.layer.sources)))
        both = None if parts is None else divided(made.layer, made.checks, parts)
        if computes is not Computes.RANGE or parts is None or both is None:
            return ()
        return tuple(
            self._size(table, None if column is None else (column, parts))
            for table, column in copied(both, parts.column).items()
        )

    def _kept(self, made: Compiled, lake: LakeTable, *, rewrites: bool) -> dict[str, str]:
        """The properties that a layer's table keeps, although its definition has others."""
        found = kept_properties(made, lake.schema().properties)
        return {name: value for name, value in found.items() if not (rewrites and name in BUCKETS)}

    def _fit(self, made: Compiled, lake: LakeTable) -> tuple[Fit | None, str | None]:
        """How the layer's table fits, or why it can't stay."""
        try:
            return check_table(self._engine, lake, made, self._runner.graph.project.name, may_rewrite=True), None
        except BadDefinition as error:
            return None, str(error)

    def _changes(self, made: Compiled, lake: LakeTable, fit: Fit | None) -> tuple[list[Change | Other], Defined | None]:
        latest = None if fit is Fit.MISSING else latest_refresh(lake)
        # What is restated was looked at before: the part that stays must still be what the table has.
        is_other = bool(made.node.restates)
        self._runner.applied.note(made.name, lake, latest, other_than=self._definitions if is_other else None)
        if latest is None:
            return [Other.NEW], None
        record = latest[1]
        found: list[Change | Other] = [*self._definitions.changes(made, lake, record)]
        if is_reverted(made, lake, self._definitions):
            found.append(Other.REVERTED)
        if record.kept is not None and record.kept.restated and made.node.restated is None:
            found.append(Other.RESTATED)
        before = definition_of(lake, record)
        if before is not None:
            if _table_of(before) != _table_of(made.defined):
                found.append(Other.PROPERTIES)
            if not found and before.digest != made.defined.digest and before.texts() != made.defined.texts():
                found.append(Other.FORMATTING)
        return found, before

    def _size(self, table: str, since: tuple[str, Restated] | None = None) -> Reading:
        """What is read of a table: all of it, or, if it is partitioned by that, where a column is in the last part."""
        lake = self._runner.table(table)
        if table not in self._files:
            try:
                position = lake.position().position
                self._files[table] = [*lake.snapshot(position, include_uncommitted=True)] if position else []
            except NoSuchObjectException:  # a layer that the next refresh makes
                self._files[table] = []
        files = self._files[table]
        keys = [each.name.lower() for each in lake.schema().keys] if since is not None and files else []
        if since is not None and since[0] in keys:
            place, parts = keys.index(since[0]), since[1]
            files = [each for each in files if parts.is_latest(values_of(each.partition, keys)[place])]
        return Reading(table, _sum(each.rows for each in files), sum(each.size for each in files))


def _table_of(defined: Defined) -> tuple[object, ...]:
    return tuple(defined.partitions), dict(defined.properties)


def _sum(rows: Iterable[int | None]) -> int | None:
    found: Collection[int | None] = [*rows]
    return None if None in found else sum(each or 0 for each in found)
