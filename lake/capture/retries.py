"""Trying again, while a source or a metastore doesn't answer."""

import logging
import time

from lake.capture import metrics
from lake.protocol.struct import ExceptionStruct

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0


class Retries:
    """Pauses between attempts, longer each time, until none has advanced for some time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._failing_since: float | None = None
        self._pause = _FIRST_PAUSE

    def wait(self, error: Exception, *, has_advanced: bool) -> None:
        """Pauses after an attempt that failed. Raises its error if none has advanced for so long."""
        if has_advanced or self._failing_since is None:
            self._failing_since, self._pause = time.monotonic(), _FIRST_PAUSE
        if time.monotonic() - self._failing_since > self._seconds:
            raise error
        metrics.RECONNECTS.inc()
        logger.warning("beginning again after the last batch: %s", " ".join(str(error).split()))
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


def passes(error: BaseException) -> bool:
    """Whether an error may pass. Of the metastore's refusals only those do that are of one batch alone: its instant was
    aborted while nobody answered."""
    return not isinstance(error, ExceptionStruct) or type(error).__name__ in (
        "NoSuchObjectException",
        "MetaException",
        "TableReplaced",  # the raw table was made again: another session reads the source again for it
    )
