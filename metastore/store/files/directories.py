"""Directories outside of the warehouse that the server created, and locations that are reached through links.

Both are in the form of `Warehouse.true_locations`.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    String,
    and_,
    any_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import insert

from metastore.postgres.prepared import Prepared
from metastore.store.schema.catalog import databases
from metastore.store.schema.files import linked_directories, made_directories
from metastore.store.schema.partition import partitions
from metastore.store.schema.table import tables

_PLACES = bindparam("places", type_=ARRAY(String(collation="C")))
_MADE = Prepared(select(made_directories.c.place).where(made_directories.c.place == any_(_PLACES)))


def made(tx: Connection, places: Collection[str]) -> set[str]:
    """Those of some places at which the server made a directory."""
    return set(_MADE.scalars(tx, {"places": list(places)})) if places else set()


def add_made(tx: Connection, places: Collection[str]) -> None:
    """Remembers that the server made directories."""
    if places:
        rows = [{"place": place} for place in sorted(set(places))]
        tx.execute(insert(made_directories).on_conflict_do_nothing(), rows)


def forget_made(tx: Connection, places: Collection[str]) -> None:
    """Forgets that the server made directories at or below some places."""
    if places:
        place = func.unnest(list(places), type_=String(collation="C")).column_valued("gone")
        kept = made_directories.c.place
        below = and_(kept > place.concat("/"), kept < place.concat("0"))
        tx.execute(delete(made_directories).where(exists().where(or_(kept == place, below))))


def hold(tx: Connection, places: Collection[str], *, exclusive: bool) -> None:
    """Lets nobody who holds one of some places exclusively go on until this transaction ends, or nobody at all."""
    if places:
        (_HOLD_ALONE if exclusive else _HOLD).all(tx, {"places": sorted(places)})


def _hold(function: str) -> Prepared:
    keys = "SELECT DISTINCT hashtextextended(place, 1604) AS key FROM unnest(:places) AS place"
    # In the same order by everybody, so that no two wait for each other.
    locked = f"SELECT count({function}(key)) FROM (SELECT key FROM ({keys}) AS keys ORDER BY key) AS ordered"
    return Prepared(text(locked).bindparams(_PLACES))


_HOLD, _HOLD_ALONE = _hold("pg_advisory_xact_lock_shared"), _hold("pg_advisory_xact_lock")


def put_links(tx: Connection, links: Mapping[str, str]) -> None:
    """Remembers where locations truly are that are reached through links."""
    if links:
        statement = insert(linked_directories).values(
            [{"location": location, "leads_to": place} for location, place in sorted(links.items())]
        )
        excluded = {"leads_to": statement.excluded.leads_to}
        tx.execute(statement.on_conflict_do_update(index_elements=["location"], set_=excluded))


def forget_links(tx: Connection, locations: Collection[str]) -> None:
    """Forgets that locations were reached through links."""
    tx.execute(delete(linked_directories).where(linked_directories.c.location == func.any(list(locations))))


def forget_needless_links(tx: Connection) -> None:
    """Forgets locations that nothing has any more."""
    tx.execute(delete(linked_directories).where(~in_use(linked_directories.c.location, literal(0))))


def locations_after(tx: Connection, after: str, limit: int) -> list[str]:
    """Locations of tables and databases on the servers' own file system, in order, after one of them."""
    columns = (tables.c.location, databases.c.location, databases.c.managed_location)
    found: set[str] = set()
    for column in columns:
        query = select(column).distinct().where(column > max(after, "file:"), column < "file;").order_by(column)
        found |= set(tx.execute(query.limit(limit)).scalars())
    return sorted(found)[:limit]


def in_use(location: ColumnElement[str], besides: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a table, but for the one with the id `besides`, a partition of one, or a database has a location."""
    return or_(
        exists().where(tables.c.location == location, tables.c.id != besides),
        exists().where(databases.c.location == location),
        exists().where(databases.c.managed_location == location),
        exists().where(
            partitions.c.location.is_not(None),
            beginning(partitions.c.location) == beginning(location),
            partitions.c.location == location,
            partitions.c.table_id != besides,
        ),
    )


def beginning(location: ColumnElement[str]) -> ColumnElement[str]:
    """As much of a partition's location as is in an index."""
    return func.left(location, literal_column("600"), type_=String(collation="C"))
