"""Transactions are what they are everywhere, in fewer messages."""

import io
from collections.abc import Iterator
from typing import Any

import psycopg2
import psycopg2.errors
import psycopg2.extensions
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import bindparam, create_engine, text

from metastore.postgres.joined_messages import JoiningConnection, JoiningCursor
from metastore.postgres.prepared import Prepared, put_off
from metastore.store.engine.database import Conflict, Database

INSERT = Prepared(text("INSERT INTO kept VALUES (:value)").bindparams(bindparam("value")))
COUNT = Prepared(text("SELECT count(*) FROM kept"))
WRITES = text("INSERT INTO kept VALUES (:value)")


@pytest.fixture
def url(postgres_url: str) -> str:
    _make_table(postgres_url)
    return postgres_url


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = Database(url, pool_size=1)
    yield opened
    opened.close()


@pytest.fixture
def connection(url: str) -> Iterator[JoiningConnection]:
    opened = psycopg2.connect(_of_driver(url), connection_factory=JoiningConnection)
    opened.autocommit = True
    yield opened
    opened.close()


def _of_driver(url: str) -> str:
    return url.replace("+psycopg2", "")


def _make_table(url: str) -> None:
    with psycopg2.connect(_of_driver(url)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kept (value integer PRIMARY KEY)")
    connection.close()


def kept(url: str) -> list[int]:
    with psycopg2.connect(_of_driver(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT value FROM kept ORDER BY value")
        found = [value for (value,) in cursor.fetchall()]
    connection.close()
    return found


def status(connection: JoiningConnection) -> int:
    return connection.info.transaction_status


def send(connection: JoiningConnection) -> None:
    """Sends a statement, and with it whatever waits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def test_nothing_is_sent_before_the_first_statement(connection: JoiningConnection) -> None:
    connection.begin()
    assert status(connection) == psycopg2.extensions.TRANSACTION_STATUS_IDLE
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s", [5])
        assert cursor.fetchall() == [(5,)]
    assert status(connection) == psycopg2.extensions.TRANSACTION_STATUS_INTRANS
    connection.commit()
    assert status(connection) == psycopg2.extensions.TRANSACTION_STATUS_IDLE


def test_a_transaction_without_statements_ends(connection: JoiningConnection, url: str) -> None:
    connection.begin()
    connection.commit()
    connection.begin()
    connection.rollback()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO kept VALUES (1)")  # a transaction of its own
    assert kept(url) == [1]


@pytest.mark.parametrize("way", ["execute", "executemany", "copy"])
def test_each_way_to_send_begins(connection: JoiningConnection, url: str, way: str) -> None:
    connection.begin()
    with connection.cursor() as cursor:
        if way == "execute":
            cursor.execute("INSERT INTO kept VALUES (1)")
        elif way == "executemany":
            cursor.executemany("INSERT INTO kept VALUES (%s)", [[1], [2]])
        else:
            cursor.copy_expert("COPY kept FROM STDIN", io.BytesIO(b"1\n2\n"))
    assert kept(url) == []
    connection.rollback()
    assert kept(url) == []


def test_what_is_put_off_goes_with_commit(connection: JoiningConnection, url: str) -> None:
    connection.begin()
    connection.put_off(b"INSERT INTO kept VALUES (1)")
    connection.put_off(b"INSERT INTO kept VALUES (2)")
    assert status(connection) == psycopg2.extensions.TRANSACTION_STATUS_IDLE
    connection.commit()
    assert kept(url) == [1, 2]


def test_what_is_put_off_is_seen_by_the_next_statement(connection: JoiningConnection) -> None:
    connection.begin()
    connection.put_off(b"INSERT INTO kept VALUES (1)")
    with connection.cursor() as cursor:
        cursor.execute("SELECT value FROM kept")
        assert cursor.fetchall() == [(1,)]
    connection.rollback()


def test_what_is_put_off_is_forgotten_by_rollback(connection: JoiningConnection, url: str) -> None:
    connection.begin()
    send(connection)
    connection.put_off(b"INSERT INTO kept VALUES (1)")
    connection.rollback()
    connection.begin()
    connection.commit()
    assert kept(url) == []


def test_a_failure_at_commit_keeps_nothing(connection: JoiningConnection, url: str) -> None:
    connection.begin()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO kept VALUES (1)")
    connection.put_off(b"INSERT INTO kept VALUES (1)")
    with pytest.raises(psycopg2.errors.UniqueViolation):
        connection.commit()
    assert status(connection) == psycopg2.extensions.TRANSACTION_STATUS_INERROR
    connection.rollback()
    assert status(connection) == psycopg2.extensions.TRANSACTION_STATUS_IDLE
    assert kept(url) == []


@pytest.mark.parametrize("sent_before", [False, True])
def test_a_transaction_of_one_message_is_committed_as_a_whole(
    connection: JoiningConnection, url: str, sent_before: bool
) -> None:
    connection.begin()
    if sent_before:
        send(connection)
    connection.put_off(b"INSERT INTO kept VALUES (1)")
    connection.put_off(b"INSERT INTO kept SELECT 1")
    with pytest.raises(psycopg2.errors.UniqueViolation):
        connection.commit()
    connection.rollback()
    assert kept(url) == []
    connection.begin()
    connection.put_off(b"INSERT INTO kept VALUES (1)")
    connection.commit()
    assert kept(url) == [1]


def test_another_cursor_is_refused(connection: JoiningConnection) -> None:
    connection.begin()
    with pytest.raises(TypeError, match=JoiningCursor.__name__):
        connection.cursor(cursor_factory=psycopg2.extensions.cursor)
    connection.rollback()


def test_without_autocommit_it_is_the_drivers(url: str) -> None:
    opened = psycopg2.connect(_of_driver(url), connection_factory=JoiningConnection)
    with opened.cursor() as cursor:
        cursor.execute("INSERT INTO kept VALUES (1)")
        assert opened.info.transaction_status == psycopg2.extensions.TRANSACTION_STATUS_INTRANS
        opened.rollback()
        cursor.execute("INSERT INTO kept VALUES (2)")
        opened.commit()
    opened.close()
    assert kept(url) == [2]


def test_a_conflict_of_the_last_statement_is_raised_by_the_block(database: Database, url: str) -> None:
    with database.write() as tx:
        put_off(tx, [INSERT], {"value": 1})
    with pytest.raises(Conflict), database.write() as tx:
        COUNT.scalar(tx)
        put_off(tx, [INSERT], {"value": 1})
    with database.write() as tx:
        assert COUNT.scalar(tx) == 1
    assert kept(url) == [1]


def test_nothing_is_put_off_where_psycopg2_sends_commit(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as tx:
        put_off(tx, [INSERT], {"value": 1})
        with pytest.raises(psycopg2.errors.UniqueViolation):
            put_off(tx, [INSERT], {"value": 1})
        tx.rollback()
    with engine.begin() as tx:
        put_off(tx, [INSERT], {"value": 2})
    engine.dispose()
    assert kept(url) == [2]


def test_reads_can_not_write_and_see_one_state(database: Database, url: str) -> None:
    """Whatever kind of transaction the only connection was used for before."""
    others: list[Any] = [database.write, database.at_once, database.read]
    for number, before in enumerate(others):
        with before() as tx:
            COUNT.scalar(tx)
        with database.read() as tx:
            first = COUNT.scalar(tx)
            with psycopg2.connect(_of_driver(url)) as other, other.cursor() as cursor:
                cursor.execute("INSERT INTO kept VALUES (%s)", [number])
            other.close()
            assert COUNT.scalar(tx) == first
        with pytest.raises(Exception, match="read-only"), database.read() as tx:
            INSERT.execute(tx, {"value": 99})
    assert kept(url) == [0, 1, 2]


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["prepared", "sqlalchemy", "put off", "count", "savepoint", "failed savepoint"]),
        st.integers(0, 6),
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["commit", "raise"]), _STEPS), max_size=5))
def test_random_transactions(shared_database: Database, transactions: list[tuple[str, list[tuple[str, int]]]]) -> None:
    """Each keeps all that it wrote or, if it fails or meets a value that exists, nothing."""
    database = shared_database
    with database.write() as tx:
        tx.execute(text("DELETE FROM kept"))
    state: set[int] = set()
    for end, steps in transactions:
        wanted: set[int] | None = set(state)
        try:
            with database.write() as tx:
                for step, value in steps:
                    assert wanted is not None
                    if step == "count":
                        assert COUNT.scalar(tx) == len(wanted)
                        continue
                    if step == "failed savepoint":
                        savepoint = tx.begin_nested()
                        tx.execute(text("INSERT INTO kept VALUES (1000)"))
                        savepoint.rollback()
                        continue
                    taken, wanted = value in wanted, None if value in wanted else wanted | {value}
                    if step == "prepared":
                        INSERT.execute(tx, {"value": value})
                    elif step == "put off":
                        put_off(tx, [INSERT], {"value": value})
                    elif step == "savepoint":
                        with tx.begin_nested():
                            tx.execute(WRITES, {"value": value})
                    else:
                        tx.execute(WRITES, {"value": value})
                    if taken:
                        break  # put off: the error comes with COMMIT
                if end == "raise":
                    raise KeyError
        except (Conflict, KeyError):
            wanted = None
        else:
            assert wanted is not None
        state = state if wanted is None else wanted
        with database.at_once() as tx:
            assert COUNT.scalar(tx) == len(state)


@pytest.fixture(scope="module")
def shared_database(postgres: Any) -> Iterator[Database]:
    with postgres.fresh_database() as url:
        _make_table(url)
        opened = Database(url)
        yield opened
        opened.close()
