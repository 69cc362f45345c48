"""A timeline as a picture: a lane per action, a bar per instant."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from lake.cli.moments import in_words, shown
from lake.cli.output import counted
from lake.cli.pages.html import Html, element, joined
from lake.cli.pages.time_axis import BREAK, TimeAxis

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
    """What else there is to say of an instant: why it was refused, what undid it, whether it is archived."""
    said = [
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


def drawing(instants: Sequence["Instant"], now: int) -> Html:
    """Instants over time, as an SVG; each bar leads to the instant's row in the table below, `#i<its place>`."""
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
            rows[row] = left + width + (_CROSS if kind(instant) == "refused" else 1)
            y = top + _PADDING + row * _STEP
            bars.append(_bar(instant, place, left, y, width, now, instant.timestamp in saved))
        height = 2 * _PADDING + _STEP * sum(map(bool, rows)) - (_STEP - _BAR)
        label = element("text", name, class_="action", x=_LEFT - 14, y=top + height / 2 + 4, text_anchor="end")
        ground = element("rect", class_="lane", x=_LEFT - 6, y=top, width=_RIGHT - _LEFT + 12, height=height, rx=5)
        lanes.append((ground, joined(label, *bars)))
        top += height + 5
    pending = any(map(_pending, instants))
    said = f"{counted(len(instants), 'instant')} over time"
    return element(
        "svg",
        element("title", said),
        *(ground for ground, _ in lanes),
        _scale(axis, top, now if pending else None),
        *(bars for _, bars in lanes),
        viewBox=f"0 0 {WIDTH} {top + 16}",
        role="group",
        aria_label=f"{said}, in a lane for each action; the table below says the same",
        xmlns="http://www.w3.org/2000/svg",
    )


def _pending(instant: "Instant") -> bool:
    return kind(instant) in ("requested", "inflight")


def _lane(instant: "Instant") -> str:
    return str(instant.begunAs or instant.action)


def _bar(instant: "Instant", place: int, x: float, y: float, width: float, now: int, saved: bool) -> Html:
    middle = y + _BAR / 2
    if kind(instant) == "savepoint":
        shape = _diamond(x + width / 2, middle, 8, "bar")
    else:
        shape = element("rect", class_="bar", x=_at(x), y=y, width=_at(width), height=_BAR, rx=min(3, width / 2))
    marks: list[Html] = []
    if kind(instant) == "refused":
        # Not by its colour alone.
        right = min(x + width + _CROSS / 2, _RIGHT + 12)
        marks.append(element("path", class_="cross", d=f"M{_at(right - 4)} {middle - 4}l8 8m0-8l-8 8"))
    elif saved and instant.action != "savepoint":
        marks.append(_diamond(x + width, y + 1, 5, "saved"))
    said = element("title", _said(instant, now, saved))
    return element("a", said, shape, *marks, class_=kind(instant), href=f"#i{place}")


def _diamond(x: float, y: float, size: int, name: str) -> Html:
    return element("path", class_=name, d=f"M{_at(x)} {y - size}l{size} {size}l-{size} {size}l-{size}-{size}z")


def _said(instant: "Instant", now: int, saved: bool) -> str:
    lines = [
        f"{action(instant)} {instant.timestamp}: {instant.state}",
        f"requested {shown(instant.requestedAt)} UTC, took {took(instant, now)}",
        "" if instant.position is None else f"position {instant.position:,}",
        remarks(instant),
        "kept by a savepoint" if saved else "",
    ]
    return "\n".join(filter(None, lines))


def _scale(axis: TimeAxis, bottom: float, now: int | None) -> Html:
    parts: list[Html] = []
    for tick in axis.ticks():
        parts.append(element("line", class_="grid", x1=_at(tick.x), x2=_at(tick.x), y1=_TOP - 6, y2=bottom))
        parts.append(element("text", tick.date, x=_at(tick.x), y=_TOP - 28, text_anchor="middle"))
        parts.append(element("text", tick.time, x=_at(tick.x), y=_TOP - 12, text_anchor="middle"))
    for left, length in axis.breaks:
        middle = left + BREAK / 2
        cut = element("line", class_="break", x1=_at(middle), x2=_at(middle), y1=_TOP - 6, y2=bottom)
        parts.append(element("g", element("title", f"{in_words(length)} are left out"), cut))
        parts.append(element("text", in_words(length), x=_at(middle), y=bottom + 12, text_anchor="middle"))
    if now is not None:
        at = axis.x(now)
        parts.append(element("line", class_="now", x1=_at(at), x2=_at(at), y1=_TOP - 6, y2=bottom))
        parts.append(element("text", "now", x=_at(at), y=bottom + 12, text_anchor="middle"))
    return element("g", *parts)


def _at(value: float) -> str:
    return f"{value:.1f}"
