"""What becomes of errors of psycopg2."""

import psycopg2
import pytest

from metastore.store import Database
from metastore.store.database import DatabaseUnavailable


def test_a_connection_that_a_crash_of_postgres_cut_is_worth_another_try(postgres_url: str) -> None:
    """psycopg2 then raises its general class, without a code."""
    database = Database(postgres_url)
    with pytest.raises(DatabaseUnavailable, match="try again later"), database.read():
        raise psycopg2.DatabaseError("server closed the connection unexpectedly")
    database.close()
