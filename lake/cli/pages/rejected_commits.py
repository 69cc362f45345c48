"""Completions that were refused, as part of a timeline: their instants are mostly gone when somebody looks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lake.cli.pages.timeline_drawing import kind

if TYPE_CHECKING:
    from lake.protocol.lake import Instant, RejectedCommit


def with_rejected(instants: Sequence["Instant"], rejected: Sequence["RejectedCommit"], *, cut: bool) -> list["Instant"]:
    """The instants, with the refused ones that are deleted since. A refused instant ends at its refusal.

    `instants` are in the order of their timestamps. `cut`: there may be earlier ones, so completions that were refused
    before the first of them are left out.
    """
    from lake.protocol.lake import Instant

    last = {(each.timestamp, each.action): each for each in sorted(rejected, key=lambda each: each.rejectedAt or 0)}
    found = []
    for each in instants:
        one = last.pop((each.timestamp, each.begunAs or each.action), None)
        if one is not None and kind(each) == "refused":
            each = each.replace(changedAt=one.rejectedAt)
        found.append(each)
    earliest = instants[0].timestamp or "" if instants and cut else ""
    for key, one in last.items():
        if (one.timestamp or "") >= earliest:
            gone = Instant(*key, "refused", one.requestedAt, one.rejectedAt, conflict=one.reason)
            found.append(gone)
    return sorted(found, key=lambda each: each.timestamp or "")
