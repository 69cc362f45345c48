"""Hudi's tables under the table management service: its own procedures, in a session of its own, real."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from lake.maintenance.decisions.facts import Facts
from lake.maintenance.decisions.policy import policy_of
from lake.maintenance.executors.hudi import LOCK_PROVIDER, HudiExecutor, RunElsewhere
from lake.maintenance.service import Options, Service
from lake.protocol.lake import ListJobsRequest, ServiceJob, TableReference
from lake.tables.lake import LakeClient
from tests.spark.session import LINES, SparkError, SparkSession, require
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12"
VERSIONS = ("0.15.0", "1.0.2")
LOCKS = {LOCK_PROVIDER: "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
DEFAULTS = {
    "compaction.delta-commits": "3",
    "clustering.fewer-files": "3",
    "clean.commits-retained": "1",
    "clean.files": "2",
}
INLINE = {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "1",
}
APART = {
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.num.retries.on.conflict.failures": "3",
    **LOCKS,
}
COMMITS = 6


class Hudi:
    """A writer's session, the service's executor, and the server of both."""

    def __init__(self, server: MetastoreServer, spark: SparkSession, executor: HudiExecutor, lake: LakeClient) -> None:
        self.server = server
        self.spark = spark
        self.executor = executor
        self.lake = lake

    def write(self, location: Path, query: str, kind: str, operation: str, options: dict[str, str]) -> None:
        settings = {
            "hoodie.table.name": location.name,
            "hoodie.database.name": "shop",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.metadata.enable": "false",
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.bulkinsert.shuffle.parallelism": "1",
            **options,
        }
        self.spark.python(
            f"spark.sql({query!r}).write.format('hudi').options(**{settings!r}).mode('append').save({str(location)!r})"
        )

    def rows(self, location: Path) -> list[list[object]]:
        code = f"spark.read.format('hudi').load({str(location)!r}).selectExpr('id', 'ts', 'dt').orderBy('id').collect()"
        found: list[list[object]] = self.spark.python(f"result = [list(row) for row in {code}]")
        return found

    def imported(self, location: Path) -> None:
        command = [sys.executable, "-m", "metastore", "hudi", "import", str(location), "--uri", self.server.uri]
        subprocess.run([*command, "--table", f"shop.{location.name}"], check=True, capture_output=True)

    def serve_once(self, **more: str) -> None:
        """Looks at all tables that are due, and runs what is. `more`: defaults of policies, with `_` for dots."""
        defaults = {**DEFAULTS, **{name.replace("_", "."): value for name, value in more.items()}}
        Service(self.server.uri, None, Options(defaults=defaults, slots=1), hudi=self.executor).run_once()

    def jobs(self, location: Path) -> list[ServiceJob]:
        """The jobs of a table. Raises AssertionError with the log of one that failed."""
        request = ListJobsRequest(table=TableReference(database="shop", table=location.name), withLogs=True)
        found: list[ServiceJob] = self.lake.call(lambda client: client.lake_list_jobs(request)).jobs or []
        for each in found:
            assert each.outcome in (None, "succeeded"), each.log
        return found

    def done(self, location: Path) -> set[str | None]:
        return {each.action for each in self.jobs(location) if each.state == "succeeded"}


@pytest.fixture(scope="module", params=VERSIONS)
def hudi(
    request: pytest.FixtureRequest,
    class_path: Callable[..., list[Path]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Hudi]:
    require("3.5")
    (jar,) = class_path(f"{BUNDLE}:{request.param}", exclusions=("*:*",))
    directory = tmp_path_factory.mktemp("hudi")
    home = Path(LINES["3.5"]).parent.parent
    [submit] = home.glob("lib/python*/site-packages/pyspark/bin/spark-submit")
    command = ["env", f"SPARK_HOME={submit.parent.parent}", f"PYSPARK_PYTHON={LINES['3.5']}", str(submit)]
    options = ["--master=local[1]", "--conf", "spark.ui.enabled=false", "--driver-memory=768m"]
    options += ["--conf", "spark.sql.shuffle.partitions=1", "--conf", "spark.driver.host=127.0.0.1"]
    settings = {
        "spark_driver_extraClassPath": str(jar),
        "spark_serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark_kryo_registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark_sql_extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    }
    with MetastoreServer(directory / "data") as server, LakeClient(server.uri) as lake:
        executor = HudiExecutor(server.uri, str(jar), LOCKS, options, command=command)
        warehouse = str(directory / "data" / "warehouse")
        with SparkSession("3.5", server.uri, warehouse, directory / "spark", **settings) as spark:
            yield Hudi(server, spark, executor, lake)


def timeline(table: Path) -> Path:
    """The directory of Hudi's instants: since 1.x one of its own."""
    return table / ".hoodie" / "timeline" if (table / ".hoodie" / "timeline").exists() else table / ".hoodie"


def completed(table: Path, action: str) -> set[str]:
    """The timestamps of completed instants; since 1.x their files have the time of completion, too."""
    return {each.name.partition(".")[0].partition("_")[0] for each in timeline(table).glob(f"*.{action}")}


def upserts(number: int) -> str:
    return f"SELECT id, {number} AS ts, concat('p', id % 2) AS dt FROM range({number % 3}, 8) AS t(id)"


def test_log_files_are_merged_and_superseded_files_deleted(hudi: Hudi, tmp_path: Path) -> None:
    table, twin = tmp_path / "merged", tmp_path / "twin"
    kind = "MERGE_ON_READ"
    for number in range(COMMITS):
        hudi.write(table, upserts(number), kind, "upsert", APART)
        hudi.write(twin, upserts(number), kind, "upsert", INLINE)
    hudi.imported(table)
    hudi.serve_once(clean_enabled="false")  # Hudi keeps the version before the earliest commit that it retains
    assert hudi.done(table) == {"compaction"}
    for number in range(COMMITS, 2 * COMMITS):
        hudi.write(table, upserts(number), kind, "upsert", APART)
        hudi.write(twin, upserts(number), kind, "upsert", INLINE)
    hudi.imported(table)
    hudi.serve_once()
    assert hudi.done(table) == {"compaction", "clean"}
    assert hudi.rows(table) == hudi.rows(twin)
    assert len(hudi.rows(table)) == 8
    assert completed(table, "commit"), "compactions, which Hudi has completed"
    assert completed(table, "clean")


def test_a_plan_is_made_when_no_writer_is_under_way(hudi: Hudi, tmp_path: Path) -> None:
    """Hudi would make that writer fail. One that gives no sign of life holds up nothing."""
    table = tmp_path / "gap"
    for number in range(4):
        hudi.write(table, upserts(number), "MERGE_ON_READ", "upsert", APART)
    hudi.imported(table)
    write = begun(table)
    serving = threading.Thread(target=hudi.serve_once)
    serving.start()
    try:
        wait_until(lambda: hudi.jobs(table), 60, "a job")
        time.sleep(30)
        assert not list(timeline(table).glob("*.compaction.requested"))
        for each in write:
            each.unlink()
    finally:
        serving.join(300)
    assert "compaction" in hudi.done(table)

    for number in range(4, 8):
        hudi.write(table, upserts(number), "MERGE_ON_READ", "upsert", APART)
    *_, heartbeat = begun(table)
    os.utime(heartbeat, (0, 0))
    hudi.imported(table)
    hudi.serve_once()
    assert len([each for each in hudi.jobs(table) if each.action == "compaction"]) == 2


def begun(table: Path) -> list[Path]:
    """Makes the files of a write that has begun. The last one is its heartbeat."""
    instant = str(int(max(completed(table, "deltacommit"))) + 1)
    names = [f"{instant}.deltacommit.requested", f"{instant}.deltacommit.inflight"]
    files = [*(timeline(table) / name for name in names), table / ".hoodie" / ".heartbeat" / instant]
    for each in files:
        each.parent.mkdir(exist_ok=True)
        each.touch()
    return files


def test_a_plan_that_waits_is_run(hudi: Hudi, tmp_path: Path) -> None:
    """A writer has planned it, and runs nothing."""
    table = tmp_path / "planned"
    planning = {**APART, "hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    for number in range(3):
        hudi.write(table, upserts(number), "MERGE_ON_READ", "upsert", planning)
    [plan] = timeline(table).glob("*.compaction.requested")
    instant = plan.name.partition(".")[0]
    hudi.imported(table)
    hudi.serve_once()
    assert instant in [each.instant for each in hudi.jobs(table)]
    assert instant in completed(table, "commit")
    assert len(list(timeline(table).glob("*.compaction.requested"))) == 1, "no other was planned"


def test_small_files_are_clustered(hudi: Hudi, tmp_path: Path) -> None:
    table = tmp_path / "clustered"
    for number in range(5):
        query = f"SELECT {number} AS id, {number} AS ts, 'p0' AS dt"
        hudi.write(table, query, "COPY_ON_WRITE", "bulk_insert", APART)
    before = hudi.rows(table)
    hudi.imported(table)
    hudi.serve_once()
    assert "clustering" in hudi.done(table)
    assert hudi.rows(table) == before
    assert completed(table, "replacecommit")


def test_a_running_service_follows_a_writer(hudi: Hudi, tmp_path: Path) -> None:
    table = tmp_path / "followed"
    service = Service(hudi.server.uri, None, Options(defaults=DEFAULTS), hudi=hudi.executor)
    serving = threading.Thread(target=service.serve)
    serving.start()
    try:
        for number in range(5):
            hudi.write(table, upserts(number), "MERGE_ON_READ", "upsert", APART)
            hudi.imported(table)
        wait_until(lambda: "compaction" in hudi.done(table), 180, "a compaction")
        hudi.write(table, upserts(5), "MERGE_ON_READ", "upsert", APART)
    finally:
        service.stop()
        serving.join(60)
    assert not serving.is_alive()
    assert len(hudi.rows(table)) == 8


def test_released_writers_cannot_hand_their_plans_over(hudi: Hudi, tmp_path: Path) -> None:
    """They look for the default of a setting that has none, also where it is set. 1.2.0 does, too.

    When this fails, a release can do it: then let a service answer, as docs/table_services.md says.
    """
    handing = {
        **APART,
        "hoodie.compact.schedule.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.table.service.manager.enabled": "true",
        "hoodie.table.service.manager.uris": "http://127.0.0.1:1?database=shop",
        "hoodie.table.service.manager.actions": "compaction",
        "hoodie.table.service.manager.deploy.extra.params": "none",
    }
    with pytest.raises(SparkError, match=r"There's no default value for this config: hoodie\.table\.service\.manager"):
        for number in range(3):
            hudi.write(tmp_path / "handed", upserts(number), "MERGE_ON_READ", "upsert", handing)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_hundreds_of_commits(hudi: Hudi, tmp_path: Path) -> None:
    """A service follows two writers, whose twins have inline services. HUDI_COMMITS is another number of commits."""
    merged, appended = tmp_path / "hundreds", tmp_path / "appended"
    twins = tmp_path / "hundreds_twin", tmp_path / "appended_twin"
    clustering = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "4"}
    service = Service(hudi.server.uri, None, Options(defaults=DEFAULTS), hudi=hudi.executor)
    serving = threading.Thread(target=service.serve)
    serving.start()
    try:
        for number in range(int(os.environ.get("HUDI_COMMITS", "200"))):
            hudi.write(merged, upserts(number), "MERGE_ON_READ", "upsert", APART)
            hudi.write(twins[0], upserts(number), "MERGE_ON_READ", "upsert", INLINE)
            hudi.imported(merged)
            if number % 2 == 0:
                row = f"SELECT {number} AS id, {number} AS ts, 'p0' AS dt"
                hudi.write(appended, row, "COPY_ON_WRITE", "bulk_insert", APART)
                hudi.write(twins[1], row, "COPY_ON_WRITE", "bulk_insert", clustering)
                hudi.imported(appended)
        wait_until(lambda: {"compaction", "clean"} <= hudi.done(merged), 600, "a compaction and a clean")
        wait_until(lambda: "clustering" in hudi.done(appended), 600, "a clustering")
        # Not by the timeline: after so many commits the writer has archived what was clustered early.
        jobs = {each.name: hudi.jobs(each) for each in (merged, appended)}
    finally:
        service.stop()
        serving.join(120)
    assert not serving.is_alive()
    assert hudi.rows(merged) == hudi.rows(twins[0])
    assert hudi.rows(appended) == hudi.rows(twins[1])
    assert any(job.instant for job in jobs["appended"] if job.action == "clustering" and job.state == "succeeded")
    print({name: Counter(job.action for job in found) for name, found in jobs.items()})


def test_only_its_own_job_runs_a_plan_that_was_begun(hudi: Hudi, tmp_path: Path) -> None:
    """An attempt that died leaves its plan inflight; to any other job that is somebody who still runs it."""
    table = tmp_path / "begun"
    planning = {**APART, "hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    for number in range(2):
        hudi.write(table, upserts(number), "MERGE_ON_READ", "upsert", planning)
    [plan] = timeline(table).glob("*.compaction.requested")
    instant = plan.name.partition(".")[0]
    plan.with_suffix(".inflight").touch()
    facts = Facts(table="shop.begun", now=0, position=1, parameters={}, database_parameters={}, location=str(table))
    job, policy, never = ServiceJob(id=900, action="compaction", enqueuedAt=1, attempts=3), policy_of({}), Event()
    with pytest.raises(RunElsewhere, match="somebody else"):
        hudi.executor.run(job, facts, policy, instant, never)
    assert instant not in completed(table, "commit")
    own = job.replace(instant=instant)
    assert "is complete" in hudi.executor.run(own, facts, policy, instant, never)
    assert instant in completed(table, "commit")
    assert len(hudi.rows(table)) == 8
