"""`metastore watermark`: how far a table has come in event time."""

from typing import Any

import click

from lake.cli.connection import uri_option
from lake.cli.group import Group
from lake.cli.lake import lake, reference, table_argument
from lake.cli.moments import compared, in_words, iso, shown
from lake.cli.output import json_option, print_json, print_record, print_table
from lake.protocol.clock import now_ms

Reply = Any
"""A decoded struct: the fields that the IDL requires are there, which its class doesn't say."""


@click.group(cls=Group)
def watermark() -> None:
    """Show how far a table has come in event time."""


@watermark.command()
@table_argument
@uri_option
@json_option
def show(table: tuple[str, ...], uri: str, as_json: bool) -> None:
    """Show a table's watermark, its sources and its late rows.

    The server makes a partition ready once the watermark is past its start and the table's delay.

    \b
    Examples:
      metastore watermark show shop.orders
      metastore watermark show shop.orders --json
    """
    with lake(uri) as client:
        found: Reply = client.call("lake_get_watermark", reference(table))
    now = now_ms()
    name = ".".join(table)
    if as_json:
        print_json(_as_json(name, found, now))
    else:
        _print(name, found, now)


def _print(name: str, found: Reply, now: int) -> None:
    late = found.late
    print_record(
        {
            "table": name,
            "commit mode": found.commitMode,
            "watermark": "no writer has reported yet"
            if found.watermark is None
            else f"{shown(found.watermark)} UTC, {compared(found.watermark, now)}",
            "delay": None if found.delay is None else in_words(found.delay),
            "interval": None if found.interval is None else in_words(found.interval),
            "uncommitted": f"{found.uncommitted:,}, the first is {found.oldestUncommitted}"
            if found.oldestUncommitted
            else "0",
            "late policy": found.latePolicy,
            "late rows": f"{late.rerouted:,} rerouted, {late.reopened:,} reopened, {late.dropped:,} dropped",
        }
    )
    if found.sources:
        click.echo()
        print_table(
            ("chain", "source", "watermark (UTC)", "", "last report (UTC)", "state"),
            [
                (
                    *(source.chain, source.source, shown(source.watermark), compared(source.watermark, now)),
                    *(shown(source.reportedAt), "idle" if source.idle else "live"),
                )
                for source in sorted(found.sources, key=lambda source: (source.chain, source.source))
            ],
        )
    if found.commitMode == "event-time" and (found.delay or 0) < (found.interval or 0):
        click.echo(
            "note: sink.partition-commit.delay is shorter than the interval: partitions turn ready before they end",
            err=True,
        )


def _as_json(name: str, found: Reply, now: int) -> dict[str, object]:
    return {
        "table": name,
        "commit_mode": found.commitMode,
        "watermark": iso(found.watermark),
        "behind_ms": None if found.watermark is None else now - found.watermark,
        "delay_ms": found.delay,
        "interval_ms": found.interval,
        "uncommitted": found.uncommitted,
        "oldest_uncommitted": found.oldestUncommitted,
        "late_policy": found.latePolicy,
        "late_rows": {
            "rerouted": found.late.rerouted,
            "reopened": found.late.reopened,
            "dropped": found.late.dropped,
        },
        "sources": [
            {
                "chain": source.chain,
                "source": source.source,
                "watermark": iso(source.watermark),
                "behind_ms": now - source.watermark,
                "reported": iso(source.reportedAt),
                "idle": source.idle,
            }
            for source in found.sources
        ],
    }
