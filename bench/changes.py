"""Changes: how soon a held one of a captured table is reported, and what is read once it is approved; what is read for
a query that is another one from a day on; and how late tables are while other queries are computed beside them."""

import itertools
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psycopg2
import structlog
from pyspark.sql import SparkSession
from sqlalchemy import make_url

from bench.capture import ROWS, TABLE
from bench.figures import Figure, Report
from bench.options import Options
from bench.pipeline import LAYERS, Shop
from bench.progress import noted
from bench.spark_server import MEMORY, spark_on_server
from bench.spark_stages import stages
from lake.capture.postgres.capture import Capture
from lake.capture.postgres.capture import Options as CaptureOptions
from lake.capture.postgres.state import State
from lake.capture.raw_table import RawTable
from lake.capture.schema_changes.agreed import decided, held
from lake.capture.schema_changes.decisions import decide, with_decisions
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Action, Kind
from lake.capture.schema_changes.policy import Policy
from lake.capture.schema_changes.watch import bytes_since
from lake.cli.captured_tables import definitions_of
from lake.layers.applying.restating import restate
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project, with_captured
from lake.layers.runner.claims import DefinedElsewhere
from lake.layers.runner.results import RESTATED
from lake.layers.runner.runner import Runner
from lake.layers.runner.spark_engine import SparkEngine
from lake.protocol.errors import UserError
from lake.protocol.hive import NoSuchObjectException
from lake.spark.session_client import lake_table, metastore_uri
from lake.tables.lake import LakeClient
from metastore.server.embedded_postgres import EmbeddedPostgres
from tests.lake.layers.projects import write_project

FULL, QUICK = 400_000, 5_000
ROUNDS, QUICK_ROUNDS = 10, 2
ORDERS, QUICK_ORDERS = 2_000_000, 20_000
DAYS, SINCE = 100, "2026-04-01"
"""The orders are of so many days, from 2026-01-01 on. Of these ten are restated."""
JOIN = "dwd.orders"
OTHER = {**LAYERS, JOIN: LAYERS[JOIN].replace("o.price * o.quantity", "o.price * (o.quantity + 1)")}
"""The layers, with another query of their join."""
INTO, NAME = "bench.raw", "public.orders"
SECONDS = 60.0

_COUNTED = {"spark.hadoop.parquet.hadoop.vectored.io.enabled": "false"}
"""By which Hadoop counts all bytes that are read."""

_HELD = (
    "A column that looks like personal data comes, and a row with it. From the commit of that row to the alarm of"
    " `metastore capture run --policy`, which commits every five seconds, its default."
)
_REPLAY = (
    "{rows:,} rows of ten columns are captured and typed, a column is renamed, which reads all rows again, and every"
    " fourth row is updated while that is held. Then it is approved, and a refresh rewrites the typed table. Spark"
    " {spark}, local[2], {memory}. Bytes are those of files, as Spark's file systems count them. Its tasks also count"
    " what they read of rows that the refresh keeps in memory, as large as they are there."
)
_RESTATED = (
    "{rows:,} orders in {days} days, joined with 1,000 products, summed by day and category, ranked. The query of the"
    " join changes from the 91st day on, by `apply --from`; before that, and with it, an order of the first day comes."
    " Spark {spark}, local[2], {memory}. Bytes are those of files."
)
_BESIDE = (
    "The same tables and layers. The query of the join changes, by `apply --beside`, a program of its own with one core"
    " (local[1]). Before that and meanwhile an order of a thousand is changed again and again, of the last two days,"
    " and the layers refreshed in a session of local[2] that goes on; a refresh's time is how late the layers are. The"
    " machine has two cores."
)


@dataclass
class Alarms:
    """What a capture has said on stderr by now, with the time of each line."""

    lines: list[tuple[float, str]] = field(default_factory=list)

    def wait(self, text: str) -> float:
        """When a line had a text. Raises UserError."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for at, line in [*self.lines]:
                if text in line and "schema change is held" in line:
                    return at
            time.sleep(0.02)
        raise UserError(f"nothing was said of {text} within {SECONDS:.0f} seconds")


def run(options: Options) -> Report:
    """A source on a Postgres of its own, a capture in a process, and a project of layers."""
    report = Report("changes", arguments=options.arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    rows = options.rows or (QUICK if options.quick else FULL)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    with ExitStack() as stack:
        spark, home = stack.enter_context(spark_on_server(_COUNTED))
        report.versions["Spark"] = spark.version
        source = EmbeddedPostgres(home / "source", settings={"wal_level": "logical", "max_slot_wal_keep_size": "8GB"})
        stack.callback(source.stop)
        url = make_url(source.start()).set(drivername="postgresql").render_as_string(hide_password=False)
        connection = psycopg2.connect(url)
        stack.callback(connection.close)
        connection.autocommit = True
        cursor = stack.enter_context(connection.cursor())
        cursor.execute(TABLE)
        cursor.execute(ROWS, (1, rows))
        client = stack.enter_context(LakeClient(metastore_uri(spark)))
        with _capturing(url, client, metastore_uri(spark), home) as alarms:
            found = [_until_reported(cursor, alarms, number) for number in range(rounds)]
        section = report.section("A change that is held", _HELD)
        section.figures.append(Figure.of("until it is reported", "s", found, aim=10))
        about = _REPLAY.format(rows=rows, spark=spark.version, memory=MEMORY)
        report.section("A change that is approved", about).figures.extend(_replay(spark, client, cursor, url, home))
        orders = QUICK_ORDERS if options.quick else ORDERS
        about = _RESTATED.format(rows=orders, days=DAYS, spark=spark.version, memory=MEMORY)
        report.section("A query that changes from a day on", about).figures.extend(_restate(spark, orders))
        report.section("Queries that are computed beside", _BESIDE).figures.extend(_beside(spark, orders, home))
    return report


@contextmanager
def _capturing(url: str, client: LakeClient, uri: str, home: Path) -> Iterator[Alarms]:
    """Runs the command until the end of the block, and waits until the table is read."""
    policy = home / "schema-changes.yml"
    policy.write_text("")
    command = [sys.executable, "-m", "lake.cli", "capture", "run", url, "--publication", "bench", "--slot", "bench"]
    command += ["--into", INTO, "--uri", uri, "--policy", str(policy)]
    alarms = Alarms()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = process.stderr
        reader = threading.Thread(target=lambda: alarms.lines.extend((time.monotonic(), each) for each in lines))
        reader.start()
        try:
            with noted("all rows are read"):
                while not _is_read(client):
                    if process.poll() is not None:
                        raise UserError(f"the capture has ended: {''.join(each for _, each in alarms.lines[-5:])}")
                    time.sleep(0.5)
            yield alarms
        finally:
            process.terminate()
            process.wait(SECONDS)
            reader.join()


def _is_read(client: LakeClient) -> bool:
    try:
        state = RawTable(client, INTO).latest(State.parse)
    except NoSuchObjectException:
        return False
    return state is not None and NAME in state.tables and state.is_snapshot_done


def _until_reported(cursor: Any, alarms: Alarms, number: int) -> float:
    """Seconds from the commit of the first row with a column to the alarm."""
    cursor.execute(f"ALTER TABLE orders ADD email_{number} text")
    cursor.execute(f"INSERT INTO orders (id, email_{number}) VALUES (%s, 'a')", (-1 - number,))
    begun = time.monotonic()
    return alarms.wait(f"email_{number}") - begun


def _replay(spark: SparkSession, client: LakeClient, cursor: Any, url: str, home: Path) -> list[Figure]:
    """What a refresh takes that rewrites a typed table, beside what was captured since the change."""
    sql = f"CREATE CAPTURED TABLE orders FROM {INTO} TABLE '{NAME}'"
    project = write_project(home / "project", {"ods.sql": sql}, name="bench", database="bench")
    options = CaptureOptions(source=url, publication="bench", into=INTO, slot="bench")

    def capture() -> None:
        Capture(client, options).run(once=True)

    def refresh() -> None:
        graph = graph_of(with_captured(read_project(project), definitions_of(client, project)))
        Runner(
            graph, lambda name: lake_table(spark, name, None), lambda: SparkEngine(spark, {}), choose=False
        ).refresh()

    with noted("typed for the first time"):
        refresh()
    cursor.execute("ALTER TABLE orders RENAME note TO remark")
    cursor.execute("UPDATE orders SET quantity = quantity + 1 WHERE id % 4 = 0")
    with noted("captured, and held"):
        capture()
        refresh()
    cursor.execute("UPDATE orders SET quantity = quantity + 1 WHERE id % 4 = 1")
    capture()
    lake, policy = client.table(INTO), Policy()
    change = next(each for each in changes_of(lake, NAME) if each.difference.kind is Kind.RENAME)
    captured = bytes_since(lake, NAME, change.since)
    for each in held(decided(changes_of(lake, NAME), with_decisions(policy, lake))):
        decide(lake, policy, NAME, str(each.at), Action.APPLY)
    before, tasks_before, begun = _read(spark), _read_by_tasks(spark), time.monotonic()
    with noted("replayed"):
        refresh()
    seconds, read = time.monotonic() - begun, _read(spark) - before
    by_tasks = _read_by_tasks(spark) - tasks_before
    [[count]] = spark.sql("SELECT count(*) FROM bench.orders WHERE remark IS NOT NULL").collect()
    cursor.execute("SELECT count(*) FROM orders WHERE remark IS NOT NULL")
    if (count,) != cursor.fetchone():
        raise UserError("the typed table has other rows than the source")
    return [
        Figure.of("seconds of the refresh", "s", [seconds]),
        Figure.of("captured since the change", "MB", [captured / 1e6]),
        Figure.of("read by the refresh", "MB", [read / 1e6]),
        Figure.of("read, as a multiple of what was captured since", "", [read / captured], aim=1.2),
        Figure.of("read by its tasks, also of rows in memory", "MB", [by_tasks / 1e6]),
    ]


def _restate(spark: SparkSession, rows: int) -> list[Figure]:
    """What it takes to restate the last ten of a hundred days, beside all of them."""
    shop = Shop(spark, "restated", rows, DAYS)
    before, begun = _read(spark), time.monotonic()
    with noted("all of it"):
        shop.runner.refresh()
    whole, seconds = _read(spark) - before, time.monotonic() - begun
    shop.change_first(1)
    runner = shop.runner_of("restated", OTHER)
    restate(runner, SINCE)
    before, begun = _read(spark), time.monotonic()
    with noted("from the 91st day on"):
        result = runner.refresh()
    read, took = _read(spark) - before, time.monotonic() - begun
    first = result.layers[0]
    if first.how != RESTATED:
        raise UserError(f"{first.layer} wasn't restated: {first.how}, {first.why}")
    texts = []
    for query, days in ((LAYERS[JOIN], f"day < '{SINCE}'"), (OTHER[JOIN], f"day >= '{SINCE}'")):
        texts.append(f"SELECT * FROM ({query.format(source='restated')}) WHERE {days}")
    answer = spark.sql(" UNION ALL ".join(texts))
    found = spark.table("restated_layers.restated_dwd_orders").select(*answer.columns)
    if found.count() != answer.count() or not found.exceptAll(answer).isEmpty():
        raise UserError("the layer has other rows than its two queries")
    return [
        Figure.of("all of it", "s", [seconds]),
        Figure.of("read for all of it", "MB", [whole / 1e6]),
        Figure.of("the last ten days", "s", [took]),
        Figure.of("read for the last ten days", "MB", [read / 1e6]),
        Figure.of("read, as a share of all of it", "", [read / whole], aim=0.15),
    ]


def _beside(spark: SparkSession, rows: int, home: Path) -> list[Figure]:
    """How long refreshes take while other queries are computed beside the tables."""
    shop = Shop(spark, "beside", rows, DAYS)
    runner = Runner(
        graph_of(read_project(_project(home / "now", LAYERS))),
        lambda name: lake_table(spark, name, None),
        lambda: SparkEngine(spark, {}),
    )
    versions = itertools.count(1)

    def refreshed() -> float:
        shop.change(next(versions))
        begun = time.monotonic()
        runner.refresh()
        return time.monotonic() - begun

    begun = time.monotonic()
    with noted("all of it"):
        runner.refresh()
    whole = time.monotonic() - begun
    with noted("refreshes alone"):
        alone = [refreshed() for _ in range(6)][1:]
    command = [sys.executable, "-m", "lake.cli", "pipeline", "apply", str(_project(home / "other", OTHER))]
    command += ["--uri", metastore_uri(spark), "--beside", "--yes", "--json"]
    meanwhile, begun = [], time.monotonic()
    with noted("computed beside"), subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        with suppress(DefinedElsewhere):
            while process.poll() is None:
                meanwhile.append(refreshed())
        said, _ = process.communicate(timeout=600)
        took = time.monotonic() - begun
    if process.returncode or {each["how"] for each in json.loads(said)["tables"]} != {"beside"}:
        raise UserError(f"the layers weren't computed beside: {said}")
    return [
        Figure.of("all of it for the first time", "s", [whole]),
        Figure.of("computed beside and cut over, with the start of Spark", "s", [took]),
        Figure.of("a refresh, alone", "s", alone),
        Figure.of("a refresh meanwhile", "s", meanwhile),
        Figure.of("the same, as a multiple", "", [median(meanwhile) / median(alone)], aim=1.5),
    ]


def _project(directory: Path, layers: Mapping[str, str]) -> Path:
    """Writes a project of layers over the tables of `_beside`."""
    views = [
        f"CREATE MATERIALIZED VIEW beside_{name.replace('.', '_')} PARTITIONED BY (day) TBLPROPERTIES ('bucket' = '4')"
        f" AS {text.format(source='beside', shop='beside')}"
        for name, text in layers.items()
    ]
    settings = {"spark.master": "local[1]", "spark.driver.memory": "3g"}
    return write_project(
        directory, {"layers.sql": ";\n".join(views)}, name="beside", database="beside_layers", settings=settings
    )


def _read(spark: SparkSession) -> float:
    """The bytes that Spark's process has read of files."""
    context: Any = spark.sparkContext
    return float(sum(each.getBytesRead() for each in context._jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()))


def _read_by_tasks(spark: SparkSession) -> float:
    """What the last thousand stages count as their input, in bytes: files, and blocks that are kept in memory."""
    time.sleep(1)  # Spark counts them a little later
    return float(sum(each.inputBytes() for each in stages(spark)))
