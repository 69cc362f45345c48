"""The merged notification log in Postgres: numbers are dense whoever appends, and nothing is taken twice."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from metastore.store import Database
from metastore.store.federation import merged_log
from metastore.store.federation.merged_log import About, Count, Row
from tests.support.postgres import Postgres


@pytest.fixture
def database(postgres: Postgres) -> Iterator[Database]:
    with postgres.fresh_database(upgraded=True) as url:
        found = Database(url, pool_size=4)
        with found.write() as tx:
            merged_log.take_names(tx, "names")
            for backend in ("a", "b"):
                merged_log.begin(tx, backend, 0)
        yield found
        found.close()


def row(number: int, database: str | None = "d", *, type: str = "DROP_TABLE", other: str | None = None) -> Row:
    return Row(number, type, database, other, "t", b"body", None)


def append(database: Database, backend: str, before: int, *rows: Row, names: str = "names") -> bool:
    after = rows[-1].number_there if rows else before
    with database.write() as tx:
        return merged_log.append(tx, backend, names=names, before=before, after=after, mark=b"m", rows=rows)


def numbers(database: Database, after: int = 0, about: About | None = None) -> list[int]:
    with database.read() as tx:
        return [each.number for each in merged_log.read(tx, after, about)]


def test_those_who_append_together(database: Database) -> None:
    """Two for each of two backends: one of each two is faster."""

    def follow(backend: str) -> int:
        taken = 0
        for number in range(1, 101):
            taken += append(database, backend, number - 1, row(number))
        return taken

    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(follow, ["a", "b", "a", "b"]))
    with database.read() as tx:
        found = list(merged_log.read(tx, 0))
        followed = merged_log.followed(tx)
        assert merged_log.state(tx) == (200, 0, "names")
        there = merged_log.numbers_of(tx, "a", list(range(1, 101)))
    assert [each.number for each in found] == list(range(1, 201))
    assert taken[0] + taken[2] == taken[1] + taken[3] == 100
    assert {backend: each.position for backend, each in followed.items()} == {"a": 100, "b": 100}
    assert list(there) == sorted(there, key=there.__getitem__) and len(there) == 100


def test_what_is_refused(database: Database) -> None:
    assert not append(database, "a", 1, row(2))
    assert not append(database, "a", 0, row(1), names="others")
    assert not append(database, "c", 0, row(1))
    assert append(database, "a", 0, row(1)) and append(database, "a", 1)
    assert numbers(database) == [1]


def test_what_is_read_and_counted(database: Database) -> None:
    append(database, "a", 0, row(1, "d"), row(2, "e"), row(3, "e", other="d", type="ALTER_TABLE"), row(4, None))
    append(database, "b", 0, row(1, "d"))
    with database.write() as tx:
        lost = Row(9, "LOSS", None, None, None, None, "all")
        assert merged_log.append(tx, "b", names="names", before=1, after=9, mark=None, rows=[lost])
    assert numbers(database) == [1, 2, 3, 4, 5, 6]
    assert numbers(database, 1, About("a", "d")) == [3, 6]  # losses are for everybody
    with database.read() as tx:
        assert merged_log.losses(tx) == [(6, "b", "all")]
        assert set(merged_log.count(tx, 0, 3, About("a", "d"))) == {
            Count("a", "DROP_TABLE", "d", None, "t", 1),
            Count("a", "ALTER_TABLE", "e", "d", "t", 1),
        }
        assert sum(each.events for each in merged_log.count(tx, 0, None, None)) == 5


def test_one_that_never_answered(database: Database) -> None:
    with database.write() as tx:
        merged_log.failed(tx, "c", "it is away")
        merged_log.failed(tx, "a", "it is away, too")
        found = merged_log.followed(tx)
    assert (found["c"].position, found["c"].trouble) == (merged_log.UNKNOWN, "it is away")
    assert (found["a"].position, found["a"].trouble) == (0, "it is away, too")
    with database.write() as tx:
        merged_log.looked(tx, "a", 7, current=False, trouble=None)
        found = merged_log.followed(tx)
    assert (found["a"].last_there, found["a"].trouble) == (7, None)


def test_old_events_go(database: Database) -> None:
    append(database, "a", 0, *(row(number) for number in range(1, 11)))
    with database.write() as tx:
        tx.execute(text("UPDATE federation_events SET recorded_at = now() - interval '2 days' WHERE number <= 3"))
        assert merged_log.trim(tx, 3, 100) == 0
        assert merged_log.trim(tx, 1, 100) == 3
        assert merged_log.state(tx).trimmed == 3
        assert merged_log.trim(tx, 1, 5) == 2
        assert merged_log.state(tx) == (10, 5, "names")
    assert numbers(database) == [6, 7, 8, 9, 10]
