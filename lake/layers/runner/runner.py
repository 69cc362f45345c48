"""Understands a project's layers as their tables stand, and refreshes them: again where another runner was quicker."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from lake.client.lake_types import Moment, Schema
from lake.layers.compiler.building import Table
from lake.layers.compiler.compiling import Compiled, compiled
from lake.layers.compiler.graph import Graph, Node
from lake.layers.errors import BadDefinition, RefreshLost, first_line
from lake.layers.runner.claims import Applied, claimed, wait_for_cut_over
from lake.layers.runner.commits import MAX_TOGETHER
from lake.layers.runner.definitions import Definitions, check_not_reverted, check_restated, in_force
from lake.layers.runner.engine import Engine
from lake.layers.runner.layer_tables import check_table, if_there, is_rewritable
from lake.layers.runner.records import latest_refresh
from lake.layers.runner.refresh import Refresh
from lake.layers.runner.results import RefreshFailed, RefreshResult
from lake.layers.runner.table_keys import TableKeys
from lake.protocol.errors import UserError
from lake.protocol.hive import NoSuchObjectException
from lake.protocol.lake import TableReplaced
from lake.tables.lake import LakeTable

logger = logging.getLogger(__name__)

ATTEMPTS = 5
"""How often a refresh is begun again that another runner has overtaken."""


class NoSource(UserError):
    """A table that a project reads isn't there, or can't be read by its timeline."""


class Runner:
    """Refreshes the layers of one project."""

    def __init__(
        self,
        graph: Graph,
        table: Callable[[str], LakeTable],
        engine: Callable[[], Engine],
        *,
        heartbeat_seconds: float = 20.0,
        choose: bool = True,
    ) -> None:
        """`table`: a lake table by its name. `engine` makes an engine for one refresh.

        `choose`: compute all of a layer where that is estimated to take less time than its increment.
        """
        self.given = graph
        """The layers as the project has them, or as somebody applies them."""
        self.graph = graph
        """The same with the parts that tables consist of, since somebody last looked."""
        self.find = table
        self._tables: dict[str, LakeTable] = {}
        self.keyed_by = self.table
        """The tables that say what keys the layers have."""
        self.applied = Applied()
        self.claims: frozenset[str] = frozenset()
        """Layers that somebody has claimed for this runner, by name."""
        self.heartbeat_seconds = heartbeat_seconds
        self.engine = engine
        self.choose = choose
        self.pause: Callable[[str], None] = _nothing
        """Called with the name of each stage of a refresh, for tests that kill the process there."""
        self.is_warm = False
        """Whether this runner has refreshed before: the first time, Spark compiles itself."""
        self.progress: Callable[[str], None] = _nothing
        """Called with words for users that say how far a refresh is, by several threads."""

    def of(self, graph: Graph) -> "Runner":
        """A runner of another graph of the same layers, which knows what this one knows."""
        found = self._like(graph, self.find)
        found.applied = self.applied
        return found

    def redirected(self, graph: Graph, table: Callable[[str], LakeTable]) -> "Runner":
        """A runner of layers that has other tables for them, with the keys of this one's."""
        found = self._like(graph, table)
        found.keyed_by = self.table
        return found

    def _like(self, graph: Graph, table: Callable[[str], LakeTable]) -> "Runner":
        return Runner(graph, table, self.engine, heartbeat_seconds=self.heartbeat_seconds, choose=self.choose)

    @contextmanager
    def claiming(self, layers: Mapping[str, LakeTable]) -> Iterator[None]:
        """Claims layers, by name with their tables, for what this runner does in the block. Raises DefinedElsewhere."""
        with claimed([*layers.values()], self.graph.project.name, self.heartbeat_seconds):
            self.claims = frozenset(layers)
            try:
                yield
            finally:
                self.claims = frozenset()

    def table(self, name: str) -> LakeTable:
        """The lake table of that name: one table, the same until the next refresh begins."""
        return self._tables.setdefault(name, self.find(name))

    def compile(self) -> list[Compiled]:
        """The project's layers. Raises BadDefinition, NoSource."""
        engine = self.engine()
        try:
            return self.compiled_by(engine)
        finally:
            engine.close()

    def refresh(
        self,
        full: Collection[str] = (),
        replay: Mapping[str, Moment] | None = None,
        *,
        reverted: Collection[str] = (),
        reverts: Mapping[str, str] | None = None,
        only: Collection[str] | None = None,
        beside: Mapping[str, LakeTable] | None = None,
    ) -> RefreshResult:
        """Brings all layers up to date. `full`: layers that are computed as a whole, by name.

        `replay`: layers that read again what changed in their sources since a moment, and keep other rows as they are,
        also where their definition has changed. `reverted`: layers that get another definition although they were
        reverted to an earlier one. `reverts`: by name, when layers are reverted to the definitions that they get.
        `only`: by name, the layers that are brought up to date; others are read as they are. `beside`: by name,
        tables from which layers get their rows, brought up to date on the way, and all layers
        that read these among them; then all layers complete, or none. Raises RefreshLost if other runners were quicker
        again and again, DefinedElsewhere if somebody else gives layers another definition, or has done so since this
        runner last looked, UserError for what the user can mend; then nothing is written. SinkFailed for a sink that
        doesn't take its rows, and LayersFailed for layers that can't be computed, after all else is done.
        """
        wanted = {self.graph.node(name).name for name in full}
        since = {self.graph.node(name).name: moment for name, moment in (replay or {}).items()}
        for attempt in range(1, ATTEMPTS + 1):
            self._tables.clear()  # by now other tables may have their names
            engine = self.engine()
            try:
                definitions = Definitions(engine)
                layers = self.compiled_by(engine, wanted, {*reverted, *(reverts or {})}, definitions)
                others = self._defined_otherwise(layers, definitions)
                chosen = [each for each in layers if only is None or each.name in only]
                if beside is None:
                    own = [self.table(each.name) for each in chosen]
                    wait_for_cut_over(own, self.heartbeat_seconds, self.progress)
                with claimed(others, self.graph.project.name, self.heartbeat_seconds):
                    if others:  # somebody may have been quicker than the claim
                        self._defined_otherwise(layers, definitions)
                    made = Refresh(self, engine, chosen, definitions, wanted, since, beside or {}, reverts or {})
                    result = made.run()
                self.is_warm = True
                return result
            except (RefreshLost, TableReplaced) as error:
                if attempt == ATTEMPTS:
                    raise
                logger.info("looking again: %s", error)
            except engine.errors as error:
                raise RefreshFailed(f"a layer can't be computed: {first_line(error)}") from error
            finally:
                engine.close()
        raise AssertionError("the last attempt returns or raises")

    def _defined_otherwise(self, layers: Sequence[Compiled], definitions: Definitions) -> list[LakeTable]:
        """The tables of layers that are defined otherwise than when they were refreshed last, and that aren't claimed.

        Raises DefinedElsewhere if somebody else has defined one so since this runner last looked.
        """
        found = []
        for each in layers:
            lake = self.table(each.name)
            latest = if_there(lake, latest_refresh)
            is_other = latest is not None and bool(definitions.changes(each, lake, latest[1]))
            self.applied.note(each.name, lake, latest, other_than=definitions if is_other else None)
            if is_other and each.name not in self.claims:
                found.append(lake)
        return found

    def compiled_by(
        self,
        engine: Engine,
        full: Collection[str] = (),
        reverted: Collection[str] = (),
        definitions: Definitions | None = None,
    ) -> list[Compiled]:
        """The project's layers, as an engine understands them. Those that are computed as a whole because somebody
        wants it (`full`) may have other columns than their tables. `reverted`: as of `refresh`. Raises BadDefinition,
        NoSource."""
        found, definitions = self.understood_by(engine), definitions or Definitions(engine)
        for each in found:
            may_rewrite = is_rewritable(each, full)
            if each.name not in reverted:
                check_not_reverted(each, self.table(each.name), definitions)
            check_restated(each, self.table(each.name), definitions)
            check_table(engine, self.table(each.name), each, self.graph.project.name, may_rewrite=may_rewrite)
        return found

    def understood_by(self, engine: Engine) -> list[Compiled]:
        """The project's layers, as an engine understands them, also if their tables don't fit them. Raises
        BadDefinition, NoSource."""
        self.graph = in_force(self.given, self.table)
        sources = {name: self._source(name, engine) for name in self.graph.sources}
        keys = TableKeys(engine, self.keyed_by, self.graph.project.name)
        found = compiled(self.graph, sources, engine, keys)
        if len(found) > MAX_TOGETHER:
            raise BadDefinition(
                self.graph.project.directory,
                f"the project has {len(found)} tables, and at most {MAX_TOGETHER} can complete together: divide it",
            )
        return found

    def _source(self, name: str, engine: Engine) -> tuple[Table, Mapping[str, str]]:
        """A table from outside, and the types of its columns. Raises NoSource."""
        lake = self.table(name)
        try:
            schema = lake.schema()
        except NoSuchObjectException:
            reader = self._reader(name)
            raise NoSource(f"there is no table {name}, which {reader.name} reads{reader.hint}") from None
        if lake.describe().tableType == "VIRTUAL_VIEW":
            raise NoSource(f"{name} is a view of the metastore: write its query into the project as a temporary view")
        if not _is_parquet(schema):
            raise NoSource(f"{name} isn't stored as Parquet: its changes can't be read here")
        keyed = schema.keyed_table()
        if keyed is None and lake.position().position == 0:
            raise NoSource(f"{name} has no timeline: write into it by lake.spark.write, or give it a primary-key")
        types = engine.columns(schema)
        key = None
        if keyed is not None:
            key = keyed.key if keyed.is_table_wide else (*keyed.key, *keyed.partition_columns)
        return Table(name, tuple(types), key, frozenset(key or ())), types

    def _reader(self, name: str) -> Node:
        return next(each for each in self.graph.nodes if name in each.reads)


def _is_parquet(schema: Schema) -> bool:
    stored = schema.properties.get("spark.sql.sources.provider") or schema.input_format
    return "parquet" in stored.lower()


def _nothing(_: str) -> None:
    pass
