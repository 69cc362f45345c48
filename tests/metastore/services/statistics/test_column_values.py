"""Statistics of one column: checking, completing, merging, and the two ways to describe timestamps."""

import decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.protocol.hive import (
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    InvalidObjectException,
    LongColumnStatsData,
    StringColumnStatsData,
    Timestamp,
    TimestampColumnStatsData,
)
from metastore.services.statistics.column_values import (
    as_of_2_3,
    bound,
    checked,
    completed,
    merged,
    number,
    without_sketch,
)
from metastore.services.statistics.hyperloglog import HyperLogLog


def column(type_: str = "int", name: str = "a", **data: Any) -> ColumnStatisticsObj:
    return ColumnStatisticsObj(name, type_, ColumnStatisticsData(**data))


def cents(value: int) -> Decimal:
    return bound("decimalStats", decimal.Decimal(value).scaleb(-2))


MERGES = {
    "long": (
        ColumnStatisticsData(longStats=LongColumnStatsData(-5, 3, 1, 9)),
        ColumnStatisticsData(longStats=LongColumnStatsData(1, 10, 2, 5)),
        ColumnStatisticsData(longStats=LongColumnStatsData(-5, 10, 3, 9)),
    ),
    "long, a side without bounds": (
        ColumnStatisticsData(longStats=LongColumnStatsData(None, None, 1, 1)),
        ColumnStatisticsData(longStats=LongColumnStatsData(5, 10, 2, 5)),
        ColumnStatisticsData(longStats=LongColumnStatsData(5, 10, 3, 5)),
    ),
    "double": (
        ColumnStatisticsData(doubleStats=DoubleColumnStatsData(0.5, 3.0, 2, 2)),
        ColumnStatisticsData(doubleStats=DoubleColumnStatsData(1.5, 9.5, 2, 5)),
        ColumnStatisticsData(doubleStats=DoubleColumnStatsData(0.5, 9.5, 4, 5)),
    ),
    "string": (
        ColumnStatisticsData(stringStats=StringColumnStatsData(3, 9.0, 4, 2)),
        ColumnStatisticsData(stringStats=StringColumnStatsData(10, 2.5, 1, 7)),
        ColumnStatisticsData(stringStats=StringColumnStatsData(10, 9.0, 5, 7)),
    ),
    "boolean": (
        ColumnStatisticsData(booleanStats=BooleanColumnStatsData(3, 4, 1)),
        ColumnStatisticsData(booleanStats=BooleanColumnStatsData(30, 40, 10)),
        ColumnStatisticsData(booleanStats=BooleanColumnStatsData(33, 44, 11)),
    ),
    "binary": (
        ColumnStatisticsData(binaryStats=BinaryColumnStatsData(99, 1.0, 1)),
        ColumnStatisticsData(binaryStats=BinaryColumnStatsData(10, 2.5, 1)),
        ColumnStatisticsData(binaryStats=BinaryColumnStatsData(99, 2.5, 2)),
    ),
    # By value: 0.5 is less than 0.100, whatever the bytes and scales say about it.
    "decimal": (
        ColumnStatisticsData(decimalStats=DecimalColumnStatsData(cents(-100), Decimal(b"\x05", 1), 1, 3)),
        ColumnStatisticsData(decimalStats=DecimalColumnStatsData(cents(50), Decimal(b"\x64", 3), 1, 4)),
        ColumnStatisticsData(decimalStats=DecimalColumnStatsData(cents(-100), Decimal(b"\x05", 1), 2, 4)),
    ),
    "date": (
        ColumnStatisticsData(dateStats=DateColumnStatsData(Date(1), Date(500), 1, 3)),
        ColumnStatisticsData(dateStats=DateColumnStatsData(Date(-7), Date(200), 1, 3)),
        ColumnStatisticsData(dateStats=DateColumnStatsData(Date(-7), Date(500), 2, 3)),
    ),
    "timestamp": (
        ColumnStatisticsData(timestampStats=TimestampColumnStatsData(Timestamp(1), Timestamp(500), 1, 3)),
        ColumnStatisticsData(timestampStats=TimestampColumnStatsData(None, None, 1, 3)),
        ColumnStatisticsData(timestampStats=TimestampColumnStatsData(Timestamp(1), Timestamp(500), 2, 3)),
    ),
    "more nulls than 64 bits count": (
        ColumnStatisticsData(longStats=LongColumnStatsData(None, None, 2**63 - 1, 1)),
        ColumnStatisticsData(longStats=LongColumnStatsData(None, None, 2, 1)),
        ColumnStatisticsData(longStats=LongColumnStatsData(None, None, 2**63 - 1, 1)),
    ),
}


@pytest.mark.parametrize("case", MERGES)
def test_merging(case: str) -> None:
    one, two, together = (ColumnStatisticsObj("a", case, data) for data in MERGES[case])
    assert merged(one, two) == together
    assert merged(two, one) == together


def test_kinds_do_not_mix() -> None:
    with pytest.raises(InvalidObjectException, match="column types must match"):
        merged(
            column(longStats=LongColumnStatsData(1, 2, 0, 1)), column(stringStats=StringColumnStatsData(1, 1.0, 0, 1))
        )


def sketch(*values: int) -> bytes:
    return HyperLogLog(10, sparse=dict.fromkeys(values, 1)).serialize()


def test_sketches_count_what_both_sides_have() -> None:
    one = column(longStats=LongColumnStatsData(1, 9, 0, 3, sketch(1, 2, 3)))
    two = column(longStats=LongColumnStatsData(1, 9, 0, 4, sketch(2, 3, 4, 5)))
    assert merged(one, two).statsData.longStats == LongColumnStatsData(1, 9, 0, 5, sketch(1, 2, 3, 4, 5))


@pytest.mark.parametrize("other", [None, b"FM\x10\x00\x00", b"", HyperLogLog(14, sparse={1: 1}).serialize()])
def test_without_two_sketches_that_merge_the_larger_number_stands_and_no_sketch_stays(other: bytes | None) -> None:
    one = column(longStats=LongColumnStatsData(1, 9, 0, 3, sketch(1, 2, 3)))
    two = column(longStats=LongColumnStatsData(1, 9, 0, 4, other))
    assert merged(one, two).statsData.longStats == LongColumnStatsData(1, 9, 0, 4)
    assert merged(two, one).statsData.longStats == LongColumnStatsData(1, 9, 0, 4)


def test_a_field_that_is_not_known_describes_one_side_only() -> None:
    one = column(longStats=LongColumnStatsData(1, 9, 0, 3))
    one.statsData.longStats.unknown = b"\x0b\x00\x06\x00\x00\x00\x01x"
    two = column(longStats=LongColumnStatsData(1, 9, 0, 3))
    for together in (merged(one, two), merged(two, one)):
        assert not hasattr(together.statsData.longStats, "unknown")


def test_an_update_without_bounds_keeps_the_old_ones() -> None:
    old = column(longStats=LongColumnStatsData(1, 9, 0, 3, sketch(1)))
    new = column(longStats=LongColumnStatsData(None, 12, 5, 6))
    assert completed(new, old).statsData.longStats == LongColumnStatsData(1, 12, 5, 6)
    other = column(stringStats=StringColumnStatsData(1, 1.0, 0, 1))
    assert completed(other, old) == other
    assert completed(new, other) == new


def test_names_are_lowered() -> None:
    given_ = column("BIGINT", "Amount", longStats=LongColumnStatsData(1, 2, 0, 1))
    assert checked(given_) == column("bigint", "amount", longStats=LongColumnStatsData(1, 2, 0, 1))


def test_timestamps_are_kept_as_hive_4_describes_them_and_given_as_the_client_knows_them() -> None:
    as_longs = column("timestamp", longStats=LongColumnStatsData(1000, None, 1, 3))
    kept = checked(as_longs)
    assert kept == column("timestamp", timestampStats=TimestampColumnStatsData(Timestamp(1000), None, 1, 3))
    assert checked(kept) == kept
    assert as_of_2_3(kept) == as_longs
    dates = column("date", dateStats=DateColumnStatsData(Date(1), Date(2), 0, 1))
    assert as_of_2_3(dates) == dates


def test_sketches_are_not_given_away() -> None:
    kept = column(longStats=LongColumnStatsData(1, 9, 0, 3, sketch(1)))
    assert without_sketch(kept) == column(longStats=LongColumnStatsData(1, 9, 0, 3))


@pytest.mark.parametrize(
    "wrong",
    [
        ColumnStatisticsObj("a", "int", None),
        ColumnStatisticsObj("a", "int", ColumnStatisticsData()),
        ColumnStatisticsObj(None, "int", ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 0, 1))),
        ColumnStatisticsObj("a", None, ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 0, 1))),
        column(longStats=LongColumnStatsData(1, 2, 0, 1), stringStats=StringColumnStatsData(1, 1.0, 0, 1)),
        column(longStats=LongColumnStatsData(1, 2, 0, None)),
        column("decimal(5,2)", decimalStats=DecimalColumnStatsData(Decimal(b"", 2), None, 0, 1)),
        column("decimal(5,2)", decimalStats=DecimalColumnStatsData(None, Decimal(b"\x01" * 65, 2), 0, 1)),
        column("decimal(5,2)", decimalStats=DecimalColumnStatsData(None, Decimal(b"\x01", -32768), 0, 1)),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: ColumnStatisticsObj) -> None:
    with pytest.raises(InvalidObjectException, match="Invalid column stats object"):
        checked(wrong)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**38), max_value=10**38, places=6))
def test_decimals_survive_the_wire(value: decimal.Decimal) -> None:
    assert number(bound("decimalStats", value)) == value


@given(st.integers(-(2**127), 2**127 - 1), st.integers(-(2**127), 2**127 - 1), st.integers(0, 38), st.integers(0, 38))
def test_decimals_compare_by_value(one: int, two: int, scale: int, other_scale: int) -> None:
    left, right = Decimal(one.to_bytes(16, signed=True), scale), Decimal(two.to_bytes(16, signed=True), other_scale)
    exact = one * 10**other_scale < two * 10**scale
    assert (number(left) < number(right)) == exact  # type: ignore[operator]
