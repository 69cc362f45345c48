"""Everything that is kept in Postgres, and every SQL statement that touches it."""

from metastore.store.database import Conflict, Database, DatabaseUnavailable, Unstorable

__all__ = ["Conflict", "Database", "DatabaseUnavailable", "Unstorable"]
