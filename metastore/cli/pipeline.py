"""`metastore pipeline`: layers of tables, each computed from what has changed in others."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from metastore.cli.connection import connect, uri_option
from metastore.cli.group import Group
from metastore.cli.lake import RETRY_SECONDS
from metastore.cli.output import counted, json_option, print_json, print_list, print_table
from metastore.errors import UserError
from metastore.formats.durations import parse_duration

if TYPE_CHECKING:
    from metastore.pipeline.compiling import Compiled
    from metastore.pipeline.graph import Graph
    from metastore.pipeline.runner import RefreshResult, Runner
    from metastore.pipeline.status import LayerStatus

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(cls=Group)
def pipeline() -> None:
    """Compute layers of tables from what has changed in others.

    A project is a directory with a spark-pipeline.yml and definitions in SQL and Python, as Spark's own
    spark-pipelines has them.
    """


def _project_argument(command: Command) -> Command:
    kind = click.Path(path_type=Path, exists=True, file_okay=False)
    return click.argument("project", metavar="DIR", type=kind)(command)


def _duration(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        return parse_duration(value) / 1000
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@pipeline.command()
@_project_argument
@uri_option
@click.option("--once", is_flag=True, help="Refresh once and end; what happens without --every, too.")
@click.option("--every", metavar="DURATION", callback=_duration, help="Refresh again and again: 60s, 5min.")
@click.option("--full-refresh", "full", multiple=True, metavar="TABLE", help="Compute all of this table.")
@json_option
def run(project: Path, uri: str, once: bool, every: float | None, full: tuple[str, ...], as_json: bool) -> None:
    """Bring all tables of a project up to date.

    All tables complete together, as of one moment of their sources. What has been read is kept in their instants: a
    run that is killed leaves nothing behind, and the next one goes on.

    \b
    Examples:
      metastore pipeline run shop --uri thrift://metastore.example:9083
      metastore pipeline run shop --every 60s
      metastore pipeline run shop --full-refresh dws.revenue
    """
    if once and every is not None:
        raise click.UsageError("give either --once or --every")
    graph = _graph(project)
    for name in full:
        graph.node(name)
    with _runner(graph, uri) as runner:
        while True:
            began = time.monotonic()
            result = runner.refresh(full)
            _print_result(result, time.monotonic() - began, as_json=as_json)
            full = ()
            if every is None:
                return
            time.sleep(max(0.0, every - (time.monotonic() - began)))


@pipeline.command("dry-run")
@_project_argument
@uri_option
@json_option
def dry_run(project: Path, uri: str, as_json: bool) -> None:
    """Check a project's definitions; make and write nothing.

    \b
    Example:
      metastore pipeline dry-run shop --uri thrift://metastore.example:9083
    """
    with _runner(_graph(project), uri) as runner:
        found = runner.compile()
    if as_json:
        print_json([_described(each) for each in found])
        return
    rows = [(each.name, each.kind, ", ".join(each.layer.key), str(each.node.place)) for each in found]
    print_list("table", ("table", "refresh", "primary key", "defined in"), rows)


@pipeline.command()
@_project_argument
@click.argument("table", required=False)
@uri_option
@json_option
def explain(project: Path, table: str | None, uri: str, as_json: bool) -> None:
    """Say how tables are refreshed, and why.

    `incremental` computes the rows that changes touch, `by group` the groups and partitions that they touch, `full` the
    whole table. Of one TABLE the steps of its increment are shown, too.

    \b
    Examples:
      metastore pipeline explain shop
      metastore pipeline explain shop dws.revenue
    """
    graph = _graph(project)
    wanted = None if table is None else graph.node(table).name
    with _runner(graph, uri) as runner:
        found = [each for each in runner.compile() if wanted in (None, each.name)]
    if as_json:
        print_json([_described(each, steps=wanted is not None) for each in found])
        return
    print_table(
        ("table", "refresh", "because of"),
        [(each.name, each.kind, "; ".join(each.reasons) or "rows that changes touch") for each in found],
    )
    for each in found if wanted is not None else ():
        click.echo()
        for name, text in each.steps():
            click.echo(f"{name}: {text}")


@pipeline.command()
@_project_argument
@uri_option
@json_option
def status(project: Path, uri: str, as_json: bool) -> None:
    """Show how far tables are behind their sources.

    \b
    Example:
      metastore pipeline status shop --json
    """
    found = _statuses(_graph(project), uri)
    if as_json:
        print_json([each.as_json() for each in found])
        return
    rows = [
        (
            each.layer,
            None if each.refreshed_at is None else f"{each.refreshed_at:%Y-%m-%d %H:%M:%S}",
            each.how,
            each.behind,
            _age(each.since),
            each.trouble,
        )
        for each in found
    ]
    print_table(("table", "refreshed at", "how", "behind", "for", "trouble"), rows)


@pipeline.command()
@_project_argument
@uri_option
@click.option(
    "--html",
    "page_file",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page to FILE.",
)
def graph(project: Path, uri: str, page_file: Path) -> None:
    """Draw a project's tables as a page, with their lags.

    \b
    Example:
      metastore pipeline graph shop --html shop.html
    """
    from metastore.cli.html import write
    from metastore.cli.pipeline_page import pipeline_page

    found = _graph(project)
    write(page_file, pipeline_page(found, _statuses(found, uri), datetime.now(UTC)))


def _graph(project: Path) -> "Graph":
    with _needs_pipeline():
        from metastore.pipeline.graph import graph_of
        from metastore.pipeline.projects import read_project
    return graph_of(read_project(project))


def _statuses(graph: "Graph", uri: str) -> "list[LayerStatus]":
    from metastore.client.lake import LakeClient
    from metastore.pipeline.status import status_of

    with connect(uri), LakeClient(uri, retry_seconds=RETRY_SECONDS) as client:
        return status_of(graph, client)


@contextmanager
def _runner(graph: "Graph", uri: str) -> "Iterator[Runner]":
    """A runner with a Spark session, which ends with the block."""
    with connect(uri):  # says at once if nobody answers
        pass
    with _needs_pipeline():
        from pyspark.sql import SparkSession

        from metastore.pipeline.runner import Runner
        from metastore.pipeline.spark_engine import SparkEngine
        from metastore.spark import configure
        from metastore.spark.session_client import lake_table
    builder = SparkSession.builder.appName(f"pipeline {graph.project.name}")
    for key, value in {"spark.ui.showConsoleProgress": "false", **graph.project.configuration}.items():
        builder = builder.config(key, value)
    spark = configure(builder, uri).getOrCreate()
    try:
        yield Runner(
            graph,
            lambda name: lake_table(spark, name, uri),
            lambda: SparkEngine(spark, graph.project.configuration),
        )
    finally:
        spark.stop()


@contextmanager
def _needs_pipeline() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is missing: pip install 'lake-metastore[pipeline]'") from None


def _print_result(result: "RefreshResult", seconds: float, *, as_json: bool) -> None:
    if as_json:
        layers = [
            {"table": each.layer, "how": each.how, "why": each.why, "changed": each.changed, "expected": each.expected}
            for each in result.layers
        ]
        print_json({"moment": result.moment.number, "seconds": round(seconds, 3), "tables": layers})
        return
    rows = [
        (each.layer, each.how, *(each.changed.get(name, 0) for name in ("inserted", "updated", "deleted")), each.why)
        for each in result.layers
    ]
    print_table(("table", "refresh", "inserted", "updated", "deleted", "why"), rows)
    for each in result.layers:
        for name, count in each.expected.items():
            if count:
                click.echo(f"{each.layer}: {counted(count, 'row')} without {name}", err=True)
    click.echo(f"moment {result.moment.number}, {seconds:.1f} s", err=True)


def _described(made: "Compiled", *, steps: bool = False) -> dict[str, object]:
    found: dict[str, object] = {
        "table": made.name,
        "refresh": made.kind,
        "reasons": list(made.reasons),
        "primary_key": list(made.layer.key),
        "columns": dict(made.types),
        "reads": sorted(made.layer.sources),
        "defined_in": str(made.node.place),
    }
    if steps:
        found["steps"] = [{"name": name, "query": text} for name, text in made.steps()]
    return found


def _age(since: datetime | None) -> str | None:
    if since is None:
        return None
    seconds = int((datetime.now(UTC) - since).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
