"""Lists and runs the benchmarks."""

import importlib
from pathlib import Path

import click
from rich.console import Console

from bench.figures import Report

BENCHMARKS = {
    "events": "the event log: writing beside it, its latency and its throughput",
    "timeline": "timelines: commits and reads in tables of a few files and of a million",
}
"""What there is, by the module's name; each has a function `run(quick, rounds)` that returns a Report."""


@click.command(epilog="\b\n" + "\n".join(f"{name}: {about}" for name, about in BENCHMARKS.items()))
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHMARKS)))
@click.option("--quick", is_flag=True, help="A few seconds, to see that it runs; the figures mean nothing.")
@click.option("--rounds", type=click.IntRange(min=1), help="Of each measurement; their median counts.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures of one benchmark here.")
@click.option("--results", type=click.Path(path_type=Path), help="Write <name>.json and <name>.md into this directory.")
def main(names: tuple[str, ...], quick: bool, rounds: int | None, json_file: Path | None, results: Path | None) -> None:
    """Run benchmarks, or all of them, and show what they found."""
    chosen = names or tuple(BENCHMARKS)
    if json_file is not None and len(chosen) != 1:
        raise click.UsageError("--json is for one benchmark: name it")
    for name in chosen:
        report: Report = importlib.import_module(f"bench.{name}").run(quick, rounds)
        report.show(Console())
        if json_file is not None:
            json_file.write_text(report.as_json())
        if results is not None:
            report.keep(results)


if __name__ == "__main__":
    main(prog_name="python -m bench")
