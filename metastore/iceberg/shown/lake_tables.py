"""Lake tables and keyed tables, shown to Iceberg's readers: a snapshot is a position of the timeline."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.formats.iceberg_overlays import FOLDER, PATH_ID
from lake.protocol.formats.keyed_table import TableType, type_of
from lake.protocol.hive import Table
from lake.protocol.lake import Instant, ListInstantsRequest, SnapshotGone, SnapshotRequest, TableReference
from metastore.iceberg.errors import bad_request
from metastore.iceberg.shown import manifests
from metastore.iceberg.shown.bounds import Metrics
from metastore.iceberg.shown.footers import Footer
from metastore.iceberg.shown.lake_columns import lake_columns
from metastore.iceberg.shown.lake_files import (
    DELETES,
    OVERLAY,
    Exact,
    NeedsMerging,
    Overlays,
    exact_positions,
    read,
    shown,
)
from metastore.iceberg.shown.manifests import Entry
from metastore.iceberg.shown.shown_table import ShownTable
from metastore.iceberg.shown.writing import (
    ALL,
    COMPACTED,
    MERGED,
    READY,
    UNCOMMITTED,
    Json,
    ListName,
    Memory,
    Shown,
    metadata_of,
    ref,
    snapshot_of,
)
from metastore.warehouse import Warehouse

MAX_SNAPSHOTS = 1_000
"""Earlier snapshots that a table shows: the latest."""

MAX_MERGED = 100
"""Earlier snapshots with files that stand for log files: the latest."""

MAX_SAVEPOINTS = 100
"""Tags of a table: the latest savepoints."""

_KEYS = "lake-metastore.merged"  # in the header of a manifest list: of the files that stand for log files

PAGE = 10_000
"""Instants that are read at a time. No timestamp has so many: it has no more than there are actions."""

_OTHER_REFS = ("main", UNCOMMITTED)

Lease = Callable[[TableReference, int, bool], None]


class LakeTable(ShownTable):
    """One lake table as it is now."""

    def __init__(self, client: ThriftClient, warehouse: Warehouse, memory: Memory, table: Table, lease: Lease) -> None:
        """`lease`: keeps the files of a position from cleans."""
        super().__init__(client, warehouse, memory, table, lake_columns(table))
        self._lease = lease
        self._instants: list[Instant] | None = None

    def shown(self) -> Shown:
        """The table's metadata. Raises RestError, SnapshotGone, and what a worker raises."""
        ignores_deletes = (self._table.parameters or {}).get("ignore-delete", "").strip().lower() == "true"
        self._head = self._begin(" without deletes" if ignores_deletes else "").position or 0
        self._oldest = self._client.lake_timeline_position(self._reference).oldestReadable or 0
        merged = self._writer.sizes(FOLDER.rpartition("/")[2])
        self._overlays = Overlays(self._writer.base, self._table.parameters or {}, merged)
        if not self._head:
            return self._metadata(None, [], {}, self._columns.mapping)
        current = self._current()
        self._lease(self._reference, current.position, current.kind != READY)
        refs: dict[str, Json] = {"main": ref(current, "branch")}
        named = [current]
        if (every := self._uncommitted(current.position)) is not None:
            refs[UNCOMMITTED] = ref(every, "branch")
            named.append(every)
        saved = self._savepoints()
        for tag, position in saved.items():
            if position < current.position and (found := self._saved(position)) is not None:
                refs[tag] = ref(found, "tag")
                named.append(found)
            elif position == current.position:
                refs[tag] = ref(current, "tag")
        mapping = self._writer.mapping(named)  # earlier positions are too many to be looked at
        named += self._kept(current.position, {*saved.values()})
        unique = {each.snapshot: each for each in reversed(named)}
        shown = self._metadata(current, sorted(unique.values(), key=lambda each: each.position), refs, mapping)
        self._delete_expired({each.day for each in named}, {*saved.values()})
        return shown

    def _check(self, entry: Entry, footer: Footer) -> None:
        if not footer.has_ids:
            self._columns.check_names(entry.path, footer)

    # -- the positions that are shown -------------------------------------------------------------------------

    def _current(self) -> ListName:
        """The latest position that can be shown."""
        table = self._reference.id or 0
        known = self._memory.position_for(table, self._head, self._overlays.hash)
        if (found := self._find(known, READY, MERGED, COMPACTED)) is not None:
            return found
        with self._memory.place():
            return self._made()

    def _made(self) -> ListName:
        """The same, where it isn't known which one that is."""
        table = self._reference.id or 0
        is_merged = type_of(self._table.parameters or {}) == TableType.MERGE_ON_READ
        for exact in self._exact_positions() if is_merged else [Exact(self._head, {})]:
            found = self._find(exact.position, READY, MERGED, COMPACTED)
            try:
                found = found or self._make(exact, COMPACTED if exact.compacted else READY)
            except NeedsMerging:  # log files of a table of another type, or in a partition that was reopened since
                continue
            self._memory.showed(table, self._head, self._overlays.hash, found.position)
            return found
        raise bad_request(
            "at no position that can be read are the table's rows in base files alone, and Iceberg's readers can't"
            " merge log files: compact the table (plan_compaction, or the table services), then read it again"
        )

    def _exact_positions(self) -> Iterator[Exact]:
        compactions = {each.position or 0 for each in self._completed() if each.begunAs == "compaction"}
        found = exact_positions(
            self._client,
            self._reference,
            self._head,
            self._oldest,
            compactions,
            self._overlays,
            self._writer.check_time,
        )
        return (each for each in found if each.position)

    def _uncommitted(self, position: int) -> ListName | None:
        """The same with uncommitted partitions; None if the caller may not see these, or if they need merging."""

        def found_or_made() -> ListName:
            if (found := self._find(position, ALL)) is not None:
                return found
            with self._memory.place():
                return self._make(Exact(position, {}), ALL)

        try:
            return self._if_allowed(found_or_made, position)
        except NeedsMerging:
            return None

    def _saved(self, position: int) -> ListName | None:
        """The position of a savepoint; None if it has log files."""
        if (found := self._find(position, READY, MERGED)) is not None:
            return found
        try:
            with self._memory.place():
                return self._make(Exact(position, {}), READY)
        except (NeedsMerging, SnapshotGone):
            return None

    def _find(self, position: int, *kinds: str) -> ListName | None:
        """The manifest list of a position, if there is one all of whose files are there."""
        some = [each for each in self._writer.lists if each.position == position and each.kind in kinds]
        ordered = sorted(some, key=lambda each: (kinds.index(each.kind), -int(each.day)))
        return next(filter(self._is_whole, ordered), None)

    def _is_whole(self, name: ListName) -> bool:
        """Whether the files that stand for log files are still there, if a list has some."""
        if name.kind not in (MERGED, ALL):
            return True
        return self._overlays.has(json.loads(self._writer.about(name, _KEYS) or "[]"))

    def _kept(self, before: int, saved: Iterable[int]) -> list[ListName]:
        """The earlier positions that were shown and can still be read."""
        found = [
            each
            for each in self._writer.lists
            if each.position < before
            and each.kind in (READY, COMPACTED)
            and (each.position >= self._oldest or (each.kind == READY and each.position in saved))
        ]
        merged = [each for each in self._writer.lists if each.kind == MERGED and each.position < before]
        latest = sorted(merged, key=lambda each: (each.position, each.day))[-MAX_MERGED:]
        found += [each for each in latest if each.position >= self._oldest and self._is_whole(each)]
        return sorted(found, key=lambda each: (each.position, each.day))[-MAX_SNAPSHOTS:]

    def _savepoints(self) -> dict[str, int]:
        """The positions that savepoints protect, by their tags: their names, or from their timestamps."""
        request = ListInstantsRequest(
            self._reference, actions=["savepoint"], states=["completed"], limit=MAX_SAVEPOINTS, latestFirst=True
        )
        found = self._client.lake_list_instants(request)
        return {_tag_of(each): each.readPosition or 0 for each in found if each.undoneBy is None}

    def _completed(self) -> list[Instant]:
        if self._instants is None:
            request = ListInstantsRequest(self._reference, states=["completed"], latestFirst=True)
            self._instants = list(listed(self._client, request))
        return self._instants

    def _time_of(self, position: int) -> int:
        """When a position was reached, in milliseconds since 1970."""
        text = next((each.completionTime for each in self._completed() if each.position == position), None)
        if text is None:
            request = ListInstantsRequest(self._reference, states=["completed"], latestFirst=True, includeArchived=True)
            found = listed(self._client, request)
            text = next((each.completionTime for each in found if each.position == position), None)
        if text is None:
            raise bad_request(f"the instant of position {position} is not on the timeline any more")
        at = datetime.strptime(f"{text[:17]}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
        return round(at.timestamp() * 1000)

    # -- the files --------------------------------------------------------------------------------------------

    def _make(self, exact: Exact, kind: str) -> ListName:
        """Writes the manifests and the manifest list of a position. Raises NeedsMerging."""
        request = SnapshotRequest(self._reference, asOfPosition=exact.position, includeUncommitted=kind == ALL)
        self._overlays.used.clear()
        made = self._writer.make_manifests(self._entries(request, exact))
        used = sorted(self._overlays.used)
        if used and kind != ALL:
            kind = MERGED
        name = self._writer.name(exact.position, self._time_of(exact.position), kind)
        self._writer.make_list(name, made, exact.position, {_KEYS: json.dumps(used)})
        return name

    def _entries(self, request: SnapshotRequest, exact: Exact) -> Iterator[Entry]:
        last = ""
        for file in shown(read(self._client, request), exact, self._overlays):
            path, added = f"{self._writer.base}/{file.path}", min(file.addedAt or 0, exact.position)
            # A table that was dropped and made again may have another file of the same path and size.
            version = ((self._reference.id or 0) << 64) + (file.addedAt or 0)
            entry = Entry(file.partition or "", path, file.size or 0, file.rows, added, version=version)
            if file.kind == DELETES:  # of the bucket's base file, which comes before
                only = {PATH_ID: last.encode()}
                yield replace(entry, content=manifests.DELETES, metrics=Metrics(lower=only, upper=only))
                continue
            if file.kind != OVERLAY:
                last = path
            yield entry

    def _metadata(self, current: ListName | None, named: list[ListName], refs: dict[str, Json], mapping: str) -> Shown:
        properties = {
            "timeline.position": str(0 if current is None else current.position),
            "timeline.latest-position": str(self._head),
        }
        properties |= self._comment
        if current is not None and current.position != self._head:
            lag = self._time_of(self._head) - current.milliseconds
            properties |= {"timeline.lag-positions": str(self._head - current.position), "timeline.lag-ms": str(lag)}
        snapshots = [
            snapshot_of(self._writer, self._columns, each, each.position, {"timeline.position": str(each.position)})
            for each in named
        ]
        metadata = metadata_of(self._writer, self._columns, current, snapshots, refs, properties, self._head, mapping)
        return self._writer.metadata(self._head, metadata)

    def _delete_expired(self, used: set[str], saved: set[int]) -> None:
        """Deletes the directories of days that have no snapshot which can be read, or is read."""
        unused = self._writer.expired_days(used)
        if not unused:
            return
        leased = {each.position or 0 for each in self._client.lake_list_leases(self._reference)} | saved
        lists = self._writer.lists
        unused -= {each.day for each in lists if each.position >= self._oldest or each.position in leased}
        self._writer.delete(unused)


def listed(client: ThriftClient, request: ListInstantsRequest) -> Iterator[Instant]:
    """All instants of a request with the latest first, read page by page."""
    request = request.replace(limit=PAGE)
    while True:
        found = client.lake_list_instants(request)
        if len(found) < PAGE:
            yield from found
            return
        # The last timestamp may go on in the next page, which begins with it.
        last = found[-1].timestamp
        yield from (each for each in found if each.timestamp != last)
        request = request.replace(upTo=last)


def _tag_of(savepoint: Instant) -> str:
    """The tag of a savepoint: no name is that of another ref, or of a savepoint without a name."""
    name = savepoint.name
    if name and name not in _OTHER_REFS and not name.startswith("savepoint-"):
        return name
    return f"savepoint-{name or savepoint.timestamp}"
