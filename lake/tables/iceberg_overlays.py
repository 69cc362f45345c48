"""Writes what Iceberg's readers need to see the latest rows of merge-on-read tables, between two compactions.

`write_overlays` merges the buckets that have log files, and writes for each which rows of its base file don't count any
more, and which rows come of the log files (`lake.protocol.formats.iceberg_overlays`). It changes nothing that the
timeline knows, and may run at any time, anywhere, and twice at once.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lake.client.lake_types import DataFile
from lake.protocol.errors import UserError
from lake.protocol.formats.iceberg_overlays import (
    FOLDER,
    PATH,
    PATH_ID,
    POSITION,
    POSITION_ID,
    OverlayName,
    overlay_key,
    uri,
)
from lake.protocol.formats.keyed_table import INSTANT, MergeEngine
from lake.tables.buckets import Bucket, Layout, by_bucket, is_tombstones, needs_merging
from lake.tables.keyed.files import write_rows
from lake.tables.keyed.versions import NONE, as_mask, key_codes
from lake.tables.keyed_tables import layout_of
from lake.tables.lake import LakeTable

KEPT_SECONDS = 3_600
"""How long files stay after the last position that needs them was the latest: a query may still read them."""

_FIELD_ID = "PARQUET:field_id"
_DELETES = pa.schema(
    [
        pa.field(PATH, pa.string(), nullable=False, metadata={_FIELD_ID: str(PATH_ID)}),
        pa.field(POSITION, pa.int64(), nullable=False, metadata={_FIELD_ID: str(POSITION_ID)}),
    ]
)


class Written(NamedTuple):
    """What was done: the position that readers see now, how many buckets were merged, and how many files removed.

    `kept`: buckets with log files whose files were there already.
    """

    position: int
    buckets: int
    kept: int
    removed: int


def write_overlays(lake: LakeTable, *, stop: Callable[[], bool] = lambda: False) -> Written:
    """Makes the latest rows of a merge-on-read table readable for Iceberg's readers. Raises NotKeyed, SnapshotGone.

    It ends early once `stop` says so, which is asked for each bucket; the next call goes on.
    Raises UserError for a table with another merge engine than `deduplicate`.
    """
    snapshot = lake.snapshot(include_uncommitted=True)
    schema = lake.schema(snapshot.table_version)
    layout = layout_of(lake.name, schema, snapshot.location)
    if layout.table.engine is not MergeEngine.DEDUPLICATE:
        raise UserError(
            f"{lake.name} has the merge engine {layout.table.engine}: Iceberg's readers see what is compacted"
        )
    place = _Place(f"{snapshot.location}/{FOLDER}")
    there = {name.key: name for name in place.names()}
    merged = kept = 0
    with lake.leased(snapshot.position):
        for bucket, files in by_bucket(snapshot).items():
            if not needs_merging(files) or stop():
                continue
            key = _key(snapshot.location, files, schema.properties)
            if key in there:
                kept += 1
            else:
                _write(layout, bucket, files, key, place)
                merged += 1
    removed = place.remove(_needed(lake, snapshot.location, schema.properties))
    return Written(snapshot.position, merged, kept, removed)


def _key(location: str, files: Iterable[DataFile], properties: Mapping[str, str]) -> str:
    some = [(each.path, each.size) for each in files if not is_tombstones(each)]
    return overlay_key(uri(location), some, properties)


def _write(layout: Layout, bucket: Bucket, files: Sequence[DataFile], key: str, place: "_Place") -> None:
    rows = layout.read(files).rows
    bases = [each for each in files if each.kind == "base"]
    if len(bases) > 1:
        raise UserError(f"{bucket} has {len(bases)} base files, whose rows can't be told apart")
    lives, gone = np.ones(rows.num_rows, bool), np.zeros(0, np.int64)
    if bases:
        lives, gone = _apart(layout, bases[0], rows)
    fresh = rows.filter(pa.array(lives)) if len(lives) else rows
    name = OverlayName(key, fresh.num_rows, len(gone))
    if len(gone):
        path = f"{uri(layout.location)}/{bases[0].path}"
        deletes = pa.table([pa.array([path] * len(gone), pa.string()), pa.array(gone)], schema=_DELETES)
        place.put_deletes(name.deletes_file, deletes)
    place.put_rows(name.rows_file, fresh, {} if layout.ids is None else layout.ids.now())


def _apart(layout: Layout, base: DataFile, rows: pa.Table) -> "tuple[np.ndarray, np.ndarray]":
    """Which rows of a bucket aren't those of its base file, and which places of the base file hold none of them.

    A row is the base file's if its instant is: a later version of the same content leaves the instant as it was.
    """
    key = layout.table.key
    before = layout.keys_of(base)
    codes = key_codes([before, rows.select([*key])], key)
    of_base, of_rows = codes[: before.num_rows], codes[before.num_rows :]
    at = np.full(int(codes.max(initial=-1)) + 1, NONE, np.int64)
    at[of_base] = np.arange(before.num_rows, dtype=np.int64)
    places = at[of_rows]
    known = np.flatnonzero(places != NONE)
    instants = before.column(INSTANT).take(pa.array(places[known]))
    same = as_mask(pa.compute.equal(instants, rows.column(INSTANT).take(pa.array(known))).fill_null(False))
    lives = np.ones(rows.num_rows, bool)
    lives[known[same]] = False
    stays = np.zeros(before.num_rows, bool)
    stays[places[known[same]]] = True
    return lives, np.flatnonzero(~stays).astype(np.int64)


def _needed(lake: LakeTable, location: str, properties: Mapping[str, str]) -> set[str]:
    """The keys of all buckets at the positions that were the latest a short time ago, or that are held."""
    held = [each.position or 0 for each in lake.client.call(lambda client: client.lake_list_leases(lake.reference))]
    held += [each.read_position or 0 for each in lake.savepoints()]
    first = _first_of_late(lake)
    files: defaultdict[Bucket, list[DataFile]] = defaultdict(list)
    for each in lake.snapshot(include_uncommitted=True, all_versions=True):
        if not is_tombstones(each):
            files[Bucket(each.partition, each.file_group)].append(each)
    return {
        _key(location, live, properties)
        for some in files.values()
        for live in (*_states(some, first), *(_live(some, position) for position in held))
        if needs_merging(live)
    }


def _first_of_late(lake: LakeTable) -> int:
    """The first position that was the latest within KEPT_SECONDS."""
    since = datetime.now(UTC) - timedelta(seconds=KEPT_SECONDS)
    completed = lake.instants(states=["completed"])
    return max((each.position or 0 for each in completed if each.changed_at < since), default=0)


def _live(files: Iterable[DataFile], position: int) -> list[DataFile]:
    """Those of a bucket's files that it had at a position."""
    return [
        each
        for each in files
        if (each.added_at or 0) <= position and (each.removed_at is None or position < each.removed_at)
    ]


def _states(files: Sequence[DataFile], first: int) -> Iterator[list[DataFile]]:
    """The files that a bucket had, one state after the other, from a position on."""
    end = max(max(each.added_at or 0, each.removed_at or 0) for each in files) + 1
    moments = sorted({first, end, *(each.added_at or 0 for each in files), *(each.removed_at or 0 for each in files)})
    for start, until in pairwise(moments):
        if until > first and (live := _live(files, start)):
            yield live


class _Place:
    """The directory of the files, on any storage that fsspec knows."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._local = Path("/" + location.removeprefix("file:").lstrip("/")) if location.startswith("file:") else None
        self._storage, self._root = fsspec.url_to_fs(location if self._local is None else str(self._local))

    def names(self) -> list[OverlayName]:
        """The names whose files are all there."""
        files = {*self._files()}
        found = {name for each in files if (name := OverlayName.of(each)) is not None and each == name.rows_file}
        return [each for each in found if not each.deletes or each.deletes_file in files]

    def put_rows(self, file: str, rows: pa.Table, ids: Mapping[str, int]) -> None:
        target = self._begun(file)
        write_rows(target, rows, ids)
        self._done(target, file)

    def put_deletes(self, file: str, deletes: pa.Table) -> None:
        target = self._begun(file)
        with self._storage.open(target.removeprefix("file:"), "wb") as opened:
            pq.write_table(deletes, opened)
        self._done(target, file)

    def _begun(self, file: str) -> str:
        """Where a file is written: on a local file system under a name that nobody looks for, until it is whole."""
        if self._local is None:
            return f"{self._location}/{file}"
        self._local.mkdir(parents=True, exist_ok=True)
        return f"file:{self._local}/_{time.time_ns()}-{file}"

    def _done(self, written: str, file: str) -> None:
        if self._local is not None:
            Path(written.removeprefix("file:")).replace(self._local / file)

    def remove(self, needed: set[str]) -> int:
        """Removes files of keys that aren't needed, unless they are new. Returns how many."""
        removed = 0
        for each in self._files():
            name = OverlayName.of(each)
            if name is not None and name.key in needed:
                continue
            path = f"{self._root}/{each}"
            try:
                age = time.time() - self._storage.modified(path).timestamp()
            except (FileNotFoundError, NotImplementedError):
                continue
            if age > KEPT_SECONDS:
                self._storage.rm_file(path)
                removed += 1
        return removed

    def _files(self) -> list[str]:
        self._storage.invalidate_cache(self._root)
        try:
            found = self._storage.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        names = (str(each).rpartition("/")[2] for each in found)
        return [each for each in names if each]  # some storages list the directory itself
