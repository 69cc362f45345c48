"""The database's clock. It is the same for all servers, whose own clocks may differ."""

from collections.abc import Callable
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, cast, func, select

from lake.protocol.clock import as_hive_seconds
from metastore.postgres.prepared import Prepared


def in_ms(time: ColumnElement[Any]) -> ColumnElement[int]:
    """SQL for a time in milliseconds since 1970, rounded down."""
    return cast(func.floor(func.extract("epoch", time) * 1000), BigInteger)


NOW_MS = in_ms(func.clock_timestamp())
"""SQL for `now_ms`."""

_NOW = Prepared(select(NOW_MS))


def now_ms(tx: Connection) -> int:
    """The current time in milliseconds since 1970-01-01 UTC; it advances within a transaction."""
    return int(_NOW.scalar(tx))


def seconds(tx: Connection) -> int:
    """The current time in seconds since 1970-01-01 UTC, as far as Hive's 32 bits hold it."""
    return as_hive_seconds(now_ms(tx))


def once(tx: Connection) -> Callable[[], int]:
    """Returns `now_ms` as a function that asks the database at its first call and returns the same from then on."""
    return cache(lambda: now_ms(tx))
