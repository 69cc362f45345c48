"""SQL for properties: single values, by key, about this metastore as a whole."""

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.postgresql import insert

from metastore.postgres.prepared import Prepared
from metastore.store.schema.registry import metastore_properties

_VALUE = Prepared(select(metastore_properties.c.value).where(metastore_properties.c.key == bindparam("key")))


def get(tx: Connection, key: str) -> str | None:
    """The property's value, None if it has none."""
    value: str | None = _VALUE.scalar(tx, {"key": key})
    return value


def get_or_set(tx: Connection, key: str, value: str) -> str:
    """The property's value. If it has none, stores `value` and returns it."""
    statement = insert(metastore_properties).values(key=key, value=value)
    tx.execute(statement.on_conflict_do_nothing(index_elements=["key"]))
    return get(tx, key) or value


def put(tx: Connection, key: str, value: str) -> None:
    """Sets the property's value."""
    statement = insert(metastore_properties).values(key=key, value=value)
    tx.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))
