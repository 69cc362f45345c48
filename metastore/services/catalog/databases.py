"""Hive's calls for databases: create, read, list, alter, drop."""

from collections.abc import Collection, Sequence

from lake.protocol.clock import now_seconds
from lake.protocol.events.types import EventType
from lake.protocol.hive import (
    AlreadyExistsException,
    Database,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)
from metastore.services.catalog.functions import function_of
from metastore.services.events.recorder import Events
from metastore.services.files.deletable import Deletable
from metastore.services.files.new_directories import new_directories
from metastore.services.files.relocator import Mover
from metastore.services.instant_rules.paths import base_of
from metastore.services.model import hive_objects, patterns, view_sources
from metastore.services.model import names as given
from metastore.services.model.names import DEFAULT_CATALOG, DEFAULT_DATABASE
from metastore.services.model.validation import check_length, is_database_name
from metastore.store import Database as Store
from metastore.store.access import request_keys
from metastore.store.catalog import catalogs, databases, functions
from metastore.store.catalog.databases import DatabaseRow, RowLock
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import DatabaseName, TableName
from metastore.store.files import moves
from metastore.store.files.moves import Move
from metastore.store.partition import partitions
from metastore.store.registry import named_objects
from metastore.store.registry.named_objects import Kind
from metastore.store.table import tables
from metastore.store.transactions import written_tables
from metastore.warehouse import Warehouse

# What a database may hold beside tables and functions. (Hive's can't be dropped at all while it holds a schema.)
_KINDS_INSIDE = {Kind.STORED_PROCEDURE: "stored procedures", Kind.PACKAGE: "packages", Kind.SCHEMA: "schemas"}


class DatabaseService:
    """Hive's calls for databases."""

    def __init__(self, store: Store, warehouse: Warehouse, mover: Mover, events: Events, deletable: Deletable) -> None:
        self._events = events
        self._deletable = deletable
        self._store = store
        self._warehouse = warehouse
        self._mover = mover

    def create(self, database: Database) -> None:
        """Adds a database, and creates its directory, and the one for its managed tables if it names one.

        The server sets the time of creation. Raises InvalidObjectException for an invalid name, for the root of a
        storage as its location, and if the catalog doesn't exist; AlreadyExistsException; MetaException for an invalid
        location.
        """
        if database.name is None:
            raise MetaException("the database's name is missing")
        name = given.database_name(database.name, database.catalogName)
        if not is_database_name(given.plain(database.name)):
            raise InvalidObjectException(f"{database.name} is not a valid database name")
        check_length(name.database, "database")
        with self._store.read() as tx:
            catalog = catalogs.find(tx, name.catalog)
            if catalog is None:
                raise InvalidObjectException(f"No such catalog {name.catalog}")
            if databases.find(tx, name) is not None:
                raise AlreadyExistsException(f"Database {given.plain(database.name)} already exists")
        location, managed = self._locations(catalog.location, name, database)
        places = [location] if managed is None else [location, managed]
        self._mover.settle(places)
        stored = database.replace(
            parameters=database.parameters or {},
            ownerType=database.ownerType or PrincipalType.USER,
            createTime=now_seconds(),
        )
        taken = AlreadyExistsException(f"Database {given.plain(database.name)} already exists")
        with new_directories(self._warehouse, taken) as made:
            self._warehouse.make_directories(places, made)
            with self._store.write() as tx:
                request_keys.claim(tx)
                databases.add(
                    tx,
                    catalog.id,
                    name.database,
                    location,
                    database.ownerName,
                    hive_objects.database_body(stored),
                    managed,
                )
                made_now = stored.replace(
                    name=name.database, catalogName=name.catalog, locationUri=location, managedLocationUri=managed
                )
                self._events.database(tx, EventType.CREATE_DATABASE, None, made_now)
                self._deletable.hold(tx, places)
                # Once more: another database of the name may have been created, and dropped with the directory.
                self._mover.settle_within(tx, places)
                self._warehouse.make_directories(places, made)
                for place in places:
                    self._deletable.record(tx, place, made=place in made)

    def _locations(self, catalog_location: str, name: DatabaseName, database: Database) -> tuple[str, str | None]:
        """The location of a new database, and that of its managed tables if it names one.

        Raises InvalidObjectException for the root of a storage, MetaException for an invalid location.
        """
        if database.locationUri is None:
            location = self._warehouse.join(self._warehouse.qualify(catalog_location), f"{name.database}.db")
        else:
            location = self._warehouse.qualify(database.locationUri)
        managed = self._warehouse.qualify(database.managedLocationUri) if database.managedLocationUri else None
        for place in (location, managed):
            if place is not None and self._warehouse.parent(place) is None:
                raise InvalidObjectException(f"{name.database} location must not be root path: {place}")
        return location, managed

    def get(self, database: str | None, catalog: str | None = None) -> Database:
        """One database. Raises NoSuchObjectException."""
        with self._store.read() as tx:
            row = databases.find(tx, given.database_name(database, catalog))
        if row is None:
            raise NoSuchObjectException(given.plain(database))
        return hive_objects.database_of(row)

    def names(self, pattern: str | None = None) -> list[str]:
        """Names of a catalog's databases that match, in order; the pattern may be `@catalog#pattern`."""
        catalog, wanted = given.split_database(pattern)
        with self._store.read() as tx:
            return databases.names(tx, (catalog or given.DEFAULT_CATALOG).lower(), patterns.like_patterns(wanted))

    def matching(self, pattern: str | None, catalog: str | None = None) -> list[Database]:
        """A catalog's databases whose names match, in order."""
        name = given.normalized(catalog or given.DEFAULT_CATALOG)
        with self._store.read() as tx:
            return [
                hive_objects.database_of(row) for row in databases.find_all(tx, name, patterns.like_patterns(pattern))
            ]

    def alter(self, database: str | None, new: Database) -> None:
        """Changes parameters and owner; kind of owner, description and places only where they are given, as in Hive 4.

        Files stay where they are, and so do the tables that are there; no directory is made. (Hive 2.3 keeps
        description and place; its clients send those that they read.) Raises NoSuchObjectException, MetaException for a
        bad location.
        """
        name = given.database_name(database)
        location, managed = self._given_place(new.locationUri), self._given_place(new.managedLocationUri)
        with self._store.write() as tx:
            row = databases.find(tx, name, RowLock.EXCLUSIVE)
            if row is None:
                raise NoSuchObjectException(given.plain(database))
            request_keys.claim(tx)
            old = hive_objects.database_of(row)
            changed = old.replace(
                parameters=new.parameters or {},
                ownerName=new.ownerName,
                ownerType=new.ownerType or old.ownerType,
                description=new.description if (new.description or "").strip() else old.description,
                locationUri=location or row.location,
                managedLocationUri=managed or row.managed_location,
            )
            for before, after in ((row.location, location), (row.managed_location, managed)):
                if after is not None and after != before:
                    self._deletable.hold(tx, [after])
                    self._mover.settle_within(tx, [before, after])
                    self._deletable.record_given(tx, [after])
            databases.change(
                tx,
                row.id,
                location=changed.locationUri,
                owner=changed.ownerName,
                body=hive_objects.database_body(changed),
                managed_location=changed.managedLocationUri,
            )
            self._events.database(tx, EventType.ALTER_DATABASE, old, changed)

    def _given_place(self, location: str | None) -> str | None:
        if location is None or not location.strip():
            return None
        place = self._warehouse.qualify(location)
        if self._warehouse.parent(place) is None:
            raise MetaException(f"a database's location must not be the root of a storage: {place}")
        return place

    def drop(
        self,
        database: str | None,
        *,
        delete_data: bool,
        cascade: bool,
        if_exists: bool = False,
        catalog: str | None = None,
        shown: view_sources.Shown | None = None,
    ) -> None:
        """Removes a database; with `cascade` all that is in it.

        With `delete_data` the directories of the database and of its managed tables go too, after the commit.
        `shown`: which materialized views the caller sees; None for all. Raises NoSuchObjectException,
        InvalidOperationException if it isn't empty, MetaException for that of `hive` called `default`, and where such a
        view elsewhere is built from one of its tables.
        """
        name = given.database_name(database, catalog)
        if name == DatabaseName(DEFAULT_CATALOG, DEFAULT_DATABASE):
            raise MetaException("Can not drop default database")
        hidden = self._hidden_users(name, shown) if cascade and shown is not None else frozenset()
        with self._store.write() as tx:
            row = databases.find(tx, name, RowLock.EXCLUSIVE)
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
            request_keys.claim(tx)
            own = [place for place in (row.location, row.managed_location) if place]
            inside = self._remove_contents(tx, row, hidden)
            databases.remove(tx, row.id)
            self._events.database(tx, EventType.DROP_DATABASE, hive_objects.database_of(row), None)
            deletions: list[Move] = []
            if delete_data:
                self._mover.settle_within(tx, [*own, *inside])
                deletions = moves.add_deletions(tx, self._doomed(tx, own, inside))
            else:
                self._deletable.forget(tx, [*own, *inside])
        self._mover.carry_out(deletions)

    def _doomed(self, tx: Transaction, own: Sequence[str], inside: Sequence[str]) -> list[str]:
        """What of a database's directories and those of its tables is to be deleted."""
        doomed = self._deletable.among(tx, own)
        # Those of tables that lie in its directory go with it, or one by one where that has to stay.
        left = [place for place in inside if not any(self._warehouse.relative_to(place, each) for each in doomed)]
        return [*doomed, *self._deletable.among(tx, [place for place in left if place not in doomed])]

    def _hidden_users(self, name: DatabaseName, shown: view_sources.Shown) -> frozenset[TableName]:
        with self._store.read() as tx:
            inside = [TableName(*name, table) for table in tables.names(tx, name)]
        return view_sources.hidden_users(self._store, name.catalog, inside, shown)

    def _remove_contents(self, tx: Transaction, row: DatabaseRow, hidden: Collection[TableName]) -> Sequence[str]:
        """Removes tables and functions; the directories of managed tables are returned.

        `hidden`: the materialized views that don't keep their sources from being dropped.
        """
        # Held, so that nobody is adding partitions to one of them.
        inside = tables.find_all(tx, row.name, RowLock.EXCLUSIVE)
        view_sources.check_unused(tx, row.name.catalog, [table.name for table in inside], hidden)
        ids = [table.id for table in inside]
        managed = [table for table in inside if not hive_objects.is_true(table.parameters.get("EXTERNAL"))]
        directories = [base_of(t.location) for t in managed if t.location]
        directories += partitions.foreign_locations(tx, [t.id for t in managed])
        for function in functions.find_all(tx, row.name.catalog):
            if function.database == row.name:
                self._events.function(tx, EventType.DROP_FUNCTION, function_of(function), None)
        self._events.tables_dropped(tx, map(hive_objects.table_of, inside))
        tables.remove(tx, ids)
        written_tables.forget_tables(tx, row.name, [table.name.table for table in inside])
        functions.remove_all(tx, row.id)
        return directories
