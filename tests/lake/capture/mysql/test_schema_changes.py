"""Changes of a MariaDB's schema: rows that the raw table comes to are those of the source, whatever was changed."""

import json
import random
import threading
import time
from contextlib import suppress

import duckdb
import pymysql
import pytest

from lake.capture.rereads import order
from tests.lake.capture.mysql.conftest import Source
from tests.lake.capture.mysql.test_capture import Killed, dying
from tests.lake.capture.typed_duck import misfits_query_of, query_of, query_of_0_1_0, rows_of_query, typed_rows

CHANGES: dict[str, tuple[str, list[str], list[str]]] = {
    # by table: its definition, its rows, and the statements that change it; {t} is its name
    "renamed": (
        "id INT PRIMARY KEY, a INT",
        ["1, 5"],
        ["ALTER TABLE {t} RENAME COLUMN a TO b", "INSERT INTO {t} VALUES (2, 6)"],
    ),
    "changed_name": ("id INT PRIMARY KEY, a INT", ["1, 5"], ["ALTER TABLE {t} CHANGE a b INT"]),
    "swapped": (
        "id INT PRIMARY KEY, a INT, b INT",
        ["1, 5, 6"],
        ["ALTER TABLE {t} RENAME COLUMN a TO b, RENAME COLUMN b TO a", "INSERT INTO {t} VALUES (2, 7, 8)"],
    ),
    "dropped_and_added": (
        "id INT PRIMARY KEY, a INT",
        ["1, 5"],
        ["ALTER TABLE {t} DROP a", "ALTER TABLE {t} ADD a INT", "INSERT INTO {t} VALUES (2, 6)"],
    ),
    "replaced_at_once": ("id INT PRIMARY KEY, a INT", ["1, 5"], ["ALTER TABLE {t} DROP a, ADD a INT"]),
    "with_default": (
        "id INT PRIMARY KEY",
        ["1"],
        ["ALTER TABLE {t} ADD a VARCHAR(9) NOT NULL DEFAULT 'new'", "INSERT INTO {t} VALUES (2, 'old')"],
    ),
    "nullable_with_default": ("id INT PRIMARY KEY", ["1"], ["ALTER TABLE {t} ADD a INT DEFAULT 7"]),
    "first": (
        "id INT PRIMARY KEY, a INT",
        ["1, 5"],
        ["ALTER TABLE {t} ADD b INT FIRST", "INSERT INTO {t} VALUES (9, 2, 6)"],
    ),
    "reordered": ("id INT PRIMARY KEY, a INT, b INT", ["1, 5, 6"], ["ALTER TABLE {t} MODIFY b INT AFTER id"]),
    "widened": (
        "id INT PRIMARY KEY, a INT",
        ["1, 5"],
        ["ALTER TABLE {t} MODIFY a BIGINT", "INSERT INTO {t} VALUES (2, 1 << 40)"],
    ),
    "narrowed": ("id INT PRIMARY KEY, a DECIMAL(9,4)", ["1, 1.2345"], ["ALTER TABLE {t} MODIFY a DECIMAL(9,2)"]),
    "as_text": (
        "id INT PRIMARY KEY, a INT",
        ["1, 5"],
        ["ALTER TABLE {t} MODIFY a VARCHAR(9)", "UPDATE {t} SET a = 'x'"],
    ),
    "labels": (
        "id INT PRIMARY KEY, a ENUM('x','y')",
        ["1, 'x'", "2, 'y'"],
        ["ALTER TABLE {t} MODIFY a ENUM('y','x')", "INSERT INTO {t} VALUES (3, 'x')"],
    ),
    "character_set": (
        "id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET latin1",
        ["1, 'grün'"],
        ["ALTER TABLE {t} CONVERT TO CHARACTER SET ucs2", "INSERT INTO {t} VALUES (2, 'grün')"],
    ),
    "other_key": (
        "id INT PRIMARY KEY, k INT NOT NULL DEFAULT 0",
        ["1, 1", "2, 2"],
        [
            "DELETE FROM {t} WHERE id = 2",
            "ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (k)",
            "INSERT INTO {t} VALUES (1, 9)",
        ],
    ),
    "not_null": (
        "id INT PRIMARY KEY, a INT",
        ["1, NULL"],
        ["UPDATE {t} SET a = 4", "ALTER TABLE {t} MODIFY a INT NOT NULL DEFAULT 3"],
    ),
    "serial": ("a INT", ["5", "6"], ["ALTER TABLE {t} ADD id INT AUTO_INCREMENT PRIMARY KEY"]),
    "persistent": (
        "id INT PRIMARY KEY, a INT",
        ["1, 5"],
        ["ALTER TABLE {t} ADD b INT AS (a * 3) STORED", "INSERT INTO {t} (id, a) VALUES (2, 6)"],
    ),
    "unlogged": (
        "id INT PRIMARY KEY, a INT",
        ["1, 5"],
        [
            "SET sql_log_bin = 0",
            "ALTER TABLE {t} CHANGE a b INT",
            "SET sql_log_bin = 1",
            "INSERT INTO {t} VALUES (2, 6)",
        ],
    ),
    "unlogged_then_widened": (
        "id INT PRIMARY KEY, a INT",
        ["1, 5"],
        [
            "SET sql_log_bin = 0",
            "ALTER TABLE {t} CHANGE a b INT",
            "SET sql_log_bin = 1",
            "ALTER TABLE {t} ADD c INT",
            "INSERT INTO {t} VALUES (2, 6, 7)",
        ],
    ),
    "unlogged_default": (
        "id INT PRIMARY KEY",
        ["1"],
        [
            "SET sql_log_bin = 0",
            "ALTER TABLE {t} ADD a INT DEFAULT 7",
            "SET sql_log_bin = 1",
            "INSERT INTO {t} VALUES (2, 6)",
        ],
    ),
    "commented": ("id INT PRIMARY KEY, a INT", ["1, 5"], ["/*!50003 ALTER TABLE {t} */ CHANGE a b INT"]),
    "with_settings": (
        "id INT PRIMARY KEY, a INT",
        ["1, 5"],
        ["SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE {t} DROP a"],
    ),
    "emptied_with_settings": (
        "id INT PRIMARY KEY",
        ["1"],
        ["SET STATEMENT lock_wait_timeout = 5 FOR TRUNCATE TABLE {t}"],
    ),
    "emptied_in_a_comment": ("id INT PRIMARY KEY", ["1"], ["/*!40101 TRUNCATE TABLE {t} */"]),
    "of_many_steps": (
        "id INT PRIMARY KEY, a INT",
        ["1, 5"],
        [
            "ALTER TABLE {t} ADD b INT",
            "INSERT INTO {t} VALUES (2, 6, 7)",
            "ALTER TABLE {t} DROP a",
            "UPDATE {t} SET b = 8",
        ],
    ),
}

PARTITIONED = (
    "id INT PRIMARY KEY) PARTITION BY RANGE (id)"
    " (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20)"
)
PARTITIONS: dict[str, list[str]] = {
    "part_dropped": ["ALTER TABLE {t} DROP PARTITION p0"],
    "part_truncated": ["ALTER TABLE {t} TRUNCATE PARTITION p0"],
    "part_exchanged": [
        "CREATE TABLE one_part (id INT PRIMARY KEY)",
        "INSERT INTO one_part VALUES (3)",
        "ALTER TABLE {t} EXCHANGE PARTITION p0 WITH TABLE one_part",
    ],
    "part_converted": ["ALTER TABLE {t} CONVERT PARTITION p0 TO TABLE converted"],
    "part_reorganized": ["ALTER TABLE {t} REORGANIZE PARTITION p1 INTO (PARTITION p2 VALUES LESS THAN (30))"],
    "part_removed": ["ALTER TABLE {t} REMOVE PARTITIONING"],
}


def test_changes_of_the_schema(source: Source) -> None:
    for table, (definition, rows, _) in CHANGES.items():
        source.run(f"CREATE TABLE {table} ({definition})")
        source.run(f"INSERT INTO {table} VALUES {', '.join(f'({row})' for row in rows)}")
    source.run("SET SESSION sql_mode = ''")
    for table in PARTITIONS:
        source.run(f"CREATE TABLE {table} ({PARTITIONED})")
        source.run(f"INSERT INTO {table} VALUES (1), (11)")
    source.capture()
    for table, statements in [*((name, each[2]) for name, each in CHANGES.items()), *PARTITIONS.items()]:
        for each in statements:
            source.run(each.format(t=table))
    source.capture()
    for table in [*CHANGES, *PARTITIONS, "one_part", "converted"]:
        source.check(table, "k" if table == "other_key" else "id")
    for table in ("part_reorganized", "part_removed"):
        assert source.ops(table) == ["read", "read"], table
    assert source.capture().rows == {}, "nothing twice"


def test_a_column_at_the_end_needs_no_reading(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    source.run("INSERT INTO t VALUES (1)")
    source.capture()
    source.run("ALTER TABLE t ADD a INT, ADD INDEX (a), COMMENT 'more'")
    source.run("CREATE INDEX i ON t (a)")
    source.run("OPTIMIZE TABLE t")
    source.run("INSERT INTO t VALUES (2, 5)")
    source.capture()
    assert source.ops("t") == ["read", "insert"]
    assert [
        [each["name"] for each in json.loads(row["after"])] for row in source.raw("t") if row["op"] == "schema"
    ] == [
        ["id"],
        ["id", "a"],
    ]


def test_a_column_is_described_with_the_first_row_that_has_it(source: Source) -> None:
    name = f"{source.name}.t"
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    source.run("INSERT INTO t VALUES (1, 5)")
    source.capture()
    source.run("ALTER TABLE t ADD b INT")
    source.capture()
    source.check("t", "id")
    query = query_of(source.client, source.into, name)
    assert typed_rows(source.client, source.into, name, query) == [{"id": 1, "a": 5}], "nothing has the column yet"
    source.run("UPDATE t SET a = 6")
    source.capture()
    source.check("t", "id")
    query = query_of(source.client, source.into, name)
    assert typed_rows(source.client, source.into, name, query) == [{"id": 1, "a": 6, "b": None}]
    assert source.ops("t") == ["read", "update"]


def test_typed_tables(source: Source) -> None:
    name = f"{source.name}.t"
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    source.run("INSERT INTO t VALUES (1, 5), (2, 6)")
    source.capture()
    printed = [made(source.client, source.into, name) for made in (query_of, query_of_0_1_0)]
    source.run("ALTER TABLE t ADD b VARCHAR(9)")
    source.run("INSERT INTO t VALUES (3, 7, 'x')")
    source.capture()
    for query in printed:
        assert [row["a"] for row in typed_rows(source.client, source.into, name, query)] == [5, 6, 7]
    source.run("ALTER TABLE t RENAME COLUMN a TO c, ADD d INT DEFAULT 4")
    source.run("DELETE FROM t WHERE id = 1")
    source.capture()
    for query in printed:
        with pytest.raises(duckdb.Error, match=r"print its definitions again, by metastore capture definitions"):
            typed_rows(source.client, source.into, name, query)
    assert typed_rows(source.client, source.into, name, query_of(source.client, source.into, name)) == [
        {"id": 2, "c": 6, "b": None, "d": 4},
        {"id": 3, "c": 7, "b": "x", "d": 4},
    ]


def test_statements_are_kept(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    source.run("CREATE TABLE u (id INT PRIMARY KEY)")
    source.run("INSERT INTO t VALUES (1, 5)")
    source.capture()
    altered = "ALTER TABLE t CHANGE `a` `Größe` BIGINT, ADD c INT"
    source.run(altered)
    source.run("INSERT INTO t VALUES (2, 6, 7)")
    source.run("OPTIMIZE TABLE t")
    source.run("TRUNCATE TABLE t")
    source.run("DROP TABLE u")
    source.capture()
    found = [row for row in source.raw("t") if row["op"] in ("statement", "truncate")]
    assert [row["op"] for row in found] == ["truncate", "statement", "truncate", "statement"]
    assert json.loads(found[1]["after"]) == {"statement": altered, "renamed": {"a": "Größe"}}
    assert json.loads(found[3]["after"])["statement"] == "TRUNCATE TABLE t"
    [dropped] = [row for row in source.raw("u") if row["op"] == "statement"]
    assert json.loads(dropped["after"])["statement"].startswith("DROP TABLE")
    assert source.capture().rows == {}, "nothing twice"


def test_dates_that_no_calendar_has(source: Source) -> None:
    name = f"{source.name}.t"
    source.run("SET SESSION sql_mode = ''")
    source.run("CREATE TABLE t (id INT PRIMARY KEY, d DATE, at DATETIME(3))")
    source.run("INSERT INTO t VALUES (1, '2026-01-31', '2026-01-31 10:00:00.123'), (2, '0000-00-00', NULL)")
    source.capture()
    with pytest.raises(duckdb.Error, match="does not hold"):
        typed_rows(source.client, source.into, name, query_of(source.client, source.into, name))
    query = query_of(source.client, source.into, name, quarantines=True)
    assert [row["id"] for row in typed_rows(source.client, source.into, name, query)] == [1]
    [found] = rows_of_query(source.client, source.into, name, misfits_query_of(source.client, source.into, name))
    assert (found["op"], found["misfits"]) == ("read", "d")
    assert json.loads(found["raw"]) == {"id": 2, "d": "0000-00-00", "at": None}


def test_changes_between_chunks(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    source.run("INSERT INTO t SELECT seq, seq FROM seq_1_to_300")
    capture = source.capturing(chunk_rows=100, interval=0.1)
    changes = iter(["ALTER TABLE t RENAME COLUMN a TO b", "ALTER TABLE t ADD c INT DEFAULT 5", "ALTER TABLE t DROP b"])

    def pause(step: str) -> None:
        if step == "chunk" and (change := next(changes, None)) is not None:
            source.run(change)

    capture.pause = pause
    capture.run(once=True)
    source.capture(chunk_rows=100)
    source.check("t", "id")
    assert next(changes, None) is None
    assert source.ops("t")[-1] == "complete"


def altering(source: Source, chance: random.Random, count: int) -> None:
    """So many random changes of rows and tables."""
    with source.server.connect(source.name) as connection, connection.cursor() as cursor:
        for number in range(1, count + 1):
            some, other = chance.randint(1, 90), chance.randint(1, 500)
            changes = [
                f"DELETE FROM p WHERE id = {some}",
                f"INSERT INTO p VALUES ({some}, 1)",
                f"UPDATE p SET id = {some} WHERE id = {other % 90}",
                f"INSERT INTO c SELECT {other}, max(id) FROM p",
                f"UPDATE c SET p = NULL WHERE id = {other}",
                f"INSERT INTO t (id) VALUES ({other})",
                f"DELETE FROM t WHERE id = {other}",
            ]
            alterations = [
                f"ADD x{number} INT",
                f"ADD x{number} INT DEFAULT {number}",
                f"ADD x{number} INT FIRST",
                *("CHANGE a b INT", "CHANGE b a BIGINT", "TRUNCATE PARTITION p1", "COALESCE PARTITION 1"),
                "ADD PARTITION PARTITIONS 1",
            ]
            with suppress(pymysql.Error):  # keys that are there, columns that aren't
                alters = chance.random() < 0.2
                cursor.execute(f"ALTER TABLE t {chance.choice(alterations)}" if alters else chance.choice(changes))
            time.sleep(0.02)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_random_changes_and_kills(source: Source, seed: int) -> None:
    source.run("CREATE TABLE p (id INT PRIMARY KEY, v INT)")
    source.run(
        "CREATE TABLE c (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)"
    )
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 4")
    source.run("INSERT INTO p SELECT seq, 0 FROM seq_1_to_60")
    source.run("INSERT INTO c SELECT seq, seq % 60 + 1 FROM seq_1_to_300")
    source.run("INSERT INTO t SELECT seq, 0 FROM seq_1_to_300")
    chance = random.Random(seed)
    # Those of 1 end behind a column that no row has yet.
    writer = threading.Thread(target=altering, args=(source, random.Random(seed), 218))
    writer.start()
    while writer.is_alive():
        capture = source.capturing(chunk_rows=100, interval=0.2)
        capture.pause = dying(chance)
        with suppress(Killed):
            capture.run(once=True)
    writer.join()
    source.capture(chunk_rows=100)
    for table in ("p", "c", "t"):
        source.check(table, "id")
    source.run("REPLACE INTO t (id) VALUES (501)")
    source.capture()
    source.check("t", "id")
    described = [row["after"] for row in source.raw("t") if row["op"] == "schema"][-1]
    columns = [name for name, *_ in source.run("SHOW COLUMNS FROM t")]
    assert [each["name"] for each in json.loads(described)] == columns, "a row has all columns"


@pytest.mark.parametrize("form", ["VIRTUAL", "STORED"])
def test_generated_columns(source: Source, form: str) -> None:
    source.run(f"CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT AS (a * 3) {form}, c INT INVISIBLE, d BLOB UNIQUE)")
    source.run("INSERT INTO t (id, a, c, d) VALUES (1, 1, 10, 'x')")
    source.capture()
    source.run("INSERT INTO t (id, a, c, d) VALUES (2, 2, 20, 'y')")
    source.run("UPDATE t SET c = 11 WHERE id = 1")
    source.capture()
    assert source.ops("t") == ["read", "insert", "update"]
    generated = ["b"] if form == "STORED" else []
    for row in source.raw("t"):
        if row["op"] != "schema":
            assert list(json.loads(row["after"])) == ["id", "a", *generated, "c", "d"]


def test_system_versioned_tables(source: Source) -> None:
    explicit = (
        "a TIMESTAMP(6) GENERATED ALWAYS AS ROW START, b TIMESTAMP(6) GENERATED ALWAYS AS ROW END,"
        " PERIOD FOR SYSTEM_TIME (a, b)"
    )
    tables = {"versioned": "", "with_period": f", {explicit}", "partly": ", w INT WITHOUT SYSTEM VERSIONING"}
    for table, more in tables.items():
        source.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT {more}) WITH SYSTEM VERSIONING")
        source.run(f"INSERT INTO {table} (id, v) VALUES (1, 1), (2, 2), (3, 3)")
    source.run("CREATE TABLE later (id INT PRIMARY KEY, v INT)")
    source.run("INSERT INTO later VALUES (1, 1), (2, 2)")
    source.capture()
    source.run("ALTER TABLE later ADD SYSTEM VERSIONING")
    source.run("UPDATE later SET v = 22 WHERE id = 2")
    for table in tables:
        source.run(f"UPDATE {table} SET v = 22 WHERE id = 2")
        source.run(f"DELETE FROM {table} WHERE id = 3")
        source.run(f"REPLACE INTO {table} (id, v) VALUES (1, 11)")
        source.run(f"UPDATE {table} SET id = 4 WHERE id = 2")
        source.run(f"DELETE HISTORY FROM {table}")
    source.capture()
    for table in (*tables, "later"):
        rows = [json.loads(row) for row in source.replayed(table, "id")]
        wanted = source.run(f"SELECT id, v FROM {table} ORDER BY id")
        assert [(row["id"], row["v"]) for row in rows] == [*wanted], table
        assert {"a", "b", "row_start", "row_end"}.isdisjoint(rows[0]), table
    assert source.ops("versioned") == ["read"] * 3 + ["update", "delete", "delete", "insert", "update"]


KEYS = {
    "of_prefixes": "a VARCHAR(50), b INT, v INT, PRIMARY KEY (b, a(3))",
    "in_another_order": "a VARCHAR(50), b INT, v INT, PRIMARY KEY (b, a)",
    "of_a_unique_index": "a VARCHAR(50) NOT NULL, b INT NOT NULL, v INT UNIQUE, UNIQUE (b, a), UNIQUE (a, b)",
    "that_is_invisible": "a VARCHAR(50), b INT DEFAULT 0 INVISIBLE PRIMARY KEY, v INT",
    "without_overlaps": "a INT, b INT, v INT, s DATE, e DATE, PERIOD FOR p (s, e), UNIQUE (b, p WITHOUT OVERLAPS)",
}


def test_keys(source: Source) -> None:
    for table, definition in KEYS.items():
        dates = table == "without_overlaps"
        source.run(f"CREATE TABLE {table} ({definition})")
        source.run(
            f"INSERT INTO {table} (a, b, v{', s, e' if dates else ''}) VALUES"
            f" ('9', 1, 1{', 20200101, 20210101' if dates else ''})"
        )
    source.capture()
    for table in KEYS:
        source.run(f"UPDATE {table} SET v = 2")
    source.capture()
    for table in KEYS:
        assert source.ops(table)[-2:] == ["read", "update"], table
        schemas = [json.loads(row["after"]) for row in source.raw(table) if row["op"] == "schema"]
        assert len(schemas) == 1, table
        wanted = {"that_is_invisible": ["b"], "without_overlaps": []}.get(table, ["a", "b"])
        assert [each["name"] for each in schemas[0] if each["key"]] == wanted, table


def test_sequences_are_no_tables(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    source.run("CREATE SEQUENCE s")
    source.capture()
    source.run("SELECT NEXTVAL(s)")
    source.run("INSERT INTO t VALUES (1)")
    result = source.capture()
    assert list(result.rows) == [f"{source.name}.t"]


def test_a_table_that_somebody_wants_to_be_read_again(source: Source) -> None:
    name = f"{source.name}.t"
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    source.run("INSERT INTO t VALUES (1, 5), (2, 6)")
    source.capture()
    source.run("SET sql_log_bin = 0")
    source.run("UPDATE t SET a = 7 WHERE id = 2")
    source.run("SET sql_log_bin = 1")
    source.capture()
    with pytest.raises(AssertionError, match="t"):
        source.check("t", "id")
    order(source.client.table(source.into), [name])
    source.capture()
    source.check("t", "id")
    assert source.ops("t") == ["read", "read", "truncate", "read", "read", "complete"]
    assert source.capture().rows == {}, "nothing twice"
