"""Tables of the changes by which caches invalidate entries."""

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Table, Text

from metastore.store.schema.base import NAME, metadata

# Filled by triggers (migration 0008). Crash recovery empties both, since it may give out again the ids of transactions
# that left no trace; so does a replica's taking over.
cache_changes = Table(
    "cache_changes",
    metadata,
    Column("xid", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", NAME, primary_key=True, comment="metastore.store.engine.read_set.Kind"),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    prefixes=["UNLOGGED"],
    comment="what transactions changed",
)


cache_state = Table(
    "cache_state",
    metadata,
    Column("the_only", Boolean, primary_key=True),
    Column("incarnation", Text, nullable=False, comment="another one after each crash"),
    Column("floor", BigInteger, nullable=False, comment="changes of earlier transactions are forgotten"),
    Column("next_floor", BigInteger, nullable=False),
    Column("raised_at", DateTime(timezone=True), nullable=False),
    prefixes=["UNLOGGED"],
    comment="one row, or none since a crash",
)


cache_lease = Table(
    "cache_lease",
    metadata,
    Column("nothing", Boolean),
    prefixes=["UNLOGGED"],
    comment="always empty: its locks are the leases of caches",
)
