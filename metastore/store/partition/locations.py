"""Finds the objects that use a directory, before it is deleted."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
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

from metastore.postgres.prepared import Prepared
from metastore.store.engine.names import TableName
from metastore.store.files.directories import beginning, in_use
from metastore.store.partition.partitions import elsewhere
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.files import linked_directories
from metastore.store.schema.partition import partitions
from metastore.store.schema.table import tables


def _at_or_below(column: ColumnElement[Any], place: ColumnElement[str]) -> ColumnElement[bool]:
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
    """The locations at and below which no table, partition or database lies.

    `besides`: the id of a table that doesn't count, with its partitions. Objects that reach the location through a
    symbolic link are found, too, by the link's target when it was last checked.
    """
    if not places:
        return []
    return _UNSHARED.scalars(tx, {"places": list(places), "besides": besides or 0})


def _unshared() -> Select[str]:
    places, besides = bindparam("places", type_=ARRAY(String(collation="C"))), bindparam("besides", type_=BigInteger)
    place = func.unnest(places, type_=String(collation="C")).column_valued("place")
    return select(place).where(
        ~exists().where(_at_or_below(tables.c.location, place), tables.c.id != besides),
        ~exists().where(_at_or_below(databases.c.location, place)),
        ~exists().where(_at_or_below(databases.c.managed_location, place)),
        ~exists().where(
            partitions.c.location.is_not(None),
            _begins_at_or_below(place),
            _at_or_below(partitions.c.location, place),
            partitions.c.table_id != besides,
        ),
        ~exists().where(
            _at_or_below(linked_directories.c.leads_to, place), in_use(linked_directories.c.location, besides)
        ),
    )


def _begins_at_or_below(place: ColumnElement[str]) -> ColumnElement[bool]:
    """A condition on partitions that the index on the beginnings of their locations serves."""
    begins = beginning(partitions.c.location)
    return and_(begins >= beginning(place), begins < beginning(place).concat("0"))


_UNSHARED = Prepared(_unshared())


class Above(NamedTuple):
    """What lies at some places: directories of tables and partitions, and of databases."""

    tables: set[str]
    databases: set[str]


def at(tx: Connection, places: Collection[str], *, besides: int | None = None) -> Above:
    """At which of some places tables or partitions lie, and at which databases do, by links as well.

    `besides`: the id of a table that doesn't count.
    """
    if not places:
        return Above(set(), set())
    rows = _AT.all(tx, {"places": sorted(places), "besides": besides or 0})
    return Above({row.place for row in rows if row.table}, {row.place for row in rows if row.database})


def _at() -> Select[str, bool, bool]:
    places, besides = bindparam("places", type_=ARRAY(String(collation="C"))), bindparam("besides", type_=BigInteger)
    place = func.unnest(places, type_=String(collation="C")).column_valued("place")
    link = linked_directories.c.location
    leads = linked_directories.c.leads_to == place
    table = or_(_table_at(place, besides), exists().where(leads, _table_at(link, besides)))
    database = or_(_database_at(place), exists().where(leads, _database_at(link)))
    return select(place, table.label("table"), database.label("database"))


def _table_at(place: ColumnElement[str], besides: ColumnElement[int]) -> ColumnElement[bool]:
    return or_(
        exists().where(tables.c.location == place, tables.c.id != besides),
        exists().where(
            partitions.c.location.is_not(None),
            beginning(partitions.c.location) == beginning(place),
            partitions.c.location == place,
            partitions.c.table_id != besides,
        ),
    )


def _database_at(place: ColumnElement[str]) -> ColumnElement[bool]:
    return exists().where(or_(databases.c.location == place, databases.c.managed_location == place))


_AT = Prepared(_at())


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
