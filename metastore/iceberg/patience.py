"""Waits for calls that may never return."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Patience:
    """Makes calls in threads of their own, and waits for each for a bounded time. Thread-safe."""

    def __init__(self, hanging: int) -> None:
        """`hanging`: calls that may be under way; while they all are, further ones wait, too."""
        self._places = threading.BoundedSemaphore(hanging)

    def wait(self, action: Callable[[], T], seconds: float) -> T:
        """Returns what the call returns, or raises what it raises.

        Raises TimeoutError after a number of seconds. The call goes on then, and nobody hears of its end.
        """
        if not self._places.acquire(timeout=seconds):
            raise TimeoutError
        results: list[Any] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(action())
            except BaseException as error:
                errors.append(error)
            finally:
                self._places.release()

        # Its end isn't awaited when the process ends.
        thread = threading.Thread(target=run, name="storage", daemon=True)
        thread.start()
        thread.join(seconds)
        if errors:
            raise errors[0]
        if not results:
            raise TimeoutError
        found: T = results[0]
        return found
