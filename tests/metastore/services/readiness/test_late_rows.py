"""Where rows go whose partition is ready already, or whose time has passed."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.protocol.formats.commit_mode import COMMIT_MODE
from lake.protocol.hive import InvalidOperationException, MetaException, NoSuchObjectException
from lake.protocol.lake import LateRows, Route
from metastore.services.commit_flag.policy import INTERVAL, LATE_ROWS, TIMESTAMP_PATTERN
from metastore.services.wiring import Metastore
from tests.metastore.services.readiness.lake import HOUR, HOURLY, StreamTable, at, hour

START = at("2026-01-01 00:00")
DEFAULT = "dt=__HIVE_DEFAULT_PARTITION__/hr=__HIVE_DEFAULT_PARTITION__"


def brief(route: Route) -> tuple[str | None, str | None]:
    return route.action, route.target


def test_nothing_is_late_while_nothing_was_reported(table: StreamTable) -> None:
    assert table.route(hour(0), DEFAULT, hour(999)) == [
        Route(name, name, False, "write") for name in (hour(0), DEFAULT, hour(999))
    ]


def test_next_is_the_earliest_that_is_not_ready(table: StreamTable) -> None:
    table.write(0, hour(0), hour(3), s=START + 3 * HOUR)
    assert table.ready() == [hour(0)]
    assert [brief(route) for route in table.route(hour(0), hour(1), hour(2), hour(3), hour(4))] == [
        ("next", hour(2)),  # which nobody has written yet
        ("next", hour(2)),  # nor this one, but its time has passed
        ("write", hour(2)),
        ("write", hour(3)),
        ("write", hour(4)),
    ]
    assert [route.late for route in table.route(hour(0), hour(1), hour(2))] == [True, True, False]


def test_next_may_be_one_that_was_opened_again(table: StreamTable) -> None:
    table.write(0, hour(0), hour(1), hour(2), s=START + 9 * HOUR)
    table.reopen(hour(1))
    assert [brief(route) for route in table.route(hour(0), hour(1), hour(2))] == [
        ("next", hour(1)),
        ("write", hour(1)),
        ("next", hour(8)),
    ]


def test_next_passes_over_what_was_committed_by_hand(table: StreamTable) -> None:
    table.write(0, *(hour(number) for number in range(5)), s=START + 2 * HOUR)
    table.commit(hour(1), hour(2), hour(3))
    assert brief(table.route(hour(0))[0]) == ("next", hour(4))


def test_next_before_the_watermark_has_come_so_far(table: StreamTable) -> None:
    """Someone committed a partition whose rows are still coming."""
    table.add(hour(5))
    table.commit(hour(5))
    assert brief(table.route(hour(5))[0]) == ("next", hour(6))
    for batch, time in enumerate((-(2**63), 0, START)):
        table.report(batch, s=time)
        assert brief(table.route(hour(5))[0]) == ("next", hour(6))


def test_next_keeps_other_keys(metastore: Metastore, db: str) -> None:
    table = StreamTable(metastore, db, keys=("country", "dt", "hr"))

    def name(country: str, number: int) -> str:
        return f"country={country}/{hour(number)}"

    table.write(0, name("de", 0), name("de", 1), name("at", 0), name("at", 5), s=START + 2 * HOUR + 1)
    assert [brief(route) for route in table.route(name("de", 0), name("at", 0), name("fr", 0))] == [
        ("next", name("de", 2)),
        ("next", name("at", 2)),
        ("next", name("fr", 2)),
    ]


def test_next_of_ten_minutes_and_over_a_day(metastore: Metastore, db: str) -> None:
    properties = HOURLY | {TIMESTAMP_PATTERN: "$dt $hm:00", INTERVAL: "10 min", "sink.partition-commit.delay": "10 min"}
    table = StreamTable(metastore, db, keys=("dt", "hm"), properties=properties)
    table.write(0, "dt=2026-01-31/hm=23%3A40", s=at("2026-02-01 00:00"))
    assert brief(table.route("dt=2026-01-31/hm=23%3A40")[0]) == ("next", "dt=2026-01-31/hm=23%3A50")
    table.report(1, s=at("2026-02-01 00:10") + 1)
    assert brief(table.route("dt=2026-01-31/hm=23%3A40")[0]) == ("next", "dt=2026-02-01/hm=00%3A10")


def test_next_over_thousands_of_ready_ones(metastore: Metastore, db: str) -> None:
    """Without a watermark they are passed one by one, but not asked for one by one."""
    properties = {COMMIT_MODE: "manual", TIMESTAMP_PATTERN: "$dt $hr:00:00"}
    table = StreamTable(metastore, db, properties=properties)
    names = [f"dt=2026-{month:02}-{day:02}/hr={hr:02}" for month in (1, 2) for day in range(1, 29) for hr in range(24)]
    table.add(*names)
    table.commit(*names)
    assert brief(table.route("dt=2026-02-01/hr=00")[0]) == ("next", "dt=2026-03-01/hr=00")


def test_reopen(table: StreamTable) -> None:
    table.change(partition_late__rows="reopen")
    table.write(0, hour(0), s=START + 3 * HOUR)
    assert table.route(hour(0), hour(1), hour(2)) == [
        Route(hour(0), hour(0), True, "reopen"),
        Route(hour(1), hour(1), True, "write"),  # there is nothing to be opened
        Route(hour(2), hour(2), False, "write"),
    ]
    # It turns ready with the very report that writes it.
    assert table.write(1, hour(1)).committed == [hour(1)]


def test_drop(table: StreamTable) -> None:
    table.change(partition_late__rows="drop")
    table.write(0, hour(0), s=START + 3 * HOUR)
    assert table.route(hour(0), hour(1), hour(2)) == [
        Route(hour(0), hour(0), True, "drop"),
        Route(hour(1), hour(1), True, "drop"),
        Route(hour(2), hour(2), False, "write"),
    ]


def test_values_that_say_no_time(table: StreamTable) -> None:
    table.write(0, DEFAULT, "dt=x/hr=y", s=START + 9 * HOUR)
    assert [brief(route) for route in table.route(DEFAULT, "dt=x/hr=y", "dt=2026-02-30/hr=00")] == [
        ("write", DEFAULT),
        ("write", "dt=x/hr=y"),
        ("write", "dt=2026-02-30/hr=00"),
    ]
    table.commit(DEFAULT)
    with pytest.raises(InvalidOperationException, match="no time can be read"):
        table.route(DEFAULT)
    table.change(partition_late__rows="reopen")
    assert brief(table.route(DEFAULT)[0]) == ("reopen", DEFAULT)


def test_years_end(table: StreamTable) -> None:
    table.add("dt=9999-12-31/hr=23")
    table.commit("dt=9999-12-31/hr=23")
    with pytest.raises(InvalidOperationException, match="nowhere to go"):
        table.route("dt=9999-12-31/hr=23")


def test_names_in_any_form(table: StreamTable) -> None:
    table.write(0, hour(0), s=START + 3 * HOUR)
    assert brief(table.route("hr=00/dt=2026-01-01")[0]) == ("next", hour(2))
    with pytest.raises(NoSuchObjectException, match="missing hr"):
        table.route("dt=2026-01-01")
    with pytest.raises(MetaException):
        table.route("")
    assert table.route() == []


def test_by_hand_and_by_the_clock_only_what_is_ready_is_late(metastore: Metastore, db: str) -> None:
    for mode in ("manual", "process-time"):
        table = StreamTable(metastore, db, mode.replace("-", ""), properties=HOURLY | {COMMIT_MODE: mode})
        table.write(0, hour(0), hour(2), s=START + 99 * HOUR)
        table.commit(hour(0))
        assert [brief(route) for route in table.route(hour(0), hour(1), hour(2))] == [
            ("next", hour(1)),
            ("write", hour(1)),
            ("write", hour(2)),
        ]


# --- the report -----------------------------------------------------------------------------------------------


def test_what_turned_ready_since_it_was_asked_is_refused(table: StreamTable) -> None:
    """And nothing has changed: not the watermark, no counts, no files, not the batch."""
    table.write(0, hour(0), s=START)
    begun = table.begin(1)
    assert table.route(hour(0))[0].late is False
    table.stage(begun, "new")
    table.report(0, writer="other", chain="other", s=START + 2 * HOUR)
    before, version = table.watermark(), table.version
    answer = table.report(1, begun, {"new": hour(0)}, s=START + 9 * HOUR, late=LateRows(1, 2, 3))
    assert (answer.accepted, answer.repeated, answer.already_ready) == (False, False, [hour(0)])
    assert table.watermark() == before
    assert table.version == version
    assert table.files(hour(0)) == {"w-0-0.parquet"}
    # Routed anew, the same files of the same attempt go elsewhere.
    target = table.route(hour(0))[0].target
    assert target == hour(1)
    table.add(hour(1))
    answer = table.report(1, begun, {"new": hour(1)}, s=START + HOUR, late=LateRows(5, 0, 0))
    assert answer.accepted is True
    assert table.files(hour(1)) == {"new"}
    assert table.watermark().late == LateRows(5, 0, 0)


def test_all_that_turned_are_named_and_none_is_written(table: StreamTable) -> None:
    table.write(0, hour(0), hour(1), hour(2), s=START + 2 * HOUR + 1)
    begun = table.begin(1)
    table.stage(begun, "a", "b", "c")
    answer = table.report(1, begun, {"a": hour(0), "b": hour(1), "c": hour(2)})
    assert answer.already_ready == [hour(0), hour(1)]
    assert table.files(hour(2)) == {"w-0-2.parquet"}


def test_reopening_names_only_what_turns(table: StreamTable) -> None:
    table.change(partition_late__rows="reopen")
    table.write(0, hour(0), hour(1), hour(5), s=START + 3 * HOUR)
    begun = table.begin(1)
    table.stage(begun, "a", "b")
    answer = table.report(1, begun, {"a": hour(0), "b": hour(1)}, reopen=[hour(0)])
    assert answer.already_ready == [hour(1)]
    assert table.ready() == [hour(0), hour(1)]
    answer = table.report(1, begun, {"a": hour(0), "b": hour(1)}, reopen=[hour(0), hour(1), hour(5)])
    assert answer.committed == [hour(0), hour(1)]
    assert table.files(hour(0)) == {"w-0-0.parquet", "a"}


def test_reopening_is_for_tables_that_want_it(table: StreamTable) -> None:
    table.write(0, hour(0), s=START + 3 * HOUR)
    with pytest.raises(InvalidOperationException, match="opened again for late rows only"):
        table.report(1, reopen=[hour(0)])
    assert table.ready() == [hour(0)]


def test_a_report_that_fails_opens_nothing_and_leaves_success_files(metastore: Metastore, db: str) -> None:
    policy = {"sink.partition-commit.policy.kind": "metastore,success-file", LATE_ROWS: "reopen"}
    table = StreamTable(metastore, db, properties=HOURLY | policy)
    table.write(0, hour(0), s=START + 3 * HOUR)
    begun = table.begin(1)
    with pytest.raises(InvalidOperationException, match="is not in the instant's directory"):
        table.report(1, begun, {"missing": hour(0)}, reopen=[hour(0)])
    with pytest.raises(InvalidOperationException, match="no valid name"):
        table.report(1, begun, reopen=[hour(0)], **{"bad\n": 1})
    assert table.ready() == [hour(0)]
    assert table.files(hour(0)) == {"w-0-0.parquet", "_SUCCESS"}


def test_counts_add_up(table: StreamTable) -> None:
    table.report(0, late=LateRows(1, 2, 3))
    table.report(0, late=LateRows(100, 100, 100))  # repeated
    table.report(1, late=LateRows(10, 20, 30))
    table.report(2, late=LateRows(-5, None, 0))
    assert table.watermark().late == LateRows(11, 22, 33)


# --- against a model ------------------------------------------------------------------------------------------

numbers = itertools.count()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    states=st.lists(st.sampled_from(["absent", "open", "ready"]), min_size=8, max_size=8),
    watermark=st.none() | st.integers(0, 9 * HOUR),
    policy=st.sampled_from(["next", "reopen", "drop"]),
)
def test_any_state_of_partitions(
    metastore: Metastore, db: str, states: list[str], watermark: int | None, policy: str
) -> None:
    table = StreamTable(metastore, db, f"t{next(numbers)}", properties=HOURLY | {LATE_ROWS: policy})
    there = {hour(number): state for number, state in enumerate(states) if state != "absent"}
    table.add(*there)
    if watermark is not None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(metastore.readiness), "commit_due", lambda *_: [])
            table.report(0, s=START + watermark)
    table.commit(*(name for name, state in there.items() if state == "ready"))

    def closed(number: int) -> bool:
        state = there.get(hour(number), "absent")
        passed = watermark is not None and watermark > (number + 1) * HOUR
        return state == "ready" or (state == "absent" and passed)

    for number, route in enumerate(table.route(*(hour(number) for number in range(8)))):
        own = hour(number)
        if not closed(number):
            expected = Route(own, own, False, "write")
        elif policy == "next":
            target = next(later for later in itertools.count(number + 1) if not closed(later))
            expected = Route(own, hour(target), True, "next")
        elif policy == "reopen" and own not in there:
            expected = Route(own, own, True, "write")
        else:
            expected = Route(own, own, True, policy)
        assert route == expected
