"""Imports timelines that Hudi keeps in files: their instants and files become the table's timeline and snapshot here.

An import may be repeated: known instants are skipped. Imported completions are never rejected as conflicts, since they
have happened already.
"""

from collections.abc import Mapping, Sequence

from lake.protocol import hudi
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import (
    BeginInstantRequest,
    CompleteInstantRequest,
    DataFile,
    HudiInstant,
    ImportedInstant,
    ImportHudiRequest,
    ImportHudiResponse,
    InstantKey,
    TableReference,
)
from metastore.services.hudi import metadata_reader
from metastore.services.hudi.tables import PARTITION_FIELDS, TYPE, HudiTables
from metastore.services.instant_rules import schema_evolution
from metastore.services.instant_rules import states as rules
from metastore.services.table.service import TableService
from metastore.services.timeline.commit import DecodedCompletion, InstantCompletion
from metastore.services.timeline.lookup import lake_table
from metastore.services.timeline.queries import TimelineQueries
from metastore.services.timeline.service import TimelineService
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.partition import locations
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants
from metastore.store.timeline.instants import InstantRow
from metastore.warehouse import Warehouse
from metastore.warehouse.hudi_files import names as hudi_names
from metastore.warehouse.hudi_files.names import LogName
from metastore.warehouse.hudi_folder import HudiFolder

MAX_INSTANTS = 10_000
"""Instants that one call may import."""

AT_ONCE = 50
"""Instants that the server reads from a folder before it keeps them."""

# Of Hudi's properties, those that say how its metadata is to be understood.
_KEPT = (
    "hoodie.populate.meta.fields",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
)


class HudiImport:
    """Imports timelines from Hudi's files. Each instant takes one or two transactions of its own."""

    def __init__(
        self,
        database: Database,
        warehouse: Warehouse,
        tables: TableService,
        timeline: TimelineService,
        queries: TimelineQueries,
        completion: InstantCompletion,
        hudi_tables: HudiTables,
    ) -> None:
        self._database = database
        self._warehouse = warehouse
        self._tables = tables
        self._timeline = timeline
        self._queries = queries
        self._completion = completion
        self._hudi_tables = hudi_tables

    def import_instants(self, request: ImportHudiRequest, owner: str | None = None) -> ImportHudiResponse:
        """Imports what a client has read from a table's folder. Adds the table if it doesn't exist, for its `owner`.

        A table that is named by its id is not added. The first instant that can't be imported ends the call; those
        before it stay. Raises InvalidOperationException with its name, NoSuchObjectException, TableReplaced, and what
        `TableService.create` does.
        """
        given = request.instants or []
        if len(given) > MAX_INSTANTS:
            raise InvalidOperationException(f"import at most {MAX_INSTANTS} instants in one call, not {len(given)}")
        reference = request.table or TableReference()
        added = self._register(reference, request.location or "", request.properties or {}, owner)
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, reference)
        reference = reference.replace(id=row.id)  # each step has a transaction of its own
        if row.location != self._warehouse.qualify(request.location or ""):
            raise InvalidOperationException(f"{row.name} lies at {row.location}, not at {request.location}")
        if request.olderFiles:
            self._keep_older(reference, row, request.olderFiles)
        if request.folder is not None:
            self._forget(reference, row, request.folder)
        imported = [self._keep(reference, row, each) for each in given]
        return ImportHudiResponse(added, imported, self._queries.position(reference).position)

    def refresh(self, location: str | None, name: str | None) -> ImportHudiResponse:
        """Reads the folder of a table that is registered; `name` decides where several tables share a location.

        Raises NoSuchObjectException where none lies there, InvalidOperationException, WarehouseError.
        """
        table = chosen_table(self.tables_at(location), location, name)
        reference = TableReference(catalog=table.catalog, database=table.database, table=table.table)
        folder = HudiFolder(self._warehouse, location or "")
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, reference)
            reference = reference.replace(id=row.id)  # one that is dropped meanwhile is not added again
            position = instants.timeline(tx, row.id).position
            done = instants.listing(tx, row.id, states=[rules.COMPLETED], all_of_them=True)
        steps = folder.steps({(each.timestamp, each.begun_as) for each in done})
        answer = self.import_instants(
            ImportHudiRequest(
                table=reference,
                location=location,
                properties={},
                instants=[],
                folder=[InstantKey(each.timestamp, each.action) for each in folder.instants],
                olderFiles=folder.older_files() if folder.has_archive and not position else None,
            )
        )
        imported: list[ImportedInstant] = []
        for start in range(0, len(steps), AT_ONCE):
            some = [each for each in map(folder.to_thrift, steps[start : start + AT_ONCE]) if each is not None]
            answer = self.import_instants(ImportHudiRequest(reference, location, {}, some))
            imported += answer.instants or ()
        return answer.replace(instants=imported)

    def tables_at(self, location: str | None) -> list[TableName]:
        """The tables that lie at a location."""
        with self._database.read() as tx:
            return locations.tables_at(tx, self._warehouse.qualify(location or ""))

    # --- the table --------------------------------------------------------------------------------------------

    def _register(self, table: TableReference, location: str, properties: Mapping[str, str], owner: str | None) -> bool:
        """Adds a table that isn't there; whether this call did. Raises NoSuchObjectException if it was dropped."""
        try:
            self._tables.get(table.database, table.table, table.catalog)
            return False
        except NoSuchObjectException:
            if table.id is not None:
                raise NoSuchObjectException(
                    f"{table.database}.{table.table} (id {table.id}) was dropped: import without an id to add it again"
                ) from None
        fields = properties.get(PARTITION_FIELDS, "").split(",")
        self._hudi_tables.create(
            hudi.Table(
                tableName=table.table,
                dbName=table.database,
                owner=owner,
                location=location,
                tableType=properties.get(TYPE),
                partitionKeys=[
                    hudi.FieldSchema(name=field.partition(":")[0].strip(), type="string")
                    for field in fields
                    if field.strip()
                ],
                parameters={
                    **{name: properties[name] for name in _KEPT if name in properties},
                    schema_evolution.PROPERTY: schema_evolution.ANY,
                },
            ),
            owner,
        )
        return True

    # --- instants ---------------------------------------------------------------------------------------------

    def _keep(self, table: TableReference, row: TableRow, given: HudiInstant) -> ImportedInstant:
        action, state = rules.check_action(given.action), rules.check_state(given.state)
        timestamp = rules.check_timestamp(given.timestamp)
        with self._database.read() as tx:
            known = instants.find(tx, row.id, timestamp, action)
        answer = ImportedInstant(timestamp, given.completedAs or action, state, fresh=False)
        if known is not None and (known.state == rules.COMPLETED or known.state == state):
            return answer
        try:
            if state == rules.COMPLETED:
                self._complete(table, known, given)
            elif known is None:
                self._begin(table, row, given)
            elif rules.may_become(known.begun_as, known.state, state):
                self._timeline.transition(table, known.timestamp, action, state, None)
        except InvalidOperationException as error:
            with self._database.read() as tx:
                known = instants.find(tx, row.id, timestamp, action)
            if known is not None and known.state in (state, rules.COMPLETED):  # by somebody else at the same time
                return answer
            if action == rules.SAVEPOINT:  # of an instant from before what is known
                return answer.replace(remark=error.message)
            raise InvalidOperationException(f"{timestamp} {action}: {error.message}") from None
        return answer.replace(fresh=True)

    def _begin(self, table: TableReference, row: TableRow, given: HudiInstant) -> None:
        plan = metadata_reader.plan_of(row, given.action or "", given.metadata) or None
        self._timeline.begin(
            BeginInstantRequest(
                table, given.action, given.timestamp, rules.REQUESTED, metadata=given.metadata, plan=plan
            )
        )
        if given.state == rules.INFLIGHT:
            self._timeline.transition(table, given.timestamp, given.action, rules.INFLIGHT, None)

    def _complete(self, table: TableReference, known: InstantRow | None, given: HudiInstant) -> None:
        timestamp, action = given.timestamp, given.action
        if known is None:
            self._timeline.begin(BeginInstantRequest(table, action, timestamp, rules.INFLIGHT))
        elif known.state == rules.REQUESTED:
            self._timeline.transition(table, timestamp, action, rules.INFLIGHT, None)
        request = CompleteInstantRequest(
            table=table,
            timestamp=timestamp,
            action=action,
            newAction=given.completedAs,
            metadata=given.metadata or b"",
        )
        self._completion.complete([request], decode=_of_the_past)

    def _forget(self, table: TableReference, row: TableRow, folder: Sequence[InstantKey]) -> None:
        """Removes open instants and savepoints that Hudi has removed, so that its folder doesn't have them."""
        there = {(each.timestamp or "", each.action or "") for each in folder}
        last = max((timestamp for timestamp, _ in there), default="")
        with self._database.read() as tx:
            pending = instants.listing(tx, row.id, states=[rules.REQUESTED, rules.INFLIGHT], up_to=last)
            saved = instants.listing(tx, row.id, actions=[rules.SAVEPOINT], states=[rules.COMPLETED], up_to=last)
        for each in (*pending, *saved):
            if (each.timestamp, each.begun_as) not in there:
                self._timeline.delete(table, each.timestamp, each.begun_as)

    # --- what is older than the timeline ----------------------------------------------------------------------

    def _keep_older(self, table: TableReference, row: TableRow, sizes: Mapping[str, int]) -> None:
        """Makes files from before the timeline's first instant one commit, unless something is known already.

        Hudi has archived the instants that wrote them, and takes them all for committed; of each file group the latest
        slice is what it reads.
        """
        with self._database.read() as tx:
            if instants.has_timeline(tx, row.id) and instants.timeline(tx, row.id).position:
                return
        files = _latest(row, sizes)
        if not files:
            return
        timestamp = max(each.slice or "" for each in files)
        self._timeline.begin(BeginInstantRequest(table, rules.COMMIT, timestamp, rules.INFLIGHT))
        directories = {each.partition or "": (each.path or "").rpartition("/")[0] for each in files}
        request = CompleteInstantRequest(table=table, timestamp=timestamp, action=rules.COMMIT, added=files)
        self._completion.complete([request], decode=lambda *_: DecodedCompletion(request, directories))


def _of_the_past(
    tx: Transaction, row: TableRow, instant: InstantRow, request: CompleteInstantRequest
) -> DecodedCompletion:
    """What metadata says of an instant that nobody can be in the way of any more."""
    found = metadata_reader.decode(tx, row, instant, request)
    return found._replace(request=found.request.replace(readPosition=instants.timeline(tx, row.id).position))


def _latest(row: TableRow, sizes: Mapping[str, int]) -> list[DataFile]:
    """The files of the latest slice of each file group, among some that are given by their paths."""
    parsed = {path: hudi_names.parse(path.rpartition("/")[2]) for path in sizes}
    slices: dict[tuple[str, str], str] = {}
    for path, name in parsed.items():
        if name is not None and not isinstance(name, LogName):
            group = path.rpartition("/")[0], name.file_id
            slices[group] = max(slices.get(group, ""), name.instant)
    files = []
    for path, name in parsed.items():
        if name is None:
            continue
        directory, is_log = path.rpartition("/")[0], isinstance(name, LogName)
        slice = slices.get((directory, name.file_id), name.instant)
        # A log file is of the slice after whose instant it is named, or was written to it later.
        if name.instant < slice:
            continue
        files.append(
            DataFile(
                partition=metadata_reader.partition_name(row, directory),
                fileGroup=name.file_id,
                slice=slice,
                path=path,
                kind="log" if is_log else "base",
                size=sizes[path],
                version=name.version if isinstance(name, LogName) else None,
            )
        )
    return files


def chosen_table(found: Sequence[TableName], location: str | None, name: str | None) -> TableName:
    """The table that is meant. Raises NoSuchObjectException, InvalidOperationException if several may be."""
    if not found:
        raise NoSuchObjectException(f"no table lies at {location}: import it, or register it, first")
    named = [each for each in found if each.table == (name or "").lower()]
    if len(named) == 1:
        return named[0]
    if len(found) > 1:
        raise InvalidOperationException(f"several tables lie at {location}: give the name of the one that is meant")
    return found[0]
