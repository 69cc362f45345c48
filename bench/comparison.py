"""Two servers beside each other: figures of the same operations, and how many times better the second one is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.chart import Bar, draw
from bench.figures import Figure, Report, readable

PER_SECOND = "calls/s"
"""The unit of figures that are better when higher; all others are times."""
RAW, HIVE_CLIENT = "raw", "Hive's"


@dataclass(frozen=True)
class Compared:
    """An operation on both, by one kind of client; `target` is the ratio that is aimed at."""

    operation: str
    client: str
    theirs: Figure
    ours: Figure
    ratio: float
    target: float | None

    @classmethod
    def of(
        cls,
        operation: str,
        client: str,
        unit: str,
        found: Sequence[Sequence[float]],
        target: float | None = None,
        *,
        samples: bool = False,
    ) -> "Compared":
        """Of what was found on both, as `Figure.of` takes it: above 1 the second is better, whatever the unit."""
        theirs, ours = (Figure.of(operation, unit, values, samples=samples) for values in found)
        better, worse = (ours, theirs) if ours.unit == PER_SECOND else (theirs, ours)
        return cls(operation, client, theirs, ours, better.median / worse.median, target)

    def __str__(self) -> str:
        """In one line, without names of the servers."""
        figures = " beside ".join(f"{readable(figure.median)} {figure.unit}" for figure in (self.theirs, self.ours))
        return f"{self.operation} ({self.client}): {figures}, {readable(self.ratio)}×"


@dataclass
class Comparison:
    """Rows that belong together; `names` are the servers'. `missed` says what could not be measured, and why.

    `charted` says whether they are in the report's chart.
    """

    title: str
    about: str
    names: tuple[str, str]
    compared: list[Compared] = field(default_factory=list)
    missed: dict[str, str] = field(default_factory=dict)
    charted: bool = True

    @property
    def headings(self) -> list[str]:
        theirs, ours = self.names
        return ["", "client", theirs, "p99", ours, "p99", "times", "ratio", "aim"]

    def rows(self) -> list[list[str]]:
        """What is shown, a cell for each heading."""
        shown = [
            [
                row.operation,
                row.client,
                *(f"{readable(row.theirs.median)} {row.theirs.unit}", _p99(row.theirs)),
                *(f"{readable(row.ours.median)} {row.ours.unit}", _p99(row.ours)),
                str(row.ours.count),
                f"{readable(row.ratio)}×",
                f"{row.target:g}×" if row.target else "",
            ]
            for row in self.compared
        ]
        return shown + [[name, reason, *[""] * 7] for name, reason in self.missed.items()]


class ComparisonReport(Report):
    """A report with a chart of its ratios."""

    def keep(self, directory: Path) -> None:
        """As `<name>.json`, `<name>.md` and `<name>.svg`."""
        super().keep(directory)
        (directory / f"{self.name}.svg").write_text(self._chart())

    def as_markdown(self) -> str:
        title, rest = super().as_markdown().split("\n", 1)
        return f"{title}\n\n![How many times better each operation is]({self.name}.svg)\n{rest}"

    def _chart(self) -> str:
        parts = [section for section in self.sections if isinstance(section, Comparison) and section.charted]
        theirs, ours = parts[0].names
        bars: dict[str, list[Bar]] = {}
        for part in parts:
            for row in part.compared:
                if row.client == RAW:
                    bars.setdefault(part.title, []).append(Bar(row.operation, row.ratio, row.target))
        return draw(f"{ours} beside {theirs}: times faster", bars)


def _p99(figure: Figure) -> str:
    return "" if figure.p99 is None else readable(figure.p99)
