"""What the watcher of a stream sees: a moving table in a terminal, a line now and then anywhere else."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

SECONDS_BETWEEN_LINES = 4.0


@dataclass(frozen=True)
class Moment:
    """How things stand: what was generated and written, what the metastore says, what two queries count.

    `offline` and `hinted` are rows by partition, the one as any job sees them, the other with includeUnCommit.
    """

    generated: int
    total: int
    written: int
    watermark: int | None
    rerouted: int
    ready: Mapping[str, bool] = field(default_factory=dict)
    offline: Mapping[str, int] = field(default_factory=dict)
    hinted: Mapping[str, int] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        ready = sum(self.ready.values())
        return (
            f"watermark {clock(self.watermark)}, {ready} partitions ready, {len(self.ready) - ready} filling, "
            f"{self.rerouted} late rows went to a later one; an offline query counts {sum(self.offline.values())}, "
            f"a hinted one {sum(self.hinted.values())}"
        )


def clock(millis: int | None) -> str:
    """An event time as a person reads it."""
    return "not known yet" if millis is None else f"{datetime.fromtimestamp(millis / 1000, UTC):%d %b %H:%M}"


class View:
    """Shows moments as they come; `SECONDS_BETWEEN_LINES` bounds how many where nothing can move."""

    def __init__(self, console: Console, usual_rows: int) -> None:
        """`usual_rows` is how many rows fill a partition's bar."""
        self._console = console
        self._usual_rows = usual_rows
        self._live: Live | None = None
        self._next_line = 0.0

    @contextmanager
    def moving(self) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=4) as self._live:
            yield
        self._live = None

    def show(self, moment: Moment) -> None:
        if self._live is not None:
            self._live.update(self._table(moment))
        elif time.monotonic() >= self._next_line:
            self._console.print(f"    {moment.generated} of {moment.total} rows; {moment.headline}")
            self._next_line = time.monotonic() + SECONDS_BETWEEN_LINES

    def _table(self, moment: Moment) -> RenderableType:
        table = Table(show_footer=True, header_style="dim", title_justify="left")
        table.title = Text(f"event time has come to {clock(moment.watermark)}", style="bold")
        table.add_column("partition", footer="all")
        table.add_column("filling", width=22)
        table.add_column("offline", justify="right", footer=str(sum(moment.offline.values())), width=8)
        table.add_column("with hint", justify="right", footer=str(sum(moment.hinted.values())), width=9)
        table.add_column("", width=8)
        for name, ready in sorted(moment.ready.items()):
            rows = moment.hinted.get(name, 0)
            colour = "green" if ready else "yellow"
            bar = ProgressBar(
                total=max(self._usual_rows, rows),
                completed=rows,
                width=22,
                complete_style=colour,
                finished_style=colour,
            )
            table.add_row(
                name,
                bar,
                str(moment.offline[name]) if name in moment.offline else Text("·", style="dim"),
                str(rows),
                Text("✓ ready", style="bold green") if ready else Text("filling", style="yellow"),
            )
        stream = Table.grid(padding=(0, 1))
        stream.add_row(
            " rows",
            ProgressBar(total=moment.total, completed=moment.generated, width=40),
            f"{moment.generated} of {moment.total} generated, {moment.written} written,"
            f" {moment.rerouted} late ones to a later partition",
        )
        return Group(table, stream)
