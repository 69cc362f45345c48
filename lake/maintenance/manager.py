"""The job manager: takes jobs as there is room, runs an attempt of each in a thread, and stops them in order."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence

import structlog
from thrift.Thrift import TException

from lake.maintenance.attempts import Attempt
from lake.maintenance.decisions.decisions import CLEAN, CLUSTERING, COMPACTION, ICEBERG, ORPHANS, PUBLISH
from lake.maintenance.executors.base import Executor
from lake.maintenance.executors.hudi import HudiExecutor
from lake.maintenance.executors.iceberg import IcebergExecutor
from lake.maintenance.queue import Queue
from lake.maintenance.scheduling import NO_QUOTAS, Quotas, Ranking, in_order
from lake.protocol.lake import ServiceJob
from lake.tables.lake import LakeClient

LOOK_SECONDS = 1.0
"""How often the queue is looked at for jobs."""

STOP_SECONDS = 60.0
"""How long jobs may take to stop in order."""

Order = Callable[[Sequence[ServiceJob], int], Sequence[int]]
"""Which jobs to start at a time, in milliseconds since 1970, and in which order: their ids."""

log = structlog.get_logger(__name__)


class Manager:
    """Runs jobs. `step` and `run` are for one thread."""

    def __init__(
        self,
        queue: Queue,
        client: LakeClient,
        executor: Executor,
        defaults: Mapping[str, str],
        *,
        slots: int = 2,
        ranking: Ranking = "fifo",
        quotas: Quotas = NO_QUOTAS,
        order: Order | None = None,
        iceberg: IcebergExecutor | None = None,
        hudi: HudiExecutor | None = None,
        ended: Callable[[ServiceJob], None] = lambda job: None,
    ) -> None:
        """`slots`: jobs at a time. `order`: in place of `ranking`. `iceberg`, `hudi`: for their tables. `ended`: is
        told how each attempt ended."""
        self._queue = queue
        self._client = client
        self._executor = executor
        self._defaults = defaults
        self._slots = slots
        self._quotas = quotas
        self._order: Order = order or (lambda jobs, now: in_order(jobs, now, ranking))
        self._iceberg = iceberg
        self._hudi = hudi
        self._tell = ended
        self._ahead = 0.0  # seconds by which the database's clock is ahead of this host's
        self._running: dict[threading.Thread, Attempt] = {}
        self._freed = threading.Event()

    def run(self, stop: threading.Event) -> None:
        """Runs jobs until `stop` is set, then stops those that run."""
        while not stop.is_set():
            try:
                self.step()
            except (TException, OSError) as error:
                log.warning("the queue of jobs can't be read", error=str(error), retry_seconds=LOOK_SECONDS)
            self._freed.wait(LOOK_SECONDS)
            self._freed.clear()
        self.stop()

    def step(self) -> int:
        """Starts as many jobs as there is room for. Returns how many run then."""
        self._running = {thread: each for thread, each in self._running.items() if thread.is_alive()}
        if len(self._running) >= self._slots:
            return len(self._running)
        listed = self._queue.pending()
        self._ahead = (listed.now or 0) / 1000 - time.time()
        able = {CLEAN, PUBLISH, ORPHANS, ICEBERG, *self._executor.actions}
        able |= {CLUSTERING} if self._iceberg or self._hudi else set()
        able |= {COMPACTION} if self._hudi else set()
        wanted = list(self._order([each for each in listed.jobs or () if each.action in able], listed.now or 0))
        while wanted and len(self._running) < self._slots:
            job = self._queue.take(wanted, self._quotas)
            if job is None:
                break
            wanted = [each for each in wanted if each != job.id]
            self._start(job)
        return len(self._running)

    def stop(self) -> None:
        """Stops all jobs, and waits for them, for a while."""
        for each in self._running.values():
            each.stop()
        until = time.monotonic() + STOP_SECONDS
        for thread in self._running:
            thread.join(max(0.0, until - time.monotonic()))
        if late := sum(thread.is_alive() for thread in self._running):
            log.warning("jobs didn't stop in time: they count as lost", jobs=late)

    def wait(self, seconds: float) -> None:
        """Waits until an attempt ends, at most so many seconds."""
        self._freed.wait(seconds)
        self._freed.clear()

    def _start(self, job: ServiceJob) -> None:
        attempt = Attempt(
            job, self._queue, self._client, self._executor, self._defaults, self._clock, self._iceberg, self._hudi
        )

        def run() -> None:
            try:
                if (done := attempt.run()) is not None:
                    self._tell(done)
            finally:
                self._freed.set()

        thread = threading.Thread(target=run, name=f"job-{job.id}-{job.attempts}", daemon=True)
        self._running[thread] = attempt
        thread.start()

    def _clock(self) -> float:
        return time.time() + self._ahead
