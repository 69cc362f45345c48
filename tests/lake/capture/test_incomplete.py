"""Typed tables while the raw table hasn't all values yet: they stay as they were, and never show a wrong row."""

from typing import Any

from lake.capture.postgres.capture import Capture
from tests.lake.capture.shop import Source
from tests.lake.capture.typed_duck import query_of, typed_rows

LARGE = "(SELECT string_agg(md5((n * 1000 + i)::text), '') FROM generate_series(1, 100) i)"


class Seen:
    """What the typed table `t` shows after each instant of a capture."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.query = query_of(source.client, source.into, "public.t")
        self.states: list[list[dict[str, Any]]] = []

    def now(self) -> list[dict[str, Any]]:
        return typed_rows(self.source.client, self.source.into, "public.t", self.query)

    def capture(self, **options: Any) -> None:
        """Captures what there is, an instant for each transaction that has a row."""
        capture = Capture(self.source.client, self.source.options(**{"batch_rows": 1, **options}))
        capture.on_commit = lambda state: self.states.append(self.now())
        capture.run(once=True)

    def check(self, *before: list[dict[str, Any]]) -> None:
        """Raises AssertionError unless each state is the source's now or one of those `before`, in this order."""
        columns = ", ".join(self.now()[0])
        wanted = [*before, self.in_source(columns)]
        assert self.states[-1] == wanted[-1]
        places = [wanted.index(each) for each in self.states]
        assert places == sorted(places)

    def in_source(self, columns: str = "*", where: str = "true") -> list[dict[str, Any]]:
        cursor = self.source.connection.cursor()
        cursor.execute(f"SELECT {columns} FROM t WHERE {where} ORDER BY id")
        names = [each.name for each in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def large(source: Source, rows: int) -> None:
    """Makes a table with large values."""
    source.run("CREATE TABLE t (id int PRIMARY KEY, n int, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    source.run(f"INSERT INTO t SELECT n, 0, {LARGE} FROM generate_series(1, {rows}) n")


def test_a_row_with_a_large_value_that_gets_another_key(source: Source) -> None:
    large(source, 3)
    source.capture()
    seen = Seen(source)
    before = seen.in_source()
    source.run("BEGIN; UPDATE t SET n = 1 WHERE id = 1; UPDATE t SET id = 10 WHERE id = 2; DELETE FROM t WHERE id = 3")
    source.run("COMMIT")
    seen.capture()
    seen.check(before)
    assert len(seen.states) > 1
    source.run("INSERT INTO t VALUES (11, 0, 'x')")
    seen.capture()
    assert seen.now() == seen.in_source()


def test_a_truncation_before_such_a_row_is_read_again(source: Source) -> None:
    large(source, 2)
    source.capture()
    seen = Seen(source)
    before = seen.in_source()
    source.run("UPDATE t SET id = 10 WHERE id = 2")
    source.run("BEGIN; TRUNCATE t; INSERT INTO t VALUES (5, 5, 'x'), (6, 6, repeat(md5('6'), 99)); COMMIT")
    source.run("UPDATE t SET id = 7 WHERE id = 6")
    seen.capture()
    seen.check(before)


def test_keys_that_swap(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, v text); ALTER TABLE t REPLICA IDENTITY FULL")
    source.run("INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 9) n")
    source.capture()
    seen = Seen(source)
    before = seen.in_source()
    source.run("UPDATE t SET id = 10 - id")
    seen.capture()
    seen.check(before)
    assert len(seen.states) > 1


def test_large_values_that_are_left_alone_before_they_are_read(source: Source) -> None:
    large(source, 9)
    statements = iter(
        [
            "UPDATE t SET n = 1 WHERE id = 8",
            "UPDATE t SET n = 2 WHERE id IN (3, 5)",
            "UPDATE t SET id = 12 WHERE id = 9",
        ]
    )

    def pause(step: str) -> None:
        if step == "chunk" and (statement := next(statements, None)) is not None:
            source.run(statement)

    states = []
    capture = Capture(source.client, source.options(chunk_rows=2, batch_rows=1))
    capture.pause = pause
    capture.on_commit = lambda state: states.append(Seen(source).now())
    capture.run(once=True)
    assert len(states) > 2
    assert all(row["body"] is not None for state in states for row in state)
    assert states[-1] == Seen(source).in_source()


def test_a_new_snapshot(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, v int); CREATE TABLE gone (id int PRIMARY KEY)")
    source.run("INSERT INTO t SELECT n, 0 FROM generate_series(1, 7) n; INSERT INTO gone VALUES (1)")
    source.capture()
    seen = Seen(source)
    before = seen.in_source()
    source.run("UPDATE t SET v = 1 WHERE id = 5; DELETE FROM t WHERE id = 2; DROP TABLE gone")
    seen.capture(chunk_rows=2, new_snapshot=True)
    seen.check(before)
    assert len(seen.states) > 1
    assert source.replayed("gone", ("id",)) == []
    source.run("CREATE TABLE gone (id int PRIMARY KEY); INSERT INTO gone VALUES (2)")
    source.capture()
    assert typed_rows(
        source.client, source.into, "public.gone", query_of(source.client, source.into, "public.gone")
    ) == [{"id": 2}]


def test_changes_before_an_alteration_in_one_transaction(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 1)")
    source.capture()
    seen = Seen(source)
    before = seen.in_source()
    source.run("INSERT INTO t VALUES (3, 3)")
    between = seen.in_source()
    alteration = "ALTER TABLE t ALTER n TYPE int USING n * 2; INSERT INTO t VALUES (4, 4)"
    capture = Capture(source.client, source.options(batch_rows=1))

    def on_commit(state: object) -> None:
        if not seen.states:  # the log has described the table by now
            source.run(f"BEGIN; UPDATE t SET n = 0 WHERE id = 1; {alteration}; COMMIT")
        seen.states.append(seen.now())
        if "complete" in source.ops("t"):
            capture.stop()

    capture.on_commit = on_commit
    capture.run()
    seen.check(before, between)
    assert len(seen.states) > 2


def test_rows_that_come_into_the_publication_with_a_large_value(source: Source) -> None:
    large(source, 4)
    source.run("DROP PUBLICATION shop; CREATE PUBLICATION shop FOR TABLE t WHERE (id > 10)")
    source.run("INSERT INTO t SELECT id + 10, n, 'another' FROM t WHERE id = 3")
    source.capture()
    seen = Seen(source)
    before = seen.now()
    source.run("UPDATE t SET id = 12 WHERE id = 2")
    source.run("DELETE FROM t WHERE id = 13")
    between = seen.in_source("*", "id > 10")
    source.run("UPDATE t SET id = 13 WHERE id = 3")
    seen.capture()
    assert seen.now() == seen.in_source("*", "id > 10")
    assert all(each in (before, between, seen.now()) for each in seen.states)
