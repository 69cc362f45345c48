"""While a change of a real Postgres's table is held, its columns before that flow on."""

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lake.capture.definitions import definition
from lake.capture.postgres.capture import Capture
from lake.capture.rereads import order
from lake.capture.schema_changes.agreed import decided
from lake.capture.schema_changes.decisions import decide, with_decisions
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Action, Position
from lake.capture.schema_changes.policy import Policy, Rule
from lake.capture.typed_changes import is_before
from lake.cli import main
from lake.cli.captured_tables import definitions_of, graph_with
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project, with_captured
from lake.layers.errors import BadDefinition
from lake.protocol.errors import UserError
from tests.lake.capture.shop import Source
from tests.lake.capture.typed_duck import query_in, query_of_views, typed_rows
from tests.lake.layers.projects import write_project
from tests.support.server import MetastoreServer

HOLD = Policy()
ALL_HELD = Policy((Rule("*", frozenset(), Action.HOLD),))
ALL_APPLIED = Policy((Rule("*", frozenset(), Action.APPLY),), ())


def shown(source: Source, table: str, policy: Policy | None = HOLD, key: Sequence[str] = ("id",)) -> list[list[object]]:
    """The rows of a captured table, as definitions come to them that are resolved now."""
    name = f"public.{table}"
    made = definition(source.client.table(source.into), name, policy=policy, is_printed=False)
    query = query_in(made)
    return [[*each.values()] for each in typed_rows(source.client, source.into, name, query, key)]


def ordered(rows: Iterable[Sequence[object]]) -> list[list[object]]:
    return sorted(([*each] for each in rows), key=repr)


def approved(source: Source, table: str) -> list[list[object]]:
    """The rows once all changes are approved, which are those of the source."""
    rows = shown(source, table, ALL_APPLIED)
    assert rows == shown(source, table, None)
    assert rows == [[*each] for each in source.run(f"SELECT * FROM {table} ORDER BY id")]
    return rows


def test_a_rename(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int, b text); ALTER TABLE t ALTER b SET STORAGE EXTERNAL")
    source.run("INSERT INTO t VALUES (1, 10, repeat('x', 3000)), (2, 20, 'y'), (3, 30, 'z')")
    source.capture()
    x = "x" * 3000
    assert shown(source, "t") == [[1, 10, x], [2, 20, "y"], [3, 30, "z"]]
    source.run("ALTER TABLE t RENAME b TO d; INSERT INTO t VALUES (4, 40, 'new'); DELETE FROM t WHERE id = 3")
    source.run("UPDATE t SET a = 11 WHERE id = 1; UPDATE t SET d = 'Y' WHERE id = 2")
    source.capture()
    assert shown(source, "t") == [[1, 11, x], [2, 20, "Y"], [4, 40, "new"]]
    source.run(
        "UPDATE t SET a = 12 WHERE id = 1; UPDATE t SET id = 5 WHERE id = 4; INSERT INTO t VALUES (6, 60, 'six')"
    )
    source.capture()
    rows = [[1, 12, x], [2, 20, "Y"], [5, 40, "new"], [6, 60, "six"]]
    assert shown(source, "t") == rows
    source.run("ALTER TABLE t RENAME a TO b; ALTER TABLE t ADD c int; UPDATE t SET c = 7, b = 13 WHERE id = 1")
    source.capture()
    rows[0] = [1, 13, x]
    assert shown(source, "t") == rows, "two are held"
    assert [each[:2] for each in approved(source, "t")] == [each[:2] for each in rows]
    source.run(
        "ALTER TABLE t ALTER d TYPE bytea USING '1'; UPDATE t SET b = 14 WHERE id = 1; DELETE FROM t WHERE id = 2"
    )
    source.capture()
    assert shown(source, "t") == [rows[0], *rows[2:]], "rows that wait stay as they were"
    source.run(
        "ALTER TABLE t ALTER d TYPE text USING 'z'; ALTER TABLE t ADD e int DEFAULT 1; DELETE FROM t WHERE id = 6"
    )
    source.capture()
    assert shown(source, "t") == [rows[0], rows[2]], "what can't be told any more is never told again"
    source.run("TRUNCATE t; ALTER TABLE t DROP e; INSERT INTO t VALUES (2, 21, 'only', 1)")
    source.capture()
    assert shown(source, "t") == []


def test_from_where_on_the_raw_table_is_read(source: Source) -> None:
    """Rows before that are left out by a condition that is the same until the columns change."""
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int, b text)")
    source.run("INSERT INTO t SELECT n, n, 'b' FROM generate_series(1, 3) n")
    lake = source.client.table(source.into)

    def made(policy: Policy = ALL_APPLIED) -> str:
        return definition(lake, "public.t", policy=policy, is_printed=False)

    def truncations() -> list[Position]:
        rows = [each for each in source.raw("t") if each["op"] == "truncate"]
        return [Position(each["epoch"], each["commit_lsn"], each["ordinal"]) for each in rows]

    def begin(text: str) -> list[Position]:
        return [each for each in truncations() if f"NOT {is_before(each)}" in text]

    source.capture()
    source.run("TRUNCATE t; INSERT INTO t VALUES (4, 4, 'b')")
    source.capture()
    first = made()
    assert begin(first) == [], "the columns were there before"
    source.run("ALTER TABLE t RENAME b TO c; INSERT INTO t VALUES (5, 5, 'c')")
    seen = []
    capture = Capture(source.client, source.options(chunk_rows=1, batch_rows=1))
    capture.pause = lambda step: seen.append(begin(made())) if step == "chunk" else None
    capture.run(once=True)
    assert truncations()[:1] in seen
    assert all(each in ([], truncations()[:1]) for each in seen), "what it had before counts until it is read again"
    again = made()
    assert begin(again) == truncations()[-1:]
    assert begin(made(HOLD)) == []
    source.run("INSERT INTO t VALUES (6, 6, 'c'); TRUNCATE t; INSERT INTO t VALUES (7, 7, 'c')")
    source.capture()
    order(lake, ["public.t"])
    source.capture()
    assert made() == again, "with another definition all would be computed again"
    assert len(truncations()) == 4
    source.run("ALTER TABLE t ADD d int; INSERT INTO t VALUES (8, 8, 'c', 8)")
    source.capture()
    assert begin(made()) == truncations()[-1:]
    assert approved(source, "t") == [[7, 7, "c", None], [8, 8, "c", 8]]


def test_what_is_said_of_rows_is_in_row_groups_of_its_own(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    source.capture()
    source.run("TRUNCATE t; INSERT INTO t VALUES (2)")
    source.capture()
    snapshot = source.client.table(source.into).snapshot(include_uncommitted=True)
    paths = [fsspec.url_to_fs(f"{snapshot.location}/{each.path}")[1] for each in snapshot]
    files = [pq.ParquetFile(each) for each in paths]
    groups = [file.read_row_group(number) for file in files for number in range(file.num_row_groups)]
    found = [{*each.column("op").to_pylist()} for each in groups]
    assert sorted(map(sorted, found)) == [["insert"], ["read"], ["schema"], ["schema", "truncate"]]


D = Decimal
CASES: dict[str, tuple[str, str, list[list[object]]]] = {
    "added": ("a int", "ALTER TABLE {t} ADD c int; INSERT INTO {t} VALUES (2, 20, 5)", [[1, 10], [2, 20]]),
    "filled": ("a int", "ALTER TABLE {t} ADD c int DEFAULT 7; UPDATE {t} SET a = 11", [[1, 11]]),
    "dropped": (
        "a int, b text",
        "ALTER TABLE {t} DROP b; UPDATE {t} SET a = 11; INSERT INTO {t} VALUES (2, 20)",
        [[1, 10, "x"]],
    ),
    "added_again": (
        "a int, b text",
        "ALTER TABLE {t} DROP b; ALTER TABLE {t} ADD b text; INSERT INTO {t} VALUES (2, 20, 'y')",
        [[1, 10, "x"]],
    ),
    "renamed_and_changed": (
        "a int, b text",
        "ALTER TABLE {t} RENAME b TO d; ALTER TABLE {t} ALTER d TYPE int USING 5; INSERT INTO {t} VALUES (2, 20, 6)",
        [[1, 10, "x"]],
    ),
    "swapped": (
        "a int, b int",
        "ALTER TABLE {t} RENAME a TO x; ALTER TABLE {t} RENAME b TO a; ALTER TABLE {t} RENAME x TO b;"
        " INSERT INTO {t} (id, a, b) VALUES (2, 1, 2)",
        [[1, 10, 11], [2, 2, 1]],
    ),
    "key_renamed": (
        "a int",
        "ALTER TABLE {t} RENAME id TO no; INSERT INTO {t} VALUES (2, 20); UPDATE {t} SET no = 3 WHERE no = 1",
        [[2, 20], [3, 10]],
    ),
    "widened": (
        "a int",
        "ALTER TABLE {t} ALTER a TYPE bigint; INSERT INTO {t} VALUES (2, 1::bigint << 40), (3, 30);"
        " UPDATE {t} SET a = 1::bigint << 41 WHERE id = 1",
        [[1, 10], [3, 30]],
    ),
    "to_decimal": (
        "a smallint",
        "ALTER TABLE {t} ALTER a TYPE numeric(8,2); INSERT INTO {t} VALUES (2, 20.5), (3, 30.00), (4, 99999)",
        [[1, 10], [3, 30]],
    ),
    "scaled": (
        "n numeric(10,2)",
        "ALTER TABLE {t} ALTER n TYPE numeric(12,4); INSERT INTO {t} VALUES (2, 2.5001), (3, 2.5000)",
        [[1, D("10.00")], [3, D("2.50")]],
    ),
    "narrowed": (
        "n numeric(12,4)",
        "ALTER TABLE {t} ALTER n TYPE numeric(10,1); INSERT INTO {t} VALUES (2, 2.5)",
        [[1, D("10.0000")], [2, D("2.5000")]],
    ),
    "typed": (
        "a int, b text",
        "ALTER TABLE {t} ALTER a TYPE text USING 'n' || a; UPDATE {t} SET b = 'y';"
        " INSERT INTO {t} VALUES (2, '20', 'z')",
        [[1, 10, "x"]],
    ),
    "keyed": (
        "a int",
        "ALTER TABLE {t} DROP CONSTRAINT {t}_pkey; ALTER TABLE {t} ADD PRIMARY KEY (id, a); UPDATE {t} SET a = 11;"
        " INSERT INTO {t} VALUES (1, 12), (2, 20)",
        [[1, 10]],
    ),
    "keyed_differently": (
        "a int",
        "ALTER TABLE {t} ALTER id TYPE text; INSERT INTO {t} VALUES ('2', 20); DELETE FROM {t} WHERE id = '1'",
        [[1, 10]],
    ),
    "emptied": (
        "a int, b text",
        "ALTER TABLE {t} RENAME b TO d; INSERT INTO {t} VALUES (2, 20, 'y'); TRUNCATE {t};"
        " INSERT INTO {t} VALUES (3, 3)",
        [[3, 3, None]],
    ),
    "emptied_untold": (
        "a int, b text",
        "ALTER TABLE {t} DROP b; INSERT INTO {t} VALUES (2, 20); TRUNCATE {t}; INSERT INTO {t} VALUES (3, 3)",
        [],
    ),
    "deleted": (
        "a int, b text",
        "ALTER TABLE {t} DROP b; INSERT INTO {t} VALUES (2, 20); DELETE FROM {t} WHERE id = 1",
        [],
    ),
    "made_again": (
        "a int, b text",
        "DROP TABLE {t}; CREATE TABLE {t} (id int PRIMARY KEY, a int, c text); INSERT INTO {t} VALUES (1, 10, 'other')",
        [[1, 10, "x"]],
    ),
    "rolled_back": ("a int, b text", "BEGIN; ALTER TABLE {t} DROP b; ROLLBACK; UPDATE {t} SET a = 11", [[1, 11, "x"]]),
}


def check_what_flows_on(source: Source, names: Iterable[str]) -> None:
    cases = {each: CASES[each] for each in names}
    values = {"a int, b text": "10, 'x'", "a int, b int": "10, 11"}
    for table, (columns, _, _) in cases.items():
        source.run(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
        source.run(f"INSERT INTO {table} VALUES (1, {values.get(columns, '10')})")
    source.capture()
    before = {"key_renamed": shown(source, "key_renamed")}
    for table, (_, statements, _) in cases.items():
        for each in statements.format(t=table).split("; "):
            source.run(each)
    seen: list[str] = []

    def look(step: str) -> None:
        if step == "chunk" and len(seen) < 4:  # tables that are being read again stay as they were
            seen.append(step)
            assert shown(source, "key_renamed", ALL_HELD) in (before["key_renamed"], CASES["key_renamed"][2])

    capture = Capture(source.client, source.options(batch_rows=1))
    capture.pause = look
    capture.run(once=True)
    assert seen
    for table, (_, _, rows) in cases.items():
        assert shown(source, table, ALL_HELD) == rows, table
        key = {"key_renamed": ("no",), "keyed": ("id", "a")}.get(table, ("id",))
        rows = shown(source, table, ALL_APPLIED, key)
        assert ordered(rows) == ordered(source.run(f"SELECT * FROM {table}")), table


def test_what_flows_on(source: Source) -> None:
    check_what_flows_on(source, ("added", "key_renamed", "typed", "emptied"))


@pytest.mark.long
def test_what_flows_on_after_each_change(source: Source) -> None:
    check_what_flows_on(source, CASES)


def test_a_project_whose_tables_are_captured(source: Source, metastore_server: MetastoreServer, tmp_path: Path) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int); INSERT INTO t VALUES (1, 10)")
    source.capture()
    sql = "CREATE CAPTURED TABLE t FROM {} TABLE '{}'{}; CREATE MATERIALIZED VIEW m AS SELECT a FROM t"

    def queries(options: str = "", table: str = "public.t", into: str = source.into) -> dict[str, str]:
        write_project(tmp_path, {"ods.sql": sql.format(into, table, options)})
        graph = graph_of(with_captured(read_project(tmp_path), definitions_of(source.client, tmp_path)))
        assert [each.name for each in graph.nodes if each.name in ("shop.m", "shop.t")] == ["shop.t", "shop.m"]
        assert all(str(each.place) == "transformations/ods.sql:1" for each in graph.nodes)
        views = graph.project.definitions.views
        buckets = {each.name: each.properties.get("bucket") for each in views if each.name != "m"}
        assert {*buckets.values()} == {"2" if "TBLPROPERTIES" in options else None}, buckets
        return {each.name: each.query for each in views}

    assert {*queries()} == {"t_changes", "m"}
    assert "changed at the source meanwhile: refresh again" in queries()["t_changes"]
    source.run("ALTER TABLE t RENAME a TO amount; INSERT INTO t VALUES (2, 20)")
    source.capture()
    (tmp_path / "rules.yml").write_text("rules: [{kind: rename, action: apply}]")
    waiting = queries(" MISFITS QUARANTINE TBLPROPERTIES ('bucket' = '2')")
    assert {*waiting} == {"t_as_sent", "t_changes", "t_misfits", "m"}
    rows = typed_rows(source.client, source.into, "public.t", query_of_views(waiting))
    assert [[*each.items()] for each in rows] == [[("id", 1), ("a", 10)], [("id", 2), ("a", 20)]]
    made = queries(" POLICY 'rules.yml' MISFITS QUARANTINE")
    assert {*made} == {"t_changes", "t_misfits", "m"}
    assert "amount" in {*typed_rows(source.client, source.into, "public.t", made["t_changes"])[0]}
    elsewhere = f"CREATE CAPTURED TABLE ods.t FROM {source.into} TABLE 'public.t'"
    write_project(tmp_path, {"ods.sql": elsewhere})
    graph = graph_with(source.client, read_project(tmp_path))
    assert [each.name for each in graph.nodes] == ["ods.t_as_sent", "ods.t_changes", "ods.t"]
    assert graph.sources == [source.into], "a table of the captured table's own database is between"
    for other, message in (
        ("n AS SELECT count(*) AS n FROM t_as_sent", r"shop\.n reads shop\.t_as_sent, .* doesn't need now.*t_changes"),
        ("t_as_sent AS SELECT 1 AS n", r"the captured table t has a table shop\.t_as_sent while it needs one"),
    ):
        files = {"ods.sql": sql.format(source.into, "public.t", " POLICY 'rules.yml'")}
        write_project(tmp_path, {**files, "others.sql": f"CREATE MATERIALIZED VIEW {other}"})
        with pytest.raises(BadDefinition, match=f"others.sql:1: {message}"):
            graph_with(source.client, read_project(tmp_path))
    write_project(tmp_path, {"ods.sql": sql.format(source.into, "public.t", ""), "others.sql": ""})
    with pytest.raises(BadDefinition, match=r"ods.sql:1: what captured tables are defined by"):
        graph_of(read_project(tmp_path))
    status = CliRunner().invoke(main, ["pipeline", "status", str(tmp_path), "--uri", metastore_server.uri, "--json"])
    layers = {"shop.t", "shop.t_as_sent", "shop.t_changes", "shop.m"}
    assert {each["layer"] for each in json.loads(status.stdout)} == layers
    for given, message in (
        ({"into": "raw.none"}, "ods.sql:1: there is no raw table raw.none"),
        ({"into": "shop"}, "ods.sql:1: shop is no name of a raw table: it is DATABASE.TABLE"),
        ({"into": f"other.{source.into}"}, "is no name of a raw table"),
        ({"table": "public.none"}, "ods.sql:1: nothing of public.none is captured yet"),
        ({"options": " POLICY '../x.yml'"}, "expected a file within the project"),
        ({"options": " POLICY 'none.yml'"}, "none.yml can't be read"),
        ({"options": " SOON"}, "expected POLICY"),
        ({"options": " TBLPROPERTIES ('primary-key' = 'a')"}, "no property primary-key: bucket, table-type"),
    ):
        with pytest.raises(UserError, match=message):
            queries(**given)


def test_amendments(source: Source, metastore_server: MetastoreServer) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int, b text); INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y')")
    source.capture()
    # The catalog that the capture reads has other columns than the log, so that no number says what was renamed.
    source.run("ALTER TABLE t RENAME b TO c; INSERT INTO t VALUES (3, 30, 'z'); ALTER TABLE t RENAME c TO d")
    source.run("ALTER TABLE t ALTER a TYPE text USING a::text; UPDATE t SET a = '11', d = 'X' WHERE id = 1")
    source.run("UPDATE t SET a = 'many' WHERE id = 2")
    source.capture()
    lake = source.client.table(source.into)

    def held() -> list[tuple[str, str]]:
        found = decided(changes_of(lake, "public.t"), with_decisions(HOLD, lake))
        return [(str(each.change.at), each.change.difference.kind) for each in found if each.decision.action == "hold"]

    def rows() -> list[list[object]]:
        return shown(source, "t", with_decisions(HOLD, lake))

    changes = held()
    old = [[1, 10, "x"], [2, 20, "y"]]
    assert rows() == old
    to = ("--into", source.into, "--uri", metastore_server.uri, "--table", "public.t", "--at")

    def amend(at: str, *said: str, code: int = 0) -> str:
        options = [option for each in said for option in ("--as", each)]
        result = CliRunner().invoke(main, ["schema-changes", "amend", *to, at, *options])
        assert result.exit_code == code, result.output
        return result.output

    first, last = changes[0][0], changes[-1][0]
    assert first != last
    assert f"an earlier change of public.t is held, at {first}" in amend(last, "cast a", code=1)
    for said, why in (
        ("rename b", "isn't an amendment"),
        ("drop+add b=c", "isn't an amendment"),
        ("rename x=c", "there was no column x before the change: id, a, b"),
        ("rename b=x", "there is no column x after the change: id, a, c"),
    ):
        assert why in amend(first, said, code=1)
    assert "two amendments are about b" in amend(first, "rename b=c", "cast b", code=1)
    assert "rename b=c" in amend(first, "rename b=c")
    decide(lake, HOLD, "public.t", first, Action.APPLY)
    assert [kind for _, kind in held()] == ["type", "unclear"]
    untold = [*old, [3, 30, "z"]]
    assert rows() == untold
    assert "isn't held: there is nothing to amend" in amend(first, "cast a", code=1)
    listed = amend(last, "rename c=d", "cast a")
    assert "rename c=d; cast a" in listed
    assert rows() == [[1, 11, "X"], [2, 20, "y"], [3, 30, "z"]], "many is no number, so that its row waits"
    amend(last, "rename c=d")
    assert rows() == untold
    amend(last, "drop+add c", "cast a")
    assert rows() == untold
    amend(last)
    assert rows() == untold
    decide(lake, HOLD, "public.t", last, Action.APPLY)
    assert rows() == [[*each] for each in source.run("SELECT * FROM t ORDER BY id")]
