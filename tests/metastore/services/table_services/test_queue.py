"""The queue of table services' jobs: one at a time per table and action, fenced by attempts, bounded."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import FileGroup, FinishJobRequest, JobRequest, ListJobsRequest, TakeJobRequest
from metastore.services.table_services import queue as module
from metastore.services.wiring import Metastore
from metastore.store.table_services import jobs
from tests.metastore.services.table_services.conftest import Queue
from tests.metastore.services.timeline.lake import DAY, LakeTable


def states(table: LakeTable) -> list[str]:
    listed = table.metastore.job_queue.listing(ListJobsRequest(table=table.reference, latestFirst=True))
    return [each.state or "" for each in listed.jobs or ()]


def test_one_waits_per_table_and_action(queue: Queue, table: LakeTable) -> None:
    first = queue.submit(table, reason="five delta commits", gain=5.0, cost=1.5, bytes=100)
    again = queue.submit(table, reason="six delta commits")
    assert (again.id, again.reason) == (first.id, "six delta commits")
    assert queue.submit(table, "clean").id != first.id
    assert states(table) == ["pending", "pending"]


def test_one_runs_at_a_time(queue: Queue, table: LakeTable) -> None:
    running = queue.taken(queue.submit(table))
    assert (running.state, running.attempts) == ("running", 1)
    other = queue.submit(table)
    assert other.id != running.id
    assert queue.take(other) is None
    assert queue.take(queue.submit(table, "clean")) is not None
    done = queue.finish(running, "succeeded", "succeeded", cost=2.5, log="done")
    assert (done.state, done.cost, done.log) == ("succeeded", 2.5, "done")
    assert queue.take(other) is not None


def test_many_that_take_get_one_each(pair: tuple[Metastore, Metastore], db: str) -> None:
    queues = [Queue(each) for each in pair]
    tables = [LakeTable(pair[0], db, f"t{number}") for number in range(6)]
    wanted = [queues[0].submit(each) for each in tables]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: queues[number % 2].take(*wanted), range(8)))
    assert sorted(each.id or 0 for each in found if each) == sorted(each.id or 0 for each in wanted)
    assert found.count(None) == 2


def test_a_lost_answer_is_given_again(queue: Queue, table: LakeTable) -> None:
    job = queue.submit(table)
    other = queue.submit(table, "clean")
    first = queue.taken(job, call="one")
    assert queue.take(other, job, call="one") == first
    done = queue.finish(first, "failed", "error", log="no")
    assert queue.finish(first, "failed", "error", log="no").id == done.id


def test_who_was_overtaken_changes_nothing(queue: Queue, table: LakeTable) -> None:
    """The attempt's number is a fence."""
    first = queue.taken(queue.submit(table), lease=1)
    assert queue.metastore.job_queue.heartbeat(first.id, first.attempts, 1) is False
    time.sleep(1.1)
    queue.metastore.job_queue.sweep()
    second = queue.taken(first)
    assert second.attempts == 2
    for late in (
        lambda: queue.metastore.job_queue.heartbeat(first.id, first.attempts, 60),
        lambda: queue.metastore.job_queue.claim_plan(first.id, first.attempts, "20260101000000000"),
        lambda: queue.finish(first, "succeeded", "succeeded"),
    ):
        with pytest.raises(InvalidOperationException, match="is not run by attempt 1 any more"):
            late()
    assert queue.finish(second, "succeeded", "succeeded").state == "succeeded"


def test_a_lost_job_is_set_aside_at_last(queue: Queue, table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Perhaps it kills whoever runs it."""
    monkeypatch.setattr(jobs, "MAX_FAILURES", 1)
    job = queue.taken(queue.submit(table), lease=1)
    time.sleep(1.1)
    queue.metastore.job_queue.sweep()
    [found] = queue.metastore.job_queue.listing(ListJobsRequest(table=table.reference)).jobs or ()
    assert (found.id, found.state, found.outcome) == (job.id, "failed", "lost")


def test_a_lost_job_gives_way_to_one_that_waits(queue: Queue, table: LakeTable) -> None:
    lost = queue.taken(queue.submit(table), lease=1)
    waiting = queue.submit(table)
    time.sleep(1.1)
    queue.metastore.job_queue.sweep()
    assert states(table) == ["pending", "failed"]
    assert queue.take(lost) is None
    assert queue.taken(waiting).id == waiting.id


def test_failures_in_a_row_are_counted(queue: Queue, table: LakeTable) -> None:
    job = queue.submit(table)
    for number in range(1, jobs.MAX_FAILURES + 1):
        done = queue.finish(queue.taken(job), "pending", "error", retrySeconds=0)
        assert done.failures == number
    assert done.state == "failed"
    again = queue.submit(table)
    assert queue.finish(queue.taken(again), "pending", "error", retrySeconds=600).state == "pending"
    assert queue.take(again) is None
    assert queue.submit(table).id == again.id
    due = queue.taken(again)
    assert queue.finish(due, "pending", "stopped", retrySeconds=0).failures == 1


def test_quotas_hold_for_all_services(pair: tuple[Metastore, Metastore], db: str) -> None:
    one, two = map(Queue, pair)
    wanted = [one.submit(LakeTable(pair[0], db, f"t{number}")) for number in range(4)]
    for queue in (one, two):
        assert queue.take(*wanted, quotas={db.upper(): 2}) is not None
    assert one.take(*wanted, quotas={db: 2}) is None
    assert one.take(*wanted, quotas={db: 3, "other": 0}) is not None


def test_pools_have_quotas_too(pair: tuple[Metastore, Metastore], db: str) -> None:
    """A pool is one of all databases: this one's name is no other test's."""
    one, two = map(Queue, pair)
    nightly = f"nightly_of_{db}"
    pools = [nightly.title(), nightly, nightly, None, "other"]
    wanted = [
        one.submit(LakeTable(pair[0], db, f"p{number}"), action="compaction", pool=pool)
        for number, pool in enumerate(pools)
    ]
    assert [each.pool for each in wanted] == [nightly, nightly, nightly, None, "other"]
    bounded = {"poolQuotas": {nightly.upper(): 1}}
    taken = [queue.take(*wanted, **bounded) for queue in (one, two, one)]
    assert [each and each.pool for each in taken] == [nightly, None, "other"]
    assert two.take(*wanted, **bounded) is None
    assert two.take(*wanted, quotas={db: 3}, poolQuotas={nightly: 2}) is None
    assert two.take(*wanted, quotas={db: 4}, poolQuotas={nightly: 2}) is not None


def test_a_job_keeps_its_pool_if_none_is_said(queue: Queue, table: LakeTable) -> None:
    job = queue.submit(table, action="compaction", pool="nightly")
    assert queue.submit(table, action="compaction").id == job.id
    assert queue.submit(table, action="compaction").pool == "nightly"
    assert queue.submit(table, action="compaction", pool="daily").pool == "daily"


def test_cancelling(queue: Queue, table: LakeTable) -> None:
    assert queue.metastore.job_queue.cancel(queue.submit(table).id).state == "cancelled"
    running = queue.taken(queue.submit(table))
    assert queue.metastore.job_queue.cancel(running.id).stopping is True
    assert queue.metastore.job_queue.heartbeat(running.id, running.attempts, 60) is True
    assert queue.finish(running, "pending", "stopped").state == "cancelled"
    with pytest.raises(InvalidOperationException, match="has ended: it is cancelled"):
        queue.metastore.job_queue.cancel(running.id)
    with pytest.raises(NoSuchObjectException, match="there is no job"):
        queue.metastore.job_queue.cancel(10**9)


def test_a_paused_table(queue: Queue, table: LakeTable) -> None:
    running, waiting = queue.taken(queue.submit(table)), queue.submit(table, "clean")
    looks = queue.metastore.table_looks
    looks.pause(table.reference, "a migration")
    assert queue.metastore.job_queue.heartbeat(running.id, running.attempts, 60) is True
    assert queue.finish(running, "pending", "stopped").state == "pending"
    assert queue.take(running, waiting) is None
    with pytest.raises(InvalidOperationException, match=r"paused \(a migration\): resume them first"):
        queue.submit(table)
    looks.pause(table.reference, None)
    assert queue.take(waiting) is not None


def test_plans_have_jobs_of_their_own(queue: Queue, table: LakeTable) -> None:
    done = table.commit("a", "b")
    assert done.instant is not None
    plans = [
        table.begin("compaction", state="requested", plan=[FileGroup(DAY(1), group)]).timestamp for group in ("a", "b")
    ]
    new = queue.submit(table)
    late, early = (queue.submit(table, instant=each) for each in plans[::-1])
    listed = queue.metastore.job_queue.listing(ListJobsRequest(table=table.reference)).jobs or ()
    assert [each.id for each in listed] == [early.id, late.id, new.id], "plans first, the oldest before the others"
    running = queue.taken(new)
    assert queue.metastore.job_queue.claim_plan(running.id, running.attempts, plans[0]) is False, "it has a job"
    with pytest.raises(NoSuchObjectException, match="has no instant"):
        queue.submit(table, instant="20200101000000000")
    with pytest.raises(NoSuchObjectException, match="has no instant"):
        queue.submit(table, "clustering", instant=plans[0])


def test_ended_jobs_are_bounded(queue: Queue, table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    for _ in range(5):
        queue.finish(queue.taken(queue.submit(table)), "succeeded", "succeeded", log="x" * 30_000)
    listed = queue.metastore.job_queue.listing(ListJobsRequest(table=table.reference, withLogs=True)).jobs or ()
    assert [len(each.log or "") for each in listed] == [20_000] * 3


def test_jobs_go_with_their_table(queue: Queue, table: LakeTable) -> None:
    job = queue.submit(table)
    table.metastore.tables.drop(table.db, table.name, delete_data=True)
    assert queue.take(job) is None
    assert queue.metastore.job_queue.listing(ListJobsRequest(states=["pending"], limit=10_000)).jobs is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "sweep"},
        {"gain": float("nan")},
        {"cost": -1.0},
        {"cost": float("inf")},
        {"priority": 1 << 30},
        {"windows": "x" * 2_000},
        {"bytes": -1},
        {"instant": "x" * 100},
    ],
    ids=lambda fields: next(iter(fields)) + str(fields).rpartition(":")[2][:6],
)
def test_what_means_nothing_is_refused(queue: Queue, table: LakeTable, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidOperationException):
        queue.submit(table, **{"action": "compaction", **fields})
    assert states(table) == []


@pytest.mark.parametrize(
    "request_",
    [
        TakeJobRequest("", "c", [1], 60),
        TakeJobRequest("w" * 300, "c", [1], 60),
        TakeJobRequest("w", "", [1], 60),
        TakeJobRequest("w", "c", [1] * 1_001, 60),
        TakeJobRequest("w", "c", [1], 0),
        TakeJobRequest("w", "c", [1], 60, {"d": -1}),
        TakeJobRequest("w", "c", [1], 60, None, {"p": -1}),
        TakeJobRequest("w", "c", [1], 60, {str(each): 1 for each in range(1_001)}),
    ],
    ids=["worker", "long worker", "call", "jobs", "lease", "quota", "pool quota", "quotas"],
)
def test_takes_that_mean_nothing(queue: Queue, request_: TakeJobRequest) -> None:
    with pytest.raises(InvalidOperationException):
        queue.metastore.job_queue.take(request_)


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "running", "outcome": "stopped"},
        {"state": "pending", "outcome": "lost"},
        {"state": "pending", "outcome": "error", "retrySeconds": 10**7},
        {"state": "failed", "outcome": "error", "cost": float("nan")},
    ],
    ids=["state", "outcome", "pause", "cost"],
)
def test_ends_that_mean_nothing(queue: Queue, table: LakeTable, fields: dict[str, Any]) -> None:
    job = queue.taken(queue.submit(table))
    with pytest.raises(InvalidOperationException):
        queue.metastore.job_queue.finish(FinishJobRequest(job=job.id, attempt=job.attempts, **fields))
    assert states(table) == ["running"]


def test_lists_that_mean_nothing(queue: Queue) -> None:
    for request in (ListJobsRequest(states=["done"]), ListJobsRequest(limit=0), ListJobsRequest(limit=10_001)):
        with pytest.raises(InvalidOperationException):
            queue.metastore.job_queue.listing(request)
    with pytest.raises(InvalidOperationException):
        queue.metastore.job_queue.submit(None, JobRequest(action="compaction", priority=1 << 40))
