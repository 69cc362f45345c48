"""How long things are kept: the database's clock says so, and what nobody uses any more is let go of."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from sqlalchemy import NullPool, create_engine, func
from sqlalchemy.engine import Engine

from eventbus import EventType, NewEvent
from eventbus.log import epochs, group_positions, log, schema
from eventbus.outlets import dead_letters
from lake.protocol.events.types import Origin
from lake.protocol.hive import GetReplicationMetricsRequest, ReplicationMetrics, RuntimeStat
from lake.protocol.lake import ReadGroupEventsRequest
from metastore.services.wiring import Metastore
from metastore.settings import Settings

DAY = timedelta(days=1)


@pytest.fixture
def opened(upgraded_url: str, tmp_path: object) -> Iterator[Metastore]:

    opened = Metastore.open(Settings(database_url=upgraded_url, warehouse_dir=f"{tmp_path}/warehouse"))
    yield opened
    opened.close()


@pytest.fixture
def engine(upgraded_url: str) -> Iterator[Engine]:
    engine = create_engine(upgraded_url, poolclass=NullPool)
    yield engine
    engine.dispose()


@pytest.fixture
def wrong_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Puts this server's clock, not the database's, before or back."""

    def shift(by: timedelta) -> None:
        seconds, nanoseconds = time.time, time.time_ns
        monkeypatch.setattr(time, "time", lambda: seconds() + by.total_seconds())
        monkeypatch.setattr(time, "time_ns", lambda: nanoseconds() + int(by.total_seconds() * 1e9))

    return shift


def commit(engine: Engine, count: int = 1) -> int:
    """Events; the last number."""
    with engine.begin() as tx:
        log.append(tx, count * [NewEvent(EventType.ALTER_TABLE, 1, Origin(), "hive", "d", "t", 1, {})])
    with engine.begin() as tx:
        log.number(tx)
        return log.positions(tx).last


def kept(engine: Engine) -> int:
    with engine.connect() as tx:
        now = log.positions(tx)
    return now.last - now.trimmed


def grow_old(engine: Engine, days: float) -> None:
    """So much time passes for what is there."""
    ago = func.clock_timestamp() - days * DAY
    with engine.begin() as tx:
        tx.execute(schema.events.update().values(recorded_at=ago))
        tx.execute(schema.event_groups.update().values(seen_at=ago))
        tx.execute(schema.event_dead_letters.update().values(dead_lettered_at=ago))


@pytest.mark.parametrize("ahead", [100 * DAY, -100 * DAY])
def test_one_servers_wrong_clock_removes_nothing(
    opened: Metastore, engine: Engine, wrong_clock: Callable[[timedelta], None], ahead: timedelta
) -> None:
    """Whether it was wrong when things were made, or is when old ones are looked for."""

    def make(group: str) -> None:
        number = commit(engine)
        opened.event_reads.acknowledge(group, number, back=False)
        opened.engine_reports.add_statistics(RuntimeStat(weight=1, payload=b"x"))
        opened.engine_reports.add_metrics([ReplicationMetrics(number, "p", 2)])
        with engine.begin() as tx:
            dead_letters.put(tx, "webhook:w", number, "refused", 1, 0)

    def counts() -> tuple[int, int, int, int, int]:
        metrics = opened.engine_reports.metrics(GetReplicationMetricsRequest(policy="p")) or []
        statistics = opened.engine_reports.statistics(-1, -1)
        reads = opened.event_reads
        return kept(engine), len(reads.groups()), len(statistics), len(metrics), len(reads.dead(None))

    before = kept(engine)
    make("early")
    wrong_clock(ahead)
    make("late")
    opened.housekeeping.run()
    assert counts() == (before + 2, 2, 2, 2, 2)
    wrong_clock(-ahead)  # it is mended
    opened.housekeeping.run()
    assert counts() == (before + 2, 2, 2, 2, 2)


def test_events_go_when_they_are_old(opened: Metastore, engine: Engine) -> None:
    commit(engine, 3)
    grow_old(engine, 8)
    commit(engine)
    opened.housekeeping.run()
    assert kept(engine) == 1


def test_a_group_that_nobody_uses_lets_go(opened: Metastore, engine: Engine) -> None:
    """First it holds no events any more, so who comes back gets an error; then it is deleted."""
    number = commit(engine, 3)
    opened.event_reads.acknowledge("left", number - 2, back=False)
    grow_old(engine, 29)
    opened.housekeeping.run()
    assert kept(engine) == 2
    grow_old(engine, 31)
    opened.event_reads.acknowledge("used", number, back=False)
    opened.housekeeping.run()
    assert kept(engine) == 0
    assert [each.name for each in opened.event_reads.groups()] == ["left", "used"]
    grow_old(engine, 61)
    with engine.begin() as tx:
        group_positions.see(tx, "used")
    opened.housekeeping.run()
    assert [each.name for each in opened.event_reads.groups()] == ["used"]


def test_a_member_that_only_waits_uses_its_group(opened: Metastore, engine: Engine) -> None:
    number = commit(engine)
    request = ReadGroupEventsRequest("g", "m", number, maxWait=0)
    opened.event_members.read(request, 0)
    grow_old(engine, 61)
    with engine.begin() as tx:
        tx.execute(schema.event_group_members.update().values(alive_until=0))
    opened.event_members.read(request, 0)
    opened.housekeeping.run()
    assert [each.name for each in opened.event_reads.groups()] == ["g"]


def test_dead_letters_expire(opened: Metastore, engine: Engine) -> None:
    number = commit(engine, 2)
    with engine.begin() as tx:
        dead_letters.put(tx, "webhook:w", number, "refused", 1, 0)
    grow_old(engine, 31)
    with engine.begin() as tx:
        dead_letters.put(tx, "webhook:w", number - 1, "refused", 1, 0)
    opened.housekeeping.run()
    assert [each.number for each in opened.event_reads.dead(None)] == [number - 1]


def test_where_the_log_lies(opened: Metastore, engine: Engine) -> None:
    """Another cluster or another table is a restore; what nobody may ask Postgres is no sign of one."""

    def noticed(cluster: str, table: str, timeline: str) -> bool | None:
        with engine.begin() as tx:
            tx.execute(schema.event_log.update().values(place=f"{cluster}/{table}/{timeline}"))
        with engine.begin() as tx:
            epoch = epochs.notice(tx)
            assert epochs.notice(tx) is None  # once
        return None if epoch is None else epoch.lossy

    with engine.connect() as tx:
        here = epochs.place(tx)
    assert all(here)
    assert noticed(*here) is None
    assert noticed("1", here.table, here.timeline) is True
    assert noticed(here.cluster, "1", here.timeline) is True
    assert noticed(here.cluster, here.table, "1") is False
    assert noticed("", here.table, "") is None
