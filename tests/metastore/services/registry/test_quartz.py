"""Schedules in the syntax of Quartz."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.services.registry.quartz import next_time

SATURDAY = datetime(2026, 11, 21, 4, 0, 0, tzinfo=UTC).timestamp()


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """Schedules are of the server's time zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("*/6 * * * * ?", "Sat 2026-11-21 04:00:06"),
        ("0 0 0 * * ? *", "Sun 2026-11-22 00:00:00"),
        ("0 0/10 * * * ?", "Sat 2026-11-21 04:10:00"),
        ("0 30 5-8 * * ?", "Sat 2026-11-21 05:30:00"),
        ("0 0 4 * * ?", "Sun 2026-11-22 04:00:00"),
        ("0 0 12 ? * 2", "Mon 2026-11-23 12:00:00"),
        ("0 0 12 ? * 1", "Sun 2026-11-22 12:00:00"),
        ("0 0 12 ? * 7", "Sat 2026-11-21 12:00:00"),
        ("0 0 0 ? * mon-fri", "Mon 2026-11-23 00:00:00"),
        ("0 0 0 ? * 3-5", "Tue 2026-11-24 00:00:00"),
        ("0 0 0 ? * 3,5", "Tue 2026-11-24 00:00:00"),
        ("0 0 0 ? * 3/2", "Tue 2026-11-24 00:00:00"),
        ("0 0 12 ? * 2#2", "Mon 2026-12-14 12:00:00"),
        ("0 0 12 ? * MON#2", "Mon 2026-12-14 12:00:00"),
        ("0 15 10 ? * 6L", "Fri 2026-11-27 10:15:00"),
        ("0 15 10 ? * FRIL", "Fri 2026-11-27 10:15:00"),
        ("0 15 10 ? * L", "Sat 2026-11-21 10:15:00"),
        ("0 0 0 L * ?", "Mon 2026-11-30 00:00:00"),
        ("0 0 0 15W * ?", "Tue 2026-12-15 00:00:00"),
        ("0 0 0 1/5 * ?", "Thu 2026-11-26 00:00:00"),
        ("0 0 0 1 MAR ?", "Mon 2027-03-01 00:00:00"),
        ("0 0 0 29 2 ?", "Tue 2028-02-29 00:00:00"),
        ("0 0 0 1 1 ? 2030", "Tue 2030-01-01 00:00:00"),
    ],
)
def test_when_it_is_due_next(schedule: str, expected: str) -> None:
    due = next_time(schedule, SATURDAY)
    assert due is not None
    assert datetime.fromtimestamp(due, UTC).strftime("%a %Y-%m-%d %H:%M:%S") == expected


@pytest.mark.parametrize("schedule", ["0 0 0 1 1 ? 2020", "0 0 0 31 2 ?"])
def test_never_again(schedule: str) -> None:
    assert next_time(schedule, SATURDAY) is None


@pytest.mark.parametrize(
    "schedule",
    [
        None,
        "",
        "x",
        "* * * * *",
        "* * * * * ? * *",
        "* * * * * *",
        "* * * ? * ?",
        "61 * * * * ?",
        "0 0 24 * * ?",
        "0 0 0 32 * ?",
        "0 0 0 ? 13 1",
        "0 0 0 ? * 0",
        "0 0 0 ? * 8",
        "R * * * * ?",
        "H(1-5) * * * * ?",
        "0 0 0 é * ?",
    ],
)
def test_what_is_no_schedule(schedule: str | None) -> None:
    with pytest.raises(ValueError, match="Invalid QUARTZ schedule expression"):
        next_time(schedule, SATURDAY)


def test_in_the_servers_time_zone() -> None:
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    before_the_clocks_change = datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp()
    due = next_time("0 0 6 * * ?", before_the_clocks_change)
    assert due is not None
    assert datetime.fromtimestamp(due, UTC).isoformat() == "2026-03-29T04:00:00+00:00"


@given(st.lists(st.text("0123456789*?/,-#LWMONFRIHR", min_size=1, max_size=4), min_size=6, max_size=7))
def test_any_text_has_an_answer(fields: list[str]) -> None:
    try:
        due = next_time(" ".join(fields), SATURDAY)
    except ValueError:
        return
    assert due is None or due > SATURDAY
