"""While a change of a real MariaDB's table is held, its columns before that flow on."""

import pytest

from lake.capture.definitions import definition
from lake.capture.schema_changes.model import Action
from lake.capture.schema_changes.policy import Policy, Rule
from tests.lake.capture.mysql.conftest import Source
from tests.lake.capture.typed_duck import query_in, typed_rows

ALL_HELD, ALL_APPLIED = (Policy((Rule("*", frozenset(), each),), ()) for each in (Action.HOLD, Action.APPLY))

CASES: dict[str, tuple[str, list[list[object]]]] = {
    "added": ("ALTER TABLE {t} ADD c int; INSERT INTO {t} VALUES (2, 20, 'y', 5)", [[1, 10, "x"], [2, 20, "y"]]),
    "filled": ("ALTER TABLE {t} ADD c int DEFAULT 7 FIRST; UPDATE {t} SET a = 11", [[1, 11, "x"]]),
    "renamed": (
        "ALTER TABLE {t} RENAME COLUMN b TO d; UPDATE {t} SET a = 11; INSERT INTO {t} VALUES (2, 20, 'y')",
        [[1, 11, "x"], [2, 20, "y"]],
    ),
    "changed": ("ALTER TABLE {t} CHANGE a n bigint; INSERT INTO {t} VALUES (2, 1 << 40, 'y')", [[1, 10, "x"]]),
    "swapped": (
        "ALTER TABLE {t} RENAME COLUMN a TO b, RENAME COLUMN b TO a; INSERT INTO {t} (id, a, b) VALUES (2, 'y', 20)",
        [[1, 10, "x"], [2, 20, "y"]],
    ),
    "dropped": ("ALTER TABLE {t} DROP b; INSERT INTO {t} VALUES (2, 20); UPDATE {t} SET a = 11", [[1, 10, "x"]]),
    "retyped": (
        "ALTER TABLE {t} MODIFY a varchar(9); UPDATE {t} SET a = 'eleven'; INSERT INTO {t} VALUES (2, '20', 'y')",
        [[1, 10, "x"]],
    ),
    "unlogged": (
        "SET sql_log_bin = 0; ALTER TABLE {t} CHANGE b d text; SET sql_log_bin = 1; UPDATE {t} SET a = 11",
        [[1, 10, "x"]],
    ),
    "keyed": (
        "ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (id, a); INSERT INTO {t} VALUES (1, 11, 'y')",
        [[1, 10, "x"]],
    ),
    "exchanged": (
        "CREATE TABLE {t}_new (id int PRIMARY KEY, a int, b text); INSERT INTO {t}_new VALUES (1, 11, 'z');"
        " RENAME TABLE {t} TO {t}_old, {t}_new TO {t}",
        [[1, 10, "x"]],
    ),
    "emptied": ("ALTER TABLE {t} DROP b; TRUNCATE {t}; INSERT INTO {t} VALUES (2, 20)", []),
    "deleted": ("ALTER TABLE {t} MODIFY a varchar(9); DELETE FROM {t}", []),
}


@pytest.mark.long
def test_what_flows_on(source: Source) -> None:
    for table in CASES:
        source.run(f"CREATE TABLE {table} (id int PRIMARY KEY, a int, b text)")
        source.run(f"INSERT INTO {table} VALUES (1, 10, 'x')")
    source.capture()
    for table, (statements, _) in CASES.items():
        for each in statements.format(t=table).split("; "):
            source.run(each)
    source.capture()

    def shown(table: str, policy: Policy, *key: str) -> list[list[object]]:
        name = f"{source.name}.{table}"
        made = definition(source.client.table(source.into), name, policy=policy, is_printed=False)
        query = query_in(made)
        return [[*each.values()] for each in typed_rows(source.client, source.into, name, query, key)]

    for table, (_, rows) in CASES.items():
        assert shown(table, ALL_HELD, "id") == rows, table
        key = ("id", "a") if table == "keyed" else ("id",)
        assert shown(table, ALL_APPLIED, *key) == [[*each] for each in source.run(f"SELECT * FROM {table}")], table
