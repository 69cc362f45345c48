"""Counts for Prometheus, of this process."""

import time
from collections.abc import Sequence

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, generate_latest

from lake.protocol.events.types import Event

_SECONDS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3_600, 14_400)

_DECISION_LAG = Histogram(
    "table_services_decision_lag_seconds", "From a commit to the decision about its table.", buckets=_SECONDS
)
_EVENTS = Counter("table_services_events", "Events that were received.")
_START_LAG = Histogram(
    "table_services_start_lag_seconds", "From when a job was enqueued to its start.", ["action"], buckets=_SECONDS
)
_END_LAG = Histogram(
    "table_services_end_lag_seconds", "From when a job was enqueued to its success.", ["action"], buckets=_SECONDS
)
_RUN = Histogram(
    "table_services_job_seconds", "How long attempts at jobs took.", ["action", "outcome"], buckets=_SECONDS
)
_BYTES = Counter("table_services_rewritten_bytes", "Bytes that jobs read which succeeded.", ["action"])
_WASTED = Counter("table_services_wasted_seconds", "Seconds of attempts that came to nothing.", ["action", "outcome"])
_RUNNING = Gauge("table_services_running_jobs", "Jobs that this process runs.")


def decided(events: Sequence[Event]) -> None:
    """Decisions about the tables of some events are stored."""
    now = time.time()
    _EVENTS.inc(len(events))
    for each in events:
        _DECISION_LAG.observe(max(0.0, now - each.time / 1000))


def started(action: str, lag: float) -> None:
    """A job starts so many seconds after it was enqueued."""
    _START_LAG.labels(action).observe(max(0.0, lag))
    _RUNNING.inc()


def ended(action: str, outcome: str, seconds: float, size: int, lag: float) -> None:
    """An attempt at a job is over, which was to read so many bytes. `lag`: seconds since the job was enqueued."""
    _RUNNING.dec()
    _RUN.labels(action, outcome).observe(seconds)
    if outcome == "succeeded":
        _BYTES.labels(action).inc(size)
        _END_LAG.labels(action).observe(max(0.0, lag))
    else:
        _WASTED.labels(action, outcome).inc(seconds)


def exposition() -> bytes:
    """All counts in Prometheus' text format."""
    return generate_latest(REGISTRY)
