"""The way over from a Hive metastore: import, verification and cut-over of large tables, from its database and by
Thrift."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.figures import Figure, Report
from bench.hive_server import HiveOnPostgres
from bench.options import Options
from bench.postgres import LoopbackPostgres
from bench.progress import noted, say
from bench.shapes import DATABASE, Shape
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from tests.support import builders
from tests.support.server import MetastoreServer

TABLE = "events"
COLUMNS = 50
THREADS = 4
AIMS = {("database", "import"): 20_000, ("Thrift", "import"): 5_000}
"""Partitions a second."""
FREEZE_SECONDS, VERIFY_SECONDS = 10, 300
"""Aims: for how long a database is frozen at a cut-over, and for the verification of the largest table."""
COMMAND_SECONDS = 3_600
MANY = "many"
"""A database with the largest table."""


class Sizes(NamedTuple):
    """`many`: the partitions of the largest table."""

    partitions: int
    many: int
    rounds: int


FULL = Sizes(100_000, 1_000_000, 1)
QUICK = Sizes(2_000, 5_000, 1)


def run(options: Options) -> Report:
    """Hive 2.3 on Postgres comes over to a server of ours. Partitions are put into Hive's database by SQL."""
    sizes = QUICK if options.quick else FULL
    report = Report("migration", arguments=options.arguments)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        home = Path(directory)
        postgres = LoopbackPostgres(home / "postgres")
        try:
            url = postgres.create("hive")
            (home / "hive").mkdir()
            with HiveOnPostgres(home / "hive", url, home / "warehouse") as hive:
                _fill(hive, DATABASE, TABLE, Shape(COLUMNS, sizes.partitions))
                sources = {
                    "database": postgres.local(url).render_as_string(hide_password=False),
                    "Thrift": f"thrift://{hive.host}:{hive.port}",
                }
                for way, source in sources.items():
                    if options.wants(way):
                        _measure(report, home, way, source, sizes._replace(rounds=options.rounds or sizes.rounds))
                if options.wants(MANY):
                    _fill(hive, MANY, MANY, Shape(COLUMNS, sizes.many))
                    _measure_many(report, home, sources["database"], sizes.many)
        finally:
            postgres.close()
    return report


def _fill(hive: HiveOnPostgres, database: str, table: str, shape: Shape) -> None:
    with (
        noted(f"filling {shape.partitions:,} partitions"),
        ThriftClient(hive.host, hive.port, timeout=600) as client,
    ):
        client.create_database(builders.database(database))
        client.create_table(shape.table(table).replace(dbName=database))
        client.add_partition(shape.partition(table, 0).replace(dbName=database))
        hive.multiply(table, shape, directories=False)


def _measure(report: Report, home: Path, way: str, source: str, sizes: Sizes) -> None:
    section = report.section(
        f"By {way}",
        f"{sizes.partitions:,} partitions of {COLUMNS} columns, from Hive 2.3 on Postgres, with {THREADS} threads:"
        " the command from its start to its end.",
    )
    rates: dict[str, list[float]] = {"import": [], "import again": [], "verify": []}
    freezes: list[float] = []
    for turn in range(sizes.rounds):
        with MetastoreServer(home / f"ours_{way}_{turn}", "--log-level", "error") as ours:
            for name, values in rates.items():
                began = time.perf_counter()
                _migrate(name.split()[0], source, DATABASE, ours, sizes.partitions)
                values.append(sizes.partitions / (time.perf_counter() - began))
                say(f"{name}, by {way}: {values[-1]:,.0f} partitions/s")
            [moved] = _run("cut-over", source, DATABASE, ours, DATABASE, "--frozen-by-hand")
            freezes.append(moved["frozen_seconds"])
            if way == "Thrift":  # otherwise the next server couldn't import it
                _run("roll-back", source, DATABASE, ours, DATABASE, "--frozen-by-hand")
            say(f"cut-over, by {way}: frozen for {freezes[-1]:.1f} s")
    for name, values in rates.items():
        section.figures.append(Figure.of(name, "partitions/s", values, aim=AIMS.get((way, name))))
    section.figures.append(Figure.of("frozen at cut-over", "s", freezes, aim=FREEZE_SECONDS))


def _measure_many(report: Report, home: Path, source: str, partitions: int) -> None:
    section = report.section(
        "The largest table, by database",
        f"As above, with {partitions:,} partitions. How long each command takes.",
    )
    with MetastoreServer(home / "ours_many", "--log-level", "error") as ours:
        for what, aim in (("import", None), ("verify", VERIFY_SECONDS)):
            began = time.perf_counter()
            _migrate(what, source, MANY, ours, partitions)
            seconds = time.perf_counter() - began
            say(f"{what} of {partitions:,} partitions: {seconds:.1f} s")
            section.figures.append(Figure.of(what, "s", [seconds], aim=aim))


def _migrate(what: str, source: str, database: str, ours: MetastoreServer, partitions: int) -> None:
    """Raises UserError if not all came over, or if something differs."""
    found = _run(what, source, database, ours)
    seen = found["kinds"]["partitions"]["compared"] if what == "verify" else found["added"] + found["same"]
    if seen < partitions:
        raise UserError(f"{what}: {seen:,} objects, where there are {partitions:,} partitions")


def _run(what: str, source: str, database: str, ours: MetastoreServer, *more: str) -> Any:
    """What a command says. Raises UserError if it fails."""
    arguments = ["migrate", what, source, *more, "--databases", database, "--uri", ours.uri]
    arguments += ["--threads", str(THREADS), "--json"]
    result = subprocess.run(
        [sys.executable, "-m", "metastore", *arguments], capture_output=True, text=True, timeout=COMMAND_SECONDS
    )
    if result.returncode:
        raise UserError(f"{what} ends with {result.returncode}: {(result.stderr or result.stdout)[-500:]}")
    return json.loads(result.stdout)
