"""SQL for the delegation tokens that this metastore issues, and for the keys that it signs them with."""

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text, update

from metastore.postgres.prepared import Prepared
from metastore.store.engine import clock
from metastore.store.schema.access import issued_tokens, token_keys

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('metastore token keys', 0))"


_FIND = Prepared(
    select(
        issued_tokens.c.sequence,
        issued_tokens.c.renew_until,
        clock.NOW_MS.label("now"),
        select(token_keys.c.key).where(token_keys.c.id == bindparam("key_id")).scalar_subquery().label("key"),
    ).where(issued_tokens.c.sequence == bindparam("sequence"))
)


class TokenKey(NamedTuple):
    id: int
    key: bytes


class IssuedToken(NamedTuple):
    """A token that was not cancelled. Times are in milliseconds since 1970; `now` is when it was read."""

    sequence: int
    renew_until: int
    now: int
    key: bytes | None
    """The key that its identifier names; None if that is gone."""


def newest_key(tx: Connection, made_after: int) -> TokenKey | None:
    """The newest key, unless it was made before that time, in milliseconds since 1970."""
    query = select(token_keys.c.id, token_keys.c.key).where(token_keys.c.made >= made_after)
    row = tx.execute(query.order_by(token_keys.c.id.desc()).limit(1)).one_or_none()
    return None if row is None else TokenKey(row.id, bytes(row.key))


def lock_keys(tx: Connection) -> None:
    """Until the transaction ends nobody else makes keys."""
    tx.execute(text(_LOCK))


def add_key(tx: Connection, key: bytes, made: int) -> TokenKey:
    added = insert(token_keys).returning(token_keys.c.id)
    return TokenKey(int(tx.execute(added, {"key": key, "made": made}).scalar_one()), key)


def add(tx: Connection, owner: str, renew_until: int, max_date: int) -> int:
    """Adds a token and returns its sequence number."""
    added = insert(issued_tokens).returning(issued_tokens.c.sequence)
    return int(tx.execute(added, {"owner": owner, "renew_until": renew_until, "max_date": max_date}).scalar_one())


def count_of_owner(tx: Connection, owner: str) -> int:
    """How many tokens of an owner there are."""
    return int(tx.execute(select(func.count()).where(issued_tokens.c.owner == owner)).scalar_one())


def find(tx: Connection, sequence: int, key_id: int) -> IssuedToken | None:
    """A token with the key of that number."""
    row = _FIND.first(tx, {"sequence": sequence, "key_id": key_id})
    if row is None:
        return None
    return IssuedToken(row.sequence, row.renew_until, row.now, None if row.key is None else bytes(row.key))


def renew(tx: Connection, sequence: int, renew_until: int) -> None:
    tx.execute(update(issued_tokens).where(issued_tokens.c.sequence == sequence).values(renew_until=renew_until))


def remove(tx: Connection, sequence: int) -> bool:
    """Removes a token. Returns whether it was there."""
    return tx.execute(delete(issued_tokens).where(issued_tokens.c.sequence == sequence)).rowcount > 0


def forget(tx: Connection, now: int, keys_before: int) -> None:
    """Removes the tokens that nobody can renew any more, and keys made before a time, with which none is signed."""
    tx.execute(delete(issued_tokens).where(issued_tokens.c.max_date < now))
    tx.execute(delete(token_keys).where(token_keys.c.made < keys_before))
