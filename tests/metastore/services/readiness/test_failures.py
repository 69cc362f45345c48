"""Storage that fails, tables that are held: a batch that was accepted stays so, and nobody else suffers."""

import time

import pytest

from lake.protocol.hive import AlreadyExistsException, MetaException
from metastore.services.partition.writes import PartitionService
from metastore.services.readiness.service import ReadinessService
from metastore.services.wiring import Metastore
from metastore.store import DatabaseUnavailable
from metastore.warehouse import Warehouse, WarehouseError
from tests.metastore.services.readiness.lake import HOUR, HOURLY, StreamTable, at, hour
from tests.support.target import local_path

START = at("2026-01-01 00:00")
SUCCESS_FILE = {"sink.partition-commit.policy.kind": "metastore,success-file"}


def obstruct(table: StreamTable, name: str) -> None:
    """Nothing can be written into a partition's directory: a file lies where it should be. (Rights stop no root.)"""
    place = table.directory / name
    for file in place.iterdir():
        file.rename(place.parent / f".kept-{file.name}")
    place.rmdir()
    place.write_text("in the way")


def repair(table: StreamTable, name: str) -> None:
    place = table.directory / name
    place.unlink()
    place.mkdir()
    for file in place.parent.glob(".kept-*"):
        file.rename(place / file.name.removeprefix(".kept-"))


def test_batch_is_accepted_and_finished_later(table: StreamTable) -> None:
    table.add(hour(0), hour(1))
    obstruct(table, hour(0))
    answer = table.write(0, hour(0), hour(1), hour(5), s=START + 9 * HOUR)
    assert (answer.accepted, answer.committed) == (True, [hour(1), hour(5)])
    assert table.on_the_way() == 1
    everywhere = table.metastore.readiness.commit_due_everywhere
    everywhere()
    assert table.ready() == [hour(1), hour(5)]
    assert table.report(0, s=START).repeated is True
    repair(table, hour(0))
    everywhere()
    assert table.ready() == [hour(0), hour(1), hour(5)]
    assert table.files(hour(0)) == {"w-0-0.parquet"}


def test_move_that_fails_once(table: StreamTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that had been moved before is found moved."""
    move, failed = Warehouse.move_file, []

    def fail_once(self: Warehouse, source: str, target: str) -> bool:
        if not failed and target.endswith("-3.parquet"):
            failed.append(target)
            raise WarehouseError("the disk is full")
        return move(self, source, target)

    monkeypatch.setattr(Warehouse, "move_file", fail_once)
    answer = table.write(0, *(hour(0) for _ in range(6)), s=START + 9 * HOUR)
    assert answer.accepted is True
    assert failed
    table.metastore.readiness.commit_due_everywhere()
    assert table.ready() == [hour(0)]
    assert table.files(hour(0)) == {f"w-0-{number}.parquet" for number in range(6)}


def test_moves_that_are_rolled_back(table: StreamTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files have moved, the database doesn't know."""

    def fail(_: object, ids: list[int]) -> None:
        if ids:
            raise DatabaseUnavailable("the connection is lost")

    with monkeypatch.context() as patch:
        patch.setattr("metastore.store.files.publications.forget", fail)
        assert table.write(0, hour(0), hour(0), s=START).accepted is True
    assert table.on_the_way() == 2
    assert table.files(hour(0)) == {"w-0-0.parquet", "w-0-1.parquet"}
    assert table.report(1, s=START + 9 * HOUR).committed == [hour(0)]
    assert table.on_the_way() == 0
    assert table.files(hour(0)) == {"w-0-0.parquet", "w-0-1.parquet"}


def test_success_file_that_cannot_be_written(metastore: Metastore, db: str) -> None:
    table = StreamTable(metastore, db, properties=HOURLY | SUCCESS_FILE)
    table.write(0, hour(0), hour(1), s=START)
    obstruct(table, hour(0))
    assert table.report(1, s=START + 9 * HOUR).committed == [hour(1)]
    assert table.ready() == [hour(1)]
    with pytest.raises(WarehouseError, match="write"):
        table.commit(hour(0))
    repair(table, hour(0))
    metastore.readiness.commit_due_everywhere()
    assert table.files(hour(0)) == {"_SUCCESS", "w-0-0.parquet"}


def test_one_bad_table_stops_no_other(metastore: Metastore, db: str) -> None:
    tables = [StreamTable(metastore, db, name) for name in ("a", "b", "c")]
    for each in tables:
        each.write(0, hour(0), s=START)
    obstruct(tables[0], hour(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadinessService, "commit_due", lambda *_: [])
        tables[0].write(1, hour(0), s=START + 9 * HOUR)
        for each in tables[1:]:
            each.report(1, s=START + 9 * HOUR)
    unreadable = _id(tables[1])
    with metastore.database.write() as tx:  # nobody can read these properties
        tx.exec_driver_sql(
            """UPDATE tables SET parameters = parameters || '{"sink.partition-commit.delay": "x"}' WHERE id = %s""",
            (unreadable,),
        )
    metastore.readiness.commit_due_everywhere()
    assert [each.ready() for each in tables] == [[], [], [hour(0)]]


def test_held_tables_and_files_are_left_for_the_next_time(pair: tuple[Metastore, Metastore], db: str) -> None:
    """Somebody truncates a large table; the others go on meanwhile."""
    tables = [StreamTable(pair[0], db, name) for name in ("a", "b", "c")]
    for each in tables:
        each.write(0, hour(0), s=START)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadinessService, "commit_due", lambda *_: [])
        patch.setattr("metastore.services.files.staged_files.Publisher.carry_out", lambda *_: None)
        for each in tables:
            begun = each.begin(1)
            each.stage(begun, "x")
            each.report(1, begun, {"x": hour(0)}, s=START + 9 * HOUR)
    with pair[1].database.write() as tx:
        tx.exec_driver_sql("SELECT 1 FROM tables WHERE id = %s FOR UPDATE", (_id(tables[0]),))
        tx.exec_driver_sql("SELECT 1 FROM publications WHERE table_id = %s FOR UPDATE", (_id(tables[1]),))
        began = time.monotonic()
        pair[0].readiness.commit_due_everywhere()
        assert time.monotonic() - began < 10
        assert [each.ready() for each in tables] == [[], [], [hour(0)]]
    pair[0].readiness.commit_due_everywhere()
    assert [each.ready() for each in tables] == [[hour(0)]] * 3
    assert [each.files(hour(0)) for each in tables] == [{"w-0-0.parquet", "x"}] * 3


def test_report_stands_whatever_becomes_of_the_rest(table: StreamTable, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [MetaException("m"), AlreadyExistsException("a"), DatabaseUnavailable("d"), WarehouseError("w")]
    for number, error in enumerate(errors):

        def fail(*_: object, error: Exception = error) -> list[str]:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(ReadinessService, "commit_due", fail)
            answer = table.write(number, hour(0), s=START + number)
        assert (answer.accepted, answer.repeated, answer.watermark) == (True, False, START + number)
    assert len(table.files(hour(0))) == 4


def test_others_add_the_same_partitions_at_that_moment(table: StreamTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A primary and its stand-by do so all the time."""
    write, calls = PartitionService._write_new, []

    def overtaken(self: PartitionService, row, owner, fresh, located, context):  # type: ignore[no-untyped-def]
        calls.append(sorted(fresh))
        if len(calls) == 1:
            table.metastore.partitions.add(table.db, "t", [table.partition(hour(0))], {})
        return write(self, row, owner, fresh, located, context)

    monkeypatch.setattr(PartitionService, "_write_new", overtaken)
    table.add(hour(0), hour(1))
    assert calls == [[hour(0), hour(1)], [hour(0)], [hour(1)]]
    assert list(table.states()) == [hour(0), hour(1)]


def _id(table: StreamTable) -> int:
    with table.metastore.database.read() as tx:
        return table.metastore.tables.row(tx, table.db, table.name).id


@pytest.mark.parametrize("help_", ["put back", "dropped"])
def test_accepted_file_that_vanishes(table: StreamTable, monkeypatch: pytest.MonkeyPatch, help_: str) -> None:
    """Its partition isn't complete, and no batch completes, before somebody sees to it."""
    table.add(hour(0), hour(1))
    begun = table.begin(0)
    table.stage(begun, "a", "b")
    with monkeypatch.context() as patch:
        patch.setattr("metastore.services.files.staged_files.Publisher.carry_out", lambda *_: None)
        table.report(0, begun, {"a": hour(0), "b": hour(1)}, s=START)
    (local_path(begun.place) / "a").unlink()
    with pytest.raises(WarehouseError, match="cannot move"):
        table.report(1, s=START + 9 * HOUR)
    with pytest.raises(WarehouseError, match="cannot move"):
        table.commit(hour(0))
    assert table.commit(hour(1)) == [hour(1)]
    if help_ == "put back":
        table.stage(begun, "a")
    else:
        table.metastore.partitions.drop(table.db, table.name, name=hour(0), delete_data=True)
    table.metastore.readiness.commit_due_everywhere()
    table.report(1, s=START + 9 * HOUR)
    assert table.ready() == ([hour(0), hour(1)] if help_ == "put back" else [hour(1)])
