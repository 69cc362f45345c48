"""Tables."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from eventbus.events import EventType
from metastore.services import (
    lake_removal,
    objects,
    partition_rows,
    patterns,
    quick_statistics,
    table_filter,
    transactional_property,
)
from metastore.services import names as given
from metastore.services.events import Events, PartitionChange
from metastore.services.instant_directories import base_of
from metastore.services.moves import Mover
from metastore.services.privileges import keep_creators
from metastore.services.publishing import Publisher
from metastore.services.readiness_properties import ReadinessProperties
from metastore.services.timeline_properties import check_timeline_properties
from metastore.services.type_compatibility import incompatible
from metastore.services.validation import check_columns, check_length, is_name, wrong_type
from metastore.store import (
    Conflict,
    Database,
    DatabaseUnavailable,
    catalogs,
    constraints,
    databases,
    descriptors,
    locations,
    moves,
    partitions,
    statistics,
    table_indexes,
    tables,
    written_tables,
)
from metastore.store.database import Transaction
from metastore.store.databases import DatabaseRow, Hold
from metastore.store.moves import Move
from metastore.store.names import TableName
from metastore.store.tables import TableRow
from metastore.warehouse import Warehouse
from metastore.wire import splice
from metastore.wire.hive import (
    AlreadyExistsException,
    FieldSchema,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Table,
    TableMeta,
    UnknownDBException,
    UnknownTableException,
)

DDL_TIME = "transient_lastDdlTime"
CASCADE = "CASCADE"
_MANY_PARTITIONS = 1_000  # deleting the directories of so many takes a tenth of a second
EXPECTED_KEY, EXPECTED_VALUE = "expected_parameter_key", "expected_parameter_value"

# What a caller wants done in the transaction that creates a table, given the table's id.
Also = Callable[[Transaction, int], None]


class TableService:
    """What Hive does with tables."""

    def __init__(
        self,
        database: Database,
        warehouse: Warehouse,
        mover: Mover,
        publisher: Publisher,
        events: Events,
        *,
        incompatible_types_allowed: bool = False,
    ) -> None:
        """`incompatible_types_allowed`: a column may get a type that its stored values can't be read as."""
        self._database = database
        self._warehouse = warehouse
        self._mover = mover
        self._publisher = publisher
        self._events = events
        self._incompatible_types_allowed = incompatible_types_allowed

    # --- creating ---------------------------------------------------------------------------------------------

    def create(self, table: Table, context: Mapping[str, str], also: Also | None = None) -> None:
        """Adds a table, makes its directory, and does what `also` says in the same transaction.

        Raises InvalidObjectException (bad name, bad type, no such database), AlreadyExistsException, MetaException.
        """
        name = _check_new(table)
        shown = given.plain(table.dbName)
        table = table.replace(parameters=dict(table.parameters or {}))
        assert table.parameters is not None
        transactional_property.settle_new(table.parameters, external=table.tableType == objects.EXTERNAL)
        with self._database.read() as tx:
            home = databases.find(tx, name.of_database)
            if home is None:
                raise InvalidObjectException(shown)
            if tables.find(tx, name) is not None:
                raise AlreadyExistsException(f"Table {table.tableName} already exists")
            _check_complete(table)
            value = objects.table(table)
            value.dbName, value.catName = name.database, name.catalog
            value.tableType = _table_type(value)
            assert value.sd is not None and value.parameters is not None
            if (wrong := _unreadable_properties(value)) is not None:
                raise InvalidObjectException(wrong)
            made, view = False, table.tableType == objects.VIEW
            if not view:
                value.sd.location = (
                    self._warehouse.qualify(value.sd.location)
                    if value.sd.location
                    else self._warehouse.table_location(home.location or "", name.table)
                )
            settled = view or self._mover.is_settled(tx, [value.sd.location])
        if not settled:
            self._mover.settle([value.sd.location])
        if not view:
            made = self._warehouse.make_directory(value.sd.location or "")
        try:
            self._complete_new(value, context, made=made, view=view)
            with self._database.write() as tx:
                if databases.find(tx, name.of_database, Hold.SHARED) is None:
                    raise InvalidObjectException(shown)
                table_id = tables.add(tx, home.id, objects.table_values(value, _keep_descriptor(tx, value)))
                if value.sd.location and not view:
                    # Once more: a table that had the name in the meantime took the directory along when it was dropped.
                    self._mover.settle_within(tx, [value.sd.location])
                    self._warehouse.make_directory(value.sd.location)
                keep_creators(tx, table_id, table.privileges)
                self._events.table(tx, EventType.CREATE_TABLE, None, value.replace(id=table_id))
                if also is not None:
                    also(tx, table_id)
        except Conflict:  # the directory is the other table's now
            raise AlreadyExistsException(f"Table {table.tableName} already exists") from None
        except DatabaseUnavailable:  # perhaps in the middle of the commit: the table may be there
            raise
        except BaseException:
            if made and value.sd.location is not None:
                self._warehouse.delete_empty_directory(value.sd.location)
            raise

    def _complete_new(self, value: Table, context: Mapping[str, str], *, made: bool, view: bool) -> None:
        assert value.sd is not None and value.parameters is not None
        value.createTime = int(time.time())
        if not view and not value.partitionKeys:
            quick_statistics.refresh(
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
        with self._database.read() as tx:
            return objects.table_of(self.row(tx, database, table, catalog))

    def row(
        self,
        tx: Transaction,
        database: str | None,
        table: str | None,
        catalog: str | None = None,
        hold: Hold = Hold.NOT,
    ) -> TableRow:
        """One table's row, in a transaction of the caller's, under the name by which it was asked for.

        Who takes hold of it is about to write. Raises NoSuchObjectException, InvalidOperationException for a writer
        who gives a decorated name.
        """
        name = (given.decorated_name if hold is Hold.NOT else given.table_name)(database, table, catalog)
        row = tables.find(tx, given.base(name), hold)
        if row is None:
            raise NoSuchObjectException(f"{given.plain(database)}.{table} table not found")
        return replace(row, name=name)

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
        return [objects.table_of(row) for row in rows]

    def names(self, database: str | None, pattern: str | None, table_type: str | None = None) -> list[str]:
        """Names of a database's tables in order; empty where there is no such database."""
        with self._database.read() as tx:
            return tables.names(
                tx,
                given.database_name(database),
                patterns=patterns.like_patterns(pattern),
                table_type=table_type,
            )

    def names_by_filter(self, database: str | None, text: str | None, limit: int) -> list[str]:
        """Names of the tables for which a filter on owner, access time or parameters holds; `limit` < 0: all.

        Raises UnknownDBException, InvalidOperationException for a filter that is none.
        """
        if not database:
            raise UnknownDBException("DB name is null or empty")
        name = given.database_name(database)
        with self._database.read() as tx:
            condition = table_filter.parse(text)
            return tables.names(tx, name, condition=condition, limit=limit if limit >= 0 else None)

    def summaries(
        self, database_pattern: str | None, table_pattern: str | None, types: Sequence[str] | None
    ) -> list[TableMeta]:
        """Name, type, owner and comment of matching tables of all databases."""
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
        self, tx: Transaction, database: str | None, table: str | None, hold: Hold = Hold.NOT
    ) -> TableRow:
        """One table's row, for calls that raise UnknownTableException if there's none."""
        try:
            return self.row(tx, database, table, hold=hold)
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
    ) -> None:
        """Replaces a table's definition; another name or database in it renames the table.

        A managed table in its default place moves its data with a rename. `cascade` takes changed columns to every
        partition. Raises InvalidOperationException, MetaException.
        """
        if new is None or new.tableName is None or new.dbName is None:
            raise InvalidOperationException("New table is invalid: it has no name")
        old_name = given.table_name(database, table, catalog)
        new_name = given.table_name(new.dbName, new.tableName, catalog or new.catName)
        cascade = cascade or objects.is_true(context.get(CASCADE))
        value = objects.table(new)
        value.dbName, value.catName = new_name.database, new_name.catalog
        assert value.sd is not None and value.parameters is not None
        if not (new.parameters or {}).get(DDL_TIME):
            value.parameters[DDL_TIME] = str(int(time.time()))
        move: Move | None = None
        try:
            with self._database.write() as tx:
                # The database before its tables, as whoever drops it.
                home = databases.find(tx, new_name.of_database, Hold.SHARED) if new_name != old_name else None
                row = tables.find(tx, old_name, Hold.EXCLUSIVE)
                if row is None:
                    raise InvalidOperationException(f"{given.plain(database)}.{table} table not found")
                _check_changed(new)
                _check_expected(row, value, context)
                old = objects.table_of(row)
                transactional_property.settle_changed(
                    row.parameters, value.parameters, external=new.tableType == objects.EXTERNAL
                )
                _check_keys(old, value)
                value.createTime = old.createTime
                value.tableType = _table_type(value)
                if (wrong := _unreadable_properties(value)) is not None:
                    raise InvalidOperationException(wrong)
                self._check_types(old, value)
                database_id = row.database_id
                if new_name != old_name:
                    database_id, move = self._rename(tx, row, old, value, new_name, home)
                    written_tables.rename_table(tx, row.name, new_name)
                if move is None:
                    self._relocate(tx, row, value)
                    self._refresh_statistics(old, value, context, renamed=new_name != old_name)
                check_columns(value.sd.cols)
                self._change_columns(tx, row, old, value, cascade)
                tables.change(tx, row.id, database_id, objects.table_values(value, _keep_descriptor(tx, value)))
                value.tableName = new_name.table
                self._events.table(tx, EventType.ALTER_TABLE, old, value.replace(id=row.id))
        except Conflict:
            raise InvalidOperationException(f"new table {new_name.database}.{new_name.table} already exists") from None
        if move is not None:
            self._mover.carry_out([move])

    def _check_types(self, old: Table, new: Table) -> None:
        assert old.sd is not None and new.sd is not None
        # Iceberg reads its files by its own schema; the columns that Hive sees are but a copy of it.
        iceberg = (new.parameters or {}).get("table_type", "").upper() == "ICEBERG"
        if self._incompatible_types_allowed or iceberg or objects.is_view(old):
            return
        wrong = incompatible(old.sd.cols, new.sd.cols)
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
            and not objects.is_view(old)
            and not objects.is_external(old)
            and value.sd.location in (None, "", row.location)
            and before is not None
            and before.location is not None
            and (self._warehouse.relative_to(base_of(row.location), before.location) or "").lower() == row.name.table
        )
        if not moves_data:
            return home.id, None
        assert row.location is not None
        source = base_of(row.location)
        target = self._warehouse.table_location(home.location or "", name.table)
        value.sd.location = target + row.location.removeprefix(source)
        if target == source:
            return home.id, None
        self._check_unshared(tx, row, [source], "moved")
        self._publisher.settle_table(tx, row.id)
        self._mover.settle_within(tx, [source, target])
        if self._warehouse.exists(target):
            raise InvalidOperationException(
                f"New location for this table {name.database}.{name.table} already exists : {target}"
            )
        return home.id, moves.add(tx, source, target)

    def _relocate(self, tx: Transaction, row: TableRow, value: Table) -> None:
        """A table may get another location; its partitions stay where they are, as in Hive."""
        assert value.sd is not None
        if objects.is_view(value):
            return
        if not value.sd.location:
            raise MetaException("a table needs a location")
        value.sd.location = self._warehouse.qualify(value.sd.location)
        if row.location is not None and value.sd.location != row.location:
            self._mover.settle_within(tx, [row.location, value.sd.location])
            partitions.pin_locations(tx, row.id, row.location)

    def _refresh_statistics(self, old: Table, value: Table, context: Mapping[str, str], *, renamed: bool) -> None:
        assert value.sd is not None and value.parameters is not None
        if renamed or value.partitionKeys:
            return
        if quick_statistics.needed(None, None, context, view=objects.is_view(value)):
            quick_statistics.refresh(
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
        catalog: str | None = None,
        of_index: bool = False,
    ) -> None:
        """Removes a table with its partitions and indexes; a managed one's directories too, after the commit.

        `of_index`: it is the index that goes whose data the table holds. Raises NoSuchObjectException, MetaException
        for a table that holds the data of an index.
        """
        with self._database.write() as tx:
            row = self.row(tx, database, table, catalog, Hold.EXCLUSIVE)
            if not of_index and table_indexes.holds_index(tx, row.id):
                raise MetaException(f"The table {table} is an index table. Please do drop index instead.")
            large = [row.location or ""] if partitions.has_more(tx, row.id, _MANY_PARTITIONS) else []
            doomed = []
            for index in table_indexes.of_table(tx, row.id):
                data = self.row(tx, index.index_database, index.index_table, hold=Hold.EXCLUSIVE)
                doomed += self._remove(tx, data, delete_data=True)
            doomed += self._remove(tx, row, delete_data=delete_data)
            deletions = self._mover.record_deletions(tx, locations.unshared(tx, doomed), large)
        self._mover.carry_out(deletions)

    def _remove(self, tx: Transaction, row: TableRow, *, delete_data: bool) -> list[str]:
        """Removes one table; the directories that are to be deleted are returned."""
        doomed: list[str] = []
        external = objects.is_true(row.parameters.get("EXTERNAL"))
        if delete_data and not external and row.type != objects.VIEW:
            doomed = [
                *([base_of(row.location)] if row.location else []),
                *partitions.foreign_locations(tx, [row.id]),
            ]
            self._mover.settle_within(tx, doomed)
        else:
            self._publisher.settle_kept(tx, row.id)
        tables.remove(tx, [row.id])
        written_tables.forget_tables(tx, row.name.of_database, [row.name.table])
        self._events.table(tx, EventType.DROP_TABLE, objects.table_of(row), None)
        return doomed

    def truncate(
        self, database: str | None, table: str | None, names: Sequence[str] | None, catalog: str | None = None
    ) -> None:
        """Empties a table, or the named partitions of it, and says so in the statistics.

        Raises NoSuchObjectException where the table or a partition is unknown, MetaException where another
        table or a database lies in a directory that would be emptied.
        """
        with self._database.write() as tx:
            row = self.row(tx, database, table, catalog, Hold.EXCLUSIVE)
            value = objects.table_of(row)
            assert value.parameters is not None
            if lake_removal.hold_completions(tx, row):
                lake_removal.drop_files(tx, row, names if value.partitionKeys else None, self._events, deleted=True)
            if not value.partitionKeys:
                emptied = [row.location] if row.location else []
                quick_statistics.clear_after_truncate(value.parameters)
                tables.change(tx, row.id, row.database_id, objects.table_values(value, row.descriptor_id))
                self._events.table(tx, EventType.TRUNCATE_TABLE, objects.table_of(row), value)
            else:
                emptied = self._truncate_partitions(tx, row, names)
                tables.touch(tx, row.id)
            self._check_unshared(tx, row, emptied, "emptied")
            self._publisher.settle_table(tx, row.id)
            self._mover.settle_within(tx, emptied)
            # While the table is held: files of a batch that is accepted next must not be among those deleted.
            for location in emptied:
                self._warehouse.delete_directory(location)
                self._warehouse.make_directory(location)

    def _check_unshared(self, tx: Transaction, row: TableRow, places: Sequence[str], done: str) -> None:
        """Raises MetaException if other tables' data would be emptied or moved along with this one's."""
        kept = set(places) - set(locations.unshared(tx, places, besides=row.id))
        if kept:
            raise MetaException(
                f"{min(kept)} can't be {done}: another table or a database lies there."
                " Give one of them another location"
            )

    def _truncate_partitions(self, tx: Transaction, row: TableRow, names: Sequence[str] | None) -> list[str]:
        """Clears the statistics of all or the named partitions and returns where they lie."""
        found = partitions.rows(tx, partitions.Selection(row.id, names=names), lock=True)
        if names is not None and len(found) < len(set(names)):
            missing = sorted(set(names) - {p.name for p in found})
            raise NoSuchObjectException(f"partition values={missing} not found")
        encoder = partition_rows.encoder(tx, row)
        changed, emptied, told = [], [], []
        for partition in found:
            before = encoder.decoded(partition.stored)
            value = before.replace(parameters=dict(before.parameters or {}))
            assert value.parameters is not None
            quick_statistics.clear_after_truncate(value.parameters)
            changed.append((partition.id, splice.partition_body(value)))
            descriptor = partition.stored.storage_descriptor_id
            told.append(PartitionChange(partition.name, partition.ready, before, value, descriptor, descriptor))
            if place := objects.location(value):
                emptied.append(place)
        partitions.change_bodies(tx, changed)
        self._events.partitions(tx, EventType.TRUNCATE_PARTITIONS, objects.table_of(row), told)
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


def _check_new(table: Table) -> TableName:
    """Hive's checks of a new table, in Hive's order, and its name."""
    if table.tableName is None or table.dbName is None:
        raise MetaException("a table needs a name and a database")
    if not is_name(table.tableName):
        raise InvalidObjectException(f"{table.tableName} is not a valid object name")
    if table.sd is None:
        raise MetaException("a table needs a storage descriptor")
    if table.sd.cols is None and table.tableType != objects.VIEW:
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


def _table_type(value: Table) -> str:
    """The type that Hive gives a new table: the parameter EXTERNAL decides between managed and external."""
    if value.tableType is None and value.viewOriginalText is not None:
        return objects.VIEW
    if value.tableType in (None, objects.MANAGED, objects.EXTERNAL):
        return objects.EXTERNAL if objects.is_external(value) else objects.MANAGED
    assert value.tableType is not None
    return value.tableType


def _unreadable_properties(value: Table) -> str | None:
    """What is wrong with a table's properties: when its partitions are ready, how its timeline is kept."""
    try:
        ReadinessProperties.of_table(value.parameters or {}, objects.key_names(value))
        check_timeline_properties(value.parameters or {})
    except (ValueError, InvalidOperationException) as error:
        return f"{value.dbName}.{value.tableName}: {error}"
    return None


def _check_changed(new: Table) -> None:
    """Hive's checks of an altered table, in Hive's order."""
    if not is_name(new.tableName or ""):
        raise InvalidOperationException(f"{new.tableName} is not a valid object name")
    if new.sd is None or (new.tableType != objects.VIEW and (new.sd.cols is None or new.partitionKeys is None)):
        raise MetaException("a table needs a storage descriptor, columns and partition keys, be they empty")
    if (wrong := wrong_type(new.sd.cols)) is not None:
        raise InvalidOperationException(f"Invalid column type: {wrong}")


def _check_expected(row: TableRow, new: Table, context: Mapping[str, str]) -> None:
    """An alteration may name the value that a parameter must still have: how Iceberg commits without locks."""
    key, expected = context.get(EXPECTED_KEY), context.get(EXPECTED_VALUE)
    if key is None or expected is None:
        return
    if key not in (new.parameters or {}):
        raise MetaException(f"New value for expected key {key} is not set")
    actual = row.parameters.get(key)
    if actual != expected:
        raise MetaException(
            f"The table has been modified. The parameter value for key '{key}' is '{actual}'."
            f" The expected was value was '{expected}'"
        )


def _check_keys(old: Table, new: Table) -> None:
    if objects.is_view(old):
        return
    before = [field.name for field in old.partitionKeys or ()]
    if before != [field.name for field in new.partitionKeys or ()]:
        raise InvalidOperationException("partition keys can not be changed.")


def _keep_descriptor(tx: Transaction, value: Table) -> int:
    assert value.sd is not None
    body = splice.descriptor_body(value.sd)
    return descriptors.keep(tx, [body])[body]
