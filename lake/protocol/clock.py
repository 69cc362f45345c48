"""The clock of this process, as the metastore keeps times."""

import time

_LATEST = (1 << 31) - 1


def now_ms() -> int:
    """Milliseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1_000_000


def now_seconds() -> int:
    """Seconds since 1970-01-01 UTC, for Hive's fields of 32 bits: from 2038 on, the latest that they hold.

    (Hive's own servers give negative ones then.)
    """
    return as_hive_seconds(now_ms())


def as_hive_seconds(milliseconds: int) -> int:
    """A time in milliseconds, in seconds as far as 32 bits hold them."""
    return max(-_LATEST, min(milliseconds // 1_000, _LATEST))
