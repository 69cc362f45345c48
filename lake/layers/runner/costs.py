"""Which of two ways to refresh a layer takes less time: its increment, or all of it and writing the differences.

Both come to the same rows and the same changes. A way's *work* is what its steps read, in bytes, and what its jobs cost
to start, as bytes that are read in that time. What refreshes of a layer took makes seconds of it.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from lake.layers.compiler.deltas import Restriction, Step
from lake.layers.runner.engine import SourceChange

JOB_BYTES = 4 * 1024 * 1024
"""What a job costs before it reads anything, as bytes that are read in the same time."""

_SECONDS_PER_BYTE = 25e-9
"""Where a layer has no refreshes yet that tell."""

_COMPARING = 4
"""Rows that changed are found by reading all of the files that came and went, and putting their rows side by side."""

_WARMING_SECONDS = 10.0
"""What the first refresh of a process may take longer than the next, since Spark compiles itself."""

_WARM_SHARE = 0.25
"""How much of a first refresh is left without that, at least."""


_FORGETTING = 0.01
"""What each later refresh takes off a figure, so that one slow hour doesn't decide for ever."""


@dataclass(frozen=True)
class Taken:
    """What the refresh of a number took: `seconds` for some work."""

    work: int
    seconds: float
    number: int

    @classmethod
    def measured(cls, work: int, seconds: float, number: int, *, first: bool) -> "Taken":
        """`first`: it was the first refresh of its process. What that costs is left out."""
        if first:
            seconds = max(seconds - _WARMING_SECONDS, seconds * _WARM_SHARE)
        return cls(work, round(seconds, 3), number)

    def pace(self, number: int) -> float:
        """Seconds per byte of work, as far as the refresh of a number believes it."""
        return self.seconds / max(self.work, 1) * (1 - _FORGETTING) ** (number - self.number)


@dataclass(frozen=True)
class Ways:
    """What the two ways of one refresh are estimated to take, in seconds."""

    increment: float
    whole: float

    @classmethod
    def of(cls, work: Mapping[str, int], taken: Mapping[str, Taken], number: int) -> "Ways":
        """For the refresh of a number, with the `work` of both ways.

        `taken`: what earlier refreshes of the same layer took, by way; either may be missing.
        """
        paces = {way: each.pace(number) for way, each in taken.items()}
        usual = min(paces.values(), default=_SECONDS_PER_BYTE)
        return cls(*(round(work[way] * paces.get(way, usual), 3) for way in (INCREMENT, WHOLE)))

    @property
    def cheaper(self) -> str:
        return WHOLE if self.whole < self.increment else INCREMENT

    def as_json(self) -> dict[str, float]:
        """The estimates as commands' JSON has them."""
        return {INCREMENT: self.increment, WHOLE: self.whole}

    def __str__(self) -> str:
        return f"{self.whole:.2g} s for all of it, {self.increment:.2g} s for an increment"


INCREMENT, WHOLE = "increment", "whole"


def reading_seconds(bytes: int) -> float:
    """What finding out which rows changed takes, in files of so many bytes."""
    return (JOB_BYTES + bytes * _COMPARING) * _SECONDS_PER_BYTE


class Gain(NamedTuple):
    """What a layer's increment saves, in seconds, if it `needs` to know some changes of sources."""

    needs: frozenset[SourceChange]
    seconds: float


def not_worth(gains: Sequence[Gain], costs: Mapping[SourceChange, float]) -> Set[SourceChange]:
    """The changes that take longer to read, in seconds, than all increments that need them save."""
    left = {*costs}
    while left:
        possible = [each for each in gains if each.seconds > 0 and each.needs <= left]
        lost, worst = max(
            (costs[one] - sum(each.seconds for each in possible if one in each.needs), one) for one in left
        )
        if lost <= 0:
            break
        left.remove(worst)
    return {*costs} - left


class Sizes:
    """The sizes of relations that steps read, all by their names.

    `of_table`: the bytes of a table's rows in a state, None for relations that are no such state. `made`: the step of
    an earlier layer that made a relation, None if none did. `share`: which part of a state a restriction lets be read.
    """

    def __init__(
        self,
        of_table: Callable[[str], int | None],
        made: Callable[[str], Step | None],
        share: Callable[[Restriction], float],
    ) -> None:
        self._of_table = of_table
        self._made = made
        self._share = share

    def work(self, steps: Sequence[Step]) -> int:
        """The work of running some steps and counting the rows of the last one."""
        own = {each.name: each for each in steps}
        read: dict[str, float] = {}

        def size(name: str) -> float:
            """The bytes that reading a relation reads."""
            if name not in read:
                read[name] = 0.0
                stored = self._of_table(name)
                step = own.get(name) or self._made(name)
                if stored is not None:
                    read[name] = float(stored)
                elif step is not None and not step.keep:
                    read[name] = inputs(step)
            return read[name]

        def inputs(step: Step) -> float:
            if step.only_if is not None:  # mostly it isn't run
                return 0.0
            asked = step.restriction
            found = 0.0
            for table in step.query.find_all(exp.Table):
                bytes = size(table.name)
                restricted = asked is not None and asked.relation == table.name
                found += bytes * self._share(asked) if restricted and asked is not None else bytes
            return found

        kept = [each for each in steps if each.keep]
        lists = {each.restriction.values for each in steps if each.restriction is not None and each.only_if is None}
        jobs = len(kept) + len(lists) + 1
        return round(JOB_BYTES * jobs + sum(inputs(each) for each in kept) + size(steps[-1].name if steps else ""))
