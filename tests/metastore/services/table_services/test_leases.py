"""Cleans keep what readers read, what savepoints protect, and what plans and uncommitted partitions need."""

import threading
import time

import pytest

from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import LeaseRequest, ReaderLease, SnapshotGone, TableReference
from metastore.services.snapshot import reader_leases
from metastore.services.wiring import Metastore
from metastore.store.snapshot import leases
from tests.metastore.services.timeline.lake import DAY, LakeTable, file


def lease(table: LakeTable, name: str = "reader", *, position: int | None = None, seconds: int = 600) -> ReaderLease:
    request = LeaseRequest(table.reference, name, position, seconds, "a test")
    return table.metastore.reader_leases.take(request)


def release(table: LakeTable, name: str = "reader") -> None:
    table.metastore.reader_leases.release(table.reference, name)


def test_a_lease_keeps_its_snapshot(table: LakeTable) -> None:
    for _ in range(2):
        table.commit("a")
    taken = lease(table)
    assert (taken.position, taken.holder) == (2, "a test")
    for _ in range(3):
        table.commit("a")
    read = table.paths(asOfPosition=2)
    plan = table.clean_plan(keepCommits=1)
    assert read[0] not in plan
    assert len(plan) == 3
    with pytest.raises(InvalidOperationException, match="a reader's lease"):
        table.clean([*plan, *read])
    table.clean(plan)
    assert table.paths(asOfPosition=2) == read
    with pytest.raises(SnapshotGone):
        table.paths(asOfPosition=3)
    assert lease(table).position == 2, "the same lease is renewed on its own snapshot"
    release(table)
    release(table)
    assert table.clean_plan(keepCommits=1) == read
    table.clean(read)
    with pytest.raises(SnapshotGone):
        table.paths(asOfPosition=2)
    with pytest.raises(SnapshotGone):
        lease(table, position=2)


def test_it_ends_by_the_clock_of_the_database(table: LakeTable) -> None:
    table.commit("a")
    lease(table, seconds=1)
    table.commit("a")
    assert table.clean_plan(keepCommits=1) == []
    time.sleep(1.1)
    assert len(table.clean_plan(keepCommits=1)) == 1
    assert table.metastore.reader_leases.listing(table.reference) == []
    assert lease(table).position == 2, "it has ended: a new one is on the latest snapshot"
    table.metastore.reader_leases.sweep()
    assert len(table.metastore.reader_leases.listing(table.reference)) == 1


@pytest.mark.parametrize("action", ["commit", "compaction", "publish"])
def test_who_writes_keeps_what_it_has_read(table: LakeTable, action: str) -> None:
    for _ in range(2):
        table.commit("a")
    writing = table.begin(action, heartbeat=True)
    read = table.paths()
    for _ in range(2):
        table.commit("a")
    plan = table.clean_plan(keepCommits=1)
    assert read[0] not in plan
    assert len(plan) == 1, "what was superseded before it began"
    with pytest.raises(InvalidOperationException, match="a writer at work"):
        table.clean([*plan, *read])
    table.clean(plan)
    assert table.paths(asOfPosition=writing.readPosition) == read
    table.metastore.timeline.delete(table.reference, writing.timestamp, writing.action)
    assert read[0] in table.clean_plan(keepCommits=1)


def test_who_sends_no_heartbeats_or_reads_no_files_keeps_nothing(table: LakeTable) -> None:
    table.commit("a")
    table.begin("commit")
    table.begin("commit", state="requested")
    for action in ("clean", "rollback"):
        table.begin(action, heartbeat=True)
    table.commit("a")
    assert len(table.clean_plan(keepCommits=1)) == 1


def test_a_clean_and_a_lease_at_once(table: LakeTable, pair: tuple[Metastore, Metastore]) -> None:
    """A lease that is granted while a clean goes on is on a snapshot that the clean leaves whole, or it is refused."""
    for _ in range(3):
        table.commit("a")
    waited = threading.Event()
    outcome: list[object] = []

    def take() -> None:
        waited.set()
        try:
            outcome.append(lease(table.on(pair[1]), position=1))
        except SnapshotGone as gone:
            outcome.append(gone)

    with pair[0].database.write() as tx:
        row = pair[0].tables.row(tx, table.db, table.name)
        leases.hold_off_leases(tx, row.id)
        thread = threading.Thread(target=take)
        thread.start()
        waited.wait()
        time.sleep(0.2)
        assert outcome == [], "it waits for the clean"
    thread.join()
    assert isinstance(outcome[0], ReaderLease)
    with pytest.raises(InvalidOperationException, match="a reader's lease"):
        table.clean(table.paths(asOfPosition=1))


def test_what_a_pending_plan_reads_is_kept(table: LakeTable) -> None:
    table.commit("a", "b")
    plan = table.begin("clustering", state="requested", plan=[table.group("a")])
    table.commit("a", "b")
    [of_a] = [each for each in table.paths(asOfPosition=1) if "/a_" in each]
    table.commit("a", "b")
    plan_of_clean = table.clean_plan(keepCommits=1)
    assert len(plan_of_clean) == 3, "of what came after the plan nothing is kept for it"
    assert of_a not in plan_of_clean
    with pytest.raises(InvalidOperationException, match="a pending plan"):
        table.clean([of_a])
    table.metastore.timeline.delete(table.reference, plan.timestamp, "clustering")
    assert of_a in table.clean_plan(keepCommits=1)


def test_uncommitted_partitions_are_kept(metastore: Metastore, table: LakeTable) -> None:
    table.commit("a")
    first = table.paths()
    table.commit("a")
    metastore.partition_states.reopen(table.reference, [DAY(1)], None)
    assert table.clean_plan(keepCommits=1) == []
    with pytest.raises(InvalidOperationException, match="an uncommitted partition"):
        table.clean(first)
    metastore.partition_states.commit(table.reference, [DAY(1)], None, "me")
    assert table.clean_plan(keepCommits=1) == first


def test_a_log_file_that_grew_is_whole_while_a_savepoint_reads_it(table: LakeTable) -> None:
    """Its rows at two sizes are one file: what needs one of them keeps it."""
    slice = table.commit("a").instant.timestamp or ""  # type: ignore[union-attr]
    log = file(DAY(1), "a", slice, kind="log", size=1)
    table.complete(table.begin("deltacommit"), log)
    saved = table.complete(table.begin("deltacommit"), log.replace(size=2)).instant
    assert saved is not None
    table.complete(table.begin("savepoint", saved.timestamp))
    table.complete(table.begin("clustering"), removedGroups=[table.group("a")])
    assert table.clean_plan(keepCommits=1) == []
    with pytest.raises(InvalidOperationException, match="to a savepoint"):
        table.clean([log.path or ""])
    assert (log.path or "") in table.paths(asOf=saved.timestamp)


def test_a_log_file_that_grew_is_whole_while_its_snapshot_is_kept(table: LakeTable) -> None:
    slice = table.commit("a").instant.timestamp or ""  # type: ignore[union-attr]
    log = file(DAY(1), "a", slice, kind="log", size=1)
    for size in (1, 2):
        table.complete(table.begin("deltacommit"), log.replace(size=size))
    table.complete(table.begin("clustering"), removedGroups=[table.group("a")])
    assert table.clean_plan(keepCommits=2) == [], "the snapshot before the last commit has the file"
    assert set(table.clean_plan(keepCommits=1)) == {log.path, f"{DAY(1)}/a_{slice}.parquet"}


def test_what_means_nothing_is_refused(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table.commit("a")
    for name, seconds, position in (("", 1, None), ("x" * 65, 1, None), ("a", 0, None), ("a", 86_401, None)):
        with pytest.raises(InvalidOperationException):
            lease(table, name, seconds=seconds, position=position)
    for position in (-1, 2):
        with pytest.raises(InvalidOperationException, match="has no position"):
            lease(table, position=position)
    with pytest.raises(NoSuchObjectException):
        table.metastore.reader_leases.release(TableReference(database=table.db, table="missing"), "a")
    monkeypatch.setattr(reader_leases, "MAX_LEASES", 1)
    lease(table)
    lease(table)
    with pytest.raises(InvalidOperationException, match="release some"):
        lease(table, "another")
