"""Timestamps as texts, by themselves and compared with Java's DateTimeFormatter."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from metastore.services.commit_flag.timestamp_formats import FLINK_DEFAULT, TimestampFormat
from tests.support import jvm, reference

PATTERNS = [
    *("yyyy-MM-dd HH:mm:ss", "yyyyMMddHH", "yyyyMMdd", "uuuu-M-d H", "yy-M-d H:m", "MMddyy HH", "yMMdd"),
    *("yyyy-MM-dd HHmmssSSS", "dd.MM.yyyy 'at' HH 'o''clock'", "yyyy/M/d"),
]


def moment(text: str, pattern: str | None = None) -> datetime | None:
    reading = (TimestampFormat.of_pattern(pattern) if pattern else FLINK_DEFAULT).read(text)
    return reading.moment if reading else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31", datetime(2024, 1, 31)),
        ("2024-1-3", datetime(2024, 1, 3)),
        ("2024-01-31 07:00:00", datetime(2024, 1, 31, 7)),
        ("2024-1-31 7:5:9.25", datetime(2024, 1, 31, 7, 5, 9, 250_000)),
        # What is too large is carried over.
        ("2024-02-30", datetime(2024, 3, 1)),
        ("2024-13-01", datetime(2025, 1, 1)),
        ("2024-00-00", datetime(2023, 11, 30)),
        ("2024-12-31 24:00:00", datetime(2025, 1, 1)),
        ("2024-12-31 23:59:99", datetime(2025, 1, 1, 0, 0, 39)),
        # No time.
        ("", None),
        ("__HIVE_DEFAULT_PARTITION__", None),
        ("2024-01", None),
        ("20240131", None),
        ("2024-01-31 07", None),
        ("2024-01-31T07:00:00", None),
        ("2024-01-31 ", None),
        ("2024-01-001", None),
        ("٢٠٢٤-01-31", None),
        ("0000-01-01", None),
        ("9999999999-01-01", None),
        ("9999-12-32", None),
    ],
)
def test_the_default(text: str, expected: datetime | None) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyyMMddHH", "2024013107", datetime(2024, 1, 31, 7)),
        ("yyyy-MM-dd", "2024-01-31", datetime(2024, 1, 31)),
        ("yyyy-MM-dd", "2024-1-31", None),
        ("yy-M-d H", "24-02-1 7", datetime(2024, 2, 1, 7)),
        ("yy-M-d H", "99-12-31 23", datetime(2099, 12, 31, 23)),
        ("yMMdd", "20240131", datetime(2024, 1, 31)),
        ("yyyy-MM-dd'T'HH''", "2024-01-31T07'", datetime(2024, 1, 31, 7)),
        ("yyyyMMddHHmmssSSS", "20240131070809125", datetime(2024, 1, 31, 7, 8, 9, 125_000)),
        # The last day of a month for one that it doesn't have, and the next midnight for 24 o'clock.
        ("yyyy-MM-dd", "2023-02-29", datetime(2023, 2, 28)),
        ("yyyy-MM-dd HH", "2024-02-29 24", datetime(2024, 3, 1)),
        ("yyyy-MM-dd HH:mm", "2024-02-29 24:01", None),
        ("yyyy-MM-dd HH", "2024-02-29 25", None),
        ("yyyy-MM-dd", "2024-13-01", None),
        ("yyyy-MM-dd", "2024-01-32", None),
        ("yyyy-MM-dd", "0000-01-01", None),
        ("yyyy.MM.dd", "2024x01x31", None),
    ],
)
def test_patterns(pattern: str, text: str, expected: datetime | None) -> None:
    assert moment(text, pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("yyyy-MMM-dd", "MMM is not understood here; expected yyyy"),
        ("YYYY-MM-dd", "YYYY is not understood"),
        ("yyyy-MM-dd hh", "hh is not understood"),
        ("yyyy-MM-ddXXX", "XXX is not understood"),
        ("yyyy-MM-ddTHH", "T is not understood"),
        ("yyyyy-MM-dd", "yyyyy is not understood"),
        ("yyyy-MM-dd HHH", "HHH is not understood"),
        ("yyyy-MM-dd[ HH]", r"\[ is not understood"),
        ("yyyy-MM-dd'T", "' is not understood"),
        ("yyyy-MM", "expected a year, a month and a day"),
        ("HH:mm:ss", "expected a year"),
        ("", "expected a year"),
        ("yyyy-MM-dd mm", "no finer number without the coarser ones"),
        ("yyyy-MM-dd HH ss", "no finer number without the coarser ones"),
        ("yyyy-MM-dd yy", "expected the year once"),
        ("yyyyMd", "expected something between"),
    ],
)
def test_patterns_that_are_none(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        TimestampFormat.of_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "like", "padded", "expected"),
    [
        (None, "2024-12-31", True, "2025-01-02"),
        (None, "2024-12-31", False, "2025-1-2"),
        (None, "2024-09-9", False, "2025-01-2"),
        (None, "2024-12-31 00:00:00.5", True, "2025-01-02 03:04:05.6"),
        ("yyyy-M-d H", "2024-12-31 10", True, "2025-1-2 3"),
        ("yyyy-M-d H", "2024-12-31 05", True, "2025-1-2 03"),
        ("yyMMdd", "241231", False, "250102"),
        ("yyyyMMdd'T'HHmmssSSS", "20241231T235959000", True, "20250102T030405678"),
    ],
)
def test_writing_in_the_form_of_another(pattern: str | None, like: str, padded: bool, expected: str) -> None:
    format = TimestampFormat.of_pattern(pattern) if pattern else FLINK_DEFAULT
    reading = format.read(like)
    assert reading is not None
    written = format.write(datetime(2025, 1, 2, 3, 4, 5, 678_000), reading.pieces, padded=padded)
    assert "".join(written) == expected


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A view of a JVM."""
    if (reason := reference.missing()) is not None:
        pytest.skip(reason)
    with jvm.running([], tmp_path_factory.mktemp("jvm")) as gateway:
        yield gateway.jvm.java


def flinks_default(java: Any) -> Any:
    """The formatter that Flink has when none is given."""
    chrono = java.time.temporal.ChronoField
    normal = java.time.format.SignStyle.NORMAL
    builder = java.time.format.DateTimeFormatterBuilder()
    builder.appendValue(chrono.YEAR, 1, 10, normal)
    for before, field in (("-", chrono.MONTH_OF_YEAR), ("-", chrono.DAY_OF_MONTH)):
        builder.appendLiteral(before).appendValue(field, 1, 2, normal)
    builder.optionalStart()
    for before, field in ((" ", chrono.HOUR_OF_DAY), (":", chrono.MINUTE_OF_HOUR), (":", chrono.SECOND_OF_MINUTE)):
        builder.appendLiteral(before).appendValue(field, 1, 2, normal)
    builder.optionalStart().appendFraction(chrono.NANO_OF_SECOND, 1, 9, True).optionalEnd().optionalEnd()
    return builder.toFormatter().withResolverStyle(java.time.format.ResolverStyle.LENIENT)


def read_by_java(java: Any, formatter: Any, text: str) -> datetime | None:
    """A text as Flink reads it: as a date and time, otherwise as a date."""
    try:
        found = java.time.LocalDateTime.parse(text, formatter)
    except Py4JJavaError:
        try:
            found = java.time.LocalDate.parse(text, formatter).atStartOfDay()
        except Py4JJavaError:
            return None
    try:
        return datetime(
            *(found.getYear(), found.getMonthValue(), found.getDayOfMonth()),
            *(found.getHour(), found.getMinute(), found.getSecond(), found.getNano() // 1000),
        )
    except ValueError:
        return None  # a year that Python doesn't have


NUMBERS = st.integers(0, 32).flatmap(lambda number: st.sampled_from([f"{number}", f"{number:02d}", f"{number:03d}"]))
YEARS = st.sampled_from(["2024", "2023", "24", "0", "0001", "9998", "02024", "1900"])


@pytest.mark.hive
@settings(deadline=None, max_examples=80)
@given(
    year=YEARS,
    numbers=st.lists(NUMBERS, min_size=2, max_size=5),
    fraction=st.sampled_from(["", ".5", ".000000001"]),
)
@example(year="2024", numbers=["2", "30", "24", "0", "0"], fraction="")
@example(year="9998", numbers=["25", "0"], fraction="")
def test_the_default_is_flinks(java: Any, year: str, numbers: list[str], fraction: str) -> None:
    before = ["-", "-", " ", ":", ":"]
    text = year + "".join(f"{sign}{number}" for sign, number in zip(before, numbers, strict=False)) + fraction
    assert moment(text) == read_by_java(java, flinks_default(java), text)


@pytest.mark.hive
@settings(deadline=None, max_examples=80)
@given(pattern=st.sampled_from(PATTERNS), data=st.data())
def test_patterns_are_javas(java: Any, pattern: str, data: st.DataObject) -> None:
    formatter = java.time.format.DateTimeFormatter.ofPattern(pattern, java.util.Locale.ROOT)
    time = data.draw(st.datetimes(datetime(1999, 1, 1), datetime(2101, 1, 1)))
    text = java.time.LocalDateTime.parse(time.isoformat(timespec="microseconds")).format(formatter)
    assert moment(text, pattern) == read_by_java(java, formatter, text) is not None
    # The same with a character changed, added or left out.
    position = data.draw(st.integers(0, len(text) - 1))
    changed = text[:position] + data.draw(st.text("0123456789 x", max_size=2)) + text[position + 1 :]
    assert moment(changed, pattern) == read_by_java(java, formatter, changed)
