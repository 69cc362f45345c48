"""Types that clients define."""

from lake.protocol.hive import MetaException, Type
from metastore.api.methods import Call, answers


@answers("create_type", changes="ADMIN everything", uncommitted="no table", stores=True)
def create_type(call: Call, value: Type | None) -> bool:
    if value is None:
        raise MetaException("the type is missing")
    call.metastore.types.create(value)
    return True


@answers("get_type", reads="-", uncommitted="no table")
def get_type(call: Call, name: str | None) -> Type:
    return call.metastore.types.get(name)


@answers("get_type_all", reads="-", uncommitted="no table")
def get_type_all(call: Call, name: str | None) -> dict[str, Type]:
    """No version of Hive has more of it."""
    raise MetaException("Not yet implemented")


@answers("drop_type", changes="ADMIN everything", uncommitted="no table")
def drop_type(call: Call, name: str | None) -> bool:
    call.metastore.types.drop(name)
    return True
