"""`metastore events`: follow changes as they are committed."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from metastore.cli.connection import connect, uri_option
from metastore.cli.moments import in_words, iso, shown
from metastore.cli.output import json_option, print_json, print_table
from metastore.clock import now_ms
from metastore.errors import UserError

if TYPE_CHECKING:
    from eventbus import Event

MOST_NAMES = 3
"""So many partitions of an event are named to people."""


@click.group()
def events() -> None:
    """Follow changes as they are committed."""


@events.command()
@click.option("--table", "tables", multiple=True, metavar="DB.TABLE", help="Only of these; * stands for anything.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only these types, for example COMMIT_PARTITIONS.")
@click.option(
    "--since",
    metavar="N|TIME|earliest",
    help="Begin after event N, at a time (2026-01-31T07:00, UTC), or with the earliest event. [default: from now on]",
)
@click.option("--count", type=click.IntRange(min=1), help="End after so many events.")
@click.option("--follow/--no-follow", default=True, help="Wait for further events.", show_default=True)
@uri_option
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each event.")
def tail(
    tables: tuple[str, ...],
    types: tuple[str, ...],
    since: str | None,
    count: int | None,
    follow: bool,
    uri: str,
    as_json: bool,
) -> None:
    """Print events live, one a line. Ends with Ctrl-C.

    \b
    Examples:
      metastore events tail
      metastore events tail --table 'shop.*' --type COMMIT_PARTITIONS
      metastore events tail --since earliest --no-follow --json
    """
    from eventbus import subscribe
    from eventbus.filters import BadFilter
    from metastore.wire.hive import InvalidOperationException
    from metastore.wire.lake import EventsGone

    start: Any = _start(since) if since else ("latest" if follow else "earliest")
    with connect(uri):  # says at once if nobody answers; later a subscription waits for the server
        pass
    left = count
    try:
        with subscribe(uri, tables=tables, types=types, start=start) as subscription:
            while left is None or left > 0:
                found = subscription.poll(30 if follow else 0)
                if not found and not follow:
                    return
                for event in found[:left]:
                    click.echo(_as_json(event) if as_json else _as_text(event))
                left = None if left is None else left - len(found)
    except KeyboardInterrupt:
        return
    except (BadFilter, InvalidOperationException, EventsGone) as error:
        raise UserError(str(error)) from None


@events.command()
@uri_option
@json_option
def groups(uri: str, as_json: bool) -> None:
    """Show where groups of subscribers stand, and how far they are behind."""
    with connect(uri) as client:
        found = client.call("lake_event_groups")
        positions = client.call("lake_event_positions", None, None)
    now = now_ms()
    if as_json:
        print_json(
            [
                {
                    "group": group.name,
                    "position": group.position,
                    "behind": positions.last - group.position,
                    "members": group.members,
                    "acknowledged": iso(group.updatedAt),
                }
                for group in found
            ]
        )
        return
    print_table(
        ("group", "position", "events behind", "members", "acknowledged (UTC)", ""),
        [
            (
                group.name,
                group.position,
                positions.last - group.position,
                "" if group.members is None else group.members,
                shown(group.updatedAt),
                f"{in_words(max(now - group.updatedAt, 0))} ago",
            )
            for group in found
        ],
    )


@events.command()
@click.option("--outlet", metavar="NAME", help="Only of this one, for example webhook:audit.")
@uri_option
@json_option
def dead(outlet: str | None, uri: str, as_json: bool) -> None:
    """Show events that webhooks and listeners did not take."""
    with connect(uri) as client:
        found = client.call("lake_dead_events", outlet)
    names = [".".join(part for part in (each.database, each.table) if part) or each.catalog or "" for each in found]
    if as_json:
        print_json(
            [
                {
                    "outlet": each.outlet,
                    "number": each.number,
                    "type": each.type,
                    "name": name,
                    "error": each.error,
                    "attempts": each.attempts,
                    "failed": iso(each.failedAt),
                    "resend": each.resend,
                }
                for each, name in zip(found, names, strict=True)
            ]
        )
        return
    print_table(
        ("outlet", "event", "type", "name", "attempts", "failed (UTC)", "error"),
        [
            (each.outlet, each.number, each.type or "", name, each.attempts, shown(each.failedAt), each.error)
            for each, name in zip(found, names, strict=True)
        ],
    )


@events.command()
@click.argument("outlet")
@click.argument("numbers", metavar="[NUMBER]...", nargs=-1, type=int)
@uri_option
def resend(outlet: str, numbers: tuple[int, ...], uri: str) -> None:
    """Send events again that an OUTLET did not take: those numbers, or all.

    \b
    Examples:
      metastore events resend webhook:audit
      metastore events resend listener:reports.listeners:Report 1207 1208
    """
    from metastore.wire.hive import InvalidOperationException

    with connect(uri) as client:
        try:
            found = client.call("lake_resend_events", outlet, list(numbers) or None)
        except InvalidOperationException as error:
            raise UserError(str(error)) from None
    click.echo(f"{len(found)} to be sent again" + (f": {', '.join(map(str, found))}" if found else ""))


def _start(text: str) -> Any:
    if text == "earliest":
        return text
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither an event's number nor a time such as 2026-01-31T07:00", param_hint="--since"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _as_json(event: "Event") -> str:
    return json.dumps(
        {
            "number": event.number,
            "type": event.type,
            "time": iso(event.time),
            "user": event.origin.user,
            "connection": event.origin.connection,
            "catalog": event.catalog,
            "database": event.database,
            "table": event.table,
            "payload": event.payload,
        },
        ensure_ascii=False,
    )


def _as_text(event: "Event") -> str:
    name = ".".join(part for part in (event.database, event.table) if part) or event.catalog or ""
    names = [each["name"] if isinstance(each, dict) else each for each in event.payload.get("partitions", ())]
    told = ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else "")
    by = f"by {event.origin.user}" if event.origin.user else ""
    return "  ".join(
        part for part in (f"{event.number:>6}", shown(event.time), f"{event.type:<19}", name, told, by) if part
    )
