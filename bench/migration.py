"""The way over from a Hive metastore: import and verification of a large table, from its database and by Thrift."""

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
COMMAND_SECONDS = 3_600


class Sizes(NamedTuple):
    partitions: int
    rounds: int


FULL = Sizes(100_000, 1)
QUICK = Sizes(2_000, 1)


def run(options: Options) -> Report:
    """Hive 2.3 on Postgres comes over to a server of ours. Partitions are put into Hive's database by SQL."""
    sizes = QUICK if options.quick else FULL
    shape = Shape(COLUMNS, sizes.partitions)
    report = Report("migration", arguments=options.arguments)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        home = Path(directory)
        postgres = LoopbackPostgres(home / "postgres")
        try:
            url = postgres.create("hive")
            (home / "hive").mkdir()
            with HiveOnPostgres(home / "hive", url, home / "warehouse") as hive:
                with noted(f"filling {sizes.partitions:,} partitions"):
                    _fill(hive, shape)
                sources = {
                    "database": postgres.local(url).render_as_string(hide_password=False),
                    "Thrift": f"thrift://{hive.host}:{hive.port}",
                }
                for way, source in sources.items():
                    if options.wants(way):
                        _measure(report, home, way, source, sizes._replace(rounds=options.rounds or sizes.rounds))
        finally:
            postgres.close()
    return report


def _fill(hive: HiveOnPostgres, shape: Shape) -> None:
    with ThriftClient(hive.host, hive.port, timeout=600) as client:
        client.create_database(builders.database(DATABASE))
        client.create_table(shape.table(TABLE))
        client.add_partition(shape.partition(TABLE, 0))
    hive.multiply(TABLE, shape)


def _measure(report: Report, home: Path, way: str, source: str, sizes: Sizes) -> None:
    section = report.section(
        f"By {way}",
        f"{sizes.partitions:,} partitions of {COLUMNS} columns, from Hive 2.3 on Postgres, with {THREADS} threads:"
        " the command from its start to its end.",
    )
    rates: dict[str, list[float]] = {"import": [], "import again": [], "verify": []}
    for turn in range(sizes.rounds):
        with MetastoreServer(home / f"ours_{way}_{turn}", "--log-level", "error") as ours:
            for name, values in rates.items():
                began = time.perf_counter()
                _migrate(name.split()[0], source, "--uri", ours.uri, name=name, partitions=sizes.partitions)
                values.append(sizes.partitions / (time.perf_counter() - began))
                say(f"{name}, by {way}: {values[-1]:,.0f} partitions/s")
    for name, values in rates.items():
        section.figures.append(Figure.of(name, "partitions/s", values, aim=AIMS.get((way, name))))


def _migrate(what: str, source: str, *options: str, name: str, partitions: int) -> None:
    """Raises UserError if not all came over, or if something differs."""
    arguments = ["migrate", what, source, "--databases", DATABASE, "--threads", str(THREADS), "--json", *options]
    result = subprocess.run(
        [sys.executable, "-m", "metastore", *arguments], capture_output=True, text=True, timeout=COMMAND_SECONDS
    )
    if result.returncode:
        raise UserError(f"{name} ends with {result.returncode}: {(result.stderr or result.stdout)[-500:]}")
    found: dict[str, Any] = json.loads(result.stdout)
    seen = found["kinds"]["partitions"]["compared"] if what == "verify" else found["added"] + found["same"]
    if seen < partitions:
        raise UserError(f"{name}: {seen:,} objects, where there are {partitions:,} partitions")
