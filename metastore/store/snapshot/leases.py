"""Readers' leases: snapshots that are being read, and whose files cleans keep. Times by the database's clock."""

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, case, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from metastore.store.engine.clock import in_ms
from metastore.store.engine.read_set import mark_uncacheable
from metastore.store.schema.snapshot import reader_leases

_LIVE = reader_leases.c.expires_at > func.clock_timestamp()


class LeaseRow(NamedTuple):
    """A lease that holds. `expires_at`: in milliseconds since 1970. `onwards`: on all later snapshots, too.

    `owner`: the user who took it; None where there were no rights.
    """

    name: str
    position: int
    expires_at: int
    holder: str | None
    onwards: bool
    owner: str | None


_ROW: Select[Any] = select(
    reader_leases.c.name,
    reader_leases.c.position,
    in_ms(reader_leases.c.expires_at),
    reader_leases.c.holder,
    reader_leases.c.onwards,
    reader_leases.c.owner,
)


def hold_off_cleans(tx: Connection, table_id: int) -> None:
    """Lets no clean of a table go on until the transaction ends. Waits for one that is going on."""
    tx.execute(select(func.pg_advisory_xact_lock_shared(_key(table_id))))


def hold_off_leases(tx: Connection, table_id: int) -> None:
    """Lets nobody take a lease on a table until the transaction ends: for a clean, before it reads the leases."""
    tx.execute(select(func.pg_advisory_xact_lock(_key(table_id))))


def put(
    tx: Connection,
    table_id: int,
    name: str,
    position: int,
    seconds: int,
    holder: str | None,
    owner: str | None,
    *,
    onwards: bool,
) -> LeaseRow:
    """Stores a lease for so many seconds from now on, in place of one of the same name. That keeps its owner."""
    values = {
        "position": position,
        "onwards": onwards,
        "expires_at": func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, seconds),
        "holder": holder,
    }
    new = insert(reader_leases).values(table_id=table_id, name=name, owner=owner, **values)
    kept = case((_LIVE, reader_leases.c.owner), else_=owner)
    changed = new.on_conflict_do_update(index_elements=["table_id", "name"], set_={**values, "owner": kept})
    return LeaseRow(*tx.execute(changed.returning(*_ROW.selected_columns)).one())


def remove(tx: Connection, table_id: int, name: str) -> None:
    """Removes a lease; a missing one is fine."""
    tx.execute(delete(reader_leases).where(reader_leases.c.table_id == table_id, reader_leases.c.name == name))


def remove_before(tx: Connection, table_id: int, position: int) -> None:
    """Removes the leases on snapshots before a position."""
    tx.execute(delete(reader_leases).where(reader_leases.c.table_id == table_id, reader_leases.c.position < position))


def find(tx: Connection, table_id: int, name: str) -> LeaseRow | None:
    """A lease that holds, by its name."""
    mark_uncacheable()
    query = _ROW.where(reader_leases.c.table_id == table_id, reader_leases.c.name == name, _LIVE)
    row = tx.execute(query).one_or_none()
    return None if row is None else LeaseRow(*row)


def listing(tx: Connection, table_id: int) -> list[LeaseRow]:
    """The leases that hold, by their names."""
    mark_uncacheable()
    query = _ROW.where(reader_leases.c.table_id == table_id, _LIVE).order_by(reader_leases.c.name)
    return [LeaseRow(*row) for row in tx.execute(query)]


def count(tx: Connection, table_id: int) -> int:
    """How many leases hold."""
    mark_uncacheable()
    query = select(func.count()).select_from(reader_leases).where(reader_leases.c.table_id == table_id, _LIVE)
    return tx.execute(query).scalar_one()


def positions(tx: Connection, table_id: int) -> list[int]:
    """The positions whose snapshots leases keep, each once."""
    mark_uncacheable()  # a lease ends by the clock, which no change tells
    query = select(reader_leases.c.position).distinct().where(reader_leases.c.table_id == table_id, _LIVE)
    return sorted(tx.execute(query).scalars())


def first_onwards(tx: Connection, table_id: int) -> int | None:
    """The position from which on leases keep all snapshots; None if no lease does."""
    mark_uncacheable()
    query = select(func.min(reader_leases.c.position)).where(reader_leases.c.table_id == table_id, _LIVE)
    found: int | None = tx.execute(query.where(reader_leases.c.onwards)).scalar_one()
    return found


def expire(tx: Connection) -> int:
    """Removes the leases that have ended. Returns how many."""
    return tx.execute(delete(reader_leases).where(~_LIVE)).rowcount


def _key(table_id: int) -> ColumnElement[int]:
    return func.hashtextextended(f"cleans {table_id}", 0)
