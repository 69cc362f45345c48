"""Brings what a metastore has into ours, by `lake_import`.

What is there already is the only record of what was done: a second import changes nothing, and one that was killed goes
on. A table comes with its first partitions in one transaction; the other partitions follow, and the foreign keys once
all tables are there.
"""

import getpass
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar

from thrift.Thrift import TApplicationException

from lake.protocol.formats import partition_names
from lake.protocol.formats.keyed_table import PRIMARY_KEY
from lake.protocol.hive import (
    Catalog,
    Database,
    FieldSchema,
    Function,
    HiveObjectPrivilege,
    Partition,
    ReplTblWriteIdStateRequest,
    SeedTxnIdRequest,
    SQLAllTableConstraints,
    SQLForeignKey,
    Table,
)
from lake.protocol.lake import ImportDifference, ImportRequest, ImportResponse
from lake.protocol.struct import ExceptionStruct
from metastore.migration.mapping import Renaming, Selection, database_key
from metastore.migration.objects import (
    MOVED_TO,
    DatabaseKey,
    Positions,
    Remark,
    TableKey,
    TableParts,
    WriteIds,
    catalog_key,
)
from metastore.migration.progress import Progress
from metastore.migration.source import Source, error_text
from metastore.migration.thrift_source import ThriftSource

T = TypeVar("T")

PARTITIONS_AT_ONCE = 1_000
GRANTS_AT_ONCE = 200
MAX_REPORTED = 10_000
"""Differences and problems that a report names, each."""

MOVED_FROM = "lake.moved.metadata_location"
"""A parameter of Iceberg's tables at a metastore that was left: their pointers before."""

UNREAD = "it was listed, and then not there: was it dropped meanwhile?"

VIEWS = ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")

TEXT_STAYS = "its text stays as it is, also where it names databases that get other names"

UNKNOWN_WRITE_IDS = "that metastore tells no transactions, so they aren't known"

_LONGEST_SNAPSHOT = 10_000  # write ids of a table that readers must not see, and that are brought one by one


@dataclass
class Report:
    """What an import did."""

    added: int = 0
    same: int = 0
    replaced: int = 0
    differing: int = 0
    differences: list[ImportDifference] = field(default_factory=list)
    problems: list[Remark] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    """What is to be looked at of what was brought."""
    positions: Positions = field(default_factory=Positions)

    @property
    def is_complete(self) -> bool:
        """Whether all is here as it is there."""
        return not self.differing and not self.problems

    def plain(self) -> dict[str, Any]:
        return {
            "added": self.added,
            "same": self.same,
            "replaced": self.replaced,
            "differing": self.differing,
            "differences": [
                {"kind": each.kind, "name": each.name, "difference": each.difference, "replaced": bool(each.replaced)}
                for each in self.differences
            ],
            "problems": [each.plain() for each in self.problems],
            "remarks": [each.plain() for each in self.remarks],
            "notification": self.positions.notification,
            "transaction": self.positions.transaction,
        }


class Importer:
    """One import. `target`: our metastore. `threads`: how many objects are under way at once, at most. `brought`:
    databases, and catalogs, that were here as they are there at some time; this adds to them. `others`: databases, by
    their names here, that came from other metastores by now, and which."""

    def __init__(
        self,
        source: Source,
        target: ThriftSource,
        *,
        selection: Selection,
        renaming: Renaming,
        progress: Progress,
        threads: int,
        replace: bool = False,
        brought: set[DatabaseKey] | None = None,
        others: Callable[[], Mapping[DatabaseKey, str]] = dict,
    ) -> None:
        self._source = source
        self._target = target
        self._selection = selection
        self._renaming = renaming
        self._progress = progress
        self._threads = threads
        self._replace = replace
        self._brought = set() if brought is None else brought
        self._others = others
        self._lock = threading.Lock()
        self._left: set[TableKey] = set()  # tables that can't be brought: what belongs to them isn't, either
        self._foreign_keys: list[tuple[TableKey, list[SQLForeignKey]]] = []
        self.report = Report()

    def run(self) -> Report:
        """Imports everything. Raises SourceFailed if a metastore can't be reached any more."""
        # Before anything is read: what changes from now on is in the log after this position.
        self.report.positions = self._source.positions()
        chosen = self._namespaces()
        self._roles()
        with ThreadPoolExecutor(self._threads) as threads:
            tasks = Tasks(threads)
            for key in chosen:
                tasks.submit(self._functions, key)
                for name in self._source.tables(key):
                    tasks.submit(self._table, tasks, TableKey(*key, name))
            tasks.wait()
        for table, keys in self._foreign_keys:
            self._bring("constraints", str(table), ImportRequest(constraints=SQLAllTableConstraints(foreignKeys=keys)))
        for key in chosen:
            self._grants(self._source.grants(key, self._granted_tables(key)))
        self._seed_transactions()
        return self.report

    # --- what others are in -----------------------------------------------------------------------------------

    def _namespaces(self) -> list[DatabaseKey]:
        """Brings the catalogs and databases; the databases that were chosen, by their names there."""
        chosen: list[DatabaseKey] = []
        catalogs = self._source.catalogs()
        by_catalog: dict[str, list[Database]] = {}
        for catalog in [each.name or "" for each in catalogs] or ["hive"]:
            every = self._source.databases(catalog)
            self._note_left_out(map(database_key, every))
            found = [each for each in every if self._selection.includes(database_key(each))]
            if found:
                by_catalog[catalog] = found
        self._renaming.check_apart(database_key(each) for some in by_catalog.values() for each in some)
        for catalog, found in by_catalog.items():
            self._catalog([each for each in catalogs if each.name == catalog])
            for database in found:
                if self._database(database):
                    chosen.append(database_key(database))
        return chosen

    def _note_left_out(self, keys: Iterable[DatabaseKey]) -> None:
        """Of what isn't meant since it lives here: what has come from another metastore is another database."""
        for key in keys:
            here = self._renaming.database_key(key)
            if key in self._selection.but and key not in self._brought and here in self._others():
                self._problem("databases", str(key), came_from(here, self._others()[here]))

    def _catalog(self, catalogs: Sequence[Catalog]) -> None:
        for each in catalogs:
            name = each.name or ""
            request = ImportRequest(catalogs=[self._renaming.catalog(each)])
            self._namespace("catalogs", name, catalog_key(name), request)

    def _database(self, database: Database) -> bool:
        key = database_key(database)
        if (why := gone_to(database)) is not None:
            self._problem("databases", str(key), why)
            return False
        request = ImportRequest(databases=[self._renaming.database(database)])
        if not self._namespace("databases", str(key), key, request):
            return False
        here = self._renaming.database_key(key)
        if key not in self._brought and (other := self._others().get(here)) is not None:
            self._problem("databases", str(key), came_from(here, other))
            return False
        return True

    def _namespace(self, kind: str, name: str, key: DatabaseKey, request: ImportRequest) -> bool:
        """A catalog or a database itself. Returns whether there is one of this name here."""
        replaces = self._replaces(key) and self._renaming.database_key(key) not in self._others()
        answer = self._sent(kind, name, request.replace(overwrite=replaces))
        if answer is not None and all(each.replaced for each in answer.differences or ()):
            self._brought.add(key)
        return answer is not None

    def _replaces(self, key: DatabaseKey) -> bool:
        """Whether a catalog or database that differs here becomes what it is there."""
        return self._replace

    def _functions(self, key: DatabaseKey) -> None:
        self._bring_functions(key, self._source.functions(key))

    def _bring_functions(self, key: DatabaseKey, functions: Iterable[Function]) -> None:
        for each in functions:
            name = f"{key}.{each.functionName}"
            self._bring("functions", name, ImportRequest(functions=[self._renaming.function(each)]))

    def _roles(self) -> None:
        roles = self._source.roles()
        for each in roles:
            self._bring("roles", each.roleName or "", ImportRequest(roles=[each]))
        for each in roles:
            for member in self._source.members(each.roleName or ""):
                name = f"{member.principalName} of {each.roleName}"
                self._bring("members", name, ImportRequest(members=[member]))
        self._grants(self._source.global_grants())

    # --- tables -----------------------------------------------------------------------------------------------

    def _granted_tables(self, home: DatabaseKey) -> list[str]:
        """Tables whose grants are brought."""
        return [name for name in self._source.tables(home) if TableKey(*home, name) not in self._left]

    def _table(self, tasks: "Tasks", key: TableKey) -> None:
        try:
            parts = self._source.table(key)
            if parts is None:
                return
            if (why := self._unbringable(parts)) is not None:
                self._leave(key, why)
                return
            names = self._source.partition_names(parts)
            first, *others = list(batches(names)) or [[]]
            if not self._first_part(parts, first):
                return
            for some in others:
                tasks.submit(self._partitions, parts, some)
            self._write_ids(parts)
            if self._renaming.databases and parts.table.tableType in VIEWS:
                with self._lock:
                    self.report.remarks.append(Remark("views", str(key), TEXT_STAYS, serious=True))
        except (ExceptionStruct, TApplicationException) as error:
            self._leave(key, error_text(error))

    def _leave(self, key: TableKey, why: str) -> None:
        self._problem("tables", str(key), why)
        with self._lock:
            self._left.add(key)

    def _unbringable(self, parts: TableParts) -> str | None:
        return unbringable(self._source, parts)

    def _first_part(self, parts: TableParts, names: Sequence[str]) -> bool:
        """A table with some partitions, in one transaction. Returns whether it is here."""
        new = self._renaming.parts(parts)
        constraints = new.constraints
        request = self._with_partitions(parts, names)
        request.tables = [new.table]
        request.statistics = [*new.statistics, *(request.statistics or ())]
        request.constraints = constraints.replace(foreignKeys=None)
        brought = self._bring("tables", str(parts.key), request, partitions=len(names))
        with self._lock:
            if not brought:
                self._left.add(parts.key)
            elif constraints.foreignKeys:
                self._foreign_keys.append((parts.key, list(constraints.foreignKeys)))
        return brought

    def _partitions(self, parts: TableParts, names: Sequence[str]) -> None:
        try:
            request = self._with_partitions(parts, names)
        except (ExceptionStruct, TApplicationException) as error:
            self._problem("partitions", f"{parts.key} {names[0]} to {names[-1]}", error_text(error))
            return
        self._bring("", f"{parts.key} {names[0]} to {names[-1]}", request, partitions=len(names))

    def _with_partitions(self, parts: TableParts, names: Sequence[str]) -> ImportRequest:
        found = self._source.partitions(parts, names)
        there = {partition_name(parts, each) for each in found}
        if unread := sorted(set(names) - there):
            self._unread(parts.key, unread)
        statistics = self._source.partition_statistics(parts, names)
        partitions, columns, places = sharing_columns([_named(parts.key, self._renaming, each) for each in found])
        return ImportRequest(
            partitions=partitions,
            columns=columns,
            columnsOf=places,
            statistics=[
                self._renaming.statistics(each)
                for each in statistics
                if each.statsDesc is not None and each.statsDesc.partName in there  # or it was dropped meanwhile
            ],
        )

    def _unread(self, key: TableKey, names: Sequence[str]) -> None:
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        self._problem("partitions", f"{key} {names[0]}{more}", UNREAD)

    def _write_ids(self, parts: TableParts) -> None:
        """What a table's transactions have used isn't used again here; what was aborted stays invisible."""
        if not is_transactional(parts.table):
            return
        if self.report.positions.transaction is None:  # a new one here would have a number that was used there
            self._problem("write ids", str(parts.key), UNKNOWN_WRITE_IDS)
            return
        ids = self._source.write_ids(parts.key, self.report.positions)
        if ids is None or not ids.highest:
            return
        if len(ids.invisible) > _LONGEST_SNAPSHOT:
            text = f"{len(ids.invisible):,} write ids are open or aborted: compact the table there first"
            self._problem("write ids", str(parts.key), text)
            return
        key = self._renaming.table_key(parts.key)
        here = self._target.write_ids(key, self._target.positions())
        if here is not None and here.highest:
            # A table that has write ids keeps them: `repl_tbl_writeid_state` does nothing then.
            if (why := write_ids_differ(here, ids)) is not None:
                text = (
                    f"{why}. Was it written there since it was brought? Drop it here without its data, import it again"
                )
                self._problem("write ids", str(parts.key), text)
            return
        # Those that are open have no rows that may be seen by now. All of them count as aborted.
        aborted = ",".join(map(str, ids.invisible))
        state = f"{key.database}.{key.table}:{ids.highest}:{(1 << 63) - 1}::{aborted}"
        request = ReplTblWriteIdStateRequest(
            state, getpass.getuser(), socket.gethostname(), key.of_database.on_the_wire, key.table
        )
        self._target.call("repl_tbl_writeid_state", request)

    def _seed_transactions(self) -> None:
        """New transactions here get later numbers than those of the other metastore."""
        highest = self.report.positions.transaction
        if not highest:
            return
        here = self._target.positions().transaction or 0
        if here < highest:
            try:
                self._target.call("seed_txn_id", SeedTxnIdRequest(highest))
            except ExceptionStruct as error:
                self._problem("transactions", str(highest), error_text(error))

    # --- sending ----------------------------------------------------------------------------------------------

    def _grants(self, grants: Iterable[HiveObjectPrivilege]) -> list[HiveObjectPrivilege]:
        """Returns those that couldn't be brought."""
        left: list[HiveObjectPrivilege] = []
        for some in batches(list(grants), GRANTS_AT_ONCE):
            renamed = [self._renaming.grant(each) for each in some]
            try:
                self._note(self._target.call("lake_import", self._request(ImportRequest(grants=renamed))))
            except ExceptionStruct:  # which of them was it?
                for each, new in zip(some, renamed, strict=True):
                    if not self._bring("grants", _described(new), ImportRequest(grants=[new])):
                        left.append(each)
                continue
            self._progress.add("grants", len(some))
        return left

    def _request(self, request: ImportRequest) -> ImportRequest:
        return request.replace(overwrite=True) if self._replace else request

    def _bring(self, kind: str, name: str, request: ImportRequest, *, partitions: int = 0) -> bool:
        """Returns whether what the request has is here, if maybe in another form."""
        if self._sent(kind, name, self._request(request)) is None:
            return False
        if partitions:
            self._progress.add("partitions", partitions)
        return True

    def _sent(self, kind: str, name: str, request: ImportRequest) -> ImportResponse | None:
        """What became of it; None if it can't be brought."""
        try:
            answer: ImportResponse = self._target.call("lake_import", request)
        except (ExceptionStruct, TApplicationException) as error:
            self._problem(kind or "partitions", name, error_text(error))
            return None
        self._note(answer)
        if kind:
            self._progress.add(kind)
        return answer

    def _note(self, answer: ImportResponse) -> None:
        with self._lock:
            self.report.added += answer.added or 0
            self.report.same += answer.same or 0
            for each in answer.differences or ():
                if each.replaced:
                    self.report.replaced += 1
                else:
                    self.report.differing += 1
                if len(self.report.differences) < MAX_REPORTED:
                    self.report.differences.append(each)

    def _problem(self, kind: str, name: str, text: str) -> None:
        with self._lock:
            if len(self.report.problems) < MAX_REPORTED:
                self.report.problems.append(Remark(kind, name, text, serious=True))


class Tasks:
    """Tasks of a pool of threads, which may add others. Ends at the first one that raises."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._lock = threading.Condition()
        self._left = 0
        self._error: BaseException | None = None

    def submit(self, function: Callable[..., None], *args: Any) -> None:
        with self._lock:
            self._left += 1
        self._threads.submit(self._run, function, *args).add_done_callback(self._ended)

    def _run(self, function: Callable[..., None], *args: Any) -> None:
        if self._error is None:
            function(*args)

    def _ended(self, future: "Future[None]") -> None:
        with self._lock:
            self._left -= 1
            if self._error is None:
                self._error = future.exception()
            self._lock.notify_all()

    def wait(self) -> None:
        """Returns when all have ended. Raises what the first one raised that did."""
        try:
            with self._lock:
                while self._left:
                    self._lock.wait()
        except BaseException as error:  # somebody ends the command: what hasn't begun is passed over
            self._error = error
            raise
        if self._error is not None:
            raise self._error


def came_from(here: DatabaseKey, source: str) -> str:
    """Why a database isn't brought whose name another one has here."""
    return (
        f"{here} came from {source}, and isn't known to be this one: give this one another name by --rename. If both"
        " are one metastore, import from there first"
    )


def gone_to(database: Database) -> str | None:
    """Where a database has moved to from its metastore, in words; None if it lives there."""
    moved = (database.parameters or {}).get(MOVED_TO)
    return f"it was cut over to another metastore: {moved}" if moved else None


def unbringable(source: Source, parts: TableParts) -> str | None:
    """Why a table can't be brought; None if it can."""
    parameters = parts.table.parameters or {}
    if MOVED_FROM in parameters:
        return f"it was cut over to another metastore: {parameters.get('metadata_location')}"
    if source.timeline_position(parts):
        return "it has a timeline, which isn't brought yet: its files are known to the timeline alone"
    input_format = (parts.table.sd and parts.table.sd.inputFormat) or ""
    if parameters.get(PRIMARY_KEY, "").strip() and input_format.endswith("MapredParquetInputFormat"):
        return "it has a primary key of the lake's, and so a timeline, which isn't brought yet"
    return None


def is_transactional(table: Table) -> bool:
    """Whether a table has write ids."""
    return (table.parameters or {}).get("transactional", "").lower() == "true"


def write_ids_differ(here: WriteIds | None, there: WriteIds | None) -> str | None:
    """How the write ids of a table differ, in words; None if they don't."""
    one, other = here or WriteIds(0), there or WriteIds(0)
    if one.highest != other.highest:
        return f"the highest write id is {one.highest:,} here, and {other.highest:,} there"
    unseen, others = (sorted(set(a.invisible) - set(b.invisible)) for a, b in ((one, other), (other, one)))
    if unseen:
        return f"{len(unseen):,} write ids are unseen here and not there, the first is {unseen[0]:,}"
    return f"{len(others):,} write ids are unseen there and not here, the first is {others[0]:,}" if others else None


def _named(key: TableKey, renaming: Renaming, partition: Partition) -> Partition:
    """A partition under the names of its table here."""
    new = renaming.table_key(key)
    return renaming.partition(partition).replace(dbName=new.database, tableName=new.table, catName=new.catalog)


def sharing_columns(
    partitions: Sequence[Partition],
) -> tuple[list[Partition], list[list[FieldSchema]], list[int]]:
    """Partitions without their columns, the lists of these, each once, and for each partition the place of its list.

    Columns would be nine tenths of what is sent.
    """
    lists: list[list[FieldSchema]] = []
    by_id: dict[int, int] = {}
    by_content: dict[Any, int] = {}
    shared, places = [], []
    for each in partitions:
        columns = None if each.sd is None else each.sd.cols
        if each.sd is None or columns is None:
            shared.append(each)
            places.append(-1)
            continue
        place = by_id.get(id(columns))
        if place is None:
            content = tuple(map(_of_column, columns))
            place = by_id[id(columns)] = by_content.setdefault(content, len(lists))
            if place == len(lists):
                lists.append(columns)
        shared.append(each.replace(sd=each.sd.replace(cols=None)))
        places.append(place)
    return shared, lists, places


_of_column = attrgetter(*FieldSchema.field_names())


def partition_name(parts: TableParts, partition: Partition) -> str:
    """A partition's name, by its values."""
    keys = [each.name or "" for each in parts.table.partitionKeys or ()]
    return partition_names.make_name(keys, partition.values or [])


def _described(grant: HiveObjectPrivilege) -> str:
    of = grant.hiveObject
    place = ".".join(each for each in (of and of.dbName, of and of.objectName, of and of.columnName) if each)
    return f"{grant.grantInfo and grant.grantInfo.privilege} on {place or 'everything'} to {grant.principalName}"


def batches(items: Sequence[T], size: int = PARTITIONS_AT_ONCE) -> Iterator[list[T]]:
    """Items, so many at once; by default names of partitions, as many as are read at once."""
    return (list(items[begin : begin + size]) for begin in range(0, len(items), size))
