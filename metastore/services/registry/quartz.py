"""Schedules in Quartz' syntax: computes the next time, in the server's time zone.

A schedule is six or seven fields: seconds, minutes, hours, day of month, month, day of week (1 is Sunday) and year.
One of the two days must be `?`. croniter, which computes the times, counts the days of the week from 0 and writes
"the last Friday" `L5` where Quartz writes `6L`.
"""

import re
from datetime import datetime

from croniter import CroniterBadDateError, CroniterError, croniter
from dateutil.tz import tzlocal

_DAY_OF_MONTH, _DAY_OF_WEEK = 3, 5
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_DAY = re.compile(rf"(?<![/#\d])(\d+|{'|'.join(_DAYS)})(L?)(?![A-Z\d])")
_NOT_QUARTZ = re.compile(r"\b[HR]\b|\b[HR]\(")  # croniter's own extension: a value that croniter chooses
MAX_LENGTH = 1_000
"""The greatest length of a schedule, in characters. It bounds the lists of numbers that croniter expands."""
_YEARS = 100  # up to 2099, the last year that either knows


def next_time(schedule: str | None, after: float) -> int | None:
    """The next time of a schedule later than `after`, both in seconds since 1970. None if there is none.

    Raises ValueError if the text isn't a schedule, or is longer than MAX_LENGTH.
    """
    if len(schedule or "") > MAX_LENGTH:
        raise ValueError(f"Invalid QUARTZ schedule expression: longer than {MAX_LENGTH} characters")
    fields = (schedule or "").upper().split()
    if (
        _NOT_QUARTZ.search(" ".join(fields))
        or len(fields) not in (6, 7)
        or (fields[_DAY_OF_MONTH] == "?") == (fields[_DAY_OF_WEEK] == "?")
    ):
        raise ValueError(f"Invalid QUARTZ schedule expression: '{schedule}'")
    try:
        fields[_DAY_OF_WEEK] = _DAY.sub(_from_zero, fields[_DAY_OF_WEEK]) if fields[_DAY_OF_WEEK] != "L" else "6"
        begin = datetime.fromtimestamp(after, tzlocal())
        times = croniter(" ".join(fields), begin, second_at_beginning=True, max_years_between_matches=_YEARS)
        return int(times.get_next(datetime).timestamp())
    except CroniterBadDateError:
        return None
    except (CroniterError, ValueError) as error:
        raise ValueError(f"Invalid QUARTZ schedule expression: '{schedule}'") from error


def _from_zero(day: re.Match[str]) -> str:
    """A day of the week as croniter counts it."""
    number = _DAYS.index(day[1]) if day[1] in _DAYS else int(day[1]) - 1
    if not 0 <= number <= 6:
        raise ValueError(f"{day[1]} is no day of the week")
    return f"L{number}" if day[2] else str(number)
