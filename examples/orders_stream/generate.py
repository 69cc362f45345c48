"""Writes the order-change stream as files of JSON lines: `python -m examples.orders_stream.generate --help`."""

from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from examples.orders_stream.files import write_files
from examples.orders_stream.stream import stream_of, stream_options


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--rows", type=click.IntRange(1), default=20_000, show_default=True, help="How many rows.")
@click.option(
    "--rows-per-second",
    type=click.FloatRange(0, min_open=True),
    help="At which pace. [default: as fast as it goes]",
)
@stream_options
def main(directory: Path, rows: int, rows_per_second: float | None, seed: int, shards: int, step: float) -> None:
    """Write the order-change stream into DIRECTORY, a file at a time; a second run continues an interrupted one."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns) as progress:
        task = progress.add_task("order changes", total=rows)
        write_files(
            stream_of(seed, shards, step),
            directory,
            rows,
            rows_per_second=rows_per_second,
            written=lambda so_far: progress.update(task, completed=so_far),
        )


if __name__ == "__main__":
    main()
