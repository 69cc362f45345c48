"""Hive tables, shown to Iceberg's readers: a snapshot is the files that were there when somebody asked.

Nothing says which files such a table has but its directories. So they are listed for each ask, by the rules that
Hive's readers go by. What these rules leave open is refused.
"""

import hashlib
import io
import json
import re
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import fastavro

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.formats.commit_mode import UNCOMMITTED_NAME
from lake.protocol.formats.spark_schema import PROVIDER
from lake.protocol.hive import (
    GetPartitionsFilterSpec,
    GetPartitionsRequest,
    GetProjectionsSpec,
    PartitionFilterMode,
    Table,
)
from lake.protocol.lake import ListPartitionsRequest
from metastore.iceberg.errors import bad_request, unavailable
from metastore.iceberg.shown.footers import Footer
from metastore.iceberg.shown.lake_columns import hive_columns
from metastore.iceberg.shown.lake_files import MAX_FILES
from metastore.iceberg.shown.manifests import FILES, Entry, files_key
from metastore.iceberg.shown.shown_table import ShownTable
from metastore.iceberg.shown.writing import (
    ALL,
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
from metastore.warehouse import Warehouse, WarehouseError

MAX_PARTITIONS = 100_000
"""Partitions of a table that is shown."""

MAX_EARLIER = 20
"""Earlier snapshots that a table shows: the latest."""

_PAGE = 10_000
_NAMES_AT_ONCE = 1_000
_WITHOUT_NAMES = re.compile(r"_col\d+")
_IDS = 1 << 62
_BY_PLACES = ("parquet.column.index.access", "orc.force.positional.evolution")


class _File(NamedTuple):
    """A file of a partition. `path`: from the table's location."""

    partition: str
    path: str
    size: int
    modified_at: int


class HiveTable(ShownTable):
    """One table without a timeline as it is now."""

    def __init__(self, client: ThriftClient, warehouse: Warehouse, memory: Memory, table: Table, format: str) -> None:
        """`format`: of the files."""
        super().__init__(client, warehouse, memory, table, hive_columns(table, format))
        self._format = format
        self._check_readers()

    def shown(self) -> Shown:
        """The table's metadata. Raises RestError, and what a worker raises."""
        self._begin(f" {json.dumps([self._columns.schema, self._columns.spec, self._columns.mapping])}")
        listed = self._listed()
        files = self._files(listed, uncommitted=False)
        current = self._found(files, READY)
        refs: dict[str, Json] = {"main": ref(current, "branch")}
        named = [*self._earlier(current, files), current]
        if (every := self._uncommitted(listed)) is not None:
            refs[UNCOMMITTED] = ref(every, "branch")
            named.append(every)
        snapshots = [snapshot_of(self._writer, self._columns, each, each.milliseconds, {}) for each in named]
        sequence = max(each.milliseconds for each in named)
        mapping = self._writer.mapping(named)
        metadata = metadata_of(self._writer, self._columns, current, snapshots, refs, self._comment, sequence, mapping)
        shown = self._writer.metadata(0, metadata)
        self._writer.delete(self._writer.expired_days({each.day for each in named}))
        return shown

    def _check_readers(self) -> None:
        """Raises RestError for properties by which other readers find other rows or columns than Iceberg's would."""
        table, sd = self._table, self._table.sd
        of_serde = (sd and sd.serdeInfo and sd.serdeInfo.parameters) or {}
        for each in (table.parameters, sd.parameters if sd else None, of_serde):
            _check_places(each)
        path, location = of_serde.get("path", ""), (sd and sd.location) or ""
        if (table.parameters or {}).get(PROVIDER) and path and not self._is_same(path, location):
            raise bad_request(
                f"Spark reads the table's files in {path}, its property `path`, and Hive those in {location}: let both"
                " be the same"
            )

    def _is_same(self, place: str, other: str) -> bool:
        try:
            return self._warehouse.relative_to(f"{place}/x", other) == "x"
        except WarehouseError:
            return False

    # -- what is there ----------------------------------------------------------------------------------------

    def _listed(self) -> dict[str, list[tuple[str, int, int]]]:
        """The names, sizes and times of visible files, by directory below the table's."""
        base = self._writer.base
        try:
            found = self._warehouse.visible_files(base, MAX_FILES)
        except WarehouseError as error:
            raise unavailable(f"the table's files can't be listed: {error}") from None
        if len(found) > MAX_FILES:
            raise bad_request(f"the table has more than {MAX_FILES:,} files")
        directories: dict[str, list[tuple[str, int, int]]] = {}
        for each in found:
            if each.is_link:
                raise bad_request(f"{base}/{each.path} is a link, whose target might be any file: put the file there")
            if each.modified_at is None:
                raise bad_request(f"the storage of {base} doesn't say when files were written")
            if each.size:  # an empty file has no rows for Hive's readers
                directory, _, name = each.path.rpartition("/")
                directories.setdefault(directory, []).append((name, each.size, each.modified_at))
        return directories

    def _files(self, listed: Mapping[str, list[tuple[str, int, int]]], *, uncommitted: bool) -> list[_File]:
        """The files of the table, in order. Raises RestError for directories that Hive's readers don't agree about."""
        places = self._partitions(uncommitted=uncommitted) if self._columns.keys else {"": ""}
        for each in listed:
            place = each
            while place:
                place = place.rpartition("/")[0]
                if place in places:
                    raise bad_request(
                        f"{self._writer.base}/{each} lies within "
                        f"{'the partition ' + places[place] if places[place] else 'the table'}: some readers read such"
                        " files and some don't. Move them, or add the directory as a partition of its own"
                    )
        return sorted(
            _File(name, f"{place}/{file}" if place else file, size, modified_at)
            for place, name in places.items()
            for file, size, modified_at in listed.get(place, ())
        )

    def _partitions(self, *, uncommitted: bool) -> dict[str, str]:
        """Names of partitions by their directories below the table's. Raises RestError for those that lie elsewhere."""
        found: dict[str, str] = {}
        after: str | None = None
        while True:
            request = ListPartitionsRequest(self._reference, includeUncommitted=uncommitted, limit=_PAGE, after=after)
            page = self._client.lake_list_partitions(request).partitions or []
            for each in page:
                place = self._warehouse.relative_to(each.location or "", self._writer.base)
                if not place:
                    raise bad_request(
                        f"the partition {each.name} lies in {each.location}, outside of the table's directory or in it"
                        " itself: only partitions with directories of their own below the table's are shown"
                    )
                if place in found:
                    raise bad_request(f"the partitions {found[place]} and {each.name} lie in the same directory")
                found[place] = each.name or ""
            if len(found) > MAX_PARTITIONS:
                raise bad_request(f"the table has more than {MAX_PARTITIONS:,} partitions")
            if len(page) < _PAGE:
                break
            after = page[-1].name
        self._check_formats(sorted(found.values()), uncommitted=uncommitted)
        return found

    def _check_formats(self, names: list[str], *, uncommitted: bool) -> None:
        """Raises RestError for partitions whose files have another format than the table's."""
        table = f"{self._table.tableName}{UNCOMMITTED_NAME if uncommitted else ''}"
        projection = GetProjectionsSpec(["values", "sd.inputFormat", "sd.serdeInfo.parameters"])
        for start in range(0, len(names), _NAMES_AT_ONCE):
            some = GetPartitionsFilterSpec(PartitionFilterMode.BY_NAMES, names[start : start + _NAMES_AT_ONCE])
            request = GetPartitionsRequest(
                self._table.catName, self._table.dbName, table, projectionSpec=projection, filterSpec=some
            )
            for spec in self._client.get_partitions_with_specs(request).partitionSpec or ():
                shared, listed = spec.sharedSDPartitionSpec, spec.partitionList
                descriptors = [shared.sd] if shared else [each.sd for each in (listed and listed.partitions) or ()]
                for each in descriptors:
                    _check_places(each and each.serdeInfo and each.serdeInfo.parameters)
                    if self._format.lower() not in ((each and each.inputFormat) or "").lower():
                        raise bad_request(
                            f"a partition's files aren't {self._format} as the table's, but"
                            f" {(each and each.inputFormat) or 'unknown'}: such tables aren't shown as Iceberg"
                        )

    # -- snapshots --------------------------------------------------------------------------------------------

    def _found(self, files: list[_File], kind: str) -> ListName:
        """The snapshot that has some files, which is made unless it is there."""
        text = json.dumps(files, separators=(",", ":"))
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % (_IDS - 1) + 1
        same = [each for each in self._writer.lists if (each.position, each.kind) == (number, kind)]
        if same:
            return min(same, key=lambda each: each.milliseconds)
        name = self._writer.name(number, time.time_ns() // 1_000_000, kind)
        self._writer.make(name, self._entries(files), name.milliseconds)
        return name

    def _entries(self, files: list[_File]) -> Iterator[Entry]:
        for each in files:
            path = f"{self._writer.base}/{each.path}"
            yield Entry(each.partition, path, each.size, None, 1, version=each.modified_at, format=self._format)

    def _uncommitted(self, listed: Mapping[str, list[tuple[str, int, int]]]) -> ListName | None:
        """The snapshot with uncommitted partitions; None if the caller may not see these."""
        return self._if_allowed(lambda: self._found(self._files(listed, uncommitted=True), ALL))

    def _earlier(self, current: ListName, files: list[_File]) -> list[ListName]:
        """The earlier snapshots that were shown and all of whose files are in the table as they were then."""
        before: dict[int, ListName] = {}
        for each in sorted(self._writer.lists, key=lambda each: -each.milliseconds):
            if each.kind == READY and each.milliseconds < current.milliseconds and each.position != current.position:
                before[each.position] = each
        some = sorted(before.values(), key=lambda each: each.milliseconds)[-MAX_EARLIER:]
        if not some:
            return []
        now = {f"{self._writer.base}/{each.path}": (each.size, each.modified_at) for each in files}
        known: dict[str, bool] = {}

        def is_there(path: str) -> bool:
            if path not in known:
                known[path] = _has_files(self._writer.read(path.rpartition("/.iceberg/")[2]), now)
            return known[path]

        def is_still(name: ListName) -> bool:
            content = self._writer.read(str(name))
            return all(is_there(str(each["manifest_path"])) for each in _records(content))

        key = f"{self._writer.place} {current.position}"
        return [each for each in some if self._memory.fact(f"{key} {each}", partial(is_still, each))]

    def _check(self, entry: Entry, footer: Footer) -> None:
        if footer.has_ids:
            raise bad_request(
                f"{entry.path} has field ids, by which Iceberg's readers would find other columns than Hive's do by"
                " names: write the file's rows again"
            )
        if any(_WITHOUT_NAMES.fullmatch(each) and each not in self._columns.names for each in footer.columns):
            raise bad_request(
                f"{entry.path} has no names of columns, as files of Hive before version 2: write its rows again"
            )
        self._columns.check_names(entry.path, footer)


def _check_places(parameters: Mapping[str, str] | None) -> None:
    """Raises RestError for properties by which Hive finds the columns of files otherwise than by their names."""
    for each in _BY_PLACES:
        if (parameters or {}).get(each, "").strip().lower() == "true":
            raise bad_request(
                f"Hive's readers find columns in the table's files by their places, because of the property {each}, and"
                " Iceberg's by their names: remove the property if both find the same"
            )


def _records(content: bytes) -> Iterator[Json]:
    for each in fastavro.reader(io.BytesIO(content)):
        assert isinstance(each, dict)
        yield each


def _has_files(manifest: bytes, now: Mapping[str, tuple[int, int]]) -> bool:
    """Whether all files of a manifest are there as they were. `now`: sizes and times by path."""
    paths = [str(each["data_file"]["file_path"]) for each in _records(manifest)]
    if not all(each in now for each in paths):
        return False
    found = fastavro.reader(io.BytesIO(manifest)).metadata.get(FILES)
    return found == files_key((each, *now[each]) for each in paths)
