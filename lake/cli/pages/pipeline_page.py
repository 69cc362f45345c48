"""The page of a pipeline: tables from left to right, each beside those that it reads, with their lags."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from lake.cli.pages.html import page

if TYPE_CHECKING:
    from lake.layers.compiler.graph import Graph
    from lake.layers.runner.status import LayerStatus

_WIDTH, _HEIGHT = 220, 58
_GAP, _ROW = 90, 84
_COLUMNS = ("table", "refreshed at", "how", "behind", "trouble")


def pipeline_page(graph: "Graph", statuses: "Sequence[LayerStatus]", now: datetime) -> str:
    """The page of a project. `now` is when the statuses were read."""
    behind = [each for each in statuses if each.behind is None or each.behind]
    facts = {
        "tables": len(graph.nodes),
        "sources": len(graph.sources),
        "behind their sources": len(behind),
        "in trouble": sum(each.trouble is not None for each in statuses),
        "as of": f"{now:%Y-%m-%d %H:%M:%S} UTC",
    }
    rows = [
        (
            each.layer,
            "-" if each.refreshed_at is None else f"{each.refreshed_at:%Y-%m-%d %H:%M:%S}",
            each.how or "-",
            "?" if each.behind is None else each.behind,
            each.trouble or "",
        )
        for each in statuses
    ]
    places = _places(graph)
    by_name = {each.layer: each for each in statuses}
    return page(
        "pipeline",
        f"Pipeline {graph.project.name}",
        facts=facts,
        columns=_COLUMNS,
        rows=rows,
        drawing_width=(max(column for column, _ in places.values()) + 1) * (_WIDTH + _GAP),
        drawing_height=(max(row for _, row in places.values()) + 1) * _ROW,
        width=_WIDTH,
        height=_HEIGHT,
        lines=[_line(places[source], places[node.name]) for node in graph.nodes for source in sorted(node.reads)],
        boxes=[_box(name, place, by_name.get(name)) for name, place in places.items()],
    )


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


def _line(start: tuple[int, int], end: tuple[int, int]) -> dict[str, int]:
    x1, y1 = start[0] * (_WIDTH + _GAP) + _WIDTH, start[1] * _ROW + _HEIGHT // 2
    x2, y2 = end[0] * (_WIDTH + _GAP), end[1] * _ROW + _HEIGHT // 2
    return {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "middle": (x1 + x2) // 2}


def _box(name: str, place: tuple[int, int], status: "LayerStatus | None") -> dict[str, object]:
    return {
        "name": name,
        "short": name if len(name) <= 26 else f"…{name[-25:]}",
        "x": place[0] * (_WIDTH + _GAP),
        "y": place[1] * _ROW,
        "color": "#888" if status is None else "#b00" if status.trouble else "#c80" if status.behind else "#080",
        "lag": _lag(status),
    }


def _lag(status: "LayerStatus | None") -> str:
    if status is None:
        return "source"
    if status.trouble:
        return "needs attention"
    return "up to date" if not status.behind else f"{status.behind} behind"
