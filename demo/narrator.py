"""How the demo speaks: sections, steps with a tick and a time, small tables, a summary.

Knows nothing of Spark. A step that raises is shown with a cross and the exception goes on.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text


class WrongAnswer(Exception):
    """The metastore, or Spark through it, answered something else than it should."""


def cell(value: object) -> Text:
    """A value of a table; NULL looks unlike a text of that name."""
    return Text("NULL", style="dim") if value is None else Text(str(value))


def in_short(error: BaseException) -> str:
    """What went wrong, without Java's stack trace."""
    return str(error).split("JVM stacktrace")[0].split("\n\tat ")[0].strip()


@dataclass
class Section:
    """One chapter of the demo and what happened in it."""

    title: str
    started: float
    steps: int = 0
    checks: int = 0
    seconds: float = 0.0


@dataclass
class Step:
    """A step under way; `check` raises `WrongAnswer`, `note` adds a few words to the line that reports it."""

    section: Section
    remark: str = ""

    def check(self, what: str, actual: object, expected: object) -> None:
        """Fails the step unless `actual` equals `expected`."""
        self.section.checks += 1
        if actual != expected:
            raise WrongAnswer(f"{what}: expected {expected!r}, got {actual!r}")

    def check_contains(self, what: str, actual: object, expected: object) -> None:
        """Fails the step unless the container `actual` holds `expected`."""
        self.section.checks += 1
        if expected not in actual:  # type: ignore[operator]
            raise WrongAnswer(f"{what}: expected {expected!r} in {actual!r}")

    def note(self, remark: str) -> None:
        self.remark = remark


@dataclass
class Narrator:
    """Prints a run as it happens. `show_sql` prints every statement under the step that ran it."""

    console: Console
    show_sql: bool = False
    sections: list[Section] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def section(self, title: str, about: str) -> None:
        """Begins a chapter; what follows is counted in it."""
        self._close_section()
        self.sections.append(Section(title, time.monotonic()))
        self.console.print()
        self.console.print(Rule(f"[bold]{len(self.sections)}. {escape(title)}", align="left", style="cyan"))
        self.console.print(f"[dim]{escape(about)}")

    def _close_section(self) -> None:
        if self.sections and not self.sections[-1].seconds:
            self.sections[-1].seconds = time.monotonic() - self.sections[-1].started

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Runs a step under a spinner, then prints one line about it."""
        section = self.sections[-1]
        step = Step(section)
        begun = time.monotonic()
        try:
            with self.console.status(f"{escape(title)} …", spinner="dots"):
                yield step
        except BaseException:
            self._line("✗", "bold red", title, "", time.monotonic() - begun)
            raise
        section.steps += 1
        self._line("✓", "bold green", title, step.remark, time.monotonic() - begun)

    def _line(self, mark: str, style: str, title: str, remark: str, seconds: float) -> None:
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(width=2)
        line.add_column(ratio=1)
        line.add_column(justify="right", width=9)
        said = Text(title)
        if remark:
            said.append(f"  {remark}", style="cyan")
        line.add_row(Text(f" {mark}", style=style), said, Text(f"{seconds:.2f} s", style="dim"))
        self.console.print(line)

    def statement(self, sql: str) -> None:
        if self.show_sql:
            self.console.print(Padding(Text(" ".join(sql.split()), style="dim"), (0, 0, 0, 6)))

    def rows(self, columns: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> None:
        """A small table of what a query answered."""
        table = Table(title=title or None, title_justify="left", title_style="dim italic", header_style="dim")
        for column in columns:
            table.add_column(column)
        for row in rows:
            table.add_row(*map(cell, row))
        self.console.print(Padding(table, (0, 0, 0, 4)))

    def summary(self, headline: str) -> None:
        """The table at the end: every section with its steps, checks and time."""
        self._close_section()
        table = Table(show_footer=True, header_style="dim")
        table.add_column("section", footer="all")
        table.add_column("steps", justify="right", footer=str(sum(s.steps for s in self.sections)))
        table.add_column("checks", justify="right", footer=str(sum(s.checks for s in self.sections)))
        table.add_column("time", justify="right", footer=f"{time.monotonic() - self.started:.1f} s")
        for section in self.sections:
            table.add_row(section.title, str(section.steps), str(section.checks), f"{section.seconds:.1f} s")
        self.console.print()
        self.console.print(Rule("[bold]Summary", align="left", style="cyan"))
        self.console.print(table)
        self.console.print(f"[bold green]✓[/] {escape(headline)}")
