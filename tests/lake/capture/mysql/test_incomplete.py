"""Typed tables of MariaDB while they are read again: they stay as they were, and show no half of a transaction."""

from typing import Any

import pytest

from tests.lake.capture.mysql.conftest import Source
from tests.lake.capture.typed_duck import query_of, typed_rows


def shown(source: Source, table: str, query: str) -> list[tuple[Any, ...]]:
    """The rows of a typed table, whose key is `id`."""
    return [tuple(row.values()) for row in typed_rows(source.client, source.into, f"{source.name}.{table}", query)]


def capture(source: Source, table: str, **options: Any) -> list[list[tuple[Any, ...]]]:
    """Captures what there is; returns what a typed table shows after each instant."""
    query = query_of(source.client, source.into, f"{source.name}.{table}")
    states = []
    capturing = source.capturing(batch_rows=1, **options)
    capturing.on_commit = lambda state: states.append(shown(source, table, query))
    capturing.run(once=True)
    return states


def test_a_new_snapshot(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    source.run("CREATE TABLE gone (id INT PRIMARY KEY)")
    source.run("INSERT INTO t SELECT seq, 0 FROM seq_1_to_250")
    source.run("INSERT INTO gone VALUES (1)")
    source.capture()
    before = [(number, 0) for number in range(1, 251)]
    source.run("UPDATE t SET v = 1")
    source.run("DROP TABLE gone")
    states = capture(source, "t", new_snapshot=True, chunk_rows=100)
    assert states[-1] == [(number, 1) for number, _ in before]
    assert states[:-1] == [before] * (len(states) - 1)
    assert len(states) > 1
    assert source.replayed("gone", "id") == []
    source.run("CREATE TABLE gone (id INT PRIMARY KEY)")
    source.run("INSERT INTO gone VALUES (2)")
    source.capture()
    assert shown(source, "gone", query_of(source.client, source.into, f"{source.name}.gone")) == [(2,)]


def test_changes_before_a_cascade_in_one_transaction(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lake.capture.mysql.capture._PAUSES", 10_000)  # it isn't read again soon
    source.run("CREATE TABLE parent (id INT PRIMARY KEY)")
    source.run(
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)"
    )
    source.run("INSERT INTO parent VALUES (1), (2), (3)")
    source.run("INSERT INTO child VALUES (10, 1), (20, 2), (30, 3)")
    source.capture()
    query = query_of(source.client, source.into, f"{source.name}.child")
    source.run("DELETE FROM parent WHERE id = 3")
    capturing, states = source.capturing(batch_rows=1), []

    def on_commit(state: object) -> None:
        states.append(shown(source, "child", query))
        if len(states) > 1:
            capturing.stop()
            return
        source.run("BEGIN")
        source.run("UPDATE child SET p = 2 WHERE id = 10")
        source.run("INSERT INTO child VALUES (40, 1)")
        source.run("DELETE FROM parent WHERE id = 1")
        source.run("UPDATE child SET id = 50 WHERE id = 10")
        source.run("COMMIT")

    capturing.on_commit = on_commit
    capturing.run()
    assert states == [[(10, 1), (20, 2)]] * 2
    source.capture()
    assert shown(source, "child", query) == [(20, 2), (50, 2)]
