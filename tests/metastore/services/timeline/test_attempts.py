"""A plan of a table service: one process runs it, others may after it has gone, and what it left does no harm."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import DataFile, FileGroup, Instant, InstantConflict
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.support.target import local_path

PLANNED = ("compaction", "logcompaction", "clustering", "replacecommit")


@pytest.fixture
def plan(table: LakeTable) -> Instant:
    """A compaction that nobody has taken up yet."""
    table.commit("a")
    return table.begin("compaction", state="requested", plan=[table.group("a")], metadata=b"what to do")


def take_up(table: LakeTable, plan: Instant, runner: str | None = None, **fields: object) -> Instant:
    move = table.metastore.timeline.transition
    return move(table.reference, plan.timestamp, plan.action, "inflight", None, runner=runner, **fields)


def give_back(table: LakeTable, plan: Instant, attempt: int | None = None) -> Instant:
    move = table.metastore.timeline.transition
    return move(table.reference, plan.timestamp, plan.action, "requested", None, attempt=attempt)


def beat(table: LakeTable, plan: Instant, attempt: int | None = None) -> None:
    table.metastore.timeline.heartbeat(table.reference, plan.timestamp, plan.action, attempt)


def put(run: Instant, name: str = "a.parquet") -> tuple[Path, DataFile]:
    """Writes a file into the directory of an attempt."""
    path = local_path(run.directory or "") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name)
    relative = ".instants/" + (run.directory or "").rpartition("/.instants/")[2]
    return path, file(DAY(1), "a", run.timestamp or "", path=f"{relative}/{name}")


@contextmanager
def silence(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Afterwards no heartbeat has been heard for long enough."""
    yield
    with monkeypatch.context() as patch:
        patch.setattr(table.metastore.timeline_sweeper, "_heartbeat_seconds", -1.0)
        table.metastore.timeline_sweeper.sweep()


def stored(table: LakeTable, plan: Instant) -> Instant:
    (found,) = [each for each in table.instants() if each.timestamp == plan.timestamp]
    return found


# --- taking up ------------------------------------------------------------------------------------------------


def test_attempts_are_counted(table: LakeTable, plan: Instant) -> None:
    assert (plan.attempt, table.begin().attempt) == (None, 1)
    for number in (1, 2, 3):
        run = take_up(table, plan)
        assert (run.attempt, stored(table, plan).attempt) == (number, number)
        assert (run.directory or "").endswith(f"/.instants/{plan.timestamp}.compaction/attempt-{number}")
        back = give_back(table, run, run.attempt)
        assert (back.state, back.attempt, back.directory) == ("requested", number, None)
    details = table.metastore.timeline_queries.details(table.reference, plan.timestamp, "compaction")
    assert (details.plan, details.metadata) == ([FileGroup(DAY(1), "a")], {"requested": b"what to do"})


def test_instants_without_a_plan_are_as_they_were(table: LakeTable) -> None:
    for action in ("commit", "compaction", "replacecommit"):
        begun = table.begin(action, state="requested")
        run = take_up(table, begun)
        assert (run.attempt, run.directory) == (1, begun.directory)
        assert (run.directory or "").endswith(f"/{begun.timestamp}.{action}")
        assert take_up(table, begun) == run
        assert take_up(table, begun, "somebody") == run
    with pytest.raises(InvalidOperationException, match="attempt 2"):
        table.complete(run, attempt=2)
    table.complete(run, attempt=1)


@pytest.mark.parametrize("action", PLANNED)
def test_one_process_runs_a_plan(table: LakeTable, action: str) -> None:
    plan = table.begin(action, state="requested", plan=[table.group("a")])
    run = take_up(table, plan, "one")
    assert take_up(table, plan, "one") == run
    for other in ("two", None):
        with pytest.raises(InvalidOperationException, match="run by another process"):
            take_up(table, plan, other)
    give_back(table, run)
    take_up(table, plan)
    with pytest.raises(InvalidOperationException, match="run by another process"):
        take_up(table, plan)
    begun = table.begin(action, plan=[table.group("a")])
    assert (begun.attempt, (begun.directory or "")[-10:]) == (1, "/attempt-1")
    with pytest.raises(InvalidOperationException, match="run by another process"):
        take_up(table, begun, "one")


@pytest.mark.parametrize("runner", ["", "x" * 65])
def test_names_of_runners(table: LakeTable, plan: Instant, runner: str) -> None:
    with pytest.raises(InvalidOperationException, match="1 to 64 characters"):
        take_up(table, plan, runner)
    assert stored(table, plan).state == "requested"


def test_of_many_processes_one_takes_a_plan_up(
    pair: tuple[Metastore, Metastore], table: LakeTable, plan: Instant
) -> None:
    def run(number: int) -> Instant | None:
        try:
            return take_up(table.on(pair[number % 2]), plan, f"process {number}")
        except InvalidOperationException:
            return None

    for attempt in range(1, 6):
        with ThreadPoolExecutor(6) as threads:
            (won,) = [each for each in threads.map(run, range(6)) if each is not None]
        assert won.attempt == attempt
        give_back(table, plan, attempt)


def test_of_two_that_end_a_run_the_first_counts(pair: tuple[Metastore, Metastore], table: LakeTable) -> None:
    """Who completes a run, and who takes it away at the same time: never both."""
    for _ in range(8):
        table.commit("a")
        plan = table.begin("compaction", state="requested", plan=[table.group("a")])
        run = take_up(table, plan)
        _, added = put(run)

        def complete(run: Instant = run, added: DataFile = added) -> bool:
            try:
                table.complete(run, added, attempt=1, newAction="commit")
            except InvalidOperationException:
                return False
            return True

        def take_away(run: Instant = run) -> bool:
            other = table.on(pair[1])
            try:
                give_back(other, run, 1)
                take_up(other, run)
            except InvalidOperationException:
                return False
            return True

        with ThreadPoolExecutor(2) as threads:
            ended = [threads.submit(complete), threads.submit(take_away)]
        completed, taken = (each.result() for each in ended)
        assert completed != taken
        assert stored(table, plan).state == ("completed" if completed else "inflight")
        table.delete_files()
        if completed:
            assert (table.directory / (added.path or "")).exists()
        else:
            assert not (table.directory / (added.path or "")).exists()
            table.metastore.timeline.delete(table.reference, plan.timestamp, "compaction")


# --- heartbeats that stop -------------------------------------------------------------------------------------


def test_the_plan_of_a_dead_process_is_requested_again(
    table: LakeTable, plan: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silence(table, monkeypatch):
        first = take_up(table, plan, "one", heartbeat=True)
        left, lost = put(first)
    found = stored(table, plan)
    assert (found.state, found.attempt, found.heartbeatAt) == ("requested", 1, None)
    details = table.metastore.timeline_queries.details(table.reference, plan.timestamp, "compaction")
    assert (details.plan, details.metadata) == ([FileGroup(DAY(1), "a")], {"requested": b"what to do"})
    with pytest.raises(InvalidOperationException, match="nobody runs it"):
        beat(table, plan, 1)
    with pytest.raises(InvalidOperationException, match="expected inflight"):
        table.complete(first, lost, attempt=1)
    with silence(table, monkeypatch):
        pass  # requested plans wait, however long that takes
    second = take_up(table, plan, "two", heartbeat=True)
    kept, added = put(second)
    table.delete_files()
    assert (left.exists(), kept.exists()) == (False, True)
    beat(table, plan, 2)
    for refused in (
        lambda: beat(table, plan, 1),
        lambda: give_back(table, plan, 1),
        lambda: table.complete(first, lost, attempt=1),
    ):
        with pytest.raises(InvalidOperationException, match="another process runs the plan now"):
            refused()
    with pytest.raises(InvalidOperationException, match="is of another attempt"):
        table.complete(first, lost)
    left.parent.mkdir(exist_ok=True)
    left.write_text("too late")
    for repeated in (False, True):
        assert table.complete(second, added, attempt=2, newAction="commit").repeated is repeated
    table.delete_files()
    assert (left.exists(), kept.exists()) == (False, True)
    assert table.paths() == [added.path]


def test_the_next_writer_notices_a_dead_process(
    table: LakeTable, plan: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_up(table, plan, heartbeat=True)
    monkeypatch.setattr(table.metastore.timeline, "_heartbeat_seconds", -1.0)
    table.begin()
    assert stored(table, plan).state == "requested"


def test_plans_that_are_not_run_die_of_silence_as_before(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    with silence(table, monkeypatch):
        begun = table.begin("compaction", state="requested", plan=[table.group("a")], heartbeat=True)
        table.begin("compaction", heartbeat=True)
    assert table.instants() == []
    with pytest.raises(NoSuchObjectException):
        take_up(table, begun)


def test_a_process_that_gives_a_plan_back_is_forgotten(
    table: LakeTable, plan: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silence(table, monkeypatch):
        run = take_up(table, plan, "one", heartbeat=True)
        left, _ = put(run)
        give_back(table, run, 1)
        assert give_back(table, run, 1).state == "requested"
    table.delete_files()
    assert not left.exists()
    assert (stored(table, plan).state, stored(table, plan).heartbeatAt) == ("requested", None)
    assert take_up(table, plan, "one").attempt == 2


# --- files ----------------------------------------------------------------------------------------------------


def test_a_conflict_leaves_the_plan_to_its_process(table: LakeTable, plan: Instant) -> None:
    run = take_up(table, plan)
    left, added = put(run)
    table.commit("a")
    with pytest.raises(InstantConflict):
        table.complete(run, added, attempt=1)
    table.delete_files()
    found = stored(table, plan)
    assert (found.state, bool(found.conflict), left.exists()) == ("inflight", True, True)
    give_back(table, run, 1)
    again = take_up(table, plan)
    kept, added = put(again)
    table.delete_files()
    assert (left.exists(), kept.exists()) == (False, True)
    with pytest.raises(InvalidOperationException, match="later slice"):
        table.complete(again, added, attempt=2, readPosition=2)
    table.metastore.timeline.delete(table.reference, plan.timestamp, "compaction")
    table.delete_files()
    assert not kept.exists()
    assert not kept.parent.parent.exists()


def test_who_aborts_a_plan_deletes_all_attempts(table: LakeTable) -> None:
    plan = table.begin("compaction", "20260101000000000", state="requested", plan=[table.group("a")])
    files = []
    for _ in range(3):
        run = take_up(table, plan)
        files.append(put(run)[0])
        give_back(table, run)
    table.metastore.timeline.delete(table.reference, plan.timestamp, "compaction")
    # Nothing has been deleted yet when an instant of the same name begins: its files aren't meant.
    again = table.begin("compaction", "20260101000000000", plan=[table.group("a")])
    assert not any(each.exists() for each in files)
    kept, _ = put(again)
    table.delete_files()
    assert kept.exists()


def test_staged_and_relocated_files_of_attempts(table: LakeTable) -> None:
    table.commit("a")
    plans = [table.begin(action, state="requested", plan=[table.group("a")]) for action in PLANNED[2:]]
    for plan in plans:
        give_back(table, take_up(table, plan))
    staged, relocated = (take_up(table, plan) for plan in plans)
    _, one = put(staged, f"{DAY(2)}/staged.parquet")
    _, two = put(relocated, f"{DAY(3)}/relocated.parquet")
    table.complete(staged, one.replace(partition=DAY(2), staged=True), attempt=2)
    table.complete(relocated, two.replace(partition=DAY(3)), replacedPartitions=[DAY(3)], relocate=True)
    table.delete_files()
    found = table.snapshot(partitions=[DAY(2), DAY(3)])
    assert [each.path for each in found.files or ()] == [f"{DAY(2)}/staged.parquet", two.path]
    for each in found.files or ():
        assert local_path(f"{found.location}/{each.path}").is_file()


def test_an_overwritten_table_without_keys_lies_in_an_attempt(metastore: Metastore, db: str) -> None:
    flat = LakeTable(metastore, db, keys=())
    home = flat.directory
    run = take_up(flat, flat.begin("replacecommit", state="requested", plan=[FileGroup("", "a")]))
    _, added = put(run)
    flat.complete(run, added.replace(partition=""), replacedPartitions=[""], relocate=True)
    assert flat.directory == home / f".instants/{run.timestamp}.replacecommit/attempt-1"
    assert local_path(flat.snapshot().location or "") == home
    begun = flat.begin()
    assert local_path(begun.directory or "").parent == home / ".instants"
