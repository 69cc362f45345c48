"""Windows: the times in which jobs may run, as in `01:00-06:00 Asia/Shanghai, cron(* 0-3 * * sat,sun) UTC`.

A window is open while the clock on the wall of its zone shows a time within it; one of cron's, while the expression
holds for the minute. So where a change of the clock leaves out an hour, a window within that hour doesn't open on that
day; where an hour comes twice, the window is open twice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter

MAX_WINDOWS = 20
"""Windows in one text."""

_DAY = 24 * 60
_ZONE = r"(?:\s+([A-Za-z0-9_+/-]{1,64}))?"
_FORM = re.compile(r"([0-9]{1,2}):([0-9]{2})\s*-\s*([0-9]{1,2}):([0-9]{2})" + _ZONE)
_FIELD = r"(?:[0-9*/,-]|[a-z]{3})+"  # without croniter's own extensions, random values among them
_CRON = re.compile(rf"cron\(\s*({_FIELD}(?:\s+{_FIELD}){{4}})\s*\)" + _ZONE, re.IGNORECASE)
_BETWEEN = re.compile(r",(?![^()]*\))")  # a comma that isn't within parentheses
_ANY = "*"


class Window(Protocol):
    """Times that come again and again."""

    def is_open(self, at: datetime) -> bool:
        """Whether a time, which has a time zone, any, is within the window."""


@dataclass(frozen=True)
class DailyWindow:
    """From one minute of the day to another, which isn't part of it; past midnight if that is the earlier one."""

    start: int
    end: int
    zone: ZoneInfo

    def is_open(self, at: datetime) -> bool:
        local = at.astimezone(self.zone)
        minute = local.hour * 60 + local.minute
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


@dataclass(frozen=True)
class CronWindow:
    """The minutes for which an expression of cron's holds: its five fields as croniter expands them."""

    fields: Sequence[Sequence[int | str]]
    zone: ZoneInfo

    def is_open(self, at: datetime) -> bool:
        local = at.astimezone(self.zone)
        minutes, hours, days, months, weekdays = self.fields
        by_day, by_weekday = _has(days, local.day), _has(weekdays, local.isoweekday() % 7)
        # As cron's manual has it: where both days are restricted, one of them is enough.
        either = _ANY not in days and _ANY not in weekdays
        is_day = by_day or by_weekday if either else by_day and by_weekday
        return _has(minutes, local.minute) and _has(hours, local.hour) and _has(months, local.month) and is_day


@dataclass(frozen=True)
class Windows:
    """Several windows, of which one has to be open. Without any it is always open."""

    windows: Sequence[Window] = ()

    @classmethod
    def parse(cls, text: str | None) -> "Windows":
        """Windows with commas between them; without a zone they are in UTC. Empty: always.

        Raises ValueError for a text that isn't of the form.
        """
        parts = [part.strip() for part in _BETWEEN.split(text or "") if part.strip()]
        if len(parts) > MAX_WINDOWS:
            raise ValueError(f"expected at most {MAX_WINDOWS} windows, not {len(parts)}")
        return cls([_parsed(part) for part in parts])

    def is_open(self, at: datetime) -> bool:
        """Whether jobs may run at a time, which has a time zone."""
        return not self.windows or any(window.is_open(at) for window in self.windows)


def _has(field: Sequence[int | str], value: int) -> bool:
    return _ANY in field or value in field


def _parsed(text: str) -> Window:
    if (cron := _CRON.fullmatch(text)) is not None:
        try:
            fields, _ = croniter.expand(cron[1].lower())
        except CroniterError as error:
            raise ValueError(f"{text[:100]!r} is no window: {error}") from None
        return CronWindow(fields, _zone(cron[2]))
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text[:100]!r} is no window: expected one such as 01:00-06:00 Asia/Shanghai, or cron(* 1-5 * * mon-fri)"
        )
    start, end = _minute(match[1], match[2], text), _minute(match[3], match[4], text)
    if start in (end, _DAY):
        raise ValueError(f"{text!r} is no window: it begins before it ends, at two different times")
    return DailyWindow(start, end, _zone(match[5]))


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name!r} is no time zone: expected a name such as Asia/Shanghai") from None


def _minute(hours: str, minutes: str, text: str) -> int:
    found = int(hours) * 60 + int(minutes)
    if int(minutes) > 59 or found > _DAY:
        raise ValueError(f"{text!r} is no window: times are from 00:00 to 24:00")
    return found
