"""How far event time has come: the furthest chain, each as far as its slowest live source, and never back."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.protocol.clock import now_ms
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import TableReference
from metastore.services.wiring import Metastore
from tests.metastore.services.readiness.conftest import Clock
from tests.metastore.services.readiness.lake import DAY, HOUR, HOURLY, MINUTE, StreamTable, at

START = at("2026-01-01 00:00")


def test_nobody_has_reported(table: StreamTable) -> None:
    answer = table.watermark()
    assert answer.watermark is None
    assert answer.sources == []
    assert (answer.commitMode, answer.delay, answer.interval, answer.latePolicy) == ("event-time", HOUR, HOUR, "next")


def test_no_such_table(metastore: Metastore, db: str) -> None:
    with pytest.raises(NoSuchObjectException):
        metastore.readiness.watermark(TableReference(database=db, table="nothing"))


def test_smallest_event_time_of_each_batch_and_never_back(table: StreamTable) -> None:
    assert table.report(0, s=START + 50).watermark == START + 50
    assert table.report(1, s=START + 30).watermark == START + 50
    assert table.report(2, s=START + 70).watermark == START + 70
    assert table.watermark().watermark == START + 70


def test_batch_without_rows_moves_nothing(table: StreamTable) -> None:
    table.report(0, s=START)
    assert table.report(1).watermark == START
    assert [(one.source, one.watermark) for one in table.watermark().sources] == [("s", START)]


def test_slowest_source_of_a_chain(table: StreamTable) -> None:
    assert table.report(0, a=START + 10, b=START + 20).watermark == START + 10
    assert table.report(1, a=START + 30).watermark == START + 20
    assert table.report(2, b=START + 40).watermark == START + 30


def test_source_that_comes_late_does_not_take_it_back(table: StreamTable) -> None:
    table.report(0, a=START + 50)
    assert table.report(1, b=START + 10).watermark == START + 50
    assert table.report(2, a=START + 90).watermark == START + 50
    assert table.report(3, b=START + 60).watermark == START + 60


def test_furthest_chain(table: StreamTable) -> None:
    table.report(0, chain="primary", writer="p", a=START + 10, b=START + 30)
    assert table.report(0, chain="backup", writer="b", a=START + 20, b=START + 20).watermark == START + 20
    assert table.report(1, chain="primary", writer="p", a=START + 25).watermark == START + 25
    assert {(one.chain, one.source): one.watermark for one in table.watermark().sources} == {
        ("primary", "a"): START + 25,
        ("primary", "b"): START + 30,
        ("backup", "a"): START + 20,
        ("backup", "b"): START + 20,
    }


def test_idle_source_holds_nobody_up(table: StreamTable, clock: Clock) -> None:
    table.change(partition_watermark_idle__timeout="10 min")
    table.report(0, a=START + 10, b=START + 20)
    clock.pass_(10 * MINUTE)
    assert table.report(1, b=START + 40).watermark == START + 10
    clock.pass_(1)
    assert {one.source: one.idle for one in table.watermark().sources} == {"a": True, "b": False}
    table.commit_due()
    assert table.watermark().watermark == START + 40


def test_idle_source_comes_back(table: StreamTable, clock: Clock) -> None:
    table.change(partition_watermark_idle__timeout="10 min")
    table.report(0, a=START + 10, b=START + 20)
    clock.pass_(11 * MINUTE)
    assert table.report(1, b=START + 40).watermark == START + 40
    assert table.report(2, a=START + 12).watermark == START + 40
    assert table.report(3, b=START + 90).watermark == START + 40
    assert table.report(4, a=START + 50).watermark == START + 50


def test_everybody_is_idle(table: StreamTable, clock: Clock) -> None:
    table.report(0, a=START + 10, b=START + 20)
    clock.pass_(DAY)
    table.commit_due()
    assert table.watermark().watermark == START + 10


def test_without_a_timeout_nobody_is_ever_idle(table: StreamTable, clock: Clock) -> None:
    table.change(partition_watermark_idle__timeout="0")
    table.report(0, a=START + 10, b=START + 20)
    clock.pass_(1000 * DAY)
    assert table.report(1, b=START + 40).watermark == START + 10


def test_idle_chain_leaves_it_to_the_other(table: StreamTable, clock: Clock) -> None:
    table.report(0, chain="primary", writer="p", s=START + 90)
    clock.pass_(2 * HOUR)
    assert table.report(0, chain="backup", writer="b", s=START + 50).watermark == START + 90
    assert table.report(1, chain="backup", writer="b", s=START + 100).watermark == START + 100


def test_times_too_far_in_the_future(table: StreamTable, clock: Clock) -> None:
    table.change(partition_watermark_max__ahead="1 h")
    assert table.report(0, s=clock.now + HOUR + 1).watermark is None
    assert table.watermark().sources == []
    assert table.report(1, s=clock.now - 5).watermark == clock.now - 5
    assert table.report(2, s=clock.now + HOUR + 1).watermark == clock.now - 5
    assert table.report(3, s=clock.now + HOUR).watermark == clock.now + HOUR


def test_a_servers_clock_does_not_say_what_is_too_far(table: StreamTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watermark never goes back: one wrong clock would make all partitions up to then ready."""
    now = now_ms()
    monkeypatch.setattr(time, "time_ns", lambda: (now + 8 * DAY) * 1_000_000)
    assert table.report(0, s=now + 7 * DAY).watermark is None
    assert table.report(1, s=now - DAY).watermark == now - DAY


def test_source_with_wrong_times_only_is_alive_and_holds_up(table: StreamTable, clock: Clock) -> None:
    table.report(0, a=START + 10, b=START + 20)
    clock.pass_(50 * MINUTE)
    table.report(1, a=clock.now + 2 * DAY)
    clock.pass_(50 * MINUTE)
    assert table.report(2, b=START + 40).watermark == START + 10


@pytest.mark.parametrize("time", [-(2**63), -1, 0, 2**63 - 1])
def test_any_time_can_be_reported(table: StreamTable, time: int) -> None:
    table.add("dt=2026-01-01/hr=00")
    answer = table.report(0, s=time)
    assert answer.watermark == (time if time < 2**62 else None)
    assert table.ready() == []
    assert [route.action for route in table.route("dt=2026-01-01/hr=00", "dt=2025-01-01/hr=00")] == ["write", "write"]


def test_survives_a_restart(table: StreamTable, restarted: Callable[[], Metastore]) -> None:
    table.report(0, a=START + 10, b=START + 20)
    table.metastore = restarted()
    assert table.watermark().watermark == START + 10
    assert table.report(1, a=START + 15, b=START + 5).watermark == START + 15


def test_lost_with_the_table(table: StreamTable) -> None:
    table.report(7, s=START)
    table.metastore.tables.drop(table.db, table.name, delete_data=True)
    again = StreamTable(table.metastore, table.db)
    assert again.watermark().watermark is None
    assert again.report(0, s=START - 1).repeated is False


def test_stays_with_a_renamed_table(table: StreamTable) -> None:
    table.report(7, s=START)
    table.rename("renamed")
    assert table.watermark().watermark == START
    assert table.report(7, s=START + 1).repeated is True


def test_names_of_sources(table: StreamTable) -> None:
    """Any text: they may be topics, files, or nothing where a column is NULL."""
    names = {"": START, "ü/ß topic-3": START, "x" * 256: START}
    table.report(0, **names)
    assert {one.source for one in table.watermark().sources} == set(names)
    for bad in ("x" * 257, "new\nline", "nul\0"):
        with pytest.raises(InvalidOperationException, match="no valid name of a chain or source"):
            table.report(1, **{bad: START})
        with pytest.raises(InvalidOperationException, match="no valid name of a chain or source"):
            table.report(1, chain=bad, s=START)


def test_silent_sources_are_forgotten_before_there_are_too_many(
    table: StreamTable, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metastore.services.readiness.progress.MAX_SOURCES", 3)
    table.report(0, a=START + 10, b=START + 20, c=START + 30)
    assert table.report(1, a=START + 11, b=START + 20, c=START + 30).watermark == START + 11
    with pytest.raises(InvalidOperationException, match="more than 3 sources"):
        table.report(2, d=START + 40)
    clock.pass_(HOUR)
    table.report(3, a=START + 12)
    clock.pass_(1)
    assert table.report(4, d=START + 40).watermark == START + 12
    assert [one.source for one in table.watermark().sources] == ["a", "d"]


@pytest.mark.long
def test_ten_thousand_sources(table: StreamTable) -> None:
    assert table.report(0, **{f"s{n}": START + n for n in range(10_000)}).watermark == START
    assert table.report(1, **{f"s{n}": START + n + 10_000 for n in range(10_000)}).watermark == START + 10_000


# --- against a model ------------------------------------------------------------------------------------------

CHAINS, SOURCES = ("primary", "backup"), ("a", "b", "c")
IDLE, AHEAD = 10 * MINUTE, HOUR


@dataclass
class Model:
    """What the rules say, in the shortest words."""

    now: int
    watermark: int | None = None
    sources: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def report(self, chain: str, times: dict[str, int]) -> None:
        for source, reported in times.items():
            best = [reported] if reported <= self.now + AHEAD else []
            best += [self.sources[chain, source][0]] if (chain, source) in self.sources else []
            if best:
                self.sources[chain, source] = max(best), self.now
        self.advance()

    def advance(self) -> None:
        live = {key: time for key, (time, reported) in self.sources.items() if self.now - reported <= IDLE}
        reached = [min(time for (chain, _), time in live.items() if chain == each) for each in {c for c, _ in live}]
        self.watermark = max([*reached, *([] if self.watermark is None else [self.watermark])], default=None)


reports = st.tuples(
    st.sampled_from(CHAINS),
    st.dictionaries(st.sampled_from(SOURCES), st.integers(-2 * HOUR, 2 * HOUR), min_size=1),
)
steps = st.one_of(reports, st.integers(0, 15 * MINUTE), st.just("look"))
numbers = itertools.count()


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(steps, max_size=15))
def test_any_order_of_reports(
    pair: tuple[Metastore, Metastore], db: str, clock: Clock, steps: list[tuple[str, dict[str, int]] | int | str]
) -> None:
    """Of two chains with three sources each, to two servers in turn."""
    properties = HOURLY | {"partition.watermark.idle-timeout": "10 min", "partition.watermark.max-ahead": "1 h"}
    table = StreamTable(pair[0], db, f"t{next(numbers)}", properties=properties)
    model = Model(clock.now)
    for number, step in enumerate(steps):
        table.metastore = pair[number % 2]
        if isinstance(step, tuple):
            chain, offsets = step
            times = {source: clock.now + offset for source, offset in offsets.items()}
            model.report(chain, times)
            assert table.report(number, chain=chain, **times).watermark == model.watermark
        elif isinstance(step, int):
            clock.pass_(step)
            model.now += step
        else:
            model.advance()
            table.commit_due()
        assert table.watermark().watermark == model.watermark
