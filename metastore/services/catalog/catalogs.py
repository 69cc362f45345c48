"""Catalogs, the top level of names (Hive 3 and later)."""

from contextlib import suppress

from lake.protocol.clock import now_seconds
from lake.protocol.codec import binary
from lake.protocol.events.types import EventType
from lake.protocol.hive import (
    AlreadyExistsException,
    Catalog,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)
from lake.protocol.hive import Database as HiveDatabase
from metastore.services.events.recorder import Events
from metastore.services.files.deletable import Deletable
from metastore.services.files.new_directories import new_directories
from metastore.services.model.names import DEFAULT_CATALOG, DEFAULT_DATABASE
from metastore.services.model.validation import check_length, is_name
from metastore.store import Conflict, Database
from metastore.store.catalog import catalogs, databases
from metastore.store.catalog.catalogs import CatalogRow
from metastore.store.engine.names import DatabaseName
from metastore.warehouse import Warehouse, WarehouseError

DEFAULT_DESCRIPTION = "Default catalog, for Hive"


class CatalogService:
    """Hive's calls for catalogs."""

    def __init__(self, database: Database, warehouse: Warehouse, events: Events, deletable: Deletable) -> None:
        self._events = events
        self._deletable = deletable
        self._database = database
        self._warehouse = warehouse

    def bootstrap(self) -> None:
        """Makes the catalog and the database that are always there: `hive` and its `default`."""
        with self._database.read() as tx:
            if databases.find(tx, DatabaseName(DEFAULT_CATALOG, DEFAULT_DATABASE)) is not None:
                return
        root = self._warehouse.database_location(DEFAULT_DATABASE)
        self._warehouse.make_directory(root)
        now = now_seconds()
        body = HiveDatabase(
            description="Default Hive database", parameters={}, ownerType=PrincipalType.ROLE, createTime=now
        )
        try:
            with self._database.write() as tx:
                catalog_id = catalogs.add(tx, DEFAULT_CATALOG, DEFAULT_DESCRIPTION, root, now)
                databases.add(tx, catalog_id, DEFAULT_DATABASE, root, "public", binary.encode(body))
        except Conflict:  # another server was as quick
            return

    def create(self, catalog: Catalog) -> None:
        """Adds a catalog with its `default` database. Its location is stored and returned unchanged, as in Hive.

        Raises AlreadyExistsException, InvalidObjectException for a bad name, MetaException for a bad location.
        """
        if not catalog.name or not is_name(catalog.name):
            raise InvalidObjectException(f"{catalog.name} is not a valid catalog name")
        check_length(catalog.name, "catalog")
        if not catalog.locationUri:
            raise MetaException("a catalog needs a location")
        name, location = catalog.name.lower(), self._place(catalog.locationUri)
        now = now_seconds()
        body = HiveDatabase(
            description=f"Default database for catalog {name}",
            parameters={},
            ownerType=PrincipalType.USER,
            createTime=now,
        )
        taken = AlreadyExistsException(f"Catalog {catalog.name} already exists")
        with new_directories(self._warehouse, taken) as made:
            self._warehouse.make_directories([location], made)
            with self._database.write() as tx:
                catalog_id = catalogs.add(tx, name, catalog.description, catalog.locationUri, now)
                databases.add(tx, catalog_id, DEFAULT_DATABASE, location, None, binary.encode(body))
                self._deletable.record(tx, location, made=location in made)
                created = Catalog(name, catalog.description, catalog.locationUri, now)
                self._events.catalog(tx, EventType.CREATE_CATALOG, None, created)

    def _place(self, location: str) -> str:
        place = self._warehouse.qualify(location)
        if self._warehouse.parent(place) is None:
            raise MetaException(f"a catalog's location must not be the root of a storage: {place}")
        return place

    def names(self) -> list[str]:
        """All catalogs' names in order."""
        with self._database.read() as tx:
            return catalogs.names(tx)

    def get(self, name: str | None) -> Catalog:
        """One catalog. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            row = catalogs.find(tx, (name or "").lower())
        if row is None:
            raise NoSuchObjectException(f"No catalog {name}")
        return _catalog(row)

    def alter(self, name: str | None, catalog: Catalog) -> None:
        """Changes description and location; a catalog can't be renamed. Raises NoSuchObjectException."""
        if not catalog.locationUri:
            raise InvalidOperationException("a catalog needs a location")
        location = self._place(catalog.locationUri)
        if (catalog.name or "").lower() != (name or "").lower():
            raise InvalidOperationException("Cannot rename a catalog")
        self._warehouse.make_directory(location)
        with self._database.write() as tx:
            row = catalogs.find(tx, (name or "").lower(), lock=True)
            if row is None:
                raise NoSuchObjectException(f"No catalog {name}")
            if location != self._warehouse.qualify(row.location):
                self._deletable.record_given(tx, [location])
            catalogs.change(tx, row.id, description=catalog.description, location=catalog.locationUri)
            changed = Catalog(row.name, catalog.description, catalog.locationUri, row.create_time)
            self._events.catalog(tx, EventType.ALTER_CATALOG, _catalog(row), changed)

    def drop(self, name: str | None, *, if_exists: bool = False) -> None:
        """Removes a catalog that holds nothing but an empty `default` database, and then their empty directories.

        Raises NoSuchObjectException, InvalidOperationException where something is in it, MetaException for `hive`.
        """
        key = (name or "").lower()
        if key == DEFAULT_CATALOG:
            raise MetaException(f"Can not drop {DEFAULT_CATALOG} catalog")
        with self._database.write() as tx:
            row = catalogs.find(tx, key, lock=True)
            if row is None:
                if if_exists:
                    return
                raise NoSuchObjectException(f"No catalog {name}")
            default = databases.find(tx, DatabaseName(key, DEFAULT_DATABASE), databases.RowLock.EXCLUSIVE)
            if catalogs.has_databases(tx, row.id, besides=DEFAULT_DATABASE):
                raise InvalidOperationException(f"Catalog {name} is not empty. There are databases in it.")
            if default is not None:
                if databases.has_tables(tx, default.id) or databases.has_functions(tx, default.id):
                    raise InvalidOperationException(f"Catalog {name} is not empty: its default database isn't")
                databases.remove(tx, default.id)
            catalogs.remove(tx, row.id)
            self._events.catalog(tx, EventType.DROP_CATALOG, _catalog(row), None)
            places = {self._warehouse.qualify(row.location), (default and default.location) or ""} - {""}
            unused = self._deletable.among(tx, sorted(places))
            self._deletable.forget(tx, places)
        with suppress(WarehouseError):  # what was dropped stays dropped; one of the warehouse's roots stays, too
            for each in unused:
                self._warehouse.delete_empty_directory(each)


def _catalog(row: CatalogRow) -> Catalog:
    return Catalog(row.name, row.description, row.location, row.create_time)
