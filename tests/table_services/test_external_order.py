"""An external policy decides, within its time, about jobs that may start."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from metastore.errors import UsageError
from metastore.table_services.external_order import ExternalOrder, load
from metastore.table_services.scheduling import in_order
from metastore.wire.lake import ServiceJob

NOW = 1_767_268_800_000
JOBS = [
    ServiceJob(id=1, priority=0, gain=1.0),
    ServiceJob(id=2, priority=0, gain=9.0),
    ServiceJob(id=3, priority=0, gain=5.0, notBefore=NOW + 1),
]


def own(jobs: Sequence[ServiceJob], now: int) -> list[int]:
    return in_order(jobs, now, "fifo")


def greatest_gain(jobs: Sequence[ServiceJob], now: int) -> list[int]:
    """A policy that knows nothing of pauses, and answers twice."""
    return [each.id or 0 for each in sorted(jobs, key=lambda each: -(each.gain or 0))] * 2


def test_it_decides() -> None:
    order = ExternalOrder(load(f"{__name__}:greatest_gain"), own)
    assert order(JOBS, NOW) == [2, 1], "a job that has to wait waits"
    assert order(JOBS, NOW + 1) == [2, 3, 1]
    assert ExternalOrder(lambda jobs, now: [2], own)(JOBS, NOW) == [2], "it may leave jobs out"


def fail(jobs: Sequence[ServiceJob], now: int) -> list[int]:
    raise RuntimeError("no model")


@pytest.mark.parametrize(
    "function", [fail, lambda jobs, now: ["2"], lambda jobs, now: None, lambda jobs: []], ids=["fails", "s", "n", "a"]
)
def test_without_an_answer_the_services_own_order_counts(function: Callable[..., Any]) -> None:
    assert ExternalOrder(function, own)(JOBS, NOW) == [1, 2]


def test_it_has_little_time() -> None:
    go = threading.Event()
    asked: list[int] = []

    def slow(jobs: Sequence[ServiceJob], now: int) -> list[int]:
        asked.append(now)
        go.wait(30)
        return [2]

    order = ExternalOrder(slow, own, seconds=0.1)
    assert order(JOBS, NOW) == [1, 2]
    assert order(JOBS, NOW) == [1, 2]
    assert asked == [NOW], "it isn't asked again while it works"
    go.set()


@pytest.mark.parametrize(
    "place", ["", "nothing", "no.such.module:f", f"{__name__}:missing", f"{__name__}:NOW"], ids=range(5)
)
def test_what_is_no_policy(place: str) -> None:
    with pytest.raises(UsageError, match="can't be used as a policy"):
        load(place)
