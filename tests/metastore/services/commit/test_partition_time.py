"""The times of a table's partitions: starts, deadlines and what comes next, also where clocks change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from metastore.services.commit_flag.partition_time import PartitionClock
from metastore.services.commit_flag.policy import ReadinessProperties

HOUR, DAY = 3_600_000, 86_400_000


def clock(
    keys: list[str],
    *,
    pattern: str | None = None,
    formatter: str | None = None,
    zone: str | None = None,
    delay: str | None = None,
    interval: str | None = None,
    mode: str = "event-time",
) -> PartitionClock:
    given = {
        "partition.commit.mode": mode,
        "partition.time-extractor.timestamp-pattern": pattern,
        "partition.time-extractor.timestamp-formatter": formatter,
        "sink.partition-commit.watermark-time-zone": zone,
        "sink.partition-commit.delay": delay,
        "partition.interval": interval,
    }
    parameters = {name: value for name, value in given.items() if value is not None}
    return PartitionClock(ReadinessProperties.of_table(parameters, keys))


def hourly(zone: str = "UTC", interval: str = "1 h") -> PartitionClock:
    return clock(["dt", "hr"], pattern="$dt $hr:00:00", zone=zone, delay=interval, interval=interval)


def daily(zone: str = "UTC") -> PartitionClock:
    return clock(["dt"], zone=zone, delay="1 d")


def ten_minutes(zone: str) -> PartitionClock:
    return clock(["dt", "hr", "mi"], pattern="$dt $hr:$mi:00", zone=zone, delay="10 min", interval="10 min")


def at(text: str) -> int:
    """The instant that a text in UTC says."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


class TestStart:
    def test_in_utc(self) -> None:
        assert hourly().start(["2024-01-31", "07"]) == at("2024-01-31T07:00")

    def test_in_another_zone(self) -> None:
        assert hourly("Asia/Shanghai").start(["2024-01-31", "07"]) == at("2024-01-30T23:00")
        assert hourly("GMT-08:00").start(["2024-01-31", "07"]) == at("2024-01-31T15:00")

    def test_of_an_hour_that_comes_twice(self) -> None:
        assert hourly("Europe/Berlin").start(["2024-10-27", "02"]) == at("2024-10-27T00:00")

    def test_of_an_hour_that_is_skipped(self) -> None:
        assert hourly("Europe/Berlin").start(["2024-03-31", "02"]) == at("2024-03-31T01:00")

    def test_of_a_day_without_midnight(self) -> None:
        assert daily("America/Sao_Paulo").start(["2018-11-04"]) == at("2018-11-04T03:00")

    @pytest.mark.parametrize(
        "values",
        [
            ["__HIVE_DEFAULT_PARTITION__", "07"],
            ["2024-01-31", "__HIVE_DEFAULT_PARTITION__"],
            ["", ""],
            ["2024-01-31", "x"],
            ["2024-01-31"],
            [],
        ],
    )
    def test_of_values_that_say_no_time(self, values: list[str]) -> None:
        assert hourly().start(values) is None
        assert hourly().deadline(values) is None
        assert not hourly().is_due(values, at("9999-01-01"))
        with pytest.raises(ValueError, match="says no time"):
            hourly().next(values)
        with pytest.raises(ValueError, match="says no time"):
            hourly().values_at(0, values)

    def test_where_properties_do_not_say_how(self) -> None:
        untimed = clock(["region"], pattern="$dt", mode="manual")
        assert untimed.start(["eu"]) is None
        with pytest.raises(ValueError, match="eu says no time"):
            untimed.next(["eu"])

    def test_at_the_ends_of_time(self) -> None:
        assert daily("GMT+09:00").start(["0001-01-01"]) == at("0001-01-01") - 9 * HOUR
        assert daily("GMT+09:00").start(["9999-12-31"]) == at("9999-12-31") - 9 * HOUR
        assert daily().deadline(["9999-12-31"]) == at("9999-12-31") + DAY
        with pytest.raises(ValueError, match="no partition comes so long after 9999-12-31"):
            daily().next(["9999-12-31"])
        with pytest.raises(ValueError, match="no partition like 2024-01-31 is at"):
            daily().values_at(10**15, ["2024-01-31"])


class TestDue:
    def test_after_start_and_delay(self) -> None:
        values = ["2024-01-31", "07"]
        assert hourly().deadline(values) == at("2024-01-31T08:00")
        assert not hourly().is_due(values, at("2024-01-31T08:00"))
        assert hourly().is_due(values, at("2024-01-31T08:00") + 1)

    def test_without_delay(self) -> None:
        immediate = clock(["dt"])
        assert not immediate.is_due(["2024-01-31"], at("2024-01-31"))
        assert immediate.is_due(["2024-01-31"], at("2024-01-31") + 1)

    def test_a_day_of_25_hours_ends_with_its_last(self) -> None:
        assert daily("Europe/Berlin").deadline(["2024-10-27"]) == at("2024-10-27T23:00")

    def test_a_day_of_23_hours_waits_as_long_as_in_flink(self) -> None:
        assert daily("Europe/Berlin").deadline(["2024-03-31"]) == at("2024-03-31T23:00")

    def test_an_hour_that_comes_twice_ends_with_the_second(self) -> None:
        assert hourly("Europe/Berlin").deadline(["2024-10-27", "01"]) == at("2024-10-27T00:00")
        assert hourly("Europe/Berlin").deadline(["2024-10-27", "02"]) == at("2024-10-27T02:00")
        assert ten_minutes("Europe/Berlin").deadline(["2024-10-27", "01", "50"]) == at("2024-10-27T00:00")
        assert ten_minutes("Europe/Berlin").deadline(["2024-10-27", "02", "00"]) == at("2024-10-27T01:10")
        assert ten_minutes("Europe/Berlin").deadline(["2024-10-27", "02", "50"]) == at("2024-10-27T02:00")


class TestNext:
    @pytest.mark.parametrize(
        ("values", "after"),
        [
            (["2024-01-31", "07"], ["2024-01-31", "08"]),
            (["2024-01-31", "23"], ["2024-02-01", "00"]),
            (["2024-02-28", "23"], ["2024-02-29", "00"]),
            (["2024-12-31", "23"], ["2025-01-01", "00"]),
            # Without zeros, if the values show that.
            (["2024-01-31", "7"], ["2024-01-31", "8"]),
            (["2024-1-31", "23"], ["2024-2-1", "0"]),
            (["2024-12-9", "23"], ["2024-12-10", "0"]),
        ],
    )
    def test_hour(self, values: list[str], after: list[str]) -> None:
        assert hourly().next(values) == after

    def test_many_steps(self) -> None:
        assert hourly().next(["2024-01-31", "07"], 0) == ["2024-01-31", "07"]
        assert hourly().next(["2024-01-31", "07"], 24) == ["2024-02-01", "07"]
        assert hourly("Europe/Berlin").next(["2024-03-30", "07"], 24) == ["2024-03-31", "08"]

    def test_hours_that_are_skipped_have_no_partition(self) -> None:
        assert hourly("Europe/Berlin").next(["2024-03-31", "01"]) == ["2024-03-31", "03"]
        assert hourly("Europe/Berlin").next(["2024-03-31", "02"]) == ["2024-03-31", "03"]
        assert ten_minutes("Europe/Berlin").next(["2024-03-31", "01", "50"]) == ["2024-03-31", "03", "00"]
        # Half an hour is skipped: the hour's partition has the other half.
        assert hourly("Australia/Lord_Howe").next(["2024-10-06", "01"]) == ["2024-10-06", "02"]

    def test_hours_that_come_twice_have_one_partition(self) -> None:
        assert hourly("Europe/Berlin").next(["2024-10-27", "02"]) == ["2024-10-27", "03"]
        assert ten_minutes("Europe/Berlin").next(["2024-10-27", "02", "50"]) == ["2024-10-27", "03", "00"]

    def test_days_stay_days(self) -> None:
        assert daily("Europe/Berlin").next(["2024-03-30"]) == ["2024-03-31"]
        assert daily("Europe/Berlin").next(["2024-03-31"]) == ["2024-04-01"]
        assert daily("Europe/Berlin").next(["2024-10-27"]) == ["2024-10-28"]
        assert daily("America/Sao_Paulo").next(["2018-11-03"]) == ["2018-11-04"]
        assert daily("Pacific/Apia").next(["2011-12-29"]) == ["2011-12-31"]

    def test_other_keys_keep_their_values(self) -> None:
        parted = clock(["region", "hr", "dt"], pattern="$dt $hr:00:00")
        assert parted.next(["eu $1", "23", "2024-01-31"]) == ["eu $1", "00", "2024-02-01"]

    @pytest.mark.parametrize(
        ("keys", "pattern", "formatter", "values", "after"),
        [
            (["y", "m"], "$y-$m-01", None, ["2024", "12"], ["2025", "01"]),
            (["y"], "$y-01-01", None, ["2024"], ["2025"]),
            (["y", "m", "d"], "20$y-$m-$d", None, ["24", "12", "31"], ["25", "01", "01"]),
            (["dth"], None, "yyyyMMddHH", ["2024123123"], ["2025010100"]),
            (["d", "h"], "$d$h", "yyyyMMddHH", ["20241231", "23"], ["20250101", "00"]),
            (["d", "h"], "$d $h", "yyyyMMdd H", ["20241231", "23"], ["20250101", "0"]),
            (["d"], None, "yyMMdd", ["241231"], ["250101"]),
            (["d"], None, "dd.MM.yyyy", ["31.12.2024"], ["01.01.2025"]),
        ],
    )
    def test_forms(
        self, keys: list[str], pattern: str | None, formatter: str | None, values: list[str], after: list[str]
    ) -> None:
        assert clock(keys, pattern=pattern, formatter=formatter).next(values) == after

    def test_intervals(self) -> None:
        quarters = clock(["d"], interval="3 months")
        assert quarters.next(["2024-10-01"]) == ["2025-01-01"]
        assert quarters.values_at(at("2024-09-30T23:59"), ["2024-01-01"]) == ["2024-07-01"]
        assert hourly(interval="6 h").next(["2024-01-31", "18"]) == ["2024-02-01", "00"]
        assert clock(["d"], interval="7 d").next(["2024-02-26"]) == ["2024-03-04"]
        assert clock(["t"], interval="15 min").next(["2024-01-31 23:45:00"]) == ["2024-02-01 00:00:00"]

    @pytest.mark.parametrize(
        ("keys", "pattern", "formatter", "values"),
        [
            (["y", "m", "d"], "20$y-$m-$d", None, ["99", "12", "31"]),  # 2100 begins with 21
            (["d"], None, "yyMMdd", ["991231"]),
        ],
    )
    def test_times_that_values_can_not_say(
        self, keys: list[str], pattern: str | None, formatter: str | None, values: list[str]
    ) -> None:
        with pytest.raises(ValueError, match=r"no values like .* say 2100-01-01 00:00:00"):
            clock(keys, pattern=pattern, formatter=formatter).next(values)

    def test_a_form_that_can_not_say_the_interval(self) -> None:
        with pytest.raises(ValueError, match="no values like 2024-01-31 say 2024-01-31 01:00:00"):
            clock(["t"], interval="1 h").next(["2024-01-31"])


ZONES = st.sampled_from(
    [
        *(
            "UTC",
            "Europe/Berlin",
            "America/New_York",
            "America/Sao_Paulo",
            "Asia/Kolkata",
            "Pacific/Apia",
            "Asia/Tehran",
        ),
        *("Australia/Lord_Howe", "Africa/Casablanca", "Europe/Dublin", "America/St_Johns", "GMT+08:00"),
    ]
)
INSTANTS = st.datetimes(datetime(1985, 1, 1), datetime(2045, 1, 1)).map(
    lambda moment: (moment - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
)
KINDS = {
    "daily": (daily, ["2000-01-01"]),
    "hourly": (hourly, ["2000-01-01", "00"]),
    "ten minutes": (ten_minutes, ["2000-01-01", "00", "00"]),
    "monthly": (lambda zone: clock(["y", "m"], pattern="$y-$m-01", zone=zone, delay="31 d"), ["2000", "01"]),
    "compact": (lambda zone: clock(["t"], formatter="yyyyMMddHH", zone=zone, delay="1 h"), ["2000010100"]),
    "six hours": (lambda zone: hourly(zone, "6 h"), ["2000-01-01", "00"]),
}


def steps_to(kind: str, zone: str, instant: int) -> tuple[PartitionClock, list[str]]:
    make, like = KINDS[kind]
    clock = make(zone)
    return clock, clock.values_at(instant, like)


@given(kind=st.sampled_from(list(KINDS)), zone=ZONES, instant=INSTANTS)
@example(kind="hourly", zone="Europe/Berlin", instant=at("2024-10-27T01:30"))  # the second 02:30
@example(kind="hourly", zone="Europe/Berlin", instant=at("2024-03-31T01:30"))
@example(kind="ten minutes", zone="Australia/Lord_Howe", instant=at("2024-10-05T15:30"))
@example(kind="daily", zone="Pacific/Apia", instant=at("2011-12-30T10:00"))
def test_an_instant_lies_in_its_partition(kind: str, zone: str, instant: int) -> None:
    clock, values = steps_to(kind, zone, instant)
    start, deadline = clock.start(values), clock.deadline(values)
    assert start is not None and deadline is not None
    assert start <= instant < deadline
    assert not clock.is_due(values, instant), "it is complete, and this instant is still to come"
    assert clock.values_at(start, values) == values
    assert clock.values_at(instant, clock.next(values, 7)) == values


@given(kind=st.sampled_from(list(KINDS)), zone=ZONES, instant=INSTANTS, steps=st.integers(1, 30))
@example(kind="hourly", zone="Europe/Berlin", instant=at("2024-10-26T20:00"), steps=10)
@example(kind="hourly", zone="Europe/Berlin", instant=at("2024-03-30T20:00"), steps=10)
@example(kind="ten minutes", zone="Europe/Berlin", instant=at("2024-03-31T00:45"), steps=5)
def test_the_next_begins_later_and_nothing_lies_between(kind: str, zone: str, instant: int, steps: int) -> None:
    clock, values = steps_to(kind, zone, instant)
    there = values
    for _ in range(steps):
        after = clock.next(there)
        start, next_start = clock.start(there), clock.start(after)
        assert start is not None and next_start is not None and start < next_start
        assert clock.values_at(next_start, there) == after
        # Where a partition begins in an hour that comes twice, the one before still has instants after that.
        assume(not is_ambiguous(zone, next_start))
        assert clock.values_at(next_start - 1, there) == there
        there = after
    assert clock.next(values, steps) == there


def is_ambiguous(zone: str, instant: int) -> bool:
    """Whether the wall clock shows the time of this instant twice."""
    if "/" not in zone:
        return False
    local = datetime.fromtimestamp(instant / 1000, ZoneInfo(zone))
    return local.replace(fold=0).utcoffset() > local.replace(fold=1).utcoffset()  # type: ignore[operator]


@given(
    kind=st.sampled_from(["daily", "hourly", "ten minutes", "compact"]),
    zone=ZONES,
    instant=INSTANTS,
    watermark=st.integers(0, 2 * DAY),
)
def test_never_ready_before_flink_and_never_incomplete(kind: str, zone: str, instant: int, watermark: int) -> None:
    clock, values = steps_to(kind, zone, instant)
    start = clock.start(values)
    assert start is not None
    delay = {"daily": DAY, "ten minutes": 600_000}.get(kind, HOUR)
    if clock.is_due(values, start + watermark):
        assert watermark > delay
        # Whatever comes from then on belongs to other partitions.
        assert clock.values_at(start + watermark, values) != values
