"""One transaction at a time for a thread: whoever held a connection and waited for another could wait for ever."""

import threading
from collections.abc import Iterator

import pytest

from metastore.store import Database
from metastore.store.engine.database import NestedTransaction


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    opened = Database(postgres_url, pool_size=2)
    yield opened
    opened.close()


@pytest.mark.parametrize("outer", ["read", "write"])
@pytest.mark.parametrize("inner", ["read", "write"])
def test_no_transaction_within_another(database: Database, outer: str, inner: str) -> None:
    with getattr(database, outer)() as tx:
        with pytest.raises(NestedTransaction, match="pass the first one on"), getattr(database, inner)():
            pytest.fail("a second connection is taken")
        assert tx.exec_driver_sql("SELECT 1").scalar_one() == 1
    with getattr(database, inner)() as tx:
        assert tx.exec_driver_sql("SELECT 2").scalar_one() == 2


def test_a_reader_that_another_thread_closes(database: Database) -> None:
    """As the generator of a reply, whose client went away."""

    def rows() -> Iterator[int]:
        with database.read() as tx:
            yield from tx.exec_driver_sql("SELECT generate_series(1, 3)").scalars()

    reader = rows()
    assert next(reader) == 1
    closing = threading.Thread(target=reader.close)
    closing.start()
    closing.join()
    assert list(rows()) == [1, 2, 3]
