"""Micro-batches of streams whose partitions turn ready: no row comes into a ready one unnoticed."""

import threading
from typing import Any

import pytest

from lake.protocol.hive import AlreadyExistsException, InvalidOperationException
from lake.protocol.lake import CompletedInstant, InstantConflict, LateRows, Route
from metastore.services.model.visibility import Scope
from metastore.services.timeline import late_batches
from metastore.services.wiring import Metastore
from tests.metastore.services.readiness.lake import HOUR, HOURLY, at, hour
from tests.metastore.services.timeline.lake import LakeTable, file
from tests.support import builders

START = at("2026-01-01 00:00")
KEYED = {"primary-key": "id,dt,hr", "bucket": "1"}


class Hours(LakeTable):
    """A table of hourly partitions, and a stream into it."""

    def __init__(self, metastore: Metastore, db: str, late: str = "next", name: str = "t", **properties: str) -> None:
        parameters = {**HOURLY, "partition.late-rows": late, **properties}
        super().__init__(metastore, db, name, keys=("dt", "hr"), parameters=parameters)

    def write(self, group: str, *hours: int, **fields: Any) -> CompletedInstant:
        """Completes an instant that writes a file into the partitions of these hours."""
        instant = self.begin()
        return self.complete(
            instant, *(file(hour(each), group, instant.timestamp) for each in hours), keepsReady=True, **fields
        )

    def route(self, *hours: int) -> list[Route]:
        return self.metastore.routes.route(self.reference, [hour(each) for each in hours])

    def ready(self) -> list[str]:
        return self.metastore.partition_reads.names(Scope.READY, self.db, self.name)

    def files(self, **fields: Any) -> list[str]:
        return sorted(f"{each.partition}:{each.fileGroup}" for each in self.snapshot(**fields).files or ())

    def late(self) -> LateRows | None:
        return self.metastore.readiness.watermark(self.reference).late


@pytest.fixture
def hours(metastore: Metastore, db: str) -> Hours:
    """A table whose first hour is ready."""
    table = Hours(metastore, db)
    table.write("a", 0, 1, eventTimes={"s": START + HOUR + 1})
    assert table.ready() == [hour(0)]
    return table


def test_nothing_changes_if_a_partition_has_turned_ready(hours: Hours) -> None:
    before = hours.kept()
    instant = hours.begin()
    added = [file(hour(each), "b", instant.timestamp) for each in (0, 1)]
    answer = hours.complete(instant, *added, keepsReady=True, stream="q", batch=0)
    assert answer.alreadyReady == [hour(0)]
    assert (hours.ready(), hours.files(scope=Scope.UNCOMMITTED)) == ([hour(0)], [f"{hour(0)}:a", f"{hour(1)}:a"])
    [other] = hours.route(0)
    assert (other.action, other.target) == ("next", hour(1))
    routed = [file(hour(1), each, instant.timestamp) for each in ("b", "c")]
    late = LateRows(rerouted=10, reopened=0, dropped=0)
    done = hours.complete(instant, *routed, keepsReady=True, stream="q", batch=0, late=late)
    assert (done.alreadyReady, done.batchRepeated) == (None, None)
    assert hours.files(scope=Scope.UNCOMMITTED)[1:] == [f"{hour(1)}:{each}" for each in "abc"]
    assert hours.late() == late
    assert hours.kept()[0] == before[0] + 1
    repeated = hours.write("d", 1, stream="q", batch=0, late=late)
    assert repeated.batchRepeated
    assert hours.late() == late, "what is repeated isn't counted again"


def test_writers_that_say_nothing_go_on(hours: Hours) -> None:
    hours.commit("b", partition=hour(0))
    assert hours.files() == [f"{hour(0)}:a", f"{hour(0)}:b"]


def test_a_partition_is_reopened_with_its_late_rows(metastore: Metastore, db: str) -> None:
    properties = {"sink.partition-commit.policy.kind": "metastore,success-file"}
    table = Hours(metastore, db, late="reopen", **properties)
    table.write("a", 0, 1, eventTimes={"s": START + HOUR + 1})
    success = table.directory / hour(0) / "_SUCCESS"
    assert success.exists()
    position = table.instants()[-1].position or 0
    table.write("b", 0, reopen=[hour(0)], late=LateRows(0, 10, 0))
    assert table.ready() == [hour(0)], "it turned ready again with the batch"
    assert success.exists()
    assert table.files() == [f"{hour(0)}:a", f"{hour(0)}:b"]
    seen = [len(table.files(asOfPosition=position + each)) for each in range(4)]
    assert seen == [1, 0, 0, 2], "no position shows it as ready with a part of its rows"
    assert table.late() == LateRows(0, 10, 0)


def test_a_conflict_after_a_reopening_changes_nothing(metastore: Metastore, db: str) -> None:
    properties = {"sink.partition-commit.policy.kind": "metastore,success-file"}
    table = Hours(metastore, db, late="reopen", **properties)
    table.write("a", 0, eventTimes={"s": START + HOUR + 1})
    instant = table.begin()
    table.write("a", 0, reopen=[hour(0)])
    before = table.kept()
    with pytest.raises(InstantConflict):
        table.complete(instant, file(hour(0), "a", instant.timestamp), keepsReady=True, reopen=[hour(0)])
    assert table.kept()[0] == before[0]
    assert table.ready() == [hour(0)]
    assert (table.directory / hour(0) / "_SUCCESS").exists()


def test_what_is_refused(hours: Hours) -> None:
    instant = hours.begin()
    with pytest.raises(InvalidOperationException, match=r"only where partition\.late-rows is reopen, not next"):
        hours.complete(instant, file(hour(0), "b", instant.timestamp), keepsReady=True, reopen=[hour(0)])


def test_keyed_tables_follow_what_they_say(metastore: Metastore, db: str) -> None:
    def table(name: str, **properties: str) -> LakeTable:
        parameters = {**HOURLY, **KEYED, **properties}
        found = LakeTable(metastore, db, name, keys=("dt", "hr"), parameters=parameters, sd=builders.parquet())
        found.commit("bucket-00000", partition=hour(0), eventTimes={"s": START + HOUR + 1})
        return found

    def routed(of: LakeTable) -> Route:
        return metastore.routes.route(of.reference, [hour(0)])[0]

    assert routed(table("t")).action == "write", "an upsert changes the row of its key, wherever that is"
    dropping = table("d", **{"partition.late-rows": "drop"})
    assert routed(dropping).action == "drop"
    instant = dropping.begin()
    answer = dropping.complete(instant, file(hour(0), "bucket-00000", instant.timestamp), keepsReady=True)
    assert answer.alreadyReady == [hour(0)]
    with pytest.raises(InvalidOperationException, match="may move from one partition to another"):
        routed(table("w", **{"partition.late-rows": "drop", "primary-key": "id"}))


def test_no_row_is_lost_or_slips_in_while_partitions_turn_ready(metastore: Metastore, db: str) -> None:
    """A writer routes and completes while another one moves the watermark."""
    table = Hours(metastore, db)
    errors: list[BaseException] = []

    def move() -> None:
        try:
            for number in range(1, 13):
                table.write(f"w{number}", 40 + number, eventTimes={"s": START + number * HOUR + 1})
        except BaseException as error:
            errors.append(error)

    mover = threading.Thread(target=move)
    mover.start()
    for number in range(12):
        instant = table.begin()
        for _ in range(20):
            [route] = table.route(number)
            added = file(route.target or "", f"g{number}", instant.timestamp)
            ready = table.ready()
            if not table.complete(instant, added, keepsReady=True).alreadyReady:
                assert route.target not in ready
                break
        else:
            raise AssertionError("never accepted")
    mover.join()
    assert errors == []
    groups = [each.partition(":")[2] for each in table.files(scope=Scope.UNCOMMITTED)]
    assert sorted(each for each in groups if each.startswith("g")) == sorted(f"g{number}" for number in range(12))


@pytest.mark.parametrize("call", ["add", "alter", "commit"])
def test_who_makes_a_partition_ready_waits_for_a_completion_that_has_looked(
    pair: tuple[Metastore, Metastore], hours: Hours, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """By another server, once the completion has seen that the partition isn't ready."""
    other, number = pair[1], 5 if call == "add" else 1
    values = hour(number).replace("dt=", "").replace("hr=", "").split("/")
    wanted = builders.partition(hours.db, hours.name, *values, parameters={"commit": "true"})

    def turn() -> None:
        if call == "add":
            other.partitions.add(hours.db, hours.name, [wanted], {}, single=True)
        elif call == "alter":
            there = other.partition_reads.get_by_name(Scope.UNCOMMITTED, hours.db, hours.name, hour(number))
            altered = there.replace(parameters=wanted.parameters)
            other.partitions.alter(hours.db, hours.name, [altered], {}, single=True)
        else:
            other.partition_states.commit(hours.reference, [hour(number)], None, None)

    errors: list[BaseException] = []

    def turn_beside() -> None:
        try:
            turn()
        except BaseException as error:
            errors.append(error)

    beside = threading.Thread(target=turn_beside)
    look = late_batches.look

    def look_and_wait(*arguments: Any) -> late_batches.Late:
        found = look(*arguments)
        beside.start()
        beside.join(0.7)
        assert beside.is_alive(), "it waits until the completion has ended"
        return found

    monkeypatch.setattr(late_batches, "look", look_and_wait)
    answer = hours.write("b", number)
    monkeypatch.undo()
    beside.join()
    assert not answer.alreadyReady
    assert f"{hour(number)}:b" in hours.files(scope=Scope.UNCOMMITTED)
    if call == "add":
        assert [type(each) for each in errors] == [AlreadyExistsException]
        assert hour(number) not in hours.ready()
    else:
        assert errors == []
        assert hour(number) in hours.ready(), "with the rows that came before"
        assert hours.write("c", number).alreadyReady == [hour(number)]


def test_of_several_tables_all_ready_partitions_are_told(metastore: Metastore, db: str) -> None:
    tables = [Hours(metastore, db, name=name) for name in ("one", "two", "three")]
    for each in tables[:2]:
        each.write("a", 0, 1, 2, eventTimes={"s": START + 2 * HOUR + 1})
        assert each.ready() == [hour(0), hour(1)]
    begun = [(each, each.begin()) for each in tables]
    requests = [
        each.request(instant, *(file(hour(some), "b", instant.timestamp) for some in (0, 1, 2)), keepsReady=True)
        for each, instant in begun
    ]
    answers = metastore.instant_completion.complete(requests)
    assert [each.alreadyReady for each in answers] == [[hour(0), hour(1)], [hour(0), hour(1)], []]
    assert {each.instant.state for each in answers if each.instant} == {"inflight"}, "nothing has changed in any"
    assert tables[2].files(scope=Scope.UNCOMMITTED) == []


def test_late_rows_are_left_out(metastore: Metastore, db: str) -> None:
    table = Hours(metastore, db, late="drop")
    table.write("a", 0, 1, eventTimes={"s": START, "t": START + HOUR})
    assert [each.action for each in table.route(0, 1, 2)] == ["write", "write", "write"]
    table.write("b", 2, 3, eventTimes={"s": START + 2 * HOUR + 1, "t": START + 3 * HOUR})
    assert table.ready() == [hour(0), hour(1)]
    assert [each.action for each in table.route(0, 1, 2)] == ["drop", "drop", "write"]
    table.complete(table.begin(), keepsReady=True, late=LateRows(0, 0, 5))
    assert table.late() == LateRows(0, 0, 5)
