"""Statements that are prepared once for each connection."""

from collections.abc import Iterator
from typing import Any

import psycopg2.errors
import psycopg2.extensions
import pytest
from sqlalchemy import bindparam, event, insert, select, text, update

from metastore.postgres.joined_messages import JoiningCursor
from metastore.postgres.prepared import Call, Prepared, execute_all
from metastore.store import Database, DatabaseUnavailable
from metastore.store.schema.transactions import counters

_NAMED = Prepared(select(counters).where(counters.c.name == bindparam("name")))
_ADD = Prepared(insert(counters), ["name", "next"])
_RAISE = Prepared(
    update(counters)
    .where(counters.c.name == bindparam("counter"))
    .values(next=counters.c.next + bindparam("by"))
    .returning(counters.c.next)
)
_WAIT = Prepared(text("SELECT pg_sleep(:seconds)"))


class Listed(JoiningCursor):
    """Notes what is sent."""

    sent: list[str] = []

    def execute(self, *args: Any) -> None:
        super().execute(*args)
        assert self.query is not None
        Listed.sent.append(self.query.decode())


@pytest.fixture
def database(upgraded_url: str) -> Iterator[Database]:
    opened = Database(upgraded_url, pool_size=1, statement_timeout=1)

    @event.listens_for(opened._engine, "connect")
    def list_statements(connection: Any, _record: object) -> None:
        connection.cursor_factory = Listed

    Listed.sent.clear()
    yield opened
    opened.close()


def _prepared() -> int:
    return sum("PREPARE " in sent for sent in Listed.sent)


def test_a_connection_prepares_a_statement_once(database: Database) -> None:
    for number in range(3):
        with database.write() as tx:
            _ADD.execute(tx, {"name": f"c{number}", "next": number})
        with database.read() as tx:
            row = _NAMED.first(tx, {"name": f"c{number}"})
        assert (row.name, row.next) == (f"c{number}", number)
    assert _prepared() == 2


def test_what_a_statement_tells(database: Database) -> None:
    with database.write() as tx:
        assert _ADD.execute(tx, {"name": "c", "next": 1}) == 1
        assert _RAISE.scalar(tx, {"counter": "c", "by": 5}) == 6
        assert _RAISE.scalars(tx, {"counter": "c", "by": 5}) == [11]
        assert _RAISE.scalar(tx, {"counter": "none", "by": 5}) is None
        assert _NAMED.execute(tx, {"name": "c"}) == 1
        assert _NAMED.all(tx, {"name": "none"}) == []
        assert _NAMED.first(tx, {"name": "none"}) is None


def test_several_are_one_message(database: Database) -> None:
    values = {"name": "c", "next": 1, "counter": "c", "by": 2}
    for _ in range(2):
        Listed.sent.clear()
        with database.write() as tx:
            execute_all(tx, [_ADD, _RAISE, _RAISE], values)
            assert _NAMED.first(tx, {"name": "c"}).next == 5
            tx.rollback()
    assert len(Listed.sent) == 2


def test_several_with_values_of_their_own_are_one_message(database: Database) -> None:
    for _ in range(2):
        Listed.sent.clear()
        with database.write() as tx:
            both = [Call(_ADD, {"name": name, "next": len(name)}) for name in ("it's", "50%")]
            raised = [Call(_RAISE, {"counter": name, "by": 10}) for name in ("it's", "50%")]
            assert _NAMED.first(tx, {"name": "50%"}, after=[*both, *raised]).next == 13
            assert _NAMED.first(tx, {"name": "it's"}).next == 14
            tx.rollback()
    assert len(Listed.sent) == 2


def test_it_stays_prepared_when_its_transaction_fails(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable, match="time limit"), database.write() as tx:
        _ADD.execute(tx, {"name": "c", "next": 1})
        _WAIT.execute(tx, {"seconds": 10})
    with database.write() as tx:
        assert _NAMED.first(tx, {"name": "c"}) is None
        _ADD.execute(tx, {"name": "c", "next": 1})
        _WAIT.execute(tx, {"seconds": 0})
    assert _prepared() == 3


def test_one_that_could_not_be_prepared_is_prepared_later(database: Database) -> None:
    """As when a migration holds the table."""
    with database.read() as tx:
        _WAIT.execute(tx, {"seconds": 0})
    holder = psycopg2.connect(database.url.set(drivername="postgresql").render_as_string(hide_password=False))
    with holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLE counters")
        with pytest.raises(DatabaseUnavailable), database.read() as tx:
            _NAMED.first(tx, {"name": "c"})
    holder.close()
    with database.read() as tx:
        assert _NAMED.first(tx, {"name": "c"}) is None


def test_a_new_connection_begins_anew(database: Database) -> None:
    with database.read() as tx:
        _NAMED.first(tx, {"name": "c"})
        number = tx.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    other = psycopg2.connect(database.url.set(drivername="postgresql").render_as_string(hide_password=False))
    with other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", (number,))
    other.close()
    with pytest.raises(DatabaseUnavailable), database.read() as tx:
        _NAMED.first(tx, {"name": "c"})
    with database.read() as tx:
        assert _NAMED.first(tx, {"name": "c"}) is None
    assert _prepared() == 2


def test_a_table_that_changes_is_planned_anew(database: Database) -> None:
    """As when a later version adds a column while this one runs."""
    only = Prepared(select(counters.c.next).where(counters.c.name == bindparam("name")))
    with database.write() as tx:
        _ADD.execute(tx, {"name": "c", "next": 7})
        for _ in range(10):
            assert only.scalar(tx, {"name": "c"}) == 7
        tx.exec_driver_sql("ALTER TABLE counters ADD COLUMN more bigint")
        assert only.scalar(tx, {"name": "c"}) == 7


def test_values_are_never_part_of_the_statement(database: Database) -> None:
    name = "c'); DROP TABLE counters; --%s $1 :x"
    with database.write() as tx:
        _ADD.execute(tx, {"name": name, "next": 1})
        assert _NAMED.first(tx, {"name": name}).name == name
