"""Spark is killed while it changes keyed tables: its driver, or its executors."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from lake.spark.jar import extension_jar
from lake.tables.compaction import plan_compaction
from lake.tables.lake import LakeClient, LakeTable
from tests.crash import processes
from tests.lake.tables.keyed.histories import make_table
from tests.spark.session import ROOT, ConfiguredSession, SparkError, require
from tests.support.server import MetastoreServer
from tests.support.target import local_path
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROUNDS = 3
KILLS = 8
SILENCE_SECONDS = 3.0
KEYS, DAYS = 400, 3
COLUMNS = {"id": "bigint", "value": "bigint", "dt": "string"}
BEFORE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from lake.spark import plan_compaction, run_plan, write
def upsert(table, value, share):
    rows = spark.range({KEYS}).where(f"(id * 7 + {{value}}) % {{share}} = 0")
    rows = rows.selectExpr("id", f"{{value}}L AS value", "concat('2026-01-0', id % {DAYS} + 1) AS dt")
    return write(rows, table, operation="upsert", heartbeat_seconds=1.0).instant.position
"""

Rows = dict[int, int]
"""The value of each id."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MetastoreServer]:
    require("4")
    with MetastoreServer(tmp_path / "data", "--instant-heartbeat-seconds", str(SILENCE_SECONDS)) as server:
        yield server


class Driver:
    """A Spark session in a process of its own, which a test may kill."""

    def __init__(self, server: MetastoreServer, directory: Path, **settings: str) -> None:
        warehouse = str(server.data_dir / "warehouse")
        self.session = ConfiguredSession("4", server.uri, warehouse, extension_jar(), directory, **settings)

    def run(self, code: str) -> object:
        return self.session.python(BEFORE + code)

    def die_after(self, seconds: float) -> threading.Timer:
        """Kills the driver, its JVM and all workers in a while."""
        process = psutil.Process(self.session._process.pid)
        timer = threading.Timer(seconds, lambda: processes.kill([*process.children(recursive=True), process]))
        timer.start()
        return timer


def upserted(rows: Rows, value: int, share: int) -> Rows:
    return {**rows, **{id: value for id in range(KEYS) if (id * 7 + value) % share == 0}}


def read(server: MetastoreServer, name: str) -> Rows:
    """What a reader finds who has seen nothing before. Raises AssertionError for a key that is there twice."""
    with LakeClient(server.uri) as client:
        found = client.table(name).scan(include_uncommitted=True).to_arrow().to_pylist()
    rows = {each["id"]: each["value"] for each in found}
    assert len(rows) == len(found)
    return rows


def written_until_killed(driver: Driver, table: LakeTable, rows: Rows, seconds: float, first: int) -> tuple[Rows, Rows]:
    """Upserts one batch after the other. The rows of those that were acknowledged, and the same with the next one."""
    timer = driver.die_after(seconds)
    value = first
    try:
        while True:
            share = 2 + value % 3
            after = upserted(rows, value, share)
            try:
                driver.run(f"result = upsert({table.name!r}, {value}, {share})")
            except (RuntimeError, SparkError, OSError):
                return rows, after
            rows, value = after, value + 1
    finally:
        timer.join()
        driver.session.close()


def check_no_leftovers(table: LakeTable) -> None:
    """What dead writers began is aborted after their silence, and their files are gone."""
    wait_until(lambda: not list(table.instants(states=["inflight"])), 60, "no instant is in flight")
    place = local_path(table.location())

    def left() -> set[str]:
        named = {each.path for each in table.snapshot(all_versions=True, include_uncommitted=True)}
        return {str(each.relative_to(place)) for each in place.rglob("*.parquet")} - named

    with suppress(AssertionError):
        wait_until(lambda: not left(), 30, "the files of dead writers are gone")
    assert left() == set()


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
def test_a_killed_driver_leaves_whole_commits_alone(
    server: MetastoreServer, kind: str, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with LakeClient(server.uri) as client:
        table = make_table(client, {"primary-key": "id,dt", "bucket": "2", "table-type": kind}, COLUMNS)
        rows: Rows = {}
        for number in range(ROUNDS):
            driver = Driver(server, tmp_path / f"spark-{number}")
            driver.run(f"upsert({table.name!r}, {number}, 1)")  # it is warm then, and all keys are there
            rows = upserted(rows, number, 1)
            acknowledged, further = written_until_killed(
                driver, table, rows, chance.uniform(0.3, 4.0), 1000 * (number + 1)
            )
            rows = read(server, table.name)
            assert rows in (acknowledged, further)
        check_no_leftovers(table)
        assert read(server, table.name) == rows


def test_a_compaction_whose_driver_is_killed_is_taken_up_again(
    server: MetastoreServer, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with LakeClient(server.uri) as client:
        table = make_table(client, {"primary-key": "id,dt", "bucket": "4", "table-type": "merge-on-read"}, COLUMNS)
        driver = Driver(server, tmp_path / "spark-0")
        rows: Rows = {}
        for value, share in enumerate((1, 2, 3)):
            driver.run(f"upsert({table.name!r}, {value}, {share})")
            rows = upserted(rows, value, share)
        plan = plan_compaction(table).instant
        assert plan is not None
        run = f"run_plan(spark, {table.name!r}, {plan.timestamp!r}, heartbeat_seconds=1.0)"
        for number in range(ROUNDS):
            timer = driver.die_after(chance.uniform(0.0, 1.0))
            with suppress(RuntimeError, SparkError, OSError):
                driver.run(run)
            timer.join()
            driver.session.close()
            assert read(server, table.name) == rows
            driver = Driver(server, tmp_path / f"spark-{number + 1}")
            wait_until(lambda: not list(table.instants(states=["inflight"])), 60, "nobody runs the plan any more")
        driver.run(run)
        driver.session.close()
        assert read(server, table.name) == rows
        assert {each.kind for each in table.snapshot()} == {"base"}
        check_no_leftovers(table)


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
def test_executors_that_are_killed_at_any_moment(server: MetastoreServer, kind: str, tmp_path: Path, seed: int) -> None:
    """Their tasks run again: each row is there once, and what they had written is gone."""
    chance = random.Random(seed)
    with LakeClient(server.uri) as client:
        table = make_table(client, {"primary-key": "id,dt", "bucket": "2", "table-type": kind}, COLUMNS)
        settings = {"spark_master": "local-cluster[2,1,1024]", "spark_executor_memory": "512m"}
        settings |= {"spark_task_maxFailures": str(KILLS + 1), "spark_deploy_maxExecutorRetries": "-1"}
        driver = Driver(server, tmp_path / "spark", **settings)
        driver.run(f"upsert({table.name!r}, 0, 1)")
        rows = upserted({}, 0, 1)
        killer = threading.Thread(target=_kill_executors, args=(driver, chance))
        killer.start()
        value = 0
        try:
            while killer.is_alive():
                value += 1
                driver.run(f"upsert({table.name!r}, {value}, 2)")
                rows = upserted(rows, value, 2)
        finally:
            killer.join()
            driver.session.close()
        assert read(server, table.name) == rows
        check_no_leftovers(table)


def _kill_executors(driver: Driver, chance: random.Random) -> None:
    """Kills so many of them, one after the other, while there are some."""
    process = psutil.Process(driver.session._process.pid)
    for _ in range(KILLS):
        time.sleep(chance.uniform(1.0, 5.0))
        processes.kill(chance.sample(found := list(_executors(process)), min(1, len(found))))


def _executors(process: psutil.Process) -> Iterator[psutil.Process]:
    """The JVMs of a driver's executors."""
    for each in process.children(recursive=True):
        try:
            if any("CoarseGrainedExecutorBackend" in argument for argument in each.cmdline()):
                yield each
        except psutil.NoSuchProcess:
            continue
