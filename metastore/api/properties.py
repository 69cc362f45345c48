"""Properties of namespaces that Hive's extensions declare. None does by default, so there are none."""

from lake.protocol.hive import NoSuchObjectException, PropertyGetRequest, PropertyGetResponse, PropertySetRequest
from metastore.api.methods import Call, answers


@answers("get_properties", reads="ADMIN everything", uncommitted="no table", off="no namespace is declared")
def get_properties(call: Call, request: PropertyGetRequest) -> PropertyGetResponse:
    raise _undeclared(request.nameSpace)


@answers("set_properties", changes="ADMIN everything", uncommitted="no table", off="no namespace is declared")
def set_properties(call: Call, request: PropertySetRequest) -> bool:
    raise _undeclared(request.nameSpace)


def _undeclared(namespace: str | None) -> NoSuchObjectException:
    return NoSuchObjectException(f"nobody has declared properties of a namespace {namespace}")
