"""Windows: the times of day in which jobs may run, as in `01:00-06:00 Asia/Shanghai, 22:30-23:30 UTC`.

A window is open while the clock on the wall of its zone shows a time within it. So where a change of the clock leaves
out an hour, a window within that hour doesn't open on that day; where an hour comes twice, the window is open twice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

MAX_WINDOWS = 20
"""Windows in one text."""

_DAY = 24 * 60
_MINUTE = timedelta(minutes=1)
_LOOKED_AHEAD = 8 * _DAY  # minutes
_FORM = re.compile(r"([0-9]{1,2}):([0-9]{2})\s*-\s*([0-9]{1,2}):([0-9]{2})(?:\s+([A-Za-z0-9_+/-]{1,64}))?")


@dataclass(frozen=True)
class Window:
    """From one minute of the day to another, which isn't part of it; past midnight if that is the earlier one."""

    start: int
    end: int
    zone: ZoneInfo

    def is_open(self, at: datetime) -> bool:
        """Whether the zone's clock shows a time within the window. `at` has a time zone, any."""
        local = at.astimezone(self.zone)
        minute = local.hour * 60 + local.minute
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


@dataclass(frozen=True)
class Windows:
    """Several windows, of which one has to be open. Without any it is always open."""

    windows: Sequence[Window] = ()

    @classmethod
    def parse(cls, text: str | None) -> "Windows":
        """Windows with commas between them; without a zone they are in UTC. Empty: always.

        Raises ValueError for a text that isn't of the form.
        """
        parts = [part.strip() for part in (text or "").split(",") if part.strip()]
        if len(parts) > MAX_WINDOWS:
            raise ValueError(f"expected at most {MAX_WINDOWS} windows, not {len(parts)}")
        return cls([_parsed(part) for part in parts])

    def is_open(self, at: datetime) -> bool:
        """Whether jobs may run at a time, which has a time zone."""
        return not self.windows or any(window.is_open(at) for window in self.windows)

    def opens_at(self, at: datetime) -> datetime | None:
        """The first minute from a time on at which a window is open, in UTC; None if none opens within eight days."""
        return self._next(at, is_open=True)

    def closes_at(self, at: datetime) -> datetime | None:
        """The first minute from a time on at which no window is open, in UTC; None if one always is."""
        return self._next(at, is_open=False)

    def _next(self, at: datetime, *, is_open: bool) -> datetime | None:
        # Clocks change at full minutes, and windows begin and end at them: looking at each minute misses nothing.
        found = at.astimezone(UTC)
        if self.is_open(found) == is_open:
            return found
        found = found.replace(second=0, microsecond=0)
        for _ in range(_LOOKED_AHEAD):
            found += _MINUTE
            if self.is_open(found) == is_open:
                return found
        return None


def _parsed(text: str) -> Window:
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:100]!r} is no window: expected one such as 01:00-06:00 Asia/Shanghai")
    start, end = _minute(match[1], match[2], text), _minute(match[3], match[4], text)
    if start in (end, _DAY):
        raise ValueError(f"{text!r} is no window: it begins before it ends, at two different times")
    try:
        return Window(start, end, ZoneInfo(match[5] or "UTC"))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{match[5]!r} is no time zone: expected a name such as Asia/Shanghai") from None


def _minute(hours: str, minutes: str, text: str) -> int:
    found = int(hours) * 60 + int(minutes)
    if int(minutes) > 59 or found > _DAY:
        raise ValueError(f"{text!r} is no window: times are from 00:00 to 24:00")
    return found
