"""Lists and runs the benchmarks."""

import importlib
import re
import sys
from pathlib import Path

import click
from rich.console import Console

from bench.figures import Report
from bench.options import Options
from lake.protocol.errors import UserError
from tests.support.server import MetastoreServer

BENCHMARKS = {
    "hive": "calls of every kind, ours beside Hive's own server on the same Postgres (a quarter of an hour)",
    "hive4": "reads and small writes beside Hive 4's server, with its cache and without (ten minutes)",
    "scale": "large tables and databases, thousands of connections, long replies (five minutes)",
    "events": "the event log: writing beside it, its latency and its throughput",
    "costs": "what calls of each kind cost Postgres, and what it keeps of them",
    "table-services": "the table management service: decisions, many tables, writers beside it (40 minutes)",
    "timeline": "timelines: commits and reads in tables of a few files and of a million",
    "security": "calls with logins, TLS and rights beside an open server; logins; half-open ones (three minutes)",
    "rights": "decisions about access, filters of names, the audit log (a minute)",
    "pipeline": "layers of tables: increments beside the full computation (half an hour; `--rows 500000` five)",
    "tpch": "TPC-H's queries as layers: refreshes beside computing all (ten minutes; `--scale 1` half an hour)",
    "chains": "random chains of layers: increments beside the first refresh, which computes all (25 minutes)",
    "capture": "rows of ten columns from a Postgres into a raw table, by the log and by a snapshot (a minute)",
    "changes": "captured tables and definitions change: held, replayed, from a day on, beside (20 minutes)",
    "iceberg": "Iceberg's REST catalog beside Iceberg's reference server (five minutes)",
    "federation": "a front of several metastores: calls, long replies, a backend that hangs (a minute)",
    "migration": "a Hive metastore comes over: 100,000 partitions, and a table of 1,000,000 (half an hour)",
    "lake": "keyed tables beside Hudi's, on the same Spark 3.5 (forty minutes; `--rows 200000` ten)",
}
"""What there is, by the module's name (`-` for `_`); each has a function `run(options)` that returns a Report."""


def _pattern(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise click.BadParameter(f"not a regular expression: {error}") from None
    return value


@click.command(epilog="\b\n" + "\n".join(f"{name}: {about}" for name, about in BENCHMARKS.items()))
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHMARKS)))
@click.option("--quick", is_flag=True, help="Small and few, to see that it runs; the figures mean nothing.")
@click.option("--rounds", type=click.IntRange(min=1), help="Of each measurement; their median counts.")
@click.option(
    "--only",
    default="",
    callback=_pattern,
    help="Operations (hive), parts (scale) that match this pattern.",
)
@click.option(
    "--against",
    default="hive",
    help="What `hive` compares with: hive, ours (the same server twice), or the directory of another checkout.",
)
@click.option("--rows", type=click.IntRange(min=10_000), help="Of the tables that `lake` and `pipeline` make.")
@click.option(
    "--hive4",
    type=click.Choice(["4.0.1", "4.1.0"]),
    help="The release that `hive4` compares with; by default the last.",
)
@click.option("--scale", type=click.FloatRange(min=0.001), help="TPC-H's scale factor, for `tpch`.")
@click.option("--redis", is_flag=True, help="Give our server a Redis for its cache (hive, scale).")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures of one benchmark here.")
@click.option("--results", type=click.Path(path_type=Path), help="Write <name>.json and <name>.md into this directory.")
def main(
    names: tuple[str, ...],
    quick: bool,
    rounds: int | None,
    only: str,
    against: str,
    rows: int | None,
    hive4: str | None,
    scale: float | None,
    redis: bool,
    json_file: Path | None,
    results: Path | None,
) -> None:
    """Run benchmarks (by default `hive`) and show what they found."""
    chosen = names or ("hive",)
    if json_file is not None and len(chosen) != 1:
        raise click.UsageError("--json is for one benchmark: name it")
    if against not in ("hive", "ours") and not (Path(against) / "metastore").is_dir():
        raise click.BadParameter(f"{against} is neither hive nor ours, nor a checkout", param_hint="--against")
    options = Options(quick, rounds, only, against, redis, rows, hive4, scale)
    MetastoreServer.is_copy = False  # what is measured starts as users start it
    for name in chosen:
        try:
            report: Report = importlib.import_module(f"bench.{name.replace('-', '_')}").run(options)
        except UserError as error:
            sys.exit(f"{name}: {error}")
        report.show(Console() if sys.stdout.isatty() else Console(width=160))
        if json_file is not None:
            json_file.write_text(report.as_json())
        if results is not None:
            report.keep(results)


if __name__ == "__main__":
    main(prog_name="python -m bench")
