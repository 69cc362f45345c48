"""The files that describe a table which is shown: manifests, manifest lists, metadata.

They lie in the directory `.iceberg` below the table, in one directory for each day. They are written before a reader is
told of them and never change; the same content makes the same files, so several processes may write them. A manifest
is used again on the day on which it was made. So the files of a day don't refer to those of another, and a day's
directory is deleted once no snapshot in it can be read any more.
"""

import hashlib
import json
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import structlog
from cachetools import LRUCache, TTLCache

from lake.protocol.formats.iceberg_overlays import uri
from metastore.iceberg.errors import RestError, bad_request, unavailable
from metastore.iceberg.shown.footer_cache import Footers
from metastore.iceberg.shown.footers import Footer
from metastore.iceberg.shown.lake_columns import LakeColumns, names_of
from metastore.iceberg.shown.manifests import DATA, Entry, ManifestFile, chunks, header, manifest, manifest_list
from metastore.warehouse import Warehouse, WarehouseError

FOLDER = ".iceberg"

LEASE_SECONDS = 900
"""How long the files of a snapshot are kept after a reader was told of it."""

MAKING_SECONDS = 30.0
"""How long a request may make files; then it is answered by 503. The next one goes on with what is there."""

MAX_FOOTERS = 20_000
"""Files of a table whose footers are looked at for bounds of columns: the first ones."""

_MAKING_AT_ONCE, _PLACE_SECONDS = 3, 30.0
_UUIDS = uuid.UUID("5f0c1a58-2b6a-4c0e-9a35-0d5a4e0c7a11")
_RULES = 2  # by which lists are made: those that were made by others aren't read
_FACTS_BYTES = 32 << 20
_FOOTERS_AT_ONCE = 16
_FILES_AT_ONCE = 1_000
_DAYS_KEPT = 2  # longer than a request may make files, whatever the clocks of servers say
_OF_UNCOMMITTED = 1 << 62  # added to the position in a snapshot's id
_TYPES, _NAMES = "lake-metastore.types", "lake-metastore.names"  # in the header of a manifest list
_MAX_NAMES = 20_000
_FIRST_FURTHER, _FURTHER_IDS, _MAX_FURTHER = 800_001, 99_000, 1_000

READY, MERGED, COMPACTED, ALL = "r", "m", "c", "u"
"""Kinds of snapshots: of ready partitions; the same, with files that stand for log files; the same, some of it
compacted since; with uncommitted partitions, too. Of several lists of one position the first of these is taken."""

UNCOMMITTED = "uncommitted"
"""The branch that shows uncommitted partitions, too."""

log = structlog.get_logger(__name__)

Json = dict[str, Any]


@dataclass(frozen=True)
class Shown:
    """A table's metadata file: where it is, and its content."""

    location: str
    content: bytes


class ListName(NamedTuple):
    """The path of a manifest list, below FOLDER, says what it is of. `types`: a hash of columns' types and names."""

    day: str
    position: int
    milliseconds: int
    kind: str
    place: str
    types: str

    def __str__(self) -> str:
        parts = ("snap", str(self.position), str(self.milliseconds), self.kind, self.place, self.types)
        return f"{self.day}/{'-'.join(parts)}.avro"

    @classmethod
    def of(cls, text: str) -> "ListName | None":
        day, _, name = text.rpartition("/")
        parts = name.removesuffix(".avro").split("-")
        if len(parts) != 6 or parts[0] != "snap" or not (parts[1] + parts[2]).isdecimal():
            return None
        return cls(day, int(parts[1]), int(parts[2]), *parts[3:])

    @property
    def snapshot(self) -> int:
        return self.position + (_OF_UNCOMMITTED if self.kind == ALL else 0)


@dataclass
class Memory:
    """What a process keeps of tables that it has shown. Thread-safe."""

    footers: Footers
    _leases: TTLCache[tuple[int, str], bool] = field(default_factory=lambda: TTLCache(10_000, LEASE_SECONDS / 3))
    _shown: LRUCache[tuple[int, int, int], int] = field(default_factory=lambda: LRUCache(10_000))
    _manifests: LRUCache[bytes, ManifestFile] = field(default_factory=lambda: LRUCache(20_000))
    _facts: LRUCache[str, Any] = field(
        default_factory=lambda: LRUCache(_FACTS_BYTES, getsizeof=lambda each: 200 + len(repr(each)))
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _places: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(_MAKING_AT_ONCE))

    @contextmanager
    def place(self) -> Iterator[None]:
        """What is done within the block takes memory for all files of a table. Few may do so at once.

        Not for a thread that is within it already. Raises RestError (503).
        """
        if not self._places.acquire(timeout=_PLACE_SECONDS):
            raise unavailable("the server is describing other tables: try again")
        try:
            yield
        finally:
            self._places.release()

    def manifest(self, key: bytes) -> ManifestFile | None:
        """The manifest that was made of some files. `key`: says which files, of which table."""
        with self._lock:
            found: ManifestFile | None = self._manifests.get(key)
        return found

    def made(self, key: bytes, manifest: ManifestFile) -> None:
        with self._lock:
            self._manifests[key] = manifest

    def fact(self, key: str, find: Callable[[], Any]) -> Any:
        """What was found out about something that never changes. `find` finds it out, and may raise."""
        with self._lock:
            if key in self._facts:
                return self._facts[key]
        found = find()
        with self._lock, suppress(ValueError):  # too large to be kept
            self._facts[key] = found
        return found

    def is_leased(self, table: int, id: str) -> bool:
        """Whether a lease was taken or renewed a short time ago."""
        with self._lock:
            return (table, id) in self._leases

    def leased(self, table: int, id: str) -> None:
        with self._lock:
            self._leases[table, id] = True

    def position_for(self, table: int, head: int, merged: int) -> int:
        """The position that is shown while a table is at `head`, as far as that is known.

        `merged`: a hash of what there is that stands for log files.
        """
        with self._lock:
            return self._shown.get((table, head, merged), head)

    def showed(self, table: int, head: int, merged: int, position: int) -> None:
        with self._lock:
            self._shown[table, head, merged] = position


class Writer:
    """Writes the files that describe one table, for one request. Methods raise RestError.

    `check`: raises for a file whose columns readers would mistake.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        memory: Memory,
        columns: LakeColumns,
        table: int,
        base: str,
        check: Callable[[Entry, Footer], None],
        what: str = "",
    ) -> None:
        """`table`: its id. `base`: its location. `what`: further that the files depend on."""
        self._warehouse = warehouse
        self._memory = memory
        self._columns = columns
        self._check = check
        self._until = time.monotonic() + MAKING_SECONDS
        self.base = uri(base)
        self.id = uuid.uuid5(_UUIDS, str(table))
        self.place = hashlib.sha256(f"{_RULES} {self.id} {self.base}{what}".encode()).hexdigest()[:16]
        self.day = time.strftime("%Y%m%d", time.gmtime())
        self._types = json.dumps(sorted(columns.types.items()), separators=(",", ":"))
        about = json.dumps([self._types, columns.mapping, sorted(columns.ambiguous)])
        self._types_hash = hashlib.sha256(about.encode()).hexdigest()[:8]
        try:
            self._sizes = warehouse.sizes(self.path(""))
        except WarehouseError as error:
            raise unavailable(f"{FOLDER} can't be listed: {error}") from None
        self._there = {*self._sizes}
        found = [each for each in map(ListName.of, self._there) if each is not None and each.place == self.place]
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:  # after a change of the columns lists are read, once
            self.lists = [each for each, fits in zip(found, pool.map(self._fits, found), strict=True) if fits]
        """The manifest lists that are there."""

    def check_time(self) -> None:
        """Raises RestError (503) once the request has taken as long as it may."""
        if time.monotonic() > self._until:
            raise unavailable("the table has many files, which are being looked at: try again")

    def path(self, name: str) -> str:
        """The whole path of a file by its name below FOLDER."""
        return f"{self.base}/{FOLDER}/{name}" if name else f"{self.base}/{FOLDER}"

    def name(self, position: int, milliseconds: int, kind: str) -> ListName:
        """The name of a manifest list that is to be made."""
        return ListName(self.day, position, milliseconds, kind, self.place, self._types_hash)

    def sizes(self, directory: str) -> dict[str, int]:
        """The files in a directory below FOLDER that were there in the beginning, and their sizes."""
        return {
            name.removeprefix(f"{directory}/"): size
            for name, size in self._sizes.items()
            if name.startswith(f"{directory}/")
        }

    def make(self, name: ListName, entries: Iterable[Entry], sequence: int) -> None:
        """Writes the manifests and the manifest list of a snapshot. Raises what `entries` does, too."""
        self.make_list(name, self.make_manifests(entries), sequence, {})

    def make_manifests(self, entries: Iterable[Entry]) -> list[ManifestFile]:
        """Writes the manifests of some files. Raises what `entries` does, too."""
        made: list[ManifestFile] = []
        deletes: list[Entry] = []
        looked_at = 0
        for piece in chunks(_of_rows(entries, deletes)):
            made.append(self._manifest(piece, max(0, MAX_FOOTERS - looked_at)))
            looked_at += len(piece)
        return made + [self._manifest(piece, 0) for piece in chunks(deletes)]

    def make_list(
        self, name: ListName, made: Sequence[ManifestFile], sequence: int, further_about: Mapping[str, str]
    ) -> None:
        """Writes the manifest list of a snapshot. `further_about`: what its header says besides."""
        path = self.path(self.day)
        names = sorted({each for one in made for each in one.names})
        if len(names) > _MAX_NAMES:
            raise bad_request(f"the table's files without field ids have more than {_MAX_NAMES:,} columns by name")
        about = {
            "snapshot-id": str(name.snapshot),
            "sequence-number": str(sequence),
            _TYPES: self._types,
            _NAMES: json.dumps(names),
            **further_about,
        }
        self._write(str(name), manifest_list(self._columns, made, lambda file: f"{path}/{file}", about))
        self._memory.fact(self._key_of_names(name), lambda: [list(each) for each in names])

    def mapping(self, lists: Iterable[ListName]) -> str:
        """The table's name mapping, with the columns that files of some snapshots have and the table hasn't.

        PyIceberg refuses files with a column that the mapping doesn't have.
        """
        found_names = {each[0] for one in lists for each in self._names(one) if len(each) == 1}
        names = sorted(found_names - self._columns.names)[:_MAX_FURTHER]
        if not names:
            return self._columns.mapping
        found = json.loads(self._columns.mapping)
        taken: set[int] = set()
        for name in names:
            number = zlib.crc32(name.encode()) % _FURTHER_IDS
            while number in taken:
                number = (number + 1) % _FURTHER_IDS
            taken.add(number)
            found.append({"field-id": _FIRST_FURTHER + number, "names": [name]})
        return json.dumps(found, separators=(",", ":"))

    def _names(self, name: ListName) -> list[list[str]]:
        """The names of columns of the files without field ids of a list, see `names_of`."""
        found: list[list[str]] = self._memory.fact(
            self._key_of_names(name), lambda: json.loads(header(self.read(str(name)), _NAMES) or "[]")
        )
        return found

    def about(self, name: ListName, key: str) -> str | None:
        """What the header of a manifest list says of a key."""
        found: str | None = self._memory.fact(f"{self.base} {name} {key}", lambda: header(self.read(str(name)), key))
        return found

    def _key_of_names(self, name: ListName) -> str:
        return f"{self.base} {name} names"

    def metadata(self, version: int, metadata: Json) -> Shown:
        """Writes a metadata file. `version`: the number that its name begins with."""
        content = json.dumps(metadata, separators=(",", ":")).encode()
        name = f"{self.day}/{version:05d}-{uuid.uuid5(self.id, content.decode())}.metadata.json"
        self._write(name, content)
        return Shown(self.path(name), content)

    def expired_days(self, used: Collection[str]) -> set[str]:
        """The days before today's whose directories hold nothing that is `used`."""
        days = {path.partition("/")[0] for path in self._there if "/" in path}
        oldest = time.strftime("%Y%m%d", time.gmtime(time.time() - _DAYS_KEPT * 86_400))
        return {day for day in days if day not in used and day.isdecimal() and day < oldest}

    def delete(self, days: Iterable[str]) -> None:
        """Deletes the directories of some days."""
        for failed in self._warehouse.delete_directories([self.path(day) for day in sorted(days)]):
            log.warning("files for Iceberg's readers stay", place=self.base, reason=str(failed))

    # -- manifests --------------------------------------------------------------------------------------------

    def _manifest(self, piece: list[Entry], footers: int) -> ManifestFile:
        """Writes the manifest of some files. `footers`: how many of the files are looked at for bounds."""
        key = self._key(piece, footers)
        known = self._memory.manifest(key)
        if known is not None and f"{self.day}/{known.name}" in self._there:
            return known
        looked, names = self._looked_at(piece, footers)
        one, content = manifest(self._columns, looked)
        one = replace(one, names=names)
        # What is there already doesn't count: each request brings the description further.
        if self._write(f"{self.day}/{one.name}", content) and time.monotonic() > self._until:
            raise unavailable("the table has many files, whose description is being made: try again")
        self._memory.made(key, one)
        return one

    def _key(self, piece: Sequence[Entry], footers: int) -> bytes:
        about = [self.place, self._columns.mapping, self._columns.schema, self._columns.spec, min(footers, len(piece))]
        found = hashlib.sha256(json.dumps(about).encode())
        for each in piece:
            some = (each.partition, each.path, each.size, each.rows, each.position, each.version)
            found.update("\0".join(map(str, (*some, each.format, each.content, ""))).encode())
        return found.digest()

    def _looked_at(self, piece: Sequence[Entry], footers: int) -> tuple[list[Entry], frozenset[tuple[str, ...]]]:
        """Files with their numbers of rows and what is known of their columns; the names in those without ids."""
        found: list[Entry] = []
        names: set[tuple[str, ...]] = set()
        is_kept = self._memory.footers.has
        for start in range(0, len(piece), _FILES_AT_ONCE):
            batch = piece[start : start + _FILES_AT_ONCE]
            wanted = [self._needs(each) or start + place < footers for place, each in enumerate(batch)]
            fetches = any(
                wants and not is_kept(each.path, each.size, each.version)
                for wants, each in zip(wanted, batch, strict=True)
            )
            with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
                footers_of = list(pool.map(self._footer, batch, wanted))
            for each, footer in zip(batch, footers_of, strict=True):
                if footer is not None and not footer.has_ids:
                    names.update(names_of(footer))
                known = each.metrics if footer is None else self._columns.metrics(footer)
                rows = each.rows if footer is None else footer.rows
                found.append(replace(each, rows=rows, metrics=known))
            if fetches and time.monotonic() > self._until:
                raise unavailable("the table has many files, which are being looked at: try again")
        return found, frozenset(names)

    def _needs(self, entry: Entry) -> bool:
        """Whether a file can't be shown without a look at its footer."""
        return entry.rows is None or (bool(self._columns.ambiguous) and entry.content == DATA)

    def _footer(self, entry: Entry, is_wanted: bool) -> Footer | None:
        """What a file's footer says. Raises RestError for columns that readers would mistake.

        None unless it is wanted, or if it can't be read and isn't needed: a reader that wants the file will say so.
        """
        if not is_wanted:
            return None
        try:
            footer = self._memory.footers.of(entry.path, entry.size, entry.version, entry.format)
        except RestError as error:
            if self._needs(entry):
                raise
            log.warning("a file has no bounds for Iceberg's readers", file=entry.path, reason=str(error))
            return None
        self._check(entry, footer)
        return footer

    # -- files ------------------------------------------------------------------------------------------------

    def _write(self, name: str, content: bytes) -> bool:
        """Writes a file, unless it is there. Returns whether it wasn't."""
        if name in self._there:
            return False
        try:
            self._warehouse.write_file(self.path(name), content)
        except WarehouseError as error:
            try:
                if not self._warehouse.exists(self.path(name)):  # another process wrote the same
                    raise unavailable(f"the table can't be described: {error}") from None
            except WarehouseError:
                raise unavailable(f"the table can't be described: {error}") from None
        self._there.add(name)
        return True

    def read(self, name: str) -> bytes:
        """The content of a file that was written."""
        try:
            content = self._warehouse.read_file(self.path(name), _MOST_READ)
        except WarehouseError as error:
            raise unavailable(f"what describes the table can't be read: {error}") from None
        if content is None:
            raise unavailable("what describes the table was deleted meanwhile: try again")
        return content

    def _fits(self, name: ListName) -> bool:
        """Whether the manifests of a list say of the columns as they are now what is true.

        Bounds are read as the types that columns have now, and files without field ids by the names.
        """
        if name.types == self._types_hash:
            return True
        written: list[list[Any]] = self._memory.fact(
            f"{self.base} {name}", lambda: json.loads(header(self.read(str(name)), _TYPES) or "[]")
        )
        if self._columns.mistaken(self._names(name)):  # a list that is made says of which file
            return False
        now = self._columns.types
        return all(_is_read_as(type, now.get(id, type)) for id, type in written)


def _of_rows(entries: Iterable[Entry], deletes: list[Entry]) -> Iterator[Entry]:
    """The files that have rows; the others are put into a list."""
    for each in entries:
        if each.content == DATA:
            yield each
        else:
            deletes.append(each)


_MOST_READ = 64 << 20


def _is_read_as(type: str, now: str) -> bool:
    """Whether a bound of one type is read as the same value of another one, as Iceberg wants it of readers."""
    if type == now or (type, now) == ("int", "long"):
        return True
    scales = [each.partition(",")[2] for each in (type, now) if each.startswith("decimal(")]
    return len(scales) == 2 and scales[0] == scales[1]


def ref(name: ListName, kind: str) -> Json:
    """A reference of the metadata to a snapshot. `kind`: branch or tag."""
    return {"snapshot-id": name.snapshot, "type": kind}


def metadata_of(
    writer: Writer,
    columns: LakeColumns,
    current: ListName | None,
    snapshots: Sequence[Json],
    refs: Mapping[str, Json],
    properties: Mapping[str, str],
    sequence: int,
    mapping: str,
) -> Json:
    """The metadata of a table that is shown. `snapshots`: in their order. `sequence`: the last sequence number."""
    of_main = [each for each in snapshots if each["snapshot-id"] < _OF_UNCOMMITTED]
    log = [{"snapshot-id": each["snapshot-id"], "timestamp-ms": each["timestamp-ms"]} for each in of_main]
    return {
        "format-version": 2,
        "table-uuid": str(writer.id),
        "location": writer.base,
        "last-sequence-number": sequence,
        "last-updated-ms": 0 if current is None else current.milliseconds,
        "last-column-id": columns.last_column_id,
        "current-schema-id": columns.schema["schema-id"],
        "schemas": [columns.schema],
        "default-spec-id": 0,
        "partition-specs": [columns.spec],
        "last-partition-id": max((each["field-id"] for each in columns.spec["fields"]), default=999),
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {
            "schema.name-mapping.default": mapping,
            "gc.enabled": "false",  # nothing of the table's is Iceberg's to delete
            **properties,
        },
        "current-snapshot-id": -1 if current is None else current.snapshot,
        "refs": dict(refs),
        "snapshots": [*snapshots],
        "snapshot-log": log,
        "metadata-log": [],
        "statistics": [],
        "partition-statistics": [],
    }


def snapshot_of(
    writer: Writer, columns: LakeColumns, name: ListName, sequence: int, summary: Mapping[str, str]
) -> Json:
    """A snapshot of the metadata."""
    return {
        "snapshot-id": name.snapshot,
        "sequence-number": sequence,
        "timestamp-ms": name.milliseconds,
        "manifest-list": writer.path(str(name)),
        "schema-id": columns.schema["schema-id"],  # earlier rows have today's columns, as for our own readers
        "summary": {"operation": "overwrite", **summary},
    }
