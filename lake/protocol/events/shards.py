"""Shards: the units of work that the members of a group share. A shard is a part of the log by a hash of names.

All events of one table are in one shard, so one member receives them in order.

An event about a database or a catalog belongs to the shard of its name, without a table.
"""

import hashlib

SHARDS = 16


def shard_of(catalog: str | None, database: str | None, table: str | None) -> int:
    """The shard of the events about these names, from 0 to SHARDS - 1. `reader` computes the same in SQL."""
    return hashlib.sha256(f"{catalog or ''}.{database or ''}.{table or ''}".encode()).digest()[0] % SHARDS
