"""`metastore timeline`: what has happened to a lake table."""

import time
from pathlib import Path

import click

from lake.cli.commands.savepoints import delete_savepoint, savepoint
from lake.cli.commands.timeline_changes import abort, clean, orphans, rollback
from lake.cli.connection import uri_option
from lake.cli.group import Group
from lake.cli.lake import lake, reference, table_argument
from lake.cli.moments import in_words, iso, shown
from lake.cli.output import counted, json_option, print_json, print_table
from lake.cli.pages.html import check_form, html_option, write
from lake.cli.pages.rejected_commits import with_rejected
from lake.cli.pages.timeline_drawing import action, kind, remarks, span
from lake.cli.pages.timeline_page import timeline_page

BAR = 24
"""Characters in which instants are drawn over time."""


@click.group(cls=Group)
def timeline() -> None:
    """Show a lake table's instants, undo them, and clean up."""


for _command in (rollback, abort, clean, orphans, savepoint, delete_savepoint):
    timeline.add_command(_command)


@timeline.command()
@table_argument
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, metavar="N", help="The latest N instants.  [default: 50]"
)
@click.option("--all", "everything", is_flag=True, help="Archived and undone instants, too.")
@uri_option
@json_option
@html_option
def show(table: tuple[str, ...], limit: int, everything: bool, uri: str, as_json: bool, page_file: Path | None) -> None:
    """Draw a table's timeline, the latest instants at the end.

    \b
    Examples:
      metastore timeline show shop.orders
      metastore timeline show shop.orders --limit 10 --all --json
      metastore timeline show shop.orders --limit 1000 --html orders.html
    """
    from lake.protocol.lake import ListInstantsRequest

    check_form(page_file, as_json)
    with lake(uri) as client:
        request = ListInstantsRequest(reference(table), limit=limit, latestFirst=True, includeArchived=everything)
        found = client.call("lake_list_instants", request)[::-1]
        position = client.call("lake_timeline_position", reference(table))
        rejected = client.call("lake_list_rejected_commits", reference(table))
    cut = len(found) == limit
    if page_file is not None:
        name, now = ".".join(table), time.time_ns() // 1_000_000
        write(page_file, timeline_page(name, found, rejected, position, now, cut=cut, archived=everything))
        return
    if as_json:
        shown_instants = [
            {
                "timestamp": each.timestamp,
                "action": each.action,
                "state": each.state,
                "requested": iso(each.requestedAt),
                "changed": iso(each.changedAt),
                "heartbeat": iso(each.heartbeatAt),
                "completion_time": each.completionTime,
                "position": each.position,
                "moment": each.moment,
                "begun_as": each.begunAs,
                "conflict": each.conflict,
                "undone_by": each.undoneBy,
                "archived": bool(each.archived),
                "name": each.name,
            }
            for each in found
        ]
        refused = [
            {
                "timestamp": each.timestamp,
                "action": each.action,
                "requested": iso(each.requestedAt),
                "refused": iso(each.rejectedAt),
                "reason": each.reason,
            }
            for each in rejected
        ]
        standing = {"position": position.position, "oldest_readable": position.oldestReadable}
        print_json({**standing, "instants": shown_instants, "rejected_commits": refused})
        return
    drawn = with_rejected(found, rejected, cut=cut)
    if drawn:
        latest = max(each.changedAt or 0 for each in drawn)
        spans = [span(each, latest) for each in drawn]
        begin, end = min(first for first, _ in spans), max(last for _, last in spans)
        print_table(
            ("timestamp", "action", "state", "position", "requested (UTC)", "took", "over time", "remarks"),
            [
                (
                    each.timestamp,
                    action(each),
                    each.state,
                    "-" if each.position is None else str(each.position),
                    shown(each.requestedAt),
                    in_words(last - first) if each.position is not None or kind(each) == "refused" else "-",
                    _drawn(first, last, begin, end),
                    remarks(each),
                )
                for each, (first, last) in zip(drawn, spans, strict=True)
            ],
        )
    left = f"position {position.position:,}, readable from {position.oldestReadable:,} on"
    lost = sum(kind(each) == "refused" for each in drawn)
    click.echo(f"{counted(len(found), 'instant')}{f', {lost:,} refused' if lost else ''}; {left}", err=True)


def _drawn(first: int, last: int, begin: int, end: int) -> str:
    """A bar from one time to another within a span, at least a character long."""
    scale = (BAR - 1) / max(1, end - begin)
    start, stop = round((first - begin) * scale), round((last - begin) * scale)
    return ("·" * start + "█" * (stop - start + 1)).ljust(BAR, "·")
