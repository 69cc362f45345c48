"""SQL for the delegation tokens that this metastore issues, and for the keys that it signs them with."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text, update

from metastore.postgres.prepared import Prepared
from metastore.store.engine import clock
from metastore.store.schema.access import issued_tokens, token_keys

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('metastore token keys', 0))"


_FIND = Prepared(
    select(
        *issued_tokens.c,
        clock.NOW_MS.label("now"),
        select(token_keys.c.key).where(token_keys.c.id == bindparam("key_id")).scalar_subquery().label("key"),
    ).where(issued_tokens.c.sequence == bindparam("sequence"))
)


class TokenKey(NamedTuple):
    id: int
    key: bytes


class TokenRow(NamedTuple):
    """What is stored of a token that was not cancelled. Times are in milliseconds since 1970.

    `owner_password`, `real_user_password`: versions of their passwords when it was issued; None: not known.
    """

    sequence: int
    owner: str
    renew_until: int
    max_date: int
    renewer: str | None
    real_user: str | None
    issued: int | None
    owner_password: str | None
    real_user_password: str | None


class IssuedToken(NamedTuple):
    """A token that was not cancelled, and the time when it was read, in milliseconds since 1970."""

    row: TokenRow
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


def add(tx: Connection, token: TokenRow) -> int:
    """Adds a token and returns its sequence number, whatever number `token` has."""
    values = token._asdict()
    del values["sequence"]
    added = insert(issued_tokens).returning(issued_tokens.c.sequence)
    return int(tx.execute(added, values).scalar_one())


def count_of_owner(tx: Connection, owner: str) -> int:
    """How many tokens of an owner there are."""
    return int(tx.execute(select(func.count()).where(issued_tokens.c.owner == owner)).scalar_one())


def find(tx: Connection, sequence: int, key_id: int) -> IssuedToken | None:
    """A token with the key of that number."""
    row = _FIND.first(tx, {"sequence": sequence, "key_id": key_id})
    if row is None:
        return None
    token = TokenRow._make(row[: len(TokenRow._fields)])
    return IssuedToken(token, row.now, None if row.key is None else bytes(row.key))


def find_all(tx: Connection, owner: str | None, sequences: Collection[int] | None = None) -> list[TokenRow]:
    """Tokens by their numbers. None: those of all owners, or of all numbers."""
    query = select(issued_tokens).order_by(issued_tokens.c.sequence)
    if owner is not None:
        query = query.where(issued_tokens.c.owner == owner)
    if sequences is not None:
        query = query.where(issued_tokens.c.sequence.in_(sequences))
    return [TokenRow._make(row) for row in tx.execute(query)]


def remove_all(tx: Connection, owner: str | None, sequences: Collection[int] | None) -> list[int]:
    """Removes the tokens that `find_all` finds, and returns their numbers."""
    query = delete(issued_tokens).returning(issued_tokens.c.sequence)
    if owner is not None:
        query = query.where(issued_tokens.c.owner == owner)
    if sequences is not None:
        query = query.where(issued_tokens.c.sequence.in_(sequences))
    return sorted(tx.execute(query).scalars())


def renew(tx: Connection, sequence: int, renew_until: int) -> None:
    tx.execute(update(issued_tokens).where(issued_tokens.c.sequence == sequence).values(renew_until=renew_until))


def remove(tx: Connection, sequence: int) -> bool:
    """Removes a token. Returns whether it was there."""
    return tx.execute(delete(issued_tokens).where(issued_tokens.c.sequence == sequence)).rowcount > 0


def forget(tx: Connection, now: int, keys_before: int) -> None:
    """Removes the tokens that nobody can renew any more, and keys made before a time, with which none is signed."""
    tx.execute(delete(issued_tokens).where(issued_tokens.c.max_date < now))
    tx.execute(delete(token_keys).where(token_keys.c.made < keys_before))
