"""Orphan files: what lies in the directories of a table's instants and belongs to nothing that the metastore knows.

Writers leave them that went on after their instant was aborted, and a database that was restored from a backup knows
nothing of what came after. Nobody else may be harmed: a file counts only if it is a day old, if no snapshot that is
kept, changelog, move or scheduled deletion has it, if its instant isn't open, if Hive doesn't look into its directory,
and if nothing else lies in the table's directory, or the table in another's. All of it is looked at again in the
transaction that schedules the deletion. Directories of partitions are left alone, where engines put files themselves.
"""

import re
import time
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from lake.protocol.hive import InvalidOperationException, MetaException
from lake.protocol.lake import FindOrphansRequest, FindOrphansResponse, OrphanFile, RemoveOrphansRequest
from metastore.services.files.deletable import Deletable
from metastore.services.files.staged_files import directory
from metastore.services.instant_rules.paths import DIRECTORY, base_of
from metastore.services.table.service import TableService
from metastore.services.timeline.lookup import held_lake_table, lake_table
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.files import publications
from metastore.store.partition import partitions
from metastore.store.snapshot import changelogs, data_files
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants
from metastore.warehouse import Warehouse, WarehouseError
from metastore.warehouse.directories import FileStatus

LEAST_HOURS, USUAL_HOURS, MOST_HOURS = 24, 72, 100_000
"""How old an orphan file is at least, if nothing is said, and at most."""

AT_ONCE = 10_000
"""Orphan files of one reply, and of one removal."""

SECONDS = 10.0
"""After so long a search stops behind a directory, and says where to go on."""

_HOUR = 3_600_000  # milliseconds
_OF_INSTANT = re.compile(r"(?P<timestamp>[0-9]{1,40})\.[a-z]{1,40}")

Found = dict[str, FileStatus]
"""Files by their paths, relative to the table's base."""


class OrphanFiles:
    """Finds and removes orphan files."""

    def __init__(self, database: Database, tables: TableService, warehouse: Warehouse, deletable: Deletable) -> None:
        self._database = database
        self._tables = tables
        self._warehouse = warehouse
        self._deletable = deletable

    def find(self, request: FindOrphansRequest) -> FindOrphansResponse:
        """Looks through the directories of instants, one after another, `after` one of them.

        Raises NoSuchObjectException, InvalidOperationException, MetaException if the storage fails.
        """
        hours = _checked(request.olderThanHours)
        until = time.monotonic() + SECONDS
        try:
            with self._database.read() as tx:
                row = lake_table(self._tables, tx, request.table)
                base = base_of(row.location or "")
                self._refuse_overlap(tx, row, base)
                found: Found = {}
                examined, last = 0, None
                before = self._time(base) - hours * _HOUR
                used = _used(tx, row, base)
                for name in sorted(self._warehouse.children(f"{base}/{DIRECTORY}")):
                    if request.after is not None and name <= request.after:
                        continue
                    if last is not None and (len(found) >= AT_ONCE or time.monotonic() > until):
                        break
                    files = self._statuses(base, name)
                    examined += len(files)
                    old = {path: each for path, each in files.items() if _is_older(each, before)}
                    found.update(_unknown(tx, row, base, name, old, used))
                    last = name
                else:
                    last = None
        except WarehouseError as error:
            raise MetaException(str(error)) from None
        files_found = [OrphanFile(path, each.size, each.modified_at) for path, each in sorted(found.items())]
        return FindOrphansResponse(files_found, examined, last)

    def remove(self, request: RemoveOrphansRequest) -> int:
        """Schedules the deletion of orphan files, of those that still are ones. Returns how many.

        Raises NoSuchObjectException, InvalidOperationException, MetaException if the storage fails.
        """
        hours = _checked(request.olderThanHours)
        paths = request.paths or []
        if len(paths) > AT_ONCE:
            raise InvalidOperationException(f"give at most {AT_ONCE:,} files at a time, not {len(paths):,}")
        wanted: dict[str, set[str]] = {}
        for path in paths:
            first, _, rest = path.removeprefix(f"{DIRECTORY}/").partition("/")
            if not path.startswith(f"{DIRECTORY}/") or not _OF_INSTANT.fullmatch(first) or not rest:
                raise InvalidOperationException(f"{path[:200]!r} is not in the directory of an instant")
            wanted.setdefault(first, set()).add(path)
        try:
            with self._database.write() as tx:
                row = held_lake_table(self._tables, tx, request.table)
                base = base_of(row.location or "")
                self._refuse_overlap(tx, row, base)
                instants.hold_timeline(tx, row.id)  # so that no instant begins or completes meanwhile
                before = self._time(base) - hours * _HOUR
                found: Found = {}
                used = _used(tx, row, base)
                for name, some in wanted.items():
                    there = self._statuses(base, name)
                    old = {path: there[path] for path in some if path in there and _is_older(there[path], before)}
                    found.update(_unknown(tx, row, base, name, old, used))
                data_files.schedule_deletion(tx, row.id, found)
        except WarehouseError as error:
            raise MetaException(str(error)) from None
        return len(found)

    def _refuse_overlap(self, tx: Transaction, row: TableRow, base: str) -> None:
        """Raises InvalidOperationException if something else lies in the table's directory, or around it."""
        if (place := self._deletable.overlapping(tx, base, besides=row.id)) is not None:
            raise InvalidOperationException(
                f"{row.name} shares its directory {place} with another table, partition or database:"
                " cannot tell which one owns the files. Give one of them another location"
            )
        if not instants.has_timeline(tx, row.id):
            raise InvalidOperationException(f"{row.name} has no timeline, so that nothing says which files are orphans")

    def _time(self, base: str) -> int:
        """The time by the storage's own clock, in milliseconds since 1970. Raises WarehouseError."""
        return self._warehouse.time_at(f"{base}/{DIRECTORY}")

    def _statuses(self, base: str, name: str) -> Mapping[str, FileStatus]:
        """The files of an instant's directory. Raises WarehouseError."""
        own = f"{DIRECTORY}/{name}"
        if not _OF_INSTANT.fullmatch(name):
            return {}
        found = self._warehouse.statuses(f"{base}/{own}", within=base)
        return {f"{own}/{path}": each for path, each in found.items()}


class _Used(NamedTuple):
    """What is used of a table: the timestamps of open instants, and directories, relative to the base, that are
    locations of the table or its partitions."""

    open: Collection[str]
    places: Collection[str]


def _used(tx: Transaction, row: TableRow, base: str) -> _Used:
    places = {row.location, *(directory(row.location, *each) for each in partitions.elsewhere(tx, row.id))}
    relative = {each[len(base) + 1 :] for each in places if each and each.startswith(f"{base}/")}
    return _Used(instants.open_timestamps(tx, row.id), relative)


def _unknown(tx: Transaction, row: TableRow, base: str, name: str, files: Found, used: _Used) -> Found:
    """Those files of an instant's directory that nothing knows of."""
    own = f"{DIRECTORY}/{name}"
    match = _OF_INSTANT.fullmatch(name)
    if not files or match is None or match["timestamp"] in used.open:
        return {}
    if publications.has_any_below(tx, row.id, f"{base}/{own}"):
        return {}
    going = data_files.pending_below(tx, row.id, own)
    known = data_files.known_paths(tx, row.id, files) | changelogs.known_paths(tx, row.id, files) | going
    return {
        path: each
        for path, each in files.items()
        if path not in known and not any(f"{place}/" in going or place in used.places for place in _above(path))
    }


def _above(path: str) -> Iterator[str]:
    """The directories above a file, relative to the base."""
    while path := path.rpartition("/")[0]:
        yield path


def _is_older(status: FileStatus, before: int) -> bool:
    return status.modified_at is not None and status.modified_at < before


def _checked(hours: int | None) -> int:
    """Raises InvalidOperationException."""
    if hours is None:
        return USUAL_HOURS
    if not LEAST_HOURS <= hours <= MOST_HOURS:
        raise InvalidOperationException(
            f"olderThanHours is {hours}: orphan files are {LEAST_HOURS} hours old at least, since a writer may be slow,"
            f" and {MOST_HOURS:,} at most"
        )
    return hours
