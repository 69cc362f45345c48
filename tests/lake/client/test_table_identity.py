"""Clients that live on while tables are dropped and made again under the same names."""

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lake.client.lake_types import Completion
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import TableReplaced
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.publishing import publish
from lake.tables.session_leases import SessionLeases
from tests.support import builders
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
COLUMNS = ("id:bigint", "k:string", "v:int")


@pytest.fixture
def name(lake: LakeClient) -> str:
    database = f"identities{next(NUMBERS)}"
    lake.call(lambda opened: opened.create_database(builders.database(database)))
    return f"{database}.t"


def make(lake: LakeClient, name: str, *columns: str, **properties: str) -> LakeTable:
    """Makes a keyed table; drops the one that has the name."""
    database, table = name.split(".")
    parameters = {"primary-key": "id", "table-type": "merge-on-read"}
    parameters |= {each.replace("_", "-"): value for each, value in properties.items()}
    made = builders.table(database, table, keys=(), sd=builders.parquet(*(columns or COLUMNS)), parameters=parameters)
    if table in lake.call(lambda opened: opened.get_all_tables(database)):
        lake.call(lambda opened: opened.drop_table(database, table, True))
    lake.call(lambda opened: opened.create_table(made))
    return lake.table(name)


def rows(*some: tuple[int, str, int]) -> pa.Table:
    ids, keys, values = zip(*some, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "k": list(keys), "v": pa.array(values, pa.int32())})


def found(table: LakeTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(each.values()) for each in table.scan().to_arrow().to_pylist())


USES: dict[str, Callable[[LakeTable], Any]] = {
    "position": LakeTable.position,
    "schema": LakeTable.schema,
    "describe": LakeTable.describe,
    "instants": lambda table: list(table.instants()),
    "snapshot": lambda table: table.snapshot(),
    "snapshot as of": lambda table: table.snapshot(1),
    "changes": lambda table: list(table.changes(0, 1)),
    "changed rows": lambda table: table.changes(0, 1).to_arrow(),
    "scan": found,
    "lookup": lambda table: table.lookup([{"id": 1}]),
    "upsert": lambda table: table.upsert(rows((1, "a", 2))),
    "delete": lambda table: table.delete(rows((1, "a", 2)).select(["id"])),
    "writing": lambda table: table.writing().__enter__(),
    "lease": lambda table: table.leased(1).__enter__(),
    "partitions": LakeTable.partitions,
    "positions": LakeTable.positions,
    "plan of a compaction": plan_compaction,
    "publish": publish,
    "plan of a clean": lambda table: table.plan_clean(keep_commits=1),
    "orphans": lambda table: list(table.find_orphans()),
}


def test_a_table_that_was_used_is_no_other_table(lake: LakeClient, name: str) -> None:
    old = make(lake, name)
    old.upsert(rows((1, "a", 1)))
    new = make(lake, name, primary_key="k")
    for what, use in USES.items():
        with pytest.raises(TableReplaced, match="Read the schema of the table again"):
            use(old)
            pytest.fail(f"{what} took another table for this one")
    assert list(new.instants()) == []
    assert found(new) == []


def test_the_client_gives_the_table_that_has_the_name_now(lake: LakeClient, name: str) -> None:
    make(lake, name).upsert(rows((1, "a", 1)))
    make(lake, name, primary_key="k", bucket="4")
    lake.table(name).upsert(rows((1, "a", 1)))
    lake.table(name).upsert(rows((2, "a", 3)))
    assert found(lake.table(name)) == [(2, "a", 3)]
    make(lake, name, "id:bigint", "b:string")
    lake.table(name).upsert(pa.table({"id": pa.array([1], pa.int64()), "b": ["x"]}))
    assert found(lake.table(name)) == [(1, "x")]


def test_positions_of_an_earlier_table_are_refused_beside_the_name(lake: LakeClient, name: str) -> None:
    """By its id, a table may be asked for what was before its first position."""
    old = make(lake, name)
    for value in range(2):
        old.upsert(rows((1, "a", value)))
    new = make(lake, name)
    new.upsert(rows((9, "z", 1)))
    uses: list[Callable[[LakeTable, int], pa.Table]] = [
        lambda table, at: table.scan(as_of=at).to_arrow(),
        lambda table, at: table.lookup([{"id": 9}], as_of=at),
    ]
    for use in uses:
        for position in (1, 2):
            with pytest.raises(InvalidOperationException, match=f"position {position} is of a table that had the name"):
                use(lake.table(name), position)
            assert use(lake.table(new.reference), position).num_rows == 0
        with pytest.raises(InvalidOperationException, match="no position 4"):
            use(lake.table(name), 4)
        assert [use(lake.table(name), position).num_rows for position in (0, 3)] == [0, 1]


def test_an_instant_of_the_dropped_table_does_not_complete(lake: LakeClient, name: str) -> None:
    old = make(lake, name)
    with pytest.raises(TableReplaced), old.writing(heartbeat_seconds=0.2) as writing:
        new = make(lake, name)
        writing.complete(Completion())
    assert new.position().position == 0
    assert list(new.instants()) == []


def test_tables_that_are_written_together_are_those_that_were_read(lake: LakeClient, name: str) -> None:
    other = f"{name}2"
    tables = [make(lake, name), make(lake, other)]
    for each in tables:
        each.upsert(rows((1, "a", 1)))
    make(lake, other)
    with pytest.raises(TableReplaced):
        lake.write_together([(each, rows((1, "a", 2)), "upsert") for each in tables])
    assert found(tables[0]) == [(1, "a", 1)]
    assert found(lake.table(other)) == []


def test_what_is_cached_is_of_one_table(lake: LakeClient, name: str) -> None:
    """Both tables have an instant of the same timestamp and action, and the same version."""
    stamp, read = "20260101000000000", []
    for number in range(2):
        table = make(lake, name, "id:bigint", f"c{number}:int")
        begun = table.begin(timestamp=stamp)
        table.complete(begun.instant, Completion(metadata=str(number).encode()))
        read.append((table.details(stamp, "commit").metadata, table.schema().version))
        assert [each.name for each in table.schema().columns] == ["id", f"c{number}"]
    assert [each["completed"] for each, _ in read] == [b"0", b"1"]
    assert read[0][1] == read[1][1]


def test_a_plan_of_the_dropped_table_is_not_run(lake: LakeClient, name: str) -> None:
    old = make(lake, name)
    for value in range(2):
        old.upsert(rows((1, "a", value)))
    planned = plan_compaction(old).instant
    assert planned is not None
    new = make(lake, name, primary_key="k")
    for value in range(4):
        new.upsert(rows((1, "abcd"[value], value)))
    with pytest.raises(TableReplaced):
        run_compaction(old, planned.timestamp)
    with pytest.raises(NoSuchObjectException):
        run_compaction(lake.table(name), planned.timestamp)
    own = plan_compaction(new).instant
    assert own is not None
    run_compaction(lake.table(name), own.timestamp)
    assert len(found(new)) == 4


def test_a_writer_by_a_key_that_was_changed_meanwhile_is_refused(lake: LakeClient, name: str) -> None:
    """The table is empty, so that its key may change. It stays the same table."""
    table = make(lake, name)
    layout = table.schema().keyed_table()
    assert layout is not None
    with pytest.raises(InvalidOperationException, match=r"primary-key='id'.* has 'k'"), table.writing() as writing:
        altered = table.describe()
        altered = altered.replace(parameters={**(altered.parameters or {}), "primary-key": "k"})
        lake.call(lambda opened: opened.alter_table(*name.split("."), altered))
        writing.complete(Completion(layout=layout.layout()))
    table.upsert(rows((1, "a", 1)))
    table.upsert(rows((2, "a", 2)))
    assert found(table) == [(2, "a", 2)]


def test_leases_of_a_session_are_on_the_table_that_was_read(lake: LakeClient, name: str) -> None:
    old = make(lake, name)
    old.upsert(rows((1, "a", 1)))
    with SessionLeases(lake.connect, holder="test", kept_seconds=60) as leases:
        leases.keep(old, 1)
        new = make(lake, name)
        new.upsert(rows((1, "a", 1)))
        leases.keep(new, new.position().position)
        held = lake.call(lambda opened: opened.lake_list_leases(new.reference))
        assert [(each.table.id, each.position) for each in held] == [(new.id, new.position().position)]
        with pytest.raises(TableReplaced):
            leases.keep(lake.table(old.reference), 0)


def test_a_renamed_table_stays_the_same(lake: LakeClient, name: str) -> None:
    table = make(lake, name)
    table.upsert(rows((1, "a", 1)))
    altered = table.describe()
    lake.call(lambda opened: opened.alter_table(*name.split("."), altered.replace(tableName="other")))
    with pytest.raises(NoSuchObjectException):
        table.position()
    renamed = lake.table(f"{name.split('.')[0]}.other")
    assert renamed.id == table.id
    assert found(renamed) == [(1, "a", 1)]
    make(lake, name)
    with pytest.raises(TableReplaced):
        found(table)


def test_servers_that_tell_no_id_are_asked_by_name(
    metastore_server: MetastoreServer, monkeypatch: pytest.MonkeyPatch, lake: LakeClient, name: str
) -> None:
    """As those of the release before."""
    make(lake, name)
    monkeypatch.setattr(LakeTable, "_met", lambda table, table_id: None)
    with LakeClient(metastore_server.uri) as client:
        table = client.table(name)
        table.upsert(rows((1, "a", 1)))
        assert table.id is None
        assert found(table) == [(1, "a", 1)]
