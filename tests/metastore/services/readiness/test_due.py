"""When partitions turn ready, by whom, and that each does so once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lake.protocol.formats.commit_mode import COMMIT_MODE
from lake.protocol.hive import InvalidObjectException
from metastore.services.commit_flag.commit_flag import COMMIT, COMMIT_TIME, COMMITTED_BY, OPENED
from metastore.services.commit_flag.policy import INTERVAL, TIMESTAMP_PATTERN, WATERMARK_TIME_ZONE
from metastore.services.wiring import Metastore
from tests.metastore.services.readiness.conftest import Clock
from tests.metastore.services.readiness.lake import DAY, HOUR, HOURLY, MINUTE, StreamTable, at, hour
from tests.support.target import local_path

DELAY = "sink.partition-commit.delay"


def test_only_after_start_and_delay(table: StreamTable) -> None:
    table.add(hour(0), hour(1), hour(2))
    assert table.report(0, s=at("2026-01-01 01:00")).committed == []
    assert table.report(1, s=at("2026-01-01 01:00") + 1).committed == [hour(0)]
    assert table.ready() == [hour(0)]
    assert table.report(2, s=at("2026-01-01 03:00") + 1).committed == [hour(1), hour(2)]


def test_without_delay_at_the_start(metastore: Metastore, db: str) -> None:
    """As in Flink, whose default that is."""
    table = StreamTable(metastore, db, properties=HOURLY | {DELAY: "0"})
    table.add(hour(1))
    assert table.report(0, s=at("2026-01-01 01:00")).committed == []
    assert table.report(1, s=at("2026-01-01 01:00") + 1).committed == [hour(1)]


def test_ten_minutes(metastore: Metastore, db: str) -> None:
    properties = {COMMIT_MODE: "event-time", TIMESTAMP_PATTERN: "$dt $hm:00", DELAY: "10 min", INTERVAL: "10 min"}
    table = StreamTable(metastore, db, keys=("dt", "hm"), properties=properties)
    names = [f"dt=2026-01-01/hm=00%3A{minute:02}" for minute in range(0, 40, 10)]
    table.add(*names)
    assert table.report(0, s=at("2026-01-01 00:10")).committed == []
    assert table.report(1, s=at("2026-01-01 00:10") + 1).committed == names[:1]
    assert table.report(2, s=at("2026-01-01 00:35")).committed == names[1:3]


@pytest.mark.parametrize(
    ("zone", "ends"),
    [
        ("UTC", "2026-07-01 01:00"),
        ("Europe/Berlin", "2026-06-30 23:00"),
        ("Asia/Kolkata", "2026-06-30 19:30"),
        ("GMT-08:00", "2026-07-01 09:00"),
    ],
)
def test_values_are_of_the_clock_of_a_zone(metastore: Metastore, db: str, zone: str, ends: str) -> None:
    table = StreamTable(metastore, db, properties=HOURLY | {WATERMARK_TIME_ZONE: zone})
    table.add("dt=2026-07-01/hr=00")
    assert table.report(0, s=at(ends)).committed == []
    assert table.report(1, s=at(ends) + 1).committed == ["dt=2026-07-01/hr=00"]


def test_hour_that_comes_twice_is_complete_after_the_second(metastore: Metastore, db: str) -> None:
    table = StreamTable(metastore, db, properties=HOURLY | {WATERMARK_TIME_ZONE: "Europe/Berlin"})
    table.add("dt=2026-10-25/hr=01", "dt=2026-10-25/hr=02", "dt=2026-10-25/hr=03")
    assert table.report(0, s=at("2026-10-25 01:59")).committed == ["dt=2026-10-25/hr=01"]
    assert table.report(1, s=at("2026-10-25 02:00") + 1).committed == ["dt=2026-10-25/hr=02"]
    assert table.report(2, s=at("2026-10-25 03:00") + 1).committed == ["dt=2026-10-25/hr=03"]


def test_values_that_say_no_time_never_turn(metastore: Metastore, db: str) -> None:
    table = StreamTable(metastore, db)
    table.add("dt=__HIVE_DEFAULT_PARTITION__/hr=00", "dt=yesterday/hr=noon", hour(0))
    assert table.report(0, s=at("2026-06-01 00:00")).committed == [hour(0)]
    assert table.ready() == [hour(0)]
    assert table.commit("dt=yesterday/hr=noon") == ["dt=yesterday/hr=noon"]


def test_partition_that_is_added_too_late_turns_with_the_next_look(table: StreamTable) -> None:
    table.report(0, s=at("2026-01-02 00:00"))
    table.add(hour(0))
    assert table.ready() == []
    table.metastore.readiness.commit_due_everywhere()
    assert table.ready() == [hour(0)]


def test_says_by_whom_and_when(table: StreamTable) -> None:
    table.add(hour(0))
    table.report(0, chain="primary", s=at("2026-01-01 05:00"))
    parameters = table.get(hour(0)).parameters or {}
    state = table.states()[hour(0)]
    assert (parameters[COMMIT], parameters[COMMITTED_BY]) == ("true", "primary")
    assert parameters[COMMIT_TIME] == str(state.commitTime)
    assert (state.ready, state.committedBy, state.openedTime) == (True, "primary", None)


def test_delay_that_is_changed_counts_at_once(table: StreamTable) -> None:
    table.add(hour(0))
    table.report(0, s=at("2026-01-01 00:30"))
    table.metastore.readiness.commit_due_everywhere()
    assert table.ready() == []
    table.change(**{"sink_partition__commit_delay": "10 min"})
    table.metastore.readiness.commit_due_everywhere()
    assert table.ready() == [hour(0)]


def test_idle_source_that_is_given_up_lets_partitions_turn(table: StreamTable, clock: Clock) -> None:
    table.add(hour(0))
    table.report(0, a=at("2026-01-01 00:30"), b=at("2026-01-01 02:00"))
    everywhere = table.metastore.readiness.commit_due_everywhere
    everywhere()
    clock.pass_(50 * MINUTE)
    table.report(1, b=at("2026-01-01 02:00"))
    everywhere()
    assert table.ready() == []
    clock.pass_(11 * MINUTE)
    everywhere()
    assert table.ready() == [hour(0)]
    assert table.watermark().watermark == at("2026-01-01 02:00")


# --- modes ----------------------------------------------------------------------------------------------------


def test_manual_mode_commits_nothing(metastore: Metastore, db: str) -> None:
    table = StreamTable(metastore, db, properties=HOURLY | {COMMIT_MODE: "manual"})
    table.add(hour(0))
    assert table.report(0, s=at("2026-06-01 00:00")).committed == []
    metastore.readiness.commit_due_everywhere()
    assert table.ready() == []
    assert table.commit_due() == []
    assert table.watermark().watermark == at("2026-06-01 00:00")


def test_by_the_clock(metastore: Metastore, db: str, clock: Clock) -> None:
    table = StreamTable(metastore, db, properties={COMMIT_MODE: "process-time", DELAY: "30 min"})
    table.add(hour(0), hour(1))
    everywhere = metastore.readiness.commit_due_everywhere
    clock.pass_(29 * MINUTE)
    everywhere()
    assert table.ready() == []
    clock.pass_(2 * MINUTE)
    everywhere()
    assert table.ready() == [hour(0), hour(1)]
    assert table.states()[hour(0)].committedBy == "process-time"


def test_by_the_clock_although_clients_alter_with_objects_of_their_own(
    metastore: Metastore, db: str, clock: Clock
) -> None:
    """As Hive's load path does: no time of creation, no parameters."""
    table = StreamTable(metastore, db, properties={COMMIT_MODE: "process-time", DELAY: "30 min"})
    table.add(hour(0))
    place = table.get(hour(0)).sd
    metastore.partitions.alter(db, "t", [table.partition(hour(0)).replace(sd=place)], {})
    clock.pass_(29 * MINUTE)
    metastore.readiness.commit_due_everywhere()
    assert table.ready() == []
    clock.pass_(2 * MINUTE)
    metastore.readiness.commit_due_everywhere()
    assert table.ready() == [hour(0)]


@pytest.mark.parametrize("ahead", [8 * DAY, -8 * DAY])
def test_by_the_database_s_clock_whatever_the_server_s_shows(
    metastore: Metastore, db: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    """One that is days behind would show partitions at once, half written; one that is ahead, days too late."""
    right = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: right() + ahead * 1_000_000)
    table = StreamTable(metastore, db, properties={COMMIT_MODE: "process-time", DELAY: "30 min"})
    table.add(hour(0), hour(1))
    metastore.readiness.commit_due_everywhere()
    assert table.ready() == []
    clock.pass_(31 * MINUTE)
    metastore.readiness.commit_due_everywhere()
    assert table.ready() == [hour(0), hour(1)]
    table.reopen(hour(0))
    for name, key in ((hour(1), COMMIT_TIME), (hour(0), OPENED)):
        answer = (table.get(name).parameters or {})[key]
        assert abs(int(answer) - right() // 1_000_000) < HOUR


def test_event_time_says_nothing_where_the_clock_does(metastore: Metastore, db: str, clock: Clock) -> None:
    table = StreamTable(metastore, db, properties=HOURLY | {COMMIT_MODE: "process-time"})
    table.add(hour(0))
    assert table.report(0, s=at("2026-06-01 00:00")).committed == []
    clock.pass_(2 * HOUR)
    assert table.report(1).committed == [hour(0)]


# --- opened again ---------------------------------------------------------------------------------------------


def test_what_was_reopened_by_hand_stays_open(table: StreamTable) -> None:
    table.add(hour(0))
    table.report(0, s=at("2026-01-01 05:00"))
    table.reopen(hour(0))
    table.report(1, s=at("2026-01-01 06:00"))
    table.metastore.readiness.commit_due_everywhere()
    assert table.ready() == []
    assert table.commit(hour(0), by="me") == [hour(0)]
    assert table.states()[hour(0)].committedBy == "me"


def test_what_was_reopened_for_late_rows_turns_again(table: StreamTable) -> None:
    table.change(partition_late__rows="reopen")
    table.write(0, hour(0), s=at("2026-01-01 05:00"))
    first = table.states()[hour(0)].commitTime or 0
    answer = table.write(1, hour(0), reopen=[hour(0)])
    assert answer.committed == [hour(0)]
    assert len(table.files(hour(0))) == 2
    assert (table.states()[hour(0)].commitTime or 0) > first


def test_what_somebody_reopened_is_not_committed_by_a_late_row(table: StreamTable) -> None:
    table.change(partition_late__rows="reopen")
    table.write(0, hour(0), s=at("2026-01-01 05:00"))
    table.reopen(hour(0))
    assert table.write(1, hour(0), reopen=[hour(0)]).committed == []
    assert table.ready() == []


# --- success files --------------------------------------------------------------------------------------------


def test_success_file(metastore: Metastore, db: str) -> None:
    policy = {"sink.partition-commit.policy.kind": "metastore,success-file"}
    table = StreamTable(metastore, db, properties=HOURLY | policy | {"partition.late-rows": "reopen"})
    table.write(0, hour(0), s=at("2026-01-01 00:00"))
    assert table.files(hour(0)) == {"w-0-0.parquet"}
    table.report(1, s=at("2026-01-01 05:00"))
    assert table.files(hour(0)) == {"w-0-0.parquet", "_SUCCESS"}
    table.reopen(hour(0))
    assert table.files(hour(0)) == {"w-0-0.parquet"}
    table.change(**{"sink_partition__commit_success__file_name": "_DONE"})
    table.commit(hour(0))
    assert table.files(hour(0)) == {"w-0-0.parquet", "_DONE"}


def test_success_file_in_a_place_of_its_own(metastore: Metastore, db: str) -> None:
    policy = {"sink.partition-commit.policy.kind": "success-file,metastore"}
    table = StreamTable(metastore, db, properties=HOURLY | policy)
    partition = table.partition(hour(0))
    assert partition.sd is not None
    partition.sd.location = f"file:{table.directory}/elsewhere"
    metastore.partitions.add(db, "t", [partition], {})
    table.write(0, hour(0), s=at("2026-01-01 05:00"))
    assert {path.name for path in local_path(partition.sd.location).iterdir()} == {"_SUCCESS", "w-0-0.parquet"}


# --- several servers ------------------------------------------------------------------------------------------


def test_each_turns_once_though_many_look(pair: tuple[Metastore, Metastore], db: str) -> None:
    table = StreamTable(pair[0], db)
    with ThreadPoolExecutor(6) as pool:
        for day in range(5):
            names = [hour(24 * day + number) for number in range(24)]
            table.add(*names)
            its_id = table_id(table)
            with table.metastore.database.write() as tx:  # what a report does before its server dies
                tx.exec_driver_sql(
                    "INSERT INTO watermarks SELECT id, 'default', 's', %(t)s, %(t)s + 1000000000000 FROM tables"
                    " WHERE id = %(id)s ON CONFLICT (table_id, chain, source) DO UPDATE SET watermark = %(t)s",
                    {"t": at("2026-01-01 00:00") + day * DAY + 30 * HOUR, "id": its_id},
                )
            version, start = table.version, threading.Barrier(6)

            def look(number: int, start: threading.Barrier = start) -> list[str]:
                start.wait()
                return pair[number % 2].readiness.commit_due(table_id(table))

            turned = [name for names in pool.map(look, range(6)) for name in names]
            assert sorted(turned) == names
            assert table.version == version + 1


def table_id(table: StreamTable) -> int:
    with table.metastore.database.read() as tx:
        return table.metastore.tables.row(tx, table.db, table.name).id


def test_reports_of_two_chains_at_once(pair: tuple[Metastore, Metastore], db: str) -> None:
    """A primary and its stand-by write the same hours; the first that completes one makes it ready, and is named."""
    tables = [StreamTable(pair[0], db)]
    tables.append(tables[0].through(pair[1]))
    chains = ("primary", "backup")

    def run(number: int) -> None:
        for step in range(20):
            tables[number].add(hour(step))
            tables[number].report(
                step, writer=chains[number], chain=chains[number], s=at("2026-01-01 00:00") + step * HOUR
            )

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, range(2)))
    assert tables[0].ready() == [hour(number) for number in range(18)]
    assert {state.committedBy for state in tables[0].states().values()} <= {*chains, None}


def test_stand_by_takes_over(table: StreamTable) -> None:
    """Nobody has to do anything, and nothing is committed twice."""

    def report(chain: str, batch: int, hours: int) -> list[str] | None:
        return table.report(batch, writer=chain, chain=chain, s=at("2026-01-01 00:00") + hours * HOUR + 1).committed

    table.add(*(hour(number) for number in range(5)))
    assert report("primary", 0, 1) == [hour(0)]
    assert report("backup", 0, 1) == []
    assert report("primary", 1, 2) == [hour(1)]
    # The primary dies.
    assert report("backup", 1, 2) == []
    assert report("backup", 2, 3) == [hour(2)]
    # It comes back, behind.
    assert report("primary", 2, 2) == []
    assert report("backup", 3, 4) == [hour(3)]
    assert report("primary", 3, 5) == [hour(4)]
    by = {name: state.committedBy for name, state in table.states().items()}
    assert list(by.values()) == ["primary", "primary", "backup", "backup", "primary"]


def test_equally_far_the_first_counts(table: StreamTable, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Though the partition turns only later, because something failed meanwhile."""
    table.add(hour(0))
    with monkeypatch.context() as patch:
        patch.setattr(type(table.metastore.readiness), "commit_due", lambda *_: [])
        table.report(0, writer="z", chain="z", s=at("2026-01-01 03:00"))
        clock.pass_(10)
        table.report(0, writer="a", chain="a", s=at("2026-01-01 03:00"))
    table.commit_due()
    assert table.states()[hour(0)].committedBy == "z"


def test_table_that_could_never_commit_is_refused(metastore: Metastore, db: str) -> None:
    with pytest.raises(InvalidObjectException, match="timestamp-pattern"):
        StreamTable(metastore, db, properties={COMMIT_MODE: "event-time", TIMESTAMP_PATTERN: "$day"})
