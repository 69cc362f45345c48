"""Who begins doesn't wait for who completes, and knows all the same which completions it has read."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from lake.protocol.hive import InvalidObjectException, InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import Column, CompletedInstant, CompleteInstantRequest, InstantConflict
from metastore.services.events.recorder import Events
from metastore.services.wiring import Metastore
from metastore.store import schema
from metastore.store.partition import partitions
from metastore.store.partition.partitions import Selection
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.support import builders

PATIENCE = 60
"""Seconds in which even a loaded machine does what waits for nobody."""


@contextmanager
def completing(
    table: LakeTable, request: CompleteInstantRequest, threads: ThreadPoolExecutor
) -> Iterator[Future[list[CompletedInstant]]]:
    """A completion that stands in the midst of its work during the block, since it can't have a partition's row."""
    database = table.metastore.database
    with database.write() as tx:
        row = table.metastore.tables.row(tx, table.db, table.name)
        partitions.rows(tx, Selection(row.id, names=[DAY(1)]), lock=True)
        done = threads.submit(table.metastore.instant_completion.complete, [request])
        while not tx.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted").scalar_one():
            assert not done.done()
        yield done
        assert not done.done()


@pytest.mark.parametrize("columns", [None, [Column("id", "bigint"), Column("name", "string"), Column("new", "int")]])
def test_others_begin_while_one_completes(pair: tuple[Metastore, Metastore], table: LakeTable, columns: object) -> None:
    table.commit("a")
    slow, other = table.begin(), table.begin("compaction")
    request = table.request(slow, file(DAY(1), "a", slow.timestamp or ""), columns=columns)
    elsewhere = table.on(pair[1])
    with ThreadPoolExecutor(2) as threads:
        with completing(table, request, threads) as done:
            begun = threads.submit(elsewhere.begin).result(PATIENCE)
            timeline = elsewhere.metastore.timeline
            key = (table.reference, other.timestamp, other.action)
            threads.submit(timeline.heartbeat, *key).result(PATIENCE)
            threads.submit(timeline.transition, *key, "requested", None).result(PATIENCE)
            threads.submit(timeline.delete, *key).result(PATIENCE)
            assert elsewhere.snapshot().position == begun.readPosition == 1
        completed = done.result(PATIENCE)[0].instant
    assert completed is not None and completed.position == 2
    assert (begun.timestamp or "") < (completed.completionTime or "")
    with pytest.raises(InstantConflict):
        elsewhere.complete(begun, file(DAY(1), "a", begun.timestamp or ""))
    late = elsewhere.begin()
    assert late.readPosition == 2
    assert (late.timestamp or "") > (completed.completionTime or "")


def test_who_begins_has_read_what_was_completed_before_its_timestamp(
    pair: tuple[Metastore, Metastore], table: LakeTable
) -> None:
    def write(number: int) -> None:
        mine = table.on(pair[number % 2])
        chance = random.Random(number)
        for turn in range(6):
            begun = mine.begin()
            if chance.random() < 0.7:
                mine.complete(begun, file(DAY(1 + turn % 3), f"{number}-{turn}", begun.timestamp or ""))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(write, range(6)))
    everything = table.instants()
    completions = [each for each in everything if each.position is not None]
    assert completions
    for each in everything:
        for other in completions:
            seen = (each.readPosition or 0) >= (other.position or 0)
            assert seen == ((each.timestamp or "") > (other.completionTime or ""))
    times = sorted((each.position or 0, each.completionTime or "") for each in completions)
    assert [time for _, time in times] == sorted(time for _, time in times)


def test_a_table_is_dropped_while_others_begin(metastore: Metastore, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = LakeTable(metastore, db)
    table.commit("a")
    stopped = threading.Event()

    def begin() -> None:
        while not stopped.is_set():
            try:
                table.begin()
            except NoSuchObjectException:
                return

    def pause(self: Events, *arguments: object) -> None:
        """The table's rows are gone, and that isn't committed yet."""
        removed.set()
        assert not any(each.done() for each in beginning)

    removed = threading.Event()
    monkeypatch.setattr(Events, "table", pause)
    with ThreadPoolExecutor(3) as threads:
        beginning = [threads.submit(begin) for _ in range(3)]
        try:
            metastore.tables.drop(db, "t", delete_data=True)
            for each in beginning:
                each.result(PATIENCE)
        finally:
            stopped.set()
    assert removed.is_set()
    with metastore.database.read() as tx:
        for name in ("instants", "timelines"):
            orphans = f"SELECT count(*) FROM {name} WHERE table_id NOT IN (SELECT id FROM tables)"
            assert tx.exec_driver_sql(orphans).scalar_one() == 0


def test_a_savepoint_of_what_was_cleaned_meanwhile(table: LakeTable) -> None:
    first = table.commit("a").instant
    assert first is not None
    saved = table.begin("savepoint", first.timestamp)
    table.commit("a")
    table.clean(table.clean_plan(keepCommits=1))
    with pytest.raises(InvalidOperationException, match="have been cleaned already"):
        table.complete(saved)
    table.metastore.timeline.delete(table.reference, saved.timestamp, "savepoint")
    assert table.keys(states=["inflight"]) == []


@pytest.mark.parametrize("name", ["timeline.conflict-strategy", "timeline.schema-changes"])
def test_a_property_that_means_nothing_is_refused_before_anything_is_written(table: LakeTable, name: str) -> None:
    bad = {name: "banana"}
    with pytest.raises(InvalidObjectException, match=rf"{table.db}\.other: {name}.*'banana'"):
        table.metastore.tables.create(builders.table(table.db, "other", parameters=bad), {})
    changed = table.hive.replace(parameters={**(table.hive.parameters or {}), **bad})
    with pytest.raises(InvalidOperationException, match=rf"{table.db}\.t: {name}.*'banana'"):
        table.metastore.tables.alter(table.db, table.name, changed, {})
    begun = table.begin()
    with table.metastore.database.write() as tx:  # by a server that did not look
        row = table.metastore.tables.row(tx, table.db, table.name)
        values = schema.table.tables.update().where(schema.table.tables.c.id == row.id)
        tx.execute(values.values(parameters={**row.parameters, **bad}, version=row.version + 1))
    with pytest.raises(InvalidOperationException, match=rf"^{name}.*'banana'") as caught:
        table.begin()
    with pytest.raises(InvalidOperationException) as late:
        table.complete(begun, columns=[Column("id", "bigint"), Column("more", "int")])
    assert str(late.value) == str(caught.value)
    assert table.begin("rollback").state == "inflight"
