"""Keyed tables without Spark, on a running server, against a plain model."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pyarrow as pa
import pytest

from metastore.client.compaction import plan_compaction, run_compaction
from metastore.client.keyed_tables import NotKeyed
from metastore.client.lake import LakeClient
from metastore.keyed.changes import CHANGE_TYPE
from metastore.keyed.errors import UnfitRows
from metastore.wire.lake import InstantConflict
from tests.client.conftest import NewTable
from tests.keyed.histories import COLUMNS, TABLES, History, rows_of, written_at
from tests.keyed.model import Record
from tests.support.server import MetastoreServer


def run(new_table: NewTable, engine: str, kind: str, seed: int, steps: int, key: str = "id,part") -> None:
    properties = {"primary-key": key, "bucket": "2", "table-type": kind, **TABLES[engine]}
    history = History(new_table(properties, COLUMNS), seed)
    for _ in range(steps):
        history.step()
    history.check()


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", TABLES)
def test_histories(new_table: NewTable, engine: str, kind: str) -> None:
    for seed in range(2):
        run(new_table, engine, kind, seed, steps=10)


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_histories_of_rows_that_move(new_table: NewTable, engine: str, kind: str) -> None:
    """The key is unique over all partitions."""
    for seed in range(3):
        run(new_table, engine, kind, seed, steps=12, key="id")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_many_histories_of_rows_that_move(new_table: NewTable, engine: str, kind: str) -> None:
    for seed in range(100):
        run(new_table, engine, kind, 1000 + seed, steps=5 + seed % 20, key="id")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", TABLES)
def test_many_histories(new_table: NewTable, engine: str, kind: str) -> None:
    for seed in range(100):
        run(new_table, engine, kind, 1000 + seed, steps=5 + seed % 20)


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", ["latest", "sequence", "aggregation"])
def test_writers_at_once_lose_nothing(
    new_table: NewTable, metastore_server: MetastoreServer, engine: str, kind: str
) -> None:
    """Three writers and a compactor: the rows are those of the batches in the order of their completions."""
    lake = new_table({"primary-key": "id,part", "bucket": "2", "table-type": kind, **TABLES[engine]}, COLUMNS)
    batches: dict[int, list[Record]] = {}
    stop = threading.Event()

    def write(seed: int) -> None:
        with LakeClient(metastore_server.uri) as client:
            mine = History(client.table(lake.name), seed)
            for _ in range(6):
                position, batch = mine.merge(mine.lake)
                if position is not None:
                    batches[position] = batch

    def compact() -> None:
        with LakeClient(metastore_server.uri) as client:
            while not stop.is_set():
                planned = plan_compaction(client.table(lake.name))
                if planned.instant is not None:
                    with suppress(InstantConflict):  # writers are never refused; it can be run again
                        run_compaction(client.table(lake.name), planned.instant.timestamp)
                stop.wait(0.02)

    with ThreadPoolExecutor() as pool:
        compactor = pool.submit(compact)
        writers = [pool.submit(write, seed) for seed in range(3)]
        try:
            for each in writers:
                each.result(timeout=120)
        finally:
            stop.set()
        compactor.result(timeout=60)
    history = written_at(lake, batches)
    assert len(history.states) > 10
    history.check()


def test_what_was_read_can_be_a_condition(new_table: NewTable) -> None:
    """A change of the same buckets since is a conflict then, where log files would commute as well."""
    for kind in ("copy-on-write", "merge-on-read"):
        lake = new_table({"primary-key": "id,part", "table-type": kind}, COLUMNS)
        one = rows_of([{"id": 1, "part": "x", "v": 1, "a": None, "b": None}])
        lake.upsert(one)
        read = lake.position().position
        lake.upsert(one, based_on=read)
        with pytest.raises(InstantConflict, match="changed the same"):
            lake.upsert(one, based_on=read)
        lake.upsert(rows_of([{"id": 1, "part": "z", "v": 1, "a": None, "b": None}]), based_on=read)
        assert lake.position().position == 3


def test_what_does_not_fit_is_refused(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id,part", "sequence.field": "v"}, COLUMNS)
    plain = new_table({}, COLUMNS)
    one = rows_of([{"id": 1, "part": "x", "v": 1, "a": 1, "b": "b"}])
    with pytest.raises(NotKeyed, match="has no primary-key"):
        plain.upsert(one)
    other = rows_of([{"id": 1, "part": "x", "v": 1, "a": 2, "b": "b"}])
    for rows, message in [
        (one.drop_columns(["id"]), "no column id, which belongs to the key"),
        (one.append_column("more", pa.array([1])), "the table has no column more"),
        (one.append_column("ID", pa.array([1])), "several columns id"),
        (one.set_column(0, "id", pa.array(["a"])), "don't fit"),
        (one.set_column(0, "id", pa.array([None], pa.int64())), "the column id belongs to the key and is null"),
        (one.set_column(4, "part", pa.array([None], pa.string())), "the column part belongs to the key and is null"),
        (one.set_column(1, "v", pa.array([None], pa.int32())), r"orders versions \(sequence.field\) and is null"),
        (pa.concat_tables([one, other]), "the key id=1 has rows of one v with different values"),
    ]:
        with pytest.raises(UnfitRows, match=message):
            lake.upsert(rows)
    with pytest.raises(UnfitRows, match="rows to merge have a column _change_type"):
        lake.merge(one)
    with pytest.raises(UnfitRows, match="not upsert"):
        lake.merge(one.append_column(CHANGE_TYPE, pa.array(["upsert"])))
    with pytest.raises(UnfitRows, match=r"a key of .* needs a value of part"):
        lake.lookup([{"id": 1}])
    assert lake.position().position == 0
    assert not list(lake.instants())
