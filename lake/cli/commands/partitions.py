"""`metastore partitions`: which partitions of a table are ready, and turning them so by hand."""

import getpass
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lake.cli.confirming import confirm, confirming_options
from lake.cli.connection import uri_option
from lake.cli.group import Group, ServerCommands
from lake.cli.lake import lake, partition_states, reference, table_argument
from lake.cli.moments import iso, shown
from lake.cli.output import counted, json_option, print_json, print_table

if TYPE_CHECKING:
    from lake.protocol.connection.thrift_client import ThriftClient
    from lake.protocol.lake import PartitionState

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(
    cls=Group, server=ServerCommands({"check": "Find partitions without files, or with files of others."}, "partitions")
)
def partitions() -> None:
    """List, commit, reopen and check partitions.

    A partition that isn't ready yet is uncommitted: readers don't see it.
    """


def _filter_option(command: Command) -> Command:
    return click.option(
        "--filter",
        metavar="TEXT",
        help="Partitions that a filter of Hive selects: \"dt >= '2026-01-31' and hr < '12'\".",
    )(command)


def _names_argument(command: Command) -> Command:
    return click.argument("names", metavar="[NAME]...", nargs=-1)(command)


@partitions.command("list")
@table_argument
@_filter_option
@click.option("--uncommitted", is_flag=True, help="Only uncommitted partitions.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N partitions.")
@click.option("--after", metavar="NAME", help="Only partitions whose name comes after NAME.")
@uri_option
@json_option
def list_(
    table: tuple[str, ...],
    filter: str | None,
    uncommitted: bool,
    limit: int | None,
    after: str | None,
    uri: str,
    as_json: bool,
) -> None:
    """List partitions by name, ready and uncommitted ones.

    \b
    Examples:
      metastore partitions list shop.orders
      metastore partitions list shop.orders --filter "dt = '2026-01-31'" --uncommitted
      metastore partitions list shop.orders --limit 100 --after dt=2026-01-31/hr=07 --json
    """
    # One more than wanted tells whether there are more.
    wanted = None if limit is None else limit + 1
    with lake(uri) as client:
        if uncommitted:
            found = list(islice((s for s in partition_states(client, table, filter, after) if not s.ready), wanted))
        else:
            found = list(islice(partition_states(client, table, filter, after, wanted), wanted))
    cut = limit is not None and len(found) > limit
    found = found[:limit]
    if as_json:
        print_json([_as_json(state) for state in found])
        return
    if found:
        print_table(
            ("partition", "state", "starts (UTC)", "since (UTC)", "committed by"),
            [
                (
                    state.name,
                    _state(state),
                    shown(state.partitionTime),
                    shown(state.commitTime if state.ready else state.openedTime),
                    state.committedBy,
                )
                for state in found
            ],
        )
    hidden = sum(not state.ready for state in found)
    summary = f"{counted(len(found), 'partition')}, {hidden:,} uncommitted"
    click.echo(f"the first {summary}; --after {found[-1].name} has the rest" if cut else summary, err=True)


@partitions.command()
@table_argument
@_names_argument
@_filter_option
@click.option("--all", "everything", is_flag=True, help="All uncommitted partitions.")
@click.option(
    "--by", metavar="WHO", help="Name stored with each partition as its committer.  [default: your user name]"
)
@uri_option
@json_option
def commit(
    table: tuple[str, ...],
    names: tuple[str, ...],
    filter: str | None,
    everything: bool,
    by: str | None,
    uri: str,
    as_json: bool,
) -> None:
    """Make partitions ready: all of those named, or none.

    Partitions that are ready already stay as they are.

    \b
    Examples:
      metastore partitions commit shop.orders dt=2026-01-31/hr=07 dt=2026-01-31/hr=08
      metastore partitions commit shop.orders --filter "dt = '2026-01-31'"
      metastore partitions commit shop.orders --all --by back-fill
    """
    from lake.protocol.lake import CommitPartitionsRequest

    _check_selection(names, filter, everything)
    with lake(uri) as client:
        wanted = None if filter is not None else list(names)
        if everything:
            wanted = [str(state.name) for state in partition_states(client, table) if not state.ready]
        request = CommitPartitionsRequest(reference(table), wanted, filter, by or _user_name())
        response = None if wanted == [] else client.call("lake_commit_partitions", request)
    turned, unchanged = (response.committed, response.alreadyReady) if response else ([], [])
    if as_json:
        print_json({"committed": turned, "already_ready": unchanged})
        return
    _print_changes(turned, "committed", unchanged, "was ready already")


@partitions.command()
@table_argument
@_names_argument
@_filter_option
@click.option("--all", "everything", is_flag=True, help="All ready partitions.")
@confirming_options
@uri_option
@json_option
def reopen(
    table: tuple[str, ...],
    names: tuple[str, ...],
    filter: str | None,
    everything: bool,
    yes: bool,
    dry_run: bool,
    uri: str,
    as_json: bool,
) -> None:
    """Make partitions uncommitted again, for a back-fill.

    All of those named are reopened, or none. Readers don't see them until a caller commits them; the server doesn't.
    The command asks before it hides all partitions of a table.

    \b
    Examples:
      metastore partitions reopen shop.orders dt=2026-01-31/hr=07
      metastore partitions reopen shop.orders --filter "dt = '2026-01-31' and hr >= '12'"
      metastore partitions reopen shop.orders --all --dry-run
    """
    from lake.protocol.lake import ReopenPartitionsRequest

    _check_selection(names, filter, everything)
    with lake(uri) as client:
        if names:
            selected = list(names)
        else:
            selected = [str(state.name) for state in partition_states(client, table, filter) if state.ready]
        if dry_run:
            _print_dry_run(selected, "would be reopened", as_json)
            return
        if not yes and _hides_all(client, table, set(selected)):
            confirm(f"This hides all partitions of {'.'.join(table)} from readers. Go on?", yes=yes)
        request = ReopenPartitionsRequest(reference(table), None if filter is not None else selected, filter)
        response = None if everything and not selected else client.call("lake_reopen_partitions", request)
    turned, unchanged = (response.reopened, response.alreadyUncommitted) if response else ([], [])
    if as_json:
        print_json({"reopened": turned, "already_uncommitted": unchanged})
        return
    _print_changes(turned, "reopened", unchanged, "was uncommitted already")


def _hides_all(client: "ThriftClient", table: tuple[str, ...], names: set[str]) -> bool:
    """Whether a table has ready partitions, and all of them are among these."""
    ready = (str(state.name) for state in partition_states(client, table) if state.ready)
    first = next(ready, None)
    return first in names and all(name in names for name in ready)


def _print_dry_run(names: Sequence[str], what: str, as_json: bool) -> None:
    if as_json:
        print_json({what.replace(" ", "_"): list(names)})
        return
    if names:
        print_table(("partition", "result"), [(name, what) for name in names])
    click.echo(f"{counted(len(names), 'partition')} {what}", err=True)


def _check_selection(names: Sequence[str], filter: str | None, everything: bool) -> None:
    if (bool(names) + (filter is not None) + everything) != 1:
        raise click.UsageError("say which partitions: give names, or --filter, or --all")


def _state(state: "PartitionState") -> str:
    if state.ready:
        return "ready"
    return "waits for publish" if state.waitsForPublish else "uncommitted"


def _as_json(state: "PartitionState") -> dict[str, object]:
    return {
        "name": state.name,
        "values": state.values,
        "ready": state.ready,
        "starts": iso(state.partitionTime),
        "committed": iso(state.commitTime),
        "committed_by": state.committedBy,
        "opened": iso(state.openedTime),
        "created": iso(state.createTime),
        "location": state.location,
        "waits_for_publish": bool(state.waitsForPublish),
    }


def _print_changes(turned: Sequence[str], done: str, unchanged: Iterable[str], was: str) -> None:
    rows = sorted([*((name, done) for name in turned), *((name, was) for name in unchanged)])
    if rows:
        print_table(("partition", "result"), rows)
    click.echo(f"{done} {counted(len(turned), 'partition')}", err=True)


def _user_name() -> str | None:
    try:
        return getpass.getuser()
    # What it raises depends on the version: a container's user may have no name.
    except (KeyError, OSError):
        return None
