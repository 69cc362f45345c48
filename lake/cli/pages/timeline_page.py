"""A timeline as a page: what stands, a drawing, and a table of its instants."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lake.cli.moments import shown
from lake.cli.output import counted
from lake.cli.pages.html import Html, element, figures, joined, page
from lake.cli.pages.rejected_commits import with_rejected
from lake.cli.pages.timeline_drawing import action, drawing, kind, remarks, took

if TYPE_CHECKING:
    from lake.protocol.lake import Instant, RejectedCommit, TimelinePosition

_COLUMNS = ("timestamp", "action", "state", "position", "requested (UTC)", "took", "remarks")
_KINDS = ("completed", "inflight", "requested", "refused", "undone", "savepoint")


def timeline_page(
    table: str,
    instants: Sequence["Instant"],
    rejected: Sequence["RejectedCommit"],
    position: "TimelinePosition",
    now: int,
    *,
    cut: bool,
    archived: bool,
) -> str:
    """The document.

    `instants` are in the order of their timestamps, and `now` is in milliseconds. `cut`: there may be earlier ones
    that were not requested. `archived`: archived and undone instants are included.
    """
    which = ("The latest " if cut else "") + counted(len(instants), "instant")
    which += "" if archived else ", without archived and undone ones"
    instants = with_rejected(instants, rejected, cut=cut)
    kinds = Counter(map(kind, instants))
    facts = {
        **{each: f"{kinds[each]:,}" for each in _KINDS if kinds[each]},
        "position": f"{position.position:,}",
        "readable from": f"{position.oldestReadable:,}",
    }
    return page(
        f"{table}: timeline",
        element("h1", table),
        element("p", f"{which}; {position.position:,} were completed in all. Times are UTC, as of {shown(now)}."),
        figures(facts),
        joined(_legend(kinds), element("div", drawing(instants, now), class_="scroll")) if instants else None,
        element("h2", "Instants, the latest first") if instants else element("p", "There are no instants."),
        element("div", _table(instants, now), class_="scroll") if instants else None,
    )


def _legend(kinds: "Counter[str]") -> Html:
    known = (element("i", element("b", class_=f"swatch {each}"), each) for each in _KINDS if kinds[each])
    return element("div", *known, class_="legend")


def _table(instants: Sequence["Instant"], now: int) -> Html:
    rows = [_row(place, each, now) for place, each in enumerate(instants)]
    head = element("tr", *(element("th", each, scope="col") for each in _COLUMNS))
    return element("table", element("thead", head), "\n", element("tbody", *rows[::-1]))


def _row(place: int, instant: "Instant", now: int) -> Html:
    cells = [
        element("td", instant.timestamp, class_="name stamp"),
        element("td", action(instant), class_="stamp"),
        element("td", element("b", class_=f"swatch {kind(instant)}"), instant.state, class_="stamp"),
        element("td", "-" if instant.position is None else f"{instant.position:,}", class_="number"),
        element("td", shown(instant.requestedAt), class_="time"),
        element("td", took(instant, now), class_="time"),
        element("td", remarks(instant), class_="remark"),
    ]
    return joined(element("tr", *cells, id=f"i{place}", class_=kind(instant)), "\n")
