"""`metastore table-services`: compact, cluster and clean tables, and see why and when."""

from typing import TYPE_CHECKING, Any

import click

from lake.cli.commands.table_services_run import defaults_option, run_services
from lake.cli.connection import uri_option
from lake.cli.group import Group
from lake.cli.lake import lake, reference, table_argument, table_parts
from lake.cli.moments import iso, shown
from lake.cli.output import json_option, print_json, print_list, print_record, print_table

if TYPE_CHECKING:
    from lake.maintenance.decisions.decisions import Decision
    from lake.protocol.lake import ServiceDecision, ServiceJob, TableReference

STATES = ("pending", "running", "succeeded", "failed", "cancelled")
ACTIONS = ("compaction", "clustering", "clean", "publish", "orphans", "iceberg")


@click.group("table-services", cls=Group)
def table_services() -> None:
    """Compact, cluster and clean tables; see why and when."""


table_services.add_command(run_services)


@table_services.command()
@click.option("--table", metavar="DATABASE.TABLE", help="Only of this table.")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Only in these states.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, metavar="N", help="The latest N. [default: 100]")
@click.option("--logs", is_flag=True, help="With the logs, in JSON.")
@uri_option
@json_option
def plans(table: str | None, states: tuple[str, ...], limit: int, logs: bool, uri: str, as_json: bool) -> None:
    """List jobs: what waits, runs, and how it ended.

    \b
    Examples:
      metastore table-services plans --state pending --state running
      metastore table-services plans --table shop.orders --json --logs
    """
    from lake.protocol.lake import ListJobsRequest

    if logs and not as_json:
        raise click.UsageError("--logs is for --json")
    request = ListJobsRequest(
        table=None if table is None else reference(table_parts(table)),
        states=list(states) or None,
        limit=limit,
        latestFirst=True,
        withLogs=logs,
    )
    with lake(uri) as client:
        found = client.call("lake_list_jobs", request).jobs[::-1]
    if as_json:
        print_json([_as_json(each, logs=logs) for each in found])
        return
    print_list(
        "job",
        ("id", "table", "action", "state", "instant", "attempts", "enqueued (UTC)", "gain", "cost", "reason"),
        [
            (
                str(each.id),
                table_name(each.table),
                each.action,
                each.state,
                each.instant,
                each.attempts,
                shown(each.enqueuedAt),
                "-" if each.gain is None else f"{each.gain:g}",
                "-" if each.cost is None else f"{each.cost:.1f} s",
                each.reason,
            )
            for each in found
        ],
    )


@table_services.command()
@table_argument
@click.option("--history", type=click.IntRange(0, 1_000), default=0, metavar="N", help="The latest N decisions, too.")
@defaults_option
@uri_option
@json_option
def explain(table: tuple[str, ...], history: int, defaults: dict[str, str], uri: str, as_json: bool) -> None:
    """Say what is due for a table now, and why or why not.

    Nothing is done. With --history also what services decided before.

    \b
    Examples:
      metastore table-services explain shop.orders
      metastore table-services explain shop.orders --history 20 --json
    """
    from lake.maintenance.planner import Planner
    from lake.maintenance.queue import Queue
    from lake.tables.lake import LakeClient

    with lake(uri) as client:
        leases = client.call("lake_list_leases", reference(table))
        before = client.call("lake_list_decisions", reference(table), history) if history else []
        with LakeClient(uri, retry_seconds=10) as typed:
            planner = Planner(Queue(typed, "explain"), defaults, with_iceberg=True, with_hudi=True)
            found, policy, facts = planner.decide(reference(table))
    if as_json:
        print_json(
            {
                "table": ".".join(table),
                "position": facts.position,
                "paused": facts.paused,
                "decisions": [_decided(each) for each in found],
                "windows": {} if policy is None else policy.windows,
                "leases": [
                    {"id": each.id, "position": each.position, "expires": iso(each.expiresAt), "holder": each.holder}
                    for each in leases
                ],
                "history": [_kept(each) for each in before],
            }
        )
        return
    print_table(
        ("service", "to do", "why", "gain", "cost"),
        [
            (
                each.service,
                each.action or "nothing",
                each.reason,
                "-" if each.gain is None else f"{each.gain:g}",
                "-" if each.cost is None else f"{each.cost:.1f} s",
            )
            for each in found
        ],
    )
    if before:
        print_table(
            ("decided (UTC)", "position", "service", "to do", "why"),
            [(shown(each.decidedAt), each.position, each.tableService, each.action, each.reason) for each in before],
        )
    click.echo(f"position {facts.position:,}, {len(leases)} readers' leases", err=True)


@table_services.command()
@table_argument
@click.argument("action", type=click.Choice(ACTIONS))
@click.option("--instant", metavar="TIMESTAMP", help="Run an existing plan.")
@uri_option
@json_option
def submit(table: tuple[str, ...], action: str, instant: str | None, uri: str, as_json: bool) -> None:
    """Enqueue a job at once, whatever was decided.

    Windows don't delay it. A service that runs takes it.

    \b
    Examples:
      metastore table-services submit shop.orders compaction
      metastore table-services submit shop.orders compaction --instant 20260131070000000
    """
    from lake.protocol.lake import JobRequest

    with lake(uri) as client:
        request = JobRequest(action=action, instant=instant, reason="submitted by hand")
        _print_job(client.call("lake_submit_job", reference(table), request), as_json)


@table_services.command()
@click.argument("job", metavar="ID", type=click.IntRange(1))
@uri_option
@json_option
def cancel(job: int, uri: str, as_json: bool) -> None:
    """Cancel a pending job, or have a running one stop.

    Its plan stays on the timeline; no service runs it until it is submitted.

    \b
    Example:
      metastore table-services cancel 42
    """
    with lake(uri) as client:
        _print_job(client.call("lake_cancel_job", job), as_json)


@table_services.command()
@table_argument
@click.option("--reason", default="by hand", show_default=True, help="Why, for people to read.")
@uri_option
@json_option
def pause(table: tuple[str, ...], reason: str, uri: str, as_json: bool) -> None:
    """Have services leave a table alone; running jobs stop.

    \b
    Example:
      metastore table-services pause shop.orders --reason 'a migration'
    """
    if not reason.strip():
        raise click.UsageError("--reason says something")
    _pause(table, reason, uri, as_json)


@table_services.command()
@table_argument
@uri_option
@json_option
def resume(table: tuple[str, ...], uri: str, as_json: bool) -> None:
    """Let services go on with a table, and try again what failed.

    \b
    Example:
      metastore table-services resume shop.orders
    """
    _pause(table, None, uri, as_json)


def _pause(table: tuple[str, ...], reason: str | None, uri: str, as_json: bool) -> None:
    with lake(uri) as client:
        client.call("lake_pause_table_services", reference(table), reason)
    if as_json:
        print_json({"table": ".".join(table), "paused": reason})
    else:
        click.echo(f"{'.'.join(table)} {'goes on' if reason is None else 'is paused'}", err=True)


def _print_job(job: "ServiceJob", as_json: bool) -> None:
    shape = _as_json(job)
    if as_json:
        print_json(shape)
    else:
        print_record({name: value for name, value in shape.items() if value is not None})


def _as_json(job: "ServiceJob", *, logs: bool = False) -> dict[str, Any]:
    """A job as JSON. Times are ISO's, `cost` is in seconds."""
    return {
        "id": job.id,
        "table": table_name(job.table),
        "action": job.action,
        "state": job.state,
        "instant": job.instant,
        "reason": job.reason,
        "attempts": job.attempts,
        "started": iso(job.startedAt),
        "finished": iso(job.finishedAt),
        "gain": job.gain,
        "cost": job.cost,
        "enqueued": iso(job.enqueuedAt),
        "not_before": iso(job.notBefore),
        "failures": job.failures,
        "outcome": job.outcome,
        "priority": job.priority,
        "pool": job.pool,
        "windows": job.windows,
        "worker": job.worker,
        **({"log": job.log} if logs else {}),
    }


def _decided(decision: "Decision") -> dict[str, Any]:
    return {
        "service": decision.service,
        "action": decision.action,
        "instant": decision.instant,
        "reason": decision.reason,
        "figures": dict(decision.figures),
        "gain": decision.gain,
        "cost": decision.cost,
        "again": iso(decision.again_at),
    }


def _kept(decision: "ServiceDecision") -> dict[str, Any]:
    import json

    return {
        "service": decision.tableService,
        "action": decision.action,
        "reason": decision.reason,
        "figures": json.loads(decision.figures or "{}"),
        "gain": decision.gain,
        "cost": decision.cost,
        "decided": iso(decision.decidedAt),
        "position": decision.position,
    }


def table_name(table: "TableReference | None") -> str:
    """A table's name, with the catalog if that is another than Hive's default."""
    if table is None:
        return ""
    catalog = "" if table.catalog in (None, "hive") else f"{table.catalog}."
    return f"{catalog}{table.database}.{table.table}"
