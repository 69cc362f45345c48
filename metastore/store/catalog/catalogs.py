"""SQL for catalogs, the top level of names."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, exists, insert, select, update

from metastore.store.schema.catalog import catalogs, databases


@dataclass(frozen=True, slots=True)
class CatalogRow:
    id: int
    name: str
    description: str | None
    location: str
    create_time: int


def find(tx: Connection, name: str, *, lock: bool = False) -> CatalogRow | None:
    """The catalog of that name; with `lock`, nobody else changes or drops it until the transaction ends."""
    query = select(catalogs).where(catalogs.c.name == name)
    row = tx.execute(query.with_for_update() if lock else query).one_or_none()
    return CatalogRow(*row) if row else None


def names(tx: Connection) -> list[str]:
    """All catalogs' names in order."""
    return list(tx.execute(select(catalogs.c.name).order_by(catalogs.c.name)).scalars())


def add(tx: Connection, name: str, description: str | None, location: str, create_time: int) -> int:
    """Adds a catalog and returns its id. Raises store.Conflict if the name is taken."""
    statement = insert(catalogs).returning(catalogs.c.id)
    values = {"name": name, "description": description, "location": location, "create_time": create_time}
    return int(tx.execute(statement, values).scalar_one())


def change(tx: Connection, catalog_id: int, *, description: str | None, location: str) -> None:
    """Sets description and location."""
    tx.execute(update(catalogs).where(catalogs.c.id == catalog_id).values(description=description, location=location))


def has_databases(tx: Connection, catalog_id: int, *, besides: str) -> bool:
    """Whether a catalog holds a database other than the named one."""
    inside = (databases.c.catalog_id == catalog_id) & (databases.c.name != besides)
    return bool(tx.execute(select(exists().where(inside))).scalar())


def remove(tx: Connection, catalog_id: int) -> None:
    """Removes a catalog without databases."""
    tx.execute(delete(catalogs).where(catalogs.c.id == catalog_id))
