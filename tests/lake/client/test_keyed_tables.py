"""Keyed tables without Spark, on a running server, against a plain model."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.client.lake_types import DataFile
from lake.protocol.lake import InstantConflict
from lake.tables.buckets import BucketWriter
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed_tables import NotKeyed
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.publishing import publish
from tests.lake.client.conftest import NewTable
from tests.lake.tables.keyed.histories import COLUMNS, TABLES, History, compared, in_order, rows_of, written_at
from tests.lake.tables.keyed.model import Record
from tests.support.long_runs import share_of
from tests.support.server import MetastoreServer
from tests.support.target import local_path


def run(
    new_table: NewTable,
    engine: str,
    kind: str,
    seed: int,
    steps: int,
    key: str = "id,part",
    producer: str = "none",
    **further: str,
) -> None:
    properties = {"primary-key": key, "bucket": "2", "table-type": kind, **TABLES[engine], **further}
    properties["changelog-producer"] = producer
    history = History(new_table(properties, COLUMNS), seed)
    for _ in range(steps):
        history.step()
    history.check()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", TABLES)
def test_histories(new_table: NewTable, engine: str, kind: str) -> None:
    for seed in range(2):
        run(new_table, engine, kind, seed, steps=10)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_histories_of_rows_that_move(new_table: NewTable, engine: str, kind: str) -> None:
    """The key is unique over all partitions."""
    for seed in range(2):
        run(new_table, engine, kind, seed, steps=10, key="id")


FAMILIES = {"column-families": "left:a; right:b"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("producer", ["none", "lookup"])
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_histories_of_column_families(new_table: NewTable, engine: str, producer: str) -> None:
    for seed in range(2):
        run(new_table, engine, "copy-on-write", seed, steps=12, producer=producer, **FAMILIES)


@pytest.mark.long
@pytest.mark.parametrize("producer", ["none", "lookup"])
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_many_histories_of_column_families(new_table: NewTable, engine: str, producer: str) -> None:
    for seed in range(share_of(100)):
        run(new_table, engine, "copy-on-write", 1000 + seed, steps=5 + seed % 20, producer=producer, **FAMILIES)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_many_histories_of_rows_that_move(new_table: NewTable, engine: str, kind: str) -> None:
    for seed in range(share_of(100)):
        run(new_table, engine, kind, 1000 + seed, steps=5 + seed % 20, key="id")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", TABLES)
def test_many_histories(new_table: NewTable, engine: str, kind: str) -> None:
    for seed in range(share_of(100)):
        run(new_table, engine, kind, 1000 + seed, steps=5 + seed % 20)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(
    ("engine", "key"),
    [("latest", "id,part"), ("sequence", "id,part"), ("aggregation", "id,part"), ("latest", "id"), ("sequence", "id")],
)
def test_writers_at_once_lose_nothing(
    new_table: NewTable, metastore_server: MetastoreServer, engine: str, key: str, kind: str
) -> None:
    """Three writers and a compactor: the rows are those of the batches in the order of their completions."""
    write_at_once(new_table({"primary-key": key, **_of_kind(engine, kind)}, COLUMNS), metastore_server)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_what_writers_at_once_look_up_is_what_was_there(
    new_table: NewTable, metastore_server: MetastoreServer, engine: str
) -> None:
    """Log files of others that came between are found: what was looked up before counts for nothing."""
    properties = {"primary-key": "id,part", "changelog-producer": "lookup", **_of_kind(engine, "merge-on-read")}
    lake = new_table(properties, COLUMNS)
    write_at_once(lake, metastore_server)
    assert lake.changes(0).changelog().is_whole
    assert in_order(lake.changes(0).to_arrow()) == in_order(compared(lake, 0, lake.position().position))


def _of_kind(engine: str, kind: str) -> dict[str, str]:
    return {"bucket": "2", "table-type": kind, **TABLES[engine]}


def write_at_once(lake: LakeTable, metastore_server: MetastoreServer) -> None:
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


class TestRowsThatMove:
    """Of a table whose key is unique over all partitions."""

    @pytest.fixture(params=["copy-on-write", "merge-on-read"])
    def lake(self, request: pytest.FixtureRequest, new_table: NewTable) -> LakeTable:
        properties = {"primary-key": "id", "bucket": "2", "table-type": request.param, "sequence.field": "v"}
        return new_table(properties, {"id": "bigint", "v": "int", "part": "string"})

    @staticmethod
    def rows(*rows: tuple[int, int, str], **marks: list[str]) -> pa.Table:
        found = pa.Table.from_pylist(
            [dict(zip(("id", "v", "part"), row, strict=True)) for row in rows],
            schema=pa.schema([("id", pa.int64()), ("v", pa.int32()), ("part", pa.string())]),
        )
        for name, values in marks.items():
            found = found.append_column(name, pa.array(values))
        return found

    @staticmethod
    def state(lake: LakeTable) -> list[tuple[object, ...]]:
        return sorted(tuple(row.values()) for row in lake.scan().to_arrow().to_pylist())

    def test_a_row_leaves_the_old_partition_and_comes_to_the_new_one(self, lake: LakeTable) -> None:
        lake.upsert(self.rows((1, 1, "x"), (2, 1, "x"), (3, 1, "y")))
        lake.upsert(self.rows((1, 2, "y"), (3, 0, "x")))
        assert self.state(lake) == [(1, 2, "y"), (2, 1, "x"), (3, 1, "y")], "an older version moves nothing"
        changes = lake.changes(1).to_arrow().select(["id", "v", "part", CHANGE_TYPE, "_commit_version"]).to_pylist()
        assert sorted(tuple(each.values()) for each in changes) == [
            (1, 1, "x", "delete", 2),
            (1, 2, "y", "insert", 2),
        ]
        assert lake.lookup([{"id": 1}, {"id": 9}]).to_pylist() == [{"id": 1, "v": 2, "part": "y"}]
        lake.upsert(self.rows((1, 3, "x")))
        lake.upsert(self.rows((1, 2, "z")))
        assert self.state(lake)[0] == (1, 3, "x"), "nor does one that comes late bring back what has moved"

    def test_a_delete_needs_the_key_alone(self, lake: LakeTable) -> None:
        lake.upsert(self.rows((1, 5, "x"), (2, 5, "y")))
        lake.delete(pa.table({"id": [1, 3]}))
        assert self.state(lake) == [(2, 5, "y")]
        lake.upsert(self.rows((1, 4, "y")))
        assert self.state(lake) == [(2, 5, "y")], "the tombstone is in the other partition"
        lake.merge(self.rows((7, 5, "x"), _change_type=["delete"]))
        lake.upsert(self.rows((7, 4, "y")))
        assert self.state(lake) == [(2, 5, "y")], "a delete that came before its row is remembered"

    def test_a_delete_of_no_row_sees_one_that_came_meanwhile(
        self, lake: LakeTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lake.upsert(self.rows((1, 5, "x"), (2, 5, "y")))
        write = BucketWriter.write_anywhere

        def write_beside(*given: Any) -> list[DataFile]:
            made = write(*given)
            monkeypatch.setattr(BucketWriter, "write_anywhere", write)
            lake.upsert(self.rows((3, 5, "x")))
            return made

        monkeypatch.setattr(BucketWriter, "write_anywhere", write_beside)
        lake.delete(pa.table({"id": [3]}))
        assert self.state(lake) == [(1, 5, "x"), (2, 5, "y")]

    def test_a_feed_of_moves_is_merged(self, lake: LakeTable, new_table: NewTable) -> None:
        mirror = new_table({"primary-key": "id", "bucket": "1"}, {"id": "bigint", "v": "int", "part": "string"})
        lake.upsert(self.rows((1, 1, "x"), (2, 1, "x")))
        mirror.merge(lake.changes(0).to_arrow())
        lake.upsert(self.rows((1, 2, "y"), (2, 2, "x"), (3, 1, "z")))
        lake.delete(pa.table({"id": [2]}))
        mirror.merge(lake.changes(1).to_arrow())
        assert self.state(mirror) == self.state(lake) == [(1, 2, "y"), (3, 1, "z")]

    def test_partitions_are_named(self, lake: LakeTable) -> None:
        with pytest.raises(UnfitRows, match="the column part"):
            lake.upsert(self.rows((1, 1, "x")).set_column(2, "part", pa.array([None], pa.string())))
        with pytest.raises(UnfitRows, match="no column part, which partitions the table"):
            lake.upsert(self.rows((1, 1, "x")).drop_columns(["part"]))
        with pytest.raises(UnfitRows, match="the key id=1 has rows of one v"):
            lake.upsert(self.rows((1, 1, "x"), (1, 1, "y")))

    def test_all_partitions_are_published_together(self, lake: LakeTable) -> None:
        lake.upsert(self.rows((1, 1, "x"), (2, 1, "y")))
        assert publish(lake).partitions == ["part=x", "part=y"]
        with pytest.raises(ValueError, match="without a filter"):
            publish(lake, filter="part = 'x'")
        lake.upsert(self.rows((1, 2, "y")))
        done = publish(lake)
        if done.unmerged:
            assert done.instant is None
            planned = plan_compaction(lake)
            assert planned.instant is not None
            run_compaction(lake, planned.instant.timestamp)
            done = publish(lake)
        assert done.partitions == ["part=x", "part=y"]


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
def test_rows_with_the_same_bucket_key_are_in_one_bucket(new_table: NewTable, kind: str) -> None:
    properties = {"primary-key": "ord,nr,part", "bucket-key": "ord", "bucket": "4", "table-type": kind}
    table = new_table(properties, {"ord": "bigint", "nr": "int", "v": "string", "part": "string"})
    lines = [
        {"ord": ord, "nr": nr, "v": f"{ord} {nr}", "part": part}
        for ord in range(12)
        for nr in range(5)
        for part in ("x", "y")
    ]
    schema = pa.schema([("ord", pa.int64()), ("nr", pa.int32()), ("v", pa.string()), ("part", pa.string())])
    table.upsert(pa.Table.from_pylist(lines, schema))
    table.upsert(pa.Table.from_pylist([{**each, "v": "later"} for each in lines if each["nr"] == 3], schema))
    table.delete(pa.Table.from_pylist([each for each in lines if each["nr"] == 4], schema))
    expected = [{**each, "v": "later"} if each["nr"] == 3 else each for each in lines if each["nr"] != 4]
    found = table.scan().to_arrow().select(schema.names).to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    wanted = [{"ord": 7, "nr": 3, "part": "x"}, {"ord": 7, "nr": 4, "part": "x"}, {"ord": 8, "nr": 0, "part": "y"}]
    assert sorted(table.lookup(wanted).column("v").to_pylist()) == ["8 0", "later"]
    groups: dict[int, set[str]] = {}
    snapshot = table.snapshot()
    for file in snapshot:
        for ord in pq.read_table(local_path(f"{snapshot.location}/{file.path}"), columns=["ord"], partitioning=None)[
            "ord"
        ].to_pylist():
            groups.setdefault(ord, set()).add(file.file_group)
    assert [len(each) for each in groups.values()] == [1] * 12
    assert len(set.union(*groups.values())) > 1
