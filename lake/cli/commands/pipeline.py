"""`metastore pipeline`: layers of tables, each computed from what has changed in others."""

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lake.cli.confirming import confirm, confirming_options
from lake.cli.connection import connect, uri_option
from lake.cli.group import Group
from lake.cli.lake import RETRY_SECONDS
from lake.cli.output import counted, json_option, print_json, print_list, print_table
from lake.protocol.errors import UserError
from lake.protocol.formats.durations import parse_duration

if TYPE_CHECKING:
    from lake.layers.compiler.compiling import Compiled
    from lake.layers.compiler.graph import Graph
    from lake.layers.definitions.model import Project
    from lake.layers.runner.costs import Ways
    from lake.layers.runner.readiness import Turned
    from lake.layers.runner.results import RefreshResult
    from lake.layers.runner.runner import Runner
    from lake.layers.runner.status import LayerStatus

Command = TypeVar("Command", bound=Callable[..., Any])

_MOST_WAITING = 5
_QUIET_SECONDS = 2.0
"""How long a refresh says nothing of its progress."""
_COUNTS = ("inserted", "updated", "deleted")
_CLASSES_OF_A_LAYER = 150


@click.group(cls=Group)
def pipeline() -> None:
    """Compute layers of tables from what has changed in others.

    A project is a directory with a spark-pipeline.yml and definitions in SQL and Python, as Spark's own
    spark-pipelines has them.
    """


def _project_argument(command: Command) -> Command:
    kind = click.Path(path_type=Path, exists=True, file_okay=False)
    return click.argument("project", metavar="DIR", type=kind)(command)


def _tables_argument(command: Command) -> Command:
    return click.argument("tables", nargs=-1, metavar="[TABLE]...")(command)


@dataclass(frozen=True)
class _Restating:
    """For which rows changed definitions are to be, as options say: those from a value on, or all of some tables."""

    since: str | None
    by: str | None
    whole: tuple[str, ...]

    def check(self, tables: tuple[str, ...], *, alone: bool = False) -> None:
        """Raises click.UsageError for options that don't fit each other. `alone`: tables may be named without them."""
        if self.whole and self.since is not None:
            raise click.UsageError("give either --whole or --from")
        if self.by is not None and self.since is None:
            raise click.UsageError("--by is about --from")
        if tables and self.since is None and not alone:
            raise click.UsageError("TABLE is about --from: without it, this is about the whole project")

    def do(self, runner: "Runner", tables: tuple[str, ...]) -> None:
        """Raises UserError."""
        from lake.layers.applying.restating import apply_whole, restate

        if self.whole:
            apply_whole(runner, self.whole)
        if self.since is not None:
            restate(runner, self.since, tables, self.by)


def _restating_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options that a command gets as one `restating`."""

    @functools.wraps(command)
    def with_restating(since: str | None, by: str | None, whole: tuple[str, ...], **others: Any) -> None:
        command(restating=_Restating(since, by, whole), **others)

    found: Callable[..., None] = with_restating
    for option in (
        click.option("--whole", multiple=True, metavar="TABLE", help="Give all rows of this table its query of now."),
        click.option("--by", metavar="COLUMN", help="The column that --from is about; by default, that of days."),
        click.option("--from", "since", metavar="DATE", help="Change rows from this day on; others keep their query."),
    ):
        found = option(found)
    return found


def _duration(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        return parse_duration(value) / 1000
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _moment(_: click.Context, __: click.Parameter, value: str | None) -> int | datetime | None:
    """A moment's number, or a time, which is UTC unless it says otherwise."""
    if value is None or value.isdecimal():
        return None if value is None else int(value)
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value[:50]!r} is neither a moment's number nor a time in ISO 8601") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


@pipeline.command()
@_project_argument
@uri_option
@click.option("--once", is_flag=True, help="Refresh once and end; what happens without --every, too.")
@click.option("--every", metavar="DURATION", callback=_duration, help="Refresh again and again: 60s, 5min.")
@click.option(
    "--full-refresh",
    "full",
    multiple=True,
    metavar="TABLE",
    help="Compute all of this table, which may get other columns.",
)
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
    read = _project(project)
    graph = _graph_of(read, uri)
    for name in full:
        graph.node(name)
    with _runner(graph, uri) as runner:
        from lake.layers.runner.claims import DefinedElsewhere
        from lake.layers.runner.results import LayersFailed
        from lake.layers.runner.sinks import SinkFailed

        while True:
            began = time.monotonic()
            runner.progress = _progress(began)
            try:
                result = runner.refresh(full)
                _print_result(result, time.monotonic() - began, as_json=as_json)
            # All else is done, and goes on; or somebody applies another definition, which isn't undone here.
            except (LayersFailed, SinkFailed, DefinedElsewhere) as error:
                if isinstance(error, LayersFailed):
                    _print_result(error.result, time.monotonic() - began, as_json=as_json)
                if every is None:
                    raise
                click.echo(f"Error: {error}", err=True)
            full = ()
            if every is None:
                return
            time.sleep(max(0.0, every - (time.monotonic() - began)))
            if read.definitions.captured:
                try:
                    runner.given = _graph_of(read, uri)
                except UserError as error:  # the tables stay as they are defined, which says what it can't go on from
                    click.echo(f"Error: {error}", err=True)


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
    with _runner(_graph(project, uri), uri) as runner:
        found = runner.compile()
    if as_json:
        print_json([_described(each) for each in found])
        return
    rows = [(each.name, each.kind, ", ".join(each.layer.key), str(each.node.place)) for each in found]
    print_list("table", ("table", "refresh", "primary key", "defined in"), rows)


@pipeline.command()
@_project_argument
@_tables_argument
@uri_option
@_restating_options
@json_option
def plan(
    project: Path,
    tables: tuple[str, ...],
    uri: str,
    restating: _Restating,
    as_json: bool,
) -> None:
    """Show which definitions changed, and what that costs.

    Definitions are compared with those that the latest refresh went by, by Spark's plans: a comment, other blanks or
    other names within a query compute nothing. Shown are the rows and bytes that are read, the tables below, and the
    lines that differ. Nothing is written.

    With --from, what `apply --from` does is shown.

    \b
    Examples:
      metastore pipeline plan shop --uri thrift://metastore.example:9083
      metastore pipeline plan shop --from 2026-01-01
    """
    from lake.cli.pipeline_changes import print_plan

    restating.check(tables)
    with _runner(_graph(project, uri), uri) as runner:
        from lake.layers.applying.planning import plan_of

        restating.do(runner, tables)
        found = plan_of(runner)
    if as_json:
        print_json([each.as_json() for each in found])
    else:
        print_plan(found)


@pipeline.command()
@_project_argument
@_tables_argument
@uri_option
@_restating_options
@click.option("--beside", is_flag=True, help="Compute beside the tables, while these are refreshed and read.")
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    help="Of the time in which --beside computes; then it rests. 1 by default.",
)
@click.option(
    "--step-bytes",
    type=click.IntRange(min=1),
    help="What a table has of the partitions that --beside computes at a time. 4 GiB by default.",
)
@confirming_options
@json_option
def apply(
    project: Path,
    tables: tuple[str, ...],
    uri: str,
    restating: _Restating,
    beside: bool,
    share: float | None,
    step_bytes: int | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Refresh as `plan` says, also tables with other columns.

    What will be done is shown first. All tables complete together, at one moment. While somebody else applies other
    definitions of the same tables, or has done so since they were shown, this is refused.

    With --from, the changed query of each TABLE, by default of all, is for rows from that value on. Earlier rows keep
    the query that they have, in later refreshes, too, until another definition is applied. --whole ends that.

    With --beside, all that is computed gets a table beside its own, named like it with __beside at its end. Meanwhile
    programs that have the project's files as they were refresh and show the tables. Then these get the other rows, at
    one moment. What is beside is kept if this ends early, and the same command goes on with it. --share leaves time to
    others; --step-bytes says how large the steps are in which partitions are computed.

    \b
    Examples:
      metastore pipeline apply shop
      metastore pipeline apply shop --from 2026-01-01
      metastore pipeline apply shop dws.revenue --from 2026-01-01 --by day --yes
      metastore pipeline apply shop --whole dws.revenue
      metastore pipeline apply shop --beside --share 0.5
    """
    from lake.cli.pipeline_changes import print_plan

    restating.check(tables)
    if beside and restating.since is not None:
        raise click.UsageError("--from computes a part of the rows, in one refresh: leave --beside out")
    if not beside and (share is not None or step_bytes is not None):
        raise click.UsageError("--share and --step-bytes are of --beside")
    with _runner(_graph(project, uri), uri) as runner:
        from lake.layers.applying.beside import STEP_BYTES, apply_beside
        from lake.layers.applying.planning import asked_in, plan_of, reverted_in
        from lake.layers.runner.results import LayersFailed

        restating.do(runner, tables)
        found = plan_of(runner)
        if dry_run and as_json:
            print_json([each.as_json() for each in found])
        elif not as_json:
            print_plan(found)
        if dry_run:
            return
        if refused := [each.refused for each in found if each.refused is not None]:
            raise UserError(refused[0])
        confirm("Refresh so?", yes=yes)
        began = time.monotonic()
        runner.progress = _progress(began)
        try:
            if beside:
                result = apply_beside(runner, found, step_bytes=step_bytes or STEP_BYTES, share=share or 1.0)
            else:
                result = runner.refresh(asked_in(found), reverted=reverted_in(found))
        except LayersFailed as error:  # all else is done
            _print_result(error.result, time.monotonic() - began, as_json=as_json)
            raise
        _print_result(result, time.monotonic() - began, as_json=as_json)


@pipeline.command()
@_project_argument
@_tables_argument
@uri_option
@_restating_options
@click.option("--samples", default=5, show_default=True, type=click.IntRange(0, 100), help="Rows to show of each kind.")
@json_option
def diff(
    project: Path,
    tables: tuple[str, ...],
    uri: str,
    restating: _Restating,
    samples: int,
    as_json: bool,
) -> None:
    """Show which rows changed definitions would change.

    The rows of each TABLE, by default of all whose definitions have changed and of those that read them, are computed
    by the definitions of now, from the state of the sources that the stored rows were computed from. Nothing is
    written. With --from, that is so of rows from that value on.

    \b
    Examples:
      metastore pipeline diff shop
      metastore pipeline diff shop --from 2026-01-01
      metastore pipeline diff shop dws.revenue --samples 20 --json
    """
    from lake.cli.pipeline_changes import print_differences

    restating.check(tables, alone=True)
    graph = _graph(project, uri)
    for name in tables:
        graph.node(name)
    with _runner(graph, uri) as runner:
        from lake.layers.applying.differing import differences_of

        restating.do(runner, tables)
        found = differences_of(runner, tables, samples)
    if as_json:
        print_json([each.as_json() for each in found])
    else:
        print_differences(found)


@pipeline.command()
@_project_argument
@_tables_argument
@uri_option
@click.option("--write", is_flag=True, help="Put the queries of before into the project's SQL files.")
@confirming_options
@json_option
def revert(
    project: Path, tables: tuple[str, ...], uri: str, write: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Take back the latest change of definitions.

    Each TABLE, by default all whose definitions changed last at one moment, gets the definition before that, with rows
    that are current with the sources. Where it can, this rolls the tables back to what they were, with those that read
    them, and goes on by increments; else all of them is computed.

    The definitions are shown first. Write these into the project's files; --write does, where the query alone was
    changed, in SQL. Until then, or until `apply` takes the files' definitions, other refreshes are refused; this
    command repeated is one.

    \b
    Examples:
      metastore pipeline revert shop --dry-run
      metastore pipeline revert shop dws.revenue --yes --write
    """
    from lake.cli.pipeline_changes import print_revert

    graph = _graph(project, uri)
    for name in tables:
        graph.node(name)
    with _runner(graph, uri) as runner:
        from lake.layers.runner.results import LayersFailed
        from lake.layers.undo.revert import apply_revert, plan_revert, write_back

        found = plan_revert(runner, tables)
        if dry_run and as_json:
            print_json(found.as_json())
        elif not as_json:
            print_revert(found)
        if dry_run:
            return
        confirm("Revert so?", yes=yes)
        began = time.monotonic()
        runner.progress = _progress(began)
        try:
            result = apply_revert(runner, found)
        except LayersFailed as error:  # all else is done
            _print_result(error.result, time.monotonic() - began, as_json=as_json)
            raise
        _print_result(result, time.monotonic() - began, as_json=as_json)
    for name, reason in write_back(graph, found).items() if write else ():
        done = f"written into {graph.node(name).place.file}" if reason is None else f"not written: {reason}"
        click.echo(f"{name}: {done}", err=True)


@pipeline.command()
@_project_argument
@click.argument("table", required=False)
@uri_option
@json_option
def explain(project: Path, table: str | None, uri: str, as_json: bool) -> None:
    """Say how tables are refreshed, and why.

    `incremental` computes the rows that changes touch, `by group` the groups and partitions that they touch, `full` the
    whole table. All of a table is computed, too, where that is estimated to take less time than its increment: the
    estimates of the latest refresh are shown. Of one TABLE the steps of its increment are shown, too.

    \b
    Examples:
      metastore pipeline explain shop
      metastore pipeline explain shop dws.revenue
    """
    graph = _graph(project, uri)
    wanted = None if table is None else graph.node(table).name
    with _runner(graph, uri) as runner:
        found = [each for each in runner.compile() if wanted in (None, each.name)]
    latest = {each.layer: each.estimated for each in _statuses(graph, uri)}
    if as_json:
        print_json([_described(each, latest[each.name], steps=wanted is not None) for each in found])
        return
    print_table(
        ("table", "refresh", "because of", "latest estimate"),
        [
            (each.name, each.kind, "; ".join(each.reasons) or "rows that changes touch", latest[each.name])
            for each in found
        ],
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
    found = _statuses(_graph(project, uri), uri)
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
    from lake.cli.pages.html import write
    from lake.cli.pages.pipeline_page import pipeline_page

    found = _graph(project, uri)
    write(page_file, pipeline_page(found, _statuses(found, uri), datetime.now(UTC)))


@pipeline.command()
@_project_argument
@uri_option
@click.option("--table", metavar="TABLE", help="A table that the project reads or makes.")
@click.option("--instant", metavar="TIMESTAMP", help="The instant of TABLE whose rows are wrong.")
@click.option("--force", is_flag=True, help="Undo rows, too, that later instants have changed; they lose that.")
@click.option("--to", "moment", metavar="MOMENT", callback=_moment, help="A moment's number, or a time in ISO 8601.")
@confirming_options
@json_option
def rollback(
    project: Path,
    uri: str,
    table: str | None,
    instant: str | None,
    force: bool,
    moment: int | datetime | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Undo what an instant brought, or go back to a moment.

    With --instant, the rows that it changed become again what they were, by an instant that compensates; of a table
    without primary key the files that it added go. Of a table that the project makes, the instants of the sources are
    undone that it had read. All tables that follow are then refreshed, by increments.

    With --to, all tables that the project makes are rolled back to what they were, and refreshed from there.

    What will be done is shown first.

    \b
    Examples:
      metastore pipeline rollback shop --table ods.orders --instant 20260131120000000 --dry-run
      metastore pipeline rollback shop --to 2026-01-31T12:00:00Z --yes
    """
    if (moment is None) == (instant is None) or (instant is None) != (table is None):
        raise click.UsageError("give --table and --instant, or --to")
    graph = _graph(project, uri)
    with _runner(graph, uri) as runner:
        if table is not None and instant is not None:
            _undo(runner, table, instant, force=force, yes=yes, dry_run=dry_run, as_json=as_json)
        elif moment is not None:
            _restore(runner, moment, yes=yes, dry_run=dry_run, as_json=as_json)


def _undo(runner: "Runner", table: str, instant: str, *, force: bool, yes: bool, dry_run: bool, as_json: bool) -> None:
    from lake.layers.undo.rollback import Rollback

    with Rollback(runner, table, instant) as undoing:
        plan = undoing.plan
        if as_json and dry_run:
            print_json(plan.as_json())
        elif not as_json:
            rows = [
                (each.table, len(each.instants), *(each.rows.get(name, 0) for name in _COUNTS)) for each in plan.tables
            ]
            print_table(("table", "instants undone", *_COUNTS), rows)
            click.echo(f"refreshed after that: {', '.join(plan.layers) or 'nothing'}")
            for each in plan.tables:
                if each.changed_since:
                    click.echo(
                        f"{each.table}: {counted(each.changed_since, 'row')} changed since: {each.listed}", err=True
                    )
        if dry_run:
            return
        undoing.check(force=force)
        confirm("Undo this?", yes=yes)
        began = time.monotonic()
        _print_result(undoing.apply(force=force), time.monotonic() - began, as_json=as_json)


def _restore(runner: "Runner", moment: int | datetime, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    from lake.layers.undo.restore import apply_restore, moment_at, plan_restore

    at = moment_at(runner, moment)
    plan = plan_restore(runner, at)
    if as_json and dry_run:
        print_json({"moment": at.number, "tables": {each.layer: len(each.instants) for each in plan.layers}})
    elif not as_json:
        print_list(
            "instant", ("table", "instants rolled back"), [(each.layer, len(each.instants)) for each in plan.layers]
        )
    if dry_run:
        return
    confirm(f"Go back to moment {at.number}?", yes=yes)
    began = time.monotonic()
    _print_result(apply_restore(runner, plan), time.monotonic() - began, as_json=as_json)


@pipeline.command()
@_project_argument
@uri_option
@click.option("--table", required=True, metavar="TABLE", help="A table that the project makes.")
@click.option("--since", required=True, metavar="MOMENT", callback=_moment, help="A moment's number, or a time.")
@json_option
def replay(project: Path, uri: str, table: str, since: int | datetime, as_json: bool) -> None:
    """Compute again what follows from changes since a moment.

    For a definition that has changed, where only rows that came since are concerned: a column that a log got then. All
    other rows of TABLE stay as they are. Columns that the definition has got are added to the table. What follows from
    TABLE is refreshed, too. Without this command a changed definition lets all of the table be computed.

    \b
    Example:
      metastore pipeline replay shop --table ods.orders --since 2026-01-31T12:00:00Z
    """
    graph = _graph(project, uri)
    name = graph.node(table).name
    with _runner(graph, uri) as runner:
        from lake.layers.undo.restore import moment_at

        began = time.monotonic()
        at = moment_at(runner, since)
        _print_result(runner.refresh(replay={name: at}), time.monotonic() - began, as_json=as_json)


def _graph(project: Path, uri: str) -> "Graph":
    """A project's layers. Its captured tables are as they are defined now. Raises UserError."""
    return _graph_of(_project(project), uri)


def _project(directory: Path) -> "Project":
    with _needs_pipeline():
        from lake.layers.definitions.projects import read_project
    return read_project(directory)


def _graph_of(project: "Project", uri: str) -> "Graph":
    from lake.layers.compiler.graph import graph_of

    if not project.definitions.captured:
        return graph_of(project)
    from lake.cli.captured_tables import graph_with
    from lake.tables.lake import LakeClient

    with connect(uri), LakeClient(uri, retry_seconds=RETRY_SECONDS) as client:
        return graph_with(client, project)


def _statuses(graph: "Graph", uri: str) -> "list[LayerStatus]":
    from lake.layers.runner.status import status_of
    from lake.tables.lake import LakeClient

    with connect(uri), LakeClient(uri, retry_seconds=RETRY_SECONDS) as client:
        return status_of(graph, client)


@contextmanager
def _runner(graph: "Graph", uri: str) -> "Iterator[Runner]":
    """A runner with a Spark session, which ends with the block."""
    with connect(uri):  # says at once if nobody answers
        pass
    with _needs_pipeline():
        from pyspark.sql import SparkSession

        from lake.layers.runner.runner import Runner
        from lake.layers.runner.spark_engine import SparkEngine
        from lake.spark import configure
        from lake.spark.configuration import CODE_CACHE, KEPT_CLASSES
        from lake.spark.session_client import lake_table
    builder = SparkSession.builder.appName(f"pipeline {graph.project.name}")
    # The classes of a whole refresh, or each refresh would find none of those of the last one.
    kept = str(max(KEPT_CLASSES, _CLASSES_OF_A_LAYER * len(graph.nodes)))
    defaults = {"spark.ui.showConsoleProgress": "false", CODE_CACHE: kept}
    for key, value in {**defaults, **graph.project.configuration}.items():
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
        raise UserError(f"{error.name} is missing: pip install 'lake-metastore-client[pipeline]'") from None


def _progress(began: float) -> Callable[[str], None]:
    """Says how far a refresh is, once it has taken a while."""

    def say(text: str) -> None:
        if time.monotonic() - began > _QUIET_SECONDS:
            click.echo(text, err=True)

    return say


def _print_result(result: "RefreshResult", seconds: float, *, as_json: bool) -> None:
    if as_json:
        layers = [
            {
                "table": each.layer,
                "how": each.how,
                "why": each.why,
                "seconds": each.seconds,
                "estimated_seconds": None if each.estimated is None else each.estimated.as_json(),
                "changed": each.changed,
                "expected": each.expected,
            }
            for each in result.layers
        ]
        turned = {
            name: {"committed": each.committed, "reopened": each.reopened, "waiting": each.waiting}
            for name, each in result.turned.items()
        }
        print_json(
            {
                "moment": result.completed.number,
                "read": result.moment.number,
                "seconds": round(seconds, 3),
                "tables": layers,
                "partitions": turned,
                "delivered": result.delivered,
            }
        )
        return
    rows = [
        (each.layer, each.how, *(each.changed.get(name, 0) for name in _COUNTS), each.why) for each in result.layers
    ]
    print_table(("table", "refresh", *_COUNTS, "why"), rows)
    for each in result.layers:
        for name, count in each.expected.items():
            if count:
                click.echo(f"{each.layer}: {counted(count, 'row')} without {name}", err=True)
    for name, found in result.turned.items():
        _print_turned(name, found)
    for name, count in result.delivered.items():
        if count:
            click.echo(f"{name}: {counted(count, 'instant')} delivered", err=True)
    click.echo(f"moment {result.completed.number}, {seconds:.1f} s", err=True)


def _print_turned(name: str, turned: "Turned") -> None:
    """Say what became of a table's partitions: how many turned ready, and the first that wait, with the reason."""
    if turned.committed:
        click.echo(f"{name}: {counted(len(turned.committed), 'partition')} turned ready", err=True)
    if turned.reopened:
        click.echo(f"{name}: {counted(len(turned.reopened), 'partition')} reopened", err=True)
    for partition, why in sorted(turned.waiting.items())[:_MOST_WAITING]:
        click.echo(f"{name}: {partition} waits: {why}", err=True)
    if len(turned.waiting) > _MOST_WAITING:
        click.echo(f"{name}: {len(turned.waiting) - _MOST_WAITING:,} more wait", err=True)


def _described(made: "Compiled", latest: "Ways | None" = None, *, steps: bool = False) -> dict[str, object]:
    found: dict[str, object] = {
        "table": made.name,
        "refresh": made.kind,
        "reasons": list(made.reasons),
        "estimated_seconds": None if latest is None else latest.as_json(),
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
