"""Aggregates a column's statistics over many partitions, also if some partitions have none.

The rules are those of Hive's MetaStoreDirectSql with its default settings, the same in 2.3 and 4: counts are
added; of other values the extreme over the partitions is used. The number of distinct values is the largest of any
partition. If partitions have no statistics, counts are scaled up, and extremes are extrapolated linearly
(LinearExtrapolatePartStatus): if the largest value rises from partition 2 to partition 7 of 10, it is assumed to rise
until the last one.
"""

import decimal
from dataclasses import dataclass, field
from typing import Any

from lake.protocol.hive import ColumnStatisticsObj
from metastore.services.statistics.column_values import (
    COUNTS,
    DISTINCT,
    HIGH,
    LARGEST,
    LOW,
    Number,
    bound,
    clamped,
    kind_of,
    number,
    with_data,
)

_DISCRETE = ("longStats", "dateStats", "timestampStats")
"""Kinds of which there are no more distinct values than whole numbers between the bounds."""


@dataclass(slots=True)
class _Extremes:
    """Smallest and largest value of a field, and the positions of the partitions that have them.

    Where several partitions have it, the first of them for the smallest and the last for the largest, in the order in
    which they come (in Hive the database's pleasure decides).
    """

    smallest: Number
    smallest_at: int
    largest: Number
    largest_at: int

    def take(self, value: Number, at: int) -> None:
        if value < self.smallest:
            self.smallest, self.smallest_at = value, at
        if value >= self.largest:
            self.largest, self.largest_at = value, at


@dataclass(slots=True)
class ColumnAggregate:
    """Gathers the statistics of one column, a partition at a time, in constant space."""

    first: ColumnStatisticsObj
    partitions: int = 0
    _counts: dict[str, int] = field(default_factory=dict)
    _extremes: dict[str, _Extremes] = field(default_factory=dict)
    _incomplete: set[str] = field(default_factory=set)
    _kind: str = field(init=False)
    _added: tuple[str, ...] = field(init=False)
    _compared: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._kind, data = kind_of(self.first)
        self._added = tuple(name for name in data.field_names() if name in COUNTS)
        self._compared = tuple(name for name in data.field_names() if name == LOW or name in LARGEST)

    def take(self, statistics: ColumnStatisticsObj, position: int) -> None:
        """Adds a partition's statistics; `position` is its place among the partitions that were asked for.

        Statistics of another kind than the first ones' are passed over, as if they were missing.
        """
        data = getattr(statistics.statsData, self._kind)
        if data is None:
            return
        self.partitions += 1
        for name in self._added:
            self._counts[name] = self._counts.get(name, 0) + (getattr(data, name) or 0)
        for name in self._compared:
            self._take_extreme(name, getattr(data, name), position)

    def _take_extreme(self, name: str, value: Any, position: int) -> None:
        if value is None:
            self._incomplete.add(name)
            return
        comparable = value if isinstance(value, int | float) else number(value)
        extremes = self._extremes.get(name)
        if extremes is None:
            self._extremes[name] = _Extremes(comparable, position, comparable, position)
        else:
            extremes.take(comparable, position)

    def result(self, requested: int) -> ColumnStatisticsObj:
        """The column's statistics over `requested` partitions. There must be some of at least one."""
        kind, data = kind_of(self.first)
        partial = 2 <= self.partitions < requested
        values: dict[str, Any] = {}
        for name, count in self._counts.items():
            values[name] = clamped(count // self.partitions * requested if partial else count)
        for name, extremes in self._extremes.items():
            values[name] = self._extreme(name, extremes, requested - 1 if partial else None)
        low, high = values.get(LOW), values.get(HIGH)
        if kind in _DISCRETE and low is not None and high is not None:
            values[DISTINCT] = min(values[DISTINCT], int(high) - int(low) + 1)
        for name in (LOW, HIGH):
            if values.get(name) is not None:
                values[name] = bound(kind, values[name])
        return with_data(self.first, kind, type(data)(**values))

    def _extreme(self, name: str, extremes: _Extremes, last: int | None) -> Number | None:
        """The value of a field over all partitions; to be extrapolated if the position of the last one is given."""
        if last is None:
            return extremes.smallest if name == LOW else extremes.largest
        if name in self._incomplete:
            return None
        value = _extrapolated(extremes, last, downwards=name == LOW)
        return clamped(value) if isinstance(value, int) else value


def _extrapolated(extremes: _Extremes, last: int, *, downwards: bool) -> Number:
    """Continues the line through the partitions with the smallest and the largest value to the border.

    The border is the first partition or the last one, whichever lies beyond the extreme that is sought.
    """
    low, high = extremes.smallest, extremes.largest
    low_at, high_at = extremes.smallest_at, extremes.largest_at
    if low_at == high_at:
        return low
    if isinstance(low, decimal.Decimal):
        # Hive computes decimals' extrapolation in doubles.
        return decimal.Decimal(repr(_line(float(low), float(high), low_at, high_at, last, downwards)))
    value: Number = _line(low, high, low_at, high_at, last, downwards)
    return value


def _line(low: Any, high: Any, low_at: int, high_at: int, last: int, downwards: bool) -> Any:
    rising = low_at < high_at
    if downwards:
        steps = high_at if rising else last - high_at
    else:
        steps = last - low_at if rising else low_at
    rise, run = (high - low) * steps, abs(high_at - low_at)
    change = rise // run if isinstance(rise, int) else rise / run
    return high - change if downwards else low + change
