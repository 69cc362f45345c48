"""`metastore status`."""

from datetime import UTC, datetime, timedelta

import click

from metastore.cli.connection import connect, uri_option
from metastore.cli.output import json_option, print_json, print_record


@click.command()
@uri_option
@json_option
def status(uri: str, as_json: bool) -> None:
    """Show a running server's version, schema, number of objects and connections.

    `duties` is the one of the servers on the database that does the background work for all of them.

    Exits with 1 if no server answers.

    \b
    Examples:
      metastore status
      metastore status --uri thrift://metastore.example:9083 --json
    """
    with connect(uri) as client:
        counters: dict[str, int] = client.call("getCounters")
        report: dict[str, object] = {
            "uri": uri,
            "version": client.call("getOption", "version"),  # getVersion is fb303's, the same for every server
            "schema": client.call("getOption", "schema.revision"),
            "duties": client.call("getOption", "duties"),
            "started": datetime.fromtimestamp(client.call("aliveSince"), UTC).isoformat(),
            **dict(sorted(counters.items())),
        }
    if as_json:
        print_json(report)
        return
    if "uptime_seconds" in counters:
        report["uptime"] = timedelta(seconds=counters["uptime_seconds"])
        del report["uptime_seconds"]
    print_record(report)
