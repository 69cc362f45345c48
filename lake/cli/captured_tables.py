"""What the captured tables of a project are defined by at the moment, and which layers a change of them concerns."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lake.cli.commands.schema_changes import policy_of
from lake.layers.definitions.model import CapturedTable
from lake.layers.errors import BadDefinition
from lake.protocol.hive import NoSuchObjectException
from lake.tables.lake import LakeClient

if TYPE_CHECKING:
    from lake.capture.schema_changes.model import SchemaChange
    from lake.layers.compiler.graph import Graph
    from lake.layers.definitions.model import Project


def graph_with(client: LakeClient, project: "Project") -> "Graph":
    """The layers of a project, with what its captured tables are defined by now.

    Raises UserError, as also for a layer that has the name of a table which a captured one needs at times, or reads
    such a table while there is none: what an earlier refresh left of it nobody brings up to date.
    """
    from lake.layers.compiler.graph import graph_of
    from lake.layers.definitions.projects import with_captured

    graph = graph_of(with_captured(project, definitions_of(client, project.directory)))
    nodes = {each.name: each for each in graph.nodes}
    for captured in project.definitions.captured:
        sent = graph.full_name(f"{captured.name}_as_sent")
        made = nodes.get(sent)
        if made is not None and not (made.is_captured and made.place == captured.place):
            why = f"the captured table {captured.name} has a table {sent} while it needs one"
            raise BadDefinition(made.place, f"{why}: give this one another name")
        readers = [each for each in graph.nodes if made is None and sent in each.reads]
        if readers:
            why = f"{readers[0].name} reads {sent}, which the captured table {captured.name} doesn't need now"
            raise BadDefinition(readers[0].place, f"{why}, so that nobody refreshes it: read {captured.name}_changes")
    return graph


def definitions_of(client: LakeClient, directory: Path) -> Callable[[CapturedTable], str]:
    """A function that gives the definitions of a captured table of the project in a directory. It raises UserError."""

    def defined(captured: CapturedTable) -> str:
        path = None if captured.policy is None else directory / captured.policy
        policy = policy_of(path)  # says what is missing to read it
        from lake.capture.definitions import definition
        from lake.capture.errors import CaptureError
        from lake.capture.schema_changes.decisions import with_decisions

        lake = client.table(captured.raw)
        try:
            known = with_decisions(policy, lake)
            return definition(
                lake,
                captured.table,
                captured.name,
                quarantines=captured.quarantines,
                policy=known,
                is_printed=False,
                properties=captured.properties,
            )
        except NoSuchObjectException:
            raise BadDefinition(captured.place, f"there is no raw table {captured.raw}") from None
        except CaptureError as error:
            raise BadDefinition(captured.place, str(error)) from None

    return defined


def layers_concerned(directory: Path, raw: str) -> "Callable[[SchemaChange], list[str]]":
    """A function that says which layers of a project a change of a table in a raw table concerns, by their texts.

    Those that name the column that changes, or take all columns. Only captured tables of the project are known. Raises
    BadDefinition.
    """
    from lake.capture.schema_changes.model import Kind
    from lake.layers.compiler.graph import graph_of
    from lake.layers.compiler.named_columns import layers_naming
    from lake.layers.definitions.projects import read_project, with_captured

    project = read_project(directory)
    graph = graph_of(with_captured(project, lambda _: ""))
    made: dict[str, list[str]] = {}
    for each in project.definitions.captured:
        if each.raw.lower() == raw.lower():
            name = graph.full_name(each.name)
            made.setdefault(each.table, []).extend((name, f"{name}_as_sent", f"{name}_changes", f"{name}_misfits"))
    harmless = {Kind.MOVE, Kind.ROWS, Kind.PARTITIONS, Kind.TRUNCATE, Kind.LABELS, Kind.NULLABILITY}

    def concerned(change: "SchemaChange") -> list[str]:
        column = change.difference.old or change.difference.new
        if change.difference.kind in harmless:
            return []
        return layers_naming(graph, made.get(change.table, ()), None if column is None else (column.name,))

    return concerned
