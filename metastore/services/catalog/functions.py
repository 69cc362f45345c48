"""Hive's calls for user-defined functions."""

from lake.protocol.clock import now_seconds
from lake.protocol.codec import binary
from lake.protocol.events.types import EventType
from lake.protocol.hive import (
    AlreadyExistsException,
    Function,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
)
from metastore.services.events.recorder import Events
from metastore.services.model import names as given
from metastore.services.model import patterns
from metastore.services.model.validation import check_length, is_name
from metastore.store import Conflict, Database
from metastore.store.catalog import databases, functions
from metastore.store.catalog.databases import RowLock
from metastore.store.catalog.functions import FunctionRow
from metastore.store.engine.database import Transaction


class FunctionService:
    """Hive's calls for functions."""

    def __init__(self, database: Database, events: Events) -> None:
        self._events = events
        self._database = database

    def create(self, function: Function) -> None:
        """Adds a function; the time it was made is the server's.

        Raises InvalidObjectException (bad name, no class), NoSuchObjectException for an unknown database,
        AlreadyExistsException, MetaException without a kind of owner or of function.
        """
        name = _check(function)
        home = given.database_name(function.dbName, function.catName)
        kept = function.replace(
            createTime=now_seconds(),
            resourceUris=function.resourceUris or [],
        )
        try:
            with self._database.write() as tx:
                row = databases.find(tx, home, RowLock.SHARED)
                if row is None:
                    raise NoSuchObjectException(given.plain(function.dbName))
                functions.add(tx, row.id, name, body(kept))
                created = kept.replace(functionName=name, dbName=home.database, catName=home.catalog)
                self._events.function(tx, EventType.CREATE_FUNCTION, None, created)
        except Conflict:
            raise AlreadyExistsException(f"Function {function.functionName} already exists") from None

    def get(self, database: str | None, name: str | None) -> Function:
        """One function. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            row = _find(tx, database, name)
        if row is None:
            raise NoSuchObjectException(f"Function {given.plain(database)}.{name} does not exist")
        return function_of(row)

    def names(self, database: str | None, pattern: str | None, catalog: str | None = None) -> list[str]:
        """Names of a database's functions that match, in order; empty where there is no such database."""
        home = given.database_name(database, catalog)
        with self._database.read() as tx:
            return functions.names(tx, home, patterns.like_patterns(pattern))

    def matching(self, database: str | None, pattern: str | None, catalog: str | None = None) -> list[Function]:
        """A database's functions whose names match, in order; none where there is no such database."""
        home = given.database_name(database, catalog)
        with self._database.read() as tx:
            return [function_of(row) for row in functions.find_in(tx, home, patterns.like_patterns(pattern))]

    def all(self) -> list[Function]:
        """Every function of the default catalog, by database and name."""
        with self._database.read() as tx:
            return [function_of(row) for row in functions.find_all(tx, given.DEFAULT_CATALOG)]

    def alter(self, database: str | None, name: str | None, new: Function) -> None:
        """Changes name, database, class, owner and type; resources and the time of making stay, as in Hive.

        Raises MetaException (bad name, no class, name taken, no such function or new database), as Hive 4 does.
        """
        try:
            new_name = _check(new)
        except InvalidObjectException as error:
            raise MetaException(error.message) from None
        if new.dbName is None:
            raise MetaException("the function's database is missing")
        try:
            with self._database.write() as tx:
                row = _find(tx, database, name, lock=True)
                if row is None:
                    raise MetaException(f"function {name} doesn't exist")
                home = given.database_name(new.dbName, new.catName)
                target = databases.find(tx, home, RowLock.SHARED)
                if target is None:
                    raise MetaException(f"Database {given.plain(new.dbName)} does not exist")
                changed = function_of(row).replace(
                    className=new.className,
                    ownerName=new.ownerName,
                    ownerType=new.ownerType,
                    functionType=new.functionType,
                )
                functions.change(tx, row.id, target.id, new_name, body(changed))
                changed = changed.replace(functionName=new_name, dbName=home.database, catName=home.catalog)
                self._events.function(tx, EventType.ALTER_FUNCTION, function_of(row), changed)
        except Conflict:
            raise MetaException(f"Function {new.functionName} already exists") from None

    def drop(self, database: str | None, name: str | None) -> None:
        """Removes a function. Raises NoSuchObjectException."""
        with self._database.write() as tx:
            row = _find(tx, database, name, lock=True)
            if row is None:
                raise NoSuchObjectException(f"Function {name} does not exist")
            functions.remove(tx, row.id)
            self._events.function(tx, EventType.DROP_FUNCTION, function_of(row), None)


def _check(function: Function) -> str:
    """Hive's checks of a function, in Hive's order, and its lower-cased name."""
    if function.functionName is None:
        raise MetaException("Function name cannot be null")
    if not is_name(function.functionName):
        raise InvalidObjectException(f"{function.functionName} is not a valid object name")
    if function.className is None:
        raise InvalidObjectException("Function class name cannot be null")
    if function.ownerType is None or function.functionType is None:
        raise MetaException("a function needs a kind of owner and a kind of function")
    check_length(function.functionName, "function")
    for resource in function.resourceUris or ():
        if resource.resourceType is None:
            raise MetaException(f"resource {resource.uri} of the function has no type")
    return given.normalized(function.functionName)


def _find(tx: Transaction, database: str | None, name: str | None, *, lock: bool = False) -> FunctionRow | None:
    if name is None:
        raise MetaException("the function's name is missing")
    return functions.find(tx, given.database_name(database), given.normalized(name), lock=lock)


def body(function: Function) -> bytes:
    """What the store keeps of a function beside its names."""
    return binary.encode(function.replace(functionName=None, dbName=None, catName=None))


def function_of(row: FunctionRow) -> Function:
    """A function as Hive gives it."""
    value = binary.decode_preserving(Function, row.body)
    value.functionName, value.dbName, value.catName = row.name, row.database.database, row.database.catalog
    return value
