"""Background work that one server does for all servers of a database.

Each server has one candidate. It waits for the leader lock, and runs the leader tasks until it finds the lock lost. For
a moment two servers may run the same task: every leader task is safe then.
"""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog

from metastore.server.monitoring import metrics
from metastore.store import DatabaseUnavailable
from metastore.store.engine.leader_lock import LeaderLock

LOOK_SECONDS = 1.0
"""Time between two attempts to take the lock: how soon the next server notices that a leader died."""

log = structlog.get_logger(__name__)


class LeaderTask(NamedTuple):
    """Work that is done every `seconds`. It must be safe if another server does it at the same time."""

    name: str
    work: Callable[[], object]
    seconds: float


class LeaderTasks:
    """The candidate of a server. While it holds the lock each task runs in a thread of its own."""

    def __init__(self, lock: LeaderLock, tasks: Sequence[LeaderTask]) -> None:
        self._lock = lock
        self._tasks = tasks
        self._ours = threading.Event()
        self._stopped = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._stand_by, name="leader tasks", daemon=True).start()
        for task in self._tasks:
            threading.Thread(target=self._do, args=(task,), name=task.name, daemon=True).start()

    def stop(self) -> None:
        """Starts no task any more. One that runs may be cut off when the process ends: all can be repeated."""
        self._stopped.set()

    def _stand_by(self) -> None:
        while not self._stopped.is_set():
            try:
                ours = self._lock.take()
            except DatabaseUnavailable as error:
                log.warning("can't take the leader lock", error=str(error), retry_seconds=LOOK_SECONDS)
                ours = False
            metrics.leading(ours)
            if ours and not self._ours.is_set():
                log.info("leader tasks run on this server")
                self._ours.set()
            elif self._ours.is_set() and not ours:
                log.info("leader tasks no longer run on this server")
                self._ours.clear()
            self._stopped.wait(LOOK_SECONDS)
        self._lock.release()
        metrics.leading(False)

    def _do(self, task: LeaderTask) -> None:
        while self._ours.wait() and not self._stopped.is_set():
            try:
                task.work()
                metrics.leader_task_succeeded(task.name)
            except Exception as error:
                log.warning("a leader task failed", task=task.name, error=str(error), retry_seconds=task.seconds)
            self._stopped.wait(task.seconds)
