"""Slows those down who try passwords. Thread-safe."""

import threading
import time
from typing import NamedTuple

from cachetools import TTLCache

FORGOTTEN_SECONDS = 300.0
"""Time without a failed login after which an address's earlier ones don't count any more."""

FREE = 2
"""Failed logins of an address without a pause: everybody mistypes."""

LONGEST_SECONDS = 1.0
"""The longest pause. Others may share the address, behind a proxy or a load balancer: they must not wait for long."""

_FIRST_SECONDS = 0.5
_ADDRESSES = 10_000


class _Failures(NamedTuple):
    number: int
    until: float
    """When the pause after the last one ends, by the monotonic clock."""


class FailedLogins:
    """Counts the failed logins of each address, and says how long its next login has to wait."""

    def __init__(self) -> None:
        self._found: TTLCache[str, _Failures] = TTLCache(_ADDRESSES, FORGOTTEN_SECONDS)
        self._lock = threading.Lock()

    def failed(self, address: str) -> None:
        """Counts a failed login of an address."""
        with self._lock:
            known = self._found.get(address)
            count = 1 if known is None else known.number + 1
            pause = 0.0 if count <= FREE else min(LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** (min(count, 30) - FREE - 1))
            self._found[address] = _Failures(count, time.monotonic() + pause)

    def is_failing(self, address: str) -> bool:
        """Whether an address had more failed logins than anybody's typing explains."""
        with self._lock:
            known = self._found.get(address)
        return known is not None and known.number > FREE

    def pause(self, address: str) -> float:
        """The seconds for which the next login of an address has to wait; 0 if it needn't."""
        with self._lock:
            known = self._found.get(address)
        return 0.0 if known is None else max(known.until - time.monotonic(), 0.0)
