"""Windows: open while the zone's clock says so, over both changes of the clock."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from lake.maintenance.decisions.windows import Windows

BERLIN = ZoneInfo("Europe/Berlin")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def open_minutes(text: str, day: str, zone: ZoneInfo) -> list[str]:
    """The minutes of a day of a zone's, in UTC, in which windows are open: the first and the last of each stretch."""
    windows, at = Windows.parse(text), datetime.fromisoformat(day).replace(tzinfo=zone).astimezone(UTC)
    end = (datetime.fromisoformat(day) + timedelta(days=1)).replace(tzinfo=zone).astimezone(UTC)
    found, was_open = [], False
    while at < end:
        if windows.is_open(at) != was_open:
            was_open = not was_open
            found.append(at.strftime("%H:%M"))
        at += timedelta(minutes=1)
    return found


def test_a_window() -> None:
    windows = Windows.parse("01:00-06:00 Asia/Shanghai")
    assert not windows.is_open(utc("2026-01-01T16:59:59"))
    assert windows.is_open(utc("2026-01-01T17:00:00"))
    assert windows.is_open(utc("2026-01-01T21:59:59"))
    assert not windows.is_open(utc("2026-01-01T22:00:00"))


def test_past_midnight_and_several() -> None:
    windows = Windows.parse("22:30-01:30, 12:00-13:00 Asia/Shanghai,")
    assert windows.is_open(utc("2026-01-01T23:00:00"))
    assert windows.is_open(utc("2026-01-01T01:29:00"))
    assert windows.is_open(utc("2026-01-01T04:30:00")), "noon in Shanghai"
    assert not windows.is_open(utc("2026-01-01T12:30:00"))


def test_without_a_window_it_is_open() -> None:
    for text in (None, "", " , "):
        assert Windows.parse(text).is_open(utc("2026-01-01T00:00:00"))
    assert open_minutes("00:00-24:00", "2026-01-01", ZoneInfo("UTC")) == ["00:00"], "it never closes"


def test_the_clock_goes_forward() -> None:
    """In Berlin 2026-03-29 has no time from 02:00 to 03:00; 02:00 would be 01:00 UTC."""
    assert open_minutes("01:00-05:00 Europe/Berlin", "2026-03-29", BERLIN) == ["00:00", "03:00"]
    assert open_minutes("02:15-02:45 Europe/Berlin", "2026-03-29", BERLIN) == []
    assert open_minutes("01:30-02:30 Europe/Berlin", "2026-03-29", BERLIN) == ["00:30", "01:00"]
    assert open_minutes("02:30-03:30 Europe/Berlin", "2026-03-29", BERLIN) == ["01:00", "01:30"]


def test_the_clock_goes_back() -> None:
    """In Berlin 2026-10-25 has the time from 02:00 to 03:00 twice: from 00:00 UTC, and from 01:00 UTC."""
    assert open_minutes("01:00-05:00 Europe/Berlin", "2026-10-25", BERLIN) == ["23:00", "04:00"]
    assert open_minutes("02:15-02:45 Europe/Berlin", "2026-10-25", BERLIN) == ["00:15", "00:45", "01:15", "01:45"]
    assert open_minutes("01:30-02:30 Europe/Berlin", "2026-10-25", BERLIN) == ["23:30", "00:30", "01:00", "01:30"]


def test_cron() -> None:
    windows = Windows.parse("cron(* 1-5 * * mon-fri) Asia/Shanghai, cron(0,30 12 1 jan *)")
    assert windows.is_open(utc("2026-01-01T17:00:00")), "01:00 on a Friday in Shanghai"
    assert not windows.is_open(utc("2026-01-01T22:00:00"))
    assert not windows.is_open(utc("2026-01-02T17:00:00")), "Saturday"
    assert windows.is_open(utc("2026-01-04T17:00:00")), "Monday"
    assert windows.is_open(utc("2026-01-01T12:30:59"))
    assert not windows.is_open(utc("2026-01-01T12:31:00"))
    assert Windows.parse("cron(* * 13 * fri)").is_open(utc("2026-01-02T00:00:00")), "one of the two days is enough"
    for text in ("cron(* 2 * * *) Europe/Berlin", "02:00-03:00 Europe/Berlin"):
        assert open_minutes(text, "2026-03-29", BERLIN) == []
        assert open_minutes(text, "2026-10-25", BERLIN) == ["00:00", "02:00"]


@given(
    minute=st.integers(0, 59) | st.none(),
    hour=st.integers(0, 23) | st.none(),
    day=st.integers(1, 31) | st.none(),
    month=st.integers(1, 12) | st.none(),
    weekday=st.integers(0, 7) | st.none(),
    at=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),
)
def test_cron_as_croniter_has_it(
    minute: int | None, hour: int | None, day: int | None, month: int | None, weekday: int | None, at: datetime
) -> None:
    fields = " ".join("*" if each is None else str(each) for each in (minute, hour, day, month, weekday))
    at = at.replace(second=0, microsecond=0)
    for moment in (at, croniter(fields, at).get_next(datetime) if croniter.is_valid(fields, strict=True) else at):
        assert Windows.parse(f"cron({fields})").is_open(moment) == croniter.match(fields, moment)


@pytest.mark.parametrize(
    "text",
    [
        "01:00",
        "1-2",
        "01:00-01:00",
        "24:00-01:00",
        "01:00-25:00",
        "01:60-02:00",
        "01:00-02:00 Mars/Olympus",
        "01:00-02:00 ../../etc/passwd",
        "01:00-02:00 UTC UTC",
        ",".join(["01:00-02:00"] * 21),
        "x" * 10_000,
        "cron(* * * *)",
        "cron(60 * * * *)",
        "cron(* * * * *) Mars",
        "cron(H * * * *)",
        "cron(* * * * mon#1)",
        "cron(*/0 * * * *)",
        "cron(* * * * *",
        "* 1-5 * * *",
    ],
    ids=range(19),
)
def test_what_is_no_window(text: str) -> None:
    with pytest.raises(ValueError, match=r"window|zone"):
        Windows.parse(text)
