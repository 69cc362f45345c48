"""Alterations of a table whose state is known: one message, and the same outcome as if it had been looked up."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from eventbus.log import log as event_log
from lake.protocol.hive import FieldSchema, InvalidOperationException, MetaException, Table
from metastore.services.table.service import EXPECTED_KEY, EXPECTED_VALUE
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store.engine.database import Outdated
from metastore.store.engine.names import TableName
from metastore.store.table import known_tables, tables
from metastore.store.table.known_tables import KnownTables
from metastore.store.table.tables import LockedTable
from tests.support import builders

STEADY = known_tables._IN_A_ROW + 1
"""Alterations after which the next one assumes what the table is."""


@pytest.fixture
def other(metastore: Metastore, tmp_path: Path) -> Iterator[Metastore]:
    """Another server on the same database."""
    url = metastore.database.url.render_as_string(hide_password=False)
    warehouse = str(metastore.tables._warehouse._root)
    opened = Metastore.open(Settings(database_url=url, data_dir=tmp_path, warehouse_dir=warehouse))
    yield opened
    opened.close()


@pytest.fixture
def assumed(metastore: Metastore, db: str, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Table `t`, which the server has altered until it knows it. Whether each alteration from then on was done so."""
    metastore.tables.create(builders.table(db, parameters={"count": "0"}), {})
    for number in range(STEADY):
        put(metastore, db, "number", str(number))
    outcomes: list[bool] = []
    carry_out = metastore.tables._carry_out

    def watched(alteration: object, known: LockedTable | None) -> None:
        outcomes.append(known is not None)
        carry_out(alteration, known)  # type: ignore[arg-type]

    monkeypatch.setattr(metastore.tables, "_carry_out", watched)
    return outcomes


def changed(metastore: Metastore, db: str, key: str, value: str) -> Table:
    table = metastore.tables.get(db, "t")
    assert table.parameters is not None
    table.parameters[key] = value
    return table


def put(metastore: Metastore, db: str, key: str, value: str) -> None:
    metastore.tables.alter(db, "t", changed(metastore, db, key, value), {})


def parameters(metastore: Metastore, db: str) -> dict[str, str]:
    return metastore.tables.get(db, "t").parameters or {}


def last_event(metastore: Metastore, db: str) -> dict[str, Any]:
    """What subscribers are told of the last alteration of the table."""
    with metastore.database.write() as tx:
        event_log.number(tx)
        return [each for each in event_log.read(tx, 0, 100_000) if each.database == db][-1].payload


def test_who_knows_the_table_needs_no_lookup(metastore: Metastore, db: str, assumed: list[bool]) -> None:
    for number in range(3):
        put(metastore, db, "more", str(number))
    assert assumed == [True] * 3
    assert parameters(metastore, db)["more"] == "2"


def test_columns_and_a_location_change_as_well(metastore: Metastore, db: str, assumed: list[bool]) -> None:
    """What takes more than one message begins with the lock."""
    table = metastore.tables.get(db, "t")
    assert table.sd is not None and table.sd.location is not None
    table.sd.cols = [FieldSchema("id", "bigint"), FieldSchema("added", "string")]
    table.sd.location += "_elsewhere"
    metastore.tables.alter(db, "t", table, {})
    put(metastore, db, "more", "1")
    assert assumed == [True, True]
    assert metastore.tables.get(db, "t").sd == table.sd
    assert parameters(metastore, db)["more"] == "1"


def test_a_change_by_another_server_is_not_lost(
    metastore: Metastore, other: Metastore, db: str, assumed: list[bool]
) -> None:
    mine = changed(metastore, db, "mine", "1")
    put(other, db, "theirs", "1")
    metastore.tables.alter(db, "t", mine, {})
    assert assumed == [True, False]
    # An alteration replaces all, as in Hive. But who is told of it is told of what there was.
    assert "theirs" not in parameters(metastore, db)
    event = last_event(metastore, db)
    assert event["before"]["parameters"]["theirs"] == "1"
    assert event["after"]["parameters"]["mine"] == "1"


@pytest.mark.parametrize("columns_too", [False, True])
def test_an_expected_value_is_that_of_the_table(
    metastore: Metastore, other: Metastore, db: str, assumed: list[bool], columns_too: bool
) -> None:
    """How Iceberg commits: neither an outdated state nor an outdated error may decide."""

    def commit(expected: str, new: str) -> None:
        table = changed(metastore, db, "count", new)
        if columns_too:
            assert table.sd is not None
            table.sd.cols = [*(table.sd.cols or ()), FieldSchema(f"c{new}", "string")]
        metastore.tables.alter(db, "t", table, {EXPECTED_KEY: "count", EXPECTED_VALUE: expected})

    put(other, db, "count", "1")
    with pytest.raises(MetaException, match="'count' is '1'"):
        commit("0", "2")
    assert assumed == [True, False]
    for number in range(STEADY):
        put(metastore, db, "number", str(number))
    put(other, db, "count", "3")
    assumed.clear()
    commit("3", "4")
    assert assumed == [True, False]
    assert parameters(metastore, db)["count"] == "4"


@pytest.mark.parametrize("way", ["dropped", "renamed", "replaced"])
def test_a_table_that_is_no_more(
    metastore: Metastore, other: Metastore, db: str, assumed: list[bool], way: str
) -> None:
    mine = changed(metastore, db, "mine", "1")
    if way == "renamed":
        other.tables.alter(db, "t", other.tables.get(db, "t").replace(tableName="u"), {})
    else:
        other.tables.drop(db, "t", delete_data=False)
    if way == "replaced":
        other.tables.create(builders.table(db), {})
        metastore.tables.alter(db, "t", mine, {})
        assert parameters(metastore, db)["mine"] == "1"
    else:
        with pytest.raises(InvalidOperationException, match="table not found"):
            metastore.tables.alter(db, "t", mine, {})
    assert assumed == [True, False]


def test_a_restored_database_is_another_one(metastore: Metastore, db: str, assumed: list[bool]) -> None:
    """Versions of tables may come again in it, and mean something else."""
    with metastore.database.write() as tx:
        tx.execute(text("UPDATE cache_state SET incarnation = 'another'"))
    put(metastore, db, "mine", "1")
    assert assumed == [True, False]


def test_what_an_alteration_breaks_is_as_before(metastore: Metastore, db: str, assumed: list[bool]) -> None:
    table = changed(metastore, db, "mine", "1")
    table.partitionKeys = [FieldSchema("new", "string")]
    with pytest.raises(InvalidOperationException, match="partition keys can not be changed"):
        metastore.tables.alter(db, "t", table, {})
    assert assumed == [True, False]
    assert "mine" not in parameters(metastore, db)


def test_a_table_that_others_alter_is_looked_up(
    metastore: Metastore, other: Metastore, db: str, assumed: list[bool]
) -> None:
    for number in range(2 * STEADY):
        put(other, db, "theirs", str(number))
        put(metastore, db, "mine", str(number))
    assert assumed == [True] + [False] * 2 * STEADY


def test_writers_of_two_servers_lose_nothing(
    metastore: Metastore, other: Metastore, db: str, assumed: list[bool]
) -> None:
    """Each adds one to a number, if it is what it has read, now and then a few times in a row."""

    def add(server: Metastore, times: int) -> int:
        done = 0
        while done < times:
            count = parameters(server, db)["count"]
            table = changed(server, db, "count", str(int(count) + 1))
            try:
                server.tables.alter(db, "t", table, {EXPECTED_KEY: "count", EXPECTED_VALUE: count})
                done += 1
            except MetaException:
                pass
        return done

    before = int(parameters(metastore, db)["count"])
    with ThreadPoolExecutor() as pool:
        done = sum(pool.map(lambda server: add(server, 60), [metastore, other, metastore]))
    assert int(parameters(metastore, db)["count"]) == before + done
    assert True in assumed[1:]


def test_nothing_is_done_under_a_wrong_assumption(metastore: Metastore, db: str, assumed: list[bool]) -> None:
    """Whatever statement comes first: a read, or the commit itself."""
    name = TableName("hive", db, "t")
    with metastore.database.write() as tx:
        found = tables.find_to_alter(tx, name)
        assert found is not None
    put(metastore, db, "between", "1")
    for first in (lambda tx: tx.execute(text("SELECT 1")), lambda tx: tables.touch_with_commit(tx, found.row.id)):
        version = version_of(metastore, name)
        with pytest.raises(Outdated), metastore.database.write() as tx:
            tables.assume(tx, found)
            first(tx)
        assert version_of(metastore, name) == version


def version_of(metastore: Metastore, name: TableName) -> int:
    with metastore.database.read() as tx:
        row = tables.find(tx, name)
    assert row is not None
    return row.version


def test_few_tables_are_known_and_no_large_ones(metastore: Metastore, db: str) -> None:
    metastore.tables.create(builders.table(db), {})
    with metastore.database.write() as tx:
        found = tables.find_to_alter(tx, TableName("hive", db, "t"))
    assert found is not None
    known = KnownTables()

    def learn(change: Callable[[LockedTable], LockedTable]) -> TableName:
        before = after = change(found)
        for _ in range(STEADY):
            known.learn(before, after)
        return after.row.name

    names = [learn(lambda each, n=n: _named(each, f"t{n}")) for n in range(known_tables._TABLES + 1)]
    assert known.take(names[0]) is None
    assert known.take(names[-1]) is not None
    assert known.take(names[-1]) is None, "it may be altered at this moment"
    assert known.take(learn(lambda each: _with_parameter(each, "x" * known_tables._LARGEST))) is None


def _named(table: LockedTable, name: str) -> LockedTable:
    return _of(table, name=table.row.name._replace(table=name))


def _with_parameter(table: LockedTable, value: str) -> LockedTable:
    return _of(table, parameters={"a": value})


def _of(table: LockedTable, **changes: object) -> LockedTable:
    return replace(table, row=replace(table.row, **changes))  # type: ignore[arg-type]
