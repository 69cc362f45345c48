"""What the server counts, for Prometheus.

All processes of a server write to files of one directory (prometheus-client's multi-process mode), and the process that
answers `/metrics` adds them up. `start` has to come before the first count: prometheus-client chooses its mode once.
"""

import collections
import functools
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lake.protocol.lake import EventGroup

if TYPE_CHECKING:
    from prometheus_client import Histogram, Metric

Outcome = Literal["ok", "exception", "failure"]
"""`exception`: one that the method declares, such as NoSuchObjectException. `failure`: anything else."""

_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


_OF_LEADER: dict[str, tuple[str, tuple[str, ...]]] = {
    "metastore_leader_task_success_timestamp_seconds": (
        "When a leader task last ended without an error, in seconds since 1970.",
        ("task",),
    ),
    "metastore_files_to_delete": (
        "Files of lake tables that are to be deleted. undeletable: it was tried several times.",
        ("state",),
    ),
    "metastore_pending_moves": (
        "Directories that a committed change moves or deletes, and that are not moved or deleted yet.",
        (),
    ),
    "metastore_pending_publications": (
        "Staged files of completed instants that are not in their partitions yet.",
        (),
    ),
    "metastore_watermark_age_seconds": (
        "Age of the oldest watermark among tables with event-time commit that have uncommitted partitions.",
        (),
    ),
    "metastore_overdue_partitions": (
        "Uncommitted partitions whose time has come, and that could not be made ready.",
        (),
    ),
    "metastore_federation_log_behind_seconds": (
        "By how much the merged notification log of a front is behind the log of a backend.",
        ("backend",),
    ),
}
"""Gauges about the whole metastore, by name: meaning and labels. Only the leader shows them. A server that was the
leader before would show old values."""

MAX_GROUPS = 500
"""So many groups of subscribers are shown, those that were used last. Clients choose the names of groups."""

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
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary

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
            "Messages that were refused unread, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self.logins = Counter(
            "metastore_logins",
            "Logins by mechanism and outcome. unavailable: what they are checked with didn't answer. refused: too many "
            "wait.",
            ["mechanism", "outcome"],
            registry=self.registry,
        )
        self.login_checks = Counter(
            "metastore_login_checks",
            "Steps of logins that have a queue, by kind and outcome.",
            ["kind", "outcome"],
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
        self.cache_leases = Counter(
            "metastore_cache_leases",
            "Leases that workers took, under which reads from memory ask nobody.",
            registry=self.registry,
        )
        self.queued = Gauge(
            "metastore_queued_requests",
            "Requests that wait for a thread or for memory to be read into, and clients that wait for the check of "
            "their login. Looked at once a second.",
            ["waiting_for"],
            multiprocess_mode="livesum",
            registry=self.registry,
        )
        self.pool_waits = Summary(
            "metastore_database_pool_wait_seconds",
            "Time that transactions waited because all connections to the database were in use.",
            registry=self.registry,
        )
        self.authorization_trouble = Gauge(
            "metastore_authorization_trouble",
            "1 while changed policies can't be used and those before them stay in force. Looked at once a second.",
            multiprocess_mode="livemax",
            registry=self.registry,
        )
        self.federation_left_out = Counter(
            "metastore_federation_left_out",
            "Lists of several backends of a front that came without one, which could not be reached.",
            ["backend"],
            registry=self.registry,
        )
        self.federation_lost = Counter(
            "metastore_federation_log_losses",
            "Times that events of a backend were lost to the merged notification log of a front.",
            ["backend"],
            registry=self.registry,
        )
        self.federation_down = Gauge(
            "metastore_federation_backend_down",
            "1 while a worker of a front leaves a backend alone that doesn't answer.",
            ["backend"],
            multiprocess_mode="livemax",
            registry=self.registry,
        )
        self.federation_file_unusable = Gauge(
            "metastore_federation_file_unusable",
            "1 while the changed file of a front can't be used and the one before stays in force.",
            multiprocess_mode="livemax",
            registry=self.registry,
        )
        self.audit_lost = Counter(
            "metastore_audit_lost_records",
            "Records of the audit log that its outlet could not keep while the destination was away.",
            registry=self.registry,
        )
        self.leader = Gauge(
            "metastore_leader",
            "1 on the server that does the leader tasks for all servers on the database, 0 on the others.",
            multiprocess_mode="livemostrecent",
            registry=self.registry,
        )
        self.of_leader = {
            name: Gauge(name, meaning, labels, multiprocess_mode="livemostrecent", registry=self.registry)
            for name, (meaning, labels) in _OF_LEADER.items()
        }
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
    for file in (*directory.glob("*.db"), *directory.glob("*.db.new")):
        file.unlink()
    os.environ[_DIRECTORY] = str(directory)
    from prometheus_client import values

    if not values.ValueClass._multiprocess:
        raise RuntimeError("prometheus-client was imported before metrics.start")
    from metastore.server.monitoring.metric_files import AllocatedFile

    values.MmapedDict = AllocatedFile  # type: ignore[attr-defined]
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


def login(mechanism: str, outcome: Literal["ok", "denied", "unavailable", "refused"]) -> None:
    """Count a login, successful or not."""
    _metrics().logins.labels(mechanism, outcome).inc()


def login_checked(
    kind: Literal["password", "proof", "handshake"], outcome: Literal["checked", "known", "refused", "dropped"]
) -> None:
    """Count a step of a login that has a queue of its own.

    known: the password was right before, so nothing was computed. refused: too many waited. dropped: the client left.
    """
    _metrics().login_checks.labels(kind, outcome).inc()


def connection_opened() -> None:
    """Count a client connection that is open from now on."""
    _metrics().connections.inc()


def connection_closed() -> None:
    """Take back `connection_opened`."""
    _metrics().connections.dec()


class Tally:
    """Counts of the event loop that are too frequent to be shown one by one. Event loop only.

    They are what `bytes_received`, `bytes_sent` and `request_finished` count, and where replies came from; `show`
    passes them on.
    """

    def __init__(self) -> None:
        self.received = 0
        self._from_redis = 0
        self._answered: dict[bytes, list[tuple[float, int]]] = {}

    def answered(self, method: bytes, seconds: float, sent: int, *, from_redis: bool = False) -> None:
        """Counts a request that was answered from the cache, with so many bytes."""
        if (answered := self._answered.get(method)) is None:
            answered = self._answered[method] = []
        answered.append((seconds, sent))
        self._from_redis += from_redis

    def show(self) -> None:
        """Adds to the metrics what was counted since the last call."""
        if self.received:
            bytes_received(self.received)
            self.received = 0
        if not self._answered:
            return
        metrics, answered, self._answered = _metrics(), self._answered, {}
        from_redis, self._from_redis = self._from_redis, 0
        if from_redis:
            metrics.cache_answers_of("redis").inc(from_redis)
        metrics.cache_answers_of("memory").inc(sum(map(len, answered.values())) - from_redis)
        for method, calls in answered.items():
            name = method.decode()
            metrics.requests_of(name, "ok").inc(len(calls))
            bytes_sent(sum(sent for _, sent in calls))
            _observe(metrics.request_seconds_of(name), [seconds for seconds, _ in calls])


def _observe(histogram: "Histogram", values: Sequence[float]) -> None:
    """Observes many values at once. By prometheus-client, one takes longer than to answer a request."""
    histogram._sum.inc(sum(values))
    for place, count in collections.Counter(bisect_left(histogram._upper_bounds, value) for value in values).items():
        histogram._buckets[place].inc(count)


def bytes_received(count: int) -> None:
    """Count bytes that arrived from clients."""
    _metrics().received.inc(count)


def bytes_sent(count: int) -> None:
    """Count bytes that left for clients."""
    _metrics().sent.inc(count)


def cache_missed() -> None:
    """Count a cacheable request whose reply came from the database."""
    _metrics().cache_answers_of("database").inc()


def cache_lease_taken() -> None:
    """Count a lease of this process's cache."""
    _metrics().cache_leases.inc()


def cache_filled(size: int) -> None:
    """Set how many bytes the cached replies of this process take."""
    _metrics().cache_bytes.set(size)


def files_to_delete(waiting: int, undeletable: int) -> None:
    """Set how many files are to be deleted, and how many of them repeated attempts could not delete."""
    _metrics().of_leader["metastore_files_to_delete"].labels("waiting").set(waiting - undeletable)
    _metrics().of_leader["metastore_files_to_delete"].labels("undeletable").set(undeletable)


def pending_files(moves: int, publications: int) -> None:
    """Set how many directories are to be moved or deleted, and how many staged files are to join partitions."""
    _metrics().of_leader["metastore_pending_moves"].set(moves)
    _metrics().of_leader["metastore_pending_publications"].set(publications)


def readiness_backlog(watermark_age: float, overdue: int) -> None:
    """Set the age of the oldest watermark in seconds, and how many partitions are due and not ready."""
    _metrics().of_leader["metastore_watermark_age_seconds"].set(watermark_age)
    _metrics().of_leader["metastore_overdue_partitions"].set(overdue)


def requests_queued(*, for_thread: int, for_memory: int, for_login: int) -> None:
    """Set how many requests of this process wait now, and how many clients for the check of their login."""
    _metrics().queued.labels("thread").set(for_thread)
    _metrics().queued.labels("memory").set(for_memory)
    _metrics().queued.labels("login").set(for_login)


def audit_records_lost(count: int) -> None:
    """Counts records of the audit log that don't reach its outlet's destination."""
    _metrics().audit_lost.inc(count)


def federation_left_out(backend: str) -> None:
    """Counts a list of several backends that came without one."""
    _metrics().federation_left_out.labels(backend).inc()


def federation_log_lost(backend: str) -> None:
    """Counts a loss of events of a backend."""
    _metrics().federation_lost.labels(backend).inc()


def federation_log_behind(backend: str, seconds: float) -> None:
    """Sets by how much the merged notification log is behind a backend."""
    _metrics().of_leader["metastore_federation_log_behind_seconds"].labels(backend).set(seconds)


def federation_backend(backend: str, *, down: bool) -> None:
    """Says whether this process leaves a backend of a front alone."""
    _metrics().federation_down.labels(backend).set(down)


def federation_file(*, usable: bool) -> None:
    """Says whether the file of a front is in force as it was written last."""
    _metrics().federation_file_unusable.set(not usable)


def authorization_in_trouble(troubled: bool) -> None:
    """Says whether rights aren't what the operator has written last."""
    _metrics().authorization_trouble.set(troubled)


def database_pool_waited(seconds: float) -> None:
    """Count a transaction that waited for a connection to the database."""
    _metrics().pool_waits.observe(seconds)


def leading(leads: bool) -> None:
    """Set whether this server does the leader tasks."""
    _metrics().leader.set(leads)


def leader_task_succeeded(task: str) -> None:
    """Set the time of the last success of a leader task to now; `task` is one of a few fixed names."""
    _metrics().of_leader["metastore_leader_task_success_timestamp_seconds"].labels(task).set_to_current_time()


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


class _CountedCollector:
    """What all processes of the server have counted."""

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client import multiprocess

        families = list(multiprocess.MultiProcessCollector(None).collect())  # type: ignore[no-untyped-call]
        leads = any(each.value for family in families if family.name == "metastore_leader" for each in family.samples)
        for family in families:
            if leads or family.name not in _OF_LEADER:
                yield family


class _GroupsCollector:
    """What the database says of groups."""

    def __init__(self, groups: Sequence[EventGroup]) -> None:
        self._groups = groups

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.metrics_core import GaugeMetricFamily

        shown = sorted(self._groups, key=lambda group: group.seenAt or 0, reverse=True)[:MAX_GROUPS]
        yield GaugeMetricFamily("metastore_event_groups", "Groups of subscribers and outlets.", len(self._groups))
        for name, (meaning, value) in _OF_GROUPS.items():
            family = GaugeMetricFamily(name, meaning, labels=["group"])
            for group in shown:
                if (found := value(group)) is not None:
                    family.add_metric([group.name or ""], found)
            if family.samples:
                yield family


_OF_GROUPS: dict[str, tuple[str, Callable[[EventGroup], int | None]]] = {
    "metastore_event_group_position": (
        "The last event that a group of subscribers, or an outlet, has dealt with.",
        lambda group: group.position,
    ),
    "metastore_event_group_lag": ("Events after that one.", lambda group: group.behind),
    "metastore_event_group_members": ("Members that read for a group now.", lambda group: group.members),
    "metastore_event_dead_letters": ("Events that an outlet did not take.", lambda group: group.deadLetters),
    "metastore_event_group_seen_seconds": (
        "When a group was last used, in seconds since 1970.",
        lambda group: None if group.seenAt is None else group.seenAt // 1000,
    ),
}


def exposition() -> tuple[bytes, str]:
    """The counts of all the server's processes in Prometheus's text format, and its media type."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(_CountedCollector())
    return generate_latest(registry), CONTENT_TYPE_LATEST


def groups_exposition(groups: Sequence[EventGroup]) -> bytes:
    """How far groups of subscribers and outlets are in the event log, as they are now, in the same format.

    What a process counted of a group would stay when the group is gone.
    """
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(_GroupsCollector(groups))
    return generate_latest(registry)
