"""Slows those down who try passwords. Event loop only."""

from cachetools import TTLCache

FORGOTTEN_SECONDS = 300.0
"""Time without a failed login after which a client's earlier ones count no more."""

FREE = 2
"""Failed logins of an address that are answered without delay: everybody mistypes."""

LONGEST_SECONDS = 4.0
_FIRST_SECONDS = 0.25
_ADDRESSES = 10_000


class FailedLogins:
    """Counts the failed logins of each address, and says how long the answer to one has to wait."""

    def __init__(self) -> None:
        self._counts: TTLCache[str, int] = TTLCache(_ADDRESSES, FORGOTTEN_SECONDS)

    def failed(self, peer: str) -> float:
        """Counts a failed login of a client, `host:port`. Returns the seconds for which the answer waits."""
        host = peer.rpartition(":")[0]
        count = self._counts.get(host, 0) + 1
        self._counts[host] = count
        if count <= FREE:
            return 0.0
        return min(LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** (min(count, 30) - FREE - 1))
