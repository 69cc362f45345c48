"""The metastore's data in Postgres: the schema, migrations, and all SQL statements."""

from metastore.store.engine.database import (
    Conflict,
    Database,
    DatabaseBusy,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnavailable,
    Unstorable,
)

__all__ = [
    "Conflict",
    "Database",
    "DatabaseBusy",
    "DatabaseFull",
    "DatabaseReadOnly",
    "DatabaseUnavailable",
    "Unstorable",
]
