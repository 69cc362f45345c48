"""A Postgres that writes changes of its tables into its log, by an event trigger: they are told apart, however late."""

import json
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import make_url

from lake.capture.postgres.preparation import PREFIX, SCHEMA, SaidChange
from lake.capture.postgres.source import Source as Connected
from lake.capture.raw_table import rows_of
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Kind, SchemaChange
from lake.cli import main
from tests.lake.capture.schema_changes.test_held import shown
from tests.lake.capture.shop import Source

K = Kind
LATE: dict[str, tuple[list[str], list[Kind], list[Kind]]] = {
    # statements of which the capture hears when all is done; what they are, and what they are taken for without the
    # trigger
    "renamed_twice": (
        [
            "ALTER TABLE {t} RENAME b TO d",
            "INSERT INTO {t} (id, d) VALUES (2, 'x')",
            "ALTER TABLE {t} RENAME d TO e",
            "INSERT INTO {t} (id, e) VALUES (3, 'y')",
        ],
        [K.RENAME, K.RENAME],
        [K.UNCLEAR, K.UNCLEAR],
    ),
    "dropped_then_renamed": (
        [
            "ALTER TABLE {t} DROP b",
            "ALTER TABLE {t} ADD c text",
            "INSERT INTO {t} (id, c) VALUES (2, 'x')",
            "ALTER TABLE {t} RENAME c TO e",
            "INSERT INTO {t} (id, e) VALUES (3, 'y')",
        ],
        [K.ADD_FILLED, K.DROP, K.RENAME],
        [K.UNCLEAR, K.UNCLEAR],
    ),
    "renamed_behind_a_row": (
        [
            "INSERT INTO {t} (id, b) VALUES (2, 'x')",
            "ALTER TABLE {t} RENAME b TO d",
            "INSERT INTO {t} (id, d) VALUES (3, 'y')",
        ],
        [K.RENAME],
        [K.RENAME],
    ),
    "added_again_behind_a_row": (
        [
            "INSERT INTO {t} (id, b) VALUES (2, 'x')",
            "ALTER TABLE {t} RENAME a TO c",
            "ALTER TABLE {t} DROP b",
            "ALTER TABLE {t} ADD b text",
            "INSERT INTO {t} (id, b) VALUES (3, 'y')",
        ],
        [K.RENAME, K.REPLACE],
        [K.RENAME, K.REPLACE],
    ),
    "another_type_behind_a_row": (
        [
            "INSERT INTO {t} (id, b) VALUES (2, 'x')",
            "ALTER TABLE {t} DROP b",
            "ALTER TABLE {t} ADD b int",
            "INSERT INTO {t} (id, b) VALUES (3, 7)",
        ],
        [K.REPLACE],
        [K.REPLACE],
    ),
    "by_a_function": (
        [
            "DO $$ BEGIN ALTER TABLE {t} RENAME b TO d; END $$",
            "INSERT INTO {t} (id, d) VALUES (2, 'x')",
            "ALTER TABLE {t} DROP a",
            "INSERT INTO {t} VALUES (3, 'y')",
        ],
        [K.DROP, K.RENAME],
        [K.DROP, K.UNCLEAR],
    ),
    "the_same_type": (
        ["ALTER TABLE {t} ALTER a TYPE int USING a * 100", "INSERT INTO {t} (id) VALUES (2)"],
        [K.ROWS],
        [K.ROWS],
    ),
    "a_label": (
        ["ALTER TYPE mood RENAME VALUE 'low' TO 'flat'", "INSERT INTO {t} (id) VALUES (2)"],
        [K.LABELS],
        [K.ROWS],
    ),
    "nothing": (["ALTER TABLE {t} ALTER b SET NOT NULL", "ALTER TABLE {t} SET (fillfactor = 70)"], [], []),
    "rolled_back": (
        ["BEGIN", "ALTER TABLE {t} RENAME b TO d", "ROLLBACK", "INSERT INTO {t} (id) VALUES (2)"],
        [],
        [],
    ),
}


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["capture", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def listed(source: Source, table: str) -> list[SchemaChange]:
    return changes_of(source.client.table(source.into), f"public.{table}")


@pytest.mark.parametrize("is_prepared", [True, False])
def test_changes_that_are_heard_of_late(source: Source, is_prepared: bool) -> None:
    if is_prepared:
        run("prepare", source.url)
    source.run("CREATE TYPE mood AS ENUM ('low')")
    for table in LATE:
        mood = ", m mood" if table == "a_label" else ""
        source.run(f"CREATE TABLE {table} (id int PRIMARY KEY, a int, b text{mood})")
        source.run(f"INSERT INTO {table} (id, a, b) VALUES (1, 10, 'one')")
    source.capture()
    for table, (statements, _, _) in LATE.items():
        for each in statements:
            source.run(each.format(t=table))
    source.capture()
    found = {table: sorted(each.difference.kind for each in listed(source, table)) for table in LATE}
    assert found == {table: sorted(each[1] if is_prepared else each[2]) for table, each in LATE.items()}
    for table in LATE:
        source.check(table, "id")
    assert source.capture().rows == {}, "nothing twice"
    if not is_prepared:
        return
    [first, last] = listed(source, "renamed_twice")
    assert (first.statement, last.statement) == (
        "ALTER TABLE renamed_twice RENAME b TO d",
        "ALTER TABLE renamed_twice RENAME d TO e",
    )
    assert first.at < last.at
    assert shown(source, "renamed_twice") == [[1, 10, "one"], [2, None, "x"], [3, None, "y"]]
    assert shown(source, "another_type_behind_a_row") == [[1, 10, "one"], [2, None, "x"]]
    [rewritten] = listed(source, "the_same_type")
    assert rewritten.difference.said == "ALTER TABLE the_same_type ALTER a TYPE int USING a * 100"


def said(source: Source) -> list[dict[str, Any]]:
    """What the raw table has of statements that change theirs.t."""
    found = [row for each in rows_of(source.client.table(source.into), "theirs.t") for row in each.to_pylist()]
    found.sort(key=lambda row: (row["epoch"], row["commit_lsn"], row["ordinal"]))
    return [json.loads(row["after"]) for row in found if row["op"] == "statement"]


def test_the_source_never_fails_for_it(source: Source) -> None:
    source.run("CREATE ROLE owner_of_some; CREATE SCHEMA theirs AUTHORIZATION owner_of_some")
    try:
        run("prepare", source.url)
        source.run("SET ROLE owner_of_some; CREATE TABLE theirs.t (id int PRIMARY KEY, a int)")
        source.capture()
        for each in (
            *("ALTER TABLE theirs.t RENAME a TO b", "INSERT INTO theirs.t VALUES (1, 2)", "RESET ROLE"),
            *("SET session_replication_role = replica", "ALTER TABLE theirs.t RENAME b TO c"),
            *("CREATE TEMP TABLE passing (id int)", "ALTER TABLE passing ADD a int", "DROP TABLE passing"),
            *("CREATE TYPE mood AS ENUM ('low')", "ALTER TABLE theirs.t ADD m mood, ADD d int"),
            *("DROP TYPE mood CASCADE", "INSERT INTO theirs.t VALUES (2, 3, 4)"),
        ):
            source.run(each)
        source.capture()
        found = said(source)
        assert [(each["statement"], [name for _, name, _ in each["columns"]]) for each in found] == [
            ("ALTER TABLE theirs.t RENAME a TO b", ["id", "b"]),
            ("ALTER TABLE theirs.t RENAME b TO c", ["id", "c"]),
            ("ALTER TABLE theirs.t ADD m mood, ADD d int", ["id", "c", "m", "d"]),
            ("DROP TYPE mood CASCADE", ["id", "c", "d"]),
        ]
        source.run(f"DROP SEQUENCE {SCHEMA}.token")
        source.run("ALTER TABLE theirs.t RENAME c TO e; INSERT INTO theirs.t VALUES (3, 4)")
        source.capture()
        assert said(source) == found
        source.run(f"DROP FUNCTION {SCHEMA}.say_change() CASCADE; ALTER TABLE theirs.t RENAME e TO f")
        run("unprepare", source.url)
    finally:
        source.run("RESET ROLE; DROP SCHEMA theirs CASCADE; DROP ROLE owner_of_some")


def test_parts_of_a_table(source: Source) -> None:
    run("prepare", source.url)
    source.run("CREATE TABLE m (id int PRIMARY KEY, a int) PARTITION BY RANGE (id)")
    source.run("CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (10); INSERT INTO m VALUES (1, 1)")
    source.capture()
    source.run("ALTER TABLE m RENAME a TO b; INSERT INTO m VALUES (2, 2); ALTER TABLE m RENAME b TO c")
    source.run("INSERT INTO m VALUES (3, 3)")
    source.capture()
    assert [each.difference.kind for each in listed(source, "m1")] == [K.RENAME, K.RENAME], "in one transaction"
    source.check("m1", "id")


def test_messages_of_others_do_not_count(source: Source) -> None:
    run("prepare", source.url)
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int, b int); INSERT INTO t VALUES (1, 2, 3)")
    source.capture()
    [(oid,)] = source.run("SELECT 't'::regclass::oid::int")
    columns = [[1, "id", "integer"], [2, "b", "integer"], [3, "a", "integer"]]
    forged = {"token": 1, "statement": "forged", "tables": [{"oid": oid, "columns": columns}]}
    for each in (json.dumps(forged), json.dumps({**forged, "token": "x"}), "[]", "{", "null", '{"tables": 1}'):
        for is_transactional in (True, False):
            source.run("SELECT pg_logical_emit_message(%s, %s, %s)", is_transactional, PREFIX, each)
    source.run("INSERT INTO t VALUES (2, 3, 4)")
    source.capture()
    assert source.ops("t") == ["read", "insert"]
    source.run("CREATE ROLE of_capture LOGIN; CREATE ROLE of_nobody LOGIN")
    try:
        run("prepare", source.url, "--role", "of_capture")
        tokens = {}
        for role in ("postgres", "of_capture", "of_nobody"):
            with Connected(as_role(source.url, role)) as connected:
                tokens[role] = connected.token()
        assert tokens["postgres"] == tokens["of_capture"] is not None, "prepared again, it's the same"
        assert tokens["of_nobody"] is None
        for command in ("prepare", "unprepare"):
            assert "event triggers are a superuser's" in run(command, as_role(source.url, "of_nobody"), code=1)
        assert 'role "of_none" does not exist' in run("prepare", source.url, "--role", "of_none", code=1)
    finally:
        for _ in range(2):
            run("unprepare", source.url)
        source.run("DROP ROLE of_capture; DROP ROLE of_nobody")
    assert source.run("SELECT count(*) FROM pg_event_trigger") == [(0,)]
    assert source.run("SELECT count(*) FROM pg_namespace WHERE nspname = %s", SCHEMA) == [(0,)]
    assert "only Postgres is prepared" in run("prepare", "mysql://a@b/c", code=1)


def as_role(url: str, role: str) -> str:
    return make_url(url).set(username=role, password=None).render_as_string(hide_password=False)


def test_a_message_is_what_it_says() -> None:
    assert SaidChange.parse(b'{"token": 5, "statement": "x", "tables": []}') == SaidChange(5, "x", [])
    for wrong in (b"\xff", b'{"token": true, "statement": "x", "tables": []}', b'{"token": 5, "tables": []}'):
        assert SaidChange.parse(wrong) is None
