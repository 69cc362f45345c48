"""The progress of sources: the event times that streaming writers report."""

import re
from collections.abc import Mapping

from lake.protocol.hive import InvalidOperationException
from metastore.services.commit_flag.policy import ReadinessProperties
from metastore.store.commit_flag import readiness
from metastore.store.commit_flag.readiness import Progress
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.table.tables import TableRow

DEFAULT_CHAIN = "default"
"""The chain of sources for writers that name none."""
MAX_SOURCES = 10_000
"""Sources that may report to one table."""

_NAME = re.compile(r"[^\x00-\x1f\x7f]{0,256}")


def progress_of(
    tx: Transaction,
    row: TableRow,
    chain: str | None,
    event_times: Mapping[str, int] | None,
    properties: ReadinessProperties,
) -> list[Progress]:
    """The new progress of the sources that report event times.

    `event_times`: by source, the smallest event time of the rows in this report, in milliseconds since 1970. A source's
    progress is the greatest of its reports; times too far in the future are ignored. Raises InvalidOperationException.
    """
    chain, event_times = chain or DEFAULT_CHAIN, event_times or {}
    for name in (chain, *event_times):
        if not _NAME.fullmatch(name):
            raise InvalidOperationException(
                f"{name!r} is no valid name of a chain or source: use at most 256 printable characters"
            )
    now = now_ms(tx)
    reporting = {(chain, source) for source in event_times}
    known = {(one.chain, one.source): one for one in readiness.progress(tx, row.id)}
    if len(known.keys() | reporting) > MAX_SOURCES and properties.idle_timeout is not None:
        # Idle sources don't hold the watermark back, and it never decreases: they can be removed.
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
