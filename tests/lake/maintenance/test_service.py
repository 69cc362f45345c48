"""The service on a real server: bursts, kills, windows, stops. Compactions run in Arrow."""

import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lake.client.lake_types import FileGroup
from lake.maintenance import receiver as module
from lake.maintenance.attempts import Attempt
from lake.maintenance.executors.base import ArrowExecutor, Stopped, Task
from lake.maintenance.planner import Planner
from lake.maintenance.queue import Queue
from lake.maintenance.receiver import TYPES, Receiver
from lake.maintenance.service import Options, Service
from lake.protocol.formats.iceberg_overlays import FOLDER
from lake.protocol.lake import JobRequest, ListJobsRequest, ServiceDecision, ServiceJob, TableReference
from lake.subscriptions import subscribe
from lake.tables.compaction import plan_compaction
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.maintenance.conftest import commits, merge_on_read, values
from tests.lake.maintenance.stalled_service import STALLED
from tests.lake.tables.keyed.histories import rows_of
from tests.support.server import MetastoreServer
from tests.support.target import local_path
from tests.support.waiting import wait_until


def jobs(table: LakeTable, **fields: Any) -> list[ServiceJob]:
    request = ListJobsRequest(table=table.reference, latestFirst=True, withLogs=True, **fields)
    return table.client.call(lambda client: client.lake_list_jobs(request)).jobs[::-1]


def decisions(table: LakeTable) -> list[ServiceDecision]:
    found: list[ServiceDecision] = table.client.call(lambda client: client.lake_list_decisions(table.reference, 1_000))
    return found


def submit(table: LakeTable, action: str = "compaction", **fields: Any) -> ServiceJob:
    request = JobRequest(action=action, **fields)
    found: ServiceJob = table.client.call(lambda client: client.lake_submit_job(table.reference, request))
    return found


def run_once(server: MetastoreServer, **options: Any) -> None:
    Service(server.uri, None, Options(**options)).run_once()


@contextmanager
def serving(server: MetastoreServer, executor: Any = None, **options: Any) -> Any:
    service = Service(server.uri, executor, Options(**options))
    thread = threading.Thread(target=service.serve)
    thread.start()
    try:
        yield service
    finally:
        service.stop()
        thread.join(30)
        assert not thread.is_alive()


def compactions(table: LakeTable) -> int:
    return sum(each.begun_as == "compaction" for each in table.instants(states=["completed"]))


def test_it_compacts_and_cleans(server: MetastoreServer, lake: LakeClient) -> None:
    table = merge_on_read(lake, clean__commits_retained="1", clean__files="4")
    commits(table, 6)
    run_once(server)
    assert values(table) == dict.fromkeys(range(8), 5)
    assert [(each.action, each.state, each.attempts) for each in jobs(table)] == [
        ("compaction", "succeeded", 1),
        ("clean", "succeeded", 1),
    ]
    assert compactions(table) == 1
    reasons = {each.reason for each in decisions(table) if each.action is None}
    assert "there are no log files that no plan merges" in reasons
    before = table.position().position
    run_once(server)
    assert table.position().position == before, "nothing is due any more"


def test_it_merges_log_files_for_icebergs_readers(server: MetastoreServer, lake: LakeClient) -> None:
    table = merge_on_read(lake, iceberg__when="1 h", compaction__enabled="false")
    commits(table, 3)
    run_once(server)
    assert [(each.action, each.state, each.attempts) for each in jobs(table)] == [("iceberg", "succeeded", 1)]
    merged = Path(local_path(table.location())) / FOLDER
    assert list(merged.glob("*-rows.parquet"))
    commits(table, 1)
    run_once(server)
    assert len(jobs(table)) == 1, "an hour hasn't passed"
    assert any("s ago, and are each 3600 s" in each.reason for each in decisions(table))
    assert compactions(table) == 0


def test_it_publishes_each_so_many_commits(server: MetastoreServer, lake: LakeClient) -> None:
    """Log files are merged before: partitions that have some are published after their compaction."""
    table = merge_on_read(lake, publish__commits="3", compaction__delta_commits="4")
    commits(table, 2)
    run_once(server)
    assert not any(each.published_at for each in table.positions().values()), "two commits of three"
    commits(table, 1)
    run_once(server)
    assert not jobs(table), "log files aren't merged yet"
    commits(table, 2)
    run_once(server)
    assert [(each.action, each.state) for each in jobs(table)] == [
        ("compaction", "succeeded"),
        ("publish", "succeeded"),
    ]
    compacted_at = max(each.position or 0 for each in table.instants(states=["completed"]) if each.action == "commit")
    assert {each.published_at for each in table.positions().values()} == {compacted_at}
    [publish] = table.instants(actions=["publish"])
    assert jobs(table)[-1].instant == publish.timestamp
    run_once(server)
    assert len(jobs(table)) == 2, "nothing is due any more"


def test_commits_lead_to_decisions(server: MetastoreServer, lake: LakeClient) -> None:
    table = merge_on_read(lake, compaction__delta_commits="3")
    with serving(server):
        commits(table, 4)
        wait_until(lambda: compactions(table) == 1, what="the compaction")
        wait_until(lambda: [each.state for each in jobs(table)][:1] == ["succeeded"], what="the end of the job")
    assert values(table) == dict.fromkeys(range(8), 3)


def test_a_burst_is_one_look(server: MetastoreServer, lake: LakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many events of one table, among those of another."""
    monkeypatch.setattr(module, "GROUP", "burst")
    busy, other = merge_on_read(lake), merge_on_read(lake)
    looks: list[str | None] = []

    class Counting(Planner):
        def look(self, table: TableReference) -> list[ServiceJob]:
            looks.append(table.database)
            return super().look(table)

    queue = Queue(lake, "test")
    receiver = Receiver(server.uri, Counting(queue, {}), queue, threading.Event())
    with subscribe(server.uri, types=TYPES, group="burst", start="latest") as events:
        events.poll(0)
        commits(other, 1)
        altered = busy.describe()
        for _ in range(150):
            lake.call(lambda client: client.alter_table(busy.reference.database, "t", altered))
        commits(other, 1, 1)
        received = 0
        while received < 152:
            received += receiver.receive(events, 5)
    assert received == 152
    assert looks.count(busy.reference.database) <= 3
    assert looks.count(other.reference.database) <= 3


def test_what_a_crash_undoes_comes_again(
    server: MetastoreServer, lake: LakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are acknowledged after the decisions about their tables are stored."""
    monkeypatch.setattr(module, "GROUP", "crash")
    table = merge_on_read(lake)
    queue = Queue(lake, "test")

    class Dying(Planner):
        def look(self, table: TableReference) -> list[ServiceJob]:
            raise KeyboardInterrupt

    with subscribe(server.uri, types=TYPES, group="crash", start="latest") as events:
        events.poll(0)
        commits(table, 1)
        with pytest.raises(KeyboardInterrupt):
            Receiver(server.uri, Dying(queue, {}), queue, threading.Event()).receive(events, 5)
    assert decisions(table) == []
    with subscribe(server.uri, types=TYPES, group="crash", start="latest") as events:
        receiver = Receiver(server.uri, Planner(queue, {}), queue, threading.Event())
        wait_until(lambda: receiver.receive(events, 2), what="the event again")
    assert [each.tableService for each in decisions(table)] == ["clean", "compaction"]


def test_what_no_event_tells_is_found(server: MetastoreServer, lake: LakeClient) -> None:
    """Commits that were missed, log files that grow old, and plans that somebody left."""
    table = merge_on_read(lake, compaction__log_ratio="1000", compaction__log_age="1 s")
    commits(table, 2)
    planned = plan_compaction(table)
    assert planned.instant is not None
    run_once(server)
    [of_plan, *_] = jobs(table)
    assert (of_plan.instant, of_plan.state) == (planned.instant.timestamp, "succeeded")
    commits(table, 1, 2)
    wait_until(lambda: run_once(server) or compactions(table) == 2, what="the compaction of old log files")
    assert values(table) == dict.fromkeys(range(8), 2)


def test_all_plans_are_run_the_oldest_first(server: MetastoreServer, lake: LakeClient) -> None:
    table = merge_on_read(lake, bucket="4")
    commits(table, 2)
    groups = sorted({FileGroup(each.partition, each.file_group) for each in table.snapshot()})
    plans = [table.begin("compaction", state="requested", plan=[group]).instant.timestamp for group in groups]
    assert len(plans) > 2
    run_once(server, slots=3)
    done = [each for each in jobs(table) if each.state == "succeeded" and each.instant in plans]
    in_order = sorted(done, key=lambda each: each.startedAt or 0)
    assert [each.instant for each in in_order] == plans
    assert values(table) == dict.fromkeys(range(8), 1)


@pytest.mark.long
def test_a_hundred_plans_after_an_outage(server: MetastoreServer, lake: LakeClient) -> None:
    """They were made while no service ran."""
    table = merge_on_read(lake, bucket="100")
    for number in range(2):
        table.upsert(rows_of([{"id": id, "part": "x", "v": number, "a": None, "b": None} for id in range(3_000)]))
    groups = sorted({FileGroup(each.partition, each.file_group) for each in table.snapshot()})
    plans = [table.begin("compaction", state="requested", plan=[group]).instant.timestamp for group in groups]
    assert len(plans) == 100
    run_once(server, slots=3)
    done = [each for each in jobs(table, limit=1_000) if each.state == "succeeded" and each.instant in plans]
    assert [each.instant for each in sorted(done, key=lambda each: each.startedAt or 0)] == plans
    assert set(values(table).values()) == {1}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "point", ["before", pytest.param("planned", marks=pytest.mark.long), "during", "completed", "finished"]
)
def test_killed(server: MetastoreServer, lake: LakeClient, point: str) -> None:
    """A second service goes on: nothing is done twice, nothing is forgotten."""
    table = merge_on_read(lake)
    commits(table, 6)
    command = [sys.executable, "-m", "tests.lake.maintenance.stalled_service", server.uri, point]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert any(line.strip() == STALLED for line in process.stdout)
        finally:
            process.kill()
    commits(table, 2, 6)  # writers go on

    def over() -> bool:
        run_once(server)
        return [each.state for each in jobs(table)].count("succeeded") > 0

    wait_until(over, 40, "the second service has run the job")
    first = jobs(table)[0]
    assert (first.action, first.state) == ("compaction", "succeeded")
    assert (first.attempts or 0) >= 2
    assert compactions(table) >= 1
    assert [each.timestamp for each in table.instants(states=["requested", "inflight"])] == []
    assert values(table) == dict.fromkeys(range(8), 7)
    planned = [each.instant for each in jobs(table) if each.action == "compaction" and each.instant]
    assert len(set(planned)) == len(planned) == compactions(table), "each plan had one job and was run once"


class Waiting(ArrowExecutor):
    """Runs plans of one table until it is stopped."""

    def __init__(self, client: LakeClient, table: LakeTable) -> None:
        super().__init__(client)
        self._database = table.reference.database
        self.begun = threading.Event()

    def run(self, task: Task, stop: threading.Event) -> str:
        if task.table.database != self._database:
            return super().run(task, stop)
        self.begun.set()
        assert stop.wait(60)
        raise Stopped


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", ["cancel", "pause", "stop"])
def test_running_jobs_stop(server: MetastoreServer, lake: LakeClient, how: str) -> None:
    table = merge_on_read(lake)
    commits(table, 6)
    with closing(LakeClient(server.uri)) as client:
        executor = Waiting(client, table)
        with serving(server, executor, lease_seconds=4):
            assert executor.begun.wait(30)
            job = jobs(table)[0]
            if how == "cancel":
                lake.call(lambda opened: opened.lake_cancel_job(job.id))
            if how == "pause":
                lake.call(lambda opened: opened.lake_pause_table_services(table.reference, "a test"))
            if how != "stop":
                state = "cancelled" if how == "cancel" else "pending"
                wait_until(lambda: jobs(table)[0].state == state, what="the job stops")
        assert jobs(table)[0].outcome == "stopped"
    run_once(server)
    assert compactions(table) == (1 if how == "stop" else 0)
    lake.call(lambda opened: opened.lake_pause_table_services(table.reference, None))
    run_once(server)
    assert compactions(table) == 1, "resumed"


def test_windows(server: MetastoreServer, lake: LakeClient) -> None:
    """A job waits for its window, and stops at its end."""
    listed = lake.call(lambda opened: opened.lake_list_jobs(ListJobsRequest(limit=1)))
    now = datetime.fromtimestamp((listed.now or 0) / 1000, UTC)
    window = f"{now + timedelta(hours=1):%H:%M}-{now + timedelta(hours=2):%H:%M} UTC"
    table = merge_on_read(lake, compaction__windows=window)
    commits(table, 6)
    run_once(server)
    [waiting] = jobs(table)
    assert (waiting.state, waiting.windows) == ("pending", window)
    queue = Queue(lake, "test", lease_seconds=2)
    taken = queue.take([waiting.id or 0])
    assert taken is not None
    clock = iter([90, 90])  # minutes from now
    executor = Waiting(lake, table)

    def at() -> float:
        return (now + timedelta(minutes=next(clock, 150))).timestamp()

    done = Attempt(taken, queue, lake, executor, {}, at).run()
    assert executor.begun.is_set()
    assert done is not None
    assert (done.state, done.outcome, done.failures) == ("pending", "stopped", 0)
    assert "its window has closed" in (done.log or "")


def test_a_plan_that_cannot_succeed_is_set_aside(server: MetastoreServer, lake: LakeClient) -> None:
    table = merge_on_read(lake)
    commits(table, 1)
    job = submit(table, "clustering")  # of a keyed table
    run_once(server)
    assert jobs(table)[0].state == "pending", "this executor can't cluster: another service may"

    class Able(ArrowExecutor):
        actions = frozenset({"clustering"})

    with closing(LakeClient(server.uri)) as client:
        Service(server.uri, Able(client), Options()).run_once()
    failed = jobs(table)[0]
    assert (failed.id, failed.state, failed.outcome) == (job.id, "failed", "error")
    assert "has a primary key" in (failed.log or "")
