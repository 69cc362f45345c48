"""An external policy: a function of somebody else's says which jobs start, and in which order.

It gets the pending jobs as `metastore.wire.lake.ServiceJob` and the database's time in milliseconds since 1970, and
returns the ids of those that shall start, the first one first. If it fails, or takes too long, the service's own order
counts.
"""

import importlib
import threading
from collections.abc import Callable, Sequence

import structlog

from metastore.errors import UsageError
from metastore.table_services.manager import Order
from metastore.wire.lake import ServiceJob

SECONDS = 5.0
"""How long it may take."""

log = structlog.get_logger(__name__)


def load(place: str) -> Order:
    """The function at `module:name`. Raises UsageError if there is none."""
    module, separator, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name) if separator else None
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{place!r} can't be used as a policy: {error}") from None
    if not callable(found):
        raise UsageError(f"{place!r} can't be used as a policy: expected module:function")
    function: Order = found
    return function


class ExternalOrder:
    """Asks a function, in a thread of its own; `otherwise` counts if it doesn't answer in order."""

    def __init__(self, function: Order, otherwise: Order, *, seconds: float = SECONDS) -> None:
        self._function = function
        self._otherwise = otherwise
        self._seconds = seconds
        self._asked: threading.Thread | None = None

    def __call__(self, jobs: Sequence[ServiceJob], now: int) -> Sequence[int]:
        own = self._otherwise(jobs, now)
        try:
            wanted = self._answer(jobs, now)
        except Exception as error:
            log.warning("the external policy gave no answer", error=f"{type(error).__name__}: {error}")
            return own
        ready = set(own)  # windows and pauses hold for it, too
        return [each for each in dict.fromkeys(wanted) if each in ready]

    def _answer(self, jobs: Sequence[ServiceJob], now: int) -> list[int]:
        """What the function says. Raises what it raises, TimeoutError, TypeError for anything but numbers."""
        if self._asked is not None and self._asked.is_alive():
            raise TimeoutError("it still works on the last question")
        answers: list[Callable[[], list[int]]] = []

        def ask() -> None:
            try:
                found = list(self._function(jobs, now))
                answers.append(lambda: found)
            except Exception as error:
                failure = error

                def fail() -> list[int]:
                    raise failure

                answers.append(fail)

        self._asked = threading.Thread(target=ask, name="external policy", daemon=True)
        self._asked.start()
        self._asked.join(self._seconds)
        if not answers:
            raise TimeoutError(f"it took longer than {self._seconds:g} s")
        found = answers[0]()
        if not all(type(each) is int for each in found):
            raise TypeError("it returned something else than ids of jobs")
        return found
