"""Clustering without Spark: what is planned, and random histories against a plain model."""

import itertools
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.client.lake_types import Completion, DataFile, FileGroup, Instant
from lake.protocol.hive import NoSuchObjectException
from lake.protocol.lake import InstantConflict, ListPartitionsRequest
from lake.tables.clustering import NotClusterable, Order, Planned, plan_clustering
from lake.tables.clustering_runs import Job, run_clustering
from lake.tables.file_changes import MixedFiles, net_changes
from lake.tables.keyed.files import link_files, remove_files
from lake.tables.lake import LakeTable, Writing
from tests.lake.client.conftest import NewTable
from tests.support.long_runs import share_of
from tests.support.target import local_path

COLUMNS = {"id": "bigint", "v": "int", "tags": "array<string>", "dt": "string"}
DAY = "dt={}".format

Rows = Counter[int]
"""The rows of a partition, by their ids."""


class Files:
    """Links on the local file system."""

    def link(self, pairs: Sequence[tuple[str, str]]) -> None:
        link_files(pairs)

    def remove_files(self, uris: Sequence[str]) -> None:
        remove_files(uris)


def put(lake: LakeTable, writing: Writing, partition: str, ids: Sequence[int], **facts: Any) -> DataFile:
    """Writes a file of rows into an instant's directory."""
    name = f"{uuid.uuid4().hex}.parquet"
    path = f"{writing.path}/{partition}/{name}" if partition else f"{writing.path}/{name}"
    place = local_path(f"{writing.directory}{path.removeprefix(writing.path)}")
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), place)
    size = place.stat().st_size
    return DataFile(partition, name, writing.instant.timestamp, path, size, rows=len(ids), **facts)


def append(lake: LakeTable, *files: tuple[str, Sequence[int]], **facts: Any) -> Instant:
    with lake.writing() as writing:
        added = [put(lake, writing, *each, **facts) for each in files]
        return writing.complete(Completion(added=added, staged=True)).instant


def replace(lake: LakeTable, *files: tuple[str, Sequence[int]]) -> Instant:
    with lake.writing("replacecommit") as writing:
        added = [put(lake, writing, *each) for each in files]
        replaced = sorted({each.partition for each in added})
        return writing.complete(Completion(added=added, relocate=True, replaced_partitions=replaced)).instant


def ids_of(lake: LakeTable, files: Iterable[DataFile]) -> dict[str, Rows]:
    location = lake.location()
    found: dict[str, Rows] = {}
    for each in files:
        rows = pq.read_table(local_path(f"{location}/{each.path}"), partitioning=None)["id"].to_pylist()
        found.setdefault(each.partition, Counter()).update(rows)
    return {name: rows for name, rows in found.items() if rows}


def rewrite(writing: Writing, job: Job) -> list[DataFile]:
    """What Spark does, in a small way: the rows of each task in about so many files."""
    added = []
    for task in job.tasks:
        ids = sorted(ids_of(writing.table, task.files).get(task.partition, Counter()).elements())
        step = -(-len(ids) // task.outputs) or 1
        added += [put(writing.table, writing, task.partition, ids[at : at + step]) for at in range(0, len(ids), step)]
    return added


def run(lake: LakeTable, planned: Planned, rewriting: Callable[[Writing, Job], list[DataFile]] = rewrite) -> Instant:
    assert planned.instant is not None, planned.reason
    return run_clustering(lake, planned.instant.timestamp, rewriting, Files()).instant


def listed(lake: LakeTable) -> dict[str, Rows]:
    """The rows in the directories of Hive's view."""
    places = {"": lake.describe().sd.location or ""}  # type: ignore[union-attr]
    if lake.schema().keys:
        request = ListPartitionsRequest(lake.reference, includeUncommitted=True)
        found = lake.client.call(lambda client: client.lake_list_partitions(request)).partitions
        places = {each.name: each.location for each in found}
    rows: dict[str, Rows] = {}
    for name, place in places.items():
        for file in local_path(place).iterdir():
            if file.is_file() and not file.name.startswith((".", "_")):
                rows.setdefault(name, Counter()).update(pq.read_table(file, partitioning=None)["id"].to_pylist())
    return {name: some for name, some in rows.items() if some}


@pytest.fixture
def table(new_table: NewTable) -> LakeTable:
    return new_table({}, COLUMNS)


# --- plans ----------------------------------------------------------------------------------------------------


def test_partitions_that_would_gain_are_planned(table: LakeTable) -> None:
    append(table, (DAY(1), [1]), (DAY(1), [2]), (DAY(2), [3]))
    for _ in range(2):
        append(table, (DAY(3), range(50_000)))
    size = max(each.size for each in table.snapshot())
    planned = plan_clustering(table, small_file_bytes=size // 2)
    assert planned.instant is not None
    assert (planned.files, planned.partitions) == (2, 1)
    details = table.details(planned.instant.timestamp, "clustering")
    assert {each.partition for each in details.plan} == {DAY(1)}
    assert b'"order_by": []' in details.metadata["requested"]
    again = plan_clustering(table, small_file_bytes=size // 2)
    assert (again.instant, again.reason) == (
        None,
        f"no partition has two files below {size // 2} bytes that would become one;"
        " 1 partitions are left out: pending plans name them",
    )
    assert plan_clustering(table, filter="dt = '3'").files == 2
    run(table, planned)
    assert plan_clustering(table, small_file_bytes=size // 2, filter="dt < '3'").instant is None


def test_small_files_that_would_not_become_fewer_stay(table: LakeTable) -> None:
    for _ in range(3):
        append(table, (DAY(1), range(1_000)))
    size = next(iter(table.snapshot())).size
    assert plan_clustering(table, small_file_bytes=size + 1, target_file_bytes=size + 1).instant is None
    planned = plan_clustering(table, small_file_bytes=size + 1, target_file_bytes=2 * size)
    assert planned.files == 3


def test_what_is_sorted_is_not_planned_again(table: LakeTable) -> None:
    append(table, (DAY(1), [1]))
    assert plan_clustering(table).instant is None
    run(table, plan_clustering(table, order_by=["id"]))
    assert plan_clustering(table, order_by=["ID"]).reason == (
        "no partition has two files below 67108864 bytes that would become one, or files that aren't sorted by id"
        " (linear)"
    )
    other = plan_clustering(table, order_by=["id", "v"], curve="z-order")
    run(table, other)
    assert plan_clustering(table, order_by=["id"]).instant is not None
    (file,) = table.snapshot()
    assert Order(("id", "v"), "z-order").has(file)
    append(table, (DAY(1), [2]))
    with_both = plan_clustering(table, order_by=["id", "v"], curve="z-order", filter="dt = '1'")
    assert with_both.instant is None  # the plan from before is pending
    table.abort(next(iter(table.instants(states=["requested"]))))
    assert plan_clustering(table, order_by=["id", "v"], curve="z-order").files == 2


def test_arguments_that_mean_nothing_are_refused(table: LakeTable, new_table: NewTable) -> None:
    append(table, (DAY(1), [1]), (DAY(1), [2]))
    for options, message in [
        ({"order_by": []}, "at least one column"),
        ({"order_by": "id"}, r"such as \['id'\]"),
        ({"order_by": ["id", "ID"]}, "each once"),
        ({"order_by": ["dt"]}, "all rows of a partition have the same dt"),
        ({"order_by": ["more"]}, "no column more"),
        ({"order_by": ["tags"]}, "tags is array<string>"),
        ({"curve": "z-order"}, "1 to 4 columns"),
        ({"order_by": ["id"], "curve": "hilbert"}, "no curve: linear or z-order"),
        ({"small_file_bytes": 0}, "positive"),
        ({"small_file_bytes": 2, "target_file_bytes": 1}, "not less than the first"),
    ]:
        with pytest.raises(ValueError, match=message):
            plan_clustering(table, **options)
    keyed = new_table({"primary-key": "id,dt"}, {"id": "bigint", "dt": "string"})
    with pytest.raises(NotClusterable, match=r"has a primary key: .* Compact it"):
        plan_clustering(keyed)
    assert not list(table.instants(states=["requested"]))


def test_files_that_must_be_merged_are_left_alone(table: LakeTable) -> None:
    append(table, (DAY(1), [1]), (DAY(1), [2]), (DAY(2), [3]), (DAY(2), [4]))
    base = next(iter(table.snapshot(partitions=[DAY(1)])))
    with table.writing("deltacommit") as writing:
        writing.complete(Completion(added=[base._replace(kind="log", path=f"{base.path}.log", version=1)]))
    planned = plan_clustering(table)
    assert planned.partitions == 1
    assert planned.reason.endswith("they have log files, or files of some columns, which others must merge")
    late = next(iter(table.snapshot(partitions=[DAY(2)])))
    with table.writing("deltacommit") as writing:
        log = late._replace(kind="log", path=f"{late.path}.log", file_group="other", version=1)
        writing.complete(Completion(added=[log]))
    with pytest.raises(InstantConflict, match="file group other"):
        run(table, planned)


def test_a_plan_of_another_program_is_not_run(table: LakeTable) -> None:
    append(table, (DAY(1), [1]))
    group = [FileGroup(DAY(1), each.file_group) for each in table.snapshot()]
    for metadata in (None, b"\x00", b"{}"):
        begun = table.begin("clustering", state="requested", plan=group, metadata=metadata)
        with pytest.raises(ValueError, match="run it by what made it"):
            run_clustering(table, begun.instant.timestamp, rewrite, Files())
        table.abort(begun.instant)


# --- runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitioned", [True, False])
def test_no_row_and_no_fact_is_lost(new_table: NewTable, partitioned: bool) -> None:
    lake = new_table({}, COLUMNS, partitioned)
    part = DAY(1) if partitioned else ""
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    append(lake, (part, [1, 1]), min_event_time=first, max_event_time=first)
    append(lake, (part, [2]), min_event_time=last, max_event_time=last)
    append(lake, (part, range(10, 50_000)))
    planned = plan_clustering(lake, small_file_bytes=10_000)
    assert planned.files == 2
    done = run(lake, planned)
    assert (done.action, done.begun_as) == ("replacecommit", "clustering")
    expected = {part: Counter([1, 1, 2, *range(10, 50_000)])}
    assert ids_of(lake, lake.snapshot()) == ids_of(lake, lake.snapshot(3)) == listed(lake) == expected
    small, large = sorted(lake.snapshot(), key=lambda each: each.size)
    assert (small.rows, small.min_event_time, small.max_event_time) == (3, first, last)
    assert (large.rows, large.min_event_time) == (49_990, None)
    again = run_clustering(lake, done.timestamp, rewrite, Files())
    assert again.repeated
    lake.clean(lake.plan_clean(keep_commits=1))
    assert ids_of(lake, lake.snapshot()) == listed(lake) == expected


def test_who_failed_leaves_the_plan_to_others(table: LakeTable) -> None:
    append(table, (DAY(1), [1]), (DAY(1), [2]))
    planned = plan_clustering(table)

    def fails(writing: Writing, job: Job) -> list[DataFile]:
        rewrite(writing, job)
        raise OSError("the disk is full")

    def loses(writing: Writing, job: Job) -> list[DataFile]:
        return rewrite(writing, job)[:0]

    with pytest.raises(OSError, match="disk is full"):
        run(table, planned, fails)
    with pytest.raises(AssertionError, match="2 rows became 0"):
        run(table, planned, loses)
    (left,) = table.instants(states=["requested"])
    assert left.attempt == 2
    assert ids_of(table, table.snapshot()) == {DAY(1): Counter([1, 2])}
    run(table, planned)
    assert ids_of(table, table.snapshot()) == listed(table) == {DAY(1): Counter([1, 2])}


def test_rows_that_come_while_it_runs_stay(table: LakeTable) -> None:
    append(table, (DAY(1), [1]), (DAY(1), [2]))
    planned = plan_clustering(table)
    append(table, (DAY(1), [3]))

    def slowly(writing: Writing, job: Job) -> list[DataFile]:
        append(table, (DAY(1), [4]))
        return rewrite(writing, job)

    run(table, planned, slowly)
    append(table, (DAY(1), [5]))
    assert ids_of(table, table.snapshot()) == listed(table) == {DAY(1): Counter([1, 2, 3, 4, 5])}
    assert len(list(table.snapshot())) == 4


def test_a_clustering_loses_to_a_replacement(table: LakeTable) -> None:
    append(table, (DAY(1), [1]), (DAY(1), [2]))
    for during in (False, True):
        planned = plan_clustering(table)

        def slowly(writing: Writing, job: Job, during: bool = during) -> list[DataFile]:
            added = rewrite(writing, job)
            if during:
                replace(table, (DAY(1), [4]), (DAY(1), [5]))
            return added

        if not during:
            replace(table, (DAY(1), [3]), (DAY(1), [4]))
        with pytest.raises(InstantConflict, match="plan again"):
            run(table, planned, slowly)
        with pytest.raises(NoSuchObjectException):
            run(table, planned)
    assert ids_of(table, table.snapshot()) == listed(table) == {DAY(1): Counter([4, 5])}


def test_a_replacement_that_began_before_is_not_refused(table: LakeTable) -> None:
    append(table, (DAY(1), [1]), (DAY(1), [2]))
    with table.writing("replacecommit") as writing:
        added = put(table, writing, DAY(1), [3])
        run(table, plan_clustering(table))
        writing.complete(Completion(added=[added], relocate=True, replaced_partitions=[DAY(1)]))
    assert ids_of(table, table.snapshot()) == listed(table) == {DAY(1): Counter([3])}


# --- what changed ---------------------------------------------------------------------------------------------


def test_files_that_went_in_part_are_refused(table: LakeTable) -> None:
    append(table, (DAY(1), range(100)), (DAY(1), range(100)))
    size = next(iter(table.snapshot())).size
    last = table.position().position
    append(table, (DAY(1), range(100)), (DAY(1), range(100)))
    run(table, plan_clustering(table, small_file_bytes=size + 1, target_file_bytes=size * 2))
    one, other = table.snapshot()
    with table.writing("replacecommit") as writing:
        writing.complete(Completion(removed_paths=[one.path]))
    with pytest.raises(MixedFiles, match="Read from after the clustering on"):
        net_changes(table, last, None)
    assert [each.path for each in net_changes(table, last + 2, None).removed] == [one.path]
    with table.writing("replacecommit") as writing:
        writing.complete(Completion(removed_paths=[other.path]))
    assert len(net_changes(table, last, None).removed) == 2


def test_undone_with_what_came_after_it_is_no_change(table: LakeTable) -> None:
    """Also where the files of the clustering were gone by then."""
    append(table, (DAY(1), [1]), (DAY(1), [2]))
    done = run(table, plan_clustering(table))
    replaced = replace(table, (DAY(1), [3]))
    table.roll_back(done, replaced)
    for first in range(1, 5):
        expected = {DAY(1): Counter([3])} if first == 3 else {}
        changed = net_changes(table, first, None)
        assert ids_of(table, changed.removed) == expected
        assert ids_of(table, changed.added) == ({DAY(1): Counter([1, 2])} if first == 3 else {})


class History:
    """Random changes of a table by several writers, and its rows after each completion."""

    def __init__(self, lake: LakeTable, seed: int, partitions: Sequence[str]) -> None:
        self.lake = lake
        self.random = random.Random(seed)
        self.partitions = partitions
        self.numbers = itertools.count(1)
        self.states: list[dict[str, Rows]] = [{}]
        self.plans: list[Planned] = []
        self.undoable: list[Instant] = []
        self.undone: set[int] = set()

    def files(self) -> list[tuple[str, list[int]]]:
        some = self.random.choices(self.partitions, k=self.random.randint(1, 3))
        return [(each, [next(self.numbers) for _ in range(self.random.randint(1, 3))]) for each in some]

    def step(self) -> None:
        """One change, by itself or while a clustering runs."""
        choice = self.random.random()
        if choice < 0.35:
            self.append()
        elif choice < 0.5:
            self.replace()
        elif choice < 0.7:
            self.plan()
        elif choice < 0.9 and self.plans:
            self.run()
        elif choice < 0.95 and self.undoable:
            self.undo()
        elif 0.95 <= choice < 0.98:
            self.slow_replacement()
        elif choice >= 0.98 and len(self.states) > 4:
            self.clean()

    def clean(self) -> None:
        self.lake.clean(self.lake.plan_clean(keep_commits=self.random.randint(2, 4)))
        self.states.append(self.states[-1])
        oldest = self.lake.position().oldest_readable
        self.undoable = [each for each in self.undoable if (each.position or 0) > oldest]

    def append(self) -> None:
        files = self.files()
        self.done(append(self.lake, *files), self.with_rows(files))

    def replace(self) -> None:
        files = self.files()
        instant = replace(self.lake, *files)
        self.done(instant, self.with_rows(files, replaced={name for name, _ in files}))

    def slow_replacement(self) -> None:
        """While it is being written, a clustering is planned and run."""
        with self.lake.writing("replacecommit") as writing:
            files = self.files()
            added = [put(self.lake, writing, *each) for each in files]
            self.plan()
            while self.plans:
                self.run(quietly=True)
            replaced = sorted({name for name, _ in files})
            done = writing.complete(Completion(added=added, relocate=True, replaced_partitions=replaced))
            self.done(done.instant, self.with_rows(files, replaced=set(replaced)))

    def plan(self) -> None:
        order = self.random.choice([None, ["id"], ["v", "id"]])
        curve = self.random.choice(["linear", "z-order"]) if order else "linear"
        target = self.random.choice([400, 1_000, 1 << 20])
        planned = plan_clustering(
            self.lake, small_file_bytes=min(target, 1 << 16), target_file_bytes=target, order_by=order, curve=curve
        )
        if planned.instant is not None:
            self.plans.append(planned)

    def run(self, *, quietly: bool = False) -> None:
        planned = self.plans.pop(self.random.randrange(len(self.plans)))
        fate = self.random.random()

        def rewriting(writing: Writing, job: Job) -> list[DataFile]:
            added = rewrite(writing, job)
            if fate < 0.2 and not quietly:
                self.append()
            elif fate < 0.3 and not quietly:
                self.replace()
            elif fate < 0.4:
                raise OSError("the process dies")
            return added

        with suppress(InstantConflict):
            try:
                self.done(run(self.lake, planned, rewriting), self.states[-1])
            except OSError:
                self.plans.append(planned)

    def undo(self) -> None:
        count = self.random.randint(1, min(3, len(self.undoable)))
        gone = [self.undoable.pop() for _ in range(count)]
        back_to = (gone[-1].position or 0) - 1
        done = self.lake.roll_back(*gone).instant
        # What else completed since can't be anything but rollbacks.
        self.undone |= {id for state in self.states[back_to:] for rows in state.values() for id in rows}
        self.states.append(self.states[back_to])
        assert done.position == len(self.states) - 1

    def with_rows(self, files: Sequence[tuple[str, list[int]]], replaced: Iterable[str] = ()) -> dict[str, Rows]:
        after = {name: Counter(rows) for name, rows in self.states[-1].items() if name not in replaced}
        for name, ids in files:
            after.setdefault(name, Counter()).update(ids)
        return after

    def done(self, instant: Instant, state: dict[str, Rows]) -> None:
        self.states.append(state)
        assert instant.position == len(self.states) - 1
        self.undoable.append(instant)

    def check(self, count: int) -> None:
        """Every position reads as it was; changes between so many pairs are the difference, each row once."""
        lake, last = self.lake, len(self.states) - 1
        assert lake.position().position == last
        seen = listed(lake)
        for name in seen.keys() | self.states[-1].keys():
            there, wanted = seen.get(name, Counter()), self.states[-1].get(name, Counter())
            # The file of an append that was undone stays in the directory until it is cleaned.
            assert wanted <= there and (there - wanted).keys() <= self.undone
        oldest = lake.position().oldest_readable
        for position in range(oldest, last + 1):
            assert ids_of(lake, lake.snapshot(position)) == self.states[position]
        pairs = list(itertools.combinations(range(oldest, last + 1), 2))
        for first, end in self.random.sample(pairs, min(len(pairs), count)):
            changed = net_changes(lake, first, end)
            before, after = self.states[first], self.states[end]
            names = before.keys() | after.keys()
            came = {name: after.get(name, Counter()) - before.get(name, Counter()) for name in names}
            went = {name: before.get(name, Counter()) - after.get(name, Counter()) for name in names}
            assert ids_of(lake, changed.added) == {name: rows for name, rows in came.items() if rows}, (first, end)
            assert ids_of(lake, changed.removed) == {name: rows for name, rows in went.items() if rows}, (first, end)


@pytest.mark.parametrize("partitioned", [True, False])
def test_histories(new_table: NewTable, partitioned: bool) -> None:
    for seed in range(2):
        check(new_table, partitioned, seed, steps=12, pairs=12)


@pytest.mark.long
@pytest.mark.parametrize("partitioned", [True, False])
def test_many_histories(new_table: NewTable, partitioned: bool) -> None:
    for seed in range(share_of(60)):
        check(new_table, partitioned, 1_000 + seed, steps=5 + seed % 20, pairs=40)


def check(new_table: NewTable, partitioned: bool, seed: int, steps: int, pairs: int) -> None:
    partitions = [DAY(1), DAY(2)] if partitioned else [""]
    history = History(new_table({}, COLUMNS, partitioned), seed, partitions)
    for _ in range(steps):
        history.step()
    history.check(pairs)
