"""Which jobs start first, and which may start at all."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lake.maintenance.scheduling import in_order
from lake.protocol.lake import ServiceJob

NOON = 1_767_268_800_000  # 2026-01-01 12:00 UTC


def job(id: int, **fields: Any) -> ServiceJob:
    return ServiceJob(id=id, action="compaction", state="pending", priority=fields.pop("priority", 0), **fields)


def test_fifo() -> None:
    jobs = [job(3), job(1), job(2, priority=1), job(4, instant="20260102"), job(5, instant="20260101")]
    assert in_order(jobs, NOON, "fifo") == [2, 5, 4, 1, 3]


def test_gain_per_cost() -> None:
    jobs = [job(1, gain=10.0, cost=10.0), job(2, gain=10.0, cost=1.0), job(3), job(4, gain=1.0, cost=0.0)]
    assert in_order(jobs, NOON, "gain-per-cost") == [4, 2, 1, 3]
    assert in_order(jobs, NOON, "fifo") == [1, 2, 3, 4]


def test_windows_and_pauses() -> None:
    jobs = [
        job(1, windows="11:00-13:00"),
        job(2, windows="01:00-06:00 UTC"),
        job(3, notBefore=NOON + 1),
        job(4, notBefore=NOON),
        job(5, windows="what nobody can read"),
    ]
    assert in_order(jobs, NOON, "fifo") == [1, 4, 5]


@given(
    st.lists(
        st.builds(
            job,
            st.integers(1, 1_000),
            priority=st.integers(-2, 2),
            gain=st.none() | st.floats(0, 1e9),
            cost=st.none() | st.floats(0, 1e9),
            instant=st.none() | st.sampled_from(["20260101", "20260102"]),
        ),
        unique_by=lambda each: each.id,
    ),
    st.sampled_from(["fifo", "gain-per-cost"]),
)
def test_all_jobs_get_their_turn(jobs: list[ServiceJob], ranking: Any) -> None:
    order = in_order(jobs, NOON, ranking)
    assert sorted(order) == sorted(each.id or 0 for each in jobs)
    by_id = {each.id: each for each in jobs}
    priorities = [by_id[each].priority or 0 for each in order]
    assert priorities == sorted(priorities, reverse=True)
