"""Databases."""

from collections.abc import Sequence

from eventbus.events import EventType
from metastore.services import names as given
from metastore.services import objects, patterns
from metastore.services.events import Events
from metastore.services.functions import function_of
from metastore.services.moves import Mover
from metastore.services.names import DEFAULT_DATABASE
from metastore.services.validation import check_length, is_name
from metastore.store import (
    Conflict,
    DatabaseUnavailable,
    catalogs,
    databases,
    functions,
    locations,
    moves,
    named_objects,
    partitions,
    tables,
    written_tables,
)
from metastore.store import Database as Store
from metastore.store.database import Transaction
from metastore.store.databases import DatabaseRow, Hold
from metastore.store.moves import Move
from metastore.store.named_objects import Kind
from metastore.warehouse import Warehouse
from metastore.wire.hive import (
    AlreadyExistsException,
    Database,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)

# What a database may hold beside tables and functions. (Hive's can't be dropped at all while it holds a schema.)
_KINDS_INSIDE = {Kind.STORED_PROCEDURE: "stored procedures", Kind.PACKAGE: "packages", Kind.SCHEMA: "schemas"}


class DatabaseService:
    """What Hive does with databases."""

    def __init__(self, store: Store, warehouse: Warehouse, mover: Mover, events: Events) -> None:
        self._events = events
        self._store = store
        self._warehouse = warehouse
        self._mover = mover

    def create(self, database: Database) -> None:
        """Adds a database and makes its directory.

        Raises InvalidObjectException for a bad name, NoSuchObjectException if there's no such catalog,
        AlreadyExistsException, MetaException for a bad location.
        """
        if database.name is None:
            raise MetaException("the database's name is missing")
        name = given.database_name(database.name, database.catalogName)
        if not is_name(given.plain(database.name)):
            raise InvalidObjectException(f"{database.name} is not a valid database name")
        check_length(name.database, "database")
        with self._store.read() as tx:
            catalog = catalogs.find(tx, name.catalog)
            if catalog is None:
                raise NoSuchObjectException(f"No such catalog {name.catalog}")
            if databases.find(tx, name) is not None:
                raise AlreadyExistsException(f"Database {given.plain(database.name)} already exists")
        if database.locationUri is None:
            location = self._warehouse.join(catalog.location, f"{name.database}.db")
        else:
            location = self._warehouse.qualify(database.locationUri)
        self._mover.settle([location])
        made = self._warehouse.make_directory(location)
        stored = database.replace(
            parameters=database.parameters or {}, ownerType=database.ownerType or PrincipalType.USER
        )
        try:
            with self._store.write() as tx:
                databases.add(
                    tx, catalog.id, name.database, location, database.ownerName, objects.database_body(stored)
                )
                made_now = stored.replace(name=name.database, catalogName=name.catalog, locationUri=location)
                self._events.database(tx, EventType.CREATE_DATABASE, None, made_now)
                # Once more: a database that had the name in the meantime took the directory along when it was dropped.
                self._mover.settle_within(tx, [location])
                self._warehouse.make_directory(location)
        except Conflict:  # the directory is the other database's now
            raise AlreadyExistsException(f"Database {given.plain(database.name)} already exists") from None
        except DatabaseUnavailable:  # perhaps in the middle of the commit: the database may be there
            raise
        except BaseException:
            if made:
                self._warehouse.delete_empty_directory(location)
            raise

    def get(self, database: str | None, catalog: str | None = None) -> Database:
        """One database. Raises NoSuchObjectException."""
        with self._store.read() as tx:
            row = databases.find(tx, given.database_name(database, catalog))
        if row is None:
            raise NoSuchObjectException(given.plain(database))
        return objects.database_of(row)

    def names(self, pattern: str | None = None) -> list[str]:
        """Names of a catalog's databases that match, in order; the pattern may be `@catalog#pattern`."""
        catalog, wanted = given.split_database(pattern)
        with self._store.read() as tx:
            return databases.names(tx, (catalog or given.DEFAULT_CATALOG).lower(), patterns.like_patterns(wanted))

    def matching(self, pattern: str | None, catalog: str | None = None) -> list[Database]:
        """A catalog's databases whose names match, in order."""
        name = given.normalized(catalog or given.DEFAULT_CATALOG)
        with self._store.read() as tx:
            return [objects.database_of(row) for row in databases.find_all(tx, name, patterns.like_patterns(pattern))]

    def alter(self, database: str | None, new: Database) -> None:
        """Changes parameters and owner, the kind of owner only if one is given; all else stays, as in Hive 2.3.

        Raises NoSuchObjectException.
        """
        name = given.database_name(database)
        with self._store.write() as tx:
            row = databases.find(tx, name, Hold.EXCLUSIVE)
            if row is None:
                raise NoSuchObjectException(given.plain(database))
            old = objects.database_of(row)
            changed = old.replace(
                parameters=new.parameters or {},
                ownerName=new.ownerName,
                ownerType=new.ownerType or old.ownerType,
            )
            databases.change(
                tx,
                row.id,
                location=row.location,
                owner=changed.ownerName,
                body=objects.database_body(changed),
            )
            self._events.database(tx, EventType.ALTER_DATABASE, old, changed)

    def drop(
        self,
        database: str | None,
        *,
        delete_data: bool,
        cascade: bool,
        if_exists: bool = False,
        catalog: str | None = None,
    ) -> None:
        """Removes a database; with `cascade` all that is in it.

        With `delete_data` the directories of the database and of its managed tables go too, after the commit.
        Raises NoSuchObjectException, InvalidOperationException if it isn't empty, MetaException for `default`.
        """
        name = given.database_name(database, catalog)
        if name.database == DEFAULT_DATABASE:
            raise MetaException("Can not drop default database")
        with self._store.write() as tx:
            row = databases.find(tx, name, Hold.EXCLUSIVE)
            if row is None:
                if if_exists:
                    return
                raise NoSuchObjectException(given.plain(database))
            if not cascade:
                if databases.has_tables(tx, row.id):
                    raise InvalidOperationException(f"Database {name.database} is not empty. One or more tables exist.")
                if databases.has_functions(tx, row.id):
                    raise InvalidOperationException(
                        f"Database {name.database} is not empty. One or more functions exist."
                    )
                for kind, what in _KINDS_INSIDE.items():
                    if named_objects.any_in_database(tx, kind, row.id):
                        raise InvalidOperationException(
                            f"Database {name.database} is not empty. One or more {what} exist."
                        )
            directories = [*self._remove_contents(tx, row), *([row.location] if row.location else [])]
            databases.remove(tx, row.id)
            self._events.database(tx, EventType.DROP_DATABASE, objects.database_of(row), None)
            deletions: list[Move] = []
            if delete_data:
                self._mover.settle_within(tx, directories)
                deletions = moves.add_deletions(tx, locations.unshared(tx, directories))
        self._mover.carry_out(deletions)

    def _remove_contents(self, tx: Transaction, row: DatabaseRow) -> Sequence[str]:
        """Removes tables and functions; the directories of managed tables that lie elsewhere are returned."""
        # Held, so that nobody is adding partitions to one of them.
        inside = tables.find_all(tx, row.name, Hold.EXCLUSIVE)
        ids = [table.id for table in inside]
        managed = [table for table in inside if not objects.is_true(table.parameters.get("EXTERNAL"))]
        directories = [t.location for t in managed if t.location]
        directories += partitions.foreign_locations(tx, [t.id for t in managed])
        for function in functions.find_all(tx, row.name.catalog):
            if function.database == row.name:
                self._events.function(tx, EventType.DROP_FUNCTION, function_of(function), None)
        self._events.tables_dropped(tx, map(objects.table_of, inside))
        tables.remove(tx, ids)
        written_tables.forget_tables(tx, row.name, [table.name.table for table in inside])
        functions.remove_all(tx, row.id)
        base = row.location
        return [d for d in directories if base is None or self._warehouse.relative_to(d, base) is None]
