"""Keyed lake tables of ours beside Hudi's and Paimon's: the same SQL on the same rows, in turn."""

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.comparison import Compared, Comparison
from bench.figures import Figure, Report, readable
from bench.keyed.session import SETTINGS
from bench.options import Options
from bench.progress import noted, say
from lake.protocol.errors import UserError
from tests.interop import maven
from tests.spark.session import LINES, ROOT
from tests.support.server import MetastoreServer

HUDI, PAIMON = "1.2.0", "0.9.0"
"""The newest releases for Spark 3.5 that the registry has."""
JARS = {
    "hudi": f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{HUDI}",
    "paimon": f"org.apache.paimon:paimon-spark-3.5:{PAIMON}",
}
NAMES = {"hudi": "Hudi", "paimon": "Paimon"}
AIMS = {"hudi": 2.0, "paimon": 1.3}

SMALL, LAST_DAYS, TEN = 1_000, 2, 10
WARM = (8_000, 4)
"""Rows and days of the small tables on which everything is done once before."""

Seconds = dict[str, list[float]]
"""By side."""


@dataclass(frozen=True)
class Sizes:
    """`rounds` of what can be repeated; `commits` that are small."""

    rows: int
    days: int
    rounds: int
    commits: int


FULL = Sizes(rows=10_000_000, days=100, rounds=3, commits=11)
QUICK = Sizes(rows=20_000, days=10, rounds=1, commits=11)

_ABOUT = (
    "{rows:,} rows of 20 columns in {days} days of 4 buckets. First the table is loaded, then changed from the top of "
    "the list to its small commits; what comes below reads what they left. Each side has a JVM of its own with Spark "
    "{spark} (local[2], {memory} of memory, {partitions} shuffle partitions, Kryo), and gets the same statements in "
    "turn, after a warm-up with small tables. The rows are compared after the commits and after the compaction. Hudi: "
    "the simple bucket index, bulk insert for the load, its metadata table as it is by default; no compaction, "
    "cleaning or archiving by writers, since ours don't do it either. Paimon: merge-on-read is `write-only`; "
    "copy-on-write compacts with each commit. Reads are of all columns, into nothing. Changes are the rows as they are "
    "now on the other sides; ours give pre-images and deletes, too."
)


class _Tables(Comparison):
    """Rows by the kind of table, in place of the client."""

    @property
    def headings(self) -> list[str]:
        return ["", "table", *super().headings[2:]]


def run(options: Options) -> Report:
    """All of it. Raises UserError where something that it needs is missing, or if the sides have different rows."""
    usual = QUICK if options.quick else FULL
    rows = options.rows or usual.rows
    # As many rows in a day as there are in the whole of it.
    days = max(TEN, min(usual.days, rows * FULL.days // FULL.rows))
    sizes = Sizes(rows, days, options.rounds or usual.rounds, usual.commits)
    if not LINES["3.5"].exists():
        raise UserError("PySpark 3.5 is not set up: run tools/setup.sh --spark35")
    report = Report("lake", versions={"Hudi": HUDI, "Paimon": PAIMON}, arguments=options.arguments)
    compared = {side: _Tables(f"Ours beside {name}", "", (name, "ours")) for side, name in NAMES.items()}
    files, young = [], {}
    with _sides() as sides:
        report.versions["Spark"] = sides["ours"].version
        about = _about(sizes, sides["ours"].version)
        for kind in ("copy-on-write", "merge-on-read"):
            if not options.quick:
                say(f"warming up with small tables, {kind}")
                for _ in _Steps(sides, kind, Sizes(*WARM, rounds=2, commits=sizes.commits)).all():
                    pass
            steps = _Steps(sides, kind, sizes)
            for name, seconds in steps.all():
                for side in NAMES:
                    found = (seconds[side], seconds["ours"])
                    compared[side].compared.append(Compared.of(name, kind, "s", found, AIMS[side]))
                    say(f"{NAMES[side]}: {compared[side].compared[-1]}")
            files.append((kind, steps.files()))
            young[kind] = steps.growth()
    for each in compared.values():
        each.about = about
        report.sections.append(each)
    _beside_files(report, files)
    _growth(report, young)
    return report


# -- the processes -----------------------------------------------------------------------------------------------


class _Process:
    """One side."""

    def __init__(self, program: "subprocess.Popen[str]", log: Path) -> None:
        assert program.stdin is not None and program.stdout is not None
        self._asked: IO[str] = program.stdin
        self._answers: IO[str] = program.stdout
        self._log = log
        self.version = str(self._answer())

    def __call__(self, call: str, table: str, *arguments: Any) -> Any:
        self._asked.write(json.dumps({"call": call, "table": table, "arguments": arguments}) + "\n")
        self._asked.flush()
        return self._answer()

    def _answer(self) -> Any:
        line = self._answers.readline()
        if not line:
            raise UserError(f"Spark's program ended: {self._log.read_text(errors='replace')[-2000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise UserError(answer["error"])
        return answer["value"]


@contextmanager
def _sides() -> Iterator[dict[str, _Process]]:
    try:
        jars = {side: maven.class_path([jar], exclusions=["*:*"])[0] for side, jar in JARS.items()}
    except maven.Unavailable as reason:
        raise UserError(str(reason)) from None
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        server = stack.enter_context(MetastoreServer(home / "data", "--log-level", "warning"))
        stack.enter_context(noted(f"measuring, up to 60 minutes; Spark logs to {home}"))
        found = {}
        for side, more in {"ours": ["--uri", server.uri], **{k: ["--jar", str(v)] for k, v in jars.items()}}.items():
            directory = home / side
            directory.mkdir()
            log = home / f"{side}.log"
            program = stack.enter_context(
                subprocess.Popen(
                    [str(LINES["3.5"]), "-m", "bench.keyed.program", "--side", side, "--home", str(directory), *more],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stack.enter_context(log.open("wb")),
                    text=True,
                    cwd=directory,
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                )
            )
            stack.callback(program.stdin.close)  # type: ignore[union-attr]
            found[side] = _Process(program, log)
        yield found


# -- what is done ------------------------------------------------------------------------------------------------


class _Steps:
    """A table of one kind on each side, with the same rows: one step after the other, each in turn on all sides."""

    def __init__(self, sides: dict[str, _Process], kind: str, sizes: Sizes) -> None:
        self._sides = sides
        self._kind = kind
        self._sizes = sizes
        self._table = f"{kind} {sizes.rows}"
        self._version = 1
        for ask in sides.values():
            ask("create", self._table, kind, sizes.rows, sizes.days)

    def all(self) -> Iterator[tuple[str, Seconds]]:
        """The names of the steps, and what they took. Raises UserError if the sides have different rows."""
        rows, rounds = self._sizes.rows, self._sizes.rounds
        per_mille = max(2, rows // self._sizes.days * LAST_DAYS * 1_000 // rows)  # of the rows of the last days, one
        yield "load", self._turns(1, "load")
        yield "MERGE 0.1 % in the last two days", self._changes(rounds, "merge", max(1, rows // 1_000), LAST_DAYS)
        yield "MERGE 1 % anywhere", self._changes(1, "merge", max(1, rows // 100), None)
        yield "UPDATE 0.1 % in the last two days", self._changes(rounds, "update", per_mille, LAST_DAYS)
        yield "UPDATE 1 % anywhere", self._changes(1, "update", 100, None)
        yield f"MERGE {SMALL:,} rows", self._changes(self._sizes.commits, "merge", SMALL, LAST_DAYS)
        self._check()
        yield "read the snapshot", self._turns(rounds, "snapshot")
        yield "changes of one commit", self._turns(rounds, "changes", 1)
        yield f"changes of {TEN} commits", self._turns(rounds, "changes", TEN)
        yield "look up 1 key", self._turns(rounds, "lookup", 1)
        yield "look up 100 keys", self._turns(rounds, "lookup", 100)
        yield "plan a SELECT … LIMIT 1", self._turns(5, "planned")
        if self._kind == "merge-on-read":
            yield "compact", self._turns(1, "compact")
            self._check()
            yield "read the compacted snapshot", self._turns(rounds, "snapshot")

    def files(self) -> tuple[list[float], list[float]]:
        """Reads of the latest snapshot, without log files, and of the same files by Spark alone."""
        ours, found = self._sides["ours"], ([], [])  # type: tuple[_Process, tuple[list[float], list[float]]]
        for _ in range(self._sizes.rounds + 1):
            found[0].append(ours("files", self._table))
            found[1].append(ours("snapshot", self._table))
        return found[0][1:], found[1][1:]

    def growth(self) -> tuple[list[float], list[float]]:
        """Small merges into the last day of a table of a tenth of the days, and of this one; of ours alone."""
        ours, young = self._sides["ours"], f"{self._table}, young"
        ours("create", young, self._kind, self._sizes.rows // TEN, max(1, self._sizes.days // TEN))
        ours("load", young)
        found: tuple[list[float], list[float]] = ([], [])
        for _ in range(2 * self._sizes.rounds + 2):
            self._version += 1
            for table, seconds in zip((young, self._table), found, strict=True):
                seconds.append(ours("merge", table, SMALL, self._version, 1))
        return found[0][2:], found[1][2:]  # both had been at rest

    def _changes(self, times: int, call: str, count: int, last_days: int | None) -> Seconds:
        found: Seconds = {side: [] for side in self._sides}
        for _ in range(times):
            self._version += 1
            for side, ask in self._sides.items():
                found[side].append(ask(call, self._table, count, self._version, last_days))
        return found

    def _turns(self, times: int, call: str, *arguments: Any) -> Seconds:
        found: Seconds = {side: [] for side in self._sides}
        for _ in range(times):
            for side, ask in self._sides.items():
                found[side].append(ask(call, self._table, *arguments))
        return found

    def _check(self) -> None:
        sums = {side: ask("sums", self._table) for side, ask in self._sides.items()}
        if len({json.dumps(each) for each in sums.values()}) > 1:
            raise UserError(f"the sides have different rows of {self._table}: {sums}")


# -- the report --------------------------------------------------------------------------------------------------


def _about(sizes: Sizes, spark: str) -> str:
    return _ABOUT.format(
        rows=sizes.rows,
        days=sizes.days,
        spark=spark,
        memory=SETTINGS["spark.driver.memory"],
        partitions=SETTINGS["spark.sql.shuffle.partitions"],
    )


def _beside_files(report: Report, found: list[tuple[str, tuple[list[float], list[float]]]]) -> None:
    ratios = [
        f"{readable(statistics.median(ours) / statistics.median(files))} times ({kind})"
        for kind, (files, ours) in found
    ]
    about = (
        f"Ours alone, without log files: the table takes {', '.join(ratios)} as long as `spark.read.parquet` of its"
        " files; the aim is 1.1."
    )
    section = report.section("A clean table beside its files", about)
    for kind, (files, ours) in found:
        section.figures += [Figure.of(f"{kind}, files", "s", files), Figure.of(f"{kind}, table", "s", ours)]


def _growth(report: Report, grown: dict[str, tuple[list[float], list[float]]]) -> None:
    """What a small merge costs in a table with ten times as many days."""
    ratios = [
        f"{readable(statistics.median(old) / statistics.median(young))} times as long ({kind})"
        for kind, (young, old) in grown.items()
    ]
    about = (
        f"Ours alone: {SMALL:,} rows into the last day. In the older table it takes {', '.join(ratios)}; the aim is"
        " 1.2."
    )
    section = report.section("An increment in a table ten times as old", about)
    for kind, (young, old) in grown.items():
        section.figures += [Figure.of(f"{kind}, a tenth", "s", young), Figure.of(f"{kind}, all days", "s", old)]
