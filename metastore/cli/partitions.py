"""`metastore partitions`: which partitions of a table are ready, and turning them so by hand."""

import getpass
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click

from metastore.cli.connection import uri_option
from metastore.cli.lake import lake, partition_states, reference, table_argument
from metastore.cli.moments import iso, shown
from metastore.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from metastore.client.thrift_client import ThriftClient
    from metastore.wire.lake import PartitionState

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
def partitions() -> None:
    """See which partitions of a table are ready, commit and reopen them.

    A partition that isn't ready yet is uncommitted: readers don't see it.
    """


def _filter_option(command: Command) -> Command:
    return click.option(
        "--filter", metavar="TEXT", help="Those that Hive's filter selects: \"dt >= '2026-01-31' and hr < '12'\"."
    )(command)


def _names_argument(command: Command) -> Command:
    return click.argument("names", metavar="[NAME]...", nargs=-1)(command)


@partitions.command("list")
@table_argument
@_filter_option
@click.option("--uncommitted", is_flag=True, help="Only those that aren't ready.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many.")
@click.option("--after", metavar="NAME", help="Only those whose name comes after this one.")
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
    """List partitions by name, those that aren't ready too.

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
                    "ready" if state.ready else "uncommitted",
                    shown(state.partitionTime),
                    shown(state.commitTime if state.ready else state.openedTime),
                    state.committedBy,
                )
                for state in found
            ],
        )
    hidden = sum(not state.ready for state in found)
    counted = f"{_counted(len(found))}, {hidden:,} uncommitted"
    click.echo(f"the first {counted}; --after {found[-1].name} has the rest" if cut else counted, err=True)


@partitions.command()
@table_argument
@_names_argument
@_filter_option
@click.option("--all", "everything", is_flag=True, help="All that aren't ready.")
@click.option("--by", metavar="WHO", help="Who commits them, for the record.  [default: your user name]")
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

    Those that were ready already stay as they are.

    \b
    Examples:
      metastore partitions commit shop.orders dt=2026-01-31/hr=07 dt=2026-01-31/hr=08
      metastore partitions commit shop.orders --filter "dt = '2026-01-31'"
      metastore partitions commit shop.orders --all --by back-fill
    """
    from metastore.wire.lake import CommitPartitionsRequest

    _check_selection(names, filter, everything)
    with lake(uri) as client:
        wanted = _selected(client, table, names, filter, everything, ready=False)
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
@click.option("--all", "everything", is_flag=True, help="All that are ready.")
@uri_option
@json_option
def reopen(
    table: tuple[str, ...], names: tuple[str, ...], filter: str | None, everything: bool, uri: str, as_json: bool
) -> None:
    """Make partitions uncommitted again, for a back-fill: all of those named, or none.

    Readers don't see them until they are committed, which the server leaves to you.

    \b
    Examples:
      metastore partitions reopen shop.orders dt=2026-01-31/hr=07
      metastore partitions reopen shop.orders --filter "dt = '2026-01-31' and hr >= '12'"
    """
    from metastore.wire.lake import ReopenPartitionsRequest

    _check_selection(names, filter, everything)
    with lake(uri) as client:
        wanted = _selected(client, table, names, filter, everything, ready=True)
        request = ReopenPartitionsRequest(reference(table), wanted, filter)
        response = None if wanted == [] else client.call("lake_reopen_partitions", request)
    turned, unchanged = (response.reopened, response.alreadyUncommitted) if response else ([], [])
    if as_json:
        print_json({"reopened": turned, "already_uncommitted": unchanged})
        return
    _print_changes(turned, "reopened", unchanged, "was uncommitted already")


def _check_selection(names: Sequence[str], filter: str | None, everything: bool) -> None:
    if (bool(names) + (filter is not None) + everything) != 1:
        raise click.UsageError("say which partitions: give names, or --filter, or --all")


def _selected(
    client: "ThriftClient",
    table: tuple[str, ...],
    names: Sequence[str],
    filter: str | None,
    everything: bool,
    *,
    ready: bool,
) -> list[str] | None:
    """The names of the partitions that a command is for, or None if the filter says it."""
    if everything:
        return [str(state.name) for state in partition_states(client, table) if state.ready is ready]
    return list(names) if filter is None else None


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
    }


def _print_changes(turned: Sequence[str], done: str, unchanged: Iterable[str], was: str) -> None:
    rows = sorted([*((name, done) for name in turned), *((name, was) for name in unchanged)])
    if rows:
        print_table(("partition", "result"), rows)
    click.echo(f"{done} {_counted(len(turned))}", err=True)


def _counted(count: int) -> str:
    return f"{count:,} partition{'' if count == 1 else 's'}"


def _user_name() -> str | None:
    try:
        return getpass.getuser()
    # What it raises depends on the version: a container's user may have no name.
    except (KeyError, OSError):
        return None
