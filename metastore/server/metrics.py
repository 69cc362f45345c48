"""What the server counts, for Prometheus.

All processes of a server write to files of one directory (prometheus-client's multi-process mode), and
whoever is asked adds them up. `start` has to come before the first count, since prometheus-client chooses its
mode once.
"""

import functools
import os
from pathlib import Path
from typing import Literal

Outcome = Literal["ok", "exception", "failure"]
"""`exception`: one that the method declares, such as NoSuchObjectException. `failure`: anything else."""

_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


_pid = os.getpid()


def _process_id() -> int:
    return _pid


def _forked() -> None:
    global _pid
    _pid = os.getpid()


os.register_at_fork(after_in_child=_forked)


class _Metrics:
    def __init__(self) -> None:
        # Imported here: prometheus-client looks at its directory when it is imported.
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        self.requests = Counter(
            "metastore_requests",
            "Finished requests.",
            ["method", "outcome"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "metastore_request_seconds",
            "Time from a request's last byte to its reply's.",
            ["method"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.rejected = Counter(
            "metastore_rejected_messages",
            "Messages that were refused unread.",
            ["reason"],
            registry=self.registry,
        )
        self.connections = Gauge(
            "metastore_connections",
            "Open client connections.",
            multiprocess_mode="livesum",
            registry=self.registry,
        )
        self.received = Counter("metastore_received_bytes", "Bytes from clients.", registry=self.registry)
        self.sent = Counter("metastore_sent_bytes", "Bytes to clients.", registry=self.registry)
        self.restarts = Counter(
            "metastore_process_restarts",
            "Processes of the server that ended and were replaced.",
            ["process"],
            registry=self.registry,
        )
        self.cache_answers = Counter(
            "metastore_cache_answers",
            "Requests whose replies may be kept, by where the reply came from.",
            ["level"],
            registry=self.registry,
        )
        self.cache_bytes = Gauge(
            "metastore_cache_bytes",
            "Memory that kept replies take.",
            multiprocess_mode="livesum",
            registry=self.registry,
        )
        self.cache_answers_of = functools.cache(self.cache_answers.labels)
        # labels() parses its arguments at each call; a server has few methods and answers many requests.
        self.requests_of = functools.cache(self.requests.labels)
        self.request_seconds_of = functools.cache(self.request_seconds.labels)


@functools.cache
def _metrics() -> _Metrics:
    return _Metrics()


def start(directory: Path) -> None:
    """Count in `directory` from now on, in this process and those it forks. What an earlier server counted
    there is forgotten. Raises RuntimeError if something was counted before."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in directory.glob("*.db"):
        file.unlink()
    os.environ[_DIRECTORY] = str(directory)
    from prometheus_client import values

    if not values.ValueClass._multiprocess:
        raise RuntimeError("prometheus-client was imported before metrics.start")
    # At each count it asks whose process it is; the system's answer costs more than all the rest of the count.
    values.ValueClass = values.MultiProcessValue(_process_id)  # type: ignore[no-untyped-call]


def request_finished(method: str, outcome: Outcome, seconds: float) -> None:
    """Count a request. `method` is one that the server knows: a name that a client made up would become a
    time series of its own."""
    metrics = _metrics()
    metrics.requests_of(method, outcome).inc()
    metrics.request_seconds_of(method).observe(seconds)


def message_rejected(reason: str) -> None:
    """Count a message that was refused unread, most often with its connection; `reason` is one of a few fixed
    words."""
    _metrics().rejected.labels(reason).inc()


def connection_opened() -> None:
    """Count a client connection that is open from now on."""
    _metrics().connections.inc()


def connection_closed() -> None:
    """Take back `connection_opened`."""
    _metrics().connections.dec()


def bytes_received(count: int) -> None:
    """Count bytes that arrived from clients."""
    _metrics().received.inc(count)


def bytes_sent(count: int) -> None:
    """Count bytes that left for clients."""
    _metrics().sent.inc(count)


def cache_answered(level: Literal["memory", "redis", "database"]) -> None:
    """Count a request whose reply may be kept, by where the reply came from."""
    _metrics().cache_answers_of(level).inc()


def cache_filled(size: int) -> None:
    """Note how many bytes the kept replies of this process take."""
    _metrics().cache_bytes.set(size)


def process_restarted(name: str) -> None:
    """Count that a process of the server ended unexpectedly and was replaced."""
    _metrics().restarts.labels(name).inc()


def process_ended(pid: int) -> None:
    """Take back the open connections of a process that is gone. What it counted stays counted."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]


def open_connections() -> int:
    """Client connections of all the server's processes."""
    from prometheus_client import CollectorRegistry, multiprocess

    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return int(registry.get_sample_value("metastore_connections") or 0)


def exposition() -> tuple[bytes, str]:
    """The counts of all the server's processes in Prometheus's text format, and its media type."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest, multiprocess

    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry), CONTENT_TYPE_LATEST
