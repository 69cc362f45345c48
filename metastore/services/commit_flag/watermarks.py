"""Computes watermarks from the progress that sources have reported.

A chain is one copy of a stream, where several writers write the same data into a table. It has sources of its own. All
times are in milliseconds since 1970.

A source's watermark is the greatest of its batches' smallest event times. A chain's watermark is that of its slowest
source that isn't idle. A table's watermark is that of its furthest chain, and never decreases.
"""

from collections.abc import Sequence

from metastore.services.commit_flag.policy import ReadinessProperties
from metastore.store.commit_flag.readiness import Progress


def furthest(before: int | None, progress: Sequence[Progress], properties: ReadinessProperties, now: int) -> int | None:
    """A table's watermark: that of its furthest chain, but never less than `before`. None if nothing was reported."""
    reached = [watermark for watermark, _ in _chains(progress, properties, now).values()]
    if before is not None:
        reached.append(before)
    return max(reached, default=None)


def leader(progress: Sequence[Progress], properties: ReadinessProperties, now: int) -> str:
    """The name of the furthest chain. Among equals it is the one that reported first. Empty if there is none."""
    chains = _chains(progress, properties, now)
    return min(chains, key=lambda chain: (-chains[chain][0], chains[chain][1], chain), default="")


def _chains(progress: Sequence[Progress], properties: ReadinessProperties, now: int) -> dict[str, tuple[int, int]]:
    """The chains that aren't idle: how far their slowest live source has come, and when they reported last."""
    chains: dict[str, tuple[int, int]] = {}
    for one in progress:
        if not is_idle(one, properties, now):
            watermark, reported = chains.get(one.chain, (one.watermark, one.reported_at))
            chains[one.chain] = min(watermark, one.watermark), max(reported, one.reported_at)
    return chains


def is_idle(one: Progress, properties: ReadinessProperties, now: int) -> bool:
    """Whether a source has been silent for longer than the table allows. An idle source doesn't delay the watermark."""
    return properties.idle_timeout is not None and now - one.reported_at > properties.idle_timeout
