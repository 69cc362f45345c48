"""Alterations of a table through two servers on one database: none is decided by a state that is no more."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from eventbus.log import log as event_log
from lake.protocol.hive import FieldSchema, InvalidOperationException, MetaException, Table
from metastore.services.table.service import EXPECTED_KEY, EXPECTED_VALUE
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from tests.support import builders

STEADY = 3
"""Alterations in a row by one server."""


@pytest.fixture
def other(metastore: Metastore, db: str, tmp_path: Path) -> Iterator[Metastore]:
    """Another server on the same database, in which the first one has altered the table `t`."""
    metastore.tables.create(builders.table(db, parameters={"count": "0"}), {})
    for number in range(STEADY):
        put(metastore, db, "number", str(number))
    url = metastore.database.url.render_as_string(hide_password=False)
    warehouse = str(metastore.tables._warehouse._root)
    opened = Metastore.open(Settings(database_url=url, data_dir=tmp_path, warehouse_dir=warehouse))
    yield opened
    opened.close()


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


def test_the_event_has_what_the_other_server_wrote(metastore: Metastore, other: Metastore, db: str) -> None:
    mine = changed(metastore, db, "mine", "1")
    put(other, db, "theirs", "1")
    metastore.tables.alter(db, "t", mine, {})
    # An alteration replaces all, as in Hive. But its event says what there was.
    assert "theirs" not in parameters(metastore, db)
    event = last_event(metastore, db)
    assert event["before"]["parameters"]["theirs"] == "1"
    assert event["after"]["parameters"]["mine"] == "1"


@pytest.mark.parametrize("columns_too", [False, True])
def test_an_expected_value_is_that_of_the_table(
    metastore: Metastore, other: Metastore, db: str, columns_too: bool
) -> None:
    """How Iceberg commits."""

    def commit(expected: str, new: str) -> None:
        table = changed(metastore, db, "count", new)
        if columns_too:
            assert table.sd is not None
            table.sd.cols = [*(table.sd.cols or ()), FieldSchema(f"c{new}", "string")]
        metastore.tables.alter(db, "t", table, {EXPECTED_KEY: "count", EXPECTED_VALUE: expected})

    put(other, db, "count", "1")
    with pytest.raises(MetaException, match="'count' is '1'"):
        commit("0", "2")
    for number in range(STEADY):
        put(metastore, db, "number", str(number))
    put(other, db, "count", "3")
    commit("3", "4")
    assert parameters(metastore, db)["count"] == "4"


@pytest.mark.parametrize("way", ["dropped", "renamed", "replaced"])
def test_a_table_that_is_no_more(metastore: Metastore, other: Metastore, db: str, way: str) -> None:
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


def test_writers_of_two_servers_lose_nothing(metastore: Metastore, other: Metastore, db: str) -> None:
    """Each adds one to a number, if it is what it has read."""

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
