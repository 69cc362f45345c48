"""When Postgres was away, the connections of before are of no use."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg2
import pytest
from sqlalchemy import Connection, text

from metastore.postgres.prepared import Prepared
from metastore.store import Database, DatabaseUnavailable

CONNECTIONS = 5

_ONE = Prepared(text("SELECT 1"))


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    opened = Database(postgres_url, pool_size=CONNECTIONS)
    yield opened
    opened.close()


def _with_prepared(tx: Connection) -> int:
    return int(_ONE.scalar(tx))


def _with_sqlalchemy(tx: Connection) -> int:
    return int(tx.execute(text("SELECT 1")).scalar_one())


def _at_once(database: Database, ask: Callable[[Connection], int]) -> list[int]:
    """What each of the pool's connections answers."""
    all_there = Barrier(CONNECTIONS)

    def asked(_number: int) -> int:
        with database.read() as tx:
            all_there.wait(30)
            return ask(tx)

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        return list(threads.map(asked, range(CONNECTIONS)))


@pytest.mark.parametrize("ask", [_with_prepared, _with_sqlalchemy])
def test_one_that_broke_makes_the_others_suspect(
    database: Database, ask: Callable[[Connection], int], caplog: pytest.LogCaptureFixture
) -> None:
    processes = _at_once(database, lambda tx: tx.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
    url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg2.connect(url) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s) AS pid", (processes,))
    other.close()
    # All were used just now: one request finds out, and all that follow are answered.
    with pytest.raises(DatabaseUnavailable), database.read() as tx:
        ask(tx)
    for _ in range(2):
        assert _at_once(database, ask) == [1] * CONNECTIONS
    assert "Traceback" not in caplog.text
