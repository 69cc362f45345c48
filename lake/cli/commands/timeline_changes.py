"""`metastore timeline rollback`, `abort`, `clean` and `orphans`: undo instants of a lake table, and clean up."""

from typing import TYPE_CHECKING

import click

from lake.cli.confirming import confirm, confirming_options
from lake.cli.connection import uri_option
from lake.cli.lake import lake_table, table_argument
from lake.cli.output import counted, json_option, print_json, print_table
from lake.protocol.errors import UserError

if TYPE_CHECKING:
    from lake.client.lake_types import Instant
    from lake.tables.lake import LakeTable


@click.command()
@table_argument
@click.argument("timestamp")
@confirming_options
@uri_option
@json_option
def rollback(table: tuple[str, ...], timestamp: str, yes: bool, dry_run: bool, uri: str, as_json: bool) -> None:
    """Undo the instant TIMESTAMP and all that completed after it.

    The rollback is an instant of its own. Until a clean, the table can still be read as of the instants that it undoes.

    \b
    Examples:
      metastore timeline rollback shop.orders 20260131070000000 --dry-run
      metastore timeline rollback shop.orders 20260131070000000 --yes
    """
    with lake_table(uri, table) as lake:
        undone = _completed_since(lake, timestamp)
        if not as_json:
            _print_instants(undone)
        if dry_run:
            done = None
        else:
            confirm(f"Undo {counted(len(undone), 'instant')} of {'.'.join(table)}?", yes=yes)
            done = lake.roll_back(*undone).instant
    if as_json:
        keys = [{"timestamp": each.timestamp, "action": each.action} for each in undone]
        print_json({"undone": keys, "rollback": done and done.timestamp})
        return
    would = f"would undo {counted(len(undone), 'instant')}"
    click.echo(f"undone by {done.timestamp}, position {done.position:,}" if done else would, err=True)


@click.command()
@table_argument
@click.argument("timestamp")
@click.option("--action", help="Its action, where several instants have that timestamp.")
@confirming_options
@uri_option
def abort(table: tuple[str, ...], timestamp: str, action: str | None, yes: bool, dry_run: bool, uri: str) -> None:
    """Abort an instant that isn't completed, and delete its files.

    The completion is refused if a writer still works on it.

    \b
    Example:
      metastore timeline abort shop.orders 20260131070000000
    """
    with lake_table(uri, table) as lake:
        found = [
            each
            for each in lake.instants(states=["requested", "inflight"])
            if each.timestamp == timestamp and action in (None, each.action)
        ]
        if not found:
            raise UserError(f"{'.'.join(table)} has no instant {timestamp} that isn't complete")
        if len(found) > 1:
            raise UserError(f"there are several: give --action, one of {', '.join(each.action for each in found)}")
        _print_instants(found)
        if dry_run:
            click.echo("would abort 1 instant", err=True)
            return
        confirm(f"Abort it, and delete the files in its directory ({'.'.join(table)})?", yes=yes)
        lake.abort(found[0])
    click.echo("aborted 1 instant", err=True)


@click.command()
@table_argument
@click.option("--keep-commits", type=click.IntRange(1), metavar="N", help="Keep what the latest N commits read.")
@click.option("--keep-hours", type=click.IntRange(1), metavar="N", help="Keep what could be read in the last N hours.")
@click.option("--keep-versions", type=click.IntRange(1), metavar="N", help="Keep N versions of each file group.")
@confirming_options
@uri_option
@json_option
def clean(
    table: tuple[str, ...],
    keep_commits: int | None,
    keep_hours: int | None,
    keep_versions: int | None,
    yes: bool,
    dry_run: bool,
    uri: str,
    as_json: bool,
) -> None:
    """Delete superseded files that no kept snapshot needs.

    Earlier snapshots can't be read any more. Savepoints are kept.

    \b
    Examples:
      metastore timeline clean shop.orders --keep-commits 10 --dry-run
      metastore timeline clean shop.orders --keep-hours 72 --yes
    """
    if sum(each is not None for each in (keep_commits, keep_hours, keep_versions)) != 1:
        raise click.UsageError("say what to keep: --keep-commits, --keep-hours or --keep-versions")
    with lake_table(uri, table) as lake:
        files = lake.plan_clean(keep_commits=keep_commits, keep_hours=keep_hours, keep_versions=keep_versions)
        size = sum(each.size or 0 for each in files)
        if not as_json and files:
            print_table(("partition", "file", "bytes"), [(each.partition, each.path, each.size or 0) for each in files])
        what = f"{counted(len(files), 'file')}, {size:,} bytes"
        done = None
        if files and not dry_run:
            confirm(f"Delete {what} of {'.'.join(table)}?", yes=yes)
            done = lake.clean(files).instant
    if as_json:
        print_json({"files": [each.path for each in files], "bytes": size, "clean": done and done.timestamp})
        return
    click.echo(f"{'would delete' if dry_run else 'deleted'} {what}", err=True)


@click.command()
@table_argument
@click.option(
    "--hours", type=click.IntRange(24), default=72, metavar="N", help="Files that are N hours old.  [default: 72]"
)
@confirming_options
@uri_option
@json_option
def orphans(table: tuple[str, ...], hours: int, yes: bool, dry_run: bool, uri: str, as_json: bool) -> None:
    """Delete files of instants that nothing knows of.

    A writer that went on after its instant was aborted leaves such files, and so does a restored database. Files of
    open instants, and those in directories of partitions, stay.

    \b
    Examples:
      metastore timeline orphans shop.orders --dry-run
      metastore timeline orphans shop.orders --hours 168 --yes
    """
    with lake_table(uri, table) as lake:
        files = [each for some in lake.find_orphans(hours=hours) for each in some]
        size = sum(each.size for each in files)
        if not as_json and files:
            rows = [(each.path, each.size, each.modified_at.isoformat(" ", "seconds")) for each in files]
            print_table(("file", "bytes", "modified"), rows)
        what = f"{counted(len(files), 'file')}, {size:,} bytes"
        removed = 0
        if files and not dry_run:
            confirm(f"Delete {what} of {'.'.join(table)}?", yes=yes)
            for start in range(0, len(files), 10_000):
                removed += lake.remove_orphans([each.path for each in files[start : start + 10_000]], hours=hours)
    if as_json:
        print_json({"files": [each.path for each in files], "bytes": size, "removed": removed})
        return
    done = f"deletes {counted(removed, 'file')}" if removed or not dry_run else f"would delete {what}"
    click.echo(done, err=True)


def _completed_since(lake: "LakeTable", timestamp: str) -> "list[Instant]":
    """The instant of that timestamp and those that completed after it, in the order of their completion."""
    completed = sorted(
        (each for each in lake.instants(states=["completed"]) if each.position is not None),
        key=lambda each: each.position or 0,
    )
    first = next((index for index, each in enumerate(completed) if each.timestamp == timestamp), None)
    if first is None:
        raise UserError(f"{lake.name} has no completed instant {timestamp} that isn't undone or archived")
    return completed[first:]


def _print_instants(instants: "list[Instant]") -> None:
    print_table(
        ("timestamp", "action", "state", "position"),
        [(each.timestamp, each.action, each.state, each.position) for each in instants],
    )
