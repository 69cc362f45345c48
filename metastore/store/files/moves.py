"""SQL for pending moves and deletions of directories, recorded by committed changes."""

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
    true,
    update,
)

from metastore.postgres.prepared import Prepared
from metastore.store.files.attempts import is_due, next_attempt
from metastore.store.schema.files import moves

_ALL = select(moves).order_by(moves.c.id)
_THESE = moves.c.id == any_(bindparam("ids", type_=ARRAY(BigInteger)))
_PLACE = func.unnest(bindparam("places", type_=ARRAY(String)), type_=String).column_valued("place")

_PENDING = Prepared(_ALL)
_CLAIM = Prepared(_ALL.where(_THESE).with_for_update())
_FORGET = Prepared(delete(moves).where(_THESE))
_ADD = Prepared(insert(moves).returning(moves), ["source", "target", "checked"])
_ADD_DELETIONS = Prepared(insert(moves).from_select(["source", "checked"], select(_PLACE, true())).returning(moves))


class Move(NamedTuple):
    """A directory to move to `target`; to delete if `target` is None.

    `checked`: whether the deletion was checked for other tables in the directory when it was recorded.
    """

    id: int
    source: str
    target: str | None
    checked: bool


def add(tx: Connection, source: str, target: str) -> Move:
    """Records a move that is to be done once the transaction has committed."""
    return _move(_ADD.first(tx, {"source": source, "target": target, "checked": True}))


def add_deletions(tx: Connection, places: Sequence[str]) -> list[Move]:
    """Records that directories are to be deleted once the transaction has committed."""
    if not places:
        return []
    return [_move(row) for row in _ADD_DELETIONS.all(tx, {"places": list(places)})]


def pending(tx: Connection) -> list[Move]:
    """All records, in the order in which they were made. There are mostly none."""
    return [_move(row) for row in _PENDING.all(tx)]


def count(tx: Connection) -> int:
    """How many are recorded."""
    return tx.execute(select(func.count()).select_from(moves)).scalar_one()


def claim_next(tx: Connection, after: int) -> Move | None:
    """The next record after an id that is due and that no other transaction has locked. Or None.

    It is locked until the transaction ends.
    """
    earlier = moves.alias()
    # A move to a directory, if another transaction carries it out, must be done before that directory is deleted.
    awaited = exists().where(earlier.c.target == moves.c.source, earlier.c.id < moves.c.id)
    query = (
        select(moves).where(moves.c.id > after, ~awaited, is_due(moves.c.next_attempt_at)).order_by(moves.c.id).limit(1)
    )
    row = tx.execute(query.with_for_update(of=moves, skip_locked=True)).one_or_none()
    return _move(row) if row else None


def claim(tx: Connection, ids: Sequence[int]) -> list[Move]:
    """Locks records until the transaction ends, and waits for others. Records that are done by then are left out."""
    return [_move(row) for row in _CLAIM.all(tx, {"ids": list(ids)})]


def put_off(tx: Connection, ids: Sequence[int], failure: str) -> None:
    """Postpones failed records: first not at all, then by 10, 30, 70, … seconds, up to a day."""
    tx.execute(
        update(moves)
        .where(moves.c.id.in_(ids))
        .values(attempts=moves.c.attempts + 1, failure=failure[:1_000], next_attempt_at=next_attempt(moves.c.attempts))
    )


def forget(tx: Connection, ids: Sequence[int]) -> None:
    """Removes records that are carried out."""
    _FORGET.execute(tx, {"ids": list(ids)})


def _move(row: Any) -> Move:
    return Move(row.id, row.source, row.target, row.checked)
