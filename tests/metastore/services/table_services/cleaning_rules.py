"""What a clean may delete, said once more without SQL: the rules of `metastore.services.timeline.cleaning`.

`interleavings` explores them by the million; `test_agreement` compares each answer of theirs with the server's.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Group = tuple[str, str]
"""A file group: its partition and its name."""


@dataclass(slots=True)
class Row:
    """A file that belongs to the snapshots from position `added` on, and before `removed`. `slice`: sorts slices."""

    path: str
    group: Group
    slice: str
    added: int
    removed: int | None = None

    def is_in(self, position: int) -> bool:
        return self.added <= position and (self.removed is None or self.removed > position)


class Plan(NamedTuple):
    """A pending plan: the position that its maker saw, and the file groups that it rewrites."""

    read: int
    groups: Collection[Group]


class Kept(NamedTuple):
    """The positions, the position from which on all, and the partitions, of which no file may go."""

    positions: Collection[int]
    since: int | None
    partitions: Collection[str]


ALL: frozenset[str] = frozenset()
"""No rule is left out."""


def unneeded(
    rows: Sequence[Row],
    plans: Iterable[Plan],
    kept: Kept,
    up_to: int | None = None,
    without: Collection[str] = ALL,
) -> list[Row]:
    """The rows of files that nobody needs. `up_to`: nor a snapshot from there on. `without`: what isn't looked at."""
    horizon = min((each for each in (up_to, kept.since) if each is not None), default=None)
    plans = list(plans)

    def is_needed(row: Row) -> bool:
        removed = row.removed
        if removed is None or (horizon is not None and removed > horizon):
            return True
        if any(row.added <= each < removed for each in kept.positions):
            return True
        return any(row.added <= each.read < removed and row.group in each.groups for each in plans)

    if "a file is one" in without:  # each row by itself: a file that was removed and came back has two
        return [each for each in rows if not is_needed(each) and each.group[0] not in kept.partitions]
    needed = {each.path for each in rows if is_needed(each)}
    return [each for each in rows if each.path not in needed and each.group[0] not in kept.partitions]


def by_commits(rows: Sequence[Row], plans: Iterable[Plan], kept: Kept, horizon: int) -> set[str]:
    """The files that a clean may delete which keeps all snapshots from a position on."""
    found = unneeded(rows, plans, kept, horizon)
    return {each.path for each in found if each.removed is not None and each.removed <= horizon}


def by_versions(rows: Sequence[Row], plans: Iterable[Plan], kept: Kept, versions: int) -> set[str]:
    """The files that a clean may delete which keeps so many slices of each file group.

    The replacement of a group that is gone counts as its latest slice.
    """
    slices: dict[Group, set[str]] = defaultdict(set)
    live: set[Group] = set()
    for row in rows:
        slices[row.group].add(row.slice)
        if row.removed is None:
            live.add(row.group)
    latest = {
        group: sorted(found, reverse=True)[: versions if group in live else versions - 1]
        for group, found in slices.items()
    }
    return {each.path for each in unneeded(rows, plans, kept) if each.slice not in latest[each.group]}


def may_delete(
    rows: Sequence[Row], plans: Iterable[Plan], kept: Kept, paths: Collection[str], without: Collection[str] = ALL
) -> tuple[list[Row], bool]:
    """The rows that a clean of these paths would remove, and whether it may: all or nothing."""
    wanted = set(paths)
    found = [each for each in unneeded(rows, plans, kept, None, without) if each.path in wanted]
    if "a file is one" in without:
        return found, True
    known = {each.path for each in rows} & wanted
    return found, known <= {each.path for each in found}
