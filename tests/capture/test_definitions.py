"""The definitions that `metastore capture definitions` prints: what they show while the source changes."""

import duckdb
import pytest

from metastore.capture.capture import Capture
from tests.capture.shop import Source
from tests.capture.typed_duck import query_of, typed_rows


class Typed:
    """The definitions of the table `t`, as they were printed last."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.print()

    def print(self) -> None:
        self._query = query_of(self._source.client, self._source.into, "public.t")

    def rows(self) -> list[list[object]]:
        found = typed_rows(self._source.client, self._source.into, "public.t", self._query)
        return [[*each.values()] for each in found]


def test_a_table_that_is_altered_stays_as_it_was_until_it_is_read_again(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int)")
    source.run("INSERT INTO t SELECT n, 10 * n FROM generate_series(1, 5) n")
    source.capture()
    typed = Typed(source)
    rows = [[1, 10], [2, 20], [3, 30], [4, 40], [5, 50]]
    assert typed.rows() == rows
    source.run("ALTER TABLE t RENAME a TO amount; UPDATE t SET amount = 11 WHERE id = 1; DELETE FROM t WHERE id = 5")
    seen = []

    def look(step: str) -> None:
        if step == "chunk":
            seen.append(typed.rows())

    capture = Capture(source.client, source.options(chunk_rows=2, batch_rows=1))
    capture.pause = look
    capture.run(once=True)
    assert seen == [rows] * len(seen)
    assert len(seen) > 1
    with pytest.raises(duckdb.Error, match="print its definitions again, by metastore capture definitions --into"):
        typed.rows()
    typed.print()
    assert typed.rows() == [[1, 11], [2, 20], [3, 30], [4, 40]]


def test_a_column_that_is_null_in_older_rows_needs_no_other_definitions(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int); INSERT INTO t VALUES (1, 10)")
    source.capture()
    typed = Typed(source)
    source.run("ALTER TABLE t ADD b text; INSERT INTO t VALUES (2, 20, 'x')")
    source.capture()
    assert source.ops("t") == ["read", "insert"]
    assert typed.rows() == [[1, 10], [2, 20]]
    typed.print()
    assert typed.rows() == [[1, 10, None], [2, 20, "x"]]
    source.run("TRUNCATE t; ALTER TABLE t DROP b; INSERT INTO t VALUES (3, 30)")
    source.capture()
    with pytest.raises(duckdb.Error, match="print its definitions again"):
        typed.rows()
    typed.print()
    assert typed.rows() == [[3, 30]]
