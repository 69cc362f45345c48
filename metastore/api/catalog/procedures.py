"""Stored procedures and packages."""

from lake.protocol.hive import (
    AddPackageRequest,
    DropPackageRequest,
    GetPackageRequest,
    ListPackageRequest,
    ListStoredProcedureRequest,
    MetaException,
    Package,
    StoredProcedure,
    StoredProcedureRequest,
)
from metastore.api.methods import Call, answers


@answers(
    "create_stored_procedure",
    changes="CREATE database proc.dbName cat=proc.catName | new_procedure proc",
    uncommitted="no table",
    stores=True,
)
def create_stored_procedure(call: Call, procedure: StoredProcedure | None) -> None:
    if procedure is None:
        raise MetaException("the stored procedure is missing")
    call.metastore.procedures.put(procedure)


@answers("get_stored_procedure", reads="SEE database request.dbName cat=request.catName", uncommitted="no table")
def get_stored_procedure(call: Call, request: StoredProcedureRequest) -> StoredProcedure:
    return call.metastore.procedures.get(request.catName, request.dbName, request.procName)


@answers("drop_stored_procedure", changes="DROP database request.dbName cat=request.catName", uncommitted="no table")
def drop_stored_procedure(call: Call, request: StoredProcedureRequest) -> None:
    call.metastore.procedures.drop(request.catName, request.dbName, request.procName)


@answers("get_all_stored_procedures", reads="~SEE database request.dbName cat=request.catName", uncommitted="no table")
def get_all_stored_procedures(call: Call, request: ListStoredProcedureRequest) -> list[str]:
    return call.metastore.procedures.names(request.catName, request.dbName)


@answers(
    "add_package",
    changes="CREATE database request.dbName cat=request.catName | new_package request",
    uncommitted="no table",
    stores=True,
)
def add_package(call: Call, request: AddPackageRequest) -> None:
    call.metastore.procedures.put_package(request)


@answers("find_package", reads="SEE database request.dbName cat=request.catName", uncommitted="no table")
def find_package(call: Call, request: GetPackageRequest) -> Package:
    return call.metastore.procedures.get_package(request.catName, request.dbName, request.packageName)


@answers("drop_package", changes="DROP database request.dbName cat=request.catName", uncommitted="no table")
def drop_package(call: Call, request: DropPackageRequest) -> None:
    call.metastore.procedures.drop_package(request.catName, request.dbName, request.packageName)


@answers("get_all_packages", reads="~SEE database request.dbName cat=request.catName", uncommitted="no table")
def get_all_packages(call: Call, request: ListPackageRequest) -> list[str]:
    return call.metastore.procedures.package_names(request.catName, request.dbName)
