"""The plan generator: what it decides of which facts, and what holds of all its decisions."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.maintenance.decisions.decisions import (
    BYTES_PER_SECOND,
    FAILED_PAUSE,
    HOUR,
    Decision,
    again_at,
    cost_of,
    decide,
)
from lake.maintenance.decisions.facts import Facts, Job, Plan
from lake.maintenance.decisions.policy import BadPolicy, Policy, policy_of

NOW = 1_800_000_000_000
PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"


def keyed(**fields: Any) -> Facts:
    """A merge-on-read table with a few log files."""
    some = {"log_files": 3, "log_bytes": 100, "log_groups": 2, "merged_bytes": 10_000, "oldest_log_at": NOW - 1_000}
    return plain(keyed=True, **{**some, **fields})


def plain(**fields: Any) -> Facts:
    """A table without a primary key."""
    base = {"table": "d.t", "now": NOW, "position": 9, "parameters": {}, "database_parameters": {}}
    return Facts(**{**base, "input_format": PARQUET, **fields})


def decided(facts: Facts, service: str, **properties: str) -> Decision:
    names = {name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()}
    [found] = [each for each in decide(facts, policy_of(names)) if each.service == service and each.instant is None]
    return found


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"delta_commits": 5}, "5 delta commits"),
        ({"log_bytes": 1 << 30, "merged_bytes": 1 << 40}, "log files of"),
        ({"log_bytes": 20 << 20, "merged_bytes": 40 << 20}, "50% of the base files"),
        ({"oldest_log_at": NOW - 86_400_000}, "86400 s old"),
    ],
    ids=["commits", "bytes", "ratio", "age"],
)
def test_compaction_is_due(fields: dict[str, int], why: str) -> None:
    found = decided(keyed(**fields), "compaction")
    assert found.action == "compaction"
    assert why in found.reason
    assert found.gain == 3
    assert decided(keyed(**fields), "compaction", compaction__enabled="false").action is None


def test_compaction_is_not_due_yet() -> None:
    found = decided(keyed(delta_commits=4), "compaction")
    assert found.action is None
    assert "4 of 5 delta commits" in found.reason
    assert found.figures["log_files"] == 3
    assert decided(keyed(log_bytes=9_000), "compaction").action is None, "a small table isn't merged at each commit"
    assert found.again_at == NOW - 1_000 + 86_400_000, "then the oldest log file is old"
    assert decided(keyed(delta_commits=99, log_files=0), "compaction").action is None, "plans merge them all"


def test_small_files() -> None:
    facts = plain(base_files=30, base_bytes=3_000, small_files=12, small_bytes=1_200, small_become=1)
    found = decided(facts, "clustering")
    assert (found.action, found.gain, found.bytes) == ("clustering", 11, 1_200)
    assert "12 small files become 1" in found.reason
    assert decided(facts, "clustering", clustering__fewer_files="12").action is None


def test_order() -> None:
    facts = plain(base_files=10, base_bytes=1_000, unordered_files=3, unordered_bytes=300)
    assert decided(facts, "clustering").action is None, "no order is wanted"
    assert decided(facts, "clustering", clustering__order_by="id").action == "clustering"
    few = replace(facts, unordered_bytes=100)
    assert decided(few, "clustering", clustering__order_by="id").action is None


def test_cleans() -> None:
    assert decided(plain(clean_files=20, clean_bytes=5), "clean").gain == 20
    few = plain(clean_files=3, oldest_superseded_at=NOW - HOUR)
    assert decided(few, "clean").action is None
    assert decided(few, "clean").again_at == NOW + 167 * HOUR
    assert decided(few, "clean", clean__commits_retained="3").again_at is None, "time alone changes nothing"


def test_log_files_are_merged_for_icebergs_readers() -> None:
    merged = {"table-type": "merge-on-read"}
    some = keyed(parameters=merged, log_files=3, log_groups=2)
    wanted = decided(some, "iceberg", iceberg__when="5 min")
    assert (wanted.action, wanted.gain) == ("iceberg", 2)
    done = Job(1, "iceberg", "succeeded", None, "succeeded", 1, 1.0, NOW - 60_000, None)
    waiting = decided(replace(some, jobs=[done]), "iceberg", iceberg__when="5 min")
    assert (waiting.action, waiting.again_at) == (None, NOW + 240_000)
    later = decided(replace(some, jobs=[done]), "iceberg", iceberg__when="1 min")
    assert later.action == "iceberg"
    for facts, text in (
        (keyed(parameters=merged, log_files=0), "no log files"),
        (keyed(log_files=1), "no log files"),
        (keyed(parameters={**merged, "merge-engine": "first-row"}, log_files=1), "merge engine is first-row"),
    ):
        nothing = decided(facts, "iceberg", iceberg__when="5 min")
        assert nothing.action is None and text in nothing.reason
    for when in ({}, {"iceberg.when": "ask"}):
        assert not [each for each in decide(some, policy_of(when)) if each.service == "iceberg"]
    with pytest.raises(BadPolicy, match=r"iceberg\.when"):
        policy_of({"iceberg.when": "often"})


def test_publishes() -> None:
    behind = keyed(unpublished_partitions=2, unpublished_commits=5)
    assert decided(behind, "publish", publish__commits="5").gain == 2
    assert decided(behind, "publish", publish__commits="6").reason.startswith("too little to publish: 5 commits")
    unmerged = decided(keyed(unpublished_commits=9), "publish", publish__commits="1")
    assert (unmerged.action, "have to be compacted before" in unmerged.reason) == (None, True)
    for facts, properties in ((behind, {}), (plain(), {"publish.commits": "1"})):
        assert not [each for each in decide(facts, policy_of(properties)) if each.service == "publish"]


@pytest.mark.parametrize("kind", ["hudi", "iceberg", "orc", ""])
def test_tables_of_others_are_left_alone(kind: str) -> None:
    facts = replace(keyed(delta_commits=99), input_format=kind)
    [found] = decide(facts, policy_of())
    assert found.action is None
    assert "left to the programs that wrote them" in found.reason
    hudi = replace(facts, input_format="org.apache.hudi.hadoop.HoodieParquetInputFormat")
    assert decide(hudi, policy_of())[0].action is None


def due(**fields: Any) -> Decision:
    return decided(keyed(delta_commits=9, **fields), "compaction")


def test_paused_or_running() -> None:
    assert due(paused="a migration").reason.startswith("paused: a migration. It is due: 9 delta commits")
    assert due(jobs=[Job(7, "compaction", "running")]).reason.startswith("job 7 runs")
    assert due(jobs=[Job(7, "compaction", "pending")]).action == "compaction", "what is said of it is renewed"
    assert due(jobs=[Job(7, "clean", "running")]).action == "compaction"
    assert decided(keyed(delta_commits=9), "compaction", table_services__enabled="false").action is None


def test_writers_that_win_are_left_alone_for_longer_and_longer() -> None:
    lost = [Job(number, "compaction", "failed", outcome="conflict", finished_at=NOW) for number in range(30)]
    for losses, minutes in ((1, 1), (2, 2), (4, 8), (30, 24 * 60)):
        found = due(jobs=lost[:losses])
        assert found.action is None
        assert found.again_at == NOW + minutes * 60_000
        assert f"{losses} times in a row" in found.reason
        assert decided(
            replace(keyed(delta_commits=9, jobs=lost[:losses]), now=NOW + minutes * 60_000), "compaction"
        ).action
    won = Job(9, "compaction", "succeeded", outcome="succeeded", finished_at=NOW)
    assert due(jobs=[won, *lost]).action == "compaction"


def test_what_failed_is_set_aside() -> None:
    failed = Job(7, "compaction", "failed", outcome="error", finished_at=NOW - 1)
    found = due(jobs=[failed])
    assert (found.action, found.again_at) == (None, NOW - 1 + FAILED_PAUSE)
    assert due(jobs=[failed], resumed_at=NOW).action == "compaction"
    assert due(jobs=[failed._replace(finished_at=NOW - FAILED_PAUSE)]).action == "compaction"


def test_every_pending_plan_is_run() -> None:
    plans = [Plan(f"2026010{day}000000000", "compaction", "requested", NOW, 2) for day in (3, 1, 2)]
    found = [each for each in decide(keyed(plans=plans), policy_of()) if each.instant]
    assert [each.instant for each in found] == sorted(each.timestamp for each in plans)
    assert {each.action for each in found} == {"compaction"}
    assert [each for each in decide(keyed(plans=plans, paused="x"), policy_of()) if each.action] == []


@pytest.mark.parametrize(
    ("state", "job", "finished", "is_run"),
    [
        ("requested", None, None, True),
        ("inflight", None, None, False),
        ("requested", "running", None, None),
        ("requested", "pending", None, None),
        ("requested", "succeeded", NOW, True),
        ("requested", "cancelled", NOW, False),
        ("requested", "failed", NOW, False),
        ("requested", "failed", NOW - FAILED_PAUSE, True),
    ],
    ids=lambda value: str(value)[:12],
)
def test_plans(state: str, job: str | None, finished: int | None, is_run: bool | None) -> None:
    plan = Plan("20260101000000000", "clustering", state, NOW, 1, job, finished)
    found = [each for each in decide(plain(plans=[plan]), policy_of()) if each.instant]
    assert [each.action is not None for each in found] == ([] if is_run is None else [is_run])
    again = [each for each in decide(plain(plans=[plan], resumed_at=NOW), policy_of()) if each.instant]
    if is_run is not None and job is not None:
        assert again[0].action == "clustering", "resumed"


def test_cost_is_learnt() -> None:
    assert cost_of(int(BYTES_PER_SECOND * 4), "compaction", []) == 4
    slow = Job(1, "compaction", "succeeded", bytes=1_000, cost=10.0)
    assert cost_of(2_000, "compaction", [slow, Job(2, "clean", "succeeded", bytes=1, cost=99.0)]) == 20


FACTS = st.builds(
    Facts,
    table=st.just("d.t"),
    now=st.just(NOW),
    position=st.integers(0, 100),
    parameters=st.just({}),
    database_parameters=st.just({}),
    input_format=st.just(PARQUET),
    keyed=st.booleans(),
    paused=st.sampled_from([None, None, "x"]),
    resumed_at=st.sampled_from([None, NOW - 5, NOW]),
    **{
        name: st.integers(0, 1 << 45)
        for name in (
            *("log_files", "log_bytes", "log_groups", "merged_bytes", "delta_commits", "small_files", "small_bytes"),
            *("small_become", "unordered_files", "unordered_bytes", "base_files", "base_bytes"),
            *("clean_files", "clean_bytes"),
        )
    },
    oldest_log_at=st.none() | st.integers(0, NOW + 10_000),
    oldest_superseded_at=st.none() | st.integers(0, NOW + 10_000),
    plans=st.lists(
        st.builds(
            Plan,
            st.from_regex(r"2026[01][0-9]{12}", fullmatch=True),
            st.sampled_from(["compaction", "clustering", "logcompaction"]),
            st.sampled_from(["requested", "inflight"]),
            st.just(NOW),
            st.integers(0, 9),
            st.sampled_from([None, "pending", "running", "failed", "cancelled", "succeeded"]),
            st.integers(0, NOW),
        ),
        max_size=4,
    ),
    jobs=st.lists(
        st.builds(
            Job,
            st.integers(1, 99),
            st.sampled_from(["compaction", "clustering", "clean"]),
            st.sampled_from(["pending", "running", "succeeded", "failed", "cancelled"]),
            outcome=st.sampled_from([None, "succeeded", "conflict", "error", "lost"]),
            bytes=st.none() | st.integers(0, 1 << 45),
            cost=st.none() | st.floats(0, 1e6),
            finished_at=st.none() | st.integers(0, NOW),
        ),
        max_size=6,
    ),
)
POLICIES = st.builds(
    lambda order, commits: policy_of({**order, "compaction.delta-commits": str(commits)}),
    st.sampled_from(
        [{}, {"clustering.order-by": "id"}, {"clean.commits-retained": "2"}, {"compaction.enabled": "false"}]
    ),
    st.integers(1, 100),
)


@given(FACTS, POLICIES)
def test_of_all_decisions(facts: Facts, policy: Policy) -> None:
    found = decide(facts, policy)
    assert found == decide(facts, policy), "the same facts, the same decisions"
    for each in found:
        assert each.reason
        if each.action is not None:
            assert facts.paused is None
            assert each.action == each.service
            assert each.gain is not None
            assert each.gain >= 0
            assert each.cost is not None
            assert each.cost > 0
            running = any(job.action == each.service and job.state == "running" for job in facts.jobs)
            assert each.instant is not None or not running
        elif each.again_at is not None:
            later = replace(facts, now=each.again_at)
            if each.again_at > facts.now:
                changed = decide(later, policy)
                same = [one for one in changed if (one.service, one.instant) == (each.service, each.instant)]
                assert same != [each], "time changes it then, as it says"
    services = [each.service for each in found if each.instant is None]
    assert len(services) == len(set(services))
    soonest = again_at(found, facts.now)
    assert soonest is None or soonest > facts.now


@given(FACTS, POLICIES, st.integers(1, 1 << 30))
def test_more_to_merge_is_not_less_of_a_reason(facts: Facts, policy: Policy, more: int) -> None:
    facts = replace(facts, keyed=True, log_files=max(1, facts.log_files))
    heavier = replace(facts, log_bytes=facts.log_bytes + more, delta_commits=facts.delta_commits + 1)
    before = next(each for each in decide(facts, policy) if each.service == "compaction" and each.instant is None)
    after = next(each for each in decide(heavier, policy) if each.service == "compaction" and each.instant is None)
    assert before.action is None or after.action is not None
