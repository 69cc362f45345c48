"""An external policy: a function or an HTTP endpoint of somebody else's says which jobs start, and in which order.

A function gets the pending jobs as `lake.protocol.lake.ServiceJob` and the database's time in milliseconds since 1970,
an endpoint the same in JSON. It returns the ids of those that shall start, the first one first. If it fails, or takes
too long, the service's own order counts.
"""

import importlib
import threading
from collections.abc import Callable, Sequence

import structlog
import urllib3

from lake.maintenance.manager import Order
from lake.protocol.errors import UsageError
from lake.protocol.lake import ServiceJob

SECONDS = 5.0
"""How long it may take."""

log = structlog.get_logger(__name__)


def load(place: str) -> Order:
    """The function at `module:name`, or one that asks an `http://` or `https://` address. Raises UsageError."""
    if place.startswith(("http://", "https://")):
        return _Endpoint(place)
    module, separator, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name) if separator else None
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{place!r} can't be used as a policy: {error}") from None
    if not callable(found):
        raise UsageError(f"{place!r} can't be used as a policy: expected module:function")
    function: Order = found
    return function


class _Endpoint:
    """POSTs `{"now": …, "jobs": [{…}]}` to an address, which answers a list of ids."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = urllib3.PoolManager(timeout=SECONDS, retries=False)

    def __call__(self, jobs: Sequence[ServiceJob], now: int) -> Sequence[int]:
        reply = self._http.request("POST", self._url, json={"now": now, "jobs": [_shape(each) for each in jobs]})
        if reply.status != 200:
            raise ValueError(f"{self._url} answers {reply.status}")
        found: Sequence[int] = reply.json()
        return found


def _shape(job: ServiceJob) -> dict[str, object]:
    """A pending job in JSON. Times are in milliseconds since 1970, `cost` is in seconds."""
    return {
        "id": job.id,
        "database": job.table.database if job.table else None,
        "table": job.table.table if job.table else None,
        "action": job.action,
        "instant": job.instant,
        "reason": job.reason,
        "gain": job.gain,
        "cost": job.cost,
        "bytes": job.bytes,
        "priority": job.priority,
        "attempts": job.attempts,
        "failures": job.failures,
        "enqueued": job.enqueuedAt,
        "notBefore": job.notBefore,
        "windows": job.windows,
    }


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
