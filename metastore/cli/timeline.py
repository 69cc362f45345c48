"""`metastore timeline`: what has happened to a lake table."""

import click

from metastore.cli.connection import uri_option
from metastore.cli.lake import lake, reference, table_argument
from metastore.cli.moments import in_words, iso, shown
from metastore.cli.output import json_option, print_json, print_table
from metastore.cli.timeline_import import import_timeline

BAR = 24
"""Characters in which instants are drawn over time."""


@click.group()
def timeline() -> None:
    """See what has happened to a lake table: its instants, one after the other."""


timeline.add_command(import_timeline)


@timeline.command()
@table_argument
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, metavar="N", help="The latest N.  [default: 50]")
@click.option("--all", "everything", is_flag=True, help="Those that are archived or undone, too.")
@uri_option
@json_option
def show(table: tuple[str, ...], limit: int, everything: bool, uri: str, as_json: bool) -> None:
    """Draw a table's timeline, the latest instants at the end.

    \b
    Examples:
      metastore timeline show shop.orders
      metastore timeline show shop.orders --limit 10 --all --json
    """
    from metastore.wire.lake import ListInstantsRequest

    with lake(uri) as client:
        request = ListInstantsRequest(reference(table), limit=limit, latestFirst=True, includeArchived=everything)
        found = client.call("lake_list_instants", request)[::-1]
        position = client.call("lake_timeline_position", reference(table))
    if as_json:
        told = [
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
            }
            for each in found
        ]
        print_json({"position": position.position, "oldest_readable": position.oldestReadable, "instants": told})
        return
    if found:
        begin, end = min(each.requestedAt for each in found), max(each.changedAt for each in found)
        print_table(
            ("timestamp", "action", "state", "position", "requested (UTC)", "took", "over time", "remarks"),
            [
                (
                    each.timestamp,
                    each.action if each.begunAs is None else f"{each.begunAs} → {each.action}",
                    each.state,
                    "-" if each.position is None else str(each.position),
                    shown(each.requestedAt),
                    in_words(each.changedAt - each.requestedAt) if each.position else "-",
                    _drawn(each.requestedAt, each.changedAt if each.position else end, begin, end),
                    _remarks(each),
                )
                for each in found
            ],
        )
    left = f"position {position.position:,}, readable from {position.oldestReadable:,} on"
    click.echo(f"{len(found):,} instants; {left}", err=True)


def _drawn(first: int, last: int, begin: int, end: int) -> str:
    """A bar from one time to another within a span, at least a character long."""
    scale = (BAR - 1) / max(1, end - begin)
    start, stop = round((first - begin) * scale), round((last - begin) * scale)
    return ("·" * start + "█" * (stop - start + 1)).ljust(BAR, "·")


def _remarks(instant: object) -> str:
    """What else there is to say of an instant."""
    said = []
    if (conflict := getattr(instant, "conflict", None)) is not None:
        said.append(f"refused: {conflict}")
    if (undone := getattr(instant, "undoneBy", None)) is not None:
        said.append(f"undone by {undone}")
    if getattr(instant, "archived", None):
        said.append("archived")
    return "; ".join(said)
