"""`metastore events`: follow changes as they are committed."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lake.cli.connection import connect, uri_option
from lake.cli.group import Group
from lake.cli.moments import in_words, iso, shown
from lake.cli.output import json_option, print_json, print_list
from lake.protocol.clock import now_ms
from lake.protocol.errors import UserError

if TYPE_CHECKING:
    from lake.subscriptions import Event

Command = TypeVar("Command", bound=Callable[..., Any])

MOST_NAMES = 3
"""Partitions of an event that are named in a line of text, at most."""


@click.group(cls=Group)
def events() -> None:
    """Follow changes; manage groups and dead letters."""


@events.command()
@click.option(
    "--table", "tables", multiple=True, metavar="DB.TABLE", help="Only events of these tables; * stands for anything."
)
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only these types, for example COMMIT_PARTITIONS.")
@click.option(
    "--since",
    metavar="N|TIME|earliest",
    help="Begin after event N, at a time (2026-01-31T07:00, UTC), or with the earliest event. [default: from now on]",
)
@click.option("--count", metavar="N", type=click.IntRange(min=1), help="End after N events.")
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
    """Print events as they come, one a line, until Ctrl-C.

    \b
    Examples:
      metastore events tail
      metastore events tail --table 'shop.*' --type COMMIT_PARTITIONS
      metastore events tail --since earliest --no-follow --json
    """
    from lake.protocol.events.filters import BadFilter
    from lake.protocol.hive import InvalidOperationException
    from lake.protocol.lake import EventsGone
    from lake.subscriptions import subscribe
    from lake.subscriptions.base import SourceUnavailable

    start: Any = _start(since) if since else ("latest" if follow else "earliest")
    with connect(uri):  # says at once if nobody answers; later a subscription waits for the server
        pass
    left = count
    try:
        with subscribe(uri, tables=tables, types=types, start=start) as subscription:
            while left is None or left > 0:
                try:
                    found = subscription.poll(30 if follow else 0)
                except SourceUnavailable:
                    if not follow:
                        raise
                    continue  # it was logged
                if not found and not follow:
                    return
                for event in found[:left]:
                    click.echo(_as_json(event) if as_json else _as_text(event))
                left = None if left is None else left - len(found)
    except KeyboardInterrupt:
        return
    except (BadFilter, InvalidOperationException, EventsGone, SourceUnavailable) as error:
        raise UserError(str(error)) from None


@events.group(cls=Group, invoke_without_command=True)
@uri_option
@json_option
@click.pass_context
def groups(context: click.Context, uri: str, as_json: bool) -> None:
    """List groups of subscribers, and outlets.

    Shows for each its position, how many events it is behind, its dead letters, and its last use.

    \b
    Examples:
      metastore events groups
      metastore events groups delete old-jobs
    """
    if context.invoked_subcommand is not None:
        return
    with connect(uri) as client:
        found = client.call("lake_event_groups")
    now = now_ms()
    if as_json:
        print_json(
            [
                {
                    "group": group.name,
                    "position": group.position,
                    "behind": group.behind,
                    "members": group.members,
                    "acknowledged": iso(group.updatedAt),
                    "seen": iso(group.seenAt),
                    "dead_letters": group.deadLetters,
                }
                for group in found
            ]
        )
        return
    print_list(
        "group",
        ("group", "position", "events behind", "members", "dead letters", "acknowledged (UTC)", "last used"),
        [
            (
                group.name,
                group.position,
                group.behind,
                "" if group.members is None else group.members,
                group.deadLetters or "",
                shown(group.updatedAt),
                f"{in_words(max(now - group.seenAt, 0))} ago",
            )
            for group in found
        ],
    )


@groups.command("delete")
@click.argument("name")
@uri_option
def delete_group(name: str, uri: str) -> None:
    """Delete the group, or the outlet, NAME.

    The log keeps no events for it any more. A deleted group that is used again starts as a new group.

    \b
    Example:
      metastore events groups delete old-jobs
    """
    from lake.protocol.hive import InvalidOperationException, NoSuchObjectException

    with connect(uri) as client:
        try:
            client.call("lake_delete_event_group", name)
        except (InvalidOperationException, NoSuchObjectException) as error:
            raise UserError(str(error)) from None
    click.echo(f"deleted {name}")


@events.group("dead-letters", cls=Group)
def dead_letters() -> None:
    """List, resend and discard dead letters of outlets.

    A dead letter is an event that a webhook or listener failed to take in as many attempts as it makes.
    """


def _outlet_arguments(command: Command) -> Command:
    numbers = click.argument("numbers", metavar="[NUMBER]...", nargs=-1, type=int)
    return click.argument("outlet")(numbers(command))


@dead_letters.command("list")
@click.option("--outlet", metavar="NAME", help="Only those of this outlet, for example webhook:audit.")
@uri_option
@json_option
def list_dead_letters(outlet: str | None, uri: str, as_json: bool) -> None:
    """List dead letters, with the last error of each.

    \b
    Examples:
      metastore events dead-letters list
      metastore events dead-letters list --outlet webhook:audit --json
    """
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
    print_list(
        "dead letter",
        ("outlet", "event", "type", "name", "attempts", "failed (UTC)", "error"),
        [
            (each.outlet, each.number, each.type or "", name, each.attempts, shown(each.failedAt), each.error)
            for each, name in zip(found, names, strict=True)
        ],
    )


@dead_letters.command()
@_outlet_arguments
@uri_option
def resend(outlet: str, numbers: tuple[int, ...], uri: str) -> None:
    """Send dead letters of OUTLET again: all, or those NUMBERs.

    \b
    Examples:
      metastore events dead-letters resend webhook:audit
      metastore events dead-letters resend listener:reports.listeners:Report 1207 1208
    """
    _change_dead_letters("lake_resend_events", outlet, numbers, uri, "to be sent again")


@dead_letters.command()
@_outlet_arguments
@uri_option
def discard(outlet: str, numbers: tuple[int, ...], uri: str) -> None:
    """Delete dead letters of OUTLET: all, or those NUMBERs.

    The events stay in the log.

    \b
    Examples:
      metastore events dead-letters discard webhook:audit
      metastore events dead-letters discard listener:reports.listeners:Report 1207 1208
    """
    _change_dead_letters("lake_discard_events", outlet, numbers, uri, "discarded")


def _change_dead_letters(method: str, outlet: str, numbers: tuple[int, ...], uri: str, done: str) -> None:
    from lake.protocol.hive import InvalidOperationException

    with connect(uri) as client:
        try:
            found = client.call(method, outlet, list(numbers) or None)
        except InvalidOperationException as error:
            raise UserError(str(error)) from None
    click.echo(f"{len(found)} {done}" + (f": {', '.join(map(str, found))}" if found else ""))


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
    shown_names = ", ".join(names[:MOST_NAMES]) + (
        f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    )
    by = f"by {event.origin.user}" if event.origin.user else ""
    return "  ".join(
        part for part in (f"{event.number:>6}", shown(event.time), f"{event.type:<19}", name, shown_names, by) if part
    )
