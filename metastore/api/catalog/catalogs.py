"""Catalogs."""

from lake.protocol.hive import (
    AlterCatalogRequest,
    Catalog,
    CreateCatalogRequest,
    DropCatalogRequest,
    GetCatalogRequest,
    GetCatalogResponse,
    GetCatalogsResponse,
)
from metastore.api.methods import Call, answers


@answers(
    "create_catalog",
    changes="ADMIN everything | new_catalog catalog.catalog",
    uncommitted="no table",
    stores=True,
    differs="a catalog's parameters (Hive 4.2) are not kept",
)
def create_catalog(call: Call, request: CreateCatalogRequest) -> None:
    call.metastore.catalogs.create(request.catalog or Catalog())


@answers(
    "alter_catalog",
    changes="ADMIN everything | catalog_change rqst.newCat",
    uncommitted="no table",
    stores=True,
    differs="a catalog's parameters (Hive 4.2) are not kept",
)
def alter_catalog(call: Call, request: AlterCatalogRequest) -> None:
    call.metastore.catalogs.alter(request.name, request.newCat or Catalog())


@answers("get_catalog", reads="SEE catalog catName.name", uncommitted="no table")
def get_catalog(call: Call, request: GetCatalogRequest) -> GetCatalogResponse:
    return GetCatalogResponse(call.metastore.catalogs.get(request.name))


@answers("get_catalogs", reads="-", uncommitted="no table")
def get_catalogs(call: Call) -> GetCatalogsResponse:
    return GetCatalogsResponse(call.metastore.catalogs.names())


@answers(
    "drop_catalog",
    changes="ADMIN everything",
    uncommitted="no table",
    differs="a missing one is NoSuchObjectException; its directory goes if it is empty",
)
def drop_catalog(call: Call, request: DropCatalogRequest) -> None:
    call.metastore.catalogs.drop(request.name, if_exists=bool(request.ifExists))
