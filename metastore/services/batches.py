"""Batches of streaming writers: where their rows go, and the report that ends them.

A batch's files are staged beside the table's data. The report that ends it is one transaction: which partitions the
files join, how far event time has come, that the batch is done. A partition that turned ready meanwhile makes it fail
as a whole; once it is accepted the files are moved, also if everybody crashes, before their partitions can turn ready.
"""

import re
import secrets
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import structlog

from metastore.services import names as given
from metastore.services import objects
from metastore.services.commits import Commits, properties_of
from metastore.services.late_rows import Router
from metastore.services.moves import Mover
from metastore.services.partition_reads import values_of_existing
from metastore.services.partition_states import exact_name, held_by_name
from metastore.services.publishing import Publisher, directory
from metastore.services.readiness import ReadinessService
from metastore.services.readiness_properties import COMMIT_MODE, CommitMode, LatePolicy, ReadinessProperties
from metastore.services.source_reports import progress_of
from metastore.services.tables import TableService
from metastore.store import Database, DatabaseUnavailable, publications, readiness, tables
from metastore.store.database import Transaction
from metastore.store.databases import Hold
from metastore.store.partitions import PartitionRow
from metastore.store.readiness import Readiness
from metastore.store.tables import TableRow
from metastore.warehouse import Warehouse, WarehouseError
from metastore.wire.hive import InvalidOperationException
from metastore.wire.lake import (
    BeginBatchResponse,
    LateRows,
    ReportBatchRequest,
    ReportBatchResponse,
    Route,
    TableReference,
)
from metastore.wire.struct import ExceptionStruct

STAGING = ".staging"
"""Directory below a table's in which writers stage files; readers pass over names that begin with a dot."""

_WRITER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
_ATTEMPT = re.compile(r"[0-9a-f]{16}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]{0,254}")
_DIRECTORY = re.compile(r"(?!\.)[^\x00-\x1f\x7f/\\*?\[\]]{1,255}")  # named after partitions, values escaped

Item = TypeVar("Item", bound=Hashable)

log = structlog.get_logger(__name__)


class BatchService:
    """What streaming writers ask and report."""

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
        """Whether a batch is done already, and if not, where to stage its files.

        When it returns, nothing of the writer's earlier batches is on its way any more.
        Raises NoSuchObjectException, InvalidOperationException, WarehouseError.
        """
        _check_writer(writer, batch)
        given.table_name(table.database, table.table, table.catalog)  # refuses a name that is for reading only
        with self._database.read() as tx:
            row = self._tables.row(tx, table.database, table.table, table.catalog)
            _check_writable(row)
            last = readiness.last_batch(tx, row.id, writer)
            watermark = readiness.get(tx, row.id).watermark
        # A renamed table's directory must have moved before anything is written where it goes.
        self._mover.settle([f"{row.location}/{STAGING}"])
        self._carry_out(row, writer)
        if last is not None and batch <= last:
            return BeginBatchResponse(accepted=True, watermark=watermark)
        attempt = secrets.token_hex(8)
        return BeginBatchResponse(
            accepted=False, stagingLocation=_staging(row, writer, batch, attempt), attempt=attempt, watermark=watermark
        )

    def _carry_out(self, row: TableRow, writer: str) -> None:
        """Moves what is recorded; raises WarehouseError if something of this writer can't be."""
        try:
            self._publisher.carry_out(row.id)
        except WarehouseError as error:
            with self._database.read() as tx:
                if publications.has_any_below(tx, row.id, f"{row.location}/{STAGING}/{writer}"):
                    raise
            log.warning("another writer's files can't be moved yet", table=str(row.name), error=str(error))

    def route(self, table: TableReference, names: Sequence[str]) -> list[Route]:
        """Where rows for some partitions go, be they there or not, in the order of the names.

        Raises NoSuchObjectException, InvalidOperationException.
        """
        with self._database.read() as tx:
            row = self._tables.row(tx, table.database, table.table, table.catalog)
            properties = _check_writable(row)
            keys = objects.key_names(objects.table_of(row))
            exact = [exact_name(row, keys, name) for name in names]
            router = Router(tx, row, properties, exact)
            return [router.route(name, values_of_existing(name, keys)) for name in exact]

    def report(self, request: ReportBatchRequest) -> ReportBatchResponse:
        """Ends a batch, or refuses it because of partitions that have turned ready; then nothing has changed.

        Raises NoSuchObjectException if a table or partition is missing, InvalidOperationException, WarehouseError.
        """
        writer, batch = request.writer or "", request.batch or 0
        _check_writer(writer, batch)
        table = request.table or TableReference()
        with self._database.write() as tx:
            row = self._tables.row(tx, table.database, table.table, table.catalog, Hold.SHARED)
            properties = _check_writable(row)
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
            # At the end: it deletes files, which a failure of anything else would not bring back.
            self._commits.reopen(tx, row, [held[name] for name in reopened], for_late_rows=True)
        return ReportBatchResponse(True, False, [], state.watermark, self._finish(row))

    def _held(
        self, tx: Transaction, row: TableRow, staged: "_Staged", request: ReportBatchRequest
    ) -> dict[str, PartitionRow]:
        named = {*(each.partition for each in staged.files), *(request.partitions or ()), *(request.reopen or ())}
        return {partition.name: partition for partition in held_by_name(tx, row, sorted(named))}

    def _check_files(self, tx: Transaction, row: TableRow, staged: "_Staged", held: Mapping[str, PartitionRow]) -> None:
        """Sees to it that staged files are there and can join their partitions. Raises InvalidOperationException."""
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
                    f"{name} lies at {place}, where nothing can be moved to from {staged.location}: batches are for"
                    " partitions on their table's storage"
                )
        # What was renamed must have moved before anything else comes to its new place.
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
        """Moves the files and makes due partitions ready. The batch is accepted whatever becomes of it: what fails is
        tried again by the servers' housekeeping."""
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
    """A staged file: its path below the staging location, its name, and the name of the partition that it joins."""

    path: str
    name: str
    partition: str


@dataclass(frozen=True, slots=True)
class _Staged:
    """What an attempt at a batch has staged."""

    location: str
    files: list[_File]

    @classmethod
    def of(cls, row: TableRow, request: ReportBatchRequest) -> "_Staged":
        """Raises InvalidOperationException unless paths stay below the staging location, each with its own target."""
        if not request.files:
            return cls("", [])
        if request.attempt is None or not _ATTEMPT.fullmatch(request.attempt):
            raise InvalidOperationException("files are reported with the attempt that beginBatch named")
        keys = objects.key_names(objects.table_of(row))
        given_names = {file.partition or "" for file in request.files}
        names = {name: exact_name(row, keys, name) for name in given_names}
        files = [
            _File(path := file.path or "", _file_name(path), names[file.partition or ""]) for file in request.files
        ]
        if twice := _first_repeated(each.path for each in files):
            raise InvalidOperationException(f"the file {twice!r} is reported twice")
        if joined_twice := _first_repeated((each.partition, each.name) for each in files):
            raise InvalidOperationException("two files of the batch named {1} are to join {0}".format(*joined_twice))
        return cls(_staging(row, request.writer or "", request.batch or 0, request.attempt), files)


def _reopened(row: TableRow, request: ReportBatchRequest, properties: ReadinessProperties) -> list[str]:
    """The names of the partitions that a batch opens again. Raises InvalidOperationException if it may not."""
    if request.reopen and properties.late_rows is not LatePolicy.REOPEN:
        raise InvalidOperationException(
            f"partitions are opened again for late rows only where partition.late-rows is {LatePolicy.REOPEN},"
            f" not {properties.late_rows}"
        )
    keys = objects.key_names(objects.table_of(row))
    return sorted({exact_name(row, keys, name) for name in request.reopen or ()})


def _check_writer(writer: str, batch: int) -> None:
    if not _WRITER.fullmatch(writer):
        raise InvalidOperationException(f"{writer!r} is no name for a writer: letters, digits, _ and -, at most 128")
    if batch < 0:
        raise InvalidOperationException(f"{batch} is no number of a batch: they begin with 0 and rise")


def _check_writable(row: TableRow) -> ReadinessProperties:
    """What a table that batches are for says of its readiness. Raises InvalidOperationException for others."""
    if row.location is None or not objects.table_of(row).partitionKeys:
        raise InvalidOperationException(
            f"{row.name} is a view or has no partitions: batches are for partitioned tables"
        )
    properties = properties_of(row)
    if properties.mode is CommitMode.NONE:
        raise InvalidOperationException(
            f"partitions of {row.name} are ready as soon as they are added, and take no batches:"
            f" set {COMMIT_MODE} to {', '.join(mode for mode in CommitMode if mode is not CommitMode.NONE)}"
        )
    return properties


def _counted(state: Readiness, late: LateRows) -> Readiness:
    """The state of a table after late rows; negative counts are none."""
    return state._replace(
        rerouted=state.rerouted + max(late.rerouted or 0, 0),
        reopened=state.reopened + max(late.reopened or 0, 0),
        dropped=state.dropped + max(late.dropped or 0, 0),
    )


def _staging(row: TableRow, writer: str, batch: int, attempt: str) -> str:
    return f"{row.location}/{STAGING}/{writer}/{batch}/{attempt}"


def _file_name(path: str) -> str:
    """The last name of a staged file's path. Raises InvalidOperationException unless it stays where it should be."""
    *directories, name = path.split("/")
    if not _FILE.fullmatch(name) or not all(map(_DIRECTORY.fullmatch, directories)):
        raise InvalidOperationException(
            f"{path!r} is no path of a staged file: relative, nothing hidden, its name of A-Z a-z 0-9 . _ = -"
        )
    return name


def _first_repeated(items: Iterable[Item]) -> Item | None:
    seen: set[Item] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None
