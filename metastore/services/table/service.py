"""Hive's calls for tables: create, read, list, alter, drop, truncate."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import NamedTuple

from lake.protocol.clock import now_seconds
from lake.protocol.codec import binary, splice
from lake.protocol.events.types import EventType
from lake.protocol.formats.column_ids import COLUMN_IDS
from lake.protocol.formats.table_identity import ABSENT_PARAMETER, EXPECTED_PARAMETER
from lake.protocol.hive import (
    AlreadyExistsException,
    FieldSchema,
    InvalidObjectException,
    InvalidOperationException,
    LockType,
    MetaException,
    NoSuchObjectException,
    PrincipalPrivilegeSet,
    Table,
    TableMeta,
    UnknownDBException,
    UnknownTableException,
)
from lake.protocol.lake import IcebergNames, TableCommit, TableReference, TableReplaced, TablesNotCommitted
from metastore.services.access.locations import AllowedLocations
from metastore.services.access.privileges import keep_creators
from metastore.services.commit_flag.policy import ReadinessProperties
from metastore.services.events.recorder import Events, PartitionChange, kept_before, kept_changed
from metastore.services.files.deletable import Deletable
from metastore.services.files.new_directories import new_directories
from metastore.services.files.relocator import Mover
from metastore.services.files.staged_files import Publisher
from metastore.services.filters import table_filter
from metastore.services.instant_rules import engine_writes, hive_drops
from metastore.services.instant_rules.column_ids import keep_column_ids
from metastore.services.instant_rules.keyed_tables import (
    check_change,
    definition,
    end_earlier_snapshots,
    is_keyed,
    names_key,
    say_features,
)
from metastore.services.instant_rules.paths import base_of, is_of_instant
from metastore.services.instant_rules.table_properties import check_timeline_properties
from metastore.services.model import basic_statistics, hive_objects, partition_codec, patterns, view_sources
from metastore.services.model import names as given
from metastore.services.model.type_compatibility import incompatible, incompatible_by_name
from metastore.services.model.validation import check_columns, check_length, is_table_name, wrong_type
from metastore.services.table import transactional_property
from metastore.store import Conflict, Database, DatabaseBusy
from metastore.store.access import request_keys
from metastore.store.catalog import catalogs, databases
from metastore.store.catalog.databases import DatabaseRow, RowLock
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import DatabaseName, TableName
from metastore.store.files import moves
from metastore.store.files.moves import Move
from metastore.store.partition import partitions
from metastore.store.snapshot import data_files
from metastore.store.snapshot.data_files import WHOLE_TABLE
from metastore.store.statistics import statistics
from metastore.store.table import (
    altered_tables,
    constraints,
    descriptors,
    former_positions,
    iceberg_names,
    table_indexes,
    tables,
)
from metastore.store.table.table_indexes import IndexRow
from metastore.store.table.tables import LockedTable, TableRow
from metastore.store.timeline import instants
from metastore.store.transactions import locks, written_tables
from metastore.warehouse import StorageFailed, Warehouse, WarehouseError

DDL_TIME = "transient_lastDdlTime"
CASCADE = "CASCADE"
_MANY_PARTITIONS = 1_000  # deleting the directories of so many takes a tenth of a second
EXPECTED_KEY, EXPECTED_VALUE = "expected_parameter_key", "expected_parameter_value"
PURGE_EXTERNAL = "purge_external"
"""A key of a drop's context, by which the data of an external Iceberg table are deleted with it."""

_METADATA_FILES = ".metadata.json", ".metadata.json.gz"
EXPOSE = "iceberg.expose"
METADATA_LOCATION, PREVIOUS_METADATA_LOCATION = "metadata_location", "previous_metadata_location"


# What a caller wants done in the transaction that creates a table, given the table's id.
Also = Callable[[Transaction, int], None]


class TableService:
    """Hive's calls for tables. Each writing call is one transaction."""

    def __init__(
        self,
        database: Database,
        warehouse: Warehouse,
        mover: Mover,
        publisher: Publisher,
        events: Events,
        deletable: Deletable,
        *,
        allowed: AllowedLocations | None = None,
        incompatible_types_allowed: bool = False,
    ) -> None:
        """`allowed`: directories besides the warehouse's for whose tables clients may get credentials.

        `incompatible_types_allowed`: a column may get a type that its stored values can't be read as.
        """
        self._database = database
        self._warehouse = warehouse
        self._mover = mover
        self._publisher = publisher
        self._events = events
        self._deletable = deletable
        self._allowed = allowed or AllowedLocations([])
        self._incompatible_types_allowed = incompatible_types_allowed

    # --- creating ---------------------------------------------------------------------------------------------

    def create(self, table: Table, context: Mapping[str, str], also: Also | None = None) -> None:
        """Adds a table, makes its directory, and calls `also` in the same transaction.

        Raises InvalidObjectException (bad name, bad type, no such database), AlreadyExistsException, MetaException.
        """
        new = self._new(table)
        with new_directories(self._warehouse, AlreadyExistsException(_exists(table))) as made:
            self._make(new, context, made)
            with self._database.write() as tx:
                table_id = self._add(tx, new, made)
                if also is not None:
                    also(tx, table_id)

    def _new(self, table: Table) -> "_New":
        """Checks a new table and completes its definition. Raises as `create`."""
        name = _check_new(table)
        table = table.replace(
            parameters={key: value for key, value in (table.parameters or {}).items() if key != COLUMN_IDS}
        )
        assert table.parameters is not None
        transactional_property.settle_new(table.parameters, external=table.tableType == hive_objects.EXTERNAL)
        with self._database.read() as tx:
            home = databases.find(tx, name.of_database)
            if home is None:
                raise InvalidObjectException(given.plain(table.dbName))
            if tables.find(tx, name) is not None:
                raise AlreadyExistsException(_exists(table))
            _check_complete(table)
            value = hive_objects.table(table)
            value.dbName, value.catName = name.database, name.catalog
            value.tableType = table_type(value)
            assert value.sd is not None and value.parameters is not None
            say_features(value)
            if (wrong := unreadable_properties(value)) is not None:
                raise InvalidObjectException(wrong)
            view = table.tableType == hive_objects.VIEW
            if not view:
                value.sd.location = (
                    self._warehouse.qualify(value.sd.location)
                    if value.sd.location
                    else self._warehouse.table_location(_usual_place(home, value), name.table)
                )
                if self._warehouse.parent(value.sd.location) is None:
                    raise InvalidObjectException(f"{name.table} location must not be root path")
                if is_of_instant(value.sd.location):
                    raise InvalidObjectException(_of_instant(name))
            settled = view or self._mover.is_settled(tx, [value.sd.location])
        return _New(name, value, given.plain(table.dbName), view, settled, table.privileges)

    def _make(self, new: "_New", context: Mapping[str, str], made: set[str]) -> None:
        """Makes a new table's directory before its transaction, and counts what lies there. Fills `made`."""
        assert new.value.sd is not None
        if not new.settled:
            self._mover.settle([new.value.sd.location])
        if not new.view:
            self._warehouse.make_directories([new.value.sd.location or ""], made)
        self._complete_new(new.value, context, made=bool(made), view=new.view)

    def _add(self, tx: Transaction, new: "_New", made: set[str]) -> int:
        """Stores a new table whose directory is there, and returns its id. Raises InvalidObjectException, Conflict."""
        value = new.value
        assert value.sd is not None
        home = databases.find(tx, new.name.of_database, RowLock.SHARED)
        if home is None:
            raise InvalidObjectException(new.shown_database)
        table_id = tables.add(tx, home.id, hive_objects.table_values(value, _keep_descriptor(tx, value)))
        if value.sd.location and not new.view:
            self._deletable.hold(tx, [value.sd.location])
            # Once more: a table that had the name in the meantime took the directory along when it was dropped.
            self._mover.settle_within(tx, [value.sd.location])
            self._warehouse.make_directories([value.sd.location], made)
            self._deletable.record(tx, value.sd.location, made=bool(made))
        keep_creators(tx, table_id, new.privileges)
        self._events.table(tx, EventType.CREATE_TABLE, None, value.replace(id=table_id))
        return table_id

    def _complete_new(self, value: Table, context: Mapping[str, str], *, made: bool, view: bool) -> None:
        assert value.sd is not None and value.parameters is not None
        value.createTime = now_seconds()
        if not view and not value.partitionKeys:
            basic_statistics.refresh(
                value.parameters,
                self._warehouse,
                value.sd.location,
                context,
                made_directory=made,
                force=False,
            )
        value.parameters.setdefault(DDL_TIME, str(value.createTime))

    # --- reading ----------------------------------------------------------------------------------------------

    def get(self, database: str | None, table: str | None, catalog: str | None = None) -> Table:
        """One table. Raises NoSuchObjectException."""
        name = given.decorated_name(database, table, catalog)
        with self._database.at_once() as tx:
            row = tables.find_at_once(tx, given.base(name))
        if row is None:
            raise _not_found(database, table)
        return hive_objects.table_of(replace(row, name=name))

    @staticmethod
    def as_asked(row: TableRow, database: str | None, table: str | None, catalog: str | None = None) -> Table | None:
        """What `get` returns for a row; None for a name that the table hasn't, which may be another table's by now."""
        asked = given.decorated_name(database, table, catalog)
        return hive_objects.table_of(replace(row, name=asked)) if given.base(asked) == row.name else None

    def row(
        self,
        tx: Transaction,
        database: str | None,
        table: str | None,
        catalog: str | None = None,
        lock: RowLock = RowLock.NOT,
    ) -> TableRow:
        """One table's row, in a transaction of the caller's, under the name by which it was asked for.

        `lock`: other than NOT for a caller that is about to write.

        Raises NoSuchObjectException, InvalidOperationException for a writer
        who gives a decorated name.
        """
        name = (given.decorated_name if lock is RowLock.NOT else given.table_name)(database, table, catalog)
        row = tables.find(tx, given.base(name), lock)
        if row is None:
            raise _not_found(database, table)
        return replace(row, name=name)

    def row_of(self, tx: Transaction, table: TableReference | None, lock: RowLock = RowLock.NOT) -> TableRow:
        """One table's row by the name in a reference, as `row`.

        Raises TableReplaced, too, if the reference has the id of another table than the one with this name.
        """
        named = table or TableReference()
        row = self.row(tx, named.database, named.table, named.catalog, lock)
        if named.id is not None and named.id != row.id:
            raise TableReplaced(
                f"{row.name} is another table (id {row.id}) than the one that was read (id {named.id}): that one was"
                " dropped or renamed. Read the schema of the table again",
                row.id,
            )
        return row

    def get_many(self, database: str | None, wanted: Sequence[str] | None, catalog: str | None = None) -> list[Table]:
        """Those of the named tables that exist, each once. Raises UnknownDBException, InvalidOperationException."""
        if not database:
            raise UnknownDBException("DB name is null or empty")
        if wanted is None:
            raise InvalidOperationException(f"{given.plain(database)} cannot find null tables")
        if not wanted:  # Hive doesn't even look whether there is such a database
            return []
        name = given.database_name(database, catalog)
        asked = sorted({given.decorated_name(database, table, catalog) for table in wanted})
        with self._database.read() as tx:
            if databases.find(tx, name) is None:
                raise UnknownDBException(f"Could not find database {given.plain(database)}")
            rows = tables.find_many(tx, name, sorted({given.base(each).table for each in asked}))
        found = {row.name: row for row in rows}
        rows = [replace(found[own], name=each) for each in asked if (own := given.base(each)) in found]
        return [hive_objects.table_of(row) for row in rows]

    def ids(self, names: Collection[TableName]) -> dict[TableName, int]:
        """The ids of those of the named tables that exist."""
        with self._database.read() as tx:
            return tables.ids_of(tx, names)

    def matching(
        self, databases_pattern: str | None, pattern: str, wanted: Sequence[str] | None, catalog: str | None = None
    ) -> list[Table]:
        """A catalog's tables whose databases and names match, ordered by database and name.

        `wanted`: only tables with one of these names, if there are any.

        Raises UnknownDBException if nothing matches, and no database is called by the pattern itself.
        """
        given_catalog, asked = given.split_database(databases_pattern)
        if not asked:
            raise UnknownDBException("DB name is null or empty")
        home = given.normalized(catalog or given_catalog or given.DEFAULT_CATALOG)
        names = patterns.like_patterns(pattern)
        own = None if wanted is None else sorted(map(given.normalized, wanted))
        with self._database.read() as tx:
            one = patterns.only_name(asked)
            # It is looked for also where tables are found: how long it takes must not tell whether there are any.
            exists = one is not None and databases.find(tx, DatabaseName(home, one)) is not None
            if one is not None and own is None:  # a case of its own, because its reply can be cached
                database = DatabaseName(home, one)
                rows = tables.find_many(tx, database, tables.names(tx, database, patterns=names))
            else:
                rows = tables.find_matching(tx, home, patterns.like_patterns(asked), names, own)
            if not rows and not exists:
                raise UnknownDBException(f"Could not find database {asked}")
        return [hive_objects.table_of(row) for row in rows]

    def names(self, database: str | None, pattern: str | None, table_type: str | None = None) -> list[str]:
        """Names of a database's tables in order; empty where there is no such database."""
        with self._database.read() as tx:
            return tables.names(
                tx,
                given.database_name(database),
                patterns=patterns.like_patterns(pattern),
                table_type=table_type,
            )

    def names_by_filter(self, database: str | None, text: str | None, limit: int | None) -> list[str]:
        """Names of the tables that a filter selects (see `filters.table_filter`), the first `limit` of them.

        Raises UnknownDBException, InvalidOperationException for an invalid filter.
        """
        if "" in (split := given.split_database(database)) or split[1] is None:
            raise UnknownDBException("DB name is null or empty")
        name = given.database_name(database)
        with self._database.read() as tx:
            condition = table_filter.parse(text)
            return tables.names(tx, name, condition=condition, limit=limit)

    def iceberg_names(self, database: str | None) -> IcebergNames:
        """The names that Iceberg's REST catalog may list. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            found = iceberg_names.find(tx, given.database_name(database))
        if found is None:
            raise NoSuchObjectException(given.plain(database))
        of_database = hive_objects.database_of(found.database).parameters or {}
        exposed = of_database.get(EXPOSE, "").lower() == "true"
        return IcebergNames(found.tables, found.views, found.exposing, exposed)

    def summaries(
        self, database_pattern: str | None, table_pattern: str | None, types: Sequence[str] | None
    ) -> list[TableMeta]:
        """Name, type, owner, kind of owner and comment of matching tables of all databases."""
        catalog, pattern = given.split_database(database_pattern)
        with self._database.read() as tx:
            found = tables.summaries(
                tx,
                (catalog or given.DEFAULT_CATALOG).lower(),
                patterns.like_patterns(pattern),
                patterns.like_patterns(table_pattern),
                types or None,
            )
        return [
            TableMeta(
                dbName=s.name.database,
                tableName=s.name.table,
                tableType=s.type,
                comments=s.comment,
                catName=s.name.catalog,
                ownerName=s.owner,
                ownerType=binary.decode(Table, s.body).ownerType,
            )
            for s in found
        ]

    def fields(self, database: str | None, table: str | None, catalog: str | None = None) -> list[FieldSchema]:
        """A table's columns without its partition keys. Raises UnknownTableException, UnknownDBException."""
        value = self._described(database, table, catalog)
        assert value.sd is not None
        return value.sd.cols or []

    def schema(self, database: str | None, table: str | None, catalog: str | None = None) -> list[FieldSchema]:
        """A table's columns, then its partition keys. Raises UnknownTableException, UnknownDBException."""
        value = self._described(database, table, catalog)
        assert value.sd is not None
        return [*(value.sd.cols or []), *(value.partitionKeys or [])]

    def described_row(
        self, tx: Transaction, database: str | None, table: str | None, lock: RowLock = RowLock.NOT
    ) -> TableRow:
        """One table's row, for calls that raise UnknownTableException if there's none."""
        try:
            return self.row(tx, database, table, lock=lock)
        except NoSuchObjectException:
            raise UnknownTableException(f"Table: {table} is not found.") from None

    def _described(self, database: str | None, table: str | None, catalog: str | None) -> Table:
        """A table for `describe t` or `describe t.column`: what follows a dot in the name is not the table's."""
        base = table.partition(".")[0] if table is not None else None
        try:
            return self.get(database, base, catalog)
        except NoSuchObjectException as error:
            raise UnknownTableException(error.message) from None

    # --- altering ---------------------------------------------------------------------------------------------

    def alter(
        self,
        database: str | None,
        table: str | None,
        new: Table | None,
        context: Mapping[str, str],
        *,
        cascade: bool = False,
        catalog: str | None = None,
        incompatible_types_allowed: bool = False,
    ) -> None:
        """Replaces a table's definition. Another name or database in it renames the table.

        A rename moves the data of a managed table in its default location. `cascade`: changes the columns of all
        partitions, too. `incompatible_types_allowed`: allows any change of column types in this call, whatever the
        setting for all. Raises InvalidOperationException, MetaException.
        """
        old_name, new_name = _names_of_alteration(database, table, new, catalog)
        assert new is not None
        cascade = cascade or hive_objects.is_true(context.get(CASCADE))
        move: Move | None = None
        try:
            with self._database.write() as tx:
                # The database is locked before its tables, as in a drop of the database.
                home = databases.find(tx, new_name.of_database, RowLock.SHARED) if new_name != old_name else None
                found = tables.find_to_alter(tx, old_name)
                if found is None:
                    raise InvalidOperationException(f"{given.plain(database)}.{table} table not found")
                request_keys.claim(tx)
                move = self._alter_found(
                    tx, found, new, new_name, home, context, cascade=cascade, any_type=incompatible_types_allowed
                )
        except Conflict:
            raise InvalidOperationException(f"new table {new_name.database}.{new_name.table} already exists") from None
        if move is not None:
            self._mover.carry_out([move])

    def _alter_found(
        self,
        tx: Transaction,
        found: LockedTable,
        new: Table,
        new_name: TableName,
        home: DatabaseRow | None,
        context: Mapping[str, str],
        *,
        cascade: bool = False,
        any_type: bool = False,
        last: bool = True,
    ) -> Move | None:
        """Alters a locked table. Returns the move of its data that is to be carried out after the commit.

        `home`: the database of a renamed table. `last`: nothing else follows in the transaction. Raises as `alter`, and
        Conflict if the new name is taken.
        """
        value = hive_objects.table(new)
        value.dbName, value.catName = new_name.database, new_name.catalog
        assert value.sd is not None and value.parameters is not None
        if not (new.parameters or {}).get(DDL_TIME):
            value.parameters[DDL_TIME] = str(now_seconds())
        move: Move | None = None
        row = found.row
        old_name = row.name
        old = hive_objects.table_of(row)
        body = splice.descriptor_body(value.sd)
        same = body == row.descriptor
        if same:  # what follows need not compare it, column by column
            assert old.sd is not None
            value.sd = old.sd.replace(location=value.sd.location)
        _check_changed(new, same_columns=same)
        self._check_altered(row, old, new, value, context)
        if not same and not any_type:
            self._check_types(tx, row, old, value)
        _check_key(tx, row, old, value)
        if engine_writes.only_reports(old, value):
            places = {WHOLE_TABLE: value.sd.location}
            engine_writes.check_places(tx, row, self._warehouse, places, new=False)
        value = keep_column_ids(tx, row, old, value)
        assert value.sd is not None and value.parameters is not None
        database_id = row.database_id
        if new_name != old_name:
            former_positions.keep(tx, row.id)
            database_id, move = self._rename(tx, row, old, value, new_name, home)
            written_tables.rename_table(tx, row.name, new_name)
        if move is None:
            self._relocate(tx, row, value)
            self._refresh_statistics(old, value, context, renamed=new_name != old_name)
        if not same:
            check_columns(value.sd.cols)
            self._change_columns(tx, row, old, value, cascade)
        descriptor = row.descriptor_id if same else descriptors.keep(tx, [body])[body]
        values = hive_objects.table_values(value, descriptor)
        value.tableName = new_name.table
        self._events.table(tx, EventType.ALTER_TABLE, old, value.replace(id=row.id))
        if new_name == old_name and last:
            tables.alter(tx, found, database_id, values, body, altered_tables.record)
        else:
            tables.change(tx, row.id, database_id, values)
        return move

    def data_place(self, table: TableReference) -> str:
        """The directory in which all is a table's own; empty if something else lies at it, below or around it.

        Empty, too, for one outside of the operator's directories: owners place their tables anywhere, and files may lie
        there that the metastore doesn't know.

        Raises NoSuchObjectException, TableReplaced, MetaException if the storage fails.
        """
        try:
            with self._database.read() as tx:
                row = self.row_of(tx, table)
                if not row.location or row.type == hive_objects.VIEW:
                    return ""
                place = base_of(row.location)
                return place if self._is_alone(tx, place, row.name.database, row.id) else ""
        except WarehouseError as error:
            raise MetaException(str(error)) from None

    def commit(self, commits: Sequence[TableCommit], *, check_only: bool = False, alone: bool = False) -> None:
        """Creates and alters several tables or views in one transaction: all of them, or none.

        `check_only`: says what would be refused by what is stored now, and changes nothing. `alone`: a check refuses
        new tables where something else lies, too. Raises TablesNotCommitted, and what `create` and `alter` raise.
        """
        try:
            self._commit(commits, check_only=check_only, alone=alone)
        except DatabaseBusy as error:
            raise TablesNotCommitted(str(error), "busy") from error
        except StorageFailed as error:  # before the transaction, or in it
            raise TablesNotCommitted(str(error), "storage") from error

    def _commit(self, commits: Sequence[TableCommit], *, check_only: bool, alone: bool) -> None:
        names = [_name_of(each) for each in commits]
        if len(set(names)) < len(names):
            raise InvalidOperationException("a table is named twice: send all changes of a table as one commit")
        new: dict[int, _New] = {}
        for index, each in enumerate(commits):
            if each.expectedMetadataLocation is None:
                try:
                    new[index] = self._new(_definition(each))
                except AlreadyExistsException as error:
                    raise TablesNotCommitted(error.message, "exists", index) from None
        in_order = sorted(range(len(commits)), key=names.__getitem__)  # so that two commits don't wait for each other
        if check_only:
            with self._database.read() as tx:
                for index in in_order:
                    if index not in new:
                        _check_commit(tx, index, commits[index], tables.find(tx, names[index]))
                    elif alone:
                        self._check_alone(tx, index, new[index])
            return
        context = {basic_statistics.DO_NOT_UPDATE: "true"}
        with ExitStack() as directories:
            made: dict[int, set[str]] = {}
            for index, each_new in new.items():
                taken = TablesNotCommitted(_exists(_definition(commits[index])), "exists", index)
                made[index] = directories.enter_context(new_directories(self._warehouse, taken))
                self._make(each_new, context, made[index])
            with self._database.write() as tx:
                for home in sorted({names[index].of_database for index in new}):  # before their tables, as in a drop
                    databases.find(tx, home, RowLock.SHARED)
                single = len(commits) == 1
                if not single:
                    request_keys.claim(tx)
                for index in in_order:
                    if index in new:
                        table_id = self._add_or_refuse(tx, index, commits[index], new[index], made[index])
                        if single:
                            request_keys.claim(tx, table_id)
                        continue
                    found = tables.find_to_alter(tx, names[index])
                    _check_commit(tx, index, commits[index], None if found is None else found.row)
                    assert found is not None
                    if single:  # before the alteration, which may be put off until the commit
                        request_keys.claim(tx, found.row.id)
                    self._alter_found(tx, found, _definition(commits[index]), names[index], None, context, last=single)
                    data_files.schedule_deletion(tx, found.row.id, self._forgotten(commits[index]))

    def _check_alone(self, tx: Transaction, index: int, new: "_New") -> None:
        assert new.value.sd is not None
        place = new.value.sd.location
        if not place or not self._is_alone(tx, base_of(place), new.name.database, 0):
            raise TablesNotCommitted(f"{place} isn't known to be the table's alone", "shared", index)

    def _is_alone(self, tx: Transaction, place: str, database: str, table_id: int) -> bool:
        """Whether the operator's settings have a directory around a place, and nothing else than a table lies there.

        Directories of a role don't count: whoever may read or write the table gets what is given for the place.
        """
        outside = self._warehouse.outside_roots(self._warehouse.true_locations([place]).values())
        if outside and not self._allowed.include(place, database, ()):
            return False
        return self._deletable.overlapping(tx, place, besides=table_id) is None

    def _forgotten(self, commit: TableCommit) -> set[str]:
        """The paths of the metadata files below a table's location that the table needs no more.

        The table's metadata names them, so they may be anybody's: the deletion spares what lies with other tables.
        """
        definition = _definition(commit)
        found = set()
        for each in commit.forgottenFiles or ():
            with suppress(WarehouseError):  # no location at all
                if definition.sd is not None and each.endswith(_METADATA_FILES):
                    found.add(self._warehouse.relative_to(each, definition.sd.location or ""))
        return {each for each in found if each is not None}

    def _add_or_refuse(self, tx: Transaction, index: int, commit: TableCommit, new: "_New", made: set[str]) -> int:
        if tables.find(tx, new.name) is not None:
            raise TablesNotCommitted(_exists(_definition(commit)), "exists", index)
        return self._add(tx, new, made)

    def _check_altered(self, row: TableRow, old: Table, new: Table, value: Table, context: Mapping[str, str]) -> None:
        """Validates an alteration, and completes `value` with what clients can't change.

        `new`: as the client sent it. `value`: the same, normalised. Raises InvalidOperationException, MetaException.
        """
        assert value.parameters is not None
        hive_objects.check_identity(row, context)
        _check_expected(row, value, context)
        _check_pointer(row, value)
        transactional_property.settle_changed(
            row.parameters, value.parameters, external=new.tableType == hive_objects.EXTERNAL
        )
        _check_keys(old, value)
        value.createTime = old.createTime
        value.tableType = table_type(value)
        say_features(value, row.parameters)
        if (wrong := unreadable_properties(value)) is not None:
            raise InvalidOperationException(wrong)

    def _check_types(self, tx: Transaction, row: TableRow, old: Table, new: Table) -> None:
        assert old.sd is not None and new.sd is not None
        # Iceberg reads its files by its own schema; the columns that Hive sees are but a copy of it.
        iceberg = (new.parameters or {}).get("table_type", "").upper() == "ICEBERG"
        if self._incompatible_types_allowed or iceberg or hive_objects.is_view(old):
            return
        wrong = incompatible(old.sd.cols, new.sd.cols)
        if wrong and (is_keyed(row) or instants.has_timeline(tx, row.id)):
            wrong = incompatible_by_name(old.sd.cols, new.sd.cols)
        if wrong:
            raise InvalidOperationException(
                "The following columns have types incompatible with the existing columns in their respective"
                f" positions :\n{','.join(wrong)}"
            )

    def _rename(
        self, tx: Transaction, row: TableRow, old: Table, value: Table, name: TableName, home: DatabaseRow | None
    ) -> tuple[int, Move | None]:
        """The id of a renamed table's database `home`, and the move of its data if it lies in its default place."""
        assert value.sd is not None
        if tables.find(tx, name) is not None:
            raise InvalidOperationException(f"new table {name.database}.{name.table} already exists")
        if home is None:
            raise InvalidOperationException(
                f"Unable to change partition or table. Database {name.database} does not exist"
            )
        before = databases.find(tx, row.name.of_database)
        moves_data = (
            row.location is not None
            and not hive_objects.is_view(old)
            and not hive_objects.is_external(old)
            and value.sd.location in (None, "", row.location)
            and before is not None
            and (self._warehouse.relative_to(base_of(row.location), _usual_place(before, old)) or "").lower()
            == row.name.table
        )
        if not moves_data:
            return home.id, None
        assert row.location is not None
        source = base_of(row.location)
        target = self._warehouse.table_location(_usual_place(home, value), name.table)
        value.sd.location = target + row.location.removeprefix(source)
        if target == source:
            return home.id, None
        self._deletable.check(tx, [source], "moved", besides=row.id)
        self._publisher.settle_table(tx, row.id)
        self._mover.settle_within(tx, [source, target])
        if self._warehouse.exists(target):
            raise InvalidOperationException(
                f"New location for this table {name.database}.{name.table} already exists : {target}"
            )
        self._warehouse.check_move(source, target)
        self._deletable.record_moved(tx, source, target)
        return home.id, moves.add(tx, source, target)

    def _relocate(self, tx: Transaction, row: TableRow, value: Table) -> None:
        """A table may get another location; its partitions stay where they are, as in Hive."""
        assert value.sd is not None
        if hive_objects.is_view(value):
            return
        if not value.sd.location:
            raise MetaException("a table needs a location")
        value.sd.location = self._warehouse.qualify(value.sd.location)
        if value.sd.location != row.location and self._warehouse.parent(value.sd.location) is None:
            raise InvalidOperationException(f"{row.name.table} location must not be root path")
        if is_of_instant(value.sd.location) and base_of(value.sd.location) != base_of(row.location or ""):
            raise InvalidOperationException(_of_instant(row.name))
        if row.location is not None and value.sd.location != row.location:
            self._deletable.hold(tx, [value.sd.location])
            self._mover.settle_within(tx, [row.location, value.sd.location])
            self._deletable.record_given(tx, [value.sd.location])
            if not value.partitionKeys:  # their partitions' files stay where they are
                self._deletable.forget(tx, [row.location])
            partitions.pin_locations(tx, row.id, row.location)

    def _refresh_statistics(self, old: Table, value: Table, context: Mapping[str, str], *, renamed: bool) -> None:
        assert value.sd is not None and value.parameters is not None
        if renamed or value.partitionKeys:
            return
        if basic_statistics.needed(None, None, context, view=hive_objects.is_view(value)):
            basic_statistics.refresh(
                value.parameters,
                self._warehouse,
                value.sd.location,
                context,
                made_directory=False,
                force=True,
            )

    def _change_columns(self, tx: Transaction, row: TableRow, old: Table, value: Table, cascade: bool) -> None:
        """Statistics of columns that are gone or of another type go; with `cascade` partitions get the new columns."""
        assert old.sd is not None and value.sd is not None
        if old.sd.cols == value.sd.cols:
            return
        types = {field.name: field.type for field in value.sd.cols or ()}
        changed = [f.name or "" for f in old.sd.cols or () if types.get(f.name) != f.type]
        statistics.remove_columns(tx, row.id, changed, partitions_too=cascade)
        constraints.remove_columns(tx, row.id, [name for name in changed if name not in types])
        if cascade:
            used = descriptors.bodies_of_table(tx, row.id)
            renewed = {
                number: splice.descriptor_body(splice.descriptor(body, None).replace(cols=value.sd.cols))
                for number, body in used.items()
            }
            ids = descriptors.keep(tx, renewed.values())
            partitions.change_descriptors(tx, row.id, {number: ids[body] for number, body in renewed.items()})

    # --- removing ---------------------------------------------------------------------------------------------

    def drop(
        self,
        database: str | None,
        table: str | None,
        *,
        delete_data: bool,
        purge: bool = False,
        catalog: str | None = None,
        shown: view_sources.Shown | None = None,
    ) -> None:
        """Removes a table with its partitions and indexes; a managed one's directories too, after the commit.

        `purge`: the directory of an external Iceberg table, too, if the server may delete it.
        `shown`: which materialized views the caller sees; None for all. Raises NoSuchObjectException, and
        MetaException for a table that an index or such a view needs.
        """
        hidden: Collection[TableName] = ()
        if shown is not None:
            name = given.table_name(database, table, catalog)
            hidden = view_sources.hidden_users(self._database, name.catalog, [name], shown)
        with self._database.write() as tx:
            row = self.row(tx, database, table, catalog, RowLock.EXCLUSIVE)
            if table_indexes.holds_index(tx, row.id):
                raise MetaException(f"The table {table} is an index table. Please do drop index instead.")
            view_sources.check_unused(tx, row.name.catalog, [row.name], hidden)
            request_keys.claim(tx)
            indexes = table_indexes.of_table(tx, row.id)
            gone = [(each, True) for each in self._made_for(tx, indexes)]
            purged = {row.id} if purge and hive_objects.is_iceberg(row) else set()
            deletions = self._remove_all(tx, [*gone, (row, delete_data)], purged)
        self._mover.carry_out(deletions)

    def drop_index(self, find: Callable[[Transaction], IndexRow], *, delete_data: bool) -> None:
        """Removes an index, with the table that was made for its data. `find`: reads it, and locks its table."""
        with self._database.write() as tx:
            index = find(tx)
            table_indexes.remove(tx, index.id)
            deletions = self._remove_all(tx, [(each, delete_data) for each in self._made_for(tx, [index])])
        self._mover.carry_out(deletions)

    @staticmethod
    def _made_for(tx: Transaction, indexes: Sequence[IndexRow]) -> list[TableRow]:
        """The tables that were made for the data of some indexes, by id: their names may be others by now."""
        found = (tables.find_by_id(tx, each.index_table_id, RowLock.EXCLUSIVE) for each in indexes if each.made)
        return [each for each in found if each is not None]

    def _remove_all(
        self, tx: Transaction, gone: Sequence[tuple[TableRow, bool]], purged: Collection[int] = ()
    ) -> list[Move]:
        """Removes tables, each with whether its data are deleted. Returns the deletions, which are recorded.

        `purged`: ids of external tables whose data are deleted, too.
        """
        large = [row.location or "" for row, _ in gone if partitions.has_more(tx, row.id, _MANY_PARTITIONS)]
        doomed = [
            place
            for row, delete_data in gone
            for place in self._remove(tx, row, delete_data=delete_data, purge=row.id in purged)
        ]
        return self._mover.record_deletions(tx, self._deletable.among(tx, doomed), large)

    def _remove(self, tx: Transaction, row: TableRow, *, delete_data: bool, purge: bool = False) -> list[str]:
        """Removes one table; the directories that are to be deleted are returned."""
        doomed: list[str] = []
        external = hive_objects.is_true(row.parameters.get("EXTERNAL")) and not purge
        if delete_data and not external and row.type != hive_objects.VIEW:
            doomed = [
                *([base_of(row.location)] if row.location else []),
                *partitions.foreign_locations(tx, [row.id]),
            ]
            self._mover.settle_within(tx, doomed)
        else:
            self._publisher.settle_kept(tx, row.id)
            if row.location:
                self._deletable.forget(tx, [base_of(row.location)])
        tables.remove(tx, [row.id])
        written_tables.forget_tables(tx, row.name.of_database, [row.name.table])
        self._events.table(tx, EventType.DROP_TABLE, hive_objects.table_of(row), None)
        return doomed

    def truncate(
        self, database: str | None, table: str | None, names: Sequence[str] | None, catalog: str | None = None
    ) -> None:
        """Empties a table, or the named partitions of it, and says so in the statistics.

        Raises NoSuchObjectException where the table or a partition is unknown, MetaException where another
        table or a database lies in a directory that would be emptied.
        """
        with self._database.write() as tx:
            row = self.row(tx, database, table, catalog, RowLock.EXCLUSIVE)
            value = hive_objects.table_of(row)
            assert value.parameters is not None
            if hive_drops.hold_completions(tx, row):
                hive_drops.drop_files(tx, row, names if value.partitionKeys else None, self._events, deleted=True)
            if not value.partitionKeys:
                emptied = [row.location] if row.location else []
                basic_statistics.clear_after_truncate(value.parameters)
                tables.change(tx, row.id, row.database_id, hive_objects.table_values(value, row.descriptor_id))
                self._events.table(tx, EventType.TRUNCATE_TABLE, hive_objects.table_of(row), value)
            else:
                emptied = self._truncate_partitions(tx, row, names)
                tables.touch(tx, row.id)
            self._deletable.check(tx, emptied, "emptied", besides=row.id)
            self._publisher.settle_table(tx, row.id)
            self._mover.settle_within(tx, emptied)
            # While the table is held: files of an instant that completes next must not be among those deleted.
            for failure in self._warehouse.delete_directories(emptied):
                raise failure
            self._warehouse.make_directories(emptied, set())

    def _truncate_partitions(self, tx: Transaction, row: TableRow, names: Sequence[str] | None) -> list[str]:
        """Clears the statistics of all or the named partitions and returns where they lie."""
        found = partitions.rows(tx, partitions.Selection(row.id, names=names), lock=True)
        if names is not None and len(found) < len(set(names)):
            missing = sorted(set(names) - {p.name for p in found})
            raise NoSuchObjectException(f"partition values={missing} not found")
        encoder = partition_codec.encoder(tx, row)
        changed, emptied, changes = [], [], []
        for partition in found:
            before = encoder.decoded(partition.stored)
            value = before.replace(parameters=dict(before.parameters or {}))
            assert value.parameters is not None
            basic_statistics.clear_after_truncate(value.parameters)
            after = kept_changed(value, partition)
            changed.append((partition.id, after.body))
            changes.append(PartitionChange(partition.name, partition.ready, kept_before(before, partition), after))
            if place := hive_objects.location(value):
                emptied.append(place)
        partitions.change_bodies(tx, changed)
        self._events.partitions(tx, EventType.TRUNCATE_PARTITIONS, hive_objects.table_of(row), changes)
        return emptied

    def counts(self) -> dict[str, int]:
        """How many databases, tables and partitions there are."""
        with self._database.read() as tx:
            return {
                "catalogs": len(catalogs.names(tx)),
                "databases": databases.count(tx),
                "tables": tables.count(tx),
                "partitions": partitions.count_all(tx),
            }


class _New(NamedTuple):
    """A new table that was checked. `settled`: no unfinished move of others concerns its location."""

    name: TableName
    value: Table
    shown_database: str
    view: bool
    settled: bool
    privileges: PrincipalPrivilegeSet | None


def _definition(commit: TableCommit) -> Table:
    if commit.table is None:
        raise MetaException("a commit needs a table's definition")
    return commit.table


def _name_of(commit: TableCommit) -> TableName:
    table = _definition(commit)
    return given.table_name(table.dbName, table.tableName, table.catName)


def _exists(table: Table) -> str:
    return f"Table {table.tableName} already exists"


def _check_commit(tx: Transaction, index: int, commit: TableCommit, row: TableRow | None) -> None:
    """Raises TablesNotCommitted unless a table is as the commit expects, and nobody has it exclusively."""
    if row is None:
        raise TablesNotCommitted(f"{_name_of(commit)} table not found", "missing", index)
    actual = row.parameters.get(METADATA_LOCATION)
    if actual != commit.expectedMetadataLocation:
        expected = commit.expectedMetadataLocation or ""
        raise TablesNotCommitted(_modified(METADATA_LOCATION, actual, expected), "changed", index)
    held = locks.find_acquired(tx, row.name, LockType.EXCLUSIVE)
    if held is not None:
        text = f"{row.name} is locked exclusively by {held.user}@{held.host} (lock {held.lock_id}): try again"
        raise TablesNotCommitted(text, "locked", index)


def _modified(key: str, actual: str | None, expected: str) -> str:
    """Iceberg's HiveCatalog looks for these words, and tries again."""
    return (
        f"The table has been modified. The parameter value for key '{key}' is '{actual}'."
        f" The expected was value was '{expected}'"
    )


def _names_of_alteration(
    database: str | None, table: str | None, new: Table | None, catalog: str | None
) -> tuple[TableName, TableName]:
    """The old and the new name of an altered table. Raises InvalidOperationException, MetaException."""
    if new is None:
        raise InvalidOperationException("New table is invalid: there is none")
    if new.tableName is None or new.dbName is None:
        raise MetaException("New table is invalid: it has no name, or names no database")
    old_name = given.table_name(database, table, catalog)
    if new.catName is not None and given.normalized(new.catName) != old_name.catalog:
        raise InvalidOperationException(
            f"Tables cannot be moved between catalogs, old catalog {old_name.catalog}, new catalog {new.catName}"
        )
    return old_name, given.table_name(new.dbName, new.tableName, old_name.catalog)


def _check_new(table: Table) -> TableName:
    """Hive's checks of a new table, in Hive's order, and its name."""
    if table.tableName is None or table.dbName is None:
        raise MetaException("a table needs a name and a database")
    if not is_table_name(table.tableName):
        raise InvalidObjectException(f"{table.tableName} is not a valid object name")
    if table.sd is None:
        raise MetaException("a table needs a storage descriptor")
    if table.sd.cols is None and table.tableType != hive_objects.VIEW:
        raise MetaException("a table's storage descriptor needs a list of columns, which may be empty")
    if (wrong := wrong_type(table.sd.cols)) is not None:
        raise InvalidObjectException(f"Invalid column type: {wrong}")
    if (wrong := wrong_type(table.partitionKeys)) is not None:
        raise InvalidObjectException(f"Invalid partition column type: {wrong}")
    if table.sd.skewedInfo is not None:
        own = {field.name for field in table.sd.cols or ()}
        for column in table.sd.skewedInfo.skewedColNames or ():
            if column not in own:
                raise InvalidObjectException(f"Invalid skew column [{column}]")
    return given.table_name(table.dbName, table.tableName, table.catName)


def _check_complete(table: Table) -> None:
    """What Hive finds wrong only when it stores a new table, after it looked whether there is such a table."""
    assert table.sd is not None
    check_length(given.normalized(table.tableName or ""), "table")
    if table.sd.serdeInfo is None:
        raise MetaException("Invalid SerDeInfo object")
    check_columns(table.sd.cols)
    check_columns(table.partitionKeys)


def _of_instant(name: TableName) -> str:
    return (
        f"{name.table} location must not be the directory of an instant, which belongs to the table around it: give"
        " another location"
    )


def _not_found(database: str | None, table: str | None) -> NoSuchObjectException:
    return NoSuchObjectException(f"{given.plain(database)}.{table} table not found")


def table_type(value: Table) -> str:
    """The type that Hive gives a new table: the parameter EXTERNAL decides between managed and external."""
    if value.tableType is None and value.viewOriginalText is not None:
        return hive_objects.VIEW
    if value.tableType in (None, hive_objects.MANAGED, hive_objects.EXTERNAL):
        return hive_objects.EXTERNAL if hive_objects.is_external(value) else hive_objects.MANAGED
    assert value.tableType is not None
    return value.tableType


def _usual_place(home: DatabaseRow, value: Table) -> str:
    """The directory for a database's tables without a location. Hive 4 has separate ones for managed tables."""
    managed = None if hive_objects.is_external(value) else home.managed_location
    return managed or home.location or ""


def unreadable_properties(value: Table) -> str | None:
    """What is wrong with a table's readiness and timeline properties, and its key, as a text; None if nothing."""
    try:
        ReadinessProperties.of_table(value.parameters or {}, hive_objects.key_names(value))
        check_timeline_properties(value.parameters or {})
        definition(value)
    except (ValueError, InvalidOperationException) as error:
        return f"{value.dbName}.{value.tableName}: {error}"
    return None


def _check_key(tx: Transaction, row: TableRow, old: Table, new: Table) -> None:
    """Raises InvalidOperationException for an alteration by which a keyed table's files couldn't be read any more.

    Where the latest snapshot has none, earlier ones can't be read from then on.
    """
    if not names_key(row.parameters) and not names_key(new.parameters or {}):
        return
    if check_change(tx, row, old, new) and (position := instants.end_earlier(tx, row.id)) is not None:
        end_earlier_snapshots(tx, row, position)


def _check_changed(new: Table, *, same_columns: bool) -> None:
    """Hive's checks of an altered table, in Hive's order. `same_columns`: its columns are stored, and were checked."""
    if not is_table_name(new.tableName or ""):
        raise InvalidOperationException(f"{new.tableName} is not a valid object name")
    if new.sd is None or (new.tableType != hive_objects.VIEW and (new.sd.cols is None or new.partitionKeys is None)):
        raise MetaException("a table needs a storage descriptor, columns and partition keys, be they empty")
    if new.sd.serdeInfo is None:
        raise MetaException("Invalid SerDeInfo object")
    if not same_columns and (wrong := wrong_type(new.sd.cols)) is not None:
        raise InvalidOperationException(f"Invalid column type: {wrong}")
    own = {(column.name or "").lower() for column in new.sd.cols or ()} if new.sd.bucketCols else set()
    unknown = [name for name in new.sd.bucketCols or () if name.lower() not in own]
    if own and unknown:
        raise InvalidOperationException(f"Bucket columns - {unknown} doesn't match with any table columns")


def _check_expected(row: TableRow, new: Table, context: Mapping[str, str]) -> None:
    """An alteration may name the values that parameters must still have: how Iceberg commits without locks.

    Raises MetaException.
    """
    for name, value in context.items():
        if name.startswith(EXPECTED_PARAMETER):
            key = name.removeprefix(EXPECTED_PARAMETER)
            if (actual := row.parameters.get(key)) != value:
                raise MetaException(_modified(key, actual, value))
        elif name.startswith(ABSENT_PARAMETER):
            key = name.removeprefix(ABSENT_PARAMETER)
            if (actual := row.parameters.get(key)) is not None:
                raise MetaException(_modified(key, actual, "none"))
    _check_expected_by_hive(row, new, context)


def _check_expected_by_hive(row: TableRow, new: Table, context: Mapping[str, str]) -> None:
    """The same of one parameter, as Hive's clients say it."""
    key, expected = context.get(EXPECTED_KEY), context.get(EXPECTED_VALUE)
    if key is None or expected is None:
        return
    if key not in (new.parameters or {}):
        raise MetaException(f"New value for expected key {key} is not set")
    actual = row.parameters.get(key)
    if actual != expected:
        raise MetaException(_modified(key, actual, expected))


def _check_pointer(row: TableRow, new: Table) -> None:
    """An Iceberg table's new metadata must be made of the metadata that the table has.

    HiveCatalog with locks sends no expectation. Without this check it would overwrite the commit of a writer that takes
    no locks, and so would an engine that sends back the parameters that it read before such a commit. The new
    `previous_metadata_location` says what a client began with. One that sends it as it is stored hasn't set it: then
    the table's last change tells whether it has read the latest state. So each new pointer gets a later time.

    Raises MetaException.
    """
    wanted = new.parameters
    assert wanted is not None
    actual, previous = row.parameters.get(METADATA_LOCATION), wanted.get(PREVIOUS_METADATA_LOCATION)
    if not hive_objects.is_iceberg(row) or wanted.get(METADATA_LOCATION) == actual:
        return
    unset = previous == row.parameters.get(PREVIOUS_METADATA_LOCATION)
    if previous not in (None, actual) and not (unset and wanted.get(DDL_TIME) == row.parameters.get(DDL_TIME)):
        raise MetaException(_modified(METADATA_LOCATION, actual, previous or ""))
    last = row.parameters.get(DDL_TIME, "")
    wanted[DDL_TIME] = str(max(now_seconds(), int(last) + 1 if last.isdecimal() else 0))


def _check_keys(old: Table, new: Table) -> None:
    if hive_objects.is_view(old):
        return
    before = [field.name for field in old.partitionKeys or ()]
    if before != [field.name for field in new.partitionKeys or ()]:
        raise InvalidOperationException("partition keys can not be changed.")


def _keep_descriptor(tx: Transaction, value: Table) -> int:
    assert value.sd is not None
    body = splice.descriptor_body(value.sd)
    return descriptors.keep(tx, [body])[body]
