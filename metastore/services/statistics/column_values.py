"""The statistics of one column: their kind, validation, and merging of two.

A `ColumnStatisticsObj` holds one of eight kinds of data, one for each family of column types. Fields with
the same meaning have the same name, so the rules are per field.
"""

import decimal
from operator import attrgetter
from typing import Any, NamedTuple

from lake.protocol.hive import (
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Date,
    Decimal,
    InvalidObjectException,
    LongColumnStatsData,
    Timestamp,
    TimestampColumnStatsData,
)
from lake.protocol.struct import Struct
from metastore.services.statistics.hyperloglog import HyperLogLog

COUNTS = ("numNulls", "numTrues", "numFalses")
"""Fields that add up over parts of a table."""
LARGEST = ("maxColLen", "avgColLen", "numDVs", "highValue")
"""Fields for which the largest value over the parts holds for the whole. For numDVs it is a lower bound."""
LOW, HIGH, DISTINCT, SKETCH, HISTOGRAM = "lowValue", "highValue", "numDVs", "bitVectors", "histogram"

Number = int | float | decimal.Decimal

_KINDS = ColumnStatisticsData.field_names()
_kinds = attrgetter(*_KINDS)

# Hive's decimals have 38 digits, which are 16 bytes, and as many behind the point. More is taken, but none so large
# that a double could not hold it.
_MAX_DECIMAL_BYTES = 64
_MAX_SCALE = 128
_I64 = range(-(1 << 63), 1 << 63)


class Kind(NamedTuple):
    """What a `ColumnStatisticsObj` holds: the name of the field of ColumnStatisticsData, and its value."""

    name: str
    data: Any


def kind_of(statistics: ColumnStatisticsObj) -> Kind:
    """The kind and the data of a column's statistics. Raises InvalidObjectException unless exactly one kind is set."""
    kinds = _kinds(statistics.statsData or ColumnStatisticsData())
    given = [Kind(name, data) for name, data in zip(_KINDS, kinds, strict=True) if data is not None]
    if len(given) != 1:
        raise _invalid(statistics, f"{len(given)} kinds of statistics instead of one")
    return given[0]


def _invalid(statistics: ColumnStatisticsObj, why: str) -> InvalidObjectException:
    return InvalidObjectException(f"Invalid column stats object: column {statistics.colName}: {why}")


def with_data(statistics: ColumnStatisticsObj, kind: str, data: Struct) -> ColumnStatisticsObj:
    """The same column with other data."""
    value = ColumnStatisticsData()
    setattr(value, kind, data)
    return statistics.replace(statsData=value)


def number(value: Any) -> Number:
    """A bound (`lowValue` or `highValue`) as a number that can be compared. Dates become days, timestamps seconds.

    Raises ValueError for an invalid decimal.
    """
    match value:
        case Date():
            return value.daysSinceEpoch or 0
        case Timestamp():
            return value.secondsSinceEpoch or 0
        case Decimal():
            unscaled, scale = value.unscaled or b"", value.scale or 0
            if not 0 < len(unscaled) <= _MAX_DECIMAL_BYTES or abs(scale) > _MAX_SCALE:
                raise ValueError(f"a decimal of {len(unscaled)} bytes with scale {scale}")
            # From text, because arithmetic is limited to the context's precision.
            return decimal.Decimal(f"{int.from_bytes(unscaled, signed=True)}E{-scale}")
        case int() | float():
            return value
    raise ValueError(f"{value!r} is no bound of a column's values")


def bound(kind: str, value: Number) -> Any:
    """The opposite of `number`: the value as a bound in data of that kind."""
    match kind:
        case "dateStats":
            return Date(daysSinceEpoch=clamped(int(value)))
        case "timestampStats":
            return Timestamp(secondsSinceEpoch=clamped(int(value)))
        case "decimalStats":
            sign, digits, exponent = decimal.Decimal(value).as_tuple()
            assert isinstance(exponent, int), "neither infinite nor NaN"
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            return Decimal(unscaled=unscaled.to_bytes(unscaled.bit_length() // 8 + 1, signed=True), scale=-exponent)
        case "longStats":
            return clamped(int(value))
    return value


def clamped(value: int) -> int:
    """The nearest 64-bit integer."""
    return min(max(value, _I64.start), _I64.stop - 1)


def checked(given: ColumnStatisticsObj) -> ColumnStatisticsObj:
    """Statistics in the stored form: names in lower case, and timestamps' statistics of the kind of Hive 4.

    Hive 2.3 states timestamps as longs, in seconds since 1970. Hive 4 has a kind of its own for them.
    Raises InvalidObjectException if something is missing, or a bound isn't a number.
    """
    if given.colName is None or given.colType is None:
        raise _invalid(given, "it lacks a name or a type")
    data = kind_of(given).data
    if missing := [field for field in data.required if getattr(data, field) is None]:
        raise _invalid(given, f"{', '.join(missing)} missing")
    for field in (LOW, HIGH):
        if (value := getattr(data, field, None)) is not None:
            try:
                number(value)
            except ValueError as error:
                raise _invalid(given, str(error)) from None
    statistics = given.replace(colName=given.colName.lower(), colType=given.colType.lower())
    if statistics.colType == "timestamp" and isinstance(data, LongColumnStatsData):
        low, high = (None if v is None else Timestamp(secondsSinceEpoch=v) for v in (data.lowValue, data.highValue))
        converted = TimestampColumnStatsData(low, high, data.numNulls, data.numDVs, data.bitVectors)
        return with_data(statistics, "timestampStats", converted)
    return statistics


def as_of_2_3(statistics: ColumnStatisticsObj) -> ColumnStatisticsObj:
    """Statistics as Hive 2.3 knows them: those of timestamps as longs."""
    kind, data = kind_of(statistics)
    if kind != "timestampStats":
        return statistics
    low, high = (v and v.secondsSinceEpoch for v in (data.lowValue, data.highValue))
    return with_data(statistics, "longStats", LongColumnStatsData(low, high, data.numNulls, data.numDVs))


def without_sketch(statistics: ColumnStatisticsObj) -> ColumnStatisticsObj:
    """Statistics as they are given to clients.

    A sketch of the distinct values is kept for merging alone: Hive 2.3 types the field as a string, which these bytes
    are not, and Hive 4 leaves it out by default (metastore.stats.fetch.bitvector); histograms, too
    (metastore.stats.fetch.kll).
    """
    kind, data = kind_of(statistics)
    sketches = {field: None for field in (SKETCH, HISTOGRAM) if getattr(data, field, None) is not None}
    return with_data(statistics, kind, data.replace(**sketches)) if sketches else statistics


def completed(new: ColumnStatisticsObj, old: ColumnStatisticsObj) -> ColumnStatisticsObj:
    """New statistics in the place of old ones: a bound that isn't given stays what it was, as in Hive."""
    kind, data = kind_of(new)
    old_kind, old_data = kind_of(old)
    if kind != old_kind or LOW not in data.field_names():
        return new
    kept = {field: getattr(old_data, field) for field in (LOW, HIGH) if getattr(data, field) is None}
    return with_data(new, kind, data.replace(**kept)) if kept else new


def merged(new: ColumnStatisticsObj, old: ColumnStatisticsObj) -> ColumnStatisticsObj:
    """Statistics of what both describe together, as in Hive 4's ColumnStatsMerger and its kin.

    The number of distinct values comes from both sketches if they can be merged, otherwise the larger number stands.
    What describes one side only is left out: an unmerged sketch, a histogram, fields that this server doesn't know.
    Raises InvalidObjectException if the two are of different kinds.
    """
    kind, data = kind_of(new)
    old_kind, old_data = kind_of(old)
    if kind != old_kind:
        raise InvalidObjectException(f"The column types must match: [{kind}::{old_kind}] of column {new.colName}")
    together = type(data)()
    for field in data.field_names():
        setattr(together, field, _together(field, getattr(data, field), getattr(old_data, field)))
    if data.bitVectors is not None and old_data.bitVectors is not None and DISTINCT in data.field_names():
        sketch = _merged_sketch(data.bitVectors, old_data.bitVectors)
        if sketch is not None:
            together.numDVs, together.bitVectors = sketch.estimate(), sketch.serialize()
    return with_data(new, kind, together)


def _together(field: str, new: Any, old: Any) -> Any:
    if field in (SKETCH, HISTOGRAM):
        return None
    if new is None or old is None:
        return old if new is None else new
    if field in COUNTS:
        return clamped(new + old)
    return (min if field == LOW else max)(new, old, key=number)


def _merged_sketch(new: bytes, old: bytes) -> HyperLogLog | None:
    try:
        return HyperLogLog.parse(new).merged(HyperLogLog.parse(old))
    except ValueError:
        return None
