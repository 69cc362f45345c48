"""Calls of what may hang: each has a time, and only so many may hang at once."""

import threading
from collections.abc import Callable
from typing import TypeVar

from metastore.server.credentials.identity import Denied, Unavailable

Value = TypeVar("Value")

MOST_AT_ONCE = 16
"""Calls at the same time. One that hangs counts until it returns."""


class BoundedCalls:
    """Makes each call in a thread of its own: one that hangs can't be ended, but the login can. Thread-safe."""

    def __init__(self, what: str, refusal: str, seconds: float) -> None:
        """`what` is called, for the log; `refusal`: what clients read if it doesn't answer within `seconds`."""
        self._what = what
        self._refusal = refusal
        self._seconds = seconds
        self._slots = threading.Semaphore(MOST_AT_ONCE)

    def call(self, function: Callable[[], Value]) -> Value:
        """What the function returns. Raises what it raises of Denied, and Unavailable for anything else."""
        if not self._slots.acquire(blocking=False):
            raise Unavailable(self._refusal, f"{MOST_AT_ONCE} calls of {self._what} have not returned")
        answered = threading.Event()
        results: list[Value] = []
        failures: list[Denied] = []

        def run() -> None:
            try:
                results.append(function())
            except Denied as denied:
                failures.append(denied)
            except BaseException as error:
                # Its text may hold the password.
                failures.append(Unavailable(self._refusal, f"{self._what} failed: {type(error).__name__}"))
            finally:
                self._slots.release()
                answered.set()

        threading.Thread(target=run, name=self._what, daemon=True).start()
        if not answered.wait(self._seconds):
            raise Unavailable(self._refusal, f"{self._what} did not answer within {self._seconds:g} s")
        if failures:
            raise failures[0]
        return results[0]
