"""What sources of streaming writers report of event time."""

import re
from collections.abc import Mapping

from metastore.clock import now_ms
from metastore.services.readiness_properties import ReadinessProperties
from metastore.store import readiness
from metastore.store.database import Transaction
from metastore.store.readiness import Progress
from metastore.store.tables import TableRow
from metastore.wire.hive import InvalidOperationException

DEFAULT_CHAIN = "default"
MAX_SOURCES = 10_000
"""So many sources may report to one table."""

_NAME = re.compile(r"[^\x00-\x1f\x7f]{0,256}")


def progress_of(
    tx: Transaction,
    row: TableRow,
    chain: str | None,
    event_times: Mapping[str, int] | None,
    properties: ReadinessProperties,
) -> list[Progress]:
    """How far sources have come that report the smallest event times of what they wrote, in milliseconds since 1970.

    Each is as far as the latest of those. Raises InvalidOperationException.
    """
    chain, event_times = chain or DEFAULT_CHAIN, event_times or {}
    for name in (chain, *event_times):
        if not _NAME.fullmatch(name):
            raise InvalidOperationException(f"{name!r} is no name for a chain or source: at most 256 characters")
    now = now_ms()
    reporting = {(chain, source) for source in event_times}
    known = {(one.chain, one.source): one for one in readiness.progress(tx, row.id)}
    if len(known.keys() | reporting) > MAX_SOURCES and properties.idle_timeout is not None:
        # Those hold nobody up. Should they come back, the watermark is where it is.
        readiness.forget_progress(tx, row.id, now - properties.idle_timeout)
        known = {(one.chain, one.source): one for one in readiness.progress(tx, row.id)}
    if len(known.keys() | reporting) > MAX_SOURCES:
        raise InvalidOperationException(f"more than {MAX_SOURCES} sources report to {row.name}")
    new = []
    for source, event_time in event_times.items():
        before = known.get((chain, source))
        reached = [before.watermark] if before else []
        if event_time <= now + properties.max_ahead:
            reached.append(event_time)
        if reached:
            new.append(Progress(chain, source, max(reached), now))
    return sorted(new)
