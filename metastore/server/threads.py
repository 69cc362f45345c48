"""The threads that answer requests."""

import threading
from collections.abc import Callable
from queue import SimpleQueue

import structlog

log = structlog.get_logger(__name__)


class ThreadPool:
    """A fixed number of threads and a queue before them.

    Not `concurrent.futures`: nobody waits for a future here, and threads that still work must not keep a
    process from ending once its time to drain is over.
    """

    def __init__(self, threads: int) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        for number in range(threads):
            threading.Thread(target=self._work, name=f"request-{number}", daemon=True).start()

    def submit(self, job: Callable[[], None]) -> None:
        """Has a thread call `job` as soon as one is free."""
        self._jobs.put(job)

    @property
    def crowded(self) -> bool:
        """Whether a job waits because all threads are busy."""
        return not self._jobs.empty()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job()
            except BaseException:
                log.exception("a request's thread failed")
            del job  # until the next one comes, it would keep a message alive
