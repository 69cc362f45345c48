"""Batches of streams: a repeated one changes nothing, whoever repeats it and whenever."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import CompletedInstant, InstantConflict, InstantKey
from metastore.services.timeline import stream_batches
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.support.target import local_path


def commit(table: LakeTable, group: str, batch: int, stream: str = "orders", **fields: object) -> CompletedInstant:
    return table.commit(group, stream=stream, batch=batch, **fields)


def test_a_repeated_batch_changes_nothing(table: LakeTable) -> None:
    first = commit(table, "a", 0)
    assert not first.repeated
    assert not first.batchRepeated
    before = table.kept()
    again = commit(table, "b", 0)
    assert again.repeated
    assert again.batchRepeated
    assert table.kept() == before
    assert commit(table, "b", 1).instant.position == 2
    assert len(table.paths()) == 2


def test_an_earlier_batch_is_repeated_too(table: LakeTable) -> None:
    commit(table, "a", 7)
    assert commit(table, "b", 3).batchRepeated
    assert not commit(table, "b", 9).batchRepeated, "numbers may be left out: a stream has batches without rows"


def test_streams_and_tables_have_batches_of_their_own(table: LakeTable, metastore: Metastore, db: str) -> None:
    other = LakeTable(metastore, db, "other")
    commit(table, "a", 0)
    assert not commit(table, "b", 0, stream="returns").batchRepeated
    assert not commit(other, "a", 0).batchRepeated


def test_the_files_of_a_repeated_batch_are_deleted(table: LakeTable) -> None:
    commit(table, "a", 0)
    begun = table.begin()
    path = local_path(begun.directory or "") / "b.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("rows")
    relative = ".instants/" + (begun.directory or "").rpartition("/.instants/")[2]
    added = file(DAY(1), "b", begun.timestamp or "", path=f"{relative}/b.parquet")
    assert table.complete(begun, added, stream="orders", batch=0).batchRepeated
    table.delete_files()
    assert not path.exists()


def test_a_lost_answer_is_given_again(table: LakeTable) -> None:
    instant = table.begin()
    request = table.request(instant, file(DAY(1), "a", instant.timestamp or ""), stream="orders", batch=0)
    table.metastore.instant_completion.complete([request])
    [again] = table.metastore.instant_completion.complete([request])
    assert again.repeated
    assert not again.batchRepeated, "this very instant has completed the batch"


def test_a_lost_answer_about_a_repeated_batch_is_given_again(table: LakeTable, metastore: Metastore, db: str) -> None:
    other, complete = LakeTable(metastore, db, "other"), metastore.instant_completion.complete
    for each in (table, other):
        commit(each, "a", 0)
    begun = [(each, each.begin()) for each in (table, other)]
    requests = [
        each.request(instant, file(DAY(1), "b", instant.timestamp or ""), stream="orders", batch=0)
        for each, instant in begun
    ]
    first = complete(requests)
    before = table.kept(), other.kept()
    again = complete(requests)
    for answers in (first, again):
        assert [(each.instant.timestamp, each.batchRepeated) for each in answers if each.instant] == [
            (instant.timestamp, True) for _, instant in begun
        ]
    assert (table.kept(), other.kept()) == before
    with pytest.raises(NoSuchObjectException, match="has no instant"):
        complete([requests[0].replace(batch=1)])
    fresh = other.begin()
    alive = other.request(fresh, file(DAY(1), "b", fresh.timestamp or ""), stream="orders", batch=0)
    with pytest.raises(InvalidOperationException, match="some of the instants have been aborted"):
        complete([requests[0], alive])


def test_a_conflict_leaves_the_batch_open(table: LakeTable) -> None:
    table.commit("a")
    late = table.begin()
    table.commit("a")
    with pytest.raises(InstantConflict):
        table.complete(late, file(DAY(1), "a", late.timestamp or ""), stream="orders", batch=0)
    assert not commit(table, "a", 0).batchRepeated


def test_a_rolled_back_batch_stays_known(table: LakeTable) -> None:
    """Who rolled it back doesn't want it; a writer that starts again must not bring it back."""
    done = commit(table, "a", 0)
    undo = table.begin("rollback")
    assert done.instant is not None
    table.complete(undo, rolledBack=[InstantKey(done.instant.timestamp, done.instant.action)])
    assert commit(table, "a", 0).batchRepeated


def test_tables_together_have_a_batch_in_all_of_them_or_in_none(
    table: LakeTable, metastore: Metastore, db: str
) -> None:
    other = LakeTable(metastore, db, "other")
    complete = metastore.instant_completion.complete

    def together(batch: int) -> list[CompletedInstant]:
        begun = [(each, each.begin()) for each in (table, other)]
        requests = [
            each.request(instant, file(DAY(1), f"g{batch}", instant.timestamp or ""), stream="orders", batch=batch)
            for each, instant in begun
        ]
        return complete(requests)

    assert not any(each.batchRepeated for each in together(0))
    before = table.kept(), other.kept()
    assert all(each.batchRepeated for each in together(0))
    assert (table.kept(), other.kept()) == before
    commit(table, "alone", 5)
    with pytest.raises(InvalidOperationException, match=r"the batch of .*other is new"):
        together(5)


def test_of_two_writers_that_repeat_a_batch_one_completes_it(table: LakeTable) -> None:
    def race(batch: int) -> None:
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda number: commit(table, f"g{batch}-{number}", batch), range(4)))
        assert sum(not each.batchRepeated for each in done) == 1

    for batch in range(5):
        race(batch)
    assert len(table.paths()) == 5


@pytest.mark.parametrize(
    ("stream", "batch", "message"),
    [
        ("orders", None, "name of its stream and a number"),
        (None, 3, "name of its stream and a number"),
        ("", 3, "name of its stream and a number"),
        ("orders", -1, "name of its stream and a number"),
        ("o" * 257, 0, "at most 256 characters"),
    ],
)
def test_what_is_no_batch_is_refused(table: LakeTable, stream: str | None, batch: int | None, message: str) -> None:
    instant = table.begin()
    before = table.kept()
    with pytest.raises(InvalidOperationException, match=message):
        table.complete(instant, file(DAY(1), "a", instant.timestamp or ""), stream=stream, batch=batch)
    assert table.kept() == before


def test_streams_that_wrote_last_stay_known(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_batches, "MAX_STREAMS", 3)
    for number in range(3):
        commit(table, f"g{number}", 0, stream=f"s{number}")
    commit(table, "again", 1, stream="s0")
    commit(table, "fourth", 0, stream="s3")
    assert commit(table, "x", 1, stream="s0").batchRepeated
    assert commit(table, "x", 0, stream="s2").batchRepeated
    assert not commit(table, "x", 0, stream="s1").batchRepeated, "it was forgotten"


def test_a_table_made_again_knows_nothing(table: LakeTable, metastore: Metastore) -> None:
    commit(table, "a", 0)
    metastore.tables.drop(table.db, table.name, delete_data=True)
    again = LakeTable(metastore, table.db)
    assert not commit(again, "a", 0).batchRepeated
