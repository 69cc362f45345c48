"""Plans as applications on YARN: a real ResourceManager, NodeManager and spark-submit."""

import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest

import metastore
from lake.maintenance.executors.base import Stopped, Task, tag_of
from lake.maintenance.executors.clusters import ClusterExecutor, plan_key
from lake.maintenance.executors.yarn import ResourceManager, YarnCluster
from lake.maintenance.service import Options, Service
from lake.protocol.lake import ListJobsRequest
from lake.tables.compaction import plan_compaction
from lake.tables.lake import LakeClient, LakeTable
from tests.interop.yarn import Yarn, yarn
from tests.lake.maintenance.conftest import commits, merge_on_read, values
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


class Place:
    """A metastore, a cluster, and the options by which Spark finds this package on it."""

    def __init__(self, server: MetastoreServer, lake: LakeClient, cluster: Yarn) -> None:
        self.server = server
        self.lake = lake
        self.manager = ResourceManager(["http://127.0.0.1:1", cluster.url])  # the first one is down
        self.command = ["env", f"HADOOP_CONF_DIR={cluster.configuration}"]
        package = str(Path(metastore.__file__).parents[1])
        self.options = ["--driver-memory=512m", "--executor-memory=512m", "--num-executors=1"]
        for name, value in {
            "spark.yarn.jars": f"local:{SUBMIT.parents[1]}/jars/*",
            "spark.yarn.appMasterEnv.PYTHONPATH": package,
            # A checkout builds its extension against these jars; a wheel has it built.
            "spark.yarn.appMasterEnv.SPARK_HOME": str(SUBMIT.parents[1]),
            "spark.executorEnv.PYTHONPATH": package,
            "spark.yarn.appMasterEnv.PYSPARK_PYTHON": sys.executable,
            "spark.sql.shuffle.partitions": "1",
            "spark.ui.enabled": "false",
        }.items():
            self.options += ["--conf", f"{name}={value}"]

    def executor(self, submit: Path = SUBMIT) -> ClusterExecutor:
        cluster = YarnCluster(self.manager, self.options, command=[*self.command, str(submit)])
        return ClusterExecutor(self.server.uri, cluster)

    def planned(self) -> tuple[LakeTable, str]:
        table = merge_on_read(self.lake)
        commits(table, 3)
        made = plan_compaction(table)[0]
        assert made is not None
        return table, made.timestamp

    def states(self, task: Task) -> list[str]:
        return [each["state"] for each in self.manager.applications(plan_key(task))]


def task_of(table: LakeTable, instant: str, attempt: int = 1) -> Task:
    return Task(table.reference, "compaction", instant, tag_of(instant, attempt))


@pytest.fixture(scope="module")
def place(class_path: Callable[..., list[Path]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("yarn")
    options = ("--instant-heartbeat-seconds", "30", "--housekeeping-seconds", "1")
    with (
        yarn(class_path, directory) as cluster,
        MetastoreServer(directory / "data", *options) as server,
        LakeClient(server.uri) as lake,
    ):
        yield Place(server, lake, cluster)


def test_a_service_compacts_there(place: Place) -> None:
    table = merge_on_read(place.lake)
    commits(table, 6)
    Service(place.server.uri, place.executor(), Options(slots=1)).run_once()
    request = ListJobsRequest(table=table.reference, withLogs=True)
    [job] = place.lake.call(lambda client: client.lake_list_jobs(request)).jobs
    assert (job.action, job.state, job.attempts) == ("compaction", "succeeded", 1), job.log
    assert "application_" in job.log
    assert values(table) == dict.fromkeys(range(8), 5)
    [found] = place.manager.applications(f"tms-{job.instant}-1")
    assert (found["state"], found["finalStatus"]) == ("FINISHED", "SUCCEEDED")


def test_a_submission_whose_answer_is_lost_is_found_by_its_tag(place: Place, tmp_path: Path) -> None:
    table, instant = place.planned()
    submit = tmp_path / "submit"
    submit.write_text(f'#!/bin/sh\n"{SUBMIT}" "$@"\necho the answer is lost\nexit 1\n')
    submit.chmod(submit.stat().st_mode | stat.S_IXUSR)
    task = task_of(table, instant)
    place.executor(submit).run(task, threading.Event())
    assert table.details(instant, "compaction").instant.position is not None
    assert place.states(task) == ["FINISHED"]


def test_an_application_that_outlives_its_service_is_waited_for(place: Place) -> None:
    """Neither service knows of the other: as if the first one had been killed, and its lease were over."""
    table, instant = place.planned()
    first, second = task_of(table, instant), task_of(table, instant, 2)
    running = threading.Thread(target=place.executor().run, args=(first, threading.Event()))
    running.start()
    wait_until(lambda: place.states(first), 60, "an application")
    said = place.executor().run(second, threading.Event())
    assert "had been started before, and has ended" in said
    running.join(60)
    assert place.states(second) == ["FINISHED"], "one application ran, not two"
    assert table.details(instant, "compaction").instant.attempt == 1


def test_it_is_killed_when_its_job_stops(place: Place) -> None:
    table, instant = place.planned()
    task, stop = task_of(table, instant), threading.Event()
    refused: list[type[BaseException]] = []

    def run() -> None:
        try:
            place.executor().run(task, stop)
        except BaseException as error:
            refused.append(type(error))

    running = threading.Thread(target=run)
    running.start()
    wait_until(lambda: place.states(task) == ["RUNNING"], 90, "an application that runs")
    stop.set()
    running.join(60)
    assert refused == [Stopped]
    assert place.states(task) == ["KILLED"]
    wait_until(lambda: [each.timestamp for each in table.instants(states=["requested"])] == [instant], 90, "the plan")
    place.executor().run(task_of(table, instant), threading.Event())  # another job's first attempt has the same tag
    assert table.details(instant, "compaction").instant.position is not None
