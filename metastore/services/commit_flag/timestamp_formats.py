"""Timestamps as texts, read and written in formats of Java's DateTimeFormatter, which Flink's extractor uses.

Only numeric fields are supported: years, months, days, hours, minutes, seconds and their fraction. Names of months,
time zones and optional sections are not.
"""

import itertools
import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cached_property
from typing import Self

MAX_LENGTH = 256
"""The greatest length of a format, in characters."""


class Unit(IntEnum):
    """The unit that a number in a timestamp counts, from the coarsest to the finest."""

    YEAR = 0
    MONTH = 1
    DAY = 2
    HOUR = 3
    MINUTE = 4
    SECOND = 5
    FRACTION = 6


@dataclass(frozen=True)
class Number:
    """A number within a format."""

    unit: Unit
    least: int  # the fewest digits that are read
    most: int  # the most digits that are read
    written: int  # the default number of digits that are written, with zeros in front
    two_digit_year: bool = False  # 24 is 2024


Element = Number | str  # a number or a literal text


@dataclass(frozen=True)
class Piece:
    """An element and the text that it matched."""

    element: Element
    text: str


@dataclass(frozen=True)
class Reading:
    """A timestamp without a zone, and the text that it was read from, piece by piece."""

    moment: datetime
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class TimestampFormat:
    """A way to write timestamps.

    `alternatives` are lists of elements, of which one matches the whole text. A `lenient` format carries over what is
    too large (January 32nd is February 1st). Any other, like Java's smart resolving, takes the last day of a month for
    one that it doesn't have, 24:00 for the next midnight, and nothing else that is out of range.
    """

    alternatives: tuple[tuple[Element, ...], ...]
    lenient: bool = False

    @classmethod
    def of_pattern(cls, pattern: str) -> Self:
        """The format that a pattern of DateTimeFormatter describes: letters y or u, M, d, H, m, s and S, and literals.

        Raises ValueError if it has letters that aren't understood here, or names no whole date.
        """
        if len(pattern) > MAX_LENGTH:
            raise ValueError(f"expected at most {MAX_LENGTH} characters")
        elements = tuple(_elements(pattern))
        units = [element.unit for element in elements if isinstance(element, Number)]
        for unit in units:
            if units.count(unit) > 1:
                raise ValueError(f"expected the {unit.name.lower()} once")
        # Java reads a date alone, and midnight, where finer numbers come without the coarser ones.
        if sorted(units) != list(range(len(units))) or Unit.DAY not in units:
            raise ValueError("expected a year, a month and a day, and no finer number without the coarser ones")
        for one, another in itertools.pairwise(elements):
            if all(isinstance(element, Number) and element.least < element.most for element in (one, another)):
                raise ValueError("expected something between two numbers of unknown width, or doubled letters")
            if isinstance(one, Number) and one.least < one.most and isinstance(another, str) and another[0].isdigit():
                # Java's number takes the digit, too; here all ways to share the digits out would be tried.
                raise ValueError(f"expected no digit behind a number of unknown width, as in {another[:20]!r}")
        return cls((elements,))

    def read(self, text: str) -> Reading | None:
        """Parses a text. Returns None if the text doesn't match the format."""
        for elements, expression in zip(self.alternatives, self._expressions, strict=True):
            if match := expression.fullmatch(text):
                pieces = tuple(Piece(element, found) for element, found in zip(elements, match.groups(), strict=True))
                moment = self._moment(pieces)
                return None if moment is None else Reading(moment, pieces)
        return None

    def write(self, moment: datetime, like: Sequence[Piece], *, padded: bool) -> list[str]:
        """The text of a timestamp in the form of another one, piece by piece.

        A number that has a zero in front keeps its width. Where the format leaves it open, `padded` says whether others
        are filled up with zeros. A year of two digits loses its century: whoever needs to know reads the text again.
        """
        return [
            piece.text if isinstance(piece.element, str) else _digits(piece.element, piece.text, moment, padded)
            for piece in like
        ]

    @cached_property
    def _expressions(self) -> list[re.Pattern[str]]:
        return [
            re.compile(
                "".join(
                    f"({re.escape(element)})"
                    if isinstance(element, str)
                    else f"([0-9]{{{element.least},{element.most}}})"
                    for element in elements
                ),
                re.DOTALL,
            )
            for elements in self.alternatives
        ]

    def _moment(self, pieces: Sequence[Piece]) -> datetime | None:
        found = {piece.element.unit: piece.text for piece in pieces if isinstance(piece.element, Number)}
        short_year = any(isinstance(piece.element, Number) and piece.element.two_digit_year for piece in pieces)
        year, month, day, hour, minute, second = (int(found.get(unit, "0")) for unit in list(Unit)[: Unit.FRACTION])
        year += 2000 if short_year else 0
        microsecond = int(found.get(Unit.FRACTION, "").ljust(6, "0")[:6])
        if self.lenient:
            year, month = divmod(year * 12 + month - 1, 12)
            month, carried = month + 1, day - 1
            day = 1
            # The calendar repeats itself after 400 years: so what is carried may lead back from the year 10000.
            era, year = divmod(year, 400)
            year, era = (year, era) if year else (400, era - 1)
        else:
            midnight = hour == 24 and not (minute or second or found.get(Unit.FRACTION, "").strip("0"))
            in_range = 1 <= month <= 12 and 1 <= day <= 31 and (hour < 24 or midnight) and minute < 60 and second < 60
            if not in_range or not 1 <= year <= 9999:
                return None
            day, carried, era = min(day, monthrange(year, month)[1]), 0, 0
        rest = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=microsecond)
        try:
            found_at = datetime(year, month, day) + timedelta(days=carried) + rest
            return found_at.replace(year=found_at.year + 400 * era)
        except (ValueError, OverflowError):
            return None


_FLINK_DATE = (
    Number(Unit.YEAR, 1, 10, written=4),
    "-",
    Number(Unit.MONTH, 1, 2, written=2),
    "-",
    Number(Unit.DAY, 1, 2, written=2),
)
_FLINK_TIME = (
    " ",
    Number(Unit.HOUR, 1, 2, written=2),
    ":",
    Number(Unit.MINUTE, 1, 2, written=2),
    ":",
    Number(Unit.SECOND, 1, 2, written=2),
)
_FLINK_FRACTION = (".", Number(Unit.FRACTION, 1, 9, written=3))

FLINK_DEFAULT = TimestampFormat(
    (_FLINK_DATE, _FLINK_DATE + _FLINK_TIME, _FLINK_DATE + _FLINK_TIME + _FLINK_FRACTION), lenient=True
)
"""What Flink reads when no formatter is given: `2024-01-31`, `2024-01-31 07:00:00`, `2024-1-31 7:0:0.5`."""

_LETTERS = {
    "y": Unit.YEAR,
    "u": Unit.YEAR,
    "M": Unit.MONTH,
    "d": Unit.DAY,
    "H": Unit.HOUR,
    "m": Unit.MINUTE,
    "s": Unit.SECOND,
    "S": Unit.FRACTION,
}
# A quoted text (doubled quotes inside stand for one), a run of the same letter, or one other character.
_TOKEN = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>.)", re.DOTALL)


def _elements(pattern: str) -> list[Element]:
    elements: list[Element] = []
    for match in _TOKEN.finditer(pattern):
        if match["letters"]:
            elements.append(_number(match["letters"]))
            continue
        if match["other"] and match["other"] in "[]{}#'":
            raise ValueError(f"{match['other']} is not understood here")
        literal = match["other"] or match["quoted"].replace("''", "'") or "'"
        if elements and isinstance(elements[-1], str):
            literal = str(elements.pop()) + literal
        elements.append(literal)
    return elements


def _number(letters: str) -> Number:
    """The number that a run of letters stands for, as wide as Java reads it."""
    unit, count = _LETTERS.get(letters[0]), len(letters)
    if unit is Unit.FRACTION and count <= 9:
        return Number(unit, count, count, written=count)
    if unit is Unit.YEAR and count == 4:
        return Number(unit, 4, 4, written=4)
    if unit is not None and unit is not Unit.FRACTION and count == 2:
        return Number(unit, 2, 2, written=2, two_digit_year=unit is Unit.YEAR)
    if unit is not None and unit is not Unit.FRACTION and count == 1:
        return Number(unit, 1, 19, written=1)
    raise ValueError(
        f"{letters} is not understood here; expected yyyy (or uuuu), MM, dd, HH, mm, ss and SSS, and literals in quotes"
    )


def _digits(number: Number, like: str, moment: datetime, padded: bool) -> str:
    if number.unit is Unit.FRACTION:
        return f"{moment.microsecond * 1000:09d}"[: len(like)]
    value = (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)[number.unit]
    if number.two_digit_year:
        value %= 100
    width = len(like) if like.startswith("0") and len(like) > 1 else number.written if padded else number.least
    return f"{value:0{width}d}"
