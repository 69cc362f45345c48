"""`metastore status`."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from lake.cli.connection import connect, uri_option
from lake.cli.output import json_option, print_json, print_record

if TYPE_CHECKING:
    from lake.protocol.connection.thrift_client import ThriftClient


@click.command()
@uri_option
@json_option
def status(uri: str, as_json: bool) -> None:
    """Show the state of a running server.

    Prints its version, the revision of the schema, and the numbers of objects and connections. `leader` is the server
    that runs the leader tasks for all servers on the database. Warnings say if callers from other hosts need no login,
    and if changed policies can't be used.

    With an authorization only administrators see all of it, others the version, and how clients log in.

    Exits with 1 if no server answers.

    \b
    Examples:
      metastore status
      metastore status --uri thrift://metastore.example:9083 --json
    """
    with connect(uri) as client:
        counters = _counters(client)
        report: dict[str, object] = {
            "uri": uri,
            "version": client.call("getOption", "version"),  # getVersion is fb303's, the same for every server
            "schema": client.call("getOption", "schema.revision"),
            "leader": client.call("getOption", "leader"),
            "authentication": client.call("getOption", "authentication"),
            "encryption": client.call("getOption", "encryption"),
            "authorization": client.call("getOption", "authorization"),
            "started": datetime.fromtimestamp(client.call("aliveSince"), UTC).isoformat(),
            **dict(sorted(counters.items())),
        }
        warnings = [client.call("getOption", name) for name in ("exposure", "authorization.trouble")]
    for each in filter(None, warnings):
        click.secho(f"warning: {each}", fg="red", bold=True, err=True)
    if as_json:
        print_json(report)
        return
    if "uptime_seconds" in counters:
        report["uptime"] = timedelta(seconds=counters["uptime_seconds"])
        del report["uptime_seconds"]
    if "partitions" in counters:
        report["partitions"] = f"{counters['partitions']:,} ready, {counters['uncommitted_partitions']:,} uncommitted"
        del report["uncommitted_partitions"]
    print_record(report)


def _counters(client: "ThriftClient") -> dict[str, int]:
    """The numbers of objects; none for a user who may not know them."""
    from thrift.Thrift import TApplicationException

    try:
        counters: dict[str, int] = client.call("getCounters")
    except TApplicationException as error:
        if "Permission denied" not in (error.message or ""):
            raise
        return {}
    return counters
