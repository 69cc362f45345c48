"""Searches for an order in which statements completed; of some it is known that they have, others may have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lake.client.lake_types import Instant
from tests.crash.sql.rows import State
from tests.crash.sql.statements import Rows, Statement

#: Actions of instants that change no row.
SERVICES = frozenset({"compaction", "clean", "savepoint", "publish", "readiness"})


@dataclass(eq=False)
class Run:
    """A statement, or a micro-batch, that may have completed; `must`: it has. `after`: what had ended when it began."""

    statement: Statement
    must: bool
    after: Sequence["Run"] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{'acknowledged' if self.must else 'unknown'}: {self.statement}"


class Replay:
    """Which statement made which position.

    `models`: the rows at each position so far; those of the new ones are added. `states`: what a reader finds at each
    new position, None where that is not known. `instants`: by position.
    """

    def __init__(
        self,
        models: list[Rows],
        states: Mapping[int, State | None],
        instants: Mapping[int, Instant],
        runs: Sequence[Run],
    ) -> None:
        self.models, self.states, self.instants, self.runs = models, states, instants, runs
        self.first = len(models)
        self.last = max(states, default=self.first - 1)
        self.used: dict[Run, int] = {}
        self.furthest = self.first

    def found(self) -> bool:
        """Whether there is such an order."""
        position = len(self.models)
        self.furthest = max(self.furthest, position)
        if position > self.last:
            return all(each in self.used for each in self.runs if each.must)
        for run, model in self._candidates(position):
            if self.states[position] in (None, model.state):
                self.models.append(model)
                if run is not None:
                    self.used[run] = position
                if self.found():
                    return True
                self.models.pop()
                if run is not None:
                    del self.used[run]
        return False

    def failure(self) -> str:
        at = self.furthest
        before = self.states.get(at - 1) or self.models[self.first - 1].state
        return "\n".join(
            [
                f"no order of the statements gives the rows at position {at} of {self.first} to {self.last}:",
                f"  instants: {[(number, each.action, each.timestamp) for number, each in self.instants.items()]}",
                f"  before: {before}",
                f"  after: {self.states.get(at)}",
                *(f"  {each}" for each in self.runs),
            ]
        )

    def _candidates(self, position: int) -> Iterator[tuple[Run | None, Rows]]:
        instant = self.instants.get(position)
        if instant is None or instant.action in SERVICES or instant.begun_as in SERVICES:
            yield None, self.models[-1]
            return
        if instant.action == "rollback":
            undone = next(number for number, each in self.instants.items() if each.undone_by == instant.timestamp)
            if all(each.state == self.models[undone].state for each in self.models[undone:]):
                yield None, self.models[undone - 1]
            return
        for run in self.runs:
            if run not in self.used and all(each in self.used for each in run.after if each.must):
                yield from ((run, model) for model in self._after(run, position))

    def _after(self, run: Run, position: int) -> Iterator[Rows]:
        """What a statement makes of the rows that it may have read: at least those of what had ended before."""
        made = run.statement
        assert made.effect is not None
        least = max([self.first - 1, *(self.used[each] for each in run.after if each in self.used)])
        for read in range(least if made.reads else position - 1, position):
            found: Any = made.effect(self.models[read], self.models[-1])
            if found is not None:
                yield found
