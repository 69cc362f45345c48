"""What a table's properties say about readiness."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.protocol.formats.commit_mode import CommitMode
from lake.protocol.formats.durations import Interval, parse_duration
from metastore.services.commit_flag.policy import LatePolicy, ReadinessProperties, parse_time_zone

HOUR, DAY = 3_600_000, 86_400_000
KEYS = ["dt", "hr", "region"]

MODE = "partition.commit.mode"
PATTERN = "partition.time-extractor.timestamp-pattern"
FORMATTER = "partition.time-extractor.timestamp-formatter"
POLICY = "sink.partition-commit.policy.kind"


def event_time(parameters: dict[str, str], keys: list[str] = KEYS) -> ReadinessProperties:
    return ReadinessProperties.of_table({MODE: "event-time"} | parameters, keys)


def test_defaults() -> None:
    properties = ReadinessProperties.of_table({}, KEYS)
    assert properties.mode is CommitMode.NONE
    assert (properties.delay, properties.time_zone, properties.success_file) == (0, UTC, None)
    assert (properties.late_rows, properties.create_empty) == (LatePolicy.NEXT, False)
    assert (properties.idle_timeout, properties.max_ahead) == (HOUR, DAY)
    assert properties.interval == Interval(milliseconds=DAY)


def test_all_of_them() -> None:
    properties = ReadinessProperties.of_table(
        {
            MODE: "Event-Time",
            "sink.partition-commit.delay": "1 h",
            "sink.partition-commit.watermark-time-zone": "Asia/Shanghai",
            PATTERN: "$dt $hr:00:00",
            FORMATTER: "yyyyMMdd HH:mm:ss",
            POLICY: "metastore, Success-File",
            "sink.partition-commit.success-file.name": "_DONE",
            "partition.interval": "6 h",
            "partition.late-rows": "reopen",
            "partition.watermark.idle-timeout": "10min",
            "partition.watermark.max-ahead": "2 hours",
            "partition.create-empty": "TRUE",
            "comment": "orders",
        },
        KEYS[:2],
    )
    assert properties.mode is CommitMode.EVENT_TIME
    assert properties.delay == HOUR
    assert properties.time_zone == ZoneInfo("Asia/Shanghai")
    assert properties.success_file == "_DONE"
    assert properties.interval == Interval(milliseconds=6 * HOUR)
    assert properties.late_rows is LatePolicy.REOPEN
    assert (properties.idle_timeout, properties.max_ahead) == (600_000, 2 * HOUR)
    assert properties.create_empty
    assert properties.extractor is not None
    reading = properties.extractor.read(["20240131", "06"])
    assert reading is not None and reading.moment == datetime(2024, 1, 31, 6)


def test_zero_is_never_idle() -> None:
    assert event_time({"partition.watermark.idle-timeout": "0"}).idle_timeout is None


@pytest.mark.parametrize(
    ("policy", "name", "file"),
    [
        ("metastore", "_DONE", None),
        ("metastore,success-file", None, "_SUCCESS"),
        ("success-file,metastore", "done.flag", "done.flag"),
    ],
)
def test_the_success_file(policy: str, name: str | None, file: str | None) -> None:
    named = {"sink.partition-commit.success-file.name": name} if name else {}
    assert event_time({POLICY: policy} | named).success_file == file


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (MODE, "sometimes", "expected one of none, manual, event-time, process-time"),
        ("sink.partition-commit.delay", "an hour", "expected a duration such as 10 min, 1 h or 1 d"),
        ("sink.partition-commit.delay", "1 month", "expected a duration"),
        ("sink.partition-commit.delay", "", "expected a duration"),
        ("sink.partition-commit.delay", "-1 h", "expected a duration"),
        ("sink.partition-commit.watermark-time-zone", "Mars/Olympus", "expected a time zone such as UTC"),
        (
            "partition.time-extractor.kind",
            "custom",
            "expected default; a custom one is a class that only Flink can run",
        ),
        (PATTERN, "$day $hr:00:00", "'$day' names no partition key; there are dt, hr, region"),
        (PATTERN, "$dt $hour:00:00", "'$hour' names no partition key"),
        (PATTERN, "dt", "expected partition keys in it, such as $dt"),
        (PATTERN, "$dt $dt", "expected each partition key once"),
        (FORMATTER, "yyyy-MMM-dd", "MMM is not understood here"),
        (POLICY, "custom", "custom is a class that only Flink can run"),
        (POLICY, "metastore,email", "expected metastore, success-file or both"),
        (POLICY, "success-file", "expected metastore too, without which no partition becomes ready"),
        ("sink.partition-commit.success-file.name", "a/b", "expected the name of a file, without a directory"),
        ("sink.partition-commit.success-file.name", "..", "expected the name of a file"),
        ("sink.partition-commit.success-file.name", "", "expected the name of a file"),
        ("partition.interval", "0 h", "expected an interval of a millisecond or more"),
        ("partition.interval", "1 fortnight", "expected an interval such as 10 min"),
        ("partition.interval", "90 s", "expected a multiple of the shortest step"),
        ("partition.late-rows", "wait", "expected one of next, reopen, drop"),
        ("partition.watermark.idle-timeout", "1 parsec", "expected a duration"),
        ("partition.watermark.max-ahead", "1e3", "expected a duration"),
        ("partition.create-empty", "yes", "expected true or false"),
    ],
)
def test_bad_values(name: str, value: str, expected: str) -> None:
    with pytest.raises(ValueError) as raised:
        event_time({PATTERN: "$dt $hr:00:00"} | {name: value})
    message = str(raised.value)
    assert message.startswith(f"{name}: bad value {value!r}: "), message
    assert expected in message, message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("pattern", "formatter", "reason"),
    [
        # The formatter never reads what the pattern makes.
        ("$dt/$hr:00:00", None, "expected what makes a time that the formatter reads"),
        ("$dt $hr:00:00", "yyyyMMddHH", "expected what makes a time that the formatter reads"),
        ("$dt 99:00:00", "yyyy-MM-dd HH:mm:ss", "expected what makes a time that the formatter reads"),
        # The date is not in the values, or not all of it.
        ("2024-01-31 $hr:00:00", None, "its date from partition keys"),
        ("$dt-01-$hr", None, "its date from partition keys"),
        # No month but some has a 31st.
        ("$dt-31", None, "expected a multiple of the shortest step"),
        # hr=07 has no minutes.
        ("$dt $hr", None, "its values say seconds; expected partition.interval too"),
    ],
)
def test_patterns_with_which_no_partition_becomes_ready(pattern: str, formatter: str | None, reason: str) -> None:
    parameters = {PATTERN: pattern} | ({FORMATTER: formatter} if formatter else {})
    with pytest.raises(ValueError) as raised:
        event_time(parameters)
    assert str(raised.value).startswith(f"{PATTERN}: bad value {pattern!r}: ")
    assert reason in str(raised.value)
    for mode in ("none", "manual", "process-time"):
        assert ReadinessProperties.of_table(parameters | {MODE: mode}, KEYS).mode == mode


def test_a_formatter_that_needs_a_pattern() -> None:
    with pytest.raises(ValueError, match=r"timestamp-pattern: bad value '\$dt \$hr': expected what makes a time"):
        event_time({FORMATTER: "yyyyMMddHH", PATTERN: "$dt $hr"})


def test_event_time_needs_partition_keys() -> None:
    with pytest.raises(
        ValueError, match=r"^partition\.commit\.mode: bad value 'event-time': expected a table with partition"
    ):
        event_time({}, [])
    assert ReadinessProperties.of_table({}, []).extractor is None


def test_without_mode_bad_properties_are_flinks_own_matter() -> None:
    parameters = {
        POLICY: "metastore,custom",
        "partition.time-extractor.kind": "custom",
        "sink.partition-commit.delay": "soon",
        "sink.partition-commit.watermark-time-zone": "Mars/Olympus",
        PATTERN: "$nothing",
    }
    properties = ReadinessProperties.of_table(parameters, KEYS)
    assert properties == replace(ReadinessProperties.of_table({}, KEYS), extractor=None, interval=None)
    with pytest.raises(ValueError, match="custom is a class"):
        ReadinessProperties.of_table(parameters | {MODE: "manual"}, KEYS)


@pytest.mark.parametrize(
    ("pattern", "formatter", "keys", "interval"),
    [
        (None, None, ["dt"], Interval(milliseconds=DAY)),
        ("$dt", None, ["dt"], Interval(milliseconds=DAY)),
        ("$dt 08:00:00", None, ["dt"], Interval(milliseconds=DAY)),
        ("$dt $hr:00:00", None, ["dt", "hr"], Interval(milliseconds=HOUR)),
        ("$dt $hr:0:0", None, ["dt", "hr"], Interval(milliseconds=HOUR)),
        ("$dt $hr:30:00", None, ["dt", "hr"], Interval(milliseconds=HOUR)),
        ("$dt $hr:$mi:00", None, ["dt", "hr", "mi"], Interval(milliseconds=60_000)),
        ("$y-$m-$d $h:00:00", None, ["y", "m", "d", "h"], Interval(milliseconds=HOUR)),
        ("$y-$m-01", None, ["y", "m"], Interval(months=1)),
        ("$y-01-01", None, ["y"], Interval(months=12)),
        ("20$y-$m-$d", None, ["y", "m", "d"], Interval(milliseconds=DAY)),
        (None, "yyyyMMddHH", ["dth"], Interval(milliseconds=HOUR)),
        ("$dt$hr", "yyyyMMddHH", ["dt", "hr"], Interval(milliseconds=HOUR)),
        ("$dt", "yyyy/M/d", ["dt"], Interval(milliseconds=DAY)),
        # Of two keys the longer; keys' case doesn't matter.
        ("$date $DATE_HOUR:00:00", None, ["date", "date_hour"], Interval(milliseconds=HOUR)),
    ],
)
def test_the_interval_is_the_finest_that_the_values_say(
    pattern: str | None, formatter: str | None, keys: list[str], interval: Interval
) -> None:
    parameters = ({PATTERN: pattern} if pattern else {}) | ({FORMATTER: formatter} if formatter else {})
    assert event_time(parameters, keys).interval == interval


@pytest.mark.parametrize(
    ("pattern", "interval"),
    [("$dt $hr:00:00", "6 h"), ("$dt $hr:00:00", "1 d"), ("$dt", "7 d"), ("$dt", "1 month"), ("$dt", "15 min")],
)
def test_intervals_that_the_values_can_say(pattern: str, interval: str) -> None:
    assert event_time({PATTERN: pattern, "partition.interval": interval}).interval == Interval.parse(interval)


@pytest.mark.parametrize(
    ("pattern", "interval"),
    [("$dt $hr:00:00", "10 min"), ("$dt $hr:00:00", "90 min"), ("$dt-01", "1 d")],
)
def test_intervals_that_they_can_not_say(pattern: str, interval: str) -> None:
    with pytest.raises(ValueError, match=r"^partition\.interval: bad value"):
        event_time({PATTERN: pattern, "partition.interval": interval})


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        *(("1 h", HOUR), ("1h", HOUR), (" 2  Hours ", 2 * HOUR), ("1 d", DAY), ("3days", 3 * DAY), ("10min", 600_000)),
        *(("5 m", 300_000), ("30 s", 30_000), ("7 sec", 7000), ("500 ms", 500), ("500", 500), ("0", 0)),
        *(("1999 µs", 1), ("1 ns", 0), ("2 millis", 2), ("1 MINUTE", 60_000)),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "h", "1 h 30 min", "1.5 h", "-1 s", "1 w", "१ h", "1\xa0x", "9" * 30, "9" * 18 + " d"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "hours"),
    [("GMT-08:00", -8), ("+8", 8), ("UTC+05:30", 5.5), ("+0930", 9.5), ("UTC", 0), ("Asia/Shanghai", 8)],
)
def test_time_zones(text: str, hours: float) -> None:
    assert datetime(2024, 1, 1, tzinfo=parse_time_zone(text)).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize(
    "text", ["", "Europe", "../../etc/passwd", "/etc/localtime", "GMT+19", "+08:60", "x" * 300, "a\0b"]
)
def test_what_is_no_time_zone(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time zone"):
        parse_time_zone(text)


@given(
    parameters=st.dictionaries(
        st.sampled_from([PATTERN, FORMATTER, "partition.interval"]),
        st.text("$dthr-: 0yMHms'[", max_size=12)
        | st.sampled_from(["$dt $hr:00:00", "yyyy-MM-dd HH:mm:ss", "1 h", "2 d"]),
    )
)
def test_whatever_is_accepted_has_a_next_partition(parameters: dict[str, str]) -> None:
    try:
        properties = event_time(parameters, ["dt", "hr"])
    except ValueError as error:
        assert str(error).startswith("partition.")
        return
    assert properties.extractor is not None and properties.interval is not None
    example = properties.extractor.example(properties.interval)
    reading = properties.extractor.read(example.values)
    assert reading is not None
    later = properties.interval.add(reading.moment, 1)
    assert properties.extractor.write(later, example.values) != example.values
