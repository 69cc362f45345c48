"""Definitions that change at the source: the raw table comes to the rows of the source, whatever the log says."""

import json

import pytest

from tests.lake.capture.shop import Source

ALTERATIONS = {
    "renamed": (
        "CREATE TABLE {t} (id int PRIMARY KEY, a int); INSERT INTO {t} VALUES (1, 10)",
        "ALTER TABLE {t} RENAME a TO amount; INSERT INTO {t} VALUES (2, 20)",
    ),
    "swapped names": (
        "CREATE TABLE {t} (id int PRIMARY KEY, a int, b int); INSERT INTO {t} VALUES (1, 10, 20)",
        "ALTER TABLE {t} RENAME a TO c; ALTER TABLE {t} RENAME b TO a; ALTER TABLE {t} RENAME c TO b",
    ),
    "dropped and added": (
        "CREATE TABLE {t} (id int PRIMARY KEY, a int); INSERT INTO {t} VALUES (1, 10)",
        "ALTER TABLE {t} DROP a; ALTER TABLE {t} ADD a int; INSERT INTO {t} VALUES (2, 20)",
    ),
    "dropped and added without a row": (
        "CREATE TABLE {t} (id int PRIMARY KEY, a int); INSERT INTO {t} VALUES (1, 10)",
        "ALTER TABLE {t} DROP a; ALTER TABLE {t} ADD a int",
    ),
    "a default": (
        "CREATE TABLE {t} (id int PRIMARY KEY); INSERT INTO {t} VALUES (1)",
        "ALTER TABLE {t} ADD status text NOT NULL DEFAULT 'new'; INSERT INTO {t} VALUES (2, 'old')",
    ),
    "a default that is computed for each row": (
        "CREATE TABLE {t} (id int PRIMARY KEY); INSERT INTO {t} VALUES (1), (2)",
        "ALTER TABLE {t} ADD at text DEFAULT clock_timestamp()::text",
    ),
    "a default that went": (
        "CREATE TABLE {t} (id int PRIMARY KEY); INSERT INTO {t} VALUES (1)",
        "ALTER TABLE {t} ADD n int DEFAULT 7; ALTER TABLE {t} ALTER n DROP DEFAULT; INSERT INTO {t} VALUES (2, NULL)",
    ),
    "another type": (
        "CREATE TABLE {t} (id int PRIMARY KEY, cents int, qty text, n numeric(30,10));"
        " INSERT INTO {t} VALUES (1, 10, '7', 12345678901234567890.1234567891)",
        "ALTER TABLE {t} ALTER cents TYPE int USING cents * 100, ALTER qty TYPE int USING qty::int, ALTER n TYPE text;"
        " INSERT INTO {t} VALUES (2, 20, 8, 'x')",
    ),
    "the same type": (
        "CREATE TABLE {t} (id int PRIMARY KEY, cents int); INSERT INTO {t} VALUES (1, 10)",
        "ALTER TABLE {t} ALTER cents TYPE int USING cents * 100",
    ),
    "a shorter type": (
        "CREATE TABLE {t} (id int PRIMARY KEY, s varchar(9)); INSERT INTO {t} VALUES (1, 'abcdef')",
        "ALTER TABLE {t} ALTER s TYPE varchar(3) USING left(s, 3)",
    ),
    "another scale": (
        "CREATE TABLE {t} (id int PRIMARY KEY, n numeric(10,4)); INSERT INTO {t} VALUES (1, 1.2345)",
        "ALTER TABLE {t} ALTER n TYPE numeric(10,2)",
    ),
    "labels of an enum": (
        "CREATE TYPE mood AS ENUM ('low', 'high'); CREATE DOMAIN moody AS mood;"
        " CREATE TABLE {t} (id int PRIMARY KEY, m mood, d moody);"
        " INSERT INTO {t} VALUES (1, 'low', 'low')",
        "ALTER TYPE mood RENAME VALUE 'low' TO 'flat'",
    ),
    "a key that is taken again": (
        "CREATE TABLE {t} (id int PRIMARY KEY); ALTER TABLE {t} REPLICA IDENTITY FULL; INSERT INTO {t} VALUES (1)",
        "ALTER TABLE {t} DROP CONSTRAINT {t}_pkey; INSERT INTO {t} VALUES (1), (2);"
        " DELETE FROM {t} WHERE ctid = (SELECT min(ctid) FROM {t} WHERE id = 1); ALTER TABLE {t} ADD PRIMARY KEY (id)",
    ),
    "rewritten twice": (
        "CREATE TABLE {t} (id int PRIMARY KEY, n int); INSERT INTO {t} VALUES (1, 1)",
        "ALTER TABLE {t} SET UNLOGGED; UPDATE {t} SET n = 2; INSERT INTO {t} VALUES (2, 2); ALTER TABLE {t} SET LOGGED",
    ),
    "truncated, then another type": (
        "CREATE TABLE {t} (id int PRIMARY KEY, n int); INSERT INTO {t} VALUES (1, 1)",
        "TRUNCATE {t}; INSERT INTO {t} VALUES (2, 2); ALTER TABLE {t} ALTER n TYPE text USING 'x' || n",
    ),
    "added with rows, dropped, and added again": (
        "CREATE TABLE {t} (id int PRIMARY KEY, a int); INSERT INTO {t} VALUES (1, 10)",
        "ALTER TABLE {t} ADD c int; INSERT INTO {t} VALUES (2, 20, 5); ALTER TABLE {t} DROP c;"
        " ALTER TABLE {t} ADD c int",
    ),
    "added with rows, and dropped": (
        "CREATE TABLE {t} (id int PRIMARY KEY, a int); INSERT INTO {t} VALUES (1, 10)",
        "ALTER TABLE {t} ADD c int; INSERT INTO {t} VALUES (2, 20, 5); ALTER TABLE {t} DROP c",
    ),
    "added with rows, and renamed": (
        "CREATE TABLE {t} (id int PRIMARY KEY, a int); INSERT INTO {t} VALUES (1, 10)",
        "ALTER TABLE {t} ADD c int; INSERT INTO {t} VALUES (2, 20, 5); ALTER TABLE {t} RENAME c TO d",
    ),
    "added with rows, and swapped": (
        "CREATE TABLE {t} (id int PRIMARY KEY, a int); INSERT INTO {t} VALUES (1, 10)",
        "ALTER TABLE {t} ADD c int, ADD d int; INSERT INTO {t} VALUES (2, 20, 5, 6); ALTER TABLE {t} RENAME c TO x;"
        " ALTER TABLE {t} RENAME d TO c; ALTER TABLE {t} RENAME x TO d",
    ),
    "in the transaction of other changes": (
        "CREATE TABLE {t} (id int PRIMARY KEY, n int); INSERT INTO {t} VALUES (1, 1), (2, 2)",
        "BEGIN; UPDATE {t} SET n = 3 WHERE id = 1; ALTER TABLE {t} RENAME n TO m; UPDATE {t} SET m = 4 WHERE id = 2;"
        " ALTER TABLE {t} ADD k int DEFAULT 5; INSERT INTO {t} VALUES (3, 3, 3); COMMIT",
    ),
}


def test_changes_that_the_log_does_not_bring_whole(source: Source) -> None:
    tables = {f"t{number}": what for number, what in enumerate(ALTERATIONS)}
    for name, what in tables.items():
        source.run(ALTERATIONS[what][0].format(t=name))
    source.capture()
    for name, what in tables.items():
        source.run(ALTERATIONS[what][1].format(t=name))
    source.capture()
    assert _wrong(source, tables) == {}
    for name in tables:
        source.run(f"INSERT INTO {name} (id) VALUES (9)")
    source.capture()
    assert _wrong(source, tables) == {}


def _wrong(source: Source, tables: dict[str, str]) -> dict[str, object]:
    """The tables that aren't as in the source, or weren't read again exactly once."""
    found: dict[str, object] = {}
    for name, what in tables.items():
        rows, wanted = source.replayed(name, ("id",)), source.rows(name)
        if rows != wanted or source.ops(name).count("complete") != 1:
            found[what] = rows, wanted, source.ops(name)
    return found


def test_changes_after_which_rows_are_the_same(source: Source) -> None:
    source.run("CREATE TYPE mood AS ENUM ('low', 'high')")
    source.run("CREATE TABLE t (id int PRIMARY KEY, s varchar(3), m mood); INSERT INTO t VALUES (1, 'a', 'low')")
    source.run("CREATE PUBLICATION named FOR TABLE t")
    source.capture(publication="named")
    for number, harmless in enumerate(
        (
            "ALTER TABLE t ADD n int; ALTER TABLE t ALTER n SET DEFAULT 5",
            "ALTER TABLE t ALTER s SET NOT NULL, ALTER s SET STATISTICS 10, ALTER n DROP DEFAULT",
            "ALTER TABLE t ALTER s TYPE varchar(9); CREATE INDEX ON t (s); ANALYZE t",
            "ALTER TABLE t ALTER s TYPE text; ALTER TABLE t REPLICA IDENTITY FULL",
            "ALTER TYPE mood ADD VALUE 'middle' BEFORE 'high'; TRUNCATE t",
            "VACUUM FULL t",
            "REINDEX TABLE CONCURRENTLY t",
            "ALTER TABLE t REPLICA IDENTITY DEFAULT",
        ),
        2,
    ):
        for each in harmless.split("; "):
            source.run(each)
        source.capture(publication="named")
        source.run("INSERT INTO t VALUES (%s, 'b', 'high')", number)
        source.capture(publication="named")
        source.check("t", "id")
    assert "complete" not in source.ops("t")


@pytest.mark.parametrize("again", ["RENAME TO t", "SET SCHEMA public"])
def test_a_table_that_goes_by_another_name_for_a_time(source: Source, again: str) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1); CREATE SCHEMA other")
    source.run("CREATE PUBLICATION part FOR TABLES IN SCHEMA public")
    source.capture(publication="part")
    is_renamed = again.startswith("RENAME")
    away, name = ("RENAME TO u", "u") if is_renamed else ("SET SCHEMA other", "other.t")
    source.run(f"ALTER TABLE t {away}; INSERT INTO {name} VALUES (2); DELETE FROM {name} WHERE id = 1")
    source.capture(publication="part")
    assert source.ops("t") == ["read"]
    source.run(f"ALTER TABLE {name} {again}; INSERT INTO t VALUES (3)")
    source.capture(publication="part")
    source.check("t", "id")


def test_an_attribute_that_is_added_to_a_composite_type(source: Source) -> None:
    source.run("CREATE TYPE place AS (x int, y int); CREATE TABLE t (id int PRIMARY KEY, at place)")
    source.run("INSERT INTO t VALUES (1, '(1,2)')")
    source.capture()
    source.run("ALTER TYPE place ADD ATTRIBUTE z int")
    source.capture()
    assert source.replayed("t", ("id",)) == ['{"at": "(1,2,)", "id": 1}']


def test_numbers_of_columns_are_kept(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int, b int); INSERT INTO t VALUES (1, 2, 3)")
    source.capture()
    source.run("ALTER TABLE t RENAME a TO c; INSERT INTO t VALUES (2, 3, 4)")
    source.capture()
    source.run("ALTER TABLE t DROP b; ALTER TABLE t ADD b int; INSERT INTO t VALUES (3, 4, 5)")
    source.capture()
    schemas = [json.loads(row["after"]) for row in source.raw("t") if row["op"] == "schema"]
    assert [[(each["name"], each["number"]) for each in columns] for columns in schemas] == [
        [("id", 1), ("a", 2), ("b", 3)],
        [("id", 1), ("c", 2), ("b", 3)],
        [("id", 1), ("c", 2), ("b", 4)],
    ]
