"""How far a long command has come, in lines on stderr."""

import threading
import time
from collections.abc import Callable, Mapping

EVERY_SECONDS = 5.0


class Progress:
    """Counts objects by kind. Several threads may count."""

    def __init__(self, say: Callable[[str], None], verb: str) -> None:
        """`say` gets a line every few seconds; `verb` says what is done: `imported`."""
        self._say = say
        self._verb = verb
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._begun = time.monotonic()
        self._said, self._said_at = 0, self._begun

    def add(self, kind: str, count: int = 1) -> None:
        line = None
        with self._lock:
            self._counts[kind] = self._counts.get(kind, 0) + count
            now = time.monotonic()
            if now - self._said_at >= EVERY_SECONDS:
                done = sum(self._counts.values())
                rate = (done - self._said) / (now - self._said_at)
                line = f"{self._verb} {described(self._counts)} ({rate:,.0f} objects/s)"
                self._said, self._said_at = done, now
        if line is not None:
            self._say(line)

    def end(self) -> None:
        """Says what was done in all, and how fast."""
        with self._lock:
            seconds = max(self.seconds, 0.001)
            done = sum(self._counts.values())
            self._say(f"{self._verb} {described(self._counts)} in {seconds:,.1f} s ({done / seconds:,.0f} objects/s)")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    @property
    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)


def described(counts: Mapping[str, int]) -> str:
    """Numbers of objects in words: `2 databases, 1,000 partitions`."""
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count) or "nothing"
