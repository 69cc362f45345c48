"""What triggers record of changes that no server makes: any that reaches the database is recorded."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, NullPool, create_engine, text

from metastore.store.cache import cache_changes
from metastore.store.engine.read_set import INCARNATION
from tests.metastore.cache.test_read_set import TOLD_BY

KEPT = """
INSERT INTO column_statistics (table_id, partition_id, column_name, last_analyzed, body)
SELECT 1 + number / 10, number, 'a', 0, '' FROM generate_series(0, 19) AS number
ON CONFLICT (table_id, partition_id, column_name, engine) DO UPDATE SET last_analyzed = 1
"""


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("UPDATE column_statistics SET body = 'new' WHERE table_id = 2", {2}),
        ("DELETE FROM column_statistics WHERE table_id = 1", {1}),
        ("DELETE FROM column_statistics WHERE table_id = 3", set()),
        ("DELETE FROM column_statistics WHERE partition_id >= 10; " + KEPT, {1, 2}),
        (KEPT.replace("'a'", "'b'"), {1, 2}),
        (KEPT, {1, 2}),
    ],
)
def test_changed_statistics(upgraded_url: str, statement: str, tables: set[int]) -> None:
    with create_engine(upgraded_url, poolclass=NullPool).connect() as connection:
        connection.execute(text(KEPT))
        connection.commit()
        connection.execute(text("DELETE FROM cache_changes"))
        connection.execute(text(statement))
        own = text(
            "SELECT kind, id, count(*) FROM cache_changes WHERE xid = pg_current_xact_id()::text::bigint"
            " GROUP BY kind, id"
        )
        assert sorted(connection.execute(own).all()) == [("c", table, 1) for table in sorted(tables)]


def incarnations(connection: Connection) -> list[str]:
    return list(connection.execute(text(f"SELECT {INCARNATION} FROM cache_state")).scalars())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("table", sorted({*TOLD_BY, "cache_changes"}))
def test_a_truncated_table_ends_the_incarnation(upgraded_url: str, table: str) -> None:
    """Any of which a kept reply is read, and that of the notes."""
    with create_engine(upgraded_url, poolclass=NullPool).begin() as connection:
        cache_changes.begin(connection)
        connection.execute(text(f"TRUNCATE {table} CASCADE"))
        assert incarnations(connection) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE catalogs SET name = 'other'",
        "UPDATE databases SET name = 'other' WHERE name = 'default'",
        "UPDATE storage_descriptors SET body = 'other'",
        "DELETE FROM cache_changes",
    ],
)
def test_what_nobody_should_change_ends_the_incarnation(upgraded_url: str, statement: str) -> None:
    with create_engine(upgraded_url, poolclass=NullPool).begin() as connection:
        cache_changes.begin(connection)
        connection.execute(text("INSERT INTO catalogs (name, location, create_time) VALUES ('c', '', 0)"))
        connection.execute(
            text("INSERT INTO databases (catalog_id, name, body) SELECT id, 'default', '' FROM catalogs")
        )
        connection.execute(text("INSERT INTO storage_descriptors (digest, body) VALUES ('d', 'b')"))
        (_,) = incarnations(connection)
        connection.execute(text(statement))
        assert incarnations(connection) == []


def test_old_notes_are_forgotten_without_an_end(upgraded_url: str) -> None:
    engine = create_engine(upgraded_url, poolclass=NullPool)
    with engine.begin() as connection:
        cache_changes.begin(connection)
        before = incarnations(connection)
    left = []
    for number in range(3):
        with engine.begin() as connection:
            connection.execute(text(KEPT.replace("'a'", f"'{number}'")))
            connection.execute(text("UPDATE cache_state SET raised_at = raised_at - interval '1 hour'"))
        with engine.begin() as connection:
            cache_changes.forget_old(connection)
            left.append(connection.execute(text("SELECT count(DISTINCT xid) FROM cache_changes")).scalar_one())
            assert incarnations(connection) == before
    assert left == [1, 1, 1], "those of earlier ones are forgotten"


def test_who_waits_for_a_truncation_knows_of_it(upgraded_url: str) -> None:
    """Its snapshot is older, so it still finds the row of the incarnation, but no notes."""
    engine = create_engine(upgraded_url, poolclass=NullPool)
    with engine.begin() as connection:
        cache_changes.begin(connection)
    asking = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    with asking, engine.connect() as operator, ThreadPoolExecutor() as threads:
        cursor = asking.connection.cursor()
        cursor.execute(cache_changes.PREPARE)
        cursor.execute(cache_changes.POLL, (0, []))
        before = cache_changes.poll_of(cursor.fetchall())
        operator.execute(text("TRUNCATE cache_changes"))
        waiting = threads.submit(cursor.execute, cache_changes.POLL, (0, []))
        with engine.connect() as watching:
            blocked = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while not waiting.done() and watching.execute(blocked).scalar_one() == 0:
                watching.rollback()
        operator.commit()
        waiting.result(30)
        after = cache_changes.poll_of(cursor.fetchall())
        assert before is not None
        assert after is None or after.incarnation != before.incarnation
