"""Iceberg's REST operations, done by a worker on behalf of a caller.

The worker decides about rights and names, and holds the one transaction of a commit. Files are read and written here,
between calls of the worker, so that no database connection waits for a storage.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    AlterDatabaseRequest,
    AlterTableRequest,
    CreateDatabaseRequest,
    Database,
    DropDatabaseRequest,
    EnvironmentContext,
    GetCatalogRequest,
    GetDatabaseRequest,
    GetTableRequest,
    GetTablesRequest,
    InvalidOperationException,
    NoSuchObjectException,
    PrincipalType,
    Table,
)
from lake.protocol.lake import (
    CommitTablesRequest,
    EngineFigures,
    IcebergNames,
    TableCommit,
    TableReference,
    TableReplaced,
    TablesNotCommitted,
)
from metastore.iceberg import hive_parameters, metadata, views
from metastore.iceberg.bounds import Bounds
from metastore.iceberg.errors import (
    WORKER_ERRORS,
    RestError,
    bad_request,
    conflict,
    exists,
    is_refusal,
    no_namespace,
    no_table,
    no_view,
    of_worker,
    unavailable,
)
from metastore.iceberg.files import MetadataFiles, next_location
from metastore.iceberg.metadata import Json, well_formed
from metastore.iceberg.repeats import Once
from metastore.iceberg.shown import exposed
from metastore.iceberg.shown.exposed import NothingShown, ShownTables
from metastore.iceberg.shown.footer_cache import Footers
from metastore.iceberg.shown.writing import Memory
from metastore.warehouse import Warehouse, WarehouseError

T = TypeVar("T")

DEFAULT_CATALOG = "hive"
MAX_TABLES = 1_000
"""Tables that one transaction changes."""

_TRIES = 4
"""Times that a commit is made again by itself, while what the client requires still holds."""

_LOCK_WAITS = (0.1, 0.2, 0.4, 0.8, 1.5)
"""Seconds between looks at a table that somebody else has locked."""

_TABLES_AT_ONCE = 500

_COMMENT, _LOCATION = "comment", "location"
_OWNER, _OWNER_TYPE = "hive.metastore.database.owner", "hive.metastore.database.owner-type"


@dataclass(frozen=True)
class Kind:
    """Tables or views: how they are told from others, and what belongs to them."""

    parameter: str
    word: str
    uuid_key: str
    missing: Callable[[str], RestError]
    as_stored: Callable[[Table | None, tuple[str, str, str], Json, str, set[str]], Table]


TABLE = Kind(hive_parameters.TABLE, "Table", "table-uuid", no_table, hive_parameters.table)
VIEW = Kind(hive_parameters.VIEW, "View", "view-uuid", no_view, hive_parameters.view)


@dataclass(frozen=True)
class Name:
    """The name of a table or view in a catalog, in lower case. `shown`: as the client gave it, for texts."""

    namespace: str
    name: str
    shown: str = field(compare=False)

    @classmethod
    def of(cls, namespace: str, name: str) -> Self:
        return cls(namespace.lower(), name.lower(), f"{namespace}.{name}")

    def __str__(self) -> str:
        return self.shown


@dataclass(frozen=True)
class Found:
    """A stored table or view, and where its metadata is; "" for one that is only shown as Iceberg's."""

    table: Table
    location: str

    @property
    def is_shown(self) -> bool:
        return not self.location


@dataclass(frozen=True)
class Change:
    """A commit of one table or view. `new`: its metadata from now on; None if nothing changes."""

    name: Name
    kind: Kind
    before: Found | None
    base: Json | None
    new: Json | None
    location: str


class Catalog:
    """One catalog, for one caller. Not thread-safe. Every method raises RestError."""

    def __init__(
        self,
        client: ThriftClient,
        name: str,
        files: MetadataFiles,
        warehouse: Warehouse,
        shown: ShownTables | NothingShown | None = None,
        once: Once | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        """`shown`: shows tables of other formats; None for one that remembers nothing of other calls.

        `once`: the request, if it may be sent again. `bounds`: which files are read and written; None if the worker
        decides about places.
        """
        self._bounds = bounds
        self._client = client
        self._name = name
        self._files = files
        self._warehouse = warehouse
        self._once = once
        self._shown = shown or ShownTables(client, warehouse, Memory(Footers(warehouse)), "")

    # -- catalogs and namespaces ------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises RestError (404) where there is no such catalog."""
        try:
            self._client.get_catalog(GetCatalogRequest(self._name))
        except NoSuchObjectException:
            raise RestError(404, "NotFoundException", f"Warehouse does not exist: {self._name}") from None
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=False) from error

    def namespaces(self) -> list[str]:
        """The names of all namespaces that the caller sees, in order."""
        found = sorted(self._read("get_databases", f"@{self._name}#*"))
        if not found:
            self.check()
        return found

    def namespace(self, name: str) -> dict[str, str]:
        """The properties of a namespace."""
        return _properties(self._database(name))

    def create_namespace(self, name: str, properties: Mapping[str, str]) -> dict[str, str]:
        """Returns the properties that the new namespace has."""
        _check_namespace(name)
        kept = dict(properties)
        request = CreateDatabaseRequest(
            databaseName=name,
            description=kept.pop(_COMMENT, None),
            locationUri=kept.pop(_LOCATION, None),
            ownerName=kept.pop(_OWNER, None),
            ownerType=_principal(kept.pop(_OWNER_TYPE, "USER")),
            parameters=kept,
            catalogName=self._name,
        )
        if self._once is not None:
            shorter = {"namespace": [name], "properties": {}}
            self._once.note({"namespace": [name], "properties": dict(properties)}, shorter)
        try:
            self._client.create_database_req(request)
        except AlreadyExistsException:
            raise exists(f"Namespace already exists: {name}") from None
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=True) from error
        return self.namespace(name)

    def drop_namespace(self, name: str) -> None:
        """Removes an empty namespace. Files in its directory stay: they may be of tables that weren't purged."""
        self._database(name)
        request = DropDatabaseRequest(
            name=name, catalogName=self._name, ignoreUnknownDb=False, deleteData=False, cascade=False
        )
        try:
            self._client.drop_database_req(request)
        except NoSuchObjectException:
            raise no_namespace(name) from None
        except InvalidOperationException as error:
            if "not empty" in str(error.message):
                raise RestError(409, "NamespaceNotEmptyException", f"Namespace {name} is not empty") from None
            raise of_worker(error, changes=True) from error
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=True) from error

    def update_namespace(self, name: str, removals: Sequence[str], updates: Mapping[str, str]) -> Json:
        """Changes properties. Returns which were updated, which removed, and which were missing."""
        if both := sorted(set(removals) & set(updates)):
            raise RestError(
                422,
                "UnprocessableEntityException",
                f"Invalid namespace update: cannot simultaneously set and remove {both}",
            )
        database = self._database(name)
        before = _properties(database)
        removed = [each for each in removals if each in before]
        changed = {key: each for key, each in before.items() if key not in removed} | dict(updates)
        database.description = changed.pop(_COMMENT, None)
        database.locationUri = changed.pop(_LOCATION, None) or database.locationUri
        database.ownerName = changed.pop(_OWNER, None) or database.ownerName
        database.ownerType = _principal(changed.pop(_OWNER_TYPE, "USER"))
        database.parameters = changed
        request = AlterDatabaseRequest(oldDbName=f"@{self._name}#{name}", newDb=database)
        missing = [each for each in removals if each not in before]
        answer = {"updated": sorted(updates), "removed": removed, "missing": missing}
        if self._once is not None:
            self._once.note(answer)
        try:
            self._client.alter_database_req(request)
        except NoSuchObjectException:
            raise no_namespace(name) from None
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=True) from error
        return answer

    # -- reading ----------------------------------------------------------------------------------------------

    def names(self, namespace: str, kind: Kind) -> list[str]:
        """The names of a namespace's tables or views, in order."""
        if not _is_plain(namespace):
            raise no_namespace(namespace)
        where = f"@{self._name}#{namespace}"
        try:
            found = self._client.lake_list_iceberg(where)
        except NoSuchObjectException:
            raise no_namespace(namespace) from None
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=False) from error
        if kind is VIEW:
            return list(found.views or ())
        if self._shown.by_default or found.exposed or found.exposing:
            return sorted({*(found.tables or ()), *self._shown_names(namespace, where, found)})
        return list(found.tables or ())

    def _shown_names(self, namespace: str, where: str, listed: IcebergNames) -> set[str]:
        """The names of the tables of other formats that are shown."""
        database = self._database(namespace)
        of_database = database.parameters or {}
        wanted = exposed.is_wanted(Table(), of_database, self._shown.by_default)
        names = self._read("get_all_tables", where) if wanted else listed.exposing or []
        found: set[str] = set()
        for start in range(0, len(names), _TABLES_AT_ONCE):
            request = GetTablesRequest(database.name, names[start : start + _TABLES_AT_ONCE], catName=self._name)
            tables = self._read("get_table_objects_by_name_req", request).tables or ()
            found |= {each.tableName for each in tables if self._shown.is_shown(each, of_database)}
        return found

    def find(self, name: Name, kind: Kind) -> Found:
        """A table or view. Raises RestError (404) for others, and for those that the caller doesn't see."""
        found = self._table(name)
        if found is not None and hive_parameters.is_iceberg(found, kind.parameter):
            location = (found.parameters or {})[hive_parameters.METADATA]
            self._check_bounds(location, (found.sd and found.sd.location) or "")
            return Found(found, location)
        if found is not None and kind is TABLE:
            of_database = self._database(name.namespace).parameters or {}
            if self._shown.is_shown(found, of_database):
                return Found(found, "")
            if exposed.is_wanted(found, of_database, False) and not _of_iceberg(found) and _word(found) == kind.word:
                raise no_table(f"{name}, as Iceberg: {exposed.ONLY}")
        raise kind.missing(str(name))

    def find_own(self, name: Name, kind: Kind) -> Found:
        """A table or view that may be changed here. Raises RestError: 404, 403 for a table that is only shown."""
        found = self.find(name, kind)
        if found.is_shown:
            raise exposed.refused(str(name))
        return found

    def show(self, found: Found) -> Found:
        """A table with its metadata file, which for a table that is only shown is made now."""
        if not found.is_shown:
            return found
        try:
            assert isinstance(self._shown, ShownTables)
            made = self._shown.show(found.table)
        except NoSuchObjectException:
            raise no_table(f"{found.table.dbName}.{found.table.tableName}") from None
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=False) from error
        self._files.keep(made.location, TABLE.uuid_key, made.content)
        return Found(found.table, made.location)

    def data_place(self, name: Name, table_id: int | None, *, shown: bool) -> tuple[str, bool] | None:
        """The directory of a table's data and whether the caller may write there; None for who may not read it whole.

        None, too, if not all in the directory is the table's own. `shown`: the table is only shown.
        """
        reference = TableReference(self._name, name.namespace, name.name, table_id)
        for write in (False,) if shown else (True, False):
            try:
                place = self._client.lake_data_place(reference, write, shown)
            except WORKER_ERRORS as error:
                refused = of_worker(error, changes=False)
                if refused.status >= 500:
                    raise refused from error
                continue
            return (place, write) if place else None
        return None

    def report(self, name: Name, found: Found, figures: EngineFigures) -> None:
        """Keeps what an engine reports of a table."""
        reference = TableReference(self._name, name.namespace, name.name, found.table.id)
        try:
            self._client.lake_report_figures(reference, figures)
        except (NoSuchObjectException, TableReplaced):
            raise no_table(str(name)) from None
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=True) from error

    def metadata(self, found: Found, kind: Kind) -> Json:
        return self._files.parsed(found.location, kind.uuid_key)

    # -- creating and changing --------------------------------------------------------------------------------

    def create_table(self, namespace: str, request: Json) -> Change:
        """Returns the new table; without a location one that is only staged."""
        with well_formed("the table"):
            name = Name.of(namespace, str(request["name"]))
            self._check_free(name, TABLE)
            location = self._new_location(name, request.get("location"))
            new = metadata.new_table(
                request["schema"],
                request.get("partition-spec"),
                request.get("write-order"),
                location,
                request.get("properties") or {},
            )
            change = Change(name, TABLE, None, None, new, next_location("", new, str(uuid.uuid4())))
        if request.get("stage-create"):
            try:
                self._ask([change], check_only=True)
            except TablesNotCommitted as refused:
                raise self._refusal(refused, [change]) from None
            self._check_bounds(location, location)
            if location.startswith("file:"):  # engines that write to a local directory don't make it
                self._files.make_directory(f"{location}/metadata")
            return replace(change, location="")
        self._commit(lambda: [change])
        return change

    def is_alone(self, staged: Change) -> bool:
        """Whether nothing else lies at the location of a table that is staged, nor below or around it."""
        try:
            self._ask([staged], check_only=True, alone=True)
        except TablesNotCommitted as refused:
            if refused.reason == "shared":
                return False
            raise self._refusal(refused, [staged]) from None
        return True

    def register(self, namespace: str, request: Json, kind: Kind) -> tuple[Json, str]:
        """Adds a table or view, or with `overwrite` replaces one, by a metadata file that exists."""
        with well_formed("the registration"):
            name, location = Name.of(namespace, str(request["name"])), str(request["metadata-location"])
        before = None
        if request.get("overwrite"):
            table = self._table(name)
            if table is not None and hive_parameters.is_iceberg(table, kind.parameter):
                before = Found(table, (table.parameters or {})[hive_parameters.METADATA])
        if before is None:
            self._check_free(name, kind)
        # Whether the caller may name the file is decided before it is read.
        self._check_bounds(location, location)
        probe = before.table if before is not None else self._probe(name)
        change = Change(name, kind, before, None, None, location)
        try:
            self._ask_all([_as_commit(probe, before)], places=[location], check_only=True)
            new = self._files.parsed(location, kind.uuid_key)
            with well_formed("the metadata"):
                self._check_bounds(location, str(new["location"]))
                stored = kind.as_stored(_table_of(before), self._full(name), new, location, set())
            self._ask_all([_as_commit(stored, before)])
        except TablesNotCommitted as refused:
            raise self._refusal(refused, [change]) from None
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=True) from error
        return new, location

    def commit(self, changes: Sequence[tuple[Name, Sequence[Json], Sequence[Json]]]) -> list[Change]:
        """Commits requirements and updates of several tables, all or none; those of one table in their order."""

        if len({name for name, _, _ in changes}) > MAX_TABLES:
            raise bad_request(f"a transaction changes at most {MAX_TABLES:,} tables")

        def plan() -> list[Change]:
            planned: dict[Name, Change] = {}
            with self._files.together():
                for name, requirements, updates in changes:
                    planned[name] = self._plan(planned.get(name), name, requirements, updates)
            return list(planned.values())

        return self._commit(plan)

    def _plan(self, so_far: Change | None, name: Name, requirements: Sequence[Json], updates: Sequence[Json]) -> Change:
        creates = any(each.get("type") == "assert-create" for each in requirements)
        if so_far is not None:
            before, base = so_far.before, so_far.base if so_far.new is None else so_far.new
        elif creates:
            found = self._table(name)
            if found is not None and _word(found) == TABLE.word:
                raise conflict("Requirement failed: table already exists")
            self._check_free(name, TABLE)
            before, base = None, None
        else:
            before = self.find_own(name, TABLE)
            base = self.metadata(before, TABLE)
        with well_formed("a requirement"):
            metadata.check_requirements(base, requirements)
        previous = None if before is None else before.location
        # Of several changes in one commit the first one notes the file before.
        new = metadata.apply(base, updates, previous if so_far is None or so_far.new is None else None)
        if new is None:
            return so_far or Change(name, TABLE, before, base, None, previous or "")
        location = next_location(previous or "", new, str(uuid.uuid4()))
        return Change(name, TABLE, before, so_far.base if so_far is not None else base, new, location)

    def drop(self, name: Name, kind: Kind, *, purge: bool = False) -> None:
        """Removes a table or view; with `purge` the directory of a table, too, as far as the server may delete it."""
        self.find_own(name, kind)
        context = EnvironmentContext({"purge_external": "true"}) if purge else EnvironmentContext({})
        where = f"@{self._name}#{name.namespace}"
        try:
            self._client.drop_table_with_environment_context(where, name.name, purge, context)
        except NoSuchObjectException:
            raise kind.missing(str(name)) from None
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=True) from error

    def rename(self, source: Name, target: Name, kind: Kind) -> None:
        """Gives a table or view another name; its files stay where they are."""
        found = self.find_own(source, kind)
        self._database(target.namespace)
        if (taken := self._table(target)) is not None:
            raise exists(f"Cannot rename {source} to {target}. {_word(taken)} already exists")
        request = AlterTableRequest(
            catName=self._name,
            dbName=source.namespace,
            tableName=source.name,
            table=found.table.replace(dbName=target.namespace, tableName=target.name),
            expectedParameterKey=hive_parameters.METADATA,
            expectedParameterValue=found.location,
        )
        try:
            self._client.alter_table_req(request)
        except InvalidOperationException as error:
            if "already exists" in str(error.message):
                raise exists(f"Cannot rename {source} to {target}. {kind.word} already exists") from None
            if "table not found" in str(error.message):
                raise kind.missing(str(source)) from None
            raise of_worker(error, changes=True) from error
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=True) from error

    # -- views ------------------------------------------------------------------------------------------------

    def create_view(self, namespace: str, request: Json) -> tuple[Json, str]:
        """Returns the metadata of the new view and its location."""
        with well_formed("the view"):
            name = Name.of(namespace, str(request["name"]))
            self._check_free(name, VIEW)
            location = self._new_location(name, request.get("location"))
            properties = request.get("properties") or {}
            new = views.new_view(request["schema"], request["view-version"], location, properties)
            change = Change(name, VIEW, None, None, new, next_location("", new, str(uuid.uuid4())))
        self._commit(lambda: [change])
        return new, change.location

    def replace_view(self, name: Name, requirements: Sequence[Json], updates: Sequence[Json]) -> Change:
        def plan() -> list[Change]:
            before = self.find(name, VIEW)
            base = self.metadata(before, VIEW)
            with well_formed("a requirement"):
                metadata.check_requirements(base, requirements, VIEW.uuid_key)
            new = views.apply(base, updates)
            location = before.location if new is None else next_location(before.location, new, str(uuid.uuid4()))
            return [Change(name, VIEW, before, base, new, location)]

        return self._commit(plan)[0]

    # -- the commit -------------------------------------------------------------------------------------------

    def _commit(self, plan: Callable[[], list[Change]]) -> list[Change]:
        """Makes changes in one transaction. Tries again while the plan, made from what is stored, allows it."""
        waits = iter(_LOCK_WAITS)
        for tried in range(1, _TRIES + len(_LOCK_WAITS) + 1):
            planned = plan()
            changes = [each for each in planned if each.new is not None]
            if not changes:
                return planned
            try:
                self._write_and_commit(changes)
            except TablesNotCommitted as refused:
                wait = next(waits, None) if refused.reason == "locked" else 0.0
                if refused.reason not in ("locked", "changed") or wait is None or tried >= _TRIES + len(_LOCK_WAITS):
                    raise self._refusal(refused, changes) from None
                time.sleep(wait)
                continue
            return planned
        raise AssertionError("the last try returns or raises")

    def _write_and_commit(self, changes: Sequence[Change]) -> None:
        """Raises TablesNotCommitted. Files that were written are removed only if certainly nothing refers to them."""
        for each in changes:
            assert each.new is not None
            self._check_bounds(each.location, str(each.new["location"]))
        self._ask(changes, check_only=True)  # rights and conflicts before anything is written
        written = [each.location for each in changes]
        try:
            for each in changes:
                assert each.new is not None
                self._files.write(each.location, each.new, each.kind.uuid_key)
        except RestError:
            self._files.remove(written)
            raise
        try:
            self._ask(changes)
        except TablesNotCommitted:
            self._files.remove(written)
            raise
        except WORKER_ERRORS as error:
            if is_refusal(error):
                self._files.remove(written)
            raise of_worker(error, changes=True) from error

    def _ask(self, changes: Sequence[Change], *, check_only: bool = False, alone: bool = False) -> None:
        commits = []
        for each in changes:
            assert each.new is not None
            gone = set((each.base or {}).get("properties") or ()) - set(each.new["properties"])
            with well_formed("the metadata"):
                stored = each.kind.as_stored(
                    _table_of(each.before), self._full(each.name), each.new, each.location, gone
                )
            commit = _as_commit(stored, each.before)
            if each.kind is TABLE and each.base is not None:
                commit.forgottenFiles = metadata.removed_files(each.base, each.new)
            commits.append(commit)
        self._ask_all(commits, check_only=check_only, alone=alone)

    def _ask_all(
        self, commits: list[TableCommit], *, check_only: bool = False, places: Sequence[str] = (), alone: bool = False
    ) -> None:
        """Raises TablesNotCommitted; for a check RestError, for a commit what the worker raises."""
        request = CommitTablesRequest(commits, checkOnly=check_only, places=list(places), alone=alone)
        try:
            self._client.lake_commit_tables(request)
        except TablesNotCommitted:
            raise
        except WORKER_ERRORS as error:
            if check_only:
                raise of_worker(error, changes=False) from error
            raise

    def _refusal(self, refused: TablesNotCommitted, changes: Sequence[Change]) -> RestError:
        change = changes[min(max(refused.index or 0, 0), len(changes) - 1)]
        match refused.reason:
            case "exists":
                return self._taken(change.name, change.kind)
            case "missing":
                return change.kind.missing(str(change.name))
            case "busy" | "storage":
                return unavailable(str(refused.message))
        return conflict(str(refused.message))

    # -- helpers ----------------------------------------------------------------------------------------------

    def _check_bounds(self, location: str, table: str) -> None:
        """Raises RestError (403) for a file that must not be read or written. `table`: the table's location."""
        if self._bounds is not None:
            self._bounds.check(location, table)

    def _read(self, method: str, *arguments: Any) -> Any:
        try:
            return self._client.call(method, *arguments)
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=False) from error

    def _database(self, name: str) -> Database:
        if not _is_plain(name):
            raise no_namespace(name)
        try:
            found: Database = self._client.get_database_req(GetDatabaseRequest(name=name, catalogName=self._name))
        except NoSuchObjectException:
            raise no_namespace(name) from None
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=False) from error
        return found

    def _table(self, name: Name) -> Table | None:
        if not _is_plain(name.namespace) or not _is_plain(name.name):
            return None
        request = GetTableRequest(dbName=name.namespace, tblName=name.name, catName=self._name)
        try:
            found: Table = self._client.get_table_req(request).table
        except NoSuchObjectException:
            return None
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=False) from error
        return found

    def _check_free(self, name: Name, kind: Kind) -> None:
        self._database(name.namespace)
        if not _is_plain(name.name):
            raise bad_request(f"{name.name[:100]!r} can't be a name: use letters, digits and _")
        if self._table(name) is not None:
            raise self._taken(name, kind)

    def _taken(self, name: Name, kind: Kind) -> RestError:
        found = self._table(name)
        word = kind.word if found is None else _word(found)
        return exists(
            f"{word} already exists: {name}" if word == kind.word else f"{word} with same name already exists: {name}"
        )

    def _new_location(self, name: Name, given: str | None) -> str:
        if given is not None:
            return given.rstrip("/") or "/"
        try:
            found = self._warehouse.table_location(self._database(name.namespace).locationUri or "", name.name)
        except WarehouseError as error:
            raise bad_request(str(error)) from None
        return found.replace("file:/", "file:///", 1) if not found.startswith("file://") else found

    def _probe(self, name: Name) -> Table:
        """A new table, for asking whether it could be made."""
        empty = {
            "table-uuid": "",
            "schemas": [{"schema-id": 0, "fields": []}],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "location": self._new_location(name, None),
        }
        return hive_parameters.table(None, self._full(name), empty, "", set())

    def _full(self, name: Name) -> tuple[str, str, str]:
        return self._name, name.namespace, name.name


def _table_of(found: Found | None) -> Table | None:
    return None if found is None else found.table


def _as_commit(stored: Table, before: Found | None) -> TableCommit:
    return TableCommit(stored, expectedMetadataLocation=None if before is None else before.location)


def _is_plain(name: str) -> bool:
    """Whether a name is one, and not an expression for others: of a catalog, of uncommitted partitions."""
    return bool(name) and not any(each in name for each in "@#\x1f/\0")


def _check_namespace(name: str) -> None:
    if not _is_plain(name):
        raise bad_request(f"{name[:100]!r} can't be a namespace: there is one level, of letters, digits and _")


def _of_iceberg(table: Table) -> bool:
    return (table.parameters or {}).get(hive_parameters.TYPE, "").upper() in (TABLE.parameter, VIEW.parameter)


def _word(found: Table) -> str:
    return "View" if (found.tableType or "") == "VIRTUAL_VIEW" else "Table"


def _principal(text: str) -> PrincipalType:
    try:
        return PrincipalType[text.upper()]
    except KeyError:
        raise bad_request(f"{_OWNER_TYPE} is USER, ROLE or GROUP, not {text[:40]!r}") from None


def _properties(database: Database) -> dict[str, str]:
    found = dict(database.parameters or {})
    for key, value in (
        (_LOCATION, database.locationUri),
        (_COMMENT, database.description),
        (_OWNER, database.ownerName),
        (_OWNER_TYPE, PrincipalType(database.ownerType).name if database.ownerName and database.ownerType else None),
    ):
        if value:
            found[key] = value
    return found
