"""Answers that are put together of several backends' answers."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from thrift.Thrift import TApplicationException

from lake.protocol.hive import (
    Catalog,
    GetAllFunctionsResponse,
    GetCatalogRequest,
    GetCatalogResponse,
    GetCatalogsResponse,
    GetDatabaseObjectsRequest,
    GetDatabaseObjectsResponse,
    GetTablesRequest,
    GetTablesResult,
    MetaException,
    NoSuchObjectException,
    ShowCompactRequest,
    ShowCompactResponse,
    ShowLocksRequest,
    ShowLocksResponse,
    TableMeta,
    UnknownDBException,
)
from metastore.federation import kinds
from metastore.federation.front import Request
from metastore.federation.names import DEFAULT_CATALOG, Name, joined, normal, split
from metastore.federation.routing import nameless, selection
from metastore.services.model import patterns

_AT_ONCE = 500  # databases that one request names

Merged = Callable[..., Any]
MERGED: dict[str, Merged] = {}
"""By method the function that answers it: `function(request, *arguments)`, None for an argument that wasn't sent."""


def _merges(function: Merged) -> Merged:
    MERGED[function.__name__] = function
    return function


@_merges
def get_all_databases(request: Request) -> list[str]:
    return _databases(request, DEFAULT_CATALOG, None)


@_merges
def get_databases(request: Request, pattern: str | None) -> list[str]:
    catalog, text = split(pattern)
    return _databases(request, normal(catalog or DEFAULT_CATALOG), text)


@_merges
def get_databases_req(request: Request, asked: GetDatabaseObjectsRequest | None) -> GetDatabaseObjectsResponse:
    asked = asked or GetDatabaseObjectsRequest()
    catalog = normal(asked.catalogName or DEFAULT_CATALOG)
    names = _databases(request, catalog, asked.pattern)
    places = {name: place for name in names if (place := request.mapping.place(Name(catalog, name))) is not None}

    def of(backend: str) -> list[Any]:
        return [
            request.translated(backend, request.ask(backend, "get_database", place.name.spelled))
            for place in places.values()
            if place.backend == backend
        ]

    found = request.of_all(of, sorted({place.backend for place in places.values()}))
    return GetDatabaseObjectsResponse(
        sorted((each for _, some in found for each in some), key=lambda each: each.name or "")
    )


@_merges
def get_table_objects_by_name_req(request: Request, asked: GetTablesRequest) -> GetTablesResult:
    """Tables of the databases that match a pattern, each of them asked for by its name: what a backend takes for the
    pattern may be hidden here, and the answer needn't say which database a table is of."""
    catalog, text = split(asked.dbName)
    wanted = normal(asked.catName or catalog or DEFAULT_CATALOG)
    found: list[Any] = []
    for database in _databases(request, wanted, text):
        one = asked.replace(dbName=database, catName=asked.catName or catalog)
        with suppress(UnknownDBException, NoSuchObjectException):  # it was dropped meanwhile
            found += kinds.value_of_call(request, "get_table_objects_by_name_req", one).tables or ()
    if not found:
        raise UnknownDBException(f"Could not find database {asked.dbName}")
    return GetTablesResult(found)


@_merges
def get_table_meta(
    request: Request, databases: str | None, tables: str | None, types: list[str] | None
) -> list[TableMeta]:
    catalog, text = split(databases)
    matches = _matcher(text)
    wanted = normal(catalog or DEFAULT_CATALOG)

    def of(backend: str) -> list[TableMeta]:
        own = [there for front, there in request.databases(backend) if front.catalog == wanted and matches(front)]
        names = {there.database for there in own}
        found: list[TableMeta] = []
        for at in range(0, len(own), _AT_ONCE):
            some = own[at : at + _AT_ONCE]
            pattern = "|".join(each.database for each in some)
            given = pattern if some[0].catalog == DEFAULT_CATALOG else joined(some[0].catalog, pattern)
            found += request.ask(backend, "get_table_meta", given, tables, types)
        return request.translated(backend, [each for each in found if normal(each.dbName or "") in names])

    found = request.of_all(of, _of_catalog(request, wanted))
    beside = set(request.mapping.beside.values())
    first = {(each.dbName, each.tableName): each for backend, some in found if backend in beside for each in some}
    others = [each for backend, some in found if backend not in beside for each in some]
    return [*(each for each in others if (each.dbName, each.tableName) not in first), *first.values()]


@_merges
def get_all_functions(request: Request) -> GetAllFunctionsResponse:
    def of(backend: str) -> list[Any]:
        return request.translated(backend, request.ask(backend, "get_all_functions").functions or [])

    found = request.of_all(of, _with_databases(request))
    return GetAllFunctionsResponse([each for _, some in found for each in some])


@_merges
def get_all_materialized_view_objects_for_rewriting(request: Request) -> list[Any]:
    def of(backend: str) -> list[Any]:
        try:
            found = request.ask(backend, "get_all_materialized_view_objects_for_rewriting")
        except TApplicationException as error:
            if error.type != TApplicationException.UNKNOWN_METHOD:
                raise
            return []  # Hive 2.3 has no materialized views
        return request.translated(backend, found or [])

    return [each for _, some in request.of_all(of, list(request.mapping.backends)) for each in some]


@_merges
def get_catalogs(request: Request) -> GetCatalogsResponse:
    return GetCatalogsResponse(list(request.mapping.catalogs))


@_merges
def get_catalog(request: Request, asked: GetCatalogRequest | None) -> GetCatalogResponse:
    name = normal((asked and asked.name) or DEFAULT_CATALOG)
    if name not in request.mapping.catalogs:
        raise NoSuchObjectException(f"this front has no catalog {name}: it has {', '.join(request.mapping.catalogs)}")
    return GetCatalogResponse(Catalog(name=name, description="of a front of several metastores", locationUri=""))


@_merges
def show_locks(request: Request, asked: ShowLocksRequest | None) -> ShowLocksResponse:
    def of(backend: str) -> list[Any]:
        return request.translated(backend, request.ask(backend, "show_locks", asked or ShowLocksRequest()).locks or [])

    found = request.of_all(of, _selected_or_all(request))
    return ShowLocksResponse([each for _, some in found for each in some])


@_merges
def show_compact(request: Request, asked: ShowCompactRequest | None) -> ShowCompactResponse:
    backend = nameless(request.mapping, "show_compact", request.who.selected)  # ids of compactions carry no backend
    found = request.ask(backend, "show_compact", asked or ShowCompactRequest()).compacts
    return ShowCompactResponse(request.translated(backend, found or []))


def _databases(request: Request, catalog: str, pattern: str | None) -> list[str]:
    matches = _matcher(pattern)

    def of(backend: str) -> list[str]:
        names = (front for front, _ in request.databases(backend))
        return [name.database for name in names if name.catalog == catalog and matches(name)]

    backends = [each for each in _with_databases(request) if request.mapping.backends[each].catalog == catalog]
    return sorted(name for _, names in request.of_all(of, backends) for name in names)


def _with_databases(request: Request) -> list[str]:
    """The backends whose databases and functions are the front's: those beside others have tables alone."""
    if (only := request.who.only) is not None:
        if only not in request.mapping.backends:  # by now
            raise MetaException(f"Warehouse does not exist: {only}")
        return [only]
    return [backend for backend, settings in request.mapping.backends.items() if settings.beside is None]


def _of_catalog(request: Request, catalog: str) -> list[str]:
    return [backend for backend, settings in request.mapping.backends.items() if settings.catalog == catalog]


def _selected_or_all(request: Request) -> list[str]:
    selected = selection(request.mapping, request.who.selected)
    return list(request.mapping.backends) if selected is None else [selected]


def _matcher(pattern: str | None) -> Callable[[Name], bool]:
    found = patterns.matcher(pattern)
    return lambda name: found(name.database)


def is_merged(name: str, arguments: Any) -> bool:
    """Whether a call is about all backends: some methods are only where they name no database."""
    if name == "show_locks":
        return not _named(arguments, ("dbname", "txnid"))
    if name == "show_compact":
        return not _named(arguments, ("dbName",))
    if name == "get_table_objects_by_name_req":
        return _has_pattern(arguments.req)
    return name in MERGED


def _has_pattern(asked: GetTablesRequest | None) -> bool:
    """Whether the database of a request for tables is a pattern, as it may be together with a pattern of tables."""
    if asked is None or asked.tablesPattern is None:
        return False
    _, text = split(asked.dbName)
    return bool(text) and patterns.only_name(text) is None


def _named(arguments: Any, fields: Iterable[str]) -> bool:
    return arguments.rqst is not None and any(getattr(arguments.rqst, field, None) for field in fields)
