"""Definitions that hold for a part of a table's rows: those from a date on, while days before keep the ones they had.

The project's file has the latest query alone. What was before it, and up to where, is in the records of refreshes. So
each runner puts the two together before it looks at a definition.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.defined import Change, Defined, have_other_keys, have_other_types, settings_of
from lake.layers.compiler.graph import Node
from lake.layers.compiler.restating import divided
from lake.layers.compiler.texts.restated import Part, Restated, can_be_restated_by
from lake.layers.errors import BadDefinition, BadQuery
from lake.layers.runner.definitions import Definitions, definition_of, left_behind
from lake.layers.runner.engine import Engine
from lake.layers.runner.layer_tables import if_there
from lake.layers.runner.records import Record, defining_refresh, latest_refresh
from lake.layers.runner.runner import Runner
from lake.protocol.errors import UserError
from lake.tables.lake import LakeTable


class CannotRestate(UserError):
    """A layer's definition can't be changed for a part of its rows alone. Nothing was written."""


def understood(runner: Runner, engine: Engine) -> list[Compiled]:
    """The project's layers as somebody would apply them. Where a file has another query than the last part of its
    table, that is for all rows, and the runner keeps to it. Raises BadDefinition, NoSource."""
    found, definitions = runner.understood_by(engine), Definitions(engine)
    taken = {}
    for made in found:
        if not made.node.is_of_record:
            continue
        lake = runner.table(made.name)
        latest = defining_refresh(lake)
        if latest is not None and (changes := definitions.changes(made, lake, latest.record)):
            is_other = Change.QUERY in changes or Change.UNKNOWN in changes
            node = runner.given.node(made.name) if is_other else made.node
            taken[made.name] = dataclasses.replace(node, is_fixed=True)
    if not taken:
        return found
    runner.given = runner.given.with_nodes(taken)
    return runner.understood_by(engine)


def apply_whole(runner: Runner, layers: Collection[str]) -> None:
    """Lets the project's definitions of some layers be for all rows, whatever parts their tables have."""
    nodes = {name: runner.given.node(name) for name in layers}
    fixed = {node.name: dataclasses.replace(node, is_fixed=True) for node in nodes.values()}
    if quarantines := [name for name, node in fixed.items() if node.is_quarantine]:
        raise CannotRestate(f"{quarantines[0]} is a quarantine: name the table to which it belongs")
    runner.given = runner.given.with_nodes(fixed)


def restate(runner: Runner, since: str, layers: Collection[str] = (), by: str | None = None) -> Sequence[str]:
    """Lets the project's definitions of some layers be for rows from a value on alone; others keep those that they
    have. Returns their names.

    `layers`: by default those whose queries have changed. `by`: the column that has the value; by default the one that
    partitions the table, or the only one with dates or times. Raises CannotRestate, BadDefinition, NoSource.
    """
    engine = runner.engine()
    try:
        return _Restating(runner, engine, since, by).restate(layers)
    finally:
        engine.close()


class _Restating:
    def __init__(self, runner: Runner, engine: Engine, since: str, by: str | None) -> None:
        self._runner = runner
        self._engine = engine
        self._since = since
        self._by = None if by is None else by.strip().lower()

    def restate(self, layers: Collection[str]) -> Sequence[str]:
        given = self._runner.given
        names = list(dict.fromkeys(given.node(each).name for each in layers)) or self._changed()
        if not names:
            raise CannotRestate("no query has changed: name the tables that are to be restated")
        now = self._understood({name: dataclasses.replace(given.node(name), is_fixed=True) for name in names})
        before, nodes = {}, {}
        for name in names:
            known = self._before(given.node(name), now[name])
            before[name] = self._node_before(given.node(name), known[0])
            nodes[name] = self._node(given.node(name), *known)
        self._check(names, self._understood(before), self._together(nodes))
        self._runner.given = given.with_nodes(nodes)
        return names

    def _understood(self, nodes: Mapping[str, Node]) -> dict[str, Compiled]:
        found = self._runner.of(self._runner.given.with_nodes(nodes)).understood_by(self._engine)
        return {each.name: each for each in found}

    def _together(self, nodes: Mapping[str, Node]) -> dict[str, Compiled]:
        """The layers as they are to be, each of whose queries is understood by itself. Raises CannotRestate."""
        try:
            return self._understood(nodes)
        except BadDefinition as error:
            raise CannotRestate(
                f"{', '.join(nodes)} can't be restated from a date on: {error.reason}. {_WHOLE.capitalize()}"
            ) from None

    def _changed(self) -> list[str]:
        """The layers whose files have another query than their tables."""
        definitions, found = Definitions(self._engine), []
        for made in self._runner.understood_by(self._engine):
            lake = self._runner.table(made.name)
            record = None if made.node.is_quarantine else _record(lake)
            if record is not None and Change.QUERY in definitions.changes(made, lake, record):
                found.append(made.name)
        return found

    def _before(self, node: Node, now: Compiled) -> tuple[Defined, frozenset[str]]:
        """The definition by which a layer stands, and the digests that it has, that of its quarantine among them."""
        name = node.name
        if node.is_quarantine:
            raise CannotRestate(f"{name} is a quarantine: name the table to which it belongs")
        if node.query is None or node.is_captured:
            raise CannotRestate(f"{name} has flows: only a table of one query can be restated from a date on")
        lake = self._runner.table(name)
        latest = if_there(lake, latest_refresh)
        self._runner.applied.note(name, lake, latest, other_than=None)  # the plan notices what others apply since
        if latest is None:
            raise CannotRestate(f"{name} was never refreshed: all of it is new")
        record = latest[1]
        before = definition_of(lake, record)
        if before is None or record.kept is None:
            raise CannotRestate(f"{name}: what it was computed by isn't known: {_WHOLE}")
        project = self._runner.given.project
        if before.parts is None and len(before.queries) != 1:
            raise CannotRestate(f"{name} had flows before: {_WHOLE}")
        differs = {
            "names without a database mean those of another one": before.database != project.database,
            "the project's settings for Spark have changed, too": dict(before.settings)
            != settings_of(project.configuration),
            "columns of the tables that it reads have other types, which the earlier rows depend on, too": (
                have_other_types(before, now.defined)
            ),
            "tables that it reads are known by other columns, of which its hidden keys are made": (
                have_other_keys(before, now.defined)
            ),
            "its expectations have changed, too, and they are for all rows": [dict(each) for each in before.conditions]
            != [dict(each) for each in now.defined.conditions],
            f"it has other columns ({', '.join(before.columns)}), or in another order or with other types": [
                *before.columns.items()
            ]
            != [*now.defined.columns.items()],
            "it has another key": (tuple(before.key), before.row_keys, before.form)
            != (tuple(now.defined.key), now.defined.row_keys, now.defined.form),
        }
        if reasons := [reason for reason, is_so in differs.items() if is_so]:
            raise CannotRestate(f"{name} can't be restated from a date on, since {reasons[0]}: {_WHOLE}")
        digests = {record.kept.digest}
        if (quarantine := node.quarantine) is not None:
            other = self._runner.table(quarantine.name)
            beside = _record(other)
            defined = None if beside is None else definition_of(other, beside)
            if defined is not None and [*defined.texts()] == [*before.texts()]:
                digests.add(defined.digest)
        return before, frozenset(digests)

    def _node_before(self, node: Node, before: Defined) -> Node:
        """The layer as its table has it."""
        try:
            if before.parts is not None:
                found = node.of_parts(before.parts, before.database)
            else:
                query = Part(before.queries[0], before.views).parsed()
                found = dataclasses.replace(node, query=query, reads=frozenset(query.reads(before.database)))
        except BadQuery as error:
            raise CannotRestate(
                f"{node.name}: what it was before isn't understood any more: {error}. {_WHOLE}"
            ) from None
        if (left := left_behind(found.reads - node.reads, self._runner.given, self._runner.table)) is not None:
            raise CannotRestate(
                f"{node.name}: what it was before reads {left}, which the project doesn't make any more, so that nobody"
                f" refreshes it: define it again, or {_WHOLE}"
            )
        return dataclasses.replace(found, is_fixed=True)

    def _node(self, node: Node, before: Defined, digests: frozenset[str]) -> Node:
        """The layer as it is to be."""
        assert node.query is not None
        parts = before.parts
        if parts is None:
            column = self._column(node, before)
            parts = Restated(column, before.columns[column], [Part(before.queries[0], before.views)])
        elif self._by not in (None, parts.column):
            raise CannotRestate(f"{node.name} consists of parts by {parts.column} already: {_WHOLE}")
        try:
            parts = parts.restated(node.query, self._since)
            if len(parts.parts) == 1:
                raise CannotRestate(f"{node.name}: nothing would be left that it was before: {_WHOLE}")
            found = node.of_parts(parts, before.database)
        except BadQuery as error:
            raise CannotRestate(f"{node.name} can't be restated: {error}") from None
        return dataclasses.replace(found, restates=digests, is_fixed=True)

    def _column(self, node: Node, before: Defined) -> str:
        """The column by which a layer's rows are told to be from a value on."""
        types = {name: kind for name, kind in before.columns.items() if can_be_restated_by(kind)}
        if self._by is not None:
            if self._by not in types:
                kind = before.columns.get(self._by)
                what = "has no such column" if kind is None else f"has it as {kind}"
                raise CannotRestate(f"{node.name} can't be restated by {self._by}: it {what}")
            return self._by
        times = [name for name, kind in types.items() if kind in ("date", "timestamp")]
        own = [name for name in node.partitions if name in types]
        found = [name for name in own if name in times] or own or times
        if len(found) != 1:
            which = f"several columns could say so ({', '.join(found)}): name one by --by"
            none = (
                "neither is it partitioned by a column that has an order, nor has it one of dates or times:"
                f" have both queries select the day, or group by it, or {_WHOLE}"
            )
            raise CannotRestate(f"{node.name} can't be restated from {self._since}: {which if found else none}")
        return found[0]

    def _check(self, names: Sequence[str], before: Mapping[str, Compiled], now: Mapping[str, Compiled]) -> None:
        """Raises CannotRestate for layers whose rows would be known by something else than before."""
        for name in names:
            made, parts = now[name], now[name].node.restated
            assert parts is not None
            same = known_by(before[name]) == known_by(made)
            if not same or divided(made.layer, made.checks, parts) is None:
                raise CannotRestate(
                    f"{name} can't be restated from a date on: a row may be of one {parts.column} by the query of"
                    f" before, and of another one by that of now, and nothing else tells these apart. Have"
                    f" {parts.column} be a part of what the rows are known by, or {_WHOLE}"
                )


_WHOLE = "apply it to all rows"


def known_by(made: Compiled) -> tuple[object, ...]:
    """What a layer's rows are known by: its table's key, and what hidden keys are made of."""
    visible = {column: name for name, column in made.layer.outputs.items()}
    return made.layer.key, made.row_keys, [visible.get(each) for each in made.layer.operator.key or ()]


def _record(lake: LakeTable) -> Record | None:
    latest = if_there(lake, latest_refresh)
    return None if latest is None else latest[1]
