"""Whether layers are still defined as when they were refreshed the last time."""

from collections.abc import Callable, Collection, Sequence

from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.defined import Change, Comparer, Defined, changes_between
from lake.layers.compiler.graph import Graph, Node
from lake.layers.compiler.texts.restated import Restated
from lake.layers.errors import BadDefinition, BadQuery
from lake.layers.runner.layer_tables import PROJECT, if_there
from lake.layers.runner.records import Record, defining_refresh
from lake.tables.lake import LakeTable


class Definitions:
    """Compares the definitions of layers with those of records, each once. For one refresh.

    May be used by several threads for different layers.
    """

    def __init__(self, comparer: Comparer) -> None:
        self._comparer = comparer
        self._found: dict[tuple[str, str], Sequence[Change]] = {}

    def changes(self, made: Compiled, lake: LakeTable, record: Record) -> Sequence[Change]:
        """In what a layer's definition differs from that of a record, if it may have other rows; else nothing."""
        key = made.name, record.definition if record.kept is None else record.kept.digest
        if key not in self._found:
            self._found[key] = self._compared(made, lake, record)
        return self._found[key]

    def are_same(self, lake: LakeTable, before: Record, now: Record) -> bool:
        """Whether two refreshes of a layer went by definitions that have the same rows, for instance since a source has
        got a column that they don't read. False where that can't be said."""
        if before.kept is not None and now.kept is not None and before.kept.digest == now.kept.digest:
            return True
        one, other = (definition_of(lake, each) for each in (before, now))
        return one is not None and other is not None and not changes_between(one, other, self._comparer)

    def _compared(self, made: Compiled, lake: LakeTable, record: Record) -> Sequence[Change]:
        kept = record.kept
        if kept is not None and kept.digest == made.defined.digest:
            return []
        content = None if kept is None else kept.content(lake)
        if kept is not None and content is None:
            return [Change.UNKNOWN]
        before = None if content is None else Defined.of_json(content)
        if before is None:  # another version has kept it, or none: the digest is all that is known
            return [] if record.definition == made.definition else [Change.UNKNOWN]
        return changes_between(before, made.defined, self._comparer)


def parts_of(lake: LakeTable, project: str) -> Restated | None:
    """The parts that the table of a project's layer consists of; None for one query for all rows, and for a table that
    isn't the project's.

    Raises LookupError if they aren't known any more.
    """
    schema = if_there(lake, LakeTable.schema)
    latest = None if schema is None or schema.properties.get(PROJECT) != project else if_there(lake, defining_refresh)
    if latest is None or latest.record.kept is None or not latest.record.kept.restated:
        return None
    found = definition_of(lake, latest.record)
    if found is None or found.parts is None:
        raise LookupError(lake.name)
    return found.parts


def in_force(graph: Graph, table: Callable[[str], LakeTable]) -> Graph:
    """A project's layers, with those that consist of parts since their tables do: the last one is what the project's
    file says, the others are what the records of refreshes have. Raises BadDefinition."""
    nodes: dict[str, Node] = {}
    for node in graph.nodes:
        if node.is_fixed or node.is_quarantine:
            continue
        whole = f"metastore pipeline apply --whole {node.name} gives all rows what the file says"
        try:
            parts = parts_of(table(node.name), graph.project.name)
            if parts is not None and node.query is None:
                raise BadDefinition(node.place, f"{node.name} had queries for earlier rows, and has flows now. {whole}")
            if parts is not None and node.query is not None:
                made = node.of_parts(parts.with_latest(node.query), graph.project.database)
                if (left := left_behind(made.reads - node.reads, graph, table)) is not None:
                    raise BadDefinition(
                        node.place,
                        f"{node.name} had another query for earlier rows, which reads {left}. The project doesn't make"
                        f" that table any more, so nobody refreshes it: define it again, or {whole}",
                    )
                nodes[node.name] = made
        except (BadQuery, LookupError) as error:
            reason = "known" if isinstance(error, LookupError) else f"understood: {error}"
            raise BadDefinition(
                node.place, f"{node.name} had another query for earlier rows, which isn't {reason}. {whole}"
            ) from None
    try:
        return graph.with_nodes(nodes) if nodes else graph
    except BadDefinition as error:
        raise BadDefinition(error.place, f"{error.reason}{next(iter(nodes.values())).hint}") from None


def left_behind(names: Collection[str], graph: Graph, table: Callable[[str], LakeTable]) -> str | None:
    """The first of some tables that a project has made, and makes no more; None if there is none. What earlier queries
    read of it would stay as it was, while nobody sees that in the project's files."""
    own = {each.name for each in graph.nodes}
    for name in sorted({*names} - own):
        schema = if_there(table(name), LakeTable.schema)
        if schema is not None and schema.properties.get(PROJECT) == graph.project.name:
            return name
    return None


def check_restated(made: Compiled, lake: LakeTable, definitions: Definitions) -> None:
    """Raises BadDefinition if a layer's table consists of parts, and the project defines it otherwise than these: no
    refresh computes earlier rows by another query unless somebody says so."""
    if not made.node.is_of_record or made.node.restated is None:
        return
    latest = defining_refresh(lake)
    changes = () if latest is None else definitions.changes(made, lake, latest.record)
    if {*changes} - {Change.KEY, Change.COLUMNS, Change.TYPES}:
        parts = made.node.restated
        raise BadDefinition(
            made.node.place,
            f"{made.name} was restated from {parts.column} = {parts.since} on, and is defined otherwise now"
            f" ({', '.join(changes)}): metastore pipeline plan shows what becomes of all rows, and apply does it;"
            " with --from they do so for rows from some value on",
        )


def definition_of(lake: LakeTable, record: Record) -> Defined | None:
    """The definition that a record's refresh went by; None if it isn't known."""
    content = None if record.kept is None else record.kept.content(lake)
    return None if content is None else Defined.of_json(content)


def is_reverted(made: Compiled, lake: LakeTable, definitions: Definitions) -> bool:
    """Whether a layer's table was reverted, and its definition is another one."""
    return _other_since(made, lake, definitions) is not None


def _other_since(made: Compiled, lake: LakeTable, definitions: Definitions) -> str | None:
    """When a layer's table was reverted to another definition than the layer's; None if it wasn't, or isn't there."""
    latest = if_there(lake, defining_refresh)
    if latest is None or latest.reverted is None or not definitions.changes(made, lake, latest.record):
        return None
    return latest.reverted


def check_not_reverted(made: Compiled, lake: LakeTable, definitions: Definitions) -> None:
    """Raises BadDefinition if a layer's table was reverted, and its definition is another one."""
    if (since := _other_since(made, lake, definitions)) is not None:
        raise BadDefinition(
            made.node.place,
            f"{made.name} was reverted to an earlier definition at {since}, and this is another one: write"
            " the earlier one here, as metastore pipeline revert --dry-run shows it, or have this one applied by"
            " metastore pipeline apply",
        )
