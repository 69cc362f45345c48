"""What a benchmark found, and how it is shown and kept."""

import json
import os
import platform
import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, Self, cast

import psutil
from rich.console import Console
from rich.table import Table

PACKAGES = ("lake-metastore", "psycopg2-binary", "redis", "sqlalchemy", "thrift")


@dataclass(frozen=True)
class Figure:
    """The median of some rounds, or of many samples, with the lowest and the highest; `p99` where they are many.

    `aim`: what the median should be at least, if it is a rate, and at most, if it is a time.
    """

    name: str
    unit: str
    median: float
    lowest: float
    highest: float
    count: int
    p99: float | None = None
    aim: float | None = None

    @classmethod
    def of(
        cls, name: str, unit: str, values: Sequence[float], *, samples: bool = False, aim: float | None = None
    ) -> Self:
        """Of some rounds; with `samples`, of many single measurements, so that a percentile is meaningful."""
        p99 = statistics.quantiles(values, n=100, method="inclusive")[98] if samples and len(values) > 1 else None
        return cls(name, unit, statistics.median(values), min(values), max(values), len(values), p99, aim)


@dataclass
class Section:
    """Figures that belong together; `about` says what was done."""

    title: str
    about: str
    figures: list[Figure] = field(default_factory=list)

    @property
    def headings(self) -> tuple[str, ...]:
        """With aims, if there are any."""
        return ("", "median", "p99", "lowest", "highest", "times", *(["aim"] if self._has_aims else []))

    def rows(self) -> list[list[str]]:
        """What is shown, a cell for each heading."""
        return [[*_cells(figure), *([_aim(figure)] if self._has_aims else [])] for figure in self.figures]

    @property
    def _has_aims(self) -> bool:
        return any(figure.aim is not None for figure in self.figures)


class Shown(Protocol):
    """A part of a report: a dataclass that is shown as a table. Its first column is text, the others are numbers."""

    title: str
    about: str

    @property
    def headings(self) -> Sequence[str]: ...

    def rows(self) -> list[list[str]]: ...


@dataclass
class Report:
    """Of one benchmark. `versions` are of servers that it used, beside those of the packages.

    `arguments` were given on the command line, if they matter. `load` is the machine's average when it began: what
    else went on there.
    """

    name: str
    sections: list[Shown] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    load: float = field(default_factory=lambda: os.getloadavg()[0])
    arguments: str = ""
    day: str = field(default_factory=lambda: date.today().isoformat())

    def section(self, title: str, about: str) -> Section:
        """A new one."""
        new = Section(title, about)
        self.sections.append(new)
        return new

    def show(self, console: Console) -> None:
        for section in self.sections:
            console.print(f"[bold]{section.title}[/bold]. {section.about}")
            table = Table()
            for place, heading in enumerate(section.headings):
                table.add_column(heading, justify="right" if place else "left")
            for row in section.rows():
                table.add_row(*row)
            console.print(table)
            console.print()

    def as_json(self) -> str:
        content = {
            "benchmark": self.name,
            "arguments": self.arguments,
            "day": self.day,
            "machine": machine(),
            "load": self.load,
        }
        sections = [asdict(cast("Any", section)) for section in self.sections]
        return json.dumps({**content, "versions": self._versions(), "sections": sections}, indent=2) + "\n"

    def as_markdown(self) -> str:
        lines = [
            f"# Benchmark: {self.name}",
            "",
            f"`python -m bench {self.name}{self.arguments}`, on {_sentence(machine())}; ",
        ]
        lines[-1] += f"{', '.join(f'{name} {number}' for name, number in self._versions().items())}."
        lines[-1] += f" {self.day}, load average when it began: {self.load:.1f}."
        for section in self.sections:
            lines += ["", f"## {section.title}", "", section.about, ""]
            lines += [_line(section.headings), "|---|" + "---:|" * (len(section.headings) - 1)]
            lines += [_line(row) for row in section.rows()]
        return "\n".join(lines) + "\n"

    def keep(self, directory: Path) -> None:
        """As `<name>.json` and `<name>.md`."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{self.name}.json").write_text(self.as_json())
        (directory / f"{self.name}.md").write_text(self.as_markdown())

    def _versions(self) -> dict[str, str]:
        return {"Python": platform.python_version(), **self.versions, **{name: version(name) for name in PACKAGES}}


def machine() -> dict[str, str | int]:
    """What a figure depends on first."""
    found = re.search(r"^model name\s*:\s*(.+)$", _cpuinfo(), re.MULTILINE)
    return {
        "processor": found[1] if found else platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": platform.system(),
    }


def _cpuinfo() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text() if path.exists() else ""


def _sentence(found: dict[str, str | int]) -> str:
    return f"{found['processor']}, {found['cores']} cores, {found['memory_gib']} GiB, {found['system']}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _aim(figure: Figure) -> str:
    return "" if figure.aim is None else f"{readable(figure.aim)} {figure.unit}"


def _cells(figure: Figure) -> list[str]:
    numbers = (figure.median, figure.p99, figure.lowest, figure.highest)
    median, *others = ("" if number is None else readable(number) for number in numbers)
    return [figure.name, f"{median} {figure.unit}", *others, str(figure.count)]


def readable(number: float) -> str:
    """As people read it, to three digits."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
