"""SQL for the keys with which delegation tokens are signed."""

from sqlalchemy import Connection, delete, insert, select, update

from metastore.store.schema.access import master_keys


def add(tx: Connection, key: str) -> int:
    """Adds a key and returns its number."""
    return int(tx.execute(insert(master_keys).returning(master_keys.c.id), {"key": key}).scalar_one())


def change(tx: Connection, number: int, key: str) -> bool:
    """Replaces a key. Returns whether there was one of that number."""
    return tx.execute(update(master_keys).where(master_keys.c.id == number).values(key=key)).rowcount > 0


def remove(tx: Connection, number: int) -> bool:
    """Removes a key. Returns whether there was one of that number."""
    return tx.execute(delete(master_keys).where(master_keys.c.id == number)).rowcount > 0


def find_all(tx: Connection) -> list[str]:
    """All keys, the oldest first."""
    return list(tx.execute(select(master_keys.c.key).order_by(master_keys.c.id)).scalars())
