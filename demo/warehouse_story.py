"""An incremental warehouse: a shop's database is captured, and layers of tables follow it by increments.

    python demo/warehouse_story.py --uri thrift://HOST:PORT

starts a Postgres of a small shop, `metastore capture` beside it, and refreshes the layers ods, dwd and dws while orders
come in. A wrong batch is then rolled back through all of them; a query is corrected, and the correction taken back.
What the layers show is compared with the shop's own figures throughout. It removes its databases again, which are named
raw, ods, dwd and dws.
"""

import json
import logging
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
import structlog
from ending import ending
from narrator import Narrator, Step
from pyspark.sql import SparkSession
from rich.console import Console
from shop import PUBLICATION, Shop, running_shop
from spark_session import spark_session
from stop_sign import StopSign

from lake.capture.any_state import any_state
from lake.capture.raw_table import RawTable, rows_of
from lake.cli.pages.pipeline_page import pipeline_page
from lake.layers.applying.planning import plan_of
from lake.layers.compiler.graph import Graph, graph_of
from lake.layers.definitions.projects import read_project
from lake.layers.runner.results import RefreshResult
from lake.layers.runner.runner import Runner
from lake.layers.runner.spark_engine import SparkEngine
from lake.layers.runner.status import status_of
from lake.layers.undo.revert import apply_revert, plan_revert
from lake.layers.undo.rollback import Rollback
from lake.protocol.hive import NoSuchObjectException
from lake.spark import configure
from lake.spark.lake_sql import sql
from lake.spark.session_client import lake_table
from lake.tables.lake import LakeClient

RAW = "raw.shop"
DATABASES = ("dws", "dwd", "ods", "raw")
INCREMENTS = 2
SECONDS_BETWEEN_SALES = 0.2
SECONDS_BETWEEN_CAPTURES = "1"
SECONDS_TO_CAPTURE = 60.0
PROJECT = Path(__file__).with_name("warehouse")

_REVENUE = "SELECT date_format(hour, 'yyyy-MM-dd HH:mm'), category, revenue, orders FROM dws.revenue"
_TOTALS = (
    "SELECT l.transactions, l.total, r.revenue"
    " FROM ods.ledger l CROSS JOIN (SELECT sum(revenue) AS revenue FROM dws.revenue) r"
)


@dataclass
class Warehouse:
    """The layers, the shop that they follow, and what runs both."""

    client: LakeClient
    uri: str
    shop: Shop
    spark: SparkSession
    runner: Runner
    stop_sign: StopSign

    def refresh(self) -> RefreshResult:
        self.stop_sign.check()
        return self.runner.refresh()

    def wait_for_capture(self) -> None:
        wait_for_capture(self.client, self.shop, self.stop_sign)

    def check_totals(self, step: Step) -> None:
        """Checks one query over ods and dws with what the shop knew after the transaction that it shows."""
        [(number, total, revenue)] = sql(self.spark, _TOTALS, uri=self.uri).collect()
        step.check("the ledger's total", total, self.shop.totals[number])
        step.check("all revenue", revenue, total)
        step.note(f"the shop's {number} transactions, revenue {revenue:,}")

    def revenue(self) -> dict[tuple[str, str], tuple[object, int]]:
        rows = sql(self.spark, _REVENUE, uri=self.uri).collect()
        return {(hour, category): (amount, count) for hour, category, amount, count in rows}


def wait_for_capture(client: LakeClient, shop: Shop, stop_sign: StopSign) -> None:
    """Waits until all that the shop has done is in the raw table. Raises TimeoutError."""
    wanted = max(shop.totals)
    deadline = time.monotonic() + SECONDS_TO_CAPTURE
    while time.monotonic() < deadline:
        stop_sign.check()
        if latest_captured(client) >= wanted:
            return
        time.sleep(0.2)
    raise TimeoutError(f"after {SECONDS_TO_CAPTURE:g} s the shop's transaction {wanted} isn't captured")


def latest_captured(client: LakeClient) -> int:
    """The number of the latest transaction in the raw table; -1 before there is any."""
    try:
        raw = RawTable(client, RAW)
        if raw.latest(any_state) is None:
            return -1
        found = [row for each in rows_of(raw.lake, "public.ledger") for row in each.to_pylist()]
    except NoSuchObjectException:
        return -1
    images = (row["after"] for row in found if row["op"] in ("read", "insert", "update"))
    return max((json.loads(image)["transactions"] for image in images), default=-1)


def tell(warehouse: Warehouse, narrator: Narrator) -> None:
    shop = warehouse.shop
    with narrator.step(f"The first refresh computes all of {len(warehouse.runner.graph.nodes)} tables") as step:
        warehouse.refresh()
        warehouse.check_totals(step)
    with shop.selling(SECONDS_BETWEEN_SALES):
        for _ in range(INCREMENTS):
            with narrator.step("The till is selling; an increment computes what changed") as step:
                result = warehouse.refresh()
                warehouse.check_totals(step)
            show(narrator, result)
    with narrator.step("The till closes: what the warehouse shows is what the shop has") as step:
        warehouse.wait_for_capture()
        warehouse.refresh()
        step.check("revenue by hour and category", warehouse.revenue(), shop.revenue())
        step.note(f"{len(shop.revenue())} hours and categories")
    go_back(warehouse, narrator)


def go_back(warehouse: Warehouse, narrator: Narrator) -> None:
    shop, right = warehouse.shop, warehouse.revenue()
    with narrator.step("A faulty program makes all games cost a hundred times as much") as step:
        count = shop.corrupt()
        warehouse.wait_for_capture()
        wrong = warehouse.refresh()
        step.check("wrong revenue", warehouse.revenue(), shop.revenue())
        step.note(f"{count} orders, through all layers")
    with narrator.step("That refresh of ods.orders is rolled back, through all layers") as step:
        with Rollback(warehouse.runner, "ods.orders", wrong.instants["ods.orders"].timestamp) as undoing:
            [undone] = undoing.plan.tables
            step.note(f"{undone.table} lost its wrong changes; followed by {', '.join(undoing.plan.layers)}")
            undoing.check(force=False)
            result = undoing.apply(force=False)
        step.check("revenue", warehouse.revenue(), right)
    show(narrator, result)
    with narrator.step("The shop mends its rows, and sells on") as step:
        shop.mend()
        for _ in range(5):
            shop.sell()
        warehouse.wait_for_capture()
        warehouse.refresh()
        warehouse.check_totals(step)
        step.check("revenue by hour and category", warehouse.revenue(), shop.revenue())


def correct(warehouse: Warehouse, narrator: Narrator) -> None:
    shop, file = warehouse.shop, warehouse.runner.graph.project.directory / "transformations" / "dws.sql"
    text = file.read_text()
    with narrator.step("A query is corrected: what costs less than 5 is a voucher, and no revenue") as step:
        file.write_text(text.replace("FROM dwd.order_lines\n", "FROM dwd.order_lines\nWHERE amount >= 5\n"))
        runner = warehouse.runner.of(graph_of(read_project(file.parents[1])))
        [planned] = [each for each in plan_of(runner) if each.changes]
        step.check("what has changed", (planned.layer, *planned.changes), ("dws.revenue", "query"))
        corrected = runner.refresh()
        step.check("revenue without vouchers", warehouse.revenue(), shop.revenue(least=5))
        step.note(f"the plan: {planned.layer}, {', '.join(planned.changes)}; computed: {planned.computes}")
    show(narrator, corrected)
    with narrator.step("Nobody had asked for that: it is taken back, while the shop has sold on") as step:
        for _ in range(5):
            shop.sell()
        warehouse.wait_for_capture()
        reverted = apply_revert(runner, plan_revert(runner))
        warehouse.check_totals(step)
        step.check("revenue by hour and category", warehouse.revenue(), shop.revenue())
        file.write_text(text)
    show(narrator, reverted)


def show(narrator: Narrator, result: RefreshResult) -> None:
    """How much of each layer that people read has changed."""
    rows = [
        (each.layer, each.how, *(each.changed.get(name, 0) for name in ("inserted", "updated", "deleted")))
        for each in result.layers
        if not each.layer.endswith("_changes")
    ]
    narrator.rows(("table", "refresh", "inserted", "updated", "deleted"), rows)


def draw(warehouse: Warehouse, narrator: Narrator, page: Path) -> None:
    with narrator.step("A page shows how the tables follow from each other, and their lags") as step:
        graph = warehouse.runner.graph
        page.parent.mkdir(exist_ok=True)
        page.write_text(pipeline_page(graph, status_of(graph, warehouse.client), datetime.now(UTC)))
        step.note(str(page))


@contextmanager
def running_capture(uri: str, shop: Shop, scratch: Path) -> Iterator[None]:
    """`metastore capture` as a process of its own."""
    command = [str(Path(sys.executable).with_name("metastore")), "capture", shop.url]
    command += ["--publication", PUBLICATION, "--into", RAW, "--uri", uri, "--interval", SECONDS_BETWEEN_CAPTURES]
    output = scratch / "capture.out"
    with output.open("wb") as written:
        capture = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield
    finally:
        ended = capture.poll()
        capture.terminate()
        capture.wait()
    if ended is not None:
        raise RuntimeError(f"the capture ended early:\n{output.read_text(errors='replace')[-2_000:]}")


def typed_tables(uri: str) -> str:
    """Definitions of the captured tables, as `metastore capture definitions` prints them."""
    command = [str(Path(sys.executable).with_name("metastore")), "capture", "definitions", "--into", RAW, "--uri", uri]
    return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def project_with(definitions: str, directory: Path) -> Graph:
    shutil.copytree(PROJECT, directory)
    (directory / "transformations" / "ods.sql").write_text(definitions)
    return graph_of(read_project(directory))


def tell_all(narrator: Narrator, client: LakeClient, uri: str, scratch: Path, page: Path, stop_sign: StopSign) -> None:
    narrator.section(
        "The incremental warehouse", "A shop's Postgres is captured; layers of tables follow it by increments."
    )
    with ExitStack() as running:
        with narrator.step("Start the shop's database, and capture it") as step:
            shop = running.enter_context(running_shop(scratch / "shop"))
            running.enter_context(running_capture(uri, shop, scratch))
            # The layers' definitions are made from what was captured, so all tables must have been seen.
            wait_for_capture(client, shop, stop_sign)
            step.note(f"into {RAW}")
        with narrator.step("Start Spark"):
            builder = configure(SparkSession.builder, uri)
            spark = running.enter_context(spark_session(builder, scratch))
            stop_sign.watch()
        graph = project_with(typed_tables(uri), scratch / "project")
        runner = Runner(graph, lambda name: lake_table(spark, name, uri), lambda: SparkEngine(spark, {}))
        warehouse = Warehouse(client, uri, shop, spark, runner, stop_sign)
        tell(warehouse, narrator)
        correct(warehouse, narrator)
        draw(warehouse, narrator, page)


def remove(client: LakeClient, database: str) -> None:
    with suppress(Exception):  # what went wrong before is what to tell
        client.call(lambda opened: opened.drop_database(database, True, True))


@click.command(context_settings={"max_content_width": 100})
@click.option("--uri", required=True, metavar="thrift://HOST:PORT", help="The metastore to use.")
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path(__file__).parents[1] / "build" / "warehouse.html",
    help="Where to draw the layers. [default: build/warehouse.html]",
)
def main(uri: str, page: Path) -> None:
    """Watch layers of tables follow a shop's database."""
    # What libraries have to say isn't part of the story.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    warnings.simplefilter("ignore", FutureWarning)
    narrator = Narrator(Console(highlight=False))
    stop_sign = StopSign()
    stop_sign.watch()
    with tempfile.TemporaryDirectory(prefix="warehouse-") as scratch, LakeClient(uri) as client:
        if taken := set(DATABASES) & set(client.call(lambda opened: opened.get_all_databases())):
            raise click.UsageError(f"there is a database {min(taken)} already: use a metastore without")
        try:
            with ending(narrator, stop_sign):
                tell_all(narrator, client, uri, Path(scratch), page, stop_sign)
        finally:
            for name in DATABASES:
                remove(client, name)
    narrator.summary("What the layers showed was the shop's own figures, at every moment.")


if __name__ == "__main__":
    main()
