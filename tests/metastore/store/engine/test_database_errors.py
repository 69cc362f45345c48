"""What becomes of errors of psycopg2."""

import psycopg2
import pytest
from sqlalchemy import text

from metastore.store import Database, Unstorable
from metastore.store.engine.database import DatabaseUnavailable


def test_a_connection_that_a_crash_of_postgres_cut_is_worth_another_try(postgres_url: str) -> None:
    """psycopg2 then raises its general class, without a code."""
    database = Database(postgres_url)
    with pytest.raises(DatabaseUnavailable, match="try again later"), database.read():
        raise psycopg2.DatabaseError("server closed the connection unexpectedly")
    database.close()


def test_half_of_a_surrogate_pair_is_no_text_to_be_kept(postgres_url: str) -> None:
    database = Database(postgres_url)
    with pytest.raises(Unstorable, match="half of a surrogate pair"), database.read() as tx:
        tx.execute(text("SELECT cast(:text AS text)"), {"text": "\ud800"})
    database.close()
