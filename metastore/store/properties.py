"""Single values about this metastore as a whole."""

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from metastore.store.schema import metastore_properties


def get(tx: Connection, key: str) -> str | None:
    """The property's value, None if it has none."""
    query = select(metastore_properties.c.value).where(metastore_properties.c.key == key)
    return tx.execute(query).scalar_one_or_none()


def get_or_set(tx: Connection, key: str, value: str) -> str:
    """The property's value; if it has none yet, `value`, which it then keeps."""
    statement = insert(metastore_properties).values(key=key, value=value)
    tx.execute(statement.on_conflict_do_nothing(index_elements=["key"]))
    return get(tx, key) or value


def put(tx: Connection, key: str, value: str) -> None:
    """Gives the property a value, whatever it had."""
    statement = insert(metastore_properties).values(key=key, value=value)
    tx.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))
