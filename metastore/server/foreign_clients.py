"""Logs clients that speak another protocol than Thrift, at a bounded rate."""

import time

import structlog

from lake.protocol.codec.foreign import Foreign

LINE_SECONDS = 10.0
"""Time between two log lines about clients of one protocol."""

log = structlog.get_logger(__name__)


class ForeignClients:
    """The log of the clients that a worker rejected for their protocol. Event loop only."""

    def __init__(self) -> None:
        self._silent_until: dict[str, float] = {}  # by reason; a moment of the monotonic clock
        self._unlogged: dict[str, int] = {}

    def rejected(self, peer: str, foreign: Foreign) -> None:
        """Logs a rejected client, at most one in LINE_SECONDS by reason; `others` counts those without a line."""
        reason, now = foreign.reason, time.monotonic()
        if now < self._silent_until.get(reason, 0.0):
            self._unlogged[reason] = self._unlogged.get(reason, 0) + 1
            return
        self._silent_until[reason] = now + LINE_SECONDS
        others = self._unlogged.pop(reason, 0)
        log.warning("connection closed", peer=peer, reason=reason, detail=str(foreign), others=others)
