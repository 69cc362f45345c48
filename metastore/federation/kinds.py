"""Databases whose tables lie at two backends: Hive's at one, and at the one beside it those of other kinds.

Where a table lies is asked, and not remembered: the backend beside is asked first, and what it doesn't have is the
other one's. So a name means one table, even if both have one of this name.
"""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from lake.protocol.codec import binary
from lake.protocol.formats.spark_schema import PROVIDER
from lake.protocol.hive import (
    AlreadyExistsException,
    GetTableRequest,
    HiveObjectRef,
    HiveObjectType,
    InvalidOperationException,
    NoSuchObjectException,
    Table,
    UnknownDBException,
)
from lake.protocol.method import Method
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from metastore.federation import fields
from metastore.federation.names import DEFAULT_CATALOG, Name
from metastore.federation.routing import SELECTED, Refused
from metastore.federation.translation import Asked, asked, parsed, split_qualified
from metastore.services.model.names import normalized, plain_table, shown_as_iceberg

if TYPE_CHECKING:
    from metastore.federation.front import Request

_MISSING = (NoSuchObjectException, UnknownDBException)
_CREATES = frozenset({
    "create_table", "create_table_with_environment_context", "create_table_with_constraints", "create_table_req",
    "translate_table_dryrun",
})  # fmt: skip
_DROPS = frozenset({"drop_database", "drop_database_req"})
_OF_DATABASE = _DROPS | {
    "get_database", "get_database_req", "create_database", "create_database_req", "alter_database",
    "alter_database_req", "create_function", "alter_function", "drop_function", "get_function", "get_functions",
    "get_functions_req", "create_stored_procedure", "get_stored_procedure", "drop_stored_procedure",
    "get_all_stored_procedures", "find_package", "add_package", "get_all_packages", "drop_package", "create_ischema",
    "alter_ischema", "get_ischema", "drop_ischema", "lock", "grant_privileges", "revoke_privileges",
    "grant_revoke_privileges", "get_privilege_set", "list_privileges",
}  # fmt: skip
"""Requests about a database itself. They go to the one that gives it its name, if they name no table."""

_TABLES = ("tbl_name", "tblName", "tableName", "tablename", "table_name", "table", "tblname")
"""Fields that hold the name of a table, beside that of its database."""

_SERIES = ("tbl_names", "tblNames")
_OTHERS: dict[str, tuple[tuple[str, str], ...]] = {
    "SQLForeignKey": (("pktable_db", "pktable_name"), ("fktable_db", "fktable_name")),
    "ForeignKeysRequest": (("parent_db_name", "parent_tbl_name"), ("foreign_db_name", "foreign_tbl_name")),
    "exchange_partition_args": (("source_db", "source_table_name"), ("dest_db", "dest_table_name")),
    "exchange_partitions_args": (("source_db", "source_table_name"), ("dest_db", "dest_table_name")),
    "Index": (("dbName", "origTableName"), ("dbName", "indexTableName")),
    "alter_index_args": (("dbname", "base_tbl_name"),),
    "drop_table_args": (("dbname", "name"),),
    "drop_table_with_environment_context_args": (("dbname", "name"),),
    "HiveObjectRef": (("dbName", "objectName"),),
}
"""The structs that name tables otherwise: their fields with a database and a table."""


class TableName(NamedTuple):
    """A table, by the front's names."""

    database: Name
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


def tables(arguments: Struct) -> set[TableName]:
    """All tables that a request names. Those that a view is made of are not the request's own."""
    return {TableName(each.database, _plain(each.table)) for each in _tables(arguments, None)}


def decorated(arguments: Struct) -> TableName | None:
    """A table that a request names as only lake metastores know it: with its uncommitted partitions, or as Iceberg."""
    return next((each for each in _tables(arguments, None) if _plain(each.table) != normalized(each.table)), None)


def _tables(value: Struct, inherited: str | None) -> Iterator[TableName]:
    kind = type(value).__name__
    it = fields.plan(type(value))
    catalog = (getattr(value, it.catalog) if it.catalog else None) or None
    for database, table in _pairs(value, kind, it.databases):
        where, name = getattr(value, database), getattr(value, table)
        if where and where.startswith("@"):
            inherited = catalog or where[1:].partition("#")[0] or inherited
        for each in name if isinstance(name, list) else [name]:
            if where and each:
                yield TableName(parsed(catalog, inherited, where), each)
    if kind == "CreationMetadata":
        return
    for field in it.qualified:
        held = getattr(value, field)
        for each in [held] if isinstance(held, str) else held or ():
            of, table = split_qualified(each)
            yield TableName(of, table)
    for field in it.parts:
        for part in _structs(getattr(value, field)):
            yield from _tables(part, catalog or inherited)


def _plain(table: str) -> str:
    return shown_as_iceberg(table) or plain_table(table)


def _pairs(value: Struct, kind: str, databases: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, HiveObjectRef) and value.objectType in (HiveObjectType.GLOBAL, HiveObjectType.DATABASE):
        return
    if (others := _OTHERS.get(kind)) is not None:
        yield from others
        return
    known = type(value).field_names()
    for database in databases:
        for table in (*_TABLES, *_SERIES):
            if table in known and isinstance(getattr(value, table), str | list):
                yield database, table


def _structs(part: Any) -> Iterator[Struct]:
    if isinstance(part, Struct):
        yield part
    elif isinstance(part, dict | list):
        for item in part.values() if isinstance(part, dict) else part:
            yield from _structs(item)


def kind_of(table: Table) -> str:
    """What a table's parameters say of its kind: `hive` if they say nothing else."""
    parameters = table.parameters or {}
    of_table, provider = parameters.get("table_type", "").lower(), parameters.get(PROVIDER, "").lower()
    formats = ((table.sd and table.sd.inputFormat) or "").lower()
    for kind, word in (("iceberg", "iceberg"), ("hudi", "hudi"), ("delta", "delta"), ("paimon", "paimon")):
        if word in (of_table, provider) or (
            kind == "iceberg" and word in parameters.get("storage_handler", "").lower()
        ):
            return kind
    if "hoodie" in formats:
        return "hudi"
    return "keyed" if parameters.get("primary-key", "").strip() else "hive"


# -- which backend a request is for --------------------------------------------------------------------------------


def places(request: "Request", method: Method, arguments: Struct, asked: Asked) -> dict[Name, str]:
    """By database the backend that the request is for, for those of its databases whose tables lie at two.

    Raises Refused, BackendError, and exceptions of the method.
    """
    shared: dict[str, list[Name]] = {}
    for name in asked.names:
        place = request.mapping.place(name)
        if place is not None and place.backend in request.mapping.beside:
            shared.setdefault(place.backend, []).append(name)
    found: dict[Name, str] = {}
    for backend, names in shared.items():
        named = {each for each in tables(arguments) if each.database in names}
        found |= dict.fromkeys(names, _backend(request, method, arguments, backend, names, named))
    return found


def _backend(
    request: "Request", method: Method, arguments: Struct, backend: str, names: list[Name], named: set[TableName]
) -> str:
    beside = request.mapping.beside[backend]
    if not named:
        if method.name not in _OF_DATABASE:
            raise Refused(
                f"{method.name} names database {names[0]}, whose tables lie at backends {backend} and {beside}, but no"
                f" table: a front doesn't pass it on. Ask {backend} and {beside} themselves"
            )
        if method.name in _DROPS:
            _check_empty(request, beside, names)
        return backend
    there = {each for each in named if _has(request, beside, each)}
    if there == named:
        return beside
    others = named - there
    if there:
        if found := sorted(str(each) for each in others if _has(request, backend, each)):
            raise Refused(
                f"{method.name} is about {', '.join(sorted(map(str, there)))} of backend {beside} and"
                f" {', '.join(found)} of backend {backend}: a request is about one backend"
            )
        return beside
    if method.name in _CREATES and _belongs_beside(request, method, arguments, backend, beside):
        for each in sorted(others):
            if _has(request, backend, each):
                _taken(method, each, backend)
        return beside
    return backend


def _belongs_beside(request: "Request", method: Method, arguments: Struct, backend: str, beside: str) -> bool:
    kinds = request.mapping.backends[beside].kinds
    for field in type(arguments).field_names():
        value = getattr(arguments, field)
        table = value if isinstance(value, Table) else getattr(value, "table", None)
        if isinstance(table, Table):
            said = (table.parameters or {}).get(SELECTED)
            if said is not None and said not in (backend, beside):
                raise Refused(f"the table's parameter {SELECTED} is {said!r}: say {backend} or {beside}")
            return said == beside if said is not None else kind_of(table) in kinds
    raise Refused(f"{method.name} has no table")


def _taken(method: Method, table: TableName, backend: str) -> None:
    text = f"table {table} already exists, at backend {backend}"
    if AlreadyExistsException in method.exceptions:
        raise AlreadyExistsException(text)
    raise Refused(text)


def _has(request: "Request", backend: str, name: TableName) -> bool:
    there = request.mapping.at(backend, name.database)
    if there is None:
        return False
    catalog = None if there.catalog == DEFAULT_CATALOG else there.catalog  # Hive 2.3 knows none
    try:  # Hive 4.1 has no get_table any more
        request.ask(backend, "get_table_req", GetTableRequest(there.database, name.table, catName=catalog))
    except _MISSING:
        return False
    return True


def _check_empty(request: "Request", beside: str, names: Collection[Name]) -> None:
    """Raises InvalidOperationException for a database that has tables beside: nobody would reach them any more."""
    for name in names:
        there = request.mapping.at(beside, name)
        assert there is not None
        try:
            found = request.ask(beside, "get_all_tables", there.spelled)
        except _MISSING:
            continue
        if found:
            raise InvalidOperationException(
                f"Database {name} is not empty. Backend {beside} has tables of it, such as {found[0]}: drop them first"
            )


# -- lists of a database's tables ----------------------------------------------------------------------------------


def _of_names(found: list[Any], limit: int | None) -> Any:
    return sorted({each for some in found for each in some or ()})[:limit]


def _of_tables(found: list[Any], limit: int | None) -> Any:
    named = {each.tableName: each for some in reversed(found) for each in some or ()}
    return list(named.values())


def _within(field: str, key: str | None) -> Callable[[list[Any], int | None], Any]:
    def combine(found: list[Any], limit: int | None) -> Any:
        items = [each for some in found for each in getattr(some, field) or ()]
        if key is not None:  # an answer may leave names out, as the client wants
            known = {getattr(each, key) or id(each): each for each in reversed(items)}
            items = list(known.values())[::-1]
        return found[0].replace(**{field: items[:limit]})

    return combine


def _of_extended(found: list[Any], limit: int | None) -> Any:
    items = [each for some in found for each in some or ()]
    return list({each.tblName: each for each in reversed(items)}.values())[::-1][:limit]


_LISTS: dict[str, Callable[[list[Any], int | None], Any]] = {
    "get_all_tables": _of_names,
    "get_tables": _of_names,
    "get_tables_by_type": _of_names,
    "get_materialized_views_for_rewriting": _of_names,
    "get_table_names_by_filter": _of_names,
    "get_table_objects_by_name": _of_tables,
    "get_table_objects_by_name_req": _within("tables", "tableName"),
    "get_tables_ext": _of_extended,
    "show_locks": _within("locks", None),
}
"""Methods whose answers are put together of both backends': the one beside comes first, and hides the other's names."""


def is_list(request: "Request", method: Method, arguments: Struct, asked: Asked) -> bool:
    """Whether a request is for a list of tables of a database whose tables lie at two backends."""
    if not request.mapping.beside or method.name not in _LISTS:
        return False
    if method.name == "show_locks" and (asked.numbers or tables(arguments)):
        return False
    return any(_shared(request, name) is not None for name in asked.names)


def listed(request: "Request", method: Method, arguments: Any, encoded: bytes, asked: Asked) -> Any:
    """The list. Raises BackendError, and exceptions of the method."""
    backend = next(each for name in asked.names if (each := _shared(request, name)) is not None)
    beside = request.mapping.beside[backend]

    def of(each: str) -> Any:
        try:
            return request.value(method, arguments, encoded, to=each)
        except _MISSING:
            if each == backend:
                raise
            return None

    found = [value for _, value in request.of_all(of, [beside, backend]) if value is not None]
    limit = {"get_table_names_by_filter": "max_tables", "get_tables_ext": "req.limit"}.get(method.name, "")
    value: Any = arguments
    for part in filter(None, limit.split(".")):
        value = getattr(value, part)
    most = value if limit and isinstance(value, int) and value >= 0 else None
    return _LISTS[method.name](found, most)


def value_of_call(request: "Request", name: str, *values: Any) -> Any:
    """What a method returns by the latest state, be it put together of two backends' lists. As `Request.call`."""
    method = METHODS[name]
    arguments: Struct = method.args(*values)
    encoded = binary.encode(arguments)
    named = asked(arguments)
    if is_list(request, method, arguments, named):
        return listed(request, method, arguments, encoded, named)
    return request.value(method, arguments, encoded, current=True)


def _shared(request: "Request", name: Name) -> str | None:
    place = request.mapping.place(name)
    return place.backend if place is not None and place.backend in request.mapping.beside else None
