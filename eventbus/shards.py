"""The parts into which the events of a group are divided: those of one table are in one of them.

What is about a database, but none of its tables, goes by the database's name, and what is about a catalog by the
catalog's.
"""

import hashlib

SHARDS = 16


def shard_of(catalog: str | None, database: str | None, table: str | None) -> int:
    """In which shard the events about these names are. `reader` has Postgres reckon alike."""
    return hashlib.sha256(f"{catalog or ''}.{database or ''}.{table or ''}".encode()).digest()[0] % SHARDS
