"""The threads that answer requests."""

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

import structlog

log = structlog.get_logger(__name__)


class ThreadPool:
    """A fixed number of threads and a queue before them.

    Not `concurrent.futures`: nobody waits for a future here, and threads that still work must not keep a
    process from ending once its time to drain is over. Of the threads that wait, the one that worked last works
    next: its caches are the warmest.
    """

    def __init__(self, threads: int) -> None:
        self._jobs: deque[Callable[[], None]] = deque()
        self._idle: list[SimpleQueue[Callable[[], None]]] = []  # where each waiting thread gets its next job
        self._lock = threading.Lock()
        self._patient: deque[Callable[[], None]] = deque()
        self._patient_lock = threading.Lock()
        self._patient_places = max(threads // 2, 1)
        for number in range(threads):
            threading.Thread(target=self._work, name=f"request-{number}", daemon=True).start()

    def submit(self, job: Callable[[], None]) -> None:
        """Queues `job` for the next free thread."""
        with self._lock:
            if not self._idle:
                self._jobs.append(job)
                return
            idle = self._idle.pop()
        idle.put(job)

    def submit_patient(self, job: Callable[[], None]) -> None:
        """Queues `job` with low priority, in the order of submission. At most half of the threads run such jobs.

        One event can wake thousands of waiting subscribers: other requests must not queue behind all of them.
        """
        with self._patient_lock:
            if not self._patient_places:
                self._patient.append(job)
                return
            self._patient_places -= 1
        self.submit(partial(self._in_its_turn, job))

    def _in_its_turn(self, job: Callable[[], None]) -> None:
        try:
            job()
        finally:
            with self._patient_lock:
                following = self._patient.popleft() if self._patient else None
                self._patient_places += following is None
            if following is not None:
                self.submit(partial(self._in_its_turn, following))

    @property
    def crowded(self) -> bool:
        """Whether a job waits because all threads are busy."""
        return bool(self._jobs or self._patient)

    @property
    def waiting(self) -> int:
        """How many jobs wait because all threads are busy."""
        return len(self._jobs) + len(self._patient)

    def _work(self) -> None:
        own: SimpleQueue[Callable[[], None]] = SimpleQueue()
        while True:
            job = self._next(own)
            try:
                job()
            except BaseException:
                log.exception("a request's thread failed")
            del job  # until the next one comes, it would keep a message alive

    def _next(self, own: SimpleQueue[Callable[[], None]]) -> Callable[[], None]:
        with self._lock:
            if self._jobs:
                return self._jobs.popleft()
            self._idle.append(own)
        return own.get()
