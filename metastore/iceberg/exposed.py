"""Lake tables and keyed tables, shown to Iceberg's readers.

A snapshot of Iceberg's is a position of the table's timeline, and has its number for its id. The files that describe
it lie in the directory `.iceberg` below the table, in one directory for each day. They are written before a reader is
told of them and never change; the same position makes the same files, so several processes may write them. A manifest
is used again on the day on which it was made. So the files of a day don't refer to those of another, and a day's
directory is deleted once no snapshot in it can be read any more.
"""

import hashlib
import json
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import structlog
from cachetools import LRUCache, TTLCache

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.formats.spark_schema import PROVIDER
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException, Table
from lake.protocol.lake import (
    DataFile,
    Instant,
    LeaseRequest,
    ListInstantsRequest,
    SnapshotGone,
    SnapshotRequest,
    TableReference,
    TableReplaced,
)
from metastore.iceberg.bounds import NONE
from metastore.iceberg.errors import WORKER_ERRORS, RestError, bad_request, is_denied, no_table, unavailable
from metastore.iceberg.footers import Footer, Footers
from metastore.iceberg.lake_columns import LakeColumns, lake_columns
from metastore.iceberg.lake_files import Exact, NeedsMerging, exact_positions, read, shown
from metastore.iceberg.manifests import Entry, ManifestFile, chunks, manifest, manifest_list
from metastore.warehouse import Warehouse, WarehouseError

EXPOSE = "iceberg.expose"
"""The property of a table or a database; a table's own counts for more."""

FOLDER = ".iceberg"

UNCOMMITTED = "uncommitted"
"""The branch that shows uncommitted partitions, too."""

LEASE_SECONDS = 900
"""How long the files of a snapshot are kept after a reader was told of it."""

MAKING_SECONDS = 30.0
"""How long a request may make files; then it is answered by 503. The next one goes on with what is there."""

MAX_FOOTERS = 20_000
"""Files of a table whose footers are looked at for bounds of columns: the first ones."""

MAX_SNAPSHOTS = 1_000
"""Earlier snapshots that a table shows: the latest."""

MAX_SAVEPOINTS = 100
"""Tags of a table: the latest savepoints."""

_UUIDS = uuid.UUID("5f0c1a58-2b6a-4c0e-9a35-0d5a4e0c7a11")
_OF_UNCOMMITTED = 1 << 62  # added to the position in a snapshot's id
_FOOTERS_AT_ONCE = 16
_FILES_AT_ONCE = 1_000
_TRIES = 3
_DAYS_KEPT = 2  # longer than a request may make files, whatever the clocks of servers say
_PARQUET = "parquet"
_READY, _COMPACTED, _ALL = "r", "c", "u"

log = structlog.get_logger(__name__)

Json = dict[str, Any]


@dataclass(frozen=True)
class Shown:
    """A table's metadata file: where it is, and its content."""

    location: str
    content: bytes


class _Name(NamedTuple):
    """The path of a manifest list, below FOLDER, says what it is of."""

    day: str
    position: int
    milliseconds: int
    kind: str
    place: str

    def __str__(self) -> str:
        return f"{self.day}/snap-{self.position}-{self.milliseconds}-{self.kind}-{self.place}.avro"

    @classmethod
    def of(cls, text: str) -> "_Name | None":
        day, _, name = text.rpartition("/")
        parts = name.removesuffix(".avro").split("-")
        if len(parts) != 5 or parts[0] != "snap" or not (parts[1] + parts[2]).isdecimal():
            return None
        return cls(day, int(parts[1]), int(parts[2]), parts[3], parts[4])

    @property
    def snapshot(self) -> int:
        return self.position + (_OF_UNCOMMITTED if self.kind == _ALL else 0)


@dataclass
class Memory:
    """What a process keeps of tables that it has shown. Thread-safe."""

    footers: Footers
    _leases: TTLCache[tuple[int, str], bool] = field(default_factory=lambda: TTLCache(10_000, LEASE_SECONDS / 3))
    _shown: LRUCache[tuple[int, int], int] = field(default_factory=lambda: LRUCache(10_000))
    _manifests: LRUCache[bytes, ManifestFile] = field(default_factory=lambda: LRUCache(20_000))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def manifest(self, key: bytes) -> ManifestFile | None:
        """The manifest that was made of some files. `key`: says which files, of which table."""
        with self._lock:
            found: ManifestFile | None = self._manifests.get(key)
        return found

    def made(self, key: bytes, manifest: ManifestFile) -> None:
        with self._lock:
            self._manifests[key] = manifest

    def is_leased(self, table: int, id: str) -> bool:
        """Whether a lease was taken or renewed a short time ago."""
        with self._lock:
            return (table, id) in self._leases

    def leased(self, table: int, id: str) -> None:
        with self._lock:
            self._leases[table, id] = True

    def position_for(self, table: int, head: int) -> int:
        """The position that is shown while a table is at `head`, as far as that is known."""
        with self._lock:
            return self._shown.get((table, head), head)

    def showed(self, table: int, head: int, position: int) -> None:
        with self._lock:
            self._shown[table, head] = position


def is_exposed(table: Table, of_database: Mapping[str, str]) -> bool:
    """Whether a table is to be shown as Iceberg, by its own property or by its database's."""
    wanted = (table.parameters or {}).get(EXPOSE, of_database.get(EXPOSE, ""))
    return wanted.lower() == "true" and _is_parquet(table)


def _is_parquet(table: Table) -> bool:
    parameters = table.parameters or {}
    kind = parameters.get(PROVIDER) or (table.sd.inputFormat if table.sd else None) or ""
    return _PARQUET in kind.lower() and "hudi" not in f"{kind}{parameters.get('table_type', '')}".lower()


def refused(name: str) -> RestError:
    """The answer to a change of a table that is only shown."""
    return RestError(
        403,
        "ForbiddenException",
        f"{name} is a lake table, which is shown as Iceberg for reading. Change it with Spark's lake catalog, with"
        " LakeClient, or with Hive's ALTER and DROP statements",
    )


class LakeTables:
    """Shows lake tables, for one caller. Methods raise RestError, and what a worker raises."""

    def __init__(self, client: ThriftClient, warehouse: Warehouse, memory: Memory, reader: str) -> None:
        """`reader`: a name of the caller's for leases."""
        self._client = client
        self._warehouse = warehouse
        self._memory = memory
        self._reader = reader

    def has_timeline(self, table: Table) -> bool:
        """Whether a table has a primary key, or files in a timeline. Other tables can't be shown.

        False, too, for a table that was dropped meanwhile, and for one of which the caller may not know it.
        """
        if (table.parameters or {}).get("primary-key", "").strip():
            return True
        try:
            return bool(self._client.lake_timeline_position(_reference(table)).position)
        except (InvalidOperationException, NoSuchObjectException, TableReplaced):
            return False
        except WORKER_ERRORS as error:
            if is_denied(error):
                return False
            raise

    def show(self, table: Table) -> Shown:
        """The metadata of a table as it is now. All files that it refers to have been written."""
        if not self.has_timeline(table):
            raise no_table(
                f"{table.dbName}.{table.tableName}, as Iceberg. It has no timeline, and only lake tables can be shown:"
                f" remove the property {EXPOSE}"
            )
        for tried in range(1, _TRIES + 1):
            try:
                return _Showing(self, table).done()
            except SnapshotGone:  # a clean came in between
                if tried == _TRIES:
                    raise unavailable("the table is being cleaned: try again") from None
        raise AssertionError("the last try returns or raises")

    def lease(self, table: TableReference, position: int, *, onwards: bool) -> None:
        """Keeps what was shown from cleans; `onwards`, the files of all later positions, too. Raises SnapshotGone."""
        id = f"iceberg-{self._reader}-{position}{'-on' if onwards else ''}"
        if self._memory.is_leased(table.id or 0, id):
            return
        request = LeaseRequest(table, id, position, LEASE_SECONDS, "a reader of Iceberg's", onwards or None)
        try:
            self._client.lake_lease_snapshot(request)
        except InvalidOperationException as error:
            raise unavailable(f"the table's files can't be kept for a reader: {error.message}") from None
        self._memory.leased(table.id or 0, id)


def _reference(table: Table) -> TableReference:
    return TableReference(table.catName, table.dbName or "", table.tableName or "", table.id)


class _Showing:
    """One table as it is now."""

    def __init__(self, tables: LakeTables, table: Table) -> None:
        self._tables = tables
        self._client: ThriftClient = tables._client
        self._warehouse: Warehouse = tables._warehouse
        self._memory: Memory = tables._memory
        self._table = table
        self._reference = _reference(table)
        self._columns: LakeColumns = lake_columns(table)
        self._until = time.monotonic() + MAKING_SECONDS
        self._instants: list[Instant] | None = None

    def done(self) -> Shown:
        head = self._client.lake_get_snapshot(
            SnapshotRequest(self._reference, partitions=[], limit=1, includeUncommitted=False)
        )
        self._reference = self._reference.replace(id=head.tableId)
        self._head = head.position or 0
        self._base = _uri(head.location or "")
        self._id = uuid.uuid5(_UUIDS, str(head.tableId))
        self._place = hashlib.sha256(f"{self._id} {self._base}".encode()).hexdigest()[:16]
        self._oldest = self._client.lake_timeline_position(self._reference).oldestReadable or 0
        try:
            self._there = {*self._warehouse.sizes(self._path(""))}
        except WarehouseError as error:
            raise unavailable(f"{FOLDER} can't be listed: {error}") from None
        self._lists = [each for each in map(_Name.of, self._there) if each is not None and each.place == self._place]
        self._day = time.strftime("%Y%m%d", time.gmtime())
        if not self._head:
            return self._metadata(None, [], {})
        current = self._current()
        self._tables.lease(self._reference, current.position, onwards=current.kind == _COMPACTED)
        refs: dict[str, Json] = {"main": _ref(current, "branch")}
        named = [current]
        if (every := self._uncommitted(current.position)) is not None:
            refs[UNCOMMITTED] = _ref(every, "branch")
            named.append(every)
        saved = self._savepoints()
        for timestamp, position in saved.items():
            if position < current.position and (found := self._saved(position)) is not None:
                refs[f"savepoint-{timestamp}"] = _ref(found, "tag")
                named.append(found)
            elif position == current.position:
                refs[f"savepoint-{timestamp}"] = _ref(current, "tag")
        named += self._kept(current.position, {*saved.values()})
        unique = {each.snapshot: each for each in reversed(named)}
        shown = self._metadata(current, sorted(unique.values(), key=lambda each: each.position), refs)
        self._delete_expired({each.day for each in named}, {*saved.values()})
        return shown

    # -- the positions that are shown -------------------------------------------------------------------------

    def _current(self) -> _Name:
        """The latest position that can be shown."""
        table = self._reference.id or 0
        known = self._memory.position_for(table, self._head)
        if (found := self._find(known, _READY, _COMPACTED)) is not None:
            return found
        is_merged = (self._table.parameters or {}).get("table-type", "").strip().lower() == "merge-on-read"
        for exact in self._exact_positions() if is_merged else [Exact(self._head, {})]:
            found = self._find(exact.position, _READY, _COMPACTED)
            try:
                found = found or self._make(exact, _COMPACTED if exact.compacted else _READY)
            except NeedsMerging:  # log files of a table of another type, or in a partition that was reopened since
                continue
            self._memory.showed(table, self._head, found.position)
            return found
        raise bad_request(
            "at no position that can be read are the table's rows in base files alone, and Iceberg's readers can't"
            " merge log files: compact the table (plan_compaction, or the table services), then read it again"
        )

    def _exact_positions(self) -> Iterator[Exact]:
        compactions = {each.position or 0 for each in self._completed() if each.begunAs == "compaction"}
        found = exact_positions(self._client, self._reference, self._head, self._oldest, compactions)
        return (each for each in found if each.position)

    def _uncommitted(self, position: int) -> _Name | None:
        """The same with uncommitted partitions; None if the caller may not see these, or if they need merging."""
        if not self._columns.keys:
            return None
        request = SnapshotRequest(self._reference, asOfPosition=position, partitions=[], limit=1)
        try:
            self._client.lake_get_snapshot(request.replace(includeUncommitted=True))
            return self._find(position, _ALL) or self._make(Exact(position, {}), _ALL)
        except NeedsMerging:
            return None
        except WORKER_ERRORS as error:
            if is_denied(error):
                return None
            raise

    def _saved(self, position: int) -> _Name | None:
        """The position of a savepoint; None if it has log files."""
        if (found := self._find(position, _READY)) is not None:
            return found
        try:
            return self._make(Exact(position, {}), _READY)
        except (NeedsMerging, SnapshotGone):
            return None

    def _kept(self, before: int, saved: Iterable[int]) -> list[_Name]:
        """The earlier positions that were shown and can still be read."""
        found = [
            each
            for each in self._lists
            if each.position < before
            and each.kind in (_READY, _COMPACTED)
            and (each.position >= self._oldest or (each.kind == _READY and each.position in saved))
        ]
        return sorted(found, key=lambda each: (each.position, each.day))[-MAX_SNAPSHOTS:]

    def _delete_expired(self, used: set[str], saved: set[int]) -> None:
        """Deletes the directories of days that have no snapshot which can be read, or is read."""
        days = {path.partition("/")[0] for path in self._there if "/" in path}
        unused = {day for day in days - used if day.isdecimal() and day < _days_ago(_DAYS_KEPT)}
        if not unused:
            return
        leased = {each.position or 0 for each in self._client.lake_list_leases(self._reference)} | saved
        unused -= {each.day for each in self._lists if each.position >= self._oldest or each.position in leased}
        for failed in self._warehouse.delete_directories([self._path(day) for day in sorted(unused)]):
            log.warning("files for Iceberg's readers stay", table=str(self._reference.table), reason=str(failed))

    def _find(self, position: int, *kinds: str) -> _Name | None:
        """The manifest list of a position, if there is one."""
        some = [each for each in self._lists if each.position == position and each.kind in kinds]
        return max(some, key=lambda each: (each.kind, each.day), default=None)

    def _savepoints(self) -> dict[str, int]:
        """The positions that savepoints protect, by their timestamps."""
        request = ListInstantsRequest(
            self._reference, actions=["savepoint"], states=["completed"], limit=MAX_SAVEPOINTS, latestFirst=True
        )
        found = self._client.lake_list_instants(request)
        return {each.timestamp or "": each.readPosition or 0 for each in found if each.undoneBy is None}

    def _completed(self) -> list[Instant]:
        if self._instants is None:
            request = ListInstantsRequest(self._reference, states=["completed"], latestFirst=True)
            self._instants = list(self._client.lake_list_instants(request))
        return self._instants

    def _time_of(self, position: int) -> int:
        """When a position was reached, in milliseconds since 1970."""
        text = next((each.completionTime for each in self._completed() if each.position == position), None)
        if text is None:
            request = ListInstantsRequest(self._reference, states=["completed"], includeArchived=True)
            found = self._client.lake_list_instants(request)
            text = next((each.completionTime for each in found if each.position == position), None)
        if text is None:
            raise bad_request(f"the instant of position {position} is not on the timeline any more")
        at = datetime.strptime(f"{text[:17]}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
        return round(at.timestamp() * 1000)

    # -- making files -----------------------------------------------------------------------------------------

    def _make(self, exact: Exact, kind: str) -> _Name:
        """Writes the manifests and the manifest list of a position. Raises NeedsMerging."""
        name = _Name(self._day, exact.position, self._time_of(exact.position), kind, self._place)
        request = SnapshotRequest(self._reference, asOfPosition=exact.position, includeUncommitted=kind == _ALL)
        made: list[ManifestFile] = []
        looked_at = 0
        for piece in chunks(self._entries(shown(read(self._client, request), exact), exact.position)):
            made.append(self._manifest(piece, max(0, MAX_FOOTERS - looked_at)))
            looked_at += len(piece)
        path = self._path(self._day)
        content = manifest_list(self._columns, made, lambda file: f"{path}/{file}", name.snapshot, exact.position)
        self._write(str(name), content)
        return name

    def _entries(self, files: Iterator[DataFile], position: int) -> Iterator[Entry]:
        for file in files:
            added = min(file.addedAt or 0, position)
            yield Entry(file.partition or "", f"{self._base}/{file.path}", file.size or 0, file.rows, added)

    def _manifest(self, piece: list[Entry], footers: int) -> ManifestFile:
        """Writes the manifest of some files. `footers`: how many of the files are looked at for bounds."""
        key = self._key(piece, footers)
        known = self._memory.manifest(key)
        if known is not None and f"{self._day}/{known.name}" in self._there:
            return known
        looked = self._looked_at(piece, footers)
        one, content = manifest(self._columns, looked)
        # What is there already doesn't count: each request brings the description further.
        if self._write(f"{self._day}/{one.name}", content) and time.monotonic() > self._until:
            raise unavailable("the table has many files, whose description is being made: try again")
        self._memory.made(key, one)
        return one

    def _key(self, piece: Sequence[Entry], footers: int) -> bytes:
        found = hashlib.sha256(f"{self._place} {self._columns.mapping} {min(footers, len(piece))}".encode())
        found.update(json.dumps([self._columns.schema, self._columns.spec]).encode())
        for each in piece:
            found.update(f"\0{each.partition}\0{each.path}\0{each.size}\0{each.rows}\0{each.position}".encode())
        return found.digest()

    def _looked_at(self, piece: Sequence[Entry], footers: int) -> list[Entry]:
        """Files with their numbers of rows and what is known of their columns."""
        found: list[Entry] = []
        for start in range(0, len(piece), _FILES_AT_ONCE):
            batch = piece[start : start + _FILES_AT_ONCE]
            is_kept = self._memory.footers.has
            wanted = [self._needs(each) or start + place < footers for place, each in enumerate(batch)]
            fetches = any(w and not is_kept(each.path, each.size) for w, each in zip(wanted, batch, strict=True))
            with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
                footers_of = list(pool.map(self._footer, batch, wanted))
            for each, footer in zip(batch, footers_of, strict=True):
                known = NONE if footer is None else self._columns.metrics(footer)
                rows = each.rows if footer is None else footer.rows
                found.append(replace(each, rows=rows, metrics=known))
            if fetches and time.monotonic() > self._until:
                raise unavailable("the table has many files, which are being looked at: try again")
        return found

    def _needs(self, entry: Entry) -> bool:
        """Whether a file can't be shown without a look at its footer."""
        return entry.rows is None or bool(self._columns.ambiguous)

    def _footer(self, entry: Entry, is_wanted: bool) -> Footer | None:
        """What a file's footer says. Raises RestError for columns that readers would mistake.

        None unless it is wanted, or if it can't be read and isn't needed: a reader that wants the file will say so.
        """
        if not is_wanted:
            return None
        try:
            footer = self._memory.footers.of(entry.path, entry.size)
        except RestError as error:
            if self._needs(entry):
                raise
            log.warning("a file has no bounds for Iceberg's readers", file=entry.path, reason=str(error))
            return None
        if not footer.has_ids:
            self._columns.check_names(entry.path, footer.columns)
        return footer

    def _write(self, name: str, content: bytes) -> bool:
        """Writes a file, unless it is there. Returns whether it wasn't."""
        if name in self._there:
            return False
        try:
            self._warehouse.write_file(self._path(name), content)
        except WarehouseError as error:
            try:
                if not self._warehouse.exists(self._path(name)):  # another process wrote the same
                    raise unavailable(f"the table can't be described: {error}") from None
            except WarehouseError:
                raise unavailable(f"the table can't be described: {error}") from None
        self._there.add(name)
        return True

    def _path(self, name: str) -> str:
        return f"{self._base}/{FOLDER}/{name}" if name else f"{self._base}/{FOLDER}"

    # -- the metadata -----------------------------------------------------------------------------------------

    def _metadata(self, current: _Name | None, named: Sequence[_Name], refs: Mapping[str, Json]) -> Shown:
        columns = self._columns
        properties = {
            "schema.name-mapping.default": columns.mapping,
            "gc.enabled": "false",  # nothing of the table's is Iceberg's to delete
            "timeline.position": str(0 if current is None else current.position),
            "timeline.latest-position": str(self._head),
        }
        if comment := (self._table.parameters or {}).get("comment"):
            properties["comment"] = comment
        if current is not None and current.position != self._head:
            lag = self._time_of(self._head) - current.milliseconds
            properties |= {"timeline.lag-positions": str(self._head - current.position), "timeline.lag-ms": str(lag)}
        log = [{"snapshot-id": each.snapshot, "timestamp-ms": each.milliseconds} for each in named if each.kind != _ALL]
        metadata = {
            "format-version": 2,
            "table-uuid": str(self._id),
            "location": self._base,
            "last-sequence-number": self._head,
            "last-updated-ms": 0 if current is None else current.milliseconds,
            "last-column-id": columns.last_column_id,
            "current-schema-id": columns.schema["schema-id"],
            "schemas": [columns.schema],
            "default-spec-id": 0,
            "partition-specs": [columns.spec],
            "last-partition-id": max((each["field-id"] for each in columns.spec["fields"]), default=999),
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": properties,
            "current-snapshot-id": -1 if current is None else current.snapshot,
            "refs": dict(refs),
            "snapshots": [self._snapshot(each) for each in named],
            "snapshot-log": log,
            "metadata-log": [],
            "statistics": [],
            "partition-statistics": [],
        }
        content = json.dumps(metadata, separators=(",", ":")).encode()
        name = f"{self._day}/{self._head:05d}-{uuid.uuid5(self._id, content.decode())}.metadata.json"
        self._write(name, content)
        return Shown(self._path(name), content)

    def _snapshot(self, name: _Name) -> Json:
        return {
            "snapshot-id": name.snapshot,
            "sequence-number": name.position,
            "timestamp-ms": name.milliseconds,
            "manifest-list": self._path(str(name)),
            "schema-id": self._columns.schema["schema-id"],  # earlier rows have today's columns, as for our own readers
            "summary": {"operation": "overwrite", "timeline.position": str(name.position)},
        }


def _days_ago(days: int) -> str:
    return time.strftime("%Y%m%d", time.gmtime(time.time() - days * 86_400))


def _ref(name: _Name, kind: str) -> Json:
    return {"snapshot-id": name.snapshot, "type": kind}


def _uri(location: str) -> str:
    """A location as Iceberg's clients read it."""
    return (
        location.replace("file:/", "file:///", 1)
        if location.startswith("file:/") and location[6:7] != "/"
        else location
    )
