"""The thread in which a worker does what no client waits for."""

import threading
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)


class Housekeeper:
    """Calls `work` at once and then every `interval` seconds, until stopped. A failure is logged and tried again."""

    def __init__(self, work: Callable[[], None], interval: float) -> None:
        self._work = work
        self._interval = interval
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Starts nothing any more; what is under way may be cut off, since all of it can be done again."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._work()
            except Exception as error:
                log.warning("housekeeping failed", error=str(error), retry_seconds=self._interval)
            self._stopped.wait(self._interval)
