"""Layers of tables: an increment beside the full computation, with ten times the history, and beside Spark's views."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from bench.figures import Figure, Report, readable
from bench.options import Options
from bench.progress import noted
from bench.spark_server import MEMORY, spark_on_server
from bench.spark_stages import stages
from bench.spark_views import SparkViews, connect_settings
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.model import Definitions, Expectation, Project, View, Violation
from lake.layers.errors import Place
from lake.layers.runner.runner import Runner
from lake.layers.runner.spark_engine import SparkEngine
from lake.protocol.errors import UserError
from lake.spark import read, write
from lake.spark.session_client import lake_table

ROWS, QUICK_ROWS = 10_000_000, 20_000
DAYS = 100
SHARE = 1_000
"""One row of so many changes."""

PRODUCTS = 1_000

ORDERS = (
    "id BIGINT, product BIGINT, quantity INT, price DECIMAL(10,2), customer BIGINT, note STRING, at TIMESTAMP,"
    " day STRING"
)
LAYERS = {
    "dwd.orders": (
        "SELECT o.id, o.day, o.at, o.customer, o.quantity, o.price * o.quantity AS amount, p.category, p.name"
        " FROM {source}.orders o LEFT JOIN {source}.products p ON o.product = p.id"
    ),
    "dws.revenue": (
        "SELECT day, category, sum(amount) AS amount, count(*) AS orders, count(DISTINCT customer) AS customers"
        " FROM {shop}_dwd_orders GROUP BY day, category"
    ),
    "ads.best": (
        "SELECT day, category, amount, rank() OVER (PARTITION BY day ORDER BY amount DESC) AS place"
        " FROM {shop}_dws_revenue"
    ),
}
"""Queries by layer. `source`: the database of the tables; `shop`: what names of layers begin with."""

EXPECTATIONS = 50
CONDITIONS = ("amount >= {0} - 50", "quantity < {0} + 10", "length(name) > {0} - 50", "customer <> -{0} - 1")

_ABOUT = (
    "{rows:,} orders in {days} days, joined with 1,000 products (dwd), summed by day and category (dws), ranked (ads)."
    " An increment changes {changed:,} orders of the last two days. Spark {spark}, local[2], {memory}. CPU and bytes"
    " are those of Spark's process and its Python workers, sockets between them included; executors' CPU is that of"
    " tasks, without the driver's planning and the compilation of code."
)


@dataclass(frozen=True)
class Cost:
    """What a step took: seconds, seconds of CPU, those of executors' tasks among them, and bytes read and written."""

    seconds: float
    cpu: float
    executors: float
    bytes: float


class Shop:
    """Tables of one size, in databases named after it, and layers over them."""

    def __init__(self, spark: SparkSession, name: str, rows: int, days: int) -> None:
        self.spark, self._name, self._rows, self._days = spark, name, rows, days
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
            write(self._orders(spark.range(rows), sf.lit(0)), f"{name}.orders", operation="upsert")
        self.runner = self.runner_of(name, LAYERS)

    def _orders(self, ids: DataFrame, version: Column) -> DataFrame:
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
        return self.runner_of(f"{self._name}_{expectations}", {"dwd.orders": LAYERS["dwd.orders"]}, found)

    def runner_of(self, name: str, layers: Mapping[str, str], expectations: tuple[Expectation, ...] = ()) -> Runner:
        """A runner of layers, by their queries, whose tables' names begin with a name."""
        views = [
            View(
                f"{name}_{layer.replace('.', '_')}",
                text.format(source=self._name, shop=self._name),
                Place(Path(__file__), 1),
                properties={"bucket": "4"},
                partitions=("day",),
                expectations=expectations,
            )
            for layer, text in layers.items()
        ]
        project = Project(Path(), name, f"{self._name}_layers", {}, Definitions(views))
        spark = self.spark
        return Runner(
            graph_of(project),
            lambda name: lake_table(spark, name, None),
            lambda: SparkEngine(spark, {}),
            choose=False,  # increments are what is measured
        )

    @property
    def changed(self) -> int:
        """How many orders an increment changes."""
        return max(1, self._rows_of_a_day * DAYS // SHARE)

    @property
    def _rows_of_a_day(self) -> int:
        return self._rows // self._days

    def change(self, version: int) -> None:
        """Changes orders of the last two days."""
        up_to = min(self._rows, self._first_changed + self._step * self.changed)
        ids = self.spark.range(self._first_changed, up_to, self._step)
        write(self._orders(ids, sf.lit(version)), f"{self._name}.orders", operation="upsert")

    def change_first(self, version: int) -> None:
        """Changes the first order of the first day."""
        write(self._orders(self.spark.range(1), sf.lit(version)), f"{self._name}.orders", operation="upsert")

    @property
    def _first_changed(self) -> int:
        return self._rows - 2 * self._rows_of_a_day

    @property
    def _step(self) -> int:
        return max(1, 2 * self._rows_of_a_day // self.changed)

    def copy_plain(self) -> None:
        """Makes plain Parquet tables of the same rows, before any change, for whom keyed tables are no files."""
        spark, database = self.spark, f"{self._name}_plain"
        spark.sql(f"CREATE DATABASE {database}")
        read(spark, f"{self._name}.products").write.format("parquet").saveAsTable(f"{database}.products")
        orders = self._orders(spark.range(self._rows), sf.lit(0)).repartition("day")
        orders.write.format("parquet").partitionBy("day").saveAsTable(f"{database}.orders")

    def change_plain(self, version: int) -> None:
        """Makes the same change in the plain table: its last two days are written anew."""
        ids = self.spark.range(self._first_changed, self._rows)
        number = sf.col("id") - self._first_changed
        is_changed = (number % self._step == 0) & (number < self._step * self.changed)
        rows = self._orders(ids, sf.when(is_changed, version).otherwise(0)).repartition("day")
        table = f"{self._name}_plain.orders"
        rows.select(self.spark.table(table).columns).write.option("partitionOverwriteMode", "dynamic").insertInto(
            table, overwrite=True
        )

    def views(self, home: Path, port: int) -> SparkViews:
        """The same layers over the plain tables, as materialised views of Spark's own."""
        names = {layer: f"{self._name}_{layer.replace('.', '_')}" for layer in LAYERS}
        views = {
            names[layer]: text.format(source=f"{self._name}_plain", shop=self._name) for layer, text in LAYERS.items()
        }
        self.spark.sql(f"CREATE DATABASE {self._name}_views")
        return SparkViews(home, port, f"{self._name}_views", views)

    def check_views(self) -> None:
        """Raises UserError unless both have the same rows in their last layer."""
        name = f"{self._name}_ads_best"
        columns = ("day", "category", "amount", "place")
        ours = read(self.spark, f"{self._name}_layers.{name}", include_uncommitted=True).select(*columns)
        theirs = self.spark.table(f"{self._name}_views.{name}").select(*columns)
        if ours.count() != theirs.count() or not ours.exceptAll(theirs).isEmpty():
            raise UserError("our layers and Spark's views have other rows: one of the two is wrong")

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
    port, settings = connect_settings()
    with spark_on_server(settings) as (spark, home):
        report.versions["Spark"] = spark.version
        small = Shop(spark, "young", rows // 10, DAYS // 10)
        young = _measured("young", small, rounds)
        expecting = _expecting(small, rounds)
        shop = Shop(spark, "old", rows, DAYS)
        whole, increments = _measured("old", shop, rounds)
        beside = _beside_views(shop, shop.views(home / "views", port), rounds)
        about = _ABOUT.format(rows=rows, days=DAYS, changed=rows // SHARE, spark=spark.version, memory=MEMORY)
        _report(report, about, whole, increments, young[1])
        _report_beside(report, beside)
        _report_expecting(report, rows // 10, expecting)
    return report


def _report(
    report: Report, about: str, whole: Sequence[Cost], increments: Sequence[Cost], young: Sequence[Cost]
) -> None:
    section = report.section("All of the layers, and an increment", about)
    for name, costs in (("full", whole), ("increment", increments)):
        section.figures += _figures(name, costs)
    medians = [each.median for each in section.figures]
    ratios = [f"{part / all_:.0%}" for all_, part in zip(medians[:4], medians[4:], strict=True)]
    section.about += (
        f" An increment takes of the full computation: time {ratios[0]} (aim 25 %), CPU {ratios[1]}, that of executors"
        f" alone {ratios[2]} (aim 5 %), bytes {ratios[3]} (aim 5 %)."
    )
    other = report.section("The same increment with a tenth of the history", "")
    other.figures += _figures("increment", young)
    grown = [readable(now / then.median) for now, then in zip(medians[4:], other.figures, strict=True)]
    other.about = (
        f"With ten times the history it takes {grown[0]} times as long, {grown[1]} times the CPU, that of executors"
        f" alone {grown[2]} times, and {grown[3]} times the bytes. The aim is 1.2."
    )


def _figures(name: str, costs: Sequence[Cost]) -> list[Figure]:
    return [
        Figure.of(f"{name}, time", "s", [each.seconds for each in costs]),
        Figure.of(f"{name}, CPU", "s", [each.cpu for each in costs]),
        Figure.of(f"{name}, CPU of executors", "s", [each.executors for each in costs]),
        Figure.of(f"{name}, read and written", "MB", [each.bytes / 1e6 for each in costs]),
    ]


def _report_beside(report: Report, found: Mapping[str, Sequence[Cost]]) -> None:
    section = report.section(
        "Beside Spark's own materialised views",
        "The same layers over plain Parquet tables with the same rows, by spark-pipelines, which computes all of a view"
        " each time. After each change both are refreshed, in turn, in one process of Spark. The client of"
        " spark-pipelines, a process of its own, is in its time and not in its CPU.",
    )
    for name, costs in found.items():
        section.figures += _figures(name, costs)
    medians = [each.median for each in section.figures]
    ratios = [readable(theirs / ours) for ours, theirs in zip(medians[:4], medians[4:], strict=True)]
    section.about += (
        f" Theirs take {ratios[0]} times as long, {ratios[1]} times the CPU, that of executors alone {ratios[2]} times,"
        f" and {ratios[3]} times the bytes."
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


def _beside_views(shop: Shop, views: SparkViews, rounds: int) -> dict[str, list[Cost]]:
    """What a change costs our layers, and Spark's views of the same rows. Raises UserError if their rows differ."""
    meter = _Meter(shop.spark)
    ours: list[Cost] = []
    theirs: list[Cost] = []
    with noted("copying the tables as plain ones"):
        shop.copy_plain()
    for number in range(rounds + 1):
        version = 100 + number
        shop.change(version)
        shop.change_plain(version)
        with noted(f"beside Spark's views, {number}"):
            costs = meter.cost(shop.refresh), meter.cost(views.refresh)
        if number or rounds == 1:  # the first warms up
            ours.append(costs[0])
            theirs.append(costs[1])
    shop.check_views()
    return {"ours": ours, "Spark's views": theirs}


def _expecting(shop: Shop, rounds: int) -> dict[int, list[Cost]]:
    """What a layer without expectations costs, and with many, in turn, by their number."""
    meter = _Meter(shop.spark)
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
    meter = _Meter(shop.spark)
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
    """Measures Spark's process and the workers below it, those among them that end meanwhile, too."""

    def __init__(self, spark: SparkSession) -> None:
        found = [each for each in psutil.Process().children(recursive=True) if each.name() == "java"]
        self._java = found[0]
        self._spark = spark
        self._of_stages: dict[tuple[int, int], float] = {}
        self._of_processes: dict[psutil.Process, tuple[float, float]] = {}

    def cost(self, step: Callable[[], object]) -> Cost:
        before, began = self._now(), time.monotonic()
        with self._watching():
            step()
        seconds, after = time.monotonic() - began, self._now()
        return Cost(seconds, *(now - then for now, then in zip(after, before, strict=True)))

    def _now(self) -> tuple[float, float, float]:
        stages = self._cpu_of_stages()
        self._look()
        cpu, size = (sum(each) for each in zip(*self._of_processes.values(), strict=True))
        return cpu, stages + cpu - self._of_processes[self._java][0], size

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Looks again and again: what a process has used is gone once it ends."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.2):
                self._look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _look(self) -> None:
        for each in [self._java, *self._java.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                times, io = each.cpu_times(), each.io_counters()
                self._of_processes[each] = times.user + times.system, float(io.read_chars + io.write_chars)

    def _cpu_of_stages(self) -> float:
        """The CPU seconds of all tasks so far, without those of their Python workers."""
        time.sleep(1)  # Spark counts them a little later
        for stage in stages(self._spark):
            self._of_stages[stage.stageId(), stage.attemptId()] = stage.executorCpuTime() / 1e9
        return sum(self._of_stages.values())
