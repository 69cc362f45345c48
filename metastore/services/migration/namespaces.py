"""Brings catalogs, databases and functions of another metastore."""

from lake.protocol.clock import now_seconds
from lake.protocol.codec import binary
from lake.protocol.events.types import EventType
from lake.protocol.hive import (
    Catalog,
    Database,
    DatabaseType,
    Function,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)
from metastore.services.catalog import functions as function_forms
from metastore.services.catalog.catalogs import DEFAULT_DESCRIPTION
from metastore.services.events.recorder import Events
from metastore.services.migration.outcome import Outcome, difference
from metastore.services.migration.places import NewPlaces
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.services.model.names import DEFAULT_CATALOG, DEFAULT_DATABASE
from metastore.services.model.validation import check_length, is_database_name, is_name
from metastore.store.catalog import catalogs, databases, functions
from metastore.store.catalog.catalogs import CatalogRow
from metastore.store.catalog.databases import DatabaseRow, RowLock
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import DatabaseName


class Namespaces:
    """Keeps catalogs, databases and functions as they are elsewhere, in transactions of the caller's."""

    def __init__(self, events: Events, places: NewPlaces) -> None:
        self._events = events
        self._places = places

    # --- catalogs ---------------------------------------------------------------------------------------------

    def catalog(self, tx: Transaction, brought: Catalog, outcome: Outcome) -> None:
        """Raises MetaException for a catalog without name or location."""
        name = given.normalized(brought.name or "")
        if not is_name(name) or not brought.locationUri:
            raise MetaException(f"a catalog needs a valid name and a location: {brought.name!r}")
        check_length(name, "catalog")
        self._places.check(brought.locationUri)
        row = catalogs.find(tx, name, lock=True)
        if row is None:
            time = brought.createTime or now_seconds()
            number = catalogs.add(tx, name, brought.description, brought.locationUri, time)
            self._add_default(tx, number, name, brought.locationUri, time)
            self._events.catalog(
                tx, EventType.CREATE_CATALOG, None, Catalog(name, brought.description, brought.locationUri, time)
            )
            outcome.added += 1
            return
        here = Catalog(row.name, row.description, row.location, row.create_time)
        wanted = Catalog(name, brought.description, brought.locationUri, row.create_time)
        found = difference(here, wanted)
        is_made = (
            name == DEFAULT_CATALOG and row.description == DEFAULT_DESCRIPTION and self._places.is_root(row.location)
        )
        if found is not None and is_made:
            outcome.added += 1
        elif not outcome.differs("catalog", name, found):
            return
        catalogs.change(tx, row.id, description=brought.description, location=brought.locationUri)
        self._places.given(tx, [self._places.qualified(brought.locationUri)])
        self._events.catalog(tx, EventType.ALTER_CATALOG, here, wanted)

    def _add_default(self, tx: Transaction, catalog_id: int, name: str, location: str, time: int) -> None:
        """The database that each catalog has from the beginning. One that is brought replaces it, see `_is_made`."""
        body = Database(
            description=_description_of_default(name),
            parameters={},
            ownerType=PrincipalType.USER,
            createTime=time,
        )
        databases.add(tx, catalog_id, DEFAULT_DATABASE, self._places.qualified(location), None, binary.encode(body))

    # --- databases --------------------------------------------------------------------------------------------

    def database(self, tx: Transaction, brought: Database, outcome: Outcome) -> None:
        """Raises NoSuchObjectException where its catalog isn't there, MetaException for a bad name or place."""
        name = given.database_name(brought.name, brought.catalogName)
        if not is_database_name(name.database):
            raise MetaException(f"{name.database!r} is not a valid database name")
        check_length(name.database, "database")
        catalog = catalogs.find(tx, name.catalog)
        if catalog is None:
            raise NoSuchObjectException(f"No catalog {name.catalog}: import the catalogs first")
        wanted = self._completed(name, brought)
        places = [each for each in (wanted.locationUri, wanted.managedLocationUri) if each]
        row = databases.find(tx, name, RowLock.EXCLUSIVE)
        if row is None:
            databases.add(
                tx,
                catalog.id,
                name.database,
                wanted.locationUri,
                wanted.ownerName,
                hive_objects.database_body(wanted),
                wanted.managedLocationUri,
            )
            self._places.taken(tx, places)
            self._events.database(tx, EventType.CREATE_DATABASE, None, wanted)
            outcome.added += 1
            return
        here = hive_objects.database_of(row)
        if brought.createTime is None:  # Hive 2.3 keeps none
            wanted.createTime = here.createTime
        found = difference(here, wanted)
        if found is not None and _is_made(catalog, row, here):
            self._replace_database(tx, row, here, wanted, places)
            outcome.added += 1
        elif outcome.differs("database", str(name), found):
            self._replace_database(tx, row, here, wanted, places)

    def _completed(self, name: DatabaseName, brought: Database) -> Database:
        """In the form in which databases are kept."""
        return brought.replace(
            name=name.database,
            catalogName=name.catalog,
            locationUri=self._places.qualified(brought.locationUri) if brought.locationUri else None,
            managedLocationUri=(
                self._places.qualified(brought.managedLocationUri) if brought.managedLocationUri else None
            ),
            parameters=brought.parameters or {},
            ownerType=brought.ownerType or PrincipalType.USER,
            createTime=brought.createTime or now_seconds(),
            type=None if brought.type == DatabaseType.NATIVE else brought.type,
            privileges=None,
        )

    def _replace_database(
        self, tx: Transaction, row: DatabaseRow, here: Database, wanted: Database, places: list[str]
    ) -> None:
        databases.change(
            tx,
            row.id,
            location=wanted.locationUri,
            owner=wanted.ownerName,
            body=hive_objects.database_body(wanted),
            managed_location=wanted.managedLocationUri,
        )
        self._places.given(tx, places)
        self._events.database(tx, EventType.ALTER_DATABASE, here, wanted)

    # --- functions --------------------------------------------------------------------------------------------

    def function(self, tx: Transaction, brought: Function, outcome: Outcome) -> None:
        """Raises NoSuchObjectException where its database isn't there, MetaException for a bad name."""
        home = given.database_name(brought.dbName, brought.catName)
        name = given.normalized(brought.functionName or "")
        if not is_name(name):
            raise MetaException(f"{brought.functionName!r} is not a valid function name")
        check_length(name, "function")
        row = databases.find(tx, home, RowLock.SHARED)
        if row is None:
            raise NoSuchObjectException(f"No database {home}: import the databases first")
        wanted = brought.replace(
            functionName=name,
            dbName=home.database,
            catName=home.catalog,
            createTime=brought.createTime or 0,
            resourceUris=brought.resourceUris or [],
        )
        there = functions.find(tx, home, name, lock=True)
        if there is None:
            functions.add(tx, row.id, name, function_forms.body(wanted))
            self._events.function(tx, EventType.CREATE_FUNCTION, None, wanted)
            outcome.added += 1
            return
        here = function_forms.function_of(there)
        if outcome.differs("function", f"{home}.{name}", difference(here, wanted)):
            functions.change(tx, there.id, row.id, name, function_forms.body(wanted))
            self._events.function(tx, EventType.ALTER_FUNCTION, here, wanted)


def _description_of_default(catalog: str) -> str:
    return "Default Hive database" if catalog == DEFAULT_CATALOG else f"Default database for catalog {catalog}"


def _is_made(catalog: CatalogRow, row: DatabaseRow, here: Database) -> bool:
    """Whether a database is the one that its catalog was made with, and nobody has changed it.

    Every metastore has one, and says where new tables go: the one that is brought is to be here, too.
    """
    return (
        row.name.database == DEFAULT_DATABASE
        and here.description == _description_of_default(catalog.name)
        and not here.parameters
        and here.createTime == catalog.create_time
    )
