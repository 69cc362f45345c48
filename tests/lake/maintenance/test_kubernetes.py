"""Plans as pods, by Kubernetes' official client, against a stand-in for its API."""

import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from lake.maintenance.executors import clusters, kubernetes_pods
from lake.maintenance.executors.base import Stopped, Task, tag_of
from lake.maintenance.executors.clusters import ClusterExecutor, RunFailed, Unreachable, plan_key
from lake.maintenance.executors.kubernetes_pods import PodCluster, pod_name
from lake.maintenance.service import Options, Service
from lake.protocol.errors import UserError
from lake.protocol.lake import ListJobsRequest, TableReference
from lake.tables.lake import LakeClient
from tests.lake.maintenance.conftest import commits, merge_on_read, values
from tests.lake.maintenance.kubernetes_api import KubernetesApi
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

kubernetes = pytest.importorskip("kubernetes")

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"team": "lake"}},
    "spec": {"containers": [{"name": "plan", "image": "lake-metastore:spark", "env": [{"name": "A", "value": "b"}]}]},
}
TASKS = iter(range(1_000))
NEVER = threading.Event()


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesApi]:
    monkeypatch.setattr(clusters, "LOOK_SECONDS", 0.1)
    with KubernetesApi() as running:
        yield running


def pods(api: KubernetesApi, options: Sequence[str] = ()) -> PodCluster:
    settings = kubernetes.client.Configuration(host=api.url)
    return PodCluster(kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(settings)), "tables", TEMPLATE, options)


def executor(api: KubernetesApi) -> ClusterExecutor:
    return ClusterExecutor("thrift://nowhere:9083", pods(api))


def task(attempt: int = 1, table: str = "t", instant: str | None = None, table_id: int | None = None) -> Task:
    instant = instant or f"2026010100000{next(TASKS):04}"
    return Task(TableReference("hive", "d", table, table_id), "compaction", instant, tag_of(instant, attempt))


def runs(api: KubernetesApi, program: str) -> None:
    api.program = lambda container: [sys.executable, "-c", program]


def test_the_pod_of_an_attempt(api: KubernetesApi) -> None:
    one = task()
    pod = pods(api, ["--conf", "spark.x=a b"]).pod(one, ["--uri", "thrift://m", "--table", one.name])
    assert pod["metadata"]["name"].startswith(f"{one.tag}-")
    assert pod["metadata"]["labels"] == {"team": "lake", "table-services/plan": plan_key(one)}
    assert pod["metadata"]["annotations"]["table-services/tag"] == one.tag
    assert pod["spec"]["restartPolicy"] == "Never"
    [container] = pod["spec"]["containers"]
    assert container["args"] == ["--uri", "thrift://m", "--table", "hive.d.t", "--tag", one.tag]
    assert container["env"][0] == {"name": "A", "value": "b"}
    assert container["env"][1] == {"name": "PYSPARK_SUBMIT_ARGS", "value": "--conf 'spark.x=a b' pyspark-shell"}
    assert TEMPLATE["metadata"] == {"labels": {"team": "lake"}}, "the template stays as it is"


def test_names_are_those_of_pods() -> None:
    """A timestamp of a client's own has letters, points and underscores; two tables may have the same."""
    odd = task(instant="Own_2026.01-a")
    assert pod_name(odd).startswith("tms-own-2026-01-a-1-")
    assert len({pod_name(odd), pod_name(task(2, instant="Own_2026.01-a")), pod_name(task(table="u"))}) == 3
    assert pod_name(task(instant="20260101", table="t")) != pod_name(task(instant="20260101", table="u"))
    assert plan_key(task(1, instant="1")) == plan_key(task(2, instant="1")) != plan_key(task(1, "u", "1"))


def test_two_tables_of_one_name_share_neither_pods_nor_plans() -> None:
    old, new = task(instant="1", table_id=1), task(instant="1", table_id=(1 << 63) - 1)
    assert old.tag == new.tag
    assert pod_name(old) != pod_name(new)
    assert plan_key(old) != plan_key(new)
    assert plan_key(old) == plan_key(task(2, instant="1", table_id=1))
    assert len(plan_key(new)) <= 63, "the longest label"


def test_a_pod_of_the_dropped_table_is_not_waited_for(api: KubernetesApi) -> None:
    runs(api, "import time; time.sleep(600)")
    old = task(table_id=1)
    left = pods(api).submit(old, [], NEVER)
    runs(api, "print('done')")
    assert "done" in executor(api).run(task(2, instant=old.instant, table_id=2), NEVER)
    pods(api).stop(left)


def test_an_image_that_is_too_old_is_named(api: KubernetesApi) -> None:
    """Its program doesn't know an argument. What argparse says then is the log."""
    refuses = "import argparse, sys; argparse.ArgumentParser('run_plan').parse_args(['--table-id', '1'])"
    runs(api, refuses)
    with pytest.raises(RunFailed, match=r"(?s)the pods' image, the same version.*unrecognized arguments: --table-id"):
        executor(api).run(task(table_id=1), NEVER)


def test_a_run_ends_and_leaves_no_pod(api: KubernetesApi) -> None:
    runs(api, "print('compacted')")
    one = task()
    assert "compacted" in executor(api).run(one, NEVER)
    assert api.created == [pod_name(one)]
    wait_until(lambda: not api.names(), what="that the pod is deleted")


def test_a_failure_has_the_log(api: KubernetesApi) -> None:
    runs(api, "print('out of memory'); raise SystemExit(3)")
    with pytest.raises(RunFailed, match=r"(?s)Failed.*out of memory"):
        executor(api).run(task(), NEVER)


def test_a_lost_answer_is_no_second_run(api: KubernetesApi) -> None:
    runs(api, "import time; time.sleep(1); print('once')")
    api.lost = 1
    one = task()
    assert "once" in executor(api).run(one, NEVER)
    assert api.created == [pod_name(one)]


def test_a_pod_that_outlives_its_service_is_waited_for(api: KubernetesApi) -> None:
    runs(api, "import time; time.sleep(2)")
    first = task()
    left = pods(api).submit(first, [], NEVER)
    said = executor(api).run(task(2, instant=first.instant), NEVER)
    assert f"{left} had been started before" in said
    assert api.created == [left]


def test_a_pod_on_a_lost_node_counts_as_running(api: KubernetesApi) -> None:
    """Nobody hears of its node any more: the container may well go on."""
    runs(api, "import time; time.sleep(600)")
    one, stop = task(), threading.Event()
    left = pods(api).submit(one, [], NEVER)
    api.phases[left] = "Unknown"
    threading.Timer(0.7, stop.set).start()
    with pytest.raises(Stopped):
        executor(api).run(task(2, instant=one.instant), stop)
    assert api.created == [left]


def test_the_same_attempt_of_a_later_job_runs(api: KubernetesApi) -> None:
    """Its plan had been set aside: attempts are counted anew, and the pod of then is still there."""
    runs(api, "print('done')")
    one = task()
    old = pods(api).submit(one, [], NEVER)
    wait_until(lambda: api.pod(old)["status"]["phase"] == "Succeeded", what="the end of the earlier one")
    assert "done" in executor(api).run(one, NEVER)
    assert api.created == [old, old]


def test_it_stops(api: KubernetesApi) -> None:
    runs(api, "import time; time.sleep(600)")
    one, stop = task(), threading.Event()
    threading.Timer(0.7, stop.set).start()
    with pytest.raises(Stopped):
        executor(api).run(one, stop)
    assert api.names() == []


def test_while_the_api_is_away_nothing_is_submitted(api: KubernetesApi) -> None:
    """A run that nobody can see may go on."""
    gone = pods(api)
    api.__exit__(None, None, None)
    with pytest.raises(Unreachable):
        ClusterExecutor("thrift://nowhere", gone).run(task(), NEVER)


def test_a_refused_pod_says_why(api: KubernetesApi) -> None:
    api.refusal = 403
    with pytest.raises(RunFailed, match="refuses the pod"):
        executor(api).run(task(), NEVER)


def test_what_means_nothing_is_refused(api: KubernetesApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no container"):
        PodCluster(None, "tables", {"spec": {}})
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(UserError, match="KUBECONFIG"):
        kubernetes_pods.connected("tables", tmp_path / "pod.yaml")
    cluster = {"name": "c", "cluster": {"server": api.url}}
    context = {"name": "c", "context": {"cluster": "c", "user": "c"}}
    known = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "current-context": "c"}
    (tmp_path / "config").write_text(yaml.safe_dump({**known, "users": [{"name": "c", "user": {}}]}))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    for content in ("[", "- a", None):
        if content is None:
            (tmp_path / "pod.yaml").unlink()
        else:
            (tmp_path / "pod.yaml").write_text(content)
        with pytest.raises(UserError, match=r"pod\.yaml"):
            kubernetes_pods.connected("tables", tmp_path / "pod.yaml")
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(TEMPLATE))
    runs(api, "print('by a file')")
    found = kubernetes_pods.connected("tables", tmp_path / "pod.yaml")
    assert "by a file" in ClusterExecutor("thrift://nowhere", found).run(task(), NEVER)


@pytest.mark.spark
@pytest.mark.long
def test_a_service_compacts_there(api: KubernetesApi, metastore_server: MetastoreServer) -> None:
    """The container's own command, on Spark."""
    uri = metastore_server.uri
    options = ["--master", "local[1]", "--conf", "spark.ui.enabled=false", "--driver-memory", "512m"]
    with LakeClient(uri) as lake:
        table = merge_on_read(lake)
        commits(table, 6)
        Service(uri, ClusterExecutor(uri, pods(api, options)), Options(slots=1)).run_once()
        request = ListJobsRequest(table=table.reference, withLogs=True)
        [job] = lake.call(lambda client: client.lake_list_jobs(request)).jobs or []
        assert (job.action, job.state, job.attempts) == ("compaction", "succeeded", 1), job.log
        assert values(table) == dict.fromkeys(range(8), 5)
        assert len(api.created) == 1
