"""Changes of a real MariaDB's tables: each is listed with its kind."""

from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Kind, Untouched
from lake.capture.schema_changes.policy import Policy, UntouchedRule
from tests.lake.capture.mysql.conftest import Source

K = Kind
CASES: dict[str, tuple[list[str], list[Kind]]] = {
    "added": (["ALTER TABLE {t} ADD c INT"], [K.ADD]),
    "add_first": (["ALTER TABLE {t} ADD c INT FIRST"], [K.ADD_FILLED]),
    "add_default": (["ALTER TABLE {t} ADD c INT DEFAULT 7"], [K.ADD_FILLED]),
    "dropped": (["ALTER TABLE {t} DROP b"], [K.DROP]),
    "renamed": (["ALTER TABLE {t} CHANGE b d VARCHAR(9)"], [K.RENAME]),
    "renamed_twice": (["ALTER TABLE {t} RENAME COLUMN b TO x", "ALTER TABLE {t} RENAME COLUMN x TO d"], [K.RENAME]),
    "swapped": (["ALTER TABLE {t} RENAME COLUMN a TO k, RENAME COLUMN k TO a"], [K.RENAME, K.RENAME]),
    "drop_and_add": (["ALTER TABLE {t} DROP b, ADD d VARCHAR(9)"], [K.DROP, K.ADD_FILLED]),
    "replaced": (["ALTER TABLE {t} DROP b", "ALTER TABLE {t} ADD b VARCHAR(9)"], [K.REPLACE]),
    "name_taken": (["ALTER TABLE {t} DROP b", "ALTER TABLE {t} RENAME COLUMN e TO b"], [K.DROP, K.RENAME]),
    "unlogged": (
        ["SET sql_log_bin = 0", "ALTER TABLE {t} CHANGE b d VARCHAR(9)", "SET sql_log_bin = 1"],
        [K.UNCLEAR],
    ),
    "widened": (["ALTER TABLE {t} MODIFY a BIGINT"], [K.WIDEN]),
    "narrowed": (["ALTER TABLE {t} MODIFY n DECIMAL(10,1)"], [K.NARROW]),
    "without_sign": (["ALTER TABLE {t} MODIFY a INT UNSIGNED"], [K.WIDEN]),
    "as_text": (["ALTER TABLE {t} MODIFY a VARCHAR(20)"], [K.TYPE]),
    "moved": (["ALTER TABLE {t} MODIFY b VARCHAR(9) AFTER id"], [K.MOVE]),
    "labelled": (["ALTER TABLE {t} MODIFY e ENUM('y','x')"], [K.LABELS]),
    "charset": (["ALTER TABLE {t} CONVERT TO CHARACTER SET latin1"], [K.CHARSET]),
    "not_null": (["UPDATE {t} SET b = 'y'", "ALTER TABLE {t} MODIFY b VARCHAR(9) NOT NULL"], [K.NULLABILITY]),
    "other_key": (["ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (k)"], [K.KEY]),
    "emptied": (["TRUNCATE TABLE {t}"], [K.TRUNCATE]),
    "online": (
        [
            "CREATE TABLE _{t}_gho LIKE {t}",
            "ALTER TABLE _{t}_gho ADD c INT DEFAULT 3",
            "INSERT INTO _{t}_gho SELECT *, 3 FROM {t}",
            "RENAME TABLE {t} TO _{t}_del, _{t}_gho TO {t}",
        ],
        [K.ADD_FILLED],
    ),
    "nothing": (["OPTIMIZE TABLE {t}", "ALTER TABLE {t} ADD INDEX (a), ALTER b SET DEFAULT 'z'"], []),
}


def test_the_kinds_of_changes(source: Source) -> None:
    for table in CASES:
        source.run(
            f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, k INT NOT NULL, b VARCHAR(9), n DECIMAL(10,2),"
            " e ENUM('x','y'))"
        )
        source.run(f"INSERT INTO {table} VALUES (1, 10, 5, 'x', 2.5, 'x')")
    source.capture()
    for table, (statements, _) in CASES.items():
        for each in statements:
            source.run(each.format(t=table))
        source.run(
            f"INSERT INTO {table} (id, a, k{', b' if table == 'not_null' else ''}) VALUES"
            f" (2, 20, 6{', 0' if table == 'not_null' else ''})"
        )
    source.capture()
    source.capture()
    lake = source.client.table(source.into)
    found = {each: [*changes_of(lake, f"{source.name}.{each}")] for each in CASES}
    assert {name: sorted(one.difference.kind for one in each) for name, each in found.items()} == {
        name: sorted(kinds) for name, (_, kinds) in CASES.items()
    }
    assert found["renamed"][0].statement == "ALTER TABLE renamed CHANGE b d VARCHAR(9)"
    assert found["unlogged"][0].statement is None


def test_partitions_whose_rows_are_not_read_again(source: Source) -> None:
    rule = UntouchedRule(f"{source.name}.t", frozenset({Kind.PARTITIONS}), Untouched.NOTE)
    note = Policy(untouched=(rule,)).of_untouched
    parts = "PARTITION BY RANGE (id) (PARTITION o VALUES LESS THAN (10), PARTITION p VALUES LESS THAN MAXVALUE)"
    for table in ("t", "u"):
        source.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT) {parts}")
        source.run(f"INSERT INTO {table} VALUES (1, 10), (15, 50)")
    source.capture()
    for table in ("t", "u"):
        source.run(f"ALTER TABLE {table} TRUNCATE PARTITION p")
        source.run(f"INSERT INTO {table} VALUES (16, 60)")
    source.capture(untouched=note)
    assert source.ops("t") == ["read", "read", "stale", "insert"]
    assert source.ops("u")[-1] == "complete"
    [stale] = changes_of(source.client.table(source.into), f"{source.name}.t")
    assert stale.difference.said == f"rows before {stale.at} may be stale: its partitions changed"
    source.run("ALTER TABLE t ADD c INT FIRST")
    source.capture(untouched=note)
    found = changes_of(source.client.table(source.into), f"{source.name}.t")
    assert [each.difference.kind for each in found] == [K.ADD_FILLED], "all rows were read again"
    source.check("t", "id")
