"""Which files come and go for a reader, by position: of ready partitions alone, or of all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from metastore.store.snapshot.data_files import FileRow
from metastore.store.timeline.uncommitted_spans import Span

FilesByPosition: TypeAlias = Mapping[int, Sequence[FileRow]]
"""Files by the position at which they come, or go."""


def by_position(added: Iterable[FileRow], removed: Iterable[FileRow]) -> tuple[FilesByPosition, FilesByPosition]:
    """The files that joined the snapshot, and those that left it."""
    return (
        _grouped((each.added_at, each) for each in added),
        _grouped((each.removed_at or 0, each) for each in removed),
    )


def of_ready_partitions(
    files: Iterable[FileRow], spans: Iterable[Span], after: int, last: int
) -> tuple[FilesByPosition, FilesByPosition]:
    """The files that come and go, after one position up to another, for a reader of ready partitions.

    A partition that turns ready brings all its files, one that is reopened takes them away. `files`: all that were in
    a snapshot of the range. `spans`: of their partitions, in their order.
    """
    of_partition: dict[str, list[Span]] = {}
    for span in spans:
        of_partition.setdefault(span.partition, []).append(span)
    come: list[tuple[int, FileRow]] = []
    gone: list[tuple[int, FileRow]] = []
    for file in files:
        for first, end in _seen(file, of_partition.get(file.partition, ())):
            if after < first <= last:
                come.append((first, file))
            if end is not None and after < end <= last:
                gone.append((end, file))
    return _grouped(come), _grouped(gone)


def _seen(file: FileRow, spans: Iterable[Span]) -> Iterator[tuple[int, int | None]]:
    """The ranges of positions in which a file is seen: from the first of each on, before its end."""
    since, end = file.added_at, file.removed_at
    for span in spans:
        if end is not None and span.opened_at >= end:
            break
        if since < span.opened_at:
            yield since, span.opened_at
        if span.committed_at is None:
            return
        since = max(since, span.committed_at)
    if end is None or since < end:
        yield since, end


def _grouped(files: Iterable[tuple[int, FileRow]]) -> FilesByPosition:
    found: dict[int, list[FileRow]] = {}
    for position, file in files:
        found.setdefault(position, []).append(file)
    return found
