"""Batches of streaming writers: begin, route rows to partitions, report.

A writer stages the files of a batch in a directory beside the table's data. Its report ends the batch in one
transaction: the partitions that the files join, the event times, and the batch's number. If one of the partitions has
become ready meanwhile, the whole batch is rejected. The files of an accepted batch are moved before their partitions
can become ready, even after a crash.
"""

import re
import secrets
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import structlog

from lake.protocol.formats import staging
from lake.protocol.formats.commit_mode import COMMIT_MODE, CommitMode
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import (
    BeginBatchResponse,
    LateRows,
    ReportBatchRequest,
    ReportBatchResponse,
    TableReference,
)
from lake.protocol.struct import ExceptionStruct
from metastore.services.commit_flag.policy import LatePolicy, ReadinessProperties
from metastore.services.commit_flag.transitions import Commits, properties_of
from metastore.services.files.relocator import Mover
from metastore.services.files.staged_files import Publisher, directory
from metastore.services.instant_rules.keyed_tables import is_keyed
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.services.readiness.partition_states import exact_name, held_by_name
from metastore.services.readiness.progress import progress_of
from metastore.services.readiness.service import ReadinessService
from metastore.services.table.service import TableService
from metastore.store import Database, DatabaseUnavailable
from metastore.store.catalog.databases import RowLock
from metastore.store.commit_flag import readiness
from metastore.store.commit_flag.readiness import Readiness
from metastore.store.engine.database import Transaction
from metastore.store.files import publications
from metastore.store.partition.partitions import PartitionRow
from metastore.store.table import tables
from metastore.store.table.tables import TableRow
from metastore.warehouse import Warehouse, WarehouseError

_WRITER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
_ATTEMPT = re.compile(r"[0-9a-f]{16}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]{0,254}")
_DIRECTORY = re.compile(r"(?!\.)[^\x00-\x1f\x7f/\\*?\[\]]{1,255}")  # named after partitions, values escaped

Item = TypeVar("Item", bound=Hashable)

log = structlog.get_logger(__name__)


class BatchService:
    """The calls of streaming writers."""

    def __init__(
        self,
        database: Database,
        warehouse: Warehouse,
        mover: Mover,
        tables: TableService,
        publisher: Publisher,
        commits: Commits,
        readiness: ReadinessService,
    ) -> None:
        self._database = database
        self._warehouse = warehouse
        self._mover = mover
        self._tables = tables
        self._publisher = publisher
        self._commits = commits
        self._readiness = readiness

    def begin(self, table: TableReference, writer: str, batch: int) -> BeginBatchResponse:
        """Says whether a batch was accepted already; if not, where to stage its files.

        `batch`: its number, which increases from one batch of a writer to the next. Before the return all files of the
        writer's earlier batches are moved. Raises NoSuchObjectException, InvalidOperationException, WarehouseError.
        """
        _check_writer(writer, batch)
        given.table_name(table.database, table.table, table.catalog)  # rejects a decorated, read-only name
        with self._database.read() as tx:
            row = self._tables.row_of(tx, table)
            _check_writable(row)
            last = readiness.last_batch(tx, row.id, writer)
            watermark = readiness.get(tx, row.id).watermark
        # A renamed table's directory must be moved before anybody writes into the new one.
        self._mover.settle([staging.directory_of(_location(row))])
        self._carry_out(row, writer)
        if last is not None and batch <= last:
            return BeginBatchResponse(accepted=True, watermark=watermark, tableId=row.id)
        attempt = secrets.token_hex(8)
        return BeginBatchResponse(
            accepted=False,
            stagingLocation=staging.location(_location(row), writer, batch, attempt),
            attempt=attempt,
            watermark=watermark,
            tableId=row.id,
        )

    def _carry_out(self, row: TableRow, writer: str) -> None:
        """Moves the files of accepted batches. Raises WarehouseError if those of this writer can't be moved."""
        try:
            self._publisher.carry_out(row.id)
        except WarehouseError as error:
            with self._database.read() as tx:
                if publications.has_any_below(tx, row.id, staging.writer_directory(_location(row), writer)):
                    raise
            log.warning("another writer's files can't be moved yet", table=str(row.name), error=str(error))

    def report(self, request: ReportBatchRequest) -> ReportBatchResponse:
        """Accepts a batch, or rejects it because some of its partitions are ready; then nothing is changed.

        Raises NoSuchObjectException if the table or a partition doesn't exist, InvalidOperationException,
        WarehouseError.
        """
        writer, batch = request.writer or "", request.batch or 0
        _check_writer(writer, batch)
        with self._database.write() as tx:
            row = self._tables.row_of(tx, request.table, RowLock.SHARED)
            properties = _check_writable(row)
            if request.reopen:
                self._commits.hold_timeline(tx, row)
            state = readiness.hold(tx, row.id)
            last = readiness.last_batch(tx, row.id, writer)
            if last is not None and batch <= last:
                return ReportBatchResponse(True, True, [], state.watermark, [])
            staged = _Staged.of(row, request)
            held = self._held(tx, row, staged, request)
            reopened = _reopened(row, request, properties)
            turned = [p.name for p in held.values() if p.ready and p.name not in reopened]
            if turned:
                return ReportBatchResponse(False, False, turned, state.watermark, [])
            self._check_files(tx, row, staged, held)
            progress = progress_of(tx, row, request.chain, request.eventTimes, properties)

            publications.add(
                tx,
                row.id,
                [(held[each.partition].id, f"{staged.location}/{each.path}", each.name) for each in staged.files],
            )
            readiness.put_progress(tx, row.id, progress)
            readiness.put(tx, row.id, _counted(state, request.late or LateRows()))
            state, _ = self._readiness.advance(tx, row, properties)
            readiness.put_last_batch(tx, row.id, writer, batch)
            tables.touch(tx, row.id)
            # Last, because it deletes files, which a rollback can't restore.
            self._commits.reopen(tx, row, [held[name] for name in reopened], for_late_rows=True)
        return ReportBatchResponse(True, False, [], state.watermark, self._finish(row))

    def _held(
        self, tx: Transaction, row: TableRow, staged: "_Staged", request: ReportBatchRequest
    ) -> dict[str, PartitionRow]:
        named = {*(each.partition for each in staged.files), *(request.partitions or ()), *(request.reopen or ())}
        return {partition.name: partition for partition in held_by_name(tx, row, sorted(named))}

    def _check_files(self, tx: Transaction, row: TableRow, staged: "_Staged", held: Mapping[str, PartitionRow]) -> None:
        """Checks that staged files exist and can join their partitions. Raises InvalidOperationException."""
        if not staged.files:
            return
        joined = {each.partition: held[each.partition] for each in staged.files}
        targets = {
            name: directory(row.location, partition.stored.path, partition.stored.location)
            for name, partition in joined.items()
        }
        for name, place in targets.items():
            if place is None or not self._warehouse.same_storage(staged.location, place):
                raise InvalidOperationException(
                    f"{name} has the location {place}, to which files can't be moved from {staged.location}: batches"
                    " need partitions on their table's storage"
                )
        # Renamed partitions must be moved before new files enter their directories.
        self._mover.settle_within(tx, [staged.location, *targets.values()])
        there = self._warehouse.files(staged.location, within=row.location or "")
        coming = publications.names(tx, [partition.id for partition in joined.values()])
        for each in staged.files:
            if each.path not in there:
                raise InvalidOperationException(f"the staged file {staged.location}/{each.path} is not there")
            target = f"{targets[each.partition]}/{each.name}"
            if (joined[each.partition].id, each.name) in coming or self._warehouse.exists(target):
                raise InvalidOperationException(
                    f"{each.partition} has a file named {each.name} already: give every file a name of its own"
                )

    def _finish(self, row: TableRow) -> list[str]:
        """Moves the files and makes due partitions ready. Returns the names of these.

        The batch stays accepted if this fails; a leader task tries again.
        """
        try:
            self._publisher.carry_out(row.id)
        except (WarehouseError, DatabaseUnavailable) as error:
            log.warning("files of an accepted batch can't be moved yet", table=str(row.name), error=str(error))
        try:
            return self._readiness.commit_due(row.id)
        except (WarehouseError, DatabaseUnavailable, ExceptionStruct) as error:
            log.warning("partitions can't be made ready yet", table=str(row.name), error=str(error))
            return []


class _File(NamedTuple):
    """A staged file: its path relative to the staging location, its name, and its partition's name."""

    path: str
    name: str
    partition: str


@dataclass(frozen=True, slots=True)
class _Staged:
    """The staged files of one attempt at a batch, and their directory."""

    location: str
    files: list[_File]

    @classmethod
    def of(cls, row: TableRow, request: ReportBatchRequest) -> "_Staged":
        """The files that a request names. Raises InvalidOperationException for invalid or repeated paths."""
        if not request.files:
            return cls("", [])
        if request.attempt is None or not _ATTEMPT.fullmatch(request.attempt):
            raise InvalidOperationException("report files with the `attempt` that the begin of the batch returned")
        keys = hive_objects.key_names(hive_objects.table_of(row))
        given_names = {file.partition or "" for file in request.files}
        names = {name: exact_name(row, keys, name) for name in given_names}
        files = [
            _File(path := file.path or "", _file_name(path), names[file.partition or ""]) for file in request.files
        ]
        if twice := _first_repeated(each.path for each in files):
            raise InvalidOperationException(f"the file {twice!r} is reported twice")
        if joined_twice := _first_repeated((each.partition, each.name) for each in files):
            raise InvalidOperationException("two files of the batch with the name {1} join {0}".format(*joined_twice))
        return cls(staging.location(_location(row), request.writer or "", request.batch or 0, request.attempt), files)


def _reopened(row: TableRow, request: ReportBatchRequest, properties: ReadinessProperties) -> list[str]:
    """The names of the partitions that a batch reopens. Raises InvalidOperationException if it isn't allowed to."""
    if request.reopen and properties.late_rows is not LatePolicy.REOPEN:
        raise InvalidOperationException(
            f"partitions are opened again for late rows only where partition.late-rows is {LatePolicy.REOPEN},"
            f" not {properties.late_rows}"
        )
    keys = hive_objects.key_names(hive_objects.table_of(row))
    return sorted({exact_name(row, keys, name) for name in request.reopen or ()})


def _check_writer(writer: str, batch: int) -> None:
    if not _WRITER.fullmatch(writer):
        raise InvalidOperationException(
            f"{writer!r} is no valid name of a writer: use letters, digits, _ and -, at most 128 characters"
        )
    if batch < 0:
        raise InvalidOperationException(f"{batch} is no valid number of a batch: use 0 or more")


def _check_writable(row: TableRow) -> ReadinessProperties:
    """The readiness properties of a table that takes batches. Raises InvalidOperationException for other tables."""
    if row.location is None or not hive_objects.table_of(row).partitionKeys:
        raise InvalidOperationException(
            f"{row.name} is a view or has no partitions: batches are for partitioned tables"
        )
    if is_keyed(row):
        raise InvalidOperationException(
            f"{row.name} has a primary key: a batch would add rows whose keys are there already. Upsert them instead"
        )
    properties = properties_of(row)
    if properties.mode is CommitMode.NONE:
        raise InvalidOperationException(
            f"partitions of {row.name} are ready as soon as they are added, and take no batches:"
            f" set {COMMIT_MODE} to {', '.join(mode for mode in CommitMode if mode is not CommitMode.NONE)}"
        )
    return properties


def _counted(state: Readiness, late: LateRows) -> Readiness:
    """The table's state with the counts of late rows added. Negative counts are ignored."""
    return state._replace(
        rerouted=state.rerouted + max(late.rerouted or 0, 0),
        reopened=state.reopened + max(late.reopened or 0, 0),
        dropped=state.dropped + max(late.dropped or 0, 0),
    )


def _location(row: TableRow) -> str:
    assert row.location is not None, "checked: _check_writable"
    return row.location


def _file_name(path: str) -> str:
    """The file name in a staged file's path. Raises InvalidOperationException for an invalid path."""
    *directories, name = path.split("/")
    if not _FILE.fullmatch(name) or not all(map(_DIRECTORY.fullmatch, directories)):
        raise InvalidOperationException(
            f"{path!r} is no valid path of a staged file: it must be relative, without hidden directories, and the name"
            " must be of A-Z a-z 0-9 . _ = -"
        )
    return name


def _first_repeated(items: Iterable[Item]) -> Item | None:
    seen: set[Item] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None
