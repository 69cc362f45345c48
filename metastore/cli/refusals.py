"""Completions that were refused, as part of a timeline: their instants are mostly gone when somebody looks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from metastore.cli.timeline_drawing import kind

if TYPE_CHECKING:
    from metastore.wire.lake import Instant, Refusal


def with_refused(instants: Sequence["Instant"], refusals: Sequence["Refusal"], *, cut: bool) -> list["Instant"]:
    """The instants and those that are gone since they were refused; what was refused ends then.

    `instants` are in the order of their timestamps. `cut`: there may be earlier ones, so refusals from before the first
    of them are left out.
    """
    from metastore.wire.lake import Instant

    last = {(each.timestamp, each.action): each for each in sorted(refusals, key=lambda each: each.refusedAt or 0)}
    found = []
    for each in instants:
        refusal = last.pop((each.timestamp, each.begunAs or each.action), None)
        if refusal is not None and kind(each) == "refused":
            each = each.replace(changedAt=refusal.refusedAt)
        found.append(each)
    earliest = instants[0].timestamp or "" if instants and cut else ""
    for key, refusal in last.items():
        if (refusal.timestamp or "") >= earliest:
            gone = Instant(*key, "refused", refusal.requestedAt, refusal.refusedAt, conflict=refusal.reason)
            found.append(gone)
    return sorted(found, key=lambda each: each.timestamp or "")
