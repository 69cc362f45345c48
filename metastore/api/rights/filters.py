"""What of an answer a caller gets to see: each filter takes what is hidden from the caller out of it.

Where a method has a limit, hidden items must be left out before it counts. Its filter says of items whether they are
shown (`_before_limits`), and the function that answers the method asks it (`Call.shown`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from lake.protocol.events.types import Event, EventType
from lake.protocol.hive import PrincipalType, ShowCompactResponseElement, SQLForeignKey
from metastore.api.rights.classification import Rule, value_at
from metastore.api.rights.naming import of_ref
from metastore.services.access.caller import Caller
from metastore.services.access.rights import (
    EVERYTHING,
    Action,
    Authorizer,
    Kind,
    Securable,
    database,
    table,
)
from metastore.services.model import names as given
from metastore.store.engine.names import DatabaseName, TableName

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class View:
    """Whose answer is filtered, of which call."""

    caller: Caller
    authorizer: Authorizer
    rule: Rule
    arguments: Any
    ids: Callable[[Collection[TableName]], Mapping[TableName, int]]
    """The ids of the tables that have some names now."""

    def argument(self, index: int = 0) -> Any:
        """The argument that the rule names at that place."""
        path = self.rule.extra_paths[index]
        return value_at(self.arguments, path.names)

    def seen(self, items: Sequence[T], objects: Sequence[Securable], action: Action = Action.SEE) -> list[T]:
        """Those items whose objects the caller may see.

        Where there are none, it is decided about another: the time must not tell that there was nothing to decide.
        """
        return [item for item, sees in zip(items, self.visible(objects, action), strict=True) if sees]

    def visible(self, objects: Sequence[Securable], action: Action = Action.SEE) -> list[bool]:
        """For each of the objects whether the caller may see it. Where there are none, as in `seen`."""
        if not objects:
            self.authorizer.visible(self.caller, [_NOTHING], action)
            return []
        return self.authorizer.visible(self.caller, objects, action)

    def may(self, action: Action, object: Securable) -> bool:
        return self.authorizer.decide(self.caller, action, object).allowed


_NOTHING = table(TableName(given.DEFAULT_CATALOG, "", ""))
Filter = Callable[[View, Any], Any]
_FILTERS: dict[str, Filter] = {}
Shown = Callable[[View, Sequence[Any]], list[bool]]
_BEFORE_LIMITS: dict[str, Shown] = {}


def filter_named(name: str) -> Filter:
    """The filter of that name. Raises KeyError."""
    return _FILTERS[name]


def _filter(function: Filter) -> Filter:
    _FILTERS[function.__name__] = function
    return function


def is_before_limits(name: str) -> bool:
    """Whether a filter is one for methods with a limit: see `shown_named`."""
    return name in _BEFORE_LIMITS


def shown_named(name: str) -> Shown:
    """The filter of that name that says of items whether they are shown. Raises KeyError."""
    return _BEFORE_LIMITS[name]


def _before_limits(function: Shown) -> Shown:
    _BEFORE_LIMITS[function.__name__] = function
    return function


def _object(catalog: str | None, database_name: str, name: str | None = None) -> Securable:
    where = given.database_name(database_name, catalog)
    if name is None:
        return database(where)
    return table(TableName(where.catalog, where.database, given.plain_table(name)))


# -- lists of names and objects --------------------------------------------------------------------------------


@_filter
def databases(view: View, found: list[str]) -> list[str]:
    """Names of databases, in the catalog of the pattern, if there is one."""
    pattern = view.argument() if hasattr(view.arguments, "pattern") else None
    catalog = given.normalized(given.split_database(pattern)[0] or given.DEFAULT_CATALOG)
    return view.seen(found, [database(DatabaseName(catalog, name)) for name in found])


@_filter
def database_structs(view: View, found: Any) -> Any:
    values = found.databases or []
    found.databases = view.seen(values, [_object(each.catalogName, each.name) for each in values])
    return found


@_filter
def tables(view: View, found: list[str]) -> list[str]:
    """Names of a database's tables."""
    where = given.database_name(view.argument())
    return view.seen(found, [table(TableName(where.catalog, where.database, name)) for name in found])


@_filter
def iceberg_names(view: View, found: Any) -> Any:
    """The lists of a database's tables that Iceberg's catalog may show."""
    found.tables, found.views, found.exposing = (
        tables(view, each) for each in (found.tables, found.views, found.exposing)
    )
    return found


@_filter
def table_structs(view: View, found: Any) -> Any:
    """Tables, or what is known of each, as a list."""
    return view.seen(found, [_object(each.catName, each.dbName, each.tableName) for each in found])


@_filter
def named_tables(view: View, found: list[Any]) -> list[Any]:
    """Tables that were asked for by name.

    It is decided about all names that were sent: the time of an answer must not tell which of them there are.
    """
    return _of_names(view, given.database_name(view.argument()), view.argument(1), found)


@_filter
def requested_tables(view: View, found: Any) -> Any:
    """Tables that were asked for by name, or by patterns."""
    request, tables = view.argument(), found.tables or []
    if request.tablesPattern is None:
        where = given.database_name(request.dbName, request.catName)
        found.tables = _of_names(view, where, request.tblNames or (), tables)
    else:
        found.tables = table_structs(view, tables)
    return found


def _of_names(view: View, where: DatabaseName, sent: Iterable[str], found: list[Any]) -> list[Any]:
    wanted = dict.fromkeys(given.plain_table(name) for name in sent)
    names = view.seen(list(wanted), [table(TableName(where.catalog, where.database, name)) for name in wanted])
    seen = frozenset(names)
    return [each for each in found if given.plain_table(each.tableName) in seen]


@_before_limits
def limited_tables(view: View, names: Sequence[str]) -> list[bool]:
    """Names of a database's tables. The catalog may be an argument of its own."""
    catalog = view.argument(1) if len(view.rule.extra_paths) > 1 else None
    where = given.database_name(view.argument(), catalog)
    return view.visible([table(TableName(where.catalog, where.database, name)) for name in names])


@_filter
def functions(view: View, found: Any) -> Any:
    values = found.functions or []
    found.functions = view.seen(values, [_object(each.catName, each.dbName) for each in values])
    return found


@_filter
def schema_versions(view: View, found: Any) -> Any:
    values = [each for each in found.schemaVersions or [] if each.schema is not None]
    found.schemaVersions = view.seen(values, [_object(each.schema.catName, each.schema.dbName) for each in values])
    return found


@_filter
def foreign_keys(view: View, found: Any) -> Any:
    """A foreign key names two tables: who may not see both doesn't see the key."""
    holder = found.allTableConstraints if hasattr(found, "allTableConstraints") else found
    values: list[SQLForeignKey] = holder.foreignKeys or []
    parents = [_object(each.catName, each.pktable_db or "", each.pktable_name) for each in values]
    children = [_object(each.catName, each.fktable_db or "", each.fktable_name) for each in values]
    visible = view.authorizer.visible(view.caller, [*parents, *children])
    pairs = zip(visible[: len(values)], visible[len(values) :], strict=True)
    holder.foreignKeys = [each for each, (parent, child) in zip(values, pairs, strict=True) if parent and child]
    return found


# -- rights ----------------------------------------------------------------------------------------------------


@_filter
def roles(view: View, found: list[str]) -> list[str]:
    return view.seen(found, [Securable(Kind.ROLE, database=name) for name in found])


@_filter
def privileges(view: View, found: list[Any]) -> list[Any]:
    """Of privileges on an object everybody sees their own; all of them who may give them."""
    if view.may(Action.ADMIN, EVERYTHING):
        return found
    mine = [each for each in found if _is_own(view, each)]
    own = {id(each) for each in mine}
    others = [each for each in found if id(each) not in own]
    granted = [object._replace(granting="ALL") for each in others for object in of_ref(each.hiveObject)]
    decided = view.authorizer.decide_all(view.caller, [(Action.GRANT, each) for each in dict.fromkeys(granted)])
    grantable = {each for each, made in zip(dict.fromkeys(granted), decided, strict=True) if made.allowed}
    shown = {id(each) for each in others for o in of_ref(each.hiveObject) if o._replace(granting="ALL") in grantable}
    return [each for each in found if id(each) in own or id(each) in shown]


def _is_own(view: View, privilege: Any) -> bool:
    if privilege.principalType == PrincipalType.USER:
        return bool(privilege.principalName == view.caller.user)
    if privilege.principalType == PrincipalType.GROUP:
        return privilege.principalName in view.caller.groups
    return view.may(Action.SEE, Securable(Kind.ROLE, database=privilege.principalName))


# -- locks, compactions ----------------------------------------------------------------------------------------


@_filter
def locks(view: View, found: Any) -> Any:
    values = found.locks or []
    found.locks = view.seen(values, [_object(None, each.dbname, each.tablename) for each in values])
    return found


@_before_limits
def compactions(view: View, found: Sequence[ShowCompactResponseElement]) -> list[bool]:
    return view.visible([_object(None, each.dbname or "", each.tablename) for each in found])


@_filter
def open_transactions(view: View, found: Any) -> Any:
    """Whose transactions are open, and on which hosts, is told to administrators. Others know their own."""
    if not view.may(Action.ADMIN, EVERYTHING):
        for each in found.open_txns or ():
            if each.user != view.caller.user:
                each.user = each.hostname = ""
    return found


# -- the server itself -----------------------------------------------------------------------------------------

_PUBLIC_OPTIONS = ("version", "authentication", "encryption")
"""What everybody learns who connects."""


@_filter
def option(view: View, found: str) -> str:
    return found if view.argument() in _PUBLIC_OPTIONS or view.may(Action.ADMIN, EVERYTHING) else ""


@_filter
def options(view: View, found: dict[str, str]) -> dict[str, str]:
    if view.may(Action.ADMIN, EVERYTHING):
        return found
    return {name: value for name, value in found.items() if name in _PUBLIC_OPTIONS}


# -- events ----------------------------------------------------------------------------------------------------


@_before_limits
def events(view: View, found: Sequence[Event]) -> list[bool]:
    """Events about objects that the caller may read or subscribe to; all objects, if an event names several."""
    named = [list(_objects(each)) for each in found]
    ids = view.ids({each.of_table for objects in named for each, _ in objects if each.kind is Kind.TABLE})
    objects = [[_decided_by(each, number, ids) for each, number in some] for some in named]
    distinct = list(dict.fromkeys(chain.from_iterable(objects))) or [_NOTHING]
    decided = view.authorizer.decide_all(view.caller, [(Action.SUBSCRIBE, each) for each in distinct])
    allowed = {each for each, made in zip(distinct, decided, strict=True) if made.allowed}
    return [allowed.issuperset(each) for each in objects]


def _decided_by(object: Securable, number: int | None, ids: Mapping[TableName, int]) -> Securable:
    """The object whose rights count for an event of the table with that id.

    If another table has the name now, that is the database, as for a dropped table.
    """
    if number is not None and ids.get(object.of_table, number) != number:
        return database(object.of_database)
    return object


_RENAMES = (EventType.ALTER_TABLE, EventType.ALTER_FUNCTION)


def _objects(event: Event) -> Iterator[tuple[Securable, int | None]]:
    """What an event is about and what else it names, with the id of the table where it is known.

    An event without a database is shown to callers that may read all. A rename and a foreign key name two tables. The
    earlier name of a table in its own database is not one of another.
    """
    number = _table_id(event.payload)
    if not event.database:
        yield EVERYTHING, None
    else:
        yield _object(event.catalog, event.database, event.table or None), number if event.table else None
    if event.type in _RENAMES:
        for where, name in _of_payload(event.payload):
            if where != event.database:
                yield _object(event.catalog, where, name), number
    elif event.type is EventType.ADD_CONSTRAINTS:
        for where, name in _of_payload(event.payload):
            yield _object(event.catalog, where, name), None


def _table_id(payload: Mapping[str, Any]) -> int | None:
    structs = (payload.get(each) for each in ("table", "after", "before"))
    found: int | None = payload.get("tableId") or next((each["id"] for each in structs if each and "id" in each), None)
    return found


def _of_payload(payload: Any) -> set[tuple[str, str]]:
    """The tables, as database and name, that an event names beside its own."""
    keys = payload.get("constraints", {}).get("foreignKeys", ())
    values = [(payload[each], "dbName", "tableName") for each in ("before", "after") if each in payload]
    values += [(each, f"{side}table_db", f"{side}table_name") for each in keys for side in ("pk", "fk")]
    return {(each[where], each.get(name) or "") for each, where, name in values if each.get(where)}
