"""What changed between two positions of a table without a primary key, by files: a clustering is no change.

The rows of the files that a clustering wrote are those of the files that it replaced. So its own changes are left out,
and where its files were removed later, the replaced ones were removed in their stead. Each file that stands for rows
can still be read: what existed after the first position has not been cleaned.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from lake.client.lake_types import Changes, DataFile
from lake.protocol.errors import UserError
from lake.tables.clustering import CLUSTERING
from lake.tables.lake import LakeTable

_UNDOING = frozenset({"rollback", "restore"})


class MixedFiles(UserError):
    """A file has rows that had been there and rows that came, and only some of its clustering's files are gone."""


class NetChanges(NamedTuple):
    """The files whose rows came, and those whose rows went."""

    added: list[DataFile]
    removed: list[DataFile]


def net_changes(
    lake: LakeTable, after: int, up_to: int | None, *, filter: str | None = None, include_uncommitted: bool = False
) -> NetChanges:
    """The files whose rows came after a position up to another, or up to now, and those whose rows went.

    `filter` is on partition keys, in Hive's grammar. Raises SnapshotGone, and MixedFiles where files alone don't tell.
    """

    def changes(first: int, last: int | None) -> Iterable[Changes]:
        return lake.changes(first, last, filter=filter, include_uncommitted=include_uncommitted)

    balance = _Balance()
    clusterings: list[_Replacement] = []
    undoes = False
    for change in changes(after, up_to):
        balance.know(change)
        if change.instant.begun_as == CLUSTERING:
            clusterings += _replacements(change)
            continue
        balance.add(change.added, 1)
        balance.add(change.removed, -1)
        undoes = undoes or change.instant.action in _UNDOING
    for each in reversed(clusterings):
        balance.undo_removal(each, lake.name)
    if undoes:
        came, went = ([each for each in files if _since(each) <= after] for files in balance.result())
        both = {each.partition for each in came} & {each.partition for each in went}
        before = {_since(each) for each in (*came, *went) if each.partition in both}
        balance.undo_exchanges(_clusterings_among(lake, before, changes))
    return balance.result()


def _clusterings_among(
    lake: LakeTable, positions: set[int], changes: Callable[[int, int | None], Iterable[Changes]]
) -> Iterator[Changes]:
    """The clusterings at some positions, and those of whose files they were made, the latest first.

    A rollback may undo one from before the range, or bring its files back.
    """
    if not positions:
        return
    instants = lake.instants(actions=["replacecommit", CLUSTERING], states=["completed"], include_archived=True)
    known = {each.position for each in instants if each.begun_as == CLUSTERING}
    wanted = positions & known
    while wanted:
        position = max(wanted)
        wanted.remove(position)
        for change in changes(position - 1, position):
            wanted |= {_since(each) for each in change.removed} & known
            yield change


class _Replacement(NamedTuple):
    """Files that a clustering wrote, which have the rows of others, as paths."""

    written: frozenset[str]
    replaced: frozenset[str]


class _Balance:
    """How often the rows of each file came, less how often they went."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._files: dict[str, DataFile] = {}

    def know(self, change: Changes) -> None:
        self._files.update((each.path, each) for each in (*change.removed, *change.added))

    def add(self, files: Sequence[DataFile], sign: int) -> None:
        for each in files:
            self._counts[each.path] += sign

    def undo_removal(self, clustering: _Replacement, table: str) -> None:
        """Where all files of a clustering went, those that it had replaced went. Raises MixedFiles if only some did."""
        gone = {path for path in clustering.written if self._counts[path] < 0}
        if gone and gone < clustering.written:
            raise MixedFiles(
                f"{table}: {min(gone)} is gone, and not the other files that a clustering wrote with it, so which rows"
                " came and went isn't known by files. Read from after the clustering on, or both snapshots"
            )
        if gone:
            self._exchange(clustering, 1)

    def undo_exchanges(self, clusterings: Iterable[Changes]) -> None:
        """Files that were exchanged for those with the same rows are no change, in either direction.

        `clusterings`: from before the range, the latest first.
        """
        tried: list[tuple[_Replacement, int]] = []
        for change in clusterings:
            self.know(change)
            for each in _replacements(change):
                for sign in (1, -1):
                    if each.written and all(self._counts[path] * sign < 0 for path in each.written):
                        self._exchange(each, sign)
                        tried.append((each, sign))
        for each, sign in reversed(tried):  # nothing was exchanged: the files themselves went, or came
            if all(self._counts[path] * sign < 0 for path in each.replaced):
                self._exchange(each, -sign)

    def _exchange(self, clustering: _Replacement, sign: int) -> None:
        for path in clustering.written:
            self._counts[path] += sign
        for path in clustering.replaced:
            self._counts[path] -= sign

    def result(self) -> NetChanges:
        came = [self._files[path] for path, count in self._counts.items() if count > 0]
        went = [self._files[path] for path, count in self._counts.items() if count < 0]
        return NetChanges(came, went)


def _replacements(change: Changes) -> Iterator[_Replacement]:
    """What stands for what after a clustering: each file that came along by itself, a partition's rest together."""
    groups: dict[tuple[str, str | None], tuple[set[str], set[str]]] = {}
    on_both = {_group(each) for each in change.added} & {_group(each) for each in change.removed}
    for side, files in enumerate((change.added, change.removed)):
        for each in files:
            unit = (each.partition, each.file_group if _group(each) in on_both else None)
            groups.setdefault(unit, (set(), set()))[side].add(each.path)
    for written, replaced in groups.values():
        yield _Replacement(frozenset(written), frozenset(replaced))


def _group(file: DataFile) -> tuple[str, str]:
    return file.partition, file.file_group


def _since(file: DataFile) -> int:
    """The position at which a file was added at first."""
    return (file.added_at if file.first_added_at is None else file.first_added_at) or 0
