"""Layers of tables: what an increment costs beside the full computation, and in a table with ten times the history."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from bench.figures import Figure, Report, readable
from bench.options import Options
from bench.progress import noted
from metastore.pipeline.definitions import Definitions, Expectation, Project, View, Violation
from metastore.pipeline.errors import Place
from metastore.pipeline.graph import graph_of
from metastore.pipeline.runner import Runner
from metastore.pipeline.spark_engine import SparkEngine
from metastore.spark import configure, write
from metastore.spark.session_client import lake_table
from tests.support.server import MetastoreServer

ROWS, QUICK_ROWS = 10_000_000, 20_000
DAYS = 100
SHARE = 1_000
"""One row of so many changes."""

PRODUCTS = 1_000
MEMORY = "6g"

ORDERS = (
    "id BIGINT, product BIGINT, quantity INT, price DECIMAL(10,2), customer BIGINT, note STRING, at TIMESTAMP,"
    " day STRING"
)
LAYERS = {
    "dwd.orders": (
        "SELECT o.id, o.day, o.at, o.customer, o.quantity, o.price * o.quantity AS amount, p.category, p.name"
        " FROM {0}.orders o LEFT JOIN {0}.products p ON o.product = p.id"
    ),
    "dws.revenue": (
        "SELECT day, category, sum(amount) AS amount, count(*) AS orders, count(DISTINCT customer) AS customers"
        " FROM {0}_dwd_orders GROUP BY day, category"
    ),
    "ads.best": (
        "SELECT day, category, amount, rank() OVER (PARTITION BY day ORDER BY amount DESC) AS place"
        " FROM {0}_dws_revenue"
    ),
}

EXPECTATIONS = 50
CONDITIONS = ("amount >= {0} - 50", "quantity < {0} + 10", "length(name) > {0} - 50", "customer <> -{0} - 1")

_ABOUT = (
    "{rows:,} orders in {days} days, joined with 1,000 products (dwd), summed by day and category (dws), ranked (ads)."
    " An increment changes {changed:,} orders of the last two days. Spark {spark}, local[2], {memory}. CPU and bytes"
    " are those of Spark's process and its Python workers, sockets between them included."
)


@dataclass(frozen=True)
class Cost:
    """What a step took: seconds, seconds of CPU, and bytes read and written."""

    seconds: float
    cpu: float
    bytes: float


class Shop:
    """Tables of one size, in databases named after it, and layers over them."""

    def __init__(self, spark: SparkSession, name: str, rows: int, days: int) -> None:
        self._spark, self._name, self._rows, self._days = spark, name, rows, days
        for database in (name, f"{name}_layers"):
            spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
        spark.sql(
            f"CREATE TABLE {name}.orders ({ORDERS}) USING parquet PARTITIONED BY (day)"
            " TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '4')"
        )
        spark.sql(
            f"CREATE TABLE {name}.products (id BIGINT, name STRING, category STRING) USING parquet"
            " TBLPROPERTIES ('primary-key' = 'id')"
        )
        products = spark.range(PRODUCTS).selectExpr(
            "id", "concat('product ', id) AS name", "concat('category ', id % 20) AS category"
        )
        with noted(f"{name}: {rows:,} orders in {days} days"):
            write(products, f"{name}.products", operation="upsert")
            write(self._orders(spark.range(rows), 0), f"{name}.orders", operation="upsert")
        self.runner = self._runner(name, LAYERS)

    def _orders(self, ids: DataFrame, version: int) -> DataFrame:
        """Orders by their numbers, which say the day; another version has other amounts."""
        day = sf.expr(f"date_add(DATE '2026-01-01', CAST(id * {self._days} DIV {self._rows} AS INT))")
        return ids.select(
            "id",
            (sf.col("id") * 7 % PRODUCTS).alias("product"),
            (sf.col("id") % 5 + 1).cast("int").alias("quantity"),
            ((sf.col("id") * 31 + version) % 10_000 / 100).cast("decimal(10,2)").alias("price"),
            (sf.col("id") % 100_003).alias("customer"),
            sf.md5(sf.col("id").cast("string")).alias("note"),
            day.cast("timestamp").alias("at"),
            day.cast("string").alias("day"),
        )

    def joined_alone(self, *, expectations: int) -> Runner:
        """Of the layers that which joins alone, with a number of expectations."""
        found = tuple(
            Expectation(f"e{each}", CONDITIONS[each % len(CONDITIONS)].format(each), Violation.KEEP)
            for each in range(expectations)
        )
        return self._runner(f"{self._name}_{expectations}", {"dwd.orders": LAYERS["dwd.orders"]}, found)

    def _runner(self, name: str, layers: Mapping[str, str], expectations: tuple[Expectation, ...] = ()) -> Runner:
        views = [
            View(
                f"{name}_{layer.replace('.', '_')}",
                text.format(self._name),
                Place(Path(__file__), 1),
                properties={"bucket": "4"},
                partitions=("day",),
                expectations=expectations,
            )
            for layer, text in layers.items()
        ]
        project = Project(Path(), name, f"{self._name}_layers", {}, Definitions(views))
        spark = self._spark
        return Runner(graph_of(project), lambda name: lake_table(spark, name, None), lambda: SparkEngine(spark, {}))

    @property
    def changed(self) -> int:
        """How many orders an increment changes."""
        return max(1, self._rows_of_a_day * DAYS // SHARE)

    @property
    def _rows_of_a_day(self) -> int:
        return self._rows // self._days

    def change(self, version: int) -> None:
        """Changes orders of the last two days."""
        step = max(1, 2 * self._rows_of_a_day // self.changed)
        first = self._rows - 2 * self._rows_of_a_day
        ids = self._spark.range(first, self._rows, step).limit(self.changed)
        write(self._orders(ids, version), f"{self._name}.orders", operation="upsert")

    def refresh(self, *, full: bool = False) -> None:
        refresh(self.runner, full=full)


def refresh(runner: Runner, *, full: bool = False) -> None:
    """Refreshes layers, or computes all of them."""
    runner.refresh([each.name for each in runner.graph.nodes] if full else ())


def run(options: Options) -> Report:
    """Two shops, one with ten times as many days as the other, and as many orders a day."""
    rows = options.rows or (QUICK_ROWS if options.quick else ROWS)
    rounds = options.rounds or (1 if options.quick else 5)
    report = Report("pipeline", arguments=options.arguments)
    with _spark() as spark:
        report.versions["Spark"] = spark.version
        small = Shop(spark, "young", rows // 10, DAYS // 10)
        young = _measured("young", small, rounds)
        expecting = _expecting(small, rounds)
        old = _measured("old", Shop(spark, "old", rows, DAYS), rounds)
        whole, increments = old
        about = _ABOUT.format(rows=rows, days=DAYS, changed=rows // SHARE, spark=spark.version, memory=MEMORY)
        _report(report, about, whole, increments, young[1])
        _report_expecting(report, rows // 10, expecting)
    return report


def _report(
    report: Report, about: str, whole: Sequence[Cost], increments: Sequence[Cost], young: Sequence[Cost]
) -> None:
    section = report.section("All of the layers, and an increment", about)
    for name, costs in (("full", whole), ("increment", increments)):
        section.figures += [
            Figure.of(f"{name}, time", "s", [each.seconds for each in costs]),
            Figure.of(f"{name}, CPU", "s", [each.cpu for each in costs]),
            Figure.of(f"{name}, read and written", "MB", [each.bytes / 1e6 for each in costs]),
        ]
    time_, cpu, size, of_time, of_cpu, of_size = (each.median for each in section.figures)
    ratios = f"time {of_time / time_:.0%} (aim 25 %), CPU {of_cpu / cpu:.0%}, bytes {of_size / size:.0%} (aim 5 %)"
    section.about += f" An increment takes of the full computation: {ratios}."
    other = report.section("The same increment with a tenth of the history", "")
    other.figures += [
        Figure.of("increment, time", "s", [each.seconds for each in young]),
        Figure.of("increment, CPU", "s", [each.cpu for each in young]),
        Figure.of("increment, read and written", "MB", [each.bytes / 1e6 for each in young]),
    ]
    grown = [now / then.median for now, then in zip((of_time, of_cpu, of_size), other.figures, strict=True)]
    other.about = (
        f"With ten times the history it takes {readable(grown[0])} times as long, {readable(grown[1])} times the CPU"
        f" and {readable(grown[2])} times the bytes. The aim is 1.2."
    )


def _report_expecting(report: Report, rows: int, found: Mapping[int, Sequence[Cost]]) -> None:
    section = report.section(
        f"{EXPECTATIONS} expectations",
        f"The layer that joins, {rows:,} orders, all of it, with them and without in turn.",
    )
    for count, costs in found.items():
        section.figures.append(Figure.of(f"{count} expectations, time", "s", [each.seconds for each in costs]))
        section.figures.append(Figure.of(f"{count} expectations, CPU", "s", [each.cpu for each in costs]))
    time_, cpu, of_time, of_cpu = (each.median for each in section.figures)
    section.about += (
        f" They add {of_time / time_ - 1:.0%} to the time (aim 20 %), and {of_cpu / cpu - 1:.0%} to the CPU."
    )


def _expecting(shop: Shop, rounds: int) -> dict[int, list[Cost]]:
    """What a layer without expectations costs, and with many, in turn, by their number."""
    meter = _Meter()
    runners = {each: shop.joined_alone(expectations=each) for each in (0, EXPECTATIONS)}
    costs: dict[int, list[Cost]] = {each: [] for each in runners}
    for number in range(rounds + 1):
        for count, runner in runners.items():
            with noted(f"{count} expectations, {number}"):
                cost = meter.cost(lambda runner=runner: refresh(runner, full=True))  # type: ignore[misc]
            if number or rounds == 1:  # the first warms up
                costs[count].append(cost)
    return costs


def _measured(name: str, shop: Shop, rounds: int) -> tuple[list[Cost], list[Cost]]:
    """What full computations and increments of one size cost."""
    meter = _Meter()
    with noted(f"{name}: first refresh"):
        shop.refresh()
    increments, whole = [], []
    for number in range(rounds + 1):
        shop.change(number + 1)
        with noted(f"{name}: increment {number}"):
            cost = meter.cost(shop.refresh)
        if number or rounds == 1:  # the first warms up
            increments.append(cost)
    for number in range(1 if rounds == 1 else 2):
        with noted(f"{name}: all of it, {number}"):
            whole.append(meter.cost(lambda: shop.refresh(full=True)))
    return whole, increments


class _Meter:
    """Measures Spark's process and the workers below it."""

    def __init__(self) -> None:
        found = [each for each in psutil.Process().children(recursive=True) if each.name() == "java"]
        self._java = found[0]

    def cost(self, step: Callable[[], object]) -> Cost:
        before, began = self._now(), time.monotonic()
        step()
        seconds, after = time.monotonic() - began, self._now()
        return Cost(seconds, after[0] - before[0], after[1] - before[1])

    def _now(self) -> tuple[float, float]:
        cpu = size = 0.0
        for each in [self._java, *self._java.children(recursive=True)]:
            try:
                times, io = each.cpu_times(), each.io_counters()
            except psutil.NoSuchProcess:
                continue
            cpu += times.user + times.system + times.children_user + times.children_system
            size += io.read_chars + io.write_chars
        return cpu, size


@contextmanager
def _spark() -> Iterator[SparkSession]:
    """A session of Spark on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        home = Path(directory)
        with MetastoreServer(home / "data", "--log-level", "warning") as server:
            builder = SparkSession.builder.appName("bench").master("local[2]")
            settings = {
                "spark.driver.memory": MEMORY,
                "spark.sql.shuffle.partitions": "8",
                "spark.local.dir": str(home / "scratch"),
                "spark.sql.warehouse.dir": str(home / "warehouse"),
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.sql.session.timeZone": "UTC",
            }
            for key, value in settings.items():
                builder = builder.config(key, value)
            spark = configure(builder, server.uri).getOrCreate()
            spark.sparkContext.setLogLevel("ERROR")
            try:
                yield spark
            finally:
                spark.stop()
