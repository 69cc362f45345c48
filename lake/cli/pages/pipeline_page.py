"""The page of a pipeline: tables from left to right, each beside those that it reads, with their lags."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from lake.cli.pages.html import Html, element, figures, page

if TYPE_CHECKING:
    from lake.layers.compiler.graph import Graph
    from lake.layers.runner.status import LayerStatus

_WIDTH, _HEIGHT = 220, 58
_GAP, _ROW = 90, 84


def pipeline_page(graph: "Graph", statuses: "Sequence[LayerStatus]", now: datetime) -> str:
    """The page of a project. `now` is when the statuses were read."""
    project = graph.project
    behind = [each for each in statuses if each.behind is None or each.behind]
    facts = {
        "tables": len(graph.nodes),
        "sources": len(graph.sources),
        "behind their sources": len(behind),
        "in trouble": sum(each.trouble is not None for each in statuses),
        "as of": f"{now:%Y-%m-%d %H:%M:%S} UTC",
    }
    rows = [
        element(
            "tr",
            element("td", each.layer),
            element("td", "-" if each.refreshed_at is None else f"{each.refreshed_at:%Y-%m-%d %H:%M:%S}"),
            element("td", each.how or "-"),
            element("td", "?" if each.behind is None else each.behind),
            element("td", each.trouble or ""),
        )
        for each in statuses
    ]
    names = ("table", "refreshed at", "how", "behind", "trouble")
    head = element("tr", *(element("th", name) for name in names))
    table = element("table", element("thead", head), element("tbody", *rows))
    return page(
        f"Pipeline {project.name}",
        element("h1", f"Pipeline {project.name}"),
        figures(facts),
        _drawing(graph, statuses),
        table,
    )


def _drawing(graph: "Graph", statuses: "Sequence[LayerStatus]") -> Html:
    places = _places(graph)
    by_name = {each.layer: each for each in statuses}
    width = (max(column for column, _ in places.values()) + 1) * (_WIDTH + _GAP)
    height = (max(row for _, row in places.values()) + 1) * _ROW
    lines = [_line(places[source], places[node.name]) for node in graph.nodes for source in sorted(node.reads)]
    boxes = [_box(name, place, by_name.get(name)) for name, place in places.items()]
    drawing = element(
        "svg",
        *lines,
        *boxes,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label="which table reads which",
        style="max-width: 100%; height: auto",
    )
    return element("figure", drawing)


def _places(graph: "Graph") -> dict[str, tuple[int, int]]:
    """By table, its column and row: it stands to the right of all that it reads."""
    columns = dict.fromkeys(graph.sources, 0)
    for node in graph.nodes:
        columns[node.name] = 1 + max((columns[each] for each in node.reads), default=-1)
    used: dict[int, int] = {}
    places = {}
    for name, column in columns.items():
        places[name] = (column, used.get(column, 0))
        used[column] = used.get(column, 0) + 1
    return places


def _line(start: tuple[int, int], end: tuple[int, int]) -> Html:
    x1, y1 = start[0] * (_WIDTH + _GAP) + _WIDTH, start[1] * _ROW + _HEIGHT // 2
    x2, y2 = end[0] * (_WIDTH + _GAP), end[1] * _ROW + _HEIGHT // 2
    middle = (x1 + x2) // 2
    path = f"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}"
    return element("path", d=path, fill="none", stroke="currentColor", opacity="0.45")


def _box(name: str, place: tuple[int, int], status: "LayerStatus | None") -> Html:
    x, y = place[0] * (_WIDTH + _GAP), place[1] * _ROW
    color = "#888" if status is None else "#b00" if status.trouble else "#c80" if status.behind else "#080"
    shape = element(
        "rect", x=x + 1, y=y + 1, width=_WIDTH - 2, height=_HEIGHT - 2, rx=6, fill="none", stroke=color, stroke_width=2
    )
    title = element("text", _short(name), x=x + 10, y=y + 24, fill="currentColor", font_weight="bold")
    return element(
        "g",
        element("title", name),
        shape,
        title,
        element("text", _lag(status), x=x + 10, y=y + 44, fill="currentColor", font_size="13"),
    )


def _lag(status: "LayerStatus | None") -> str:
    if status is None:
        return "source"
    if status.trouble:
        return "needs attention"
    return "up to date" if not status.behind else f"{status.behind} behind"


def _short(name: str) -> str:
    return name if len(name) <= 26 else f"…{name[-25:]}"
