"""`metastore migrate`: the way over from another metastore."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lake.cli.connection import uri_option
from lake.cli.group import Group
from lake.cli.output import counted, json_option, print_json, print_table
from lake.protocol.errors import UsageError, UserError
from metastore.cli.migrate_switch import Way, say, show, way_options

if TYPE_CHECKING:
    from metastore.migration.mapping import Renaming, Selection
    from metastore.migration.objects import DatabaseKey, Remark
    from metastore.migration.progress import Progress
    from metastore.migration.source import Source
    from metastore.migration.switching.cutting_over import Moved
    from metastore.migration.thrift_source import ThriftSource

Command = TypeVar("Command", bound=Callable[..., Any])

THREADS = 4
SHOWN = 100
"""Differences and remarks that are printed for people. JSON has all."""

_SCHEMES = ("thrift", "postgresql", "postgres", "mysql")
_EXAMPLE_OF_SOURCE = "thrift://HOST:PORT, postgresql://USER:PASSWORD@HOST/DATABASE or mysql://… of its database"


@click.group(cls=Group)
def migrate() -> None:
    """Come over from another metastore.

    \b
    Examples:
      metastore migrate plan thrift://old:9083
      metastore migrate import thrift://old:9083 --uri thrift://new:9083
      metastore migrate verify thrift://old:9083 --uri thrift://new:9083
    """


_threads_option = click.option(
    "--threads",
    type=click.IntRange(1, 64),
    default=THREADS,
    show_default=True,
    help="Objects that are under way at once.",
)
_patience_option = click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a metastore that doesn't answer, or takes no changes.",
)


def _source_options(command: Command) -> Command:
    options = (
        click.argument("source", metavar="SOURCE"),
        click.option("--databases", metavar="PATTERNS", help="Only these, with commas between; * stands for any text."),
        click.option("--rename", multiple=True, metavar="OLD=NEW", help="Give a database another name here."),
        click.option("--location", multiple=True, metavar="OLD=NEW", help="Give locations another beginning here."),
        _threads_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@migrate.command()
@_source_options
@json_option
def plan(
    source: str, databases: str | None, rename: tuple[str, ...], location: tuple[str, ...], threads: int, as_json: bool
) -> None:
    """Show what a metastore has, and what can't be kept.

    Reads everything once, and changes nothing. SOURCE is thrift://HOST:PORT of a Hive metastore from 2.3 to 4 or of
    one of ours, or the postgresql:// or mysql:// URL of a Hive metastore's own database. The login there is taken from
    METASTORE_SOURCE_USER, METASTORE_SOURCE_PASSWORD and so on.

    \b
    Examples:
      metastore migrate plan thrift://old:9083
      metastore migrate plan thrift://old:9083 --databases 'sales_*,hr' --json
      metastore migrate plan postgresql://hive@db/metastore
    """
    from metastore.migration.planning import Planner
    from metastore.migration.progress import described

    selection, renaming = _chosen(databases, rename, location)
    with _reading(source) as old:
        made = Planner(old, selection=selection, renaming=renaming, progress=_progress("read"), threads=threads).run()
    if as_json:
        print_json(made.plain())
        return
    click.echo(described(made.counts.by_kind))
    if made.bytes:
        click.echo(f"files, as the statistics say: {made.bytes:,} bytes")
    click.echo(f"an import takes about {made.estimate / 60:,.0f} minutes with {THREADS} threads")
    _print_remarks(made.remarks)
    for text, count in sorted(made.more.items()):
        click.echo(f"{count:,} more {text}")


@migrate.command("import")
@_source_options
@click.option("--replace", is_flag=True, help="What differs here becomes as it is there.")
@uri_option
@json_option
def import_objects(
    source: str,
    databases: str | None,
    rename: tuple[str, ...],
    location: tuple[str, ...],
    threads: int,
    replace: bool,
    uri: str,
    as_json: bool,
) -> None:
    """Bring what the metastore SOURCE has.

    No file is moved or looked into: tables stay where they are. An import may be repeated, and one that was killed goes
    on. What is here already stays, and what of it differs is listed, unless it is to be replaced. The server asks for
    administrators' rights. Exits with 1 if something differs or can't be brought.

    \b
    Examples:
      metastore migrate import thrift://old:9083
      metastore migrate import thrift://old:9083 --databases 'sales_*' --rename sales_eu=sales
      metastore migrate import thrift://old:9083 --location hdfs://nn/warehouse=s3a://lake/warehouse --json
    """
    from metastore.migration.followed import all_of, brought_by_others
    from metastore.migration.importing import Importer
    from metastore.migration.imports import begun

    selection, renaming = _chosen(databases, rename, location)
    progress = _progress("imported")
    with _both(source, uri) as (old, here), begun(old, here, source, selection, renaming, say) as (chosen, followed):
        for key in sorted(chosen.but):
            click.echo(f"{renaming.database_key(key)} was cut over: it is left as it is here", err=True)
        report = Importer(
            old,
            here,
            selection=chosen,
            renaming=renaming,
            progress=progress,
            threads=threads,
            replace=replace,
            brought=followed.state.brought,
            others=lambda: brought_by_others(all_of(here), followed.source),
        ).run()
    progress.end()
    if as_json:
        print_json(report.plain())
    else:
        rows = [(each.kind, each.name, each.difference) for each in report.differences if not each.replaced]
        _print_some(("kind", "name", "differs"), rows)
        _print_remarks([*report.problems, *report.remarks])
        click.echo(
            f"{counted(report.added, 'object')} added, {report.same:,} were here, {report.replaced:,} replaced,"
            f" {report.differing:,} differ, {counted(len(report.problems), 'problem')}"
        )
        if report.positions.notification is not None:
            click.echo(f"the notification log there stood at {report.positions.notification:,} when the import began")
            click.echo("what has changed since then: metastore migrate follow")
    if not report.is_complete:
        sys.exit(1)


@migrate.command()
@_source_options
@uri_option
@json_option
def verify(
    source: str,
    databases: str | None,
    rename: tuple[str, ...],
    location: tuple[str, ...],
    threads: int,
    uri: str,
    as_json: bool,
) -> None:
    """Compare everything with the metastore SOURCE.

    Digests of all objects are compared in both directions. Give the same names and locations as for the import. Exits
    with 1 if something differs.

    \b
    Examples:
      metastore migrate verify thrift://old:9083
      metastore migrate verify thrift://old:9083 --databases 'sales_*' --json
    """
    from metastore.migration.verifying import Verifier

    selection, renaming = _chosen(databases, rename, location)
    progress = _progress("compared")
    with _both(source, uri) as (old, here):
        found = Verifier(old, here, selection=selection, renaming=renaming, progress=progress, threads=threads).run()
    progress.end()
    if as_json:
        print_json(found.plain())
    else:
        rows = [(name, each.compared, each.differing) for name, each in sorted(found.kinds.items())]
        print_table(("kind", "compared", "differ"), rows)
        _print_remarks(found.differences)
        if found.uncompared:
            click.echo("not compared:")
            _print_some(("kind", "what"), [(each.kind, each.text) for each in found.uncompared])
    if found.differing:
        sys.exit(1)


@migrate.command()
@click.argument("source", metavar="SOURCE")
@click.option("--databases", metavar="PATTERNS", help="As for the import that brought them.")
@_threads_option
@click.option("--after", type=click.IntRange(min=0), metavar="NUMBER", help="Begin after this entry of the log there.")
@click.option("--until-current", is_flag=True, help="End when all is here that the log has.")
@_patience_option
@click.option(
    "--compare-every",
    type=click.FloatRange(min=1),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Compare all so often if there is no log.",
)
@uri_option
@json_option
def follow(
    source: str,
    databases: str | None,
    threads: int,
    after: int | None,
    until_current: bool,
    patience: float,
    compare_every: float,
    uri: str,
    as_json: bool,
) -> None:
    """Bring what changes in the metastore SOURCE, after an import.

    Follows its notification log from where it stood when the import began. Names and locations are those of the import.
    What the log doesn't tell is found by comparing: where it has holes, and when databases are cut over.
    With --json each line is an object. Exits with 1 if it halts, or if something can't be brought.

    \b
    Examples:
      metastore migrate follow thrift://old:9083
      metastore migrate follow thrift://old:9083 --databases 'sales_*' --until-current --json
    """
    from metastore.migration.following import Follower, Standing
    from metastore.migration.imports import known

    def say(standing: Standing) -> None:
        if as_json:
            click.echo(json.dumps(standing.plain(), ensure_ascii=False))
        else:
            click.echo(standing.text())

    with _both(source, uri) as (old, here):
        followed = known(here, source, databases, after)
        follower = Follower(
            old,
            here,
            followed,
            threads=threads,
            patience=patience,
            compare_every=compare_every,
            say=say,
            warn=lambda line: click.echo(line, err=True),
        )
        last = follower.run(until_current=until_current)
    say(last)
    if not as_json:
        _print_remarks(last.problems)
    if last.problems:
        sys.exit(1)


@migrate.command("cut-over")
@click.argument("source", metavar="SOURCE")
@click.argument("names", metavar="DATABASE…", nargs=-1, required=True)
@way_options
@_threads_option
@uri_option
@json_option
def cut_over(
    source: str,
    names: tuple[str, ...],
    databases: str | None,
    way: "Way",
    threads: int,
    uri: str,
    as_json: bool,
) -> None:
    """Have databases of SOURCE live here from now on.

    For each, by its name there: brings what is left, freezes it in the file of the front, brings and compares the rest,
    and has the front send its clients here. What fails leaves it there, writable. A command that was killed is started
    again, or rolled back. Exits with 1 if it fails, or if somebody has written past the front.

    \b
    Examples:
      metastore migrate cut-over thrift://old:9083 sales --front federation.toml --front-uri thrift://front:9083
      metastore migrate cut-over thrift://old:9083 sales hr --frozen-by-hand
    """
    from metastore.migration.followed import source_name
    from metastore.migration.switching.cutting_over import CutOver, chosen

    moved: list[Moved] = []
    with _both(source, uri) as (old, here), _shown_if_it_fails(moved, "here", as_json):
        for key in map(_database, names):
            followed = chosen(here, source, key, databases)
            gate, _ = way.gates(source_name(source), here, followed, key)
            command = CutOver(old, here, followed, threads=threads, address=way.address(here), say=say)
            moved.append(command.run(key, gate))
    if not show(moved, "here", as_json=as_json):
        sys.exit(1)


@migrate.command("roll-back")
@click.argument("source", metavar="SOURCE")
@click.argument("names", metavar="DATABASE…", nargs=-1, required=True)
@way_options
@_threads_option
@uri_option
@json_option
def roll_back(
    source: str,
    names: tuple[str, ...],
    databases: str | None,
    way: "Way",
    threads: int,
    uri: str,
    as_json: bool,
) -> None:
    """Have databases live in SOURCE again.

    What was changed here since the cut-over is made there by Hive's own calls, then the front sends clients there.
    SOURCE is thrift://. A cut-over that has not come to its end is undone. Exits with 1 if it fails.

    \b
    Examples:
      metastore migrate roll-back thrift://old:9083 sales --front federation.toml --front-uri thrift://front:9083
    """
    from metastore.migration.followed import source_name
    from metastore.migration.switching.cutting_over import chosen
    from metastore.migration.switching.rolling_back import RollBack
    from metastore.migration.thrift_source import ThriftSource

    moved: list[Moved] = []
    with _both(source, uri) as (old, here):
        if not isinstance(old, ThriftSource):
            raise UsageError("roll-back changes SOURCE by its calls: give its thrift:// address")
        with _shown_if_it_fails(moved, "there", as_json):
            for key in map(_database, names):
                followed = chosen(here, source, key, databases)
                over, back = way.gates(source_name(source), here, followed, key)
                command = RollBack(old, here, followed, threads=threads, address=way.address(here), say=say)
                moved.append(command.run(key, back, over))
    if not show(moved, "there", as_json=as_json):
        sys.exit(1)


@contextmanager
def _shown_if_it_fails(moved: "list[Moved]", to: str, as_json: bool) -> Iterator[None]:
    """What has moved is told, also where another database fails after it."""
    try:
        yield
    except BaseException:
        if moved:
            show(moved, to, as_json=as_json)
        raise


def _database(text: str) -> "DatabaseKey":
    """A database, from `name` or `catalog.name`."""
    from metastore.migration.objects import DEFAULT_CATALOG, DatabaseKey

    catalog, _, name = text.lower().rpartition(".")
    return DatabaseKey(catalog or DEFAULT_CATALOG, name)


def _chosen(databases: str | None, rename: tuple[str, ...], location: tuple[str, ...]) -> "tuple[Selection, Renaming]":
    from metastore.migration.mapping import Renaming, Selection

    return Selection.parse(databases), Renaming.parse(rename, location)


def _progress(verb: str) -> "Progress":
    from metastore.migration.progress import Progress

    return Progress(lambda line: click.echo(line, err=True), verb)


@contextmanager
def _reading(source: str) -> "Iterator[Source]":
    """The metastore that is left. What it refuses in the block is a UserError."""
    from metastore.migration.hive_database import HiveDatabase
    from metastore.migration.thrift_source import ThriftSource, source_login

    opened: Source
    scheme, _, rest = source.partition("://")
    if scheme.partition("+")[0] not in _SCHEMES or not rest:
        raise UsageError(f"{scheme!r} is no metastore that can be read: give {_EXAMPLE_OF_SOURCE}")
    with _as_user_errors(scheme):
        opened = ThriftSource(source, source_login()) if scheme == "thrift" else HiveDatabase(source)
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def _ours(uri: str) -> "Iterator[ThriftSource]":
    """The metastore that objects are brought into. Raises UserError if it is none of ours."""
    from metastore.migration.thrift_source import ThriftSource

    with _as_user_errors(uri):
        opened = ThriftSource(uri)
        try:
            if not opened.ours:
                raise UserError(f"{uri} is no lake metastore: name the new one by --uri, the old one as SOURCE")
            yield opened
        finally:
            opened.close()


@contextmanager
def _both(source: str, uri: str) -> "Iterator[tuple[Source, ThriftSource]]":
    """Both metastores, as `_reading` and `_ours`. Raises UserError where they are one."""
    from metastore.migration.thrift_source import ThriftSource

    with _reading(source) as old, _ours(uri) as here:
        both = (old, here) if isinstance(old, ThriftSource) and old.ours else ()
        if len({each.call("get_metastore_db_uuid") for each in both}) == 1:
            raise UserError("SOURCE and --uri are one metastore: name the old one as SOURCE, the new one by --uri")
        yield old, here


@contextmanager
def _as_user_errors(place: str) -> Iterator[None]:
    from thrift.Thrift import TException

    from lake.protocol.struct import ExceptionStruct
    from metastore.migration.source import error_text

    try:
        yield
    except (ExceptionStruct, TException) as error:
        raise UserError(f"{place}: {error_text(error)}") from None


def _print_remarks(remarks: "list[Remark]") -> None:
    serious = sorted(remarks, key=lambda each: not each.serious)
    _print_some(("kind", "name", "what"), [(each.kind, each.name, each.text) for each in serious])


def _print_some(columns: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        print_table(columns, rows[:SHOWN])
    if len(rows) > SHOWN:
        click.echo(f"{len(rows) - SHOWN:,} more: --json has all", err=True)
