"""Parses durations and intervals in table properties: `10 min`, `1 h`, `1 d`."""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

_MAX_LENGTH = 100  # characters of a text
_TEXT = re.compile(r"\s*([0-9]+)\s*([^\s0-9]*)\s*")

_SECOND = 10**9  # units in nanoseconds
_UNITS = {
    "d day days": 86_400 * _SECOND,
    "h hour hours": 3_600 * _SECOND,
    "min m minute minutes": 60 * _SECOND,
    "s sec secs second seconds": _SECOND,
    "ms milli millis millisecond milliseconds": 10**6,
    "µs micro micros microsecond microseconds": 10**3,
    "ns nano nanos nanosecond nanoseconds": 1,
}
_NANOSECONDS = {label: size for labels, size in _UNITS.items() for label in labels.split()} | {"": 10**6}
_MONTHS = {"month": 1, "months": 1, "year": 12, "years": 12}

# A thousand years: far more than anybody means, and far from where dates end.
_LONGEST = 365_250 * 86_400_000


def parse_duration(text: str) -> int:
    """Milliseconds of a duration in Flink's grammar (its TimeUtils): digits, then a unit; without one, milliseconds.

    What is smaller than a millisecond is cut off. Raises ValueError if the text is none, or says more than a thousand
    years.
    """
    number, unit = _split(text)
    if unit not in _NANOSECONDS:
        raise ValueError("expected a duration such as 10 min, 1 h or 1 d")
    milliseconds = number * _NANOSECONDS[unit] // 10**6
    if milliseconds > _LONGEST:
        raise ValueError("expected a duration of at most 1000 years")
    return milliseconds


def _split(text: str) -> tuple[int, str]:
    match = _TEXT.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    # Java's long ends the number of digits.
    return (int(match[1]), match[2].lower()) if match and len(match[1]) < 20 else (0, "?")


@dataclass(frozen=True)
class Interval:
    """The distance from one partition's start to the next one's, on the wall clock: months or milliseconds.

    Whole days are days of the calendar, which the wall clock always begins anew, not 24 hours of real time.
    """

    months: int = 0
    milliseconds: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """A duration in Flink's grammar, or months or years. Raises ValueError if the text is none, or not positive."""
        number, unit = _split(text)
        try:
            if unit in _MONTHS and number <= 12_000:
                interval = cls(months=number * _MONTHS[unit])
            else:
                interval = cls(milliseconds=parse_duration(text))
        except ValueError:
            raise ValueError("expected an interval such as 10 min, 1 h, 1 d or 1 month") from None
        if interval == cls():
            raise ValueError("expected an interval of a millisecond or more")
        return interval

    def is_multiple_of(self, other: "Interval") -> bool:
        """Whether steps of `other` end where a step of this one does, wherever both begin."""
        if other.months:
            return not self.milliseconds and self.months % other.months == 0
        # A month is a number of days, whichever.
        return (86_400_000 if self.months else self.milliseconds) % other.milliseconds == 0

    def add(self, moment: datetime, steps: int) -> datetime:
        """The local time so many intervals later; a day that its month doesn't have becomes the last that it has.

        Raises OverflowError where the years end.
        """
        if not self.months:
            return moment + steps * timedelta(milliseconds=self.milliseconds)
        year, month = divmod(moment.year * 12 + moment.month - 1 + steps * self.months, 12)
        if not 1 <= year <= 9999:
            raise OverflowError("year out of range")
        day = min(moment.day, monthrange(year, month + 1)[1])
        return moment.replace(year=year, month=month + 1, day=day)

    def steps_between(self, start: datetime, moment: datetime) -> int:
        """How many whole intervals lie between two local times; negative, rounded down, if `moment` is the earlier."""
        if not self.months:
            return (moment - start) // timedelta(milliseconds=self.milliseconds)
        steps = ((moment.year - start.year) * 12 + moment.month - start.month) // self.months
        return steps - 1 if self.add(start, steps) > moment else steps
