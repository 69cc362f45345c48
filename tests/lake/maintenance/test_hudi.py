"""Hudi's tables: what is decided from what the metastore knows of them, and the commands that do it."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lake.maintenance.decisions.facts import Facts, Job, Plan
from lake.maintenance.decisions.hudi import PAUSE, decide, is_hudi, writer_options
from lake.maintenance.decisions.policy import policy_of
from lake.maintenance.executors.hudi import LOCK_PROVIDER, HudiExecutor, RunElsewhere, WritersWon
from lake.maintenance.executors.programs import run_hudi
from lake.maintenance.executors.spark_submit import SubmissionFailed, running
from lake.protocol.errors import UserError
from lake.protocol.lake import ServiceJob, TableReference
from tests.support.waiting import wait_until

NOW = 1_000_000_000
FACTS = Facts(
    table="shop.orders",
    now=NOW,
    position=5,
    parameters={"spark.sql.sources.provider": "hudi"},
    database_parameters={},
    location="file:/lake/orders",
)
LOCKS = {LOCK_PROVIDER: "a.Lock"}


def decided(facts: Facts, **properties: str) -> dict[str, str | None]:
    """The action of each service, or None."""
    policy = policy_of({name.replace("__", "."): value for name, value in properties.items()})
    return {each.service: each.action for each in decide(facts, policy)}


def test_whose_tables_they_are() -> None:
    assert is_hudi(FACTS)
    assert is_hudi(replace(FACTS, parameters={}, input_format="org.apache.hudi.hadoop.HoodieParquetInputFormat"))
    assert not is_hudi(replace(FACTS, parameters={}, input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquet"))


def test_log_files_are_merged_by_hudis_own_property() -> None:
    facts = replace(FACTS, log_files=4, log_bytes=400, delta_commits=4)
    assert decided(facts)["compaction"] is None
    assert decided(facts, hoodie__compact__inline__max__delta__commits="4")["compaction"] == "compaction"
    assert decided(replace(facts, log_files=0), hoodie__compact__inline__max__delta__commits="4")["compaction"] is None


def test_a_plan_that_waits_is_run_and_one_that_runs_is_left_alone() -> None:
    waiting = replace(FACTS, plans=[Plan("20260101000000000", "compaction", "requested", NOW, 3)])
    assert decided(waiting)["compaction"] == "compaction"
    due = replace(FACTS, log_files=9, log_bytes=900, delta_commits=9)
    begun = replace(due, plans=[Plan("20260101000000000", "compaction", "inflight", NOW, 3)])
    assert decided(due)["compaction"] == "compaction"
    assert decided(begun)["compaction"] is None
    assert set(decided(replace(waiting, paused="a migration")).values()) == {None}


def test_small_files_and_superseded_files() -> None:
    facts = replace(FACTS, small_files=20, small_become=2, base_files=20, clean_files=30)
    assert decided(facts) == {"compaction": None, "clustering": "clustering", "clean": "clean"}
    just = [Job(1, "clustering", "succeeded", finished_at=NOW - 1), Job(2, "clean", "succeeded", finished_at=NOW - 1)]
    assert set(decided(replace(facts, jobs=just)).values()) == {None}
    again = [each.again_at for each in decide(replace(facts, jobs=just), policy_of({})) if each.again_at]
    assert again == [NOW - 1 + PAUSE] * 2
    unordered = replace(FACTS, base_files=5, base_bytes=10, unordered_files=5, unordered_bytes=10)
    assert decided(unordered, **{"clustering.order-by": "id"})["clustering"] is None, "nobody knows how it is sorted"


def test_a_table_whose_timeline_is_not_known() -> None:
    [decision] = decide(replace(FACTS, position=0), policy_of({}))
    assert decision.action is None
    assert "metastore hudi import" in decision.reason


def test_the_writers_options() -> None:
    assert writer_options("compaction", policy_of({}))["hoodie.compact.inline.max.delta.commits"] == "1"
    by_versions = writer_options("clean", policy_of({"hoodie.cleaner.fileversions.retained": "3"}))
    assert by_versions["hoodie.cleaner.policy"] == "KEEP_LATEST_FILE_VERSIONS"
    assert by_versions["hoodie.cleaner.fileversions.retained"] == "3"
    sorts = writer_options("clustering", policy_of({"clustering.order-by": "a,b"}))
    assert sorts["hoodie.clustering.plan.strategy.sort.columns"] == "a,b"
    for action in ("compaction", "clustering", "clean"):
        options = writer_options(action, policy_of({}))
        assert options["hoodie.cleaner.policy.failed.writes"] == "LAZY"
        assert options["hoodie.write.concurrency.mode"] == "optimistic_concurrency_control"


def executor(program: str) -> HudiExecutor:
    return HudiExecutor("thrift://nowhere", "a.jar", LOCKS, ["--master=x"], command=[sys.executable, "-c", program])


def test_a_lock_is_needed() -> None:
    with pytest.raises(UserError, match=LOCK_PROVIDER):
        HudiExecutor("thrift://nowhere", "a.jar", {}, command=["x"])


def test_the_command() -> None:
    job, policy = ServiceJob(id=7, action="compaction", enqueuedAt=123, attempts=2), policy_of({})
    said = executor("import sys; print(sys.argv[1:])").run(job, FACTS, policy, "20260101000000000", threading.Event())
    for word in ("'--jars', 'a.jar'", "--master=x", "run_hudi.py", "'--location', 'file:/lake/orders'"):
        assert word in said
    assert "'--tag', 'tms-job7.123-run-2'" in said
    assert json.dumps(LOCK_PROVIDER) in said
    assert "--again" not in said, "no earlier attempt had the plan"
    had = job.replace(instant="20260101000000000")
    said = executor("import sys; print(sys.argv[1:])").run(had, FACTS, policy, had.instant or "", threading.Event())
    assert "--again" in said


def test_the_import_afterwards_is_into_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    executor("").import_timeline(replace(FACTS, reference=TableReference(database="shop", table="orders", id=57)))
    executor("").import_timeline(FACTS)  # of a server that tells no id
    assert commands[0][-6:] == ["--table", "shop.orders", "--table-id", "57", "--", "file:/lake/orders"]
    assert "--table-id" not in commands[1]


def test_the_plan_is_printed() -> None:
    job, policy = ServiceJob(id=8, action="compaction", enqueuedAt=123, attempts=1), policy_of({})
    executed = executor("print('INFO x'); print('planned: 20260101000000000')")
    assert executed.plan(job, FACTS, policy, threading.Event())[0] == "20260101000000000"
    assert executor("print('planned: -')").plan(job, FACTS, policy, threading.Event())[0] is None


def test_a_process_that_was_left_behind_proves_nothing() -> None:
    """It is waited for; whether it did its work, the timeline says to the next one."""
    job, policy = ServiceJob(id=10, action="compaction", enqueuedAt=123, attempts=2), policy_of({})
    command = [sys.executable, "-c", "import time; time.sleep(1.5)", "--tag", "tms-job10.123-plan-1"]
    with subprocess.Popen(command) as left:
        wait_until(lambda: running("tms-job10.123-plan-"), what="the process")
        executed = executor("print('planned: 20260101000000000')")
        assert executed.plan(job, FACTS, policy, threading.Event())[0] == "20260101000000000"
        assert left.wait(0.1) == 0
    with pytest.raises(SubmissionFailed, match="doesn't say"):
        executor("pass").plan(job, FACTS, policy, threading.Event())


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("raise SystemExit(75)", RunElsewhere),
        ("print('org.apache.hudi.exception.HoodieWriteConflictException'); raise SystemExit(1)", WritersWon),
        ("raise SystemExit(1)", SubmissionFailed),
    ],
)
def test_how_it_fails(program: str, expected: type[Exception]) -> None:
    job, policy = ServiceJob(id=9, action="clustering", enqueuedAt=123, attempts=1), policy_of({})
    with pytest.raises(expected):
        executor(program).run(job, FACTS, policy, "20260101000000000", threading.Event())


def test_a_location_that_is_no_text_for_sql() -> None:
    """Locations are a client's, and Hudi's procedures take them as texts."""
    program = [sys.executable, str(Path(run_hudi.__file__))]
    words = ["--location", "/lake/o', op => 'x", "--action", "compaction", "--step", "plan", "--tag", "t"]
    done = subprocess.run([*program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has characters" in done.stderr
