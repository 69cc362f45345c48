"""`metastore table-services run`: the service itself."""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from lake.cli.connection import connect, uri_option
from lake.protocol.errors import UserError

if TYPE_CHECKING:
    from lake.maintenance.executors.base import Executor
    from lake.maintenance.executors.hudi import HudiExecutor
    from lake.maintenance.executors.iceberg import IcebergExecutor
    from lake.maintenance.http import HttpPort
    from lake.maintenance.manager import Order
    from lake.maintenance.scheduling import Ranking
    from lake.maintenance.service import Service
    from lake.protocol.lake import ServiceJob

Command = TypeVar("Command", bound=Callable[..., Any])

_PAIR = "NAME=VALUE"
_WITH_OPTIONS = ("spark-submit", "yarn", "kubernetes")


def _pairs(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, separator, content = value.partition("=")
        if not separator or not name.strip():
            raise click.BadParameter(f"{value!r} is not of the form {parameter.metavar}")
        found[name.strip()] = content.strip()
    return found


def _quotas(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    pairs = _pairs(ctx, parameter, values)
    for name, number in pairs.items():
        if not number.isdecimal():
            raise click.BadParameter(f"{number!r} is no number of jobs of {name}")
    return {name: int(number) for name, number in pairs.items()}


def defaults_option(command: Command) -> Command:
    """Give a command `--default`; it gets `defaults`, properties by name."""
    return click.option(
        "--default",
        "defaults",
        multiple=True,
        metavar=_PAIR,
        callback=_pairs,
        help="A property of tables and databases that don't say otherwise, such as compaction.delta-commits=10.",
    )(command)


@dataclass(frozen=True)
class _Given:
    """The command's options."""

    uri: str
    executor: str
    yarn_urls: tuple[str, ...]
    kubernetes_namespace: str
    pod_template: Path | None
    once: bool
    slots: int
    ranking: "Ranking"
    policy: str | None
    quotas: dict[str, int]
    pool_quotas: dict[str, int]
    defaults: dict[str, str]
    spark_options: tuple[str, ...]
    iceberg_jars: str | None
    hudi_jars: str | None
    hudi_options: dict[str, str]
    lease_seconds: int
    nice: int
    http_host: str
    http_port: int | None
    writer_hook: bool | None
    log_level: str
    log_format: Literal["text", "json"]

    def check(self) -> None:
        """Raises UserError without the packages that all services need, UsageError for options that don't fit."""
        try:
            import lake.maintenance.service  # noqa: F401
        except ImportError as error:
            raise UserError(
                f"{error.name} is missing: pip install 'lake-metastore-client[arrow]', or [spark]"
            ) from None
        takes_options = self.executor in _WITH_OPTIONS or self.iceberg_jars is not None or self.hudi_jars is not None
        if self.spark_options and not takes_options:
            which = f"--executor {', '.join(_WITH_OPTIONS)}"
            raise click.UsageError(f"--spark-option is for {which}, --iceberg-jars or --hudi-jars")
        if bool(self.yarn_urls) != (self.executor == "yarn"):
            raise click.UsageError("--executor yarn needs --yarn-url, and no other one does")
        if (self.pod_template is not None) != (self.executor == "kubernetes"):
            raise click.UsageError("--executor kubernetes needs --pod-template, and no other one does")
        if self.hudi_options and self.hudi_jars is None:
            raise click.UsageError("--hudi-option is for --hudi-jars")


@click.command("run")
@uri_option
@click.option(
    "--executor",
    type=click.Choice(("local", "spark-submit", "yarn", "kubernetes", "arrow")),
    default="local",
    show_default=True,
    help="Where plans run: on Spark in this process, by spark-submit, as applications on YARN, as pods on Kubernetes,"
    " or without Spark (compactions only).",
)
@click.option(
    "--yarn-url",
    "yarn_urls",
    multiple=True,
    metavar="URL",
    help="Address of the ResourceManager's web services, such as http://host:8088; repeat it for several.",
)
@click.option(
    "--kubernetes-namespace", default="default", show_default=True, metavar="NAME", help="Where pods are made."
)
@click.option(
    "--pod-template",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="YAML of a pod for Kubernetes, whose first container has Spark and this package.",
)
@click.option("--once", is_flag=True, help="End when nothing is due any more.")
@click.option("--slots", type=click.IntRange(1, 100), default=2, show_default=True, metavar="N", help="Jobs at a time.")
@click.option(
    "--ranking",
    type=click.Choice(("fifo", "gain-per-cost")),
    default="fifo",
    show_default=True,
    help="Which jobs go first, of those with the same priority.",
)
@click.option(
    "--policy",
    metavar="MODULE:FUNCTION|URL",
    help="A function, or an HTTP address, that says which jobs start and in which order; --ranking counts if it fails.",
)
@click.option(
    "--quota",
    "quotas",
    multiple=True,
    metavar="DATABASE=N",
    callback=_quotas,
    help="Jobs of a database at a time, of all services together.",
)
@click.option(
    "--pool-quota",
    "pool_quotas",
    multiple=True,
    metavar="POOL=N",
    callback=_quotas,
    help="Jobs of a pool at a time, which is what table-services.pool of their tables says.",
)
@defaults_option
@click.option(
    "--spark-option", "spark_options", multiple=True, metavar="TEXT", help="Argument of spark-submit, one word each."
)
@click.option(
    "--iceberg-jars",
    metavar="FILES",
    help="Iceberg's runtime for the Spark of spark-submit: its tables are looked after, too, by spark-submit.",
)
@click.option(
    "--hudi-jars",
    metavar="FILES",
    help="Hudi's bundle for the Spark of spark-submit: its tables are looked after, too, by spark-submit.",
)
@click.option(
    "--hudi-option",
    "hudi_options",
    multiple=True,
    metavar=_PAIR,
    callback=_pairs,
    help="Option of Hudi's writer, such as the lock provider of the tables' writers and its settings.",
)
@click.option(
    "--lease-seconds",
    type=click.IntRange(2, 3_600),
    default=60,
    show_default=True,
    metavar="N",
    help="Job lease timeout.",
)
@click.option(
    "--nice",
    type=click.IntRange(0, 19),
    default=5,
    show_default=True,
    metavar="N",
    help="Niceness of the service and of jobs in its processes; 0 gives no way to other processes.",
)
@click.option("--http-host", default="127.0.0.1", show_default=True, help="Where /ready, /metrics and Hudi's hook are.")
@click.option("--http-port", type=click.IntRange(0, 65_535), metavar="N", help="Their port. [default: none]")
@click.option(
    "--writer-hook/--no-writer-hook",
    default=None,
    help="Take over what Hudi's writers ask for there, without a login. "
    "[default: while --http-host is a loopback address, or the service itself doesn't log in]",
)
@click.option("--log-level", type=click.Choice(("debug", "info", "warning", "error")), default="info", help="Its log.")
@click.option("--log-format", type=click.Choice(("text", "json")), default="text", help="Log format.")
def run_services(**options: Any) -> None:
    """Decide what tables need, and run it, until SIGTERM.

    Any number may run on one metastore; each may be killed at any time. With --once it ends when nothing is due.

    \b
    Examples:
      metastore table-services run --uri thrift://metastore:9083
      metastore table-services run --once --executor arrow --default clean.hours-retained=24
      metastore table-services run --executor spark-submit --spark-option=--master=spark://host:7077
    """
    from thrift.Thrift import TException

    from lake.protocol import logging

    given = _Given(**options)
    given.check()
    logging.configure(given.log_level, given.log_format)
    os.nice(given.nice)  # before there are other threads: each has its own, and new ones take over their maker's
    with connect(given.uri) as client:  # says at once if nobody answers
        client.getStatus()
    service = _service(given)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: service.stop())
    port = None if given.http_port is None else _opened(given.http_host, given.http_port, given.writer_hook, service)
    click.echo(f"table services ready {given.uri}")
    sys.stdout.flush()
    try:
        if given.once:
            service.run_once()
        else:
            service.serve()
    except (TException, OSError) as error:
        raise UserError(f"{given.uri}: {error}") from None
    finally:
        if port is not None:
            port.close()


def _service(given: _Given) -> "Service":
    """The service. Raises UserError for what its executors need, and UsageError."""
    from lake.maintenance.scheduling import Quotas
    from lake.maintenance.service import Options, Service

    options = Options(
        slots=given.slots,
        ranking=given.ranking,
        quotas=Quotas(given.quotas, given.pool_quotas),
        defaults=given.defaults,
        lease_seconds=given.lease_seconds,
        order=_order(given.policy, given.ranking),
    )
    iceberg, hudi = _iceberg(given), _hudi(given)
    return Service(given.uri, _executor(given), options, iceberg=iceberg, hudi=hudi, ended=_tell)


def _opened(host: str, port: int, writer_hook: bool | None, service: "Service") -> "HttpPort":
    """The HTTP port, which answers from now on. Raises UserError."""
    from lake.maintenance.http import HttpPort

    try:
        hooked = _takes_over(host) if writer_hook is None else writer_hook
        opened = HttpPort(host, port, service.trouble, service.accept if hooked else None)
    except OSError as error:
        raise UserError(f"no HTTP on {host}:{port}: {error.strerror}") from None
    click.echo(f"table services answer at {opened.address}")
    return opened


def _takes_over(http_host: str) -> bool:
    """Whether anybody who reaches the port may have the service submit jobs, under the service's own name."""
    from lake.protocol.connection.addresses import is_loopback
    from lake.protocol.connection.login import Login

    return is_loopback(http_host) or not Login.from_environment().proves_something


def _executor(given: _Given) -> "Executor | None":
    """The requested executor; None for the service's own, in Arrow. Raises UserError for what it needs."""
    if given.executor == "local":
        from lake.maintenance.executors.spark import SparkExecutor

        return SparkExecutor(given.uri)
    if given.executor == "spark-submit":
        from lake.maintenance.executors.spark_submit import SparkSubmitExecutor

        return SparkSubmitExecutor(given.uri, given.spark_options)
    if given.executor == "yarn":
        from lake.maintenance.executors.clusters import ClusterExecutor
        from lake.maintenance.executors.yarn import ResourceManager, YarnCluster

        return ClusterExecutor(given.uri, YarnCluster(ResourceManager(given.yarn_urls), given.spark_options))
    if given.executor == "kubernetes":
        from lake.maintenance.executors.clusters import ClusterExecutor
        from lake.maintenance.executors.kubernetes_pods import connected

        assert given.pod_template is not None
        pods = connected(given.kubernetes_namespace, given.pod_template, given.spark_options)
        return ClusterExecutor(given.uri, pods)
    return None


def _iceberg(given: _Given) -> "IcebergExecutor | None":
    """What runs services of Iceberg's tables; None without its jars. Raises UserError without Spark."""
    if given.iceberg_jars is None:
        return None
    from lake.maintenance.executors.iceberg import IcebergExecutor

    return IcebergExecutor(given.uri, given.iceberg_jars, given.spark_options)


def _hudi(given: _Given) -> "HudiExecutor | None":
    """What runs services of Hudi's tables; None without its jars. Raises UserError without a lock, or without Spark."""
    if given.hudi_jars is None:
        return None
    from lake.maintenance.executors.hudi import HudiExecutor

    return HudiExecutor(given.uri, given.hudi_jars, given.hudi_options, given.spark_options)


def _order(policy: str | None, ranking: "Ranking") -> "Order | None":
    """The external policy; None without one. Raises UsageError."""
    if policy is None:
        return None
    from lake.maintenance.external_order import ExternalOrder, load
    from lake.maintenance.scheduling import in_order

    return ExternalOrder(load(policy), lambda jobs, now: in_order(jobs, now, ranking))


def _tell(job: "ServiceJob") -> None:
    """A line of progress for each attempt that ended."""
    table = f"{job.table.database}.{job.table.table}" if job.table else ""
    instant = f" {job.instant}" if job.instant else ""
    click.echo(f"{table}: {job.action}{instant} {job.outcome} (job {job.id}, {job.state}, attempt {job.attempts})")
    sys.stdout.flush()
