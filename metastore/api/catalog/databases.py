"""Databases."""

from lake.protocol.hive import (
    AlterDatabaseRequest,
    CreateDatabaseRequest,
    Database,
    DropDatabaseRequest,
    GetDatabaseObjectsRequest,
    GetDatabaseObjectsResponse,
    GetDatabaseRequest,
    MetaException,
)
from metastore.api.methods import Call, answers


@answers("create_database", changes="CREATE everything | new_database database", uncommitted="no table", stores=True)
def create_database(call: Call, database: Database | None) -> None:
    if database is None:
        raise MetaException("the database is missing")
    call.metastore.databases.create(database)


@answers(
    "create_database_req",
    changes="CREATE everything | new_database createDatabaseRequest",
    uncommitted="no table",
    stores=True,
)
def create_database_req(call: Call, request: CreateDatabaseRequest) -> None:
    database = Database(
        name=request.databaseName,
        description=request.description,
        locationUri=request.locationUri,
        parameters=request.parameters,
        privileges=request.privileges,
        ownerName=request.ownerName,
        ownerType=request.ownerType,
        catalogName=request.catalogName,
        managedLocationUri=request.managedLocationUri,
        type=request.type,
        connector_name=request.dataConnectorName,
        remote_dbname=request.remote_dbname,
    )
    with call.once():
        call.metastore.databases.create(database)


@answers("get_database", reads="SEE database name", uncommitted="no table", cached=True)
def get_database(call: Call, name: str | None) -> Database:
    return call.metastore.databases.get(name)


@answers(
    "get_database_req", reads="SEE database request.name cat=request.catalogName", uncommitted="no table", cached=True
)
def get_database_req(call: Call, request: GetDatabaseRequest) -> Database:
    return call.metastore.databases.get(request.name, request.catalogName)


@answers("get_databases", reads="- | databases pattern", uncommitted="no table", cached=True)
def get_databases(call: Call, pattern: str | None) -> list[str]:
    return call.metastore.databases.names(pattern)


@answers("get_databases_req", reads="- | database_structs", uncommitted="no table")
def get_databases_req(call: Call, request: GetDatabaseObjectsRequest) -> GetDatabaseObjectsResponse:
    return GetDatabaseObjectsResponse(call.metastore.databases.matching(request.pattern, request.catalogName))


@answers("get_all_databases", reads="- | databases", uncommitted="no table", cached=True)
def get_all_databases(call: Call) -> list[str]:
    return call.metastore.databases.names()


@answers(
    "alter_database",
    changes="ALTER database dbname | database_change db",
    uncommitted="no table",
    stores=True,
    differs="a missing one is NoSuchObjectException; text and places change as in Hive 4",
)
def alter_database(call: Call, name: str | None, database: Database | None) -> None:
    if database is None:
        raise MetaException("the new database is missing")
    with call.once():
        call.metastore.databases.alter(name, database)


@answers(
    "alter_database_req",
    changes="ALTER database alterDbReq.oldDbName | database_change alterDbReq.newDb",
    uncommitted="no table",
    stores=True,
)
def alter_database_req(call: Call, request: AlterDatabaseRequest) -> None:
    alter_database(call, request.oldDbName, request.newDb)


@answers(
    "drop_database",
    changes="DROP database name",
    uncommitted="no table",
    differs="a missing one is NoSuchObjectException; directories of others are left alone",
)
def drop_database(call: Call, name: str | None, delete_data: bool | None, cascade: bool | None) -> None:
    call.metastore.databases.drop(name, delete_data=bool(delete_data), cascade=bool(cascade), shown=call.shown)


@answers(
    "drop_database_req",
    changes="DROP database req.name cat=req.catalogName",
    uncommitted="no table",
    differs="a missing one is no error if the client says so; directories of others are left alone",
)
def drop_database_req(call: Call, request: DropDatabaseRequest) -> None:
    with call.once():
        call.metastore.databases.drop(
            request.name,
            delete_data=bool(request.deleteData),
            cascade=bool(request.cascade),
            if_exists=bool(request.ignoreUnknownDb),
            catalog=request.catalogName,
            shown=call.shown,
        )
