"""Where instants lie on a drawing's time axis."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from lake.cli.moments import iso

BREAK = 36.0
"""The width at which a cut gap is drawn."""

_LABEL = 96.0
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_STEPS = [
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * _HOUR for count in (1, 2, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 7, 14, 28, 91, 182, 364)),
]


class Tick(NamedTuple):
    """A mark on the axis; `date` is empty where it's that of the mark before."""

    x: float
    time: str
    date: str


class _Stretch(NamedTuple):
    begin: int
    end: int
    left: float
    right: float


class TimeAxis:
    """An axis of a width over times in milliseconds, without the gaps that would leave no room for the rest.

    Nothing begins or ends in a gap; it is cut if it is longer than twice all that is left without it.
    """

    def __init__(self, times: Iterable[int], left: float, right: float) -> None:
        known = sorted(set(times))
        if len(known) < 2:
            middle = known[0] if known else 0
            known = [middle - _SECOND, middle + _SECOND]
        cuts = _cuts(known)
        edges = [known[0], *(edge for cut in cuts for edge in cut), known[-1]]
        spans = list(zip(edges[::2], edges[1::2], strict=True))
        drawn = sum(end - begin for begin, end in spans)
        # Each stretch has some room of its own, so that one with a single instant can be seen, too.
        least = BREAK
        room = right - left - len(cuts) * BREAK - len(spans) * least
        self._stretches: list[_Stretch] = []
        for begin, end in spans:
            width = least + room * (end - begin) / max(1, drawn)
            self._stretches.append(_Stretch(begin, end, left, left + width))
            left += width + BREAK

    @property
    def breaks(self) -> list[tuple[float, int]]:
        """The cut gaps: where each begins, and how many milliseconds it leaves out."""
        return [(before.right, after.begin - before.end) for before, after in pairwise(self._stretches)]

    def x(self, time: int) -> float:
        """Where a time lies; one outside of the axis at its end."""
        before = self._stretches[0]
        for stretch in self._stretches:
            if time < stretch.begin:
                return before.right
            if time <= stretch.end:
                share = (time - stretch.begin) / max(1, stretch.end - stretch.begin)
                return stretch.left + share * (stretch.right - stretch.left)
            before = stretch
        return before.right

    def ticks(self) -> list[Tick]:
        """Marks at round times (UTC), far enough apart to be read."""
        found: list[Tick] = []
        day = ""
        for stretch in self._stretches:
            step = self._step(stretch)
            at = -(-stretch.begin // step) * step
            # A stretch too short for a round time is marked at its begin.
            for time in range(at, stretch.end + 1, step) if at <= stretch.end else [stretch.begin]:
                date, _, clock = (iso(time) or "").partition("T")
                if found and self.x(time) - found[-1].x < _LABEL * 0.75:
                    continue
                found.append(
                    Tick(self.x(time), "" if step >= _DAY else _clock(clock, step), "" if date == day else date)
                )
                day = date
        return found

    @staticmethod
    def _step(stretch: _Stretch) -> int:
        wanted = (stretch.end - stretch.begin) * _LABEL / (stretch.right - stretch.left)
        # Beyond years, in whole spans: such times come from odd clocks.
        return next((step for step in _STEPS if step >= wanted), int(wanted) + 1)


def _cuts(times: list[int]) -> list[tuple[int, int]]:
    """The gaps between neighbouring times that are cut out, in their order."""
    rest = times[-1] - times[0]
    found = []
    for begin, end in sorted(pairwise(times), key=lambda gap: gap[0] - gap[1])[:6]:
        if end - begin <= 2 * (rest - (end - begin)) or rest == end - begin:
            break
        found.append((begin, end))
        rest -= end - begin
    return sorted(found)


def _clock(text: str, step: int) -> str:
    return text[: 5 if step >= _MINUTE else 8 if step >= _SECOND else 12]
