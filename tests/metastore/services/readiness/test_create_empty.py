"""Partitions that got no row: added, empty and ready, once their time has passed, where the table wants them."""

import logging
from collections.abc import Callable

import pytest

from lake.protocol.formats.commit_mode import COMMIT_MODE
from lake.protocol.hive import InvalidObjectException
from metastore.services.commit_flag.policy import CREATE_EMPTY, INTERVAL, TIMESTAMP_PATTERN
from metastore.services.readiness import empty_partitions
from metastore.services.wiring import Metastore
from tests.metastore.services.readiness.lake import HOUR, HOURLY, StreamTable, at, hour

WANTED = HOURLY | {CREATE_EMPTY: "true", "sink.partition-commit.policy.kind": "metastore,success-file"}
START = at("2026-01-01 00:00")


@pytest.fixture
def table(metastore: Metastore, db: str) -> StreamTable:
    return StreamTable(metastore, db, properties=WANTED)


def test_gaps_and_what_comes_after_the_last(table: StreamTable) -> None:
    table.write(0, hour(1), hour(4), s=START + HOUR)
    answer = table.report(1, s=START + 7 * HOUR + 1)
    assert answer.committed == [hour(number) for number in range(1, 7)] == table.ready()
    for number in (2, 3, 5, 6):
        assert table.files(hour(number)) == {"_SUCCESS"}
    assert table.files(hour(4)) == {"_SUCCESS", "w-0-1.parquet"}


def test_not_before_their_time(table: StreamTable) -> None:
    table.write(0, hour(0), s=START)
    table.report(1, s=START + 2 * HOUR)
    assert list(table.states()) == [hour(0)]
    table.report(2, s=START + 2 * HOUR + 1)
    assert list(table.states()) == [hour(0), hour(1)]


def test_not_unless_wanted(metastore: Metastore, db: str) -> None:
    for name, said in (("absent", {}), ("false", {CREATE_EMPTY: "false"})):
        table = StreamTable(metastore, db, name, properties=HOURLY | said)
        table.write(0, hour(0), s=START)
        table.report(1, s=START + 9 * HOUR)
        assert list(table.states()) == [hour(0)]


def test_nothing_before_the_first_partition(table: StreamTable) -> None:
    table.report(0, s=START + 9 * HOUR)
    assert table.states() == {}
    table.write(1, hour(9), s=START + 11 * HOUR)
    assert list(table.states()) == [hour(9)]


def test_what_was_dropped_stays_away(table: StreamTable) -> None:
    table.write(0, hour(0), s=START + 5 * HOUR)
    table.metastore.partitions.drop(table.db, table.name, name=hour(2), delete_data=True)
    table.report(1, s=START + 6 * HOUR)
    assert list(table.states()) == [hour(number) for number in (0, 1, 3, 4)]


def test_once_though_many_servers_look(pair: tuple[Metastore, Metastore], table: StreamTable) -> None:
    table.write(0, hour(0), s=START)
    for number in range(1, 6):
        table.through(pair[number % 2]).report(number, s=START + number * HOUR + 1)
        pair[(number + 1) % 2].readiness.commit_due_everywhere()
    assert table.ready() == [hour(number) for number in range(5)]


def test_many_are_added_in_several_steps(table: StreamTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks next goes on."""
    monkeypatch.setattr(empty_partitions, "MAX_EMPTY", 10)
    table.write(0, hour(0), s=START + HOUR + 1)
    table.report(1, s=START + 36 * HOUR)
    assert len(table.ready()) == 11
    for expected in (21, 31, 35, 35):
        table.metastore.readiness.commit_due_everywhere()
        assert len(table.ready()) == expected


def test_one_wrong_old_row_makes_no_flood(table: StreamTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first partition lies decades back; the empty ones begin as many before the watermark as are added at once."""
    monkeypatch.setattr(empty_partitions, "MAX_EMPTY", 10)
    table.write(0, "dt=1970-01-01/hr=00", hour(30), s=START + 31 * HOUR)
    for _ in range(3):
        table.metastore.readiness.commit_due_everywhere()
    assert table.ready() == ["dt=1970-01-01/hr=00", *(hour(number) for number in range(21, 30))]


def test_goes_on_after_a_crash(table: StreamTable, restarted: Callable[[], Metastore]) -> None:
    """The report was accepted, nobody looked, and no partition is uncommitted that would make somebody look."""
    table.write(0, hour(0), s=START + 2 * HOUR)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(table.metastore.readiness), "commit_due", lambda *_: [])
        table.report(1, s=START + 5 * HOUR)
    assert table.ready() == [hour(0)]
    restarted().readiness.commit_due_everywhere()
    assert table.ready() == [hour(number) for number in range(4)]


def test_values_are_written_like_those_that_are_there(metastore: Metastore, db: str) -> None:
    properties = WANTED | {
        TIMESTAMP_PATTERN: "$dt $hr:00",
        "partition.time-extractor.timestamp-formatter": "yyyyMMdd H:mm",
    }
    table = StreamTable(metastore, db, properties=properties)
    table.write(0, "dt=20260101/hr=8", s=START + 12 * HOUR)
    assert list(table.states()) == [f"dt=20260101/hr={hr}" for hr in (10, 8, 9)]


def test_ten_minutes(metastore: Metastore, db: str) -> None:
    properties = WANTED | {TIMESTAMP_PATTERN: "$dt $hm:00", INTERVAL: "10 min", "sink.partition-commit.delay": "10 min"}
    table = StreamTable(metastore, db, keys=("dt", "hm"), properties=properties)
    table.write(0, "dt=2026-01-01/hm=00%3A20", s=START + HOUR + 1)
    assert list(table.states()) == [f"dt=2026-01-01/hm=00%3A{minute}" for minute in (20, 30, 40, 50)]


def test_only_where_all_keys_say_the_time(metastore: Metastore, db: str) -> None:
    """Which values others should have isn't known: empty partitions couldn't be named."""
    with pytest.raises(InvalidObjectException, match=r"partition\.create-empty.*country"):
        StreamTable(metastore, db, keys=("dt", "hr", "country"), properties=WANTED)
    StreamTable(metastore, db, keys=("dt", "hr", "country"))


def test_values_that_cannot_say_the_next_hour_hold_nobody_up(
    metastore: Metastore, db: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    table = StreamTable(metastore, db, keys=("ts",), properties=WANTED | {TIMESTAMP_PATTERN: "$ts", INTERVAL: "1 h"})
    table.write(0, "ts=2026-01-01", "ts=2026-01-01 05%3A00%3A00", s=START + 9 * HOUR)
    assert table.ready() == ["ts=2026-01-01", "ts=2026-01-01 05%3A00%3A00"]


def test_other_modes_add_nothing(metastore: Metastore, db: str) -> None:
    table = StreamTable(metastore, db, properties=WANTED | {COMMIT_MODE: "manual"})
    table.write(0, hour(0), s=START + 9 * HOUR)
    metastore.readiness.commit_due_everywhere()
    assert list(table.states()) == [hour(0)]
