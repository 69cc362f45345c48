"""Converts partition values to times and back, like Flink's partition-time extractor.

A pattern such as `$dt $hr:00:00` joins values to a text, and a format parses a timestamp from it. Backwards, a time is
formatted like that of an existing partition, and the text is split where that partition's values ended.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from lake.protocol.formats.durations import Interval
from metastore.services.commit_flag.timestamp_formats import Number, Piece, Reading, TimestampFormat, Unit

MAX_LENGTH = 1_024
"""Of a pattern, in characters."""

_STEPS = {
    Unit.YEAR: Interval(months=12),
    Unit.MONTH: Interval(months=1),
    Unit.DAY: Interval(milliseconds=86_400_000),
    Unit.HOUR: Interval(milliseconds=3_600_000),
    Unit.MINUTE: Interval(milliseconds=60_000),
    Unit.SECOND: Interval(milliseconds=1000),
    Unit.FRACTION: Interval(milliseconds=1),
}


class Example(NamedTuple):
    """Values that the pattern can read, and the shortest step from them to others."""

    values: list[str]
    step: Interval


class _Span(NamedTuple):
    key: int
    start: int
    end: int


@dataclass(frozen=True)
class TimestampExtractor:
    """Reads and writes the time in a partition's values.

    `parts` is the pattern: literal texts, and the positions of keys whose values stand there.
    """

    parts: tuple[str | int, ...]
    keys: tuple[str, ...]
    format: TimestampFormat

    @classmethod
    def of_pattern(cls, pattern: str | None, keys: Sequence[str], format: TimestampFormat) -> "TimestampExtractor":
        """An extractor for a table with these partition keys; without a pattern, its first key is the timestamp.

        Where one key's name begins with another's, the longer is meant. Raises ValueError if the pattern names what is
        no key, a key twice, or none at all, and beyond MAX_LENGTH.
        """
        if pattern is not None and len(pattern) > MAX_LENGTH:
            raise ValueError(f"expected at most {MAX_LENGTH} characters, not {len(pattern)}")
        names = sorted(keys, key=len, reverse=True)
        expression = re.compile(rf"\$({'|'.join(map(re.escape, names))})", re.IGNORECASE)
        parts: list[str | int] = []
        # Split at the names: literals and names take turns.
        for index, text in enumerate(expression.split(f"${keys[0]}" if pattern is None else pattern)):
            if index % 2:
                parts.append([key.lower() for key in keys].index(text.lower()))
            elif text:
                parts.append(text)
        if unknown := re.search(r"\$\w*", "".join(part for part in parts if isinstance(part, str))):
            raise ValueError(f"{unknown[0]!r} names no partition key; there are {', '.join(keys)}")
        used = [part for part in parts if isinstance(part, int)]
        if not used:
            raise ValueError(f"expected partition keys in it, such as ${keys[0]}")
        if len(set(used)) < len(used):
            raise ValueError("expected each partition key once")
        return cls(tuple(parts), tuple(keys), format)

    def read(self, values: Sequence[str]) -> Reading | None:
        """The time that the values say, in the table's zone, or None if they say none."""
        if len(values) != len(self.keys):
            return None
        return self.format.read("".join(part if isinstance(part, str) else values[part] for part in self.parts))

    def write(self, moment: datetime, like: Sequence[str]) -> list[str]:
        """The values of the partition at a time, written like the values of another partition.

        Keys that aren't part of the time keep their values. Raises ValueError if the values can't say this time, or
        those that they are to be like say none.
        """
        time = self.read(like)
        if time is None:
            raise ValueError(f"{', '.join(like)} says no time")
        spans = self._spans(like)
        bounds = list(itertools.accumulate((len(piece.text) for piece in time.pieces), initial=0))
        texts = self.format.write(moment, time.pieces, padded=_padded(time.pieces, bounds, spans))
        new_bounds = list(itertools.accumulate(map(len, texts), initial=0))
        text = "".join(texts)

        def moved(position: int) -> int:
            """Where a position of the old text is in the new one: as far from the beginning of its piece."""
            index = max(index for index, bound in enumerate(bounds) if bound <= position)
            return new_bounds[index] + position - bounds[index]

        values = list(like)
        for span in spans:
            values[span.key] = text[moved(span.start) : moved(span.end)]
        again = self.read(values)
        if again is None or again.moment != moment:
            raise ValueError(f"no values like {', '.join(like)} say {moment.isoformat(' ')}")
        return values

    def example(self, interval: Interval | None = None) -> Example:
        """Values as the format expects them, and the shortest step that changes them.

        Of the forms that the format can have it is the first; with an interval, the first that can step by it. Raises
        ValueError if there is none.
        """
        if not self._examples:
            raise ValueError("expected what makes a time that the formatter reads, its date from partition keys")
        for example in self._examples:
            if interval is None or self._can_step(example, interval):
                return example
        raise ValueError("expected a multiple of the shortest step that the timestamp pattern can say")

    def _can_step(self, example: Example, interval: Interval) -> bool:
        time = self.read(example.values)
        try:
            return (
                time is not None
                and interval.is_multiple_of(example.step)
                and self.write(interval.add(time.moment, 1), example.values) != example.values
            )
        except ValueError:
            return False

    def _spans(self, values: Sequence[str]) -> list[_Span]:
        """Where the values stand in the text that they make."""
        spans, position = [], 0
        for part in self.parts:
            length = len(part if isinstance(part, str) else values[part])
            if isinstance(part, int):
                spans.append(_Span(part, position, position + length))
            position += length
        return spans

    def _expression(self) -> str:
        """Matches the shapes of timestamps that the pattern can make, with a group for each value.

        A value stands for one character or more; a digit of the pattern for the same one, or a digit of a number. As in
        a glob, each value but the last ends where what follows it first comes, and nothing is tried twice.
        """
        expression, open_value = "", False
        last = next(index for index in reversed(range(len(self.parts))) if isinstance(self.parts[index], int))
        for index, part in enumerate(self.parts):
            if isinstance(part, int):
                expression += ")" * open_value + ("(.+)" if index == last else "(?>(.+?)")
                open_value = index != last
            else:
                expression += "".join(f"[{c}\ue000-\ue006]" if c in "0123456789" else re.escape(c) for c in part)
        return expression

    @cached_property
    def _examples(self) -> list[Example]:
        expression = re.compile(self._expression(), re.DOTALL)
        examples: list[Example] = []
        for text, units in _shapes(self.format):
            match = expression.fullmatch(units)
            if match is None:
                continue
            values = [""] * len(self.keys)
            for index, key in enumerate((part for part in self.parts if isinstance(part, int)), start=1):
                values[key] = text[match.start(index) : match.end(index)]
            named = {ord(c) - 0xE000 for group in match.groups() for c in group if c >= "\ue000"}
            # Above the finest, all must be among the values: the time goes on, and constants don't.
            if named and named == set(range(max(named) + 1)) and self.read(values) is not None:
                examples.append(Example(values, _STEPS[Unit(max(named))]))
        return examples


def _padded(pieces: Sequence[Piece], bounds: Sequence[int], spans: Sequence[_Span]) -> bool:
    """Whether numbers of an open width are filled up with zeros: unless one of a single digit is among the values."""
    return not any(
        isinstance(piece.element, Number)
        and piece.element.least < piece.element.written
        and len(piece.text) == 1
        and any(span.start <= start < span.end for span in spans)
        for piece, start in zip(pieces, bounds, strict=False)
    )


def _shapes(format: TimestampFormat) -> Iterator[tuple[str, str]]:
    """The forms that a format's text can have: one of it, and the same with each digit replaced by its unit's mark."""
    first_of_2024 = {Unit.YEAR: 2024, Unit.MONTH: 1, Unit.DAY: 1}
    for elements in format.alternatives:
        choices: list[list[tuple[str, str]]] = []
        for element in elements:
            if isinstance(element, str):
                choices.append([(element, element)])
                continue
            value = first_of_2024.get(element.unit, 0) % (100 if element.two_digit_year else 10_000)
            # Written first as it should be, then as short as can be, in case the pattern has it so.
            texts = dict.fromkeys(f"{value:0{width}d}" for width in (max(element.written, 1), 2, element.least))
            fitting = [text for text in texts if element.least <= len(text) <= element.most]
            choices.append([(text, chr(0xE000 + element.unit) * len(text)) for text in fitting])
        for shape in itertools.product(*choices):
            yield "".join(text for text, _ in shape), "".join(units for _, units in shape)
