"""Data that has to be moved or deleted because a committed change says so."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Connection,
    String,
    any_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
)

from metastore.store.prepared import Prepared
from metastore.store.schema import moves

_ALL = select(moves).order_by(moves.c.id)
_THESE = moves.c.id == any_(bindparam("ids", type_=ARRAY(BigInteger)))
_PLACE = func.unnest(bindparam("places", type_=ARRAY(String)), type_=String).column_valued("place")

_PENDING = Prepared(_ALL)
_CLAIM = Prepared(_ALL.where(_THESE).with_for_update())
_FORGET = Prepared(delete(moves).where(_THESE))
_ADD = Prepared(insert(moves).returning(moves), ["source", "target"])
_ADD_DELETIONS = Prepared(insert(moves).from_select(["source"], select(_PLACE)).returning(moves))


class Move(NamedTuple):
    """A directory on its way from one location to another, or, without a target, to nowhere."""

    id: int
    source: str
    target: str | None


def add(tx: Connection, source: str, target: str) -> Move:
    """Records a move that is to be done once the transaction has committed."""
    return _move(_ADD.first(tx, {"source": source, "target": target}))


def add_deletions(tx: Connection, places: Sequence[str]) -> list[Move]:
    """Records that directories are to be deleted once the transaction has committed."""
    if not places:
        return []
    return [_move(row) for row in _ADD_DELETIONS.all(tx, {"places": list(places)})]


def pending(tx: Connection) -> list[Move]:
    """All that is recorded, in the order in which it was. Mostly nothing."""
    return [_move(row) for row in _PENDING.all(tx)]


def claim_next(tx: Connection, after: int) -> Move | None:
    """The next record after an id that no living transaction works on; it is this transaction's until that ends."""
    earlier = moves.alias()
    # What is on its way to a place, in somebody else's hands, must have arrived before the place is deleted.
    awaited = exists().where(earlier.c.target == moves.c.source, earlier.c.id < moves.c.id)
    query = select(moves).where(moves.c.id > after, ~awaited).order_by(moves.c.id).limit(1)
    row = tx.execute(query.with_for_update(of=moves, skip_locked=True)).one_or_none()
    return _move(row) if row else None


def claim(tx: Connection, ids: Sequence[int]) -> list[Move]:
    """Makes records this transaction's, waiting for whoever works on them; those that are done by then are left out."""
    return [_move(row) for row in _CLAIM.all(tx, {"ids": list(ids)})]


def forget(tx: Connection, ids: Sequence[int]) -> None:
    """Removes records of what is done."""
    _FORGET.execute(tx, {"ids": list(ids)})


def _move(row: Any) -> Move:
    return Move(row.id, row.source, row.target)
