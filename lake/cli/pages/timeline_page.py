"""A timeline as a page: what stands, a drawing, and a table of its instants."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lake.cli.moments import shown
from lake.cli.output import counted
from lake.cli.pages.html import page
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
        "timeline",
        f"{table}: timeline",
        table=table,
        which=which,
        completed=f"{position.position:,}",
        as_of=shown(now),
        facts=facts,
        kinds=[each for each in _KINDS if kinds[each]],
        columns=_COLUMNS,
        picture=drawing(instants, now) if instants else None,
        rows=[_row(place, each, now) for place, each in enumerate(instants)],
    )


def _row(place: int, instant: "Instant", now: int) -> dict[str, object]:
    return {
        "place": place,
        "kind": kind(instant),
        "timestamp": instant.timestamp,
        "action": action(instant),
        "state": instant.state,
        "position": "-" if instant.position is None else f"{instant.position:,}",
        "requested": shown(instant.requestedAt) or "",
        "took": took(instant, now),
        "remarks": remarks(instant),
    }
