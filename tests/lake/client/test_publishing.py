"""Who lists Hive's directories of a keyed table reads the rows of the position that was published, and no others."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.client.lake_types import Completion, PartitionPositions
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import InstantConflict
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed import files
from lake.tables.keyed.files import link_files
from lake.tables.keyed_tables import NotKeyed
from lake.tables.lake import LakeClient, LakeTable, Writing
from lake.tables.publishing import Published, publish
from tests.lake.client.conftest import NewTable
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.target import local_path

COLUMNS = {"id": "bigint", "v": "int", "part": "string"}
FLAT = {"id": "bigint", "v": "int"}
KINDS = ["copy-on-write", "merge-on-read"]
PARTITIONS = ["x", "y=ä", "z/ 1"]

Rows = set[tuple[Any, ...]]


def properties(kind: str, *, partitioned: bool = True) -> dict[str, str]:
    return {"primary-key": "id,part" if partitioned else "id", "bucket": "2", "table-type": kind}


def batch(rows: list[tuple[Any, ...]], *, partitioned: bool = True) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("v", pa.int32()), *([("part", pa.string())] if partitioned else [])])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


def directories(lake: LakeTable) -> dict[str, Path]:
    """The directories of Hive's partitions, or that of the table, by the values of a partition."""
    table = lake.describe()
    database, name = lake.reference.database, lake.reference.table
    if not table.partitionKeys:
        assert table.sd is not None
        return {"": local_path(table.sd.location or "")}
    found = lake._client.call(
        lambda client: client.get_partitions_ps(f"{database}", f"{name}@includeuncommit", [""], -1)
    )
    return {"/".join(each.values): local_path(each.sd.location or "") for each in found}


def rows_of(values: str, place: Path, *, partitioned: bool) -> Rows:
    """The rows that a reader finds who lists a directory; each key once."""
    found: list[tuple[Any, ...]] = []
    for path in sorted(place.iterdir()):
        if not path.name.startswith((".", "_")):
            table = pq.ParquetFile(path).read(columns=["id", "v"])
            found += [(each["id"], each["v"], *([values] if partitioned else [])) for each in table.to_pylist()]
    assert len({(row[0], *row[2:]) for row in found}) == len(found), "a key twice"
    return set(found)


def hive_rows(lake: LakeTable, *, partitioned: bool = True) -> Rows:
    found: Rows = set()
    for values, place in directories(lake).items():
        found |= rows_of(values, place, partitioned=partitioned)
    return found


def scanned(lake: LakeTable, as_of: int | None = None) -> Rows:
    table = lake.scan(as_of=as_of, include_uncommitted=True).to_arrow()
    return {tuple(row.values()) for row in table.to_pylist()}


def compact(lake: LakeTable) -> None:
    """Runs a new plan, and those that lost to a writer before."""
    plan_compaction(lake)
    for plan in lake.instants(actions=["compaction"], states=["requested"]):
        run_compaction(lake, plan.timestamp)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("partitioned", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_hive_s_directories_have_the_rows_of_what_is_published(
    new_table: NewTable, kind: str, partitioned: bool
) -> None:
    lake = new_table(properties(kind, partitioned=partitioned), COLUMNS if partitioned else FLAT, partitioned)
    choose = random.Random(7)

    def keys(count: int) -> list[tuple[Any, ...]]:
        every = [(id, part) for id in range(12) for part in PARTITIONS] if partitioned else [(id,) for id in range(12)]
        return choose.sample(every, count)

    seen: Rows = set()
    published = 0
    for number in range(12):
        rows = [(key[0], number, *key[1:]) for key in keys(5)]
        lake.upsert(batch(rows, partitioned=partitioned))
        if number % 3 == 0:
            some = batch([(key[0], None, *key[1:]) for key in keys(4)], partitioned=partitioned)
            lake.delete(some.drop_columns(["v"]))
        assert hive_rows(lake, partitioned=partitioned) == seen
        if number % 2:
            compact(lake)
        before = lake.position().position
        done = publish(lake)
        if done.instant is None:
            assert lake.position().position == before
            assert done.unmerged
            continue
        if not done.unmerged:
            seen = hive_rows(lake, partitioned=partitioned)
            assert seen == scanned(lake, before) == scanned(lake)
            published += 1
            assert publish(lake) == Published(None, [], 0, 0, [])
            assert done.advice is None
        else:
            seen = hive_rows(lake, partitioned=partitioned)
            assert "compact them" in (done.advice or "")
        assert done.linked == done.files > 0
    assert published >= 4
    assert {each.action for each in lake.instants(states=["completed"])} >= {"publish"}


def test_only_partitions_that_changed(new_table: NewTable) -> None:
    lake = new_table(properties("copy-on-write"), COLUMNS)
    assert publish(lake) == Published(None, [], 0, 0, [])
    lake.upsert(batch([(1, 1, "x"), (2, 1, "y=ä"), (3, 1, "z/ 1")]))
    assert lake.positions() == dict.fromkeys(lake.partitions(), PartitionPositions(1, None))
    first = publish(lake, filter="part = 'x' or part = 'y=ä'")
    assert (first.partitions, first.files) == (["part=x", "part=y%3Dä"], 2)
    assert {each.published_at for each in lake.positions().values()} == {1, None}
    assert lake.positions(filter="part = 'x'") == {"part=x": PartitionPositions(1, 1)}
    lake.upsert(batch([(1, 2, "x")]))
    before = directories(lake)
    second = publish(lake)
    assert second.partitions == ["part=x", "part=z%2F 1"]
    assert directories(lake)["y=ä"] == before["y=ä"]
    assert hive_rows(lake) == scanned(lake)
    lake.complete(lake.begin("replacecommit").instant, Completion(replaced_partitions=["part=x"]))
    assert publish(lake).partitions == ["part=x"]
    assert hive_rows(lake) == scanned(lake) == {(2, 1, "y=ä"), (3, 1, "z/ 1")}


def test_partitions_with_log_files_wait_for_their_compaction(new_table: NewTable) -> None:
    lake = new_table(properties("merge-on-read"), COLUMNS)
    lake.upsert(batch([(1, 1, "x"), (2, 1, "y=ä")]))
    publish(lake)
    lake.upsert(batch([(1, 2, "x")]))
    lake.delete(batch([(2, None, "y=ä")]).drop_columns(["v"]))
    done = publish(lake)
    assert (done.instant, done.unmerged) == (None, ["part=x", "part=y%3Dä"])
    assert done.advice == "2 partitions have log files: compact them (plan_compaction), then publish again"
    assert hive_rows(lake) == {(1, 1, "x"), (2, 1, "y=ä")}
    compact(lake)
    assert publish(lake).partitions == ["part=x", "part=y%3Dä"]
    assert hive_rows(lake) == scanned(lake) == {(1, 2, "x")}


def test_after_a_rollback_it_is_published_again(new_table: NewTable) -> None:
    lake = new_table(properties("copy-on-write"), COLUMNS)
    lake.upsert(batch([(1, 1, "x")]))
    second = lake.upsert(batch([(1, 2, "x")])).instant
    done = publish(lake)
    assert second is not None
    assert done.instant is not None
    with pytest.raises(InvalidOperationException, match="publish again"):
        lake.roll_back(done.instant)
    lake.roll_back(second)
    assert (hive_rows(lake), scanned(lake)) == ({(1, 2, "x")}, {(1, 1, "x")})
    publish(lake)
    assert hive_rows(lake) == {(1, 1, "x")}


def test_a_table_without_a_key(new_table: NewTable) -> None:
    with pytest.raises(NotKeyed):
        publish(new_table({}, COLUMNS))


@pytest.mark.parametrize("late", ["cleaned before", "cleaned after", "published", "dropped"])
def test_others_are_quicker(new_table: NewTable, monkeypatch: pytest.MonkeyPatch, late: str) -> None:
    """What it linked is of no use any more: it begins anew."""
    lake = new_table(properties("copy-on-write"), COLUMNS)
    lake.upsert(batch([(1, 1, "x"), (2, 1, "y=ä")]))
    times: list[int] = []

    def outdated(pairs: list[tuple[str, str]]) -> int:
        times.append(1)
        if len(times) > 1:
            return link_files(pairs)
        if late == "cleaned before":
            raise FileNotFoundError
        linked = link_files(pairs)
        if late != "cleaned after":
            overtake()
        return linked

    def begun(table: LakeTable, action: str = "commit", **options: Any) -> AbstractContextManager[Writing]:
        if action == "publish" and late.startswith("cleaned") and not times:
            overtake()  # a moment later a clean would keep what the publish reads
        return writing(table, action, **options)

    def overtake() -> None:
        lake.upsert(batch([(1, 2, "x")]))
        match late:
            case "published":
                publish(lake)
            case "dropped":
                named = lake.reference
                lake._client.call(
                    lambda client: client.drop_partition_by_name(named.database, named.table, "part=x", True)
                )
            case _:
                lake.clean(lake.plan_clean(keep_commits=1))

    monkeypatch.setattr("lake.tables.publishing.link_files", outdated)
    writing = LakeTable.writing
    monkeypatch.setattr(LakeTable, "writing", begun)
    done = publish(lake)
    assert hive_rows(lake) == scanned(lake)
    assert (done.instant is None) == (late == "published")
    assert [each.action for each in lake.instants(states=["inflight"])] == []


def test_a_failure_leaves_what_was_there(new_table: NewTable, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = new_table(properties("copy-on-write"), COLUMNS)
    lake.upsert(batch([(1, 1, "x")]))
    publish(lake)
    lake.upsert(batch([(1, 2, "x")]))

    def refuse(pairs: list[tuple[str, str]]) -> int:
        link_files(pairs)
        raise PermissionError("no")

    with monkeypatch.context() as patch:
        patch.setattr("lake.tables.publishing.link_files", refuse)
        with pytest.raises(PermissionError):
            publish(lake)
    assert hive_rows(lake) == {(1, 1, "x")}
    monkeypatch.setattr("lake.tables.publishing.link_files", lambda pairs: link_files(pairs[:-1]))
    with pytest.raises(InvalidOperationException, match="is missing"):
        publish(lake)
    assert hive_rows(lake) == {(1, 1, "x")}
    assert [*lake.instants(states=["inflight", "requested"])] == []


def test_files_that_can_not_be_linked_are_copied(new_table: NewTable, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = new_table(properties("copy-on-write"), COLUMNS)
    lake.upsert(batch([(1, 1, "x"), (2, 1, "x")]))
    monkeypatch.setattr(files.os, "link", lambda *_: (_ for _ in ()).throw(OSError("no links")))
    done = publish(lake)
    assert done.files > done.linked == 0
    assert hive_rows(lake) == scanned(lake)


def test_other_storages_are_copied_to() -> None:
    storage = fsspec.filesystem("memory")
    for name in ("a", "b"):
        storage.pipe(f"/published/from/{name}", name.encode())
    pairs = [(f"memory://published/from/{name}", f"memory://published/to/p=1/{name}") for name in ("a", "b")]
    assert link_files(pairs) == 0
    assert {name: storage.cat(f"/published/to/p=1/{name}") for name in ("a", "b")} == {"a": b"a", "b": b"b"}
    with pytest.raises(FileNotFoundError):
        link_files([("memory://published/from/c", "memory://published/to/c")])
    storage.rm("/published", recursive=True)


def test_dropping_the_table_leaves_nothing(new_table: NewTable) -> None:
    for partitioned in (True, False):
        lake = new_table(
            properties("copy-on-write", partitioned=partitioned), COLUMNS if partitioned else FLAT, partitioned
        )
        home = local_path(lake.location())
        for number in range(3):
            lake.upsert(batch([(1, number, "x")[: 3 if partitioned else 2]], partitioned=partitioned))
            publish(lake)
        named = lake.reference
        lake._client.call(lambda client, to=named: client.drop_table(to.database, to.table, True))  # type: ignore[misc]
        assert not home.exists()


GRACE = 3
"""Seconds for which `impatient` leaves earlier directories to their readers."""


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path / "data", "--publish-grace-seconds", str(GRACE)) as server:
        yield server


class Crowd:
    """Writers, a compactor, a cleaner, a publisher and readers of directories, each with a connection of its own."""

    def __init__(self, uri: str, name: str, pause: float) -> None:
        """`pause`: seconds for which a writer rests at most after each batch."""
        self.uri, self.name, self.pause = uri, name, pause
        self.stop = threading.Event()
        self.batches: dict[int, list[tuple[Any, ...]]] = {}
        self.seen: list[dict[str, Rows]] = []
        self.published = self.cleaned = 0

    def run(self) -> None:
        services = (self.publish, self.compact, self.clean, self.read, self.read)
        with ThreadPoolExecutor(8) as pool:
            running = [pool.submit(self._alone, each, forever=True) for each in services]
            writers = [pool.submit(self._alone, partial(self.write, seed)) for seed in (1, 2)]
            try:
                for each in writers:
                    each.result(timeout=120)
            finally:
                self.stop.set()
            for each in running:
                each.result(timeout=60)

    def _alone(self, work: Callable[[LakeTable], None], *, forever: bool = False) -> None:
        with LakeClient(self.uri) as client:
            work(client.table(self.name))
            while forever and not self.stop.wait(0.02):
                work(client.table(self.name))

    def write(self, seed: int, lake: LakeTable) -> None:
        choose = random.Random(seed)
        for number in range(20):
            rows = [(choose.randrange(6), seed * 1_000 + number, part) for part in PARTITIONS[: 1 + number % 2]]
            done = lake.upsert(batch(rows)).instant
            assert done is not None
            self.batches[done.position or 0] = rows
            time.sleep(choose.random() * self.pause)

    def publish(self, lake: LakeTable) -> None:
        self.published += publish(lake).instant is not None

    def compact(self, lake: LakeTable) -> None:
        with suppress(InstantConflict):
            compact(lake)

    def clean(self, lake: LakeTable) -> None:
        planned = lake.plan_clean(keep_commits=8)
        if planned:
            lake.clean(planned)
            self.cleaned += len(planned)
        self.stop.wait(0.3)

    def read(self, lake: LakeTable) -> None:
        places = directories(lake)
        self.stop.wait(random.random() / 2)
        self.seen.append({each: rows_of(each, place, partitioned=True) for each, place in places.items()})

    def states(self) -> list[Rows]:
        """The rows of all positions."""
        rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        found: list[Rows] = [set()]
        for _, some in sorted(self.batches.items()):
            rows.update({(row[0], row[2]): row for row in some})
            found.append({*rows.values()})
        return found


@pytest.mark.long
@pytest.mark.parametrize("kind", [pytest.param("copy-on-write", marks=pytest.mark.long), "merge-on-read"])
def test_readers_of_directories_while_all_others_run(impatient: MetastoreServer, kind: str) -> None:
    """They see no key twice, miss no file, and read what a position was: of a partition, and without log files of all.

    Partitions that have log files are published when they are compacted, so together they may be of two positions.
    """
    with LakeClient(impatient.uri) as client:
        made = builders.table(
            "polled", "t", keys=("part",), sd=builders.parquet("id:bigint", "v:int"), parameters=properties(kind)
        )
        client.call(lambda calls: calls.create_database(builders.database("polled")))
        client.call(lambda calls: calls.create_table(made))
        lake = client.table("polled.t")
        # Log files are there almost always while writers don't rest, and nothing could be published.
        crowd = Crowd(impatient.uri, lake.name, pause=0.1 if kind == "copy-on-write" else 1.0)
        first = [(id, 0, part) for id in range(6) for part in PARTITIONS[:2]]
        lake.upsert(batch(first))
        crowd.batches[1] = first
        crowd.run()
        assert (crowd.published > 3, crowd.cleaned > 0, len(crowd.seen) > 5) == (True, True, True)
        states = crowd.states()
        for seen in crowd.seen:
            if kind == "copy-on-write":
                assert set().union(*seen.values()) in states
            for partition, rows in seen.items():
                assert rows in [{row for row in state if row[2] == partition} for state in states]
        compact(lake)
        publish(lake)
        assert hive_rows(lake) == scanned(lake) == states[-1]
        home = local_path(lake.location())
        deadline = time.monotonic() + GRACE + 20
        while len([*home.glob(".instants/*.publish")]) > len(PARTITIONS) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert len([*home.glob(".instants/*.publish")]) <= len(PARTITIONS)
        assert hive_rows(lake) == states[-1]
