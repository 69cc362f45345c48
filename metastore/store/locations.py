"""Who lives in a directory: asked before one is deleted, after the objects that own it are gone."""

from collections.abc import Sequence

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Connection,
    Select,
    String,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
)

from metastore.store.names import TableName
from metastore.store.partitions import elsewhere
from metastore.store.prepared import Prepared
from metastore.store.schema import catalogs, databases, partitions, tables


def _at_or_below(column: Column[str | None], place: ColumnElement[str]) -> ColumnElement[bool]:
    # As a range, so that the index on the column serves it: "0" is the character that follows "/".
    return or_(column == place, and_(column > place.concat("/"), column < place.concat("0")))


def tables_at(tx: Connection, place: str) -> list[TableName]:
    """The tables that lie in a directory, by name."""
    query = (
        select(catalogs.c.name, databases.c.name, tables.c.name)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(tables.c.location == place)
    )
    return sorted(TableName(*row) for row in tx.execute(query))


def unshared(tx: Connection, places: Sequence[str], *, besides: int | None = None) -> list[str]:
    """Those of some locations at and below which no table, but for the one with id `besides`, and no database lies."""
    if not places:
        return []
    return _UNSHARED.scalars(tx, {"places": list(places), "besides": besides or 0})


def _unshared() -> Select[str]:
    places = bindparam("places", type_=ARRAY(String(collation="C")))
    place = func.unnest(places, type_=String(collation="C")).column_valued("place")
    return select(place).where(
        ~exists().where(_at_or_below(tables.c.location, place), tables.c.id != bindparam("besides")),
        ~exists().where(_at_or_below(databases.c.location, place)),
    )


_UNSHARED = Prepared(_unshared())


def unshared_within(tx: Connection, table_id: int, base: str | None, depth: int, places: Sequence[str]) -> list[str]:
    """Those of some locations at and below which no partition of a table lies.

    `base` is the table's location, `depth` its number of keys. A partition in its default place lies `depth` steps
    below the table, so only those elsewhere can lie in another one's place.
    """
    if not places:
        return []
    blocked: set[str] = set()
    for path, location in elsewhere(tx, table_id):
        lived_in = location if path is None else f"{base}/{path}"
        while lived_in and lived_in not in blocked:
            blocked.add(lived_in)
            lived_in = lived_in.rpartition("/")[0]
    free = [place for place in places if place not in blocked]
    return [place for place in free if not _holds_default_places(tx, table_id, base, depth, place)]


def _holds_default_places(tx: Connection, table_id: int, base: str | None, depth: int, place: str) -> bool:
    if base is None or not f"{place}/".startswith(f"{base}/"):
        return base is not None and f"{base}/".startswith(f"{place}/") and _has_any(tx, table_id, "")
    path = place[len(base) + 1 :]
    if path and path.count("/") >= depth - 1:
        return False
    return _has_any(tx, table_id, path and f"{path}/")


def _has_any(tx: Connection, table_id: int, prefix: str) -> bool:
    inside = exists().where(partitions.c.table_id == table_id, func.starts_with(partitions.c.path, prefix))
    return bool(tx.execute(select(inside)).scalar())
