"""What the metastore counts of a table, what it keeps of decisions, and which tables it says are due."""

import time
from typing import Any

import pytest

from lake.protocol.formats.keyed_table import TOMBSTONES
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import (
    JobRequest,
    RecordDecisionsRequest,
    ServiceDecision,
    ServiceFacts,
    ServiceFactsRequest,
    TableReference,
)
from metastore.services.table_services import looks as module
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import DAY, LakeTable, file


def facts(table: LakeTable, **fields: Any) -> ServiceFacts:
    return table.metastore.table_looks.facts(ServiceFactsRequest(table.reference, **fields))


def record(table: LakeTable, *decisions: ServiceDecision, position: int = 0, **fields: Any) -> list[Any]:
    request = RecordDecisionsRequest(table.reference, position, list(decisions), **fields)
    return table.metastore.table_looks.record(request)


def due(table: LakeTable) -> bool:
    return table.name in [each.table for each in table.metastore.table_looks.due(10_000) if each.database == table.db]


def log(table: LakeTable, *groups: str, size: int = 7, **fields: Any) -> None:
    begun = table.begin("deltacommit")
    slice = "20260101000000000"
    added = [
        file(DAY(1), each, slice, kind="log", size=size, path=f"{DAY(1)}/{each}-{begun.timestamp}.log", **fields)
        for each in groups
    ]
    table.complete(begun, *added)


def test_log_files(table: LakeTable) -> None:
    table.commit("a", "b")
    nothing = facts(table)
    assert (nothing.logFiles, nothing.oldestLogAt, nothing.deltaCommits, nothing.baseFiles) == (0, None, 0, 2)
    log(table, "a", "b")
    log(table, "a")
    log(table, "b", statistics=TOMBSTONES)
    found = facts(table)
    assert (found.logFiles, found.logBytes, found.logGroups, found.mergedBytes) == (3, 21, 2, 200)
    assert found.deltaCommits == 3
    second = table.instants(actions=["deltacommit"])[0]
    assert found.oldestLogAt == second.changedAt
    assert abs((found.now or 0) - time.time() * 1000) < 60_000
    assert found.position == 4


def test_what_plans_name_is_left_out(table: LakeTable) -> None:
    table.commit("a", "b")
    log(table, "a", "b")
    plan = table.begin("compaction", state="requested", plan=[table.group("a")])
    found = facts(table)
    assert (found.logFiles, found.logGroups, found.mergedBytes, found.deltaCommits) == (1, 1, 100, 0)
    assert [(each.timestamp, each.action, each.state, each.fileGroups) for each in found.plans or ()] == [
        (plan.timestamp, "compaction", "requested", 1)
    ]
    job = table.metastore.job_queue.submit(table.reference, JobRequest("compaction", plan.timestamp))
    table.metastore.job_queue.cancel(job.id)
    [known] = facts(table).plans or ()
    assert known.jobState == "cancelled"
    assert known.jobFinishedAt is not None
    assert [each.id for each in facts(table).jobs or ()] == [job.id]


def test_small_files(table: LakeTable) -> None:
    """Three small files of one day become one; the other day has one small file, and gains nothing."""
    instant = table.begin()
    sizes = {"a": 10, "b": 10, "c": 10, "big": 1_000}
    added = [file(DAY(1), name, instant.timestamp or "", size=size) for name, size in sizes.items()]
    table.complete(instant, *added, file(DAY(2), "d", instant.timestamp or "", size=10))
    found = facts(table, smallFileBytes=75, targetFileBytes=100)
    assert (found.smallFiles, found.smallBytes, found.smallBecome) == (3, 30, 1)
    assert (found.baseFiles, found.baseBytes) == (5, 1_040)
    assert facts(table, smallFileBytes=10, targetFileBytes=100).smallFiles == 0
    table.begin("clustering", state="requested", plan=[table.group("a")])
    assert facts(table, smallFileBytes=75, targetFileBytes=100).smallFiles == 0, "a plan names the day"


def test_order(table: LakeTable) -> None:
    instant = table.begin()
    table.complete(
        instant,
        file(DAY(1), "a", instant.timestamp or "", statistics=b"sorted"),
        file(DAY(1), "b", instant.timestamp or "", statistics=b"else", size=30),
        file(DAY(1), "c", instant.timestamp or "", size=4),
    )
    found = facts(table, order=b"sorted")
    assert (found.unorderedFiles, found.unorderedBytes) == (2, 34)
    assert facts(table).unorderedFiles == 0, "no order is asked for"


def test_superseded_files(table: LakeTable) -> None:
    for _ in range(4):
        table.commit("a")
    found = facts(table, keepCommits=1)
    assert (found.cleanFiles, found.cleanBytes) == (3, 300)
    assert found.oldestSupersededAt == table.instants()[1].changedAt
    assert facts(table, keepCommits=3).cleanFiles == 1
    assert facts(table, keepHours=1).cleanFiles == 0
    assert facts(table, keepVersions=2).cleanFiles == 2
    assert facts(table).cleanFiles == 0


def test_properties_and_pauses(table: LakeTable) -> None:
    table.metastore.table_looks.pause(table.reference, "a migration")
    assert facts(table).paused == "a migration"
    table.metastore.table_looks.pause(table.reference, None)
    found = facts(table)
    assert found.paused is None
    assert found.resumedAt is not None
    assert found.parameters is not None
    assert found.databaseParameters == {}
    assert found.keyed is False


def test_decisions_are_kept_with_their_jobs(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    table.commit("a")
    for number in range(5):
        record(table, ServiceDecision("clean", None, f"why {number}"), position=1)
    [job] = record(
        table,
        ServiceDecision("compaction", "compaction", "log files", '{"log_files": 3}', 3.0, 1.0),
        position=1,
        jobs=[JobRequest("compaction", reason="log files", gain=3.0, cost=1.0)],
    )
    assert (job.action, job.gain) == ("compaction", 3.0)
    found = table.metastore.table_looks.decisions(table.reference, 10)
    assert [each.reason for each in found] == ["log files", "why 4", "why 3", "why 2"]
    assert (found[0].figures, found[0].position) == ('{"log_files": 3}', 1)
    assert len(table.metastore.table_looks.decisions(table.reference, 1)) == 1


def test_a_paused_table_gets_no_job(table: LakeTable) -> None:
    table.metastore.table_looks.pause(table.reference, "x")
    assert record(table, jobs=[JobRequest("clean")]) == []


def test_which_tables_are_due(table: LakeTable, metastore: Metastore) -> None:
    assert not due(table), "it has no timeline"
    table.commit("a")
    assert due(table)
    record(table, position=1)
    assert not due(table)
    table.commit("a")
    assert due(table), "instants completed since"
    record(table, position=2, lookAgainAt=int(time.time() * 1000) + 3_600_000)
    assert not due(table)
    record(table, position=1, lookAgainAt=1)
    assert not due(table), "an earlier look says nothing any more"
    record(table, position=2, lookAgainAt=1)
    assert due(table), "the time has come"
    record(table, position=2)
    plan = table.begin("compaction", state="requested", plan=[table.group("a")])
    assert due(table), "nobody is to run the plan"
    metastore.table_looks.pause(table.reference, "x")
    assert not due(table)
    metastore.table_looks.pause(table.reference, None)
    record(table, position=2, jobs=[JobRequest("compaction", plan.timestamp)])
    assert not due(table)


@pytest.mark.parametrize(
    "fields",
    [
        {"smallFileBytes": 0},
        {"targetFileBytes": 1 << 60},
        {"keepCommits": 0},
        {"keepHours": 1, "keepCommits": 1},
        {"keepVersions": 1 << 31},
    ],
    ids=["small", "large", "none", "two", "many"],
)
def test_questions_that_mean_nothing(table: LakeTable, fields: dict[str, int]) -> None:
    with pytest.raises(InvalidOperationException):
        facts(table, **fields)


def test_answers_that_mean_nothing(table: LakeTable) -> None:
    table.commit("a")
    decision = ServiceDecision("clean", None, "x")
    for refused in (
        lambda: record(table, decision.replace(tableService="sweep")),
        lambda: record(table, decision.replace(action="sweep")),
        lambda: record(table, decision.replace(gain=float("nan"))),
        lambda: record(table, decision.replace(figures="x" * 20_001)),
        lambda: record(table, *[decision] * 11),
        lambda: record(table, decision, position=-1),
        lambda: record(table, decision, lookAgainAt=1 << 60),
        lambda: record(table, jobs=[JobRequest("clean")] * 1_001),
        lambda: table.metastore.table_looks.decisions(table.reference, 0),
        lambda: table.metastore.table_looks.due(0),
    ):
        with pytest.raises(InvalidOperationException):
            refused()
    assert table.metastore.table_looks.decisions(table.reference, 10) == []
    with pytest.raises(NoSuchObjectException):
        table.metastore.table_looks.facts(ServiceFactsRequest(TableReference(database=table.db, table="missing")))
