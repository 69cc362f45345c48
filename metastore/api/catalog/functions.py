"""User-defined functions."""

from lake.protocol.hive import (
    Function,
    GetAllFunctionsResponse,
    GetFunctionsRequest,
    GetFunctionsResponse,
    MetaException,
)
from metastore.api.methods import Call, answers


@answers(
    "create_function",
    changes="CREATE database func.dbName cat=func.catName | new_function func",
    uncommitted="no table",
    stores=True,
)
def create_function(call: Call, function: Function | None) -> None:
    call.metastore.functions.create(_given(function))


@answers("drop_function", changes="DROP database dbName", uncommitted="no table")
def drop_function(call: Call, database: str | None, name: str | None) -> None:
    call.metastore.functions.drop(database, name)


@answers(
    "alter_function",
    changes="ALTER database dbName; CREATE database newFunc.dbName? cat=newFunc.catName | new_function newFunc",
    uncommitted="no table",
    stores=True,
)
def alter_function(call: Call, database: str | None, name: str | None, function: Function | None) -> None:
    call.metastore.functions.alter(database, name, _given(function))


@answers("get_function", reads="SEE database dbName", uncommitted="no table")
def get_function(call: Call, database: str | None, name: str | None) -> Function:
    return call.metastore.functions.get(database, name)


@answers("get_functions", reads="~SEE database dbName", uncommitted="no table")
def get_functions(call: Call, database: str | None, pattern: str | None) -> list[str]:
    return call.metastore.functions.names(database, pattern)


@answers("get_functions_req", reads="~SEE database request.dbName cat=request.catalogName", uncommitted="no table")
def get_functions_req(call: Call, request: GetFunctionsRequest) -> GetFunctionsResponse:
    """Names alone if they are all that is wanted, otherwise the functions."""
    functions, wanted = call.metastore.functions, (request.dbName, request.pattern, request.catalogName)
    if request.returnNames:
        return GetFunctionsResponse(function_names=functions.names(*wanted))
    return GetFunctionsResponse(functions=functions.matching(*wanted))


@answers("get_all_functions", reads="- | functions", uncommitted="no table")
def get_all_functions(call: Call) -> GetAllFunctionsResponse:
    return GetAllFunctionsResponse(call.metastore.functions.all())


def _given(function: Function | None) -> Function:
    if function is None:
        raise MetaException("the function is missing")
    return function
