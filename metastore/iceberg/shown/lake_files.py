"""Which files have the rows of a lake table at one position, for readers that merge nothing."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.formats.iceberg_overlays import FOLDER, OverlayName, overlay_key
from lake.protocol.formats.keyed_table import TOMBSTONES
from lake.protocol.lake import DataFile, SnapshotRequest, TableReference
from metastore.iceberg.errors import bad_request

PAGE = 20_000
"""Files in one answer of a worker."""

MAX_FILES = 500_000
"""Files of a table that is shown."""

_NEVER = 1 << 62


class Bucket(NamedTuple):
    """A file group of a partition."""

    partition: str
    group: str


class NeedsMerging(Exception):
    """A bucket's rows are in log files, too."""


@dataclass(frozen=True)
class Exact:
    """A position whose rows can be shown. `compacted`: instead of the files of these buckets, what they became."""

    position: int
    compacted: Mapping[Bucket, Sequence[DataFile]]


OVERLAY, DELETES = "overlay", "deletes"
"""Kinds of files that stand for the log files of a bucket."""


class Overlays:
    """What was written to stand for log files, see `lake.protocol.formats.iceberg_overlays`."""

    def __init__(self, base: str, properties: Mapping[str, str], files: Mapping[str, int]) -> None:
        """`base`: the table's location, as clients read it. `properties`: the table's. `files`: what is there."""
        self._base, self._properties, self._files = base, properties, files
        self._names = {
            name.key: name
            for each in files
            if (name := OverlayName.of(each)) is not None
            and each == name.rows_file
            and (not name.deletes or name.deletes_file in files)
        }

        self.used: set[str] = set()
        """The keys of those that `of` has given."""
        self.hash = hash(frozenset(self._names))
        """Another number for other files that are there, in one process."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands for log files."""
        return not self._names

    def has(self, keys: Iterable[str]) -> bool:
        """Whether the files of some keys are there."""
        return all(each in self._names for each in keys)

    def of(self, group: Sequence[DataFile]) -> list[DataFile] | None:
        """What is shown of a bucket instead of its files; None if its log files aren't merged yet."""
        some = [each for each in group if each.kind != "log" or is_log(each)]
        name = self._names.get(overlay_key(self._base, [(f.path or "", f.size or 0) for f in some], self._properties))
        if name is None:
            return None
        self.used.add(name.key)
        found = [each for each in some if each.kind != "log"]
        added = max(each.addedAt or 0 for each in some)
        for file, rows, kind in ((name.rows_file, name.rows, OVERLAY), (name.deletes_file, name.deletes, DELETES)):
            if rows:
                path, size = f"{FOLDER}/{file}", self._files[file]
                like = some[0]
                found.append(
                    DataFile(like.partition, like.fileGroup, like.slice, path, kind, size, rows, addedAt=added)
                )
        return found


def read(client: ThriftClient, request: SnapshotRequest) -> Iterator[DataFile]:
    """The files of a snapshot, page by page. Raises what the worker raises, RestError (400) for too many."""
    request = request.replace(limit=PAGE)
    count = 0
    while True:
        page = client.lake_get_snapshot(request)
        for each in page.files or ():
            count += 1
            if count > MAX_FILES:
                raise bad_request(f"the table has more than {MAX_FILES:,} files: compact or cluster it first")
            yield each
        if page.nextPage is None:
            return
        request = request.replace(after=page.nextPage)


def is_log(file: DataFile) -> bool:
    """Whether a file must be merged with a base file. Raises RestError (400) for the file of a column family."""
    if file.kind not in (None, "base", "log"):
        raise bad_request(f"{file.path} is of the kind {file.kind}, which this server's version can't show")
    if file.kind != "log":
        if file.columns is not None:
            raise bad_request(
                "the table has column-families, whose files each have a part of a row: Iceberg's readers can't join"
                " them. Read the table with Spark's lake catalog, or make one without families"
            )
        return False
    return file.statistics != TOMBSTONES


def shown(files: Iterable[DataFile], exact: Exact, overlays: Overlays) -> Iterator[DataFile]:
    """The data files of a position, of its files in order. Raises NeedsMerging, RestError."""
    group: list[DataFile] = []

    def chosen() -> Iterator[DataFile]:
        if not group:
            return iter(())
        bucket = Bucket(group[0].partition or "", group[0].fileGroup or "")
        if (became := exact.compacted.get(bucket)) is not None:
            return iter(became)
        if any(is_log(each) for each in group):
            if (merged := overlays.of(group)) is not None:
                return iter(merged)
            raise NeedsMerging(f"{bucket.partition or 'the table'} has log files")
        return (each for each in group if each.kind != "log")

    for each in files:
        if group and (group[0].partition, group[0].fileGroup) != (each.partition, each.fileGroup):
            yield from chosen()
            group = []
        group.append(each)
    yield from chosen()


class _Stretch(NamedTuple):
    """Positions at which a bucket has the same files, and log files among them: from `start` to before `end`.

    `became`: what a compaction made of just these files; None if none did.
    """

    bucket: Bucket
    start: int
    end: int
    became: Sequence[DataFile] | None


def exact_positions(
    client: ThriftClient,
    table: TableReference,
    head: int,
    oldest: int,
    compactions: Collection[int],
    overlays: Overlays,
    check_time: Callable[[], None],
) -> Iterator[Exact]:
    """The positions from `head` down to `oldest` at which no rows are in log files alone, each time something changed.

    So it is where `overlays` stand for the log files, too. A bucket that a compaction has merged since counts as well:
    the compaction's file has the rows that the files had which it replaced, as long as these were all files of the
    bucket. `compactions`: the positions of compactions. `check_time`: raises if it takes too long.
    """
    buckets: defaultdict[Bucket, list[DataFile]] = defaultdict(list)
    for each in read(client, SnapshotRequest(table, asOfPosition=head, allVersions=True, includeUncommitted=False)):
        if is_log(each) or each.kind != "log":
            buckets[Bucket(each.partition or "", each.fileGroup or "")].append(each)
    changed = {head}
    stretches: list[_Stretch] = []
    for bucket, files in buckets.items():
        if any(each.kind == "log" for each in files):
            check_time()
            moments = sorted({oldest, head + 1, *(m for each in files for m in _span(each) if oldest < m <= head)})
            changed.update(each - 1 for each in moments[1:])
            stretches += _stretches(bucket, files, moments, compactions)
    yield from _fit(sorted(changed, reverse=True), stretches, buckets, overlays, check_time)


def _stretches(
    bucket: Bucket, files: Sequence[DataFile], moments: Sequence[int], compactions: Collection[int]
) -> Iterator[_Stretch]:
    """Those of a bucket. `moments`: the positions at which its files change, in order, with the first and the end."""
    replaced: Counter[int] = Counter()
    merged: defaultdict[int, list[DataFile]] = defaultdict(list)
    for each in files:
        start, end = _span(each)
        replaced[end] += 1
        if each.kind != "log":
            merged[start].append(each)
    coming = sorted(files, key=lambda each: _span(each)[0], reverse=True)
    live: Counter[int] = Counter()  # how many files there are that go at a position
    logs: Counter[int] = Counter()
    for start, end in pairwise(moments):
        live.pop(start, None)
        logs.pop(start, None)
        while coming and _span(coming[-1])[0] <= start:
            file = coming.pop()
            if (goes := _span(file)[1]) > start:
                live[goes] += 1
                if file.kind == "log":
                    logs[goes] += 1
        if logs:
            at = min(live)
            is_whole = len(live) == 1 and at in compactions and replaced[at] == live[at]
            yield _Stretch(bucket, start, end, merged[at] if is_whole else None)


def _fit(
    positions: Iterable[int],
    stretches: Iterable[_Stretch],
    buckets: Mapping[Bucket, Sequence[DataFile]],
    overlays: Overlays,
    check_time: Callable[[], None],
) -> Iterator[Exact]:
    """Those of some positions, from the last one down, at which each bucket can be shown.

    A stretch is looked at only if nothing else speaks against its positions: overlays are found by a hash of all files.
    """
    ordered = sorted(stretches, key=lambda each: each.end)
    here: list[tuple[int, int]] = []  # a heap of what covers the position: the first is left first
    unknown: dict[int, _Stretch] = {}
    unfit: set[int] = set()
    compacted: dict[int, tuple[Bucket, Sequence[DataFile]]] = {}
    for position in positions:
        check_time()
        while ordered and ordered[-1].end > position:
            number, each = len(ordered), ordered.pop()
            unknown[number] = each
            heappush(here, (-each.start, number))
        while here and -here[0][0] > position:
            _, number = heappop(here)
            unknown.pop(number, None)
            unfit.discard(number)
            compacted.pop(number, None)
        while unknown and not unfit:
            number, each = unknown.popitem()
            if _has_overlay(overlays, buckets[each.bucket], each.start):
                continue
            if each.became is None:
                unfit.add(number)
            else:
                compacted[number] = each.bucket, each.became
        if not unfit:
            yield Exact(position, dict(compacted.values()))


def _has_overlay(overlays: Overlays, files: Iterable[DataFile], position: int) -> bool:
    """Whether something stands for the log files of a bucket at a position."""
    if overlays.is_empty:
        return False
    return overlays.of([each for each in files if _span(each)[0] <= position < _span(each)[1]]) is not None


def _span(file: DataFile) -> tuple[int, int]:
    """From which position on a file belongs to the table, and from which on it doesn't any more."""
    return file.addedAt or 0, _NEVER if file.removedAt is None else file.removedAt
