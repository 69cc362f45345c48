"""Watermarks: how far event time has come in a table, by what the sources of its chains have reported.

A source is as far as the latest of the smallest event times of its batches; a chain as far as its slowest source that
isn't idle; a table as far as its furthest chain, and it never goes back.
"""

from collections.abc import Sequence

from metastore.services.readiness_properties import ReadinessProperties
from metastore.store.readiness import Progress


def furthest(before: int | None, progress: Sequence[Progress], properties: ReadinessProperties, now: int) -> int | None:
    """A table's watermark: as far as the furthest chain has come, never going back."""
    reached = [watermark for watermark, _ in _chains(progress, properties, now).values()]
    if before is not None:
        reached.append(before)
    return max(reached, default=None)


def leader(progress: Sequence[Progress], properties: ReadinessProperties, now: int) -> str:
    """The chain that is furthest, and of several the one that reported first; empty if there is none."""
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
    """Whether a source has been silent for longer than its table allows: it holds nobody up."""
    return properties.idle_timeout is not None and now - one.reported_at > properties.idle_timeout
