"""The clock of this process, as the metastore keeps times."""

import time


def now_ms() -> int:
    """Milliseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1_000_000
