"""A chart of ratios as SVG: horizontal bars on a logarithmic scale, with the aims marked."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

WIDTH, LABELS, RIGHT = 920, 370, 60
ROW, HEAD, FOOT = 20, 56, 28
BAR, VALUE = 12, 50
GOOD, SHORT, WORSE, AIM, INK, GRID = "#2f7d5b", "#c98a1b", "#b3402f", "#111111", "#333333", "#dddddd"


@dataclass(frozen=True)
class Bar:
    """A ratio, and the one aimed at."""

    label: str
    ratio: float
    target: float | None = None


def draw(title: str, groups: Mapping[str, Sequence[Bar]]) -> str:
    """The chart, its bars under the headings of their groups.

    A bar is green, amber if it falls short of its aim, red if it is below 1.
    """
    every = [bar for bars in groups.values() for bar in bars]
    reach = max([10.0, *(bar.ratio for bar in every), *(bar.target or 0 for bar in every)])
    lowest = min([1.0, *(bar.ratio for bar in every)])
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(reach))
    height = HEAD + ROW * (len(every) + len(groups)) + FOOT

    def x(ratio: float) -> float:
        return LABELS + (WIDTH - LABELS - RIGHT) * (math.log10(ratio) - first) / (last - first)

    svg = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {height}",
            "font-family": "Helvetica, Arial, sans-serif",
            "font-size": "12",
            "role": "img",
        },
    )
    _add(svg, "rect", width=WIDTH, height=height, fill="#ffffff")
    _text(svg, 12, 22, title, size=15, weight="bold")
    _text(svg, 12, 40, "Logarithmic scale. A black mark is the aim; amber: short of it; red: slower.", size=11)
    for power in range(first, last + 1):
        at = x(10.0**power)
        stroke = INK if power == 0 else GRID
        _add(svg, "line", x1=at, x2=at, y1=HEAD - 6, y2=height - FOOT + 6, stroke=stroke)
        _text(svg, at, height - 8, f"{10.0**power:g}×", anchor="middle")
    y = HEAD
    for group, bars in groups.items():
        _text(svg, 12, y + ROW - 6, group, weight="bold")
        y += ROW
        for bar in bars:
            _draw_bar(svg, bar, y, x)
            y += ROW
    ElementTree.indent(svg)
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


def _draw_bar(svg: ElementTree.Element, bar: Bar, y: float, x: Callable[[float], float]) -> None:
    colour = WORSE if bar.ratio < 1 else SHORT if bar.target and bar.ratio < bar.target else GOOD
    begin, end = sorted((x(1), x(bar.ratio)))
    top = y + (ROW - BAR) / 2
    _text(svg, LABELS - 8, y + ROW - 6, bar.label, anchor="end")
    _add(svg, "rect", x=begin, y=top, width=max(end - begin, 1), height=BAR, fill=colour)
    if bar.target:
        _add(svg, "rect", x=x(bar.target) - 1, y=top - 2, width=2.5, height=BAR + 4, fill=AIM)
    beside = end + 5
    if bar.target and 0 < x(bar.target) - end < VALUE:  # it would cross the number
        beside = x(bar.target) + 5
    _text(svg, beside, y + ROW - 6, f"{bar.ratio:.3g}×" if bar.ratio < 1000 else f"{bar.ratio:,.0f}×")


def _text(
    svg: ElementTree.Element,
    x: float,
    y: float,
    content: str,
    *,
    size: int = 12,
    weight: str = "normal",
    anchor: str = "start",
) -> None:
    attributes = {"font-size": size, "font-weight": weight, "text-anchor": anchor}
    _add(svg, "text", x=x, y=y, fill=INK, **attributes).text = content


def _add(svg: ElementTree.Element, tag: str, **attributes: object) -> ElementTree.Element:
    shown = {name: f"{value:.1f}" if isinstance(value, float) else str(value) for name, value in attributes.items()}
    return ElementTree.SubElement(svg, tag, shown)
