"""Stored procedures and packages of HPL/SQL: source texts by name.

Names of databases are lower-case; names of procedures and packages are case-sensitive.
"""

from lake.protocol.codec import binary
from lake.protocol.hive import AddPackageRequest, MetaException, NoSuchObjectException, Package, StoredProcedure
from metastore.services.model import names as given
from metastore.services.model.validation import check_length
from metastore.store import Database
from metastore.store.catalog import databases
from metastore.store.catalog.databases import RowLock
from metastore.store.registry import named_objects
from metastore.store.registry.named_objects import Kind, NamedRow


class ProcedureService:
    """Hive's calls for stored procedures and packages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- procedures -------------------------------------------------------------------------------------------

    def put(self, procedure: StoredProcedure) -> None:
        """Stores or replaces a procedure. Raises NoSuchObjectException for an unknown database."""
        kept = binary.encode(procedure.replace(name=None, dbName=None, catName=None))
        self._put(Kind.STORED_PROCEDURE, procedure.catName, procedure.dbName, procedure.name, kept)

    def get(self, catalog: str | None, database: str | None, name: str | None) -> StoredProcedure:
        """One procedure. Raises NoSuchObjectException."""
        row = self._find(Kind.STORED_PROCEDURE, catalog, database, name)
        if row is None or row.database is None:
            raise NoSuchObjectException(f"HPL/SQL StoredProcedure {database}.{name} does not exist")
        value = binary.decode_preserving(StoredProcedure, row.body)
        value.catName, value.dbName, value.name = row.database.catalog, row.database.database, row.name
        return value

    def drop(self, catalog: str | None, database: str | None, name: str | None) -> None:
        """Removes a procedure, if there is one."""
        self._drop(Kind.STORED_PROCEDURE, catalog, database, name)

    def names(self, catalog: str | None, database: str | None) -> list[str]:
        """The names of a database's procedures, or of all in a catalog, in order."""
        return self._names(Kind.STORED_PROCEDURE, catalog, database)

    # --- packages ---------------------------------------------------------------------------------------------

    def put_package(self, request: AddPackageRequest) -> None:
        """Stores or replaces a package. Raises NoSuchObjectException for an unknown database."""
        # The request has the fields of a package, with the same numbers.
        kept = binary.encode(request.replace(packageName=None, dbName=None, catName=None))
        self._put(Kind.PACKAGE, request.catName, request.dbName, request.packageName, kept)

    def get_package(self, catalog: str | None, database: str | None, name: str | None) -> Package:
        """One package. Raises NoSuchObjectException."""
        row = self._find(Kind.PACKAGE, catalog, database, name)
        if row is None or row.database is None:
            raise NoSuchObjectException(f"HPL/SQL package {database}.{name} does not exist")
        value = binary.decode_preserving(Package, row.body)
        value.catName, value.dbName, value.packageName = row.database.catalog, row.database.database, row.name
        return value

    def drop_package(self, catalog: str | None, database: str | None, name: str | None) -> None:
        """Removes a package, if there is one."""
        self._drop(Kind.PACKAGE, catalog, database, name)

    def package_names(self, catalog: str | None, database: str | None) -> list[str]:
        """The names of a database's packages, or of all in a catalog, in order."""
        return self._names(Kind.PACKAGE, catalog, database)

    # --- both -------------------------------------------------------------------------------------------------

    def _put(self, kind: Kind, catalog: str | None, database: str | None, name: str | None, body: bytes) -> None:
        if name is None:
            raise MetaException(f"the {_word(kind)}'s name is missing")
        check_length(name, _word(kind))
        home = given.database_name(database, catalog)
        with self._database.write() as tx:
            # The database's row is locked exclusively, so that nobody else adds the same name.
            parent = databases.find(tx, home, RowLock.EXCLUSIVE)
            if parent is None:
                raise NoSuchObjectException(f"There is no database {home}")
            row = named_objects.find(tx, kind, name, home)
            if row is None:
                named_objects.add(tx, kind, name, body, parent.id)
            else:
                named_objects.change(tx, row.id, body)

    def _find(self, kind: Kind, catalog: str | None, database: str | None, name: str | None) -> NamedRow | None:
        with self._database.read() as tx:
            return named_objects.find(tx, kind, name or "", given.database_name(database, catalog))

    def _drop(self, kind: Kind, catalog: str | None, database: str | None, name: str | None) -> None:
        with self._database.write() as tx:
            row = named_objects.find(tx, kind, name or "", given.database_name(database, catalog), lock=True)
            if row is not None:
                named_objects.remove(tx, row.id)

    def _names(self, kind: Kind, catalog: str | None, database: str | None) -> list[str]:
        own = None if database is None else given.database_name(database, catalog)
        where = given.normalized(catalog or given.DEFAULT_CATALOG) if own is None else own.catalog
        with self._database.read() as tx:
            return named_objects.names_in_catalog(tx, kind, where, own and own.database)


def _word(kind: Kind) -> str:
    return kind.name.replace("_", " ").lower()
