"""What a refresh did, and how it fails."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lake.client.lake_types import Instant, Moment
from lake.layers.runner.costs import Ways
from lake.layers.runner.readiness import Turned
from lake.protocol.errors import UserError
from lake.tables.keyed.changes import ChangeType


class RefreshFailed(UserError):
    """A refresh couldn't be done. Nothing was written."""


RESTATED = "restated"
"""How a layer was refreshed of which a part got another definition."""

BESIDE = "beside"
"""How a layer was refreshed that got the rows of a table beside its own."""

FAILED, SKIPPED = "failed", "skipped"
"""How layers were refreshed that weren't: they couldn't be computed, or read one that couldn't."""


@dataclass(frozen=True)
class LayerResult:
    """What a refresh did with a layer.

    `how` is `incremental`, `by group`, `full`, `restated`, `beside`, `replay`, `unchanged`, `failed` or `skipped`,
    `why` the reason for a full or restated one, or one of the last two. `changed` counts rows by what became of them,
    `expected` by expectation those that didn't meet it. `estimated`: what its increment and all of it would take, None
    where there was no choice. `seconds` were spent on its rows, without those of writing them.
    """

    layer: str
    how: str
    why: str | None = None
    changed: Mapping[str, int] = field(default_factory=dict)
    expected: Mapping[str, int] = field(default_factory=dict)
    estimated: Ways | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class RefreshResult:
    """What a refresh did. `moment` is what all sources were read as of, `completed` what shows the layers as they are
    after it: the same, if nothing was to be written. `instants` are those of layers that
    weren't unchanged. `turned`: of layers whose partitions turn ready with their sources', what became of these.
    `delivered`: by sink, how many batches it got."""

    moment: Moment
    layers: tuple[LayerResult, ...]
    instants: Mapping[str, Instant]
    turned: Mapping[str, Turned] = field(default_factory=dict)
    delivered: Mapping[str, int] = field(default_factory=dict)
    completed: Moment = field(default_factory=lambda: Moment(0))


class LayersFailed(UserError):
    """Some layers couldn't be computed. They and those that read them are as before; the others are up to date.

    `result` is what the refresh did.
    """

    def __init__(self, result: RefreshResult) -> None:
        failed = [f"{each.layer} failed: {each.why}" for each in result.layers if each.how == FAILED]
        skipped = [each.layer for each in result.layers if each.how == SKIPPED]
        behind = f". Left as they were, since they read it: {', '.join(skipped)}" if skipped else ""
        super().__init__("; ".join(failed) + behind)
        self.result = result


def named_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """How many rows were inserted, updated and deleted."""
    kinds = {ChangeType.INSERT: "inserted", ChangeType.UPDATE_POSTIMAGE: "updated", ChangeType.DELETE: "deleted"}
    return {name: counts[str(kind)] for kind, name in kinds.items() if counts.get(str(kind))}
