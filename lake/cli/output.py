"""What commands print: tables and records for people, JSON for programs."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Item = TypeVar("Item")

FITTED = 1000
"""Rows of a table that are fitted to a terminal, at most: that takes a millisecond for each."""


def json_option(command: Command) -> Command:
    """Give a command `--json`; it gets `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def print_json(value: object) -> None:
    """Print `value` as JSON; what JSON doesn't know as its text."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under column names; numbers to the right. Long cells are wrapped in a terminal only, and only if there
    are few rows."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    rows = list(rows)
    of_numbers = [
        bool(rows) and all(isinstance(row[index], int | float) for row in rows) for index in range(len(columns))
    ]
    if len(rows) > FITTED or not Console().is_terminal:
        _print_lines(columns, rows, of_numbers)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column, numbers in zip(columns, of_numbers, strict=True):
        table.add_column(escape(column), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(_text(cell)) for cell in row))
    _print(table)


def print_list(noun: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows as a table on stdout, unless there are none, and how many there are on stderr: `2 groups`."""
    if rows:
        print_table(columns, rows)
    click.echo(counted(len(rows), noun), err=True)


def counted(count: int, noun: str) -> str:
    """A number with what it counts: `1 file`, `2,000 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _print_lines(columns: Sequence[str], rows: Sequence[Sequence[object]], of_numbers: Sequence[bool]) -> None:
    """A row is a line, for grep and awk, however long it is."""
    from rich.cells import cell_len

    texts = [list(columns), *([_text(cell) for cell in row] for row in rows)]
    lengths = [[cell_len(cell) for cell in row] for row in texts]
    widths = [max(column) for column in zip(*lengths, strict=True)]
    for row, own in zip(texts, lengths, strict=True):
        padded = (
            " " * (width - length) + cell if numbers else cell + " " * (width - length)
            for cell, length, width, numbers in zip(row, own, widths, of_numbers, strict=True)
        )
        click.echo("  ".join(padded).rstrip())


def print_record(record: Mapping[str, object]) -> None:
    """Print names and values, one under the other."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in record.items():
        table.add_row(escape(name), escape(_text(value)))
    _print(table)


def with_progress(items: Iterable[Item], saying: str, *, total: int | None = None) -> Iterable[Item]:
    """The items; a terminal shows how many were taken so far. `total` is how many there are, if that is known."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(items, saying, total=total, console=console, transient=True, disable=not console.is_terminal)


def _text(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _print(renderable: object) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        # A file or a pipe has no width: a row is a line, for grep and awk.
        console = Console(highlight=False, width=10_000)
        with console.capture() as capture:
            console.print(renderable)
        click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))
    else:
        console.print(renderable)
