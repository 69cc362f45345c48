"""The definitions that `metastore capture definitions` prints: what they show while the source changes."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from lake.capture.definitions import definition, names_of
from lake.capture.errors import CaptureError
from lake.capture.postgres.capture import Capture
from lake.cli import main
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from tests.lake.capture.shop import Source
from tests.lake.capture.test_commands import invoke
from tests.lake.capture.typed_duck import (
    misfits_query_of,
    query_in,
    query_of,
    query_of_0_1_0,
    rows_of_query,
    typed_rows,
)
from tests.lake.layers.projects import write_project
from tests.support.server import MetastoreServer


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


def test_definitions_that_version_0_1_0_printed(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int); INSERT INTO t VALUES (1, 10), (2, 20)")
    source.capture()
    query = query_of_0_1_0(source.client, source.into, "public.t")

    def rows() -> list[list[object]]:
        found = typed_rows(source.client, source.into, "public.t", query)
        return [[*each.values()] for each in found]

    assert rows() == [[1, 10], [2, 20]]
    source.run("ALTER TABLE t ADD b text; UPDATE t SET a = 11, b = 'x' WHERE id = 1; DELETE FROM t WHERE id = 2")
    source.capture()
    assert rows() == [[1, 11]]
    source.run("ALTER TABLE t RENAME a TO amount; UPDATE t SET amount = 12")
    source.capture()
    with pytest.raises(duckdb.Error, match="print its definitions again"):
        rows()


def test_a_value_that_does_not_fit_holds_the_table(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, n numeric(6,2)); INSERT INTO t VALUES (1, 1.5), (2, 2.5)")
    source.capture()
    typed = Typed(source)
    assert typed.rows() == [[1, Decimal("1.50")], [2, Decimal("2.50")]]
    source.run("UPDATE t SET n = 'NaN' WHERE id = 1; UPDATE t SET n = 9 WHERE id = 2")
    source.capture()
    [row] = [each for each in source.raw("t") if each["after"] == '{"id":1,"n":"NaN"}']
    with pytest.raises(duckdb.Error, match="does not hold") as raised:
        typed.rows()
    assert f"position (1, {row['commit_lsn']}, {row['ordinal']})" in str(raised.value)
    source.run("TRUNCATE t; INSERT INTO t VALUES (3, 3)")
    source.capture()
    assert typed.rows() == [[3, Decimal("3.00")]], "what was truncated doesn't count"


def test_changes_with_values_that_do_not_fit_are_kept_apart(source: Source) -> None:
    source.run(
        "CREATE TABLE t (id int PRIMARY KEY, n numeric(6,2), body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL"
    )
    long = "SELECT n, n, repeat(md5(n::text), 90) FROM generate_series"
    source.run(f"INSERT INTO t {long}(1, 3) n")
    source.capture()
    query = query_of(source.client, source.into, "public.t", quarantines=True)
    apart = misfits_query_of(source.client, source.into, "public.t")

    def rows() -> list[list[object]]:
        found = typed_rows(source.client, source.into, "public.t", query)
        return [[each["id"], each["n"], each["body"]] for each in found]

    def misfits() -> list[list[object]]:
        found = rows_of_query(source.client, source.into, "public.t", apart)
        return [
            [each["op"], each["misfits"], each["raw"]] for each in sorted(found, key=lambda each: each["commit_lsn"])
        ]

    bodies = [None, *(body for (body,) in source.run("SELECT body FROM t ORDER BY id"))]
    assert misfits() == []
    source.run("UPDATE t SET n = 'NaN' WHERE id = 1; UPDATE t SET n = 9 WHERE id = 2; DELETE FROM t WHERE id = 3")
    source.run("INSERT INTO t VALUES (4, 'NaN', 'four')")
    source.capture()
    assert rows() == [[1, 1, bodies[1]], [2, 9, bodies[2]]]
    assert misfits() == [["update", "n", '{"id":1,"n":"NaN"}'], ["insert", "n", '{"id":4,"n":"NaN","body":"four"}']]
    source.run("UPDATE t SET n = 11, body = 'one' WHERE id = 1; DELETE FROM t WHERE id = 4")
    source.capture()
    assert rows() == [[1, 11, "one"], [2, 9, bodies[2]]]
    source.run("UPDATE t SET n = 'NaN', body = repeat(md5('x'), 90) WHERE id = 2")
    source.run("UPDATE t SET n = 12 WHERE id = 2")
    source.capture()
    with pytest.raises(duckdb.Error, match="left out its large value body"):
        rows()  # the value is known, but from a change that doesn't count
    source.run("UPDATE t SET body = 'two' WHERE id = 2")
    source.capture()
    assert rows() == [[1, 11, "one"], [2, 12, "two"]]


def test_keys_that_do_not_fit(source: Source) -> None:
    source.run("CREATE TABLE t (id int, k numeric(6,2), PRIMARY KEY (id, k)); INSERT INTO t VALUES (1, 'NaN'), (2, 2)")
    source.capture()
    query = query_of(source.client, source.into, "public.t", quarantines=True)
    apart = misfits_query_of(source.client, source.into, "public.t")
    with pytest.raises(duckdb.Error, match="does not hold"):
        Typed(source).rows()
    source.run("UPDATE t SET k = 3 WHERE id = 1; UPDATE t SET k = 'NaN' WHERE id = 2")
    source.capture()
    assert typed_rows(source.client, source.into, "public.t", query) == [{"id": 1, "k": 3}]
    found = rows_of_query(source.client, source.into, "public.t", apart)
    assert sorted((each["op"], each["misfits"]) for each in found) == [("delete", "k"), ("read", "k"), ("update", "k")]


def test_keys_that_do_not_fit_beside_large_values(source: Source) -> None:
    source.run("CREATE TABLE t (day date PRIMARY KEY, body text); INSERT INTO t VALUES ('0044-03-15 BC', 'x')")
    source.run("INSERT INTO t VALUES ('2026-01-01', 'y')")
    source.capture()
    made = definition(source.client.table(source.into), "public.t", quarantines=True)
    sent = made[made.index("WITH ") : made.index(";")]
    assert "'primary-key' = 'day,epoch,commit_lsn,ordinal'" in made
    for query in (sent, query_in(made)):  # a row without a value of its key is in no table
        [row] = rows_of_query(source.client, source.into, "public.t", query)
        assert (row["day"], row["body"]) == (date(2026, 1, 1), "y")


def test_columns_with_names_that_definitions_use(source: Source) -> None:
    source.run(
        "CREATE TABLE t (id int PRIMARY KEY, unchanged text, left_out text, source_table text, last int, misfit text)"
    )
    source.run("ALTER TABLE t ALTER unchanged SET STORAGE EXTERNAL")
    source.run("INSERT INTO t VALUES (1, repeat(md5('1'), 99), 'a', 'b', 5, 'c')")
    source.capture()
    source.run("UPDATE t SET left_out = 'c'")
    source.capture()
    assert source.raw("t")[-1]["unchanged"] == ["unchanged"]
    [row] = source.run("SELECT * FROM t")
    assert Typed(source).rows() == [[*row]]


def test_columns_that_layers_do_not_have(source: Source) -> None:
    source.run('CREATE TABLE t (id int PRIMARY KEY, name text, "Name" text)')
    source.run('CREATE TABLE odd (id int PRIMARY KEY, größe_2 int, "unit price" int)')
    source.capture()
    with pytest.raises(CaptureError, match=r"the column unit price of public\.odd has other signs in its name"):
        definition(source.client.table(source.into), "public.odd")
    with pytest.raises(CaptureError, match=r"the columns name and Name of public\.t differ by case alone"):
        definition(source.client.table(source.into), "public.t")


def test_names_of_definitions() -> None:
    tables = ["public.t", "shop.T", "public.orders", "public.orders_changes", "public.items"]
    assert names_of(tables) == {
        "public.t": "public_t",
        "shop.T": "shop_T",
        "public.orders": "public_orders",
        "public.orders_changes": "public_orders_changes",
        "public.items": "items",
    }


def test_definitions_of_all_tables(source: Source, metastore_server: MetastoreServer, tmp_path: Path) -> None:
    source.run("CREATE SCHEMA other; CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE other.t (id int PRIMARY KEY)")
    source.run("CREATE TABLE log (v text); CREATE TABLE u (id int PRIMARY KEY)")
    source.capture()
    uri = ("--into", source.into, "--uri", metastore_server.uri)
    printed = CliRunner().invoke(main, ["capture", "definitions", *uri]).stdout
    assert "-- public.log has no key: only its raw changes can be read" in printed
    assert "has no key" in invoke("definitions", "--table", "public.log", *uri, code=1)
    with pytest.raises(CaptureError, match=r"other\.raw_\d+\.shop is of another catalog"):
        definition(source.client.table(f"other.{source.into}"), "public.t")
    graph = graph_of(read_project(write_project(tmp_path, {"ods.sql": printed})))
    assert {each.name for each in graph.nodes} >= {"shop.public_t", "shop.other_t", "shop.u"}
