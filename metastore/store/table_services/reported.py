"""SQL for what engines report of their reads and commits: sums for each table and day."""

from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    bindparam,
    cast,
    delete,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import insert

from metastore.postgres.prepared import Prepared
from metastore.store.engine.read_set import mark_uncacheable
from metastore.store.schema.table_services import engine_figures


class Reported(NamedTuple):
    """Counts, as the columns of `engine_figures`."""

    scans: int
    files: int
    delete_files: int
    bytes: int
    planning_ms: int
    commits: int
    attempts: int


_MOST = 1 << 62  # a sum that has come so far stays there

_TODAY: ColumnElement[Any] = literal_column("(now() AT TIME ZONE 'UTC')::date")
_COUNTS = tuple(engine_figures.c[each] for each in Reported._fields)
_NEW = insert(engine_figures).values(
    table_id=bindparam("table_id"), day=_TODAY, **{each: bindparam(each) for each in Reported._fields}
)
_ADD = Prepared(
    _NEW.on_conflict_do_update(
        index_elements=["table_id", "day"],
        set_={each.name: func.least(each + _NEW.excluded[each.name], _MOST) for each in _COUNTS},
    )
)
_SUMS = Prepared(
    select(*(cast(func.least(func.sum(each), _MOST), BigInteger).label(each.name) for each in _COUNTS))
    .where(
        engine_figures.c.table_id == bindparam("table_id"),
        engine_figures.c.day > _TODAY - cast(bindparam("days"), Integer),
    )
    .having(func.count() > 0)  # `least` takes no sum for the greatest one
)


def add(tx: Connection, table_id: int, reported: Reported) -> None:
    """Adds counts to those of today. Each is at most 2^61."""
    _ADD.execute(tx, {"table_id": table_id, **reported._asdict()})


def sums(tx: Connection, table_id: int, days: int) -> Reported | None:
    """The sums of the last days, with today; None if nothing was reported."""
    mark_uncacheable()
    row = _SUMS.first(tx, {"table_id": table_id, "days": days})
    return None if row is None else Reported(*row)


def forget(tx: Connection, days: int) -> None:
    """Forgets all but the last days."""
    tx.execute(delete(engine_figures).where(engine_figures.c.day <= _TODAY - days))
