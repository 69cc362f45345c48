"""Foreign keys of MariaDB that change rows: the log doesn't have these changes, and the raw table has them."""

from typing import Any

import pytest

from tests.lake.capture.mysql.conftest import Source


def make(source: Source) -> None:
    """Parents and children by foreign keys of all kinds, and rows of them."""
    source.run("CREATE TABLE parent (id INT PRIMARY KEY, v INT, code VARCHAR(9) UNIQUE)")
    for name, reference in {
        "deleted": "FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE",
        "emptied": "FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL",
        "moved": "FOREIGN KEY (p) REFERENCES parent (id) ON UPDATE CASCADE",
        "kept": "FOREIGN KEY (p) REFERENCES parent (id) ON DELETE RESTRICT",
    }.items():
        source.run(f"CREATE TABLE {name} (id INT PRIMARY KEY, p INT, {reference})")
    source.run(
        "CREATE TABLE below (id INT PRIMARY KEY, d INT, FOREIGN KEY (d) REFERENCES deleted (id) ON DELETE CASCADE)"
    )
    source.run(
        "CREATE TABLE tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE)"
    )
    source.run("INSERT INTO parent VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (4, 4, 'd')")
    source.run("INSERT INTO deleted VALUES (10, 1), (20, 2)")
    source.run("INSERT INTO emptied VALUES (10, 1), (20, 2)")
    source.run("INSERT INTO moved VALUES (10, 3), (20, 2)")
    source.run("INSERT INTO kept VALUES (10, 4)")
    source.run("INSERT INTO below VALUES (100, 10), (200, 20)")
    source.run("INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2), (4, NULL)")


TABLES = ("parent", "deleted", "emptied", "moved", "kept", "below", "tree")


def test_rows_that_change_by_foreign_keys(source: Source, caplog: Any) -> None:
    make(source)
    source.capture()
    assert f"rows of {source.name}.deleted change with those of {source.name}.parent" in caplog.text
    assert f"rows of {source.name}.kept change" not in caplog.text
    source.run("DELETE FROM parent WHERE id = 1")
    source.run("UPDATE parent SET id = 33 WHERE id = 3")
    source.run("DELETE FROM tree WHERE id = 1")
    source.run("INSERT INTO deleted VALUES (30, 2)")
    source.capture()
    for table in TABLES:
        source.check(table, "id")
    assert source.ops("kept") == ["read"]
    before = source.ops("deleted")
    source.run("UPDATE parent SET v = 9, code = 'z' WHERE id = 2")
    source.run("INSERT INTO parent VALUES (5, 5, 'e')")
    source.capture()
    assert source.ops("deleted") == before, "nobody references these columns"


def test_parents_that_are_not_captured(source: Source) -> None:
    make(source)
    other = f"{source.name}_other"
    source.run(f"CREATE DATABASE {other}")
    try:
        source.run(f"CREATE TABLE {other}.far (id INT PRIMARY KEY, c TEXT COMPRESSED)")
        source.run(f"INSERT INTO {other}.far VALUES (1, 'x'), (2, 'y')")
        source.run(
            "CREATE TABLE near (id INT PRIMARY KEY, f INT,"
            f" FOREIGN KEY (f) REFERENCES {other}.far (id) ON DELETE CASCADE)"
        )
        source.run("INSERT INTO near VALUES (10, 1), (20, 2)")
        tables = tuple(f"{source.name}.{each}" for each in ("below", "near"))
        source.capture(tables=tables)
        source.run("DELETE FROM parent WHERE id = 1")
        source.run(f"DELETE FROM {other}.far WHERE id = 1")
        result = source.capture(tables=tables)
        assert set(result.rows) == {*tables}
        source.check("below", "id")
        source.check("near", "id")
        source.run("DROP TABLE near")
    finally:
        source.run(f"DROP DATABASE {other}")


@pytest.mark.parametrize(
    "statements",
    [
        ["RENAME TABLE parent TO elder"],
        ["ALTER TABLE deleted DROP FOREIGN KEY deleted_ibfk_1"],
        ["ALTER TABLE below DROP FOREIGN KEY below_ibfk_1", "ALTER TABLE deleted DROP CONSTRAINT deleted_ibfk_1"],
        ["RENAME TABLE deleted TO other, below TO deepest"],
    ],
)
def test_keys_that_are_gone_before_they_are_seen(source: Source, statements: list[str]) -> None:
    make(source)
    source.run("CREATE TABLE late (id INT PRIMARY KEY, p INT)")
    source.run("INSERT INTO late VALUES (1, 1), (2, 2)")
    source.capture()
    source.run("ALTER TABLE late ADD FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE")
    source.run("DELETE FROM parent WHERE id = 1")
    for each in statements:
        source.run(each)
    source.run("ALTER TABLE late DROP FOREIGN KEY late_ibfk_1")
    source.capture()
    there = {name for (name,) in source.run("SHOW TABLES")}
    for table in there & {*TABLES, "late", "elder", "other", "deepest"}:
        source.check(table, "id")


def test_a_parent_that_may_not_be_seen(source: Source) -> None:
    make(source)
    user = f"sees_{source.name}"
    source.run(f"CREATE USER {user}")
    source.run(f"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {user}")
    for table in ("below", "kept"):
        source.run(f"GRANT SELECT ON {source.name}.{table} TO {user}")
    try:
        url = source.url.replace("root@", f"{user}@")
        source.capture(source=url)
        assert source.ops("below") == []
        source.check("kept", "id")
        source.run(f"GRANT SELECT ON {source.name}.deleted TO {user}")
        source.capture(source=url)
        assert source.ops("below") == []
        source.run(f"GRANT SELECT ON {source.name}.parent TO {user}")
        source.capture(source=url)
        assert source.ops("below") == ["read", "read"]
    finally:
        source.run(f"DROP USER {user}")
