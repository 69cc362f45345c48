"""The schema in Postgres, with one module per package of the store. `metadata` has all tables."""

from metastore.store.schema import (
    access,
    cache,
    catalog,
    commit,
    federation,
    files,
    partition,
    registry,
    snapshot,
    statistics,
    table,
    table_services,
    timeline,
    transactions,
)
from metastore.store.schema.base import metadata

__all__ = [
    "access",
    "cache",
    "catalog",
    "commit",
    "federation",
    "files",
    "metadata",
    "partition",
    "registry",
    "snapshot",
    "statistics",
    "table",
    "table_services",
    "timeline",
    "transactions",
]
