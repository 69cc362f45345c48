"""Tables of MariaDB that can't be captured: they are named, and the others are captured."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lake.capture.mysql.capture import MysqlCapture
from lake.capture.mysql.state import MysqlState
from lake.capture.raw_table import RawTable
from lake.protocol.hive import NoSuchObjectException
from tests.lake.capture.mysql.conftest import Source
from tests.support.command import run
from tests.support.server import MetastoreServer


def troubles(source: Source) -> dict[str, str]:
    """Why tables can't be captured, by their names without the database."""
    state = RawTable(source.client, source.into).latest(MysqlState.parse)
    assert state is not None
    return {name.partition(".")[2]: why for name, why in state.troubles.items()}


@pytest.fixture
def user(source: Source) -> Iterator[str]:
    """A user who may read the log, and no table."""
    name = f"user_{source.name}"
    source.run(f"CREATE USER {name}")
    source.run(f"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {name}")
    yield name
    source.run(f"DROP USER {name}")


def test_tables_that_can_not_be_captured(source: Source, caplog: Any) -> None:
    source.run("CREATE TABLE good (id INT PRIMARY KEY)")
    source.run("INSERT INTO good VALUES (1)")
    source.run("CREATE TABLE packed (id INT PRIMARY KEY, v TEXT COMPRESSED)")
    source.run("INSERT INTO packed VALUES (1, 'x')")
    source.run("CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM")
    source.run("CREATE TABLE foreign_letters (id INT PRIMARY KEY, v TEXT CHARACTER SET swe7)")
    source.run(
        "CREATE TABLE counted (id INT PRIMARY KEY, a BIGINT UNSIGNED GENERATED ALWAYS AS ROW START,"
        " b BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (a, b)) WITH SYSTEM VERSIONING"
    )
    source.capture()
    source.run("INSERT INTO good VALUES (2)")
    source.run("INSERT INTO packed VALUES (2, 'y')")
    source.run("INSERT INTO old VALUES (2)")
    source.run("INSERT INTO counted (id) VALUES (2)")
    source.capture()
    source.check("good", "id")
    assert source.ops("good") == ["read", "insert"]
    assert troubles(source) == {
        "packed": "its column v is COMPRESSED, which isn't captured",
        "foreign_letters": "the column v has the character set swe7, which isn't captured",
        "old": "it is kept by MyISAM: only InnoDB reads as of a position",
        "counted": "its rows are versioned by transactions, and the log doesn't have them",
    }
    alarms = [json.loads(each.message) for each in caplog.records if "unreadable table" in each.message]
    assert {(each["table"], each["reason"]) for each in alarms} >= {
        (f"{source.name}.old", "it is kept by MyISAM: only InnoDB reads as of a position")
    }
    assert source.raw("packed") == []
    for change in ("packed MODIFY v TEXT", "old ENGINE = InnoDB"):
        source.run(f"ALTER TABLE {change}")
    source.run("DROP TABLE counted, foreign_letters")
    source.capture()
    source.check("packed", "id")
    source.check("old", "id")
    assert troubles(source) == {}


def test_tables_that_become_unreadable(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))")
    source.run("INSERT INTO t VALUES (1, 'a')")
    source.run("CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(20))")
    source.run("INSERT INTO u VALUES (1, 'a')")
    source.capture()
    source.run("ALTER TABLE t MODIFY v VARCHAR(20) COMPRESSED")
    source.run("INSERT INTO t VALUES (2, 'b')")
    source.run("ALTER TABLE u ENGINE = MyISAM")
    source.run("INSERT INTO u VALUES (2, 'b')")
    source.capture()
    assert set(troubles(source)) == {"t", "u"}
    source.run("ALTER TABLE t MODIFY v VARCHAR(20)")
    source.run("ALTER TABLE u ENGINE = InnoDB")
    source.capture()
    assert troubles(source) == {}
    source.check("t", "id")
    source.check("u", "id")


def test_tables_of_others_do_not_matter(source: Source) -> None:
    """Statements and rows of tables that aren't captured, which can't be read."""
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    source.run("CREATE TABLE packed (id INT PRIMARY KEY, v TEXT COMPRESSED, w VARCHAR(9) COMPRESSED)")
    tables = (f"{source.name}.t",)
    source.capture(tables=tables)
    source.run("INSERT INTO packed VALUES (1, 'x', 'y')")
    source.run("XA START 'a'")
    source.run("INSERT INTO packed VALUES (2, 'x', 'y')")
    source.run("XA END 'a'")
    source.run("XA PREPARE 'a'")
    source.run("XA COMMIT 'a'")
    source.run("INSERT INTO t VALUES (1)")
    source.run("ALTER TABLE packed DROP v")
    source.capture(tables=tables)
    assert source.ops("t") == ["insert"]
    assert troubles(source) == {}
    source.check("t", "id")


def test_a_table_without_select(source: Source, user: str) -> None:
    for table in ("open", "closed", "partly"):
        source.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
        source.run(f"INSERT INTO {table} VALUES (1, 1)")
    source.run(f"GRANT SELECT ON {source.name}.open TO {user}")
    source.run(f"GRANT SELECT (id) ON {source.name}.partly TO {user}")
    url = source.url.replace("root@", f"{user}@")
    source.capture(source=url)
    for table in ("open", "closed", "partly"):
        source.run(f"INSERT INTO {table} VALUES (2, 2)")
    source.capture(source=url)
    assert source.ops("open") == ["read", "insert"]
    assert source.raw("closed") == []
    assert "user has no SELECT" in troubles(source)["closed"]
    assert "partly" in troubles(source)
    source.run(f"GRANT SELECT ON {source.name}.* TO {user}")
    source.capture(source=url)
    for table in ("open", "closed", "partly"):
        source.check(table, "id")
    assert troubles(source) == {}


def test_a_right_that_is_taken_away(source: Source, user: str) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    source.run("INSERT INTO t VALUES (1, 1)")
    source.run(f"GRANT SELECT ON {source.name}.t TO {user}")
    url = source.url.replace("root@", f"{user}@")
    source.capture(source=url)
    source.run(f"REVOKE SELECT ON {source.name}.t FROM {user}")
    source.run("INSERT INTO t VALUES (2, 2)")
    source.run("ALTER TABLE t RENAME COLUMN v TO w")
    source.run("INSERT INTO t VALUES (3, 3)")
    source.capture(source=url)
    assert set(troubles(source)) == {"t"}
    source.run(f"GRANT SELECT ON {source.name}.t TO {user}")
    source.capture(source=url)
    source.check("t", "id")


def test_a_table_that_is_not_there_yet(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    tables = tuple(f"{source.name}.{each}" for each in ("t", "later"))
    source.capture(tables=tables)
    assert troubles(source) == {"later": "it isn't there, or the user has no SELECT on it"}
    source.run("CREATE TABLE later (id INT PRIMARY KEY)")
    source.run("INSERT INTO later VALUES (1)")
    source.capture(tables=tables)
    source.check("later", "id")
    assert troubles(source) == {}


def test_tables_that_come_and_go(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    source.capture()
    source.run("CREATE TABLE staging (id INT PRIMARY KEY, v TEXT COMPRESSED)")
    source.run("INSERT INTO staging VALUES (1, 'x')")
    source.run("DROP TABLE staging")
    source.run("INSERT INTO t VALUES (1)")
    source.capture()
    assert source.raw("staging") == []
    assert troubles(source) == {}


def test_the_commands_name_them(source: Source, metastore_server: MetastoreServer) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    source.run("CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM")
    place = ("--into", source.into, "--uri", metastore_server.uri)
    for command in (["capture", source.url, "--once"], ["capture", "status"]):
        found = run(*command, *place, "--json")
        assert (found.returncode, f"{source.name}.old: it is kept by MyISAM" in found.stderr) == (1, True), found
    assert f"{source.name}.old" in json.loads(found.stdout)["alarm"]


def test_a_running_capture_takes_them_up(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    from lake.capture.mysql import capture as module

    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.3)
    source.run("CREATE TABLE t (id INT PRIMARY KEY) ENGINE = MyISAM")
    source.run("INSERT INTO t VALUES (1)")
    capture: MysqlCapture = source.capturing(interval=0.1)
    running = threading.Thread(target=capture.run)
    running.start()
    try:
        _wait_for(lambda: set(troubles(source)) == {"t"})
        source.run("ALTER TABLE t ENGINE = InnoDB")
        source.run("INSERT INTO t VALUES (2)")
        _wait_for(lambda: not troubles(source))
    finally:
        capture.stop()
        running.join(30)
    source.check("t", "id")


def _wait_for(condition: Any) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            if condition():
                return
        except (AssertionError, NoSuchObjectException):
            pass
        time.sleep(0.1)
    raise AssertionError("it didn't come")
