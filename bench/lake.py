"""Keyed lake tables of ours beside Hudi's: the same rows by the same Spark, in turn."""

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.comparison import Compared, Comparison
from bench.figures import Figure, Report, readable
from bench.options import Options
from bench.progress import noted, say
from lake.protocol.errors import UserError
from tests.interop import maven
from tests.spark.session import LINES, ROOT
from tests.support.server import MetastoreServer

HUDI = "1.2.0"
BUNDLE = f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{HUDI}"
"""The newest release for Spark 3.5."""

AIM, AIM_OF_SMALL = 2, 5
_SMALL = ("commit ", "changes ")


@dataclass(frozen=True)
class Sizes:
    """`rounds` of what can be repeated; `commits` that are small, for so many `seconds` of each step at most."""

    rows: int
    days: int
    rounds: int
    commits: int
    seconds: float
    warm: bool = True


FULL = Sizes(rows=10_000_000, days=100, rounds=3, commits=50, seconds=420)
QUICK = Sizes(rows=20_000, days=10, rounds=1, commits=11, seconds=60, warm=False)

_ABOUT = (
    "{rows:,} rows of 20 columns in {days} days of 4 buckets, in seconds. First the table is loaded, then changed from "
    "the top of the list to its small commits; what comes below reads what they left. Both sides are called in turn "
    "from one program, in one session of Spark {spark} (local[2], {memory} of memory, {partitions} shuffle partitions, "
    "Kryo), after a warm-up with small tables. Of Hudi: the simple bucket index, `bulk_insert` for the load, its "
    "metadata table as it is by default, no sync with Hive; no compaction, cleaning or archiving by writers, since "
    "ours don't do it either. Reads are Spark's, of all columns, into nothing. Changes are Hudi's incremental query, "
    "which gives the rows as they are now; ours give pre-images and deletes, too. A lookup is `LakeTable.lookup` "
    "beside a query with lists of the days and keys, with Hudi's data skipping."
)


class _Tables(Comparison):
    """Rows by the kind of table, in place of the client."""

    @property
    def headings(self) -> list[str]:
        return ["", "table", *super().headings[2:]]


def run(options: Options) -> Report:
    """All of it. Raises UserError where something that it needs is missing."""
    sizes = _sizes(options)
    try:
        (jar,) = maven.class_path([BUNDLE], exclusions=["*:*"])
    except maven.Unavailable as reason:
        raise UserError(str(reason)) from None
    if not LINES["3.5"].exists():
        raise UserError("PySpark 3.5 is not set up: run tools/setup.sh --spark35")
    report = Report("lake", versions={"Hudi": HUDI}, arguments=options.arguments)
    compared = _Tables("Ours beside Hudi", "", ("Hudi", "ours"))
    through: dict[str, int] = {}
    grown: list[tuple[str, Any]] = []
    for found in _measured(sizes, jar):
        if "spark" in found:
            report.versions["Spark"] = found["spark"]
            compared.about = _about(sizes, found)
        elif "growth" in found:
            grown.append((found["kind"], found["growth"]))
        else:
            compared.compared.append(_compared(found))
            through[f"{found['name']}, {found['kind']}"] = found["driver_bytes"]
            say(str(compared.compared[-1]))
    report.sections.append(compared)
    _growth(report, grown)
    _through_driver(report, through)
    return report


def _sizes(options: Options) -> Sizes:
    usual = QUICK if options.quick else FULL
    rows = options.rows or usual.rows
    # As many rows in a day as there are in the whole of it.
    days = max(10, min(usual.days, rows * FULL.days // FULL.rows))
    return Sizes(rows, days, options.rounds or usual.rounds, usual.commits, usual.seconds, usual.warm)


def _measured(sizes: Sizes, jar: Path) -> Iterator[dict[str, Any]]:
    """What the program tells, as it does."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        home = Path(directory)
        with MetastoreServer(home / "data", "--log-level", "warning") as server:
            command = [str(LINES["3.5"]), "-m", "bench.keyed.program", "--uri", server.uri, "--hudi", str(jar)]
            command += ["--home", str(home), "--rows", str(sizes.rows), "--days", str(sizes.days)]
            command += ["--rounds", str(sizes.rounds), "--commits", str(sizes.commits), "--seconds", str(sizes.seconds)]
            command += [] if sizes.warm else ["--cold"]
            yield from _results_of(command, home)


def _results_of(command: list[str], home: Path) -> Iterator[dict[str, Any]]:
    log = home / "spark.log"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (
        noted(f"measuring, up to 40 minutes; Spark logs to {log}"),
        log.open("wb") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=home, env=environment
        ) as program,
    ):
        assert program.stdout is not None
        for line in program.stdout:
            found = json.loads(line)
            if "doing" in found:
                say(found["doing"])
            else:
                yield found
    if program.returncode:
        raise UserError(f"Spark's program ended with {program.returncode}: {log.read_text(errors='replace')[-2000:]}")


def _about(sizes: Sizes, found: dict[str, Any]) -> str:
    settings = found["settings"]
    return _ABOUT.format(
        rows=sizes.rows,
        days=sizes.days,
        spark=found["spark"],
        memory=settings["spark.driver.memory"],
        partitions=settings["spark.sql.shuffle.partitions"],
    )


def _compared(found: dict[str, Any]) -> Compared:
    ours, theirs = found["seconds"]
    aim = AIM_OF_SMALL if found["name"].startswith(_SMALL) else AIM
    return Compared.of(found["name"], found["kind"], "s", (theirs, ours), aim)


def _growth(report: Report, grown: list[tuple[str, Any]]) -> None:
    """What a small upsert costs in a table with ten times as many days."""
    ratios = []
    figures = []
    for kind, found in grown:
        for days, seconds in zip(found["days"], found["seconds"], strict=True):
            figures.append(Figure.of(f"{kind}, {days} days", "s", seconds))
        young, old = map(statistics.median, found["seconds"])
        ratios.append(f"{readable(old / young)} times as long ({kind})")
    about = (
        f"Ours alone: 1,000 rows into the last day. In the older table it takes {', '.join(ratios)}; the aim is 1.2."
    )
    report.section("An increment in a table ten times as old", about).figures += figures


def _through_driver(report: Report, through: dict[str, int]) -> None:
    about = (
        "Bytes that tasks of ours have sent to Spark's driver in one step, with their metrics: names of files, no row."
    )
    section = report.section("Through the driver", about)
    section.figures += [Figure.of(name, "bytes", [count]) for name, count in through.items()]
