"""A timeline as a picture: a lane per action, a bar per instant. templates/timeline_drawing.html draws it."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from lake.cli.moments import in_words, shown
from lake.cli.output import counted
from lake.cli.pages.time_axis import BREAK, Tick, TimeAxis

if TYPE_CHECKING:
    from lake.protocol.lake import Instant

WIDTH = 1200
"""The drawing's width in its own units."""

_LEFT, _RIGHT = 136, WIDTH - 28
_TOP = 48
_BAR, _STEP, _PADDING = 14, 18, 8
_NARROWEST = 4.0
_CROSS = 16
_ROWS = 8
"""Rows of a lane; what happens at once beyond that is drawn over each other."""


def kind(instant: "Instant") -> str:
    """How an instant is drawn: `undone`, `refused`, `savepoint`, or its state."""
    if instant.undoneBy is not None:
        return "undone"
    if instant.state != "completed":
        return "refused" if instant.conflict is not None else str(instant.state)
    return "savepoint" if instant.action == "savepoint" else "completed"


def action(instant: "Instant") -> str:
    """An instant's action, and what it was begun as."""
    return str(instant.action) if instant.begunAs is None else f"{instant.begunAs} → {instant.action}"


def remarks(instant: "Instant") -> str:
    """What else there is to say of an instant: a savepoint's name, a refusal, what undid it, whether it is archived."""
    said = [
        instant.name or "",
        "" if instant.conflict is None else f"refused: {instant.conflict}",
        "" if instant.undoneBy is None else f"undone by {instant.undoneBy}",
        "archived" if instant.archived else "",
    ]
    return "; ".join(filter(None, said))


def span(instant: "Instant", now: int) -> tuple[int, int]:
    """When an instant was requested, and when it was completed or refused or else `now`; in milliseconds."""
    begin = instant.requestedAt or 0
    # Servers' clocks may differ.
    return begin, max(begin, now if _pending(instant) else instant.changedAt or 0)


def took(instant: "Instant", now: int) -> str:
    """How long an instant took, in words."""
    begin, end = span(instant, now)
    return f"{in_words(end - begin)} so far" if _pending(instant) else in_words(end - begin)


class Bar(NamedTuple):
    """An instant in the drawing. It leads to the instant's row in the table below, `#i<place>`."""

    place: int
    kind: str
    x: float
    y: int
    width: float
    cross: float | None  # where the cross of a refused instant begins: not by its colour alone
    saved: bool  # whether a savepoint keeps it
    said: str


class Lane(NamedTuple):
    """The instants of one action."""

    name: str
    top: int
    height: int
    bars: list[Bar]


class Drawing(NamedTuple):
    """Instants over time. `breaks`: where each cut gap is, and how long it is, in words."""

    lanes: list[Lane]
    ticks: list[Tick]
    breaks: list[tuple[float, str]]
    now: float | None
    bottom: int
    said: str
    width: int = WIDTH
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP
    bar: int = _BAR


def drawing(instants: Sequence["Instant"], now: int) -> Drawing:
    """Where each instant lies; `now` is in milliseconds."""
    times = [time for each in instants for time in span(each, now)]
    axis = TimeAxis(times, _LEFT, _RIGHT)
    saved = {each.timestamp for each in instants if each.action == "savepoint" and kind(each) == "savepoint"}
    lanes, top = [], _TOP
    # A table service's lane is that which it was begun as: there its plans and its completions are together.
    by_lane = sorted(enumerate(instants), key=lambda each: (_lane(each[1]), span(each[1], now)))
    for name, members in groupby(by_lane, key=lambda each: _lane(each[1])):
        bars, rows = [], [0.0] * _ROWS
        for place, instant in members:
            begin, end = (axis.x(time) for time in span(instant, now))
            width = max(_NARROWEST, end - begin)
            left = min(begin, _RIGHT - width)
            row = next((at for at, taken in enumerate(rows) if taken <= left), rows.index(min(rows)))
            refused = kind(instant) == "refused"
            rows[row] = left + width + (_CROSS if refused else 1)
            kept = instant.timestamp in saved
            bars.append(
                Bar(
                    place,
                    kind(instant),
                    left,
                    top + _PADDING + row * _STEP,
                    width,
                    min(left + width + _CROSS / 2, _RIGHT + 12) - 4 if refused else None,
                    kept and instant.action != "savepoint",
                    _said(instant, now, kept),
                )
            )
        height = 2 * _PADDING + _STEP * sum(map(bool, rows)) - (_STEP - _BAR)
        lanes.append(Lane(name, top, height, bars))
        top += height + 5
    return Drawing(
        lanes,
        axis.ticks(),
        [(left + BREAK / 2, in_words(length)) for left, length in axis.breaks],
        axis.x(now) if any(map(_pending, instants)) else None,
        top,
        f"{counted(len(instants), 'instant')} over time",
    )


def _pending(instant: "Instant") -> bool:
    return kind(instant) in ("requested", "inflight")


def _lane(instant: "Instant") -> str:
    return str(instant.begunAs or instant.action)


def _said(instant: "Instant", now: int, saved: bool) -> str:
    lines = [
        f"{action(instant)} {instant.timestamp}: {instant.state}",
        f"requested {shown(instant.requestedAt)} UTC, took {took(instant, now)}",
        "" if instant.position is None else f"position {instant.position:,}",
        remarks(instant),
        "kept by a savepoint" if saved else "",
    ]
    return "\n".join(filter(None, lines))
