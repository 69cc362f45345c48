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
    assert windows.opens_at(utc("2026-01-01T22:00:30")) == utc("2026-01-02T17:00:00")
    assert windows.closes_at(utc("2026-01-01T17:30:30")) == utc("2026-01-01T22:00:00")


def test_past_midnight_and_several() -> None:
    windows = Windows.parse("22:30-01:30, 12:00-13:00 Asia/Shanghai,")
    assert windows.is_open(utc("2026-01-01T23:00:00"))
    assert windows.is_open(utc("2026-01-01T01:29:00"))
    assert windows.is_open(utc("2026-01-01T04:30:00")), "noon in Shanghai"
    assert not windows.is_open(utc("2026-01-01T12:30:00"))
    assert windows.opens_at(utc("2026-01-01T02:00:00")) == utc("2026-01-01T04:00:00")


def test_without_a_window_it_is_open() -> None:
    for text in (None, "", " , "):
        windows = Windows.parse(text)
        assert windows.is_open(utc("2026-01-01T00:00:00"))
        assert windows.closes_at(utc("2026-01-01T00:00:00")) is None
    assert Windows.parse("00:00-24:00").closes_at(utc("2026-01-01T00:00:00")) is None


def test_the_clock_goes_forward() -> None:
    """In Berlin 2026-03-29 has no time from 02:00 to 03:00; 02:00 would be 01:00 UTC."""
    assert open_minutes("01:00-05:00 Europe/Berlin", "2026-03-29", BERLIN) == ["00:00", "03:00"]
    assert open_minutes("02:15-02:45 Europe/Berlin", "2026-03-29", BERLIN) == []
    assert open_minutes("01:30-02:30 Europe/Berlin", "2026-03-29", BERLIN) == ["00:30", "01:00"]
    assert open_minutes("02:30-03:30 Europe/Berlin", "2026-03-29", BERLIN) == ["01:00", "01:30"]
    closing = Windows.parse("01:30-02:30 Europe/Berlin").closes_at(utc("2026-03-29T00:45:00"))
    assert closing == utc("2026-03-29T01:00:00"), "the clock leaves the window as it jumps"
    assert Windows.parse("02:15-02:45 Europe/Berlin").opens_at(utc("2026-03-28T12:00:00")) == utc("2026-03-30T00:15:00")


def test_the_clock_goes_back() -> None:
    """In Berlin 2026-10-25 has the time from 02:00 to 03:00 twice: from 00:00 UTC, and from 01:00 UTC."""
    assert open_minutes("01:00-05:00 Europe/Berlin", "2026-10-25", BERLIN) == ["23:00", "04:00"]
    assert open_minutes("02:15-02:45 Europe/Berlin", "2026-10-25", BERLIN) == ["00:15", "00:45", "01:15", "01:45"]
    assert open_minutes("01:30-02:30 Europe/Berlin", "2026-10-25", BERLIN) == ["23:30", "00:30", "01:00", "01:30"]
    assert Windows.parse("02:15-02:45 Europe/Berlin").closes_at(utc("2026-10-25T01:20:00")) == utc(
        "2026-10-25T01:45:00"
    )


def test_cron() -> None:
    windows = Windows.parse("cron(* 1-5 * * mon-fri) Asia/Shanghai, cron(0,30 12 1 jan *)")
    assert windows.is_open(utc("2026-01-01T17:00:00")), "01:00 on a Friday in Shanghai"
    assert windows.closes_at(utc("2026-01-01T17:00:00")) == utc("2026-01-01T22:00:00")
    assert windows.opens_at(utc("2026-01-02T22:00:00")) == utc("2026-01-04T17:00:00"), "not on Saturday and Sunday"
    assert windows.is_open(utc("2026-01-01T12:30:59"))
    assert not windows.is_open(utc("2026-01-01T12:31:00"))
    assert Windows.parse("cron(* * 13 * fri)").is_open(utc("2026-01-02T00:00:00")), "one of the two days is enough"
    assert Windows.parse("cron(* * 29 2 *)").opens_at(utc("2026-01-01T00:00:00")) is None, "not within eight days"
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


@given(
    start=st.integers(0, 1439),
    length=st.integers(1, 1438),
    at=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
)
def test_it_opens_and_closes_when_it_says_so(start: int, length: int, at: datetime, zone: str) -> None:
    end = (start + length) % 1440
    windows = Windows.parse(f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02} {zone}")
    opens, closes = windows.opens_at(at), windows.closes_at(at)
    assert opens is not None
    assert closes is not None
    assert windows.is_open(opens)
    assert not windows.is_open(closes)
    assert (opens == at) != (closes == at)
    for changes in (opens, closes):
        if changes > at:
            assert windows.is_open(changes) != windows.is_open(changes - timedelta(seconds=1))


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
