"""What triggers note of changes that no server makes: any that reaches the database is told."""

import pytest
from sqlalchemy import NullPool, create_engine, text

from metastore.store import cache_changes, migrations

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
def test_changed_statistics(postgres_url: str, statement: str, tables: set[int]) -> None:
    migrations.upgrade(postgres_url)
    with create_engine(postgres_url, poolclass=NullPool).connect() as connection:
        connection.execute(text(KEPT))
        connection.commit()
        connection.execute(text("DELETE FROM cache_changes"))
        connection.execute(text(statement))
        own = text(
            "SELECT kind, id, count(*) FROM cache_changes WHERE xid = pg_current_xact_id()::text::bigint"
            " GROUP BY kind, id"
        )
        assert sorted(connection.execute(own).all()) == [("c", table, 1) for table in sorted(tables)]


def test_truncated_statistics_end_the_incarnation(postgres_url: str) -> None:
    migrations.upgrade(postgres_url)
    with create_engine(postgres_url, poolclass=NullPool).begin() as connection:
        cache_changes.begin(connection)
        connection.execute(text("TRUNCATE column_statistics"))
        assert connection.execute(text("SELECT count(*) FROM cache_state")).scalar_one() == 0
