"""The job scheduler: which pending jobs may start now, and in which order. Pure functions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, NamedTuple

from lake.maintenance.decisions.windows import Windows
from lake.protocol.lake import ServiceJob


class Quotas(NamedTuple):
    """How many jobs may run at a time, of all services together, by database and by pool."""

    databases: Mapping[str, int]
    pools: Mapping[str, int]


NO_QUOTAS = Quotas(MappingProxyType({}), MappingProxyType({}))

Ranking = Literal["fifo", "gain-per-cost"]
"""In which order jobs are run: as they came, or those first that are worth the most."""


def in_order(jobs: Sequence[ServiceJob], now: int, ranking: Ranking) -> list[int]:
    """The ids of the jobs that may start at a time, in milliseconds since 1970, in the order in which they should.

    The greater priority is first, and plans that exist are before others, the oldest first: nobody else can plan what
    they name.
    """
    at = datetime.fromtimestamp(now / 1000, UTC)
    ready = [each for each in jobs if (each.notBefore or 0) <= now and is_open(each, at)]
    return [each.id or 0 for each in sorted(ready, key=lambda each: _rank(each, ranking))]


def is_open(job: ServiceJob, at: datetime) -> bool:
    """Whether a job may run at a time. Windows that nobody can read keep nothing back."""
    try:
        return Windows.parse(job.windows).is_open(at)
    except ValueError:
        return True


def _rank(job: ServiceJob, ranking: Ranking) -> tuple[int, bool, str, float, int]:
    worth = (job.gain or 0.0) / max(job.cost or 0.0, 0.001) if ranking == "gain-per-cost" else 0.0
    return -(job.priority or 0), job.instant is None, job.instant or "", -worth, job.id or 0
