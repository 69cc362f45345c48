"""SQL for storage descriptors. Each distinct one is stored once."""

import hashlib
from collections.abc import Iterable

from sqlalchemy import ARRAY, BigInteger, Connection, LargeBinary, any_, bindparam, delete, exists, func, select
from sqlalchemy.dialects.postgresql import insert

from metastore.postgres.prepared import Prepared
from metastore.store.schema.partition import partitions
from metastore.store.schema.table import storage_descriptors, tables

_BY_ID = Prepared(
    select(storage_descriptors.c.id, storage_descriptors.c.body).where(
        storage_descriptors.c.id == any_(bindparam("ids", type_=ARRAY(BigInteger)))
    )
)
_BY_DIGEST = Prepared(
    select(storage_descriptors.c.digest, storage_descriptors.c.id)
    .where(storage_descriptors.c.digest == any_(bindparam("digests", type_=ARRAY(LargeBinary))))
    # FOR KEY SHARE: the housekeeper must not take away what this transaction is about to refer to.
    .with_for_update(read=True, key_share=True)
)


def keep(tx: Connection, bodies: Iterable[bytes]) -> dict[bytes, int]:
    """The ids of descriptors, by body; those that are not kept yet are added."""
    by_digest = {hashlib.sha256(body).digest(): body for body in bodies}
    if not by_digest:
        return {}
    ids = _find(tx, by_digest)
    missing = sorted(by_digest.keys() - ids.keys())
    if missing:
        rows = [{"digest": digest, "body": by_digest[digest]} for digest in missing]
        tx.execute(insert(storage_descriptors).on_conflict_do_nothing(index_elements=["digest"]), rows)
        ids |= _find(tx, missing)
    return {by_digest[digest]: number for digest, number in ids.items()}


def _find(tx: Connection, digests: Iterable[bytes]) -> dict[bytes, int]:
    return {bytes(row.digest): row.id for row in _BY_DIGEST.all(tx, {"digests": list(digests)})}


def bodies(tx: Connection, numbers: Iterable[int]) -> dict[int, bytes]:
    """The kept bodies of descriptors by id."""
    return {row.id: bytes(row.body) for row in _BY_ID.all(tx, {"ids": list(numbers)})}


def bodies_of_table(tx: Connection, table_id: int) -> dict[int, bytes]:
    """The kept bodies of all descriptors that a table's partitions name, by id."""
    used = select(partitions.c.storage_descriptor_id).where(partitions.c.table_id == table_id).distinct()
    query = select(storage_descriptors.c.id, storage_descriptors.c.body).where(storage_descriptors.c.id.in_(used))
    return {row.id: bytes(row.body) for row in tx.execute(query)}


def sweep(tx: Connection, limit: int = 1000) -> int:
    """Removes descriptors that nothing refers to any more, `limit` at the most, and returns how many.

    In two steps: a transaction that began to refer to one may commit between the look and the lock. Once they are
    held nobody can begin to, and the second look sees whoever did before.
    """
    candidates = select(storage_descriptors.c.id).where(*_UNUSED).limit(limit).with_for_update(skip_locked=True)
    held = list(tx.execute(candidates).scalars())
    gone = delete(storage_descriptors).where(storage_descriptors.c.id == func.any(held), *_UNUSED)
    return tx.execute(gone).rowcount


_UNUSED = (
    ~exists().where(tables.c.storage_descriptor_id == storage_descriptors.c.id),
    ~exists().where(partitions.c.storage_descriptor_id == storage_descriptors.c.id),
)
