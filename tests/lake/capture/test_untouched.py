"""Rows that a real Postgres changes without its log: what a policy wants to become of them."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from lake.capture.errors import CaptureError
from lake.capture.rereads import order
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Kind, OfUntouched, Untouched
from lake.capture.schema_changes.policy import read_policy
from tests.lake.capture.schema_changes.test_held import ALL_APPLIED, ALL_HELD, shown
from tests.lake.capture.schema_changes.test_listed import run
from tests.lake.capture.shop import Source
from tests.lake.capture.test_commands import invoke
from tests.support.server import MetastoreServer

FILLED = """untouched: [{kind: add-filled, action: fill}]"""
NOTED = """untouched: [{table: "public.*", kind: [rows, labels, partitions], action: note}]"""

FILLS: dict[str, tuple[str, bool]] = {
    # what is run, and whether the table is read again
    "a number": ("ALTER TABLE {t} ADD c int DEFAULT 7; INSERT INTO {t} VALUES (3, 30, NULL)", False),
    "several": (
        "ALTER TABLE {t} ADD c numeric(6,2) DEFAULT 7.50, ADD d text NOT NULL DEFAULT E'it''s \\\\ \"x\"', ADD e int;"
        " INSERT INTO {t} VALUES (3, 30, 1.25, 'y', 1); UPDATE {t} SET a = 11 WHERE id = 1",
        False,
    ),
    "of other types": (
        "ALTER TABLE {t} ADD c date DEFAULT '2026-01-31', ADD d bool DEFAULT true, ADD e float8 DEFAULT 0.1;"
        " DELETE FROM {t} WHERE id = 1; INSERT INTO {t} (id) VALUES (3)",
        False,
    ),
    "one after the other": (
        "ALTER TABLE {t} ADD c int DEFAULT 7; INSERT INTO {t} VALUES (3, 30, 1); ALTER TABLE {t} ALTER c SET DEFAULT 9;"
        " CAPTURE; ALTER TABLE {t} ADD d int DEFAULT 8; INSERT INTO {t} (id) VALUES (4);"
        " UPDATE {t} SET id = 5 WHERE id = 1",
        False,
    ),
    "without a row": ("ALTER TABLE {t} ADD c int DEFAULT 7; CAPTURE; UPDATE {t} SET a = 11 WHERE id = 1", False),
    "emptied later": (
        "ALTER TABLE {t} ADD c int DEFAULT 7; INSERT INTO {t} VALUES (3, 30, 1); CAPTURE; TRUNCATE {t};"
        " INSERT INTO {t} VALUES (4, 40, NULL)",
        False,
    ),
    "emptied before": ("TRUNCATE {t}; INSERT INTO {t} VALUES (4, 40); ALTER TABLE {t} ADD c int DEFAULT 7", True),
    "computed": ("ALTER TABLE {t} ADD c float8 DEFAULT random(); INSERT INTO {t} VALUES (3, 30)", True),
    "with a rewrite": (
        "ALTER TABLE {t} ALTER a TYPE int USING a * 2; ALTER TABLE {t} ADD c int DEFAULT 7;"
        " INSERT INTO {t} VALUES (3, 30)",
        True,
    ),
    "renamed by now": (
        "ALTER TABLE {t} ADD c int DEFAULT 7; INSERT INTO {t} VALUES (3, 30, 1); ALTER TABLE {t} RENAME c TO d",
        True,
    ),
    "another by now": (
        "ALTER TABLE {t} ADD c int DEFAULT 7; INSERT INTO {t} VALUES (3, 30, 1); ALTER TABLE {t} RENAME c TO d;"
        " ALTER TABLE {t} ADD c int DEFAULT 8",
        True,
    ),
    "dropped and another by now": (
        "ALTER TABLE {t} ADD c int DEFAULT 7; INSERT INTO {t} VALUES (3, 30, 1); ALTER TABLE {t} DROP c;"
        " ALTER TABLE {t} ADD c int DEFAULT 8",
        True,
    ),
    "two of which one is behind": (
        "ALTER TABLE {t} ADD c int DEFAULT 7; INSERT INTO {t} VALUES (3, 30, 1); ALTER TABLE {t} ADD d int DEFAULT 8;"
        " CAPTURE; INSERT INTO {t} VALUES (4, 40, 2, 3)",
        False,
    ),
}


def policy(tmp_path: Path, text: str) -> OfUntouched:
    path = tmp_path / "schema-changes.yml"
    path.write_text(text)
    return read_policy(path).of_untouched


def test_constants_that_fill_older_rows(source: Source, tmp_path: Path) -> None:
    check_fills(source, policy(tmp_path, FILLED), ("a number", "several", "with a rewrite", "renamed by now"))


@pytest.mark.long
def test_constants_that_fill_older_rows_or_do_not(source: Source, tmp_path: Path) -> None:
    check_fills(source, policy(tmp_path, FILLED), FILLS)


def check_fills(source: Source, fill: OfUntouched, names: Iterable[str]) -> None:
    tables = {f"t{number}": what for number, what in enumerate(names)}
    for table in tables:
        source.run(f"CREATE TABLE {table} (id int PRIMARY KEY, a int); INSERT INTO {table} VALUES (1, 10), (2, 20)")
    source.capture()
    parts = {table: FILLS[what][0].format(t=table).split("; CAPTURE; ") for table, what in tables.items()}
    for number in range(2):
        for each in parts.values():
            for statement in each[number].split("; ") if number < len(each) else ():
                source.run(statement)
        source.capture(untouched=fill)

    for table, what in tables.items():
        assert source.ops(table).count("complete") == FILLS[what][1], what
        rows = [[*row] for row in source.run(f"SELECT * FROM {table} ORDER BY id")]
        assert (what, shown(source, table, None)) == (what, rows)
    lake = source.client.table(source.into)
    [change] = changes_of(lake, "public.t0")
    assert (change.difference.kind, change.difference.said) == (
        Kind.ADD_FILLED,
        'c integer was added, with {"c":7} in older rows',
    )
    assert [each.difference.kind for each in changes_of(lake, "public.t1")] == [*[Kind.ADD_FILLED] * 2, Kind.ADD]
    assert source.capture().rows == {}, "without the policy nothing is read again of what is known"
    agreed = shown(source, "t0", ALL_APPLIED)
    assert agreed == shown(source, "t0", None)
    source.run("ALTER TABLE t0 RENAME a TO b; INSERT INTO t0 VALUES (4, 40, 4)")
    source.capture(untouched=fill)
    assert shown(source, "t0") == [*agreed, [4, 40, 4]], "while it is held"
    assert shown(source, "t0", ALL_HELD) == [[id, a] for id, a, _ in [*agreed, [4, 40, 4]]]


def test_rows_that_may_be_stale(source: Source, metastore_server: MetastoreServer, tmp_path: Path) -> None:
    note = policy(tmp_path, NOTED)
    source.run("DROP PUBLICATION shop")
    source.run("CREATE PUBLICATION shop FOR ALL TABLES WITH (publish_via_partition_root = true)")
    source.run("CREATE TYPE mood AS ENUM ('low', 'high')")
    source.run("CREATE TABLE e (id int PRIMARY KEY, m mood); INSERT INTO e VALUES (1, 'low'), (2, 'low')")
    source.run("CREATE TABLE r (id int PRIMARY KEY, a int); INSERT INTO r VALUES (1, 10), (2, 20)")
    source.run("CREATE TABLE p (id int PRIMARY KEY, a int) PARTITION BY RANGE (id)")
    source.run("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); INSERT INTO p VALUES (1, 10)")
    source.run("CREATE TABLE o (id int PRIMARY KEY, a int); INSERT INTO o VALUES (1, 10)")
    source.capture()
    for each in (
        "ALTER TYPE mood RENAME VALUE 'low' TO 'flat'",
        "UPDATE e SET m = 'flat' WHERE id = 2",
        "ALTER TABLE r ALTER a TYPE int USING a * 100",
        "UPDATE r SET a = 3 WHERE id = 2",
        "CREATE TABLE p2 (id int NOT NULL, a int)",
        "INSERT INTO p2 VALUES (15, 50)",
        "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20)",
        "INSERT INTO p VALUES (16, 60)",
        "ALTER TABLE o RENAME a TO b",
    ):
        source.run(each)
    source.capture(untouched=note)
    assert shown(source, "e") == [[1, "low"], [2, "flat"]]
    assert shown(source, "r") == [[1, 10], [2, 3]]
    assert shown(source, "p") == [[1, 10], [16, 60]]
    assert shown(source, "r", ALL_HELD) == shown(source, "r", ALL_APPLIED) == [[1, 10], [2, 3]]
    assert "truncate" not in [*source.ops("e"), *source.ops("r"), *source.ops("p")]
    assert source.ops("o")[-1] == "complete", "other columns are read again in any case"
    assert source.capture(untouched=note).rows == {}
    assert source.capture().rows == {}
    to = ("--into", source.into, "--uri", metastore_server.uri)

    def stale() -> dict[str, str]:
        found = json.loads(run("list", *to, "--json"))["changes"]
        return {each["table"]: each["change"] for each in found if each["kind"] == "stale"}

    [noted] = [row for row in source.raw("e") if row["op"] == "stale"]
    before = f"1.{noted['commit_lsn']}.{noted['ordinal']}"
    found = stale()
    assert found["public.e"] == f"rows before {before} may be stale: labels of an enum changed"
    assert "its rows were written anew" in found["public.r"]
    assert "its partitions changed" in found["public.p"]
    assert [*found] == ["public.e", "public.p", "public.r"]
    invoke("read-again", *to, "--table", "public.e")
    order(source.client.table(source.into), ["public.p"])
    source.run("TRUNCATE r; INSERT INTO r VALUES (3, 30)")
    source.capture(untouched=note)
    assert stale() == {}, "nothing is from before that"
    for table in ("e", "r", "p"):
        source.check(table, "id")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("untouched: [{kind: add-filled, action: note}]", "note is for rows, labels, partitions"),
        ("untouched: [{kind: rows, action: fill}]", "fill is for add-filled"),
        ("untouched: [{kind: type, action: re-read}]", "re-read is for add-filled, rows, labels, partitions"),
        ("untouched: [{action: note}]", "expected kind"),
        ("untouched: [{kind: [], action: note}]", "expected kind"),
        ("untouched: [{kind: rows, action: keep}]", "expected action: re-read, note, fill"),
        ("untouched: [{kind: rows, action: note, column: a}]", "there is no field column"),
        ("untouched: [{table: 5, kind: rows, action: note}]", "expected table"),
        ("untouched: 5", "expected a list"),
    ],
)
def test_policies_that_mean_nothing(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(CaptureError, match=why):
        policy(tmp_path, text)


def test_the_first_rule_that_fits_counts(tmp_path: Path) -> None:
    of_untouched = policy(
        tmp_path,
        """untouched:
  - {table: public.a, kind: rows, action: re-read}
  - {table: "public.*", kind: [rows, labels], action: note}""",
    )
    assert of_untouched("public.a", Kind.ROWS) is Untouched.RE_READ
    assert of_untouched("public.a", Kind.LABELS) is Untouched.NOTE
    assert of_untouched("public.b", Kind.ROWS) is Untouched.NOTE
    assert of_untouched("public.b", Kind.PARTITIONS) is Untouched.RE_READ
    assert of_untouched("other.b", Kind.ROWS) is Untouched.RE_READ
