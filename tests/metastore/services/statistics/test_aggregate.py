"""Statistics over many partitions: what Hive 2.3 answered for the same partitions, and rules that always hold."""

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
    LongColumnStatsData,
    StringColumnStatsData,
)
from metastore.services.statistics.aggregate import ColumnAggregate
from metastore.services.statistics.column_values import bound, kind_of


def dec(value: str) -> Decimal:
    return bound("decimalStats", decimal.Decimal(value))


# Three partitions, and what Hive 2.3.10 answered for a table of six, where others have no statistics.
PARTITIONS: dict[int, list[Any]] = {
    2: [
        LongColumnStatsData(10, 20, 5, 7),
        DoubleColumnStatsData(1.5, 9.5, 5, 7),
        StringColumnStatsData(10, 2.5, 5, 7),
        BooleanColumnStatsData(3, 4, 5),
        BinaryColumnStatsData(10, 2.5, 5),
        DecimalColumnStatsData(dec("10"), dec("20"), 5, 7),
        DateColumnStatsData(Date(100), Date(200), 5, 7),
        LongColumnStatsData(1000, 1003, 5, 40),
    ],
    3: [
        LongColumnStatsData(4, 35, 1, 9),
        DoubleColumnStatsData(0.5, 19.5, 1, 9),
        StringColumnStatsData(14, 3.5, 1, 9),
        BooleanColumnStatsData(6, 1, 1),
        BinaryColumnStatsData(7, 4.5, 1),
        DecimalColumnStatsData(dec("4"), dec("35"), 1, 9),
        DateColumnStatsData(Date(40), Date(350), 1, 9),
        LongColumnStatsData(1004, 1009, 1, 4),
    ],
    5: [
        LongColumnStatsData(-8, 30, 9, 4),
        DoubleColumnStatsData(-8.5, 12.0, 9, 4),
        StringColumnStatsData(12, 4.0, 9, 4),
        BooleanColumnStatsData(1, 1, 9),
        BinaryColumnStatsData(30, 1.5, 9),
        DecimalColumnStatsData(dec("-8"), dec("30"), 9, 4),
        DateColumnStatsData(None, Date(300), 9, 4),
        LongColumnStatsData(1001, 1008, 9, 3),
    ],
}
WITH_GAPS = [
    LongColumnStatsData(-14, 80, 30, 14),
    DoubleColumnStatsData(-11.833333333333334, 49.5, 30, 14),
    StringColumnStatsData(26, 4.5, 30, 14),
    BooleanColumnStatsData(18, 12, 30),
    BinaryColumnStatsData(41, 7.5, 30),
    DecimalColumnStatsData(dec("-14.0"), dec("80.0"), 30, 14),
    DateColumnStatsData(None, Date(800), 30, 14),  # one partition doesn't know its lowest day
    LongColumnStatsData(996, 1027, 30, 32),  # no more values than seconds
]
ANSWERS = {
    (1, 2, 3, 4, 5, 6): WITH_GAPS,
    (6, 5, 4, 3, 2, 1): WITH_GAPS,
    (2, 3, 5): [
        LongColumnStatsData(-8, 35, 15, 9),
        DoubleColumnStatsData(-8.5, 19.5, 15, 9),
        StringColumnStatsData(14, 4.0, 15, 9),
        BooleanColumnStatsData(10, 6, 15),
        BinaryColumnStatsData(30, 4.5, 15),
        DecimalColumnStatsData(dec("-8"), dec("35"), 15, 9),
        DateColumnStatsData(Date(40), Date(350), 15, 9),
        LongColumnStatsData(1000, 1009, 15, 10),
    ],
    # One partition says nothing about a trend.
    (2, 1): [*PARTITIONS[2][:7], LongColumnStatsData(1000, 1003, 5, 4)],
    (5, 2, 6): [
        LongColumnStatsData(-8, 30, 21, 10),
        DoubleColumnStatsData(-8.5, 12.0, 21, 10),
        StringColumnStatsData(12, 4.0, 21, 10),
        BooleanColumnStatsData(6, 6, 21),
        BinaryColumnStatsData(30, 3.5, 21),
        DecimalColumnStatsData(dec("-8.0"), dec("30.0"), 21, 10),
        DateColumnStatsData(None, Date(300), 21, 10),
        LongColumnStatsData(999, 1008, 21, 10),
    ],
}


def column(data: Any) -> ColumnStatisticsObj:
    for entry in ColumnStatisticsData.thrift_spec:
        if entry is not None and entry[3][0] is type(data):
            return ColumnStatisticsObj("a", "type", ColumnStatisticsData(**{entry[2]: data}))
    raise TypeError(data)


def aggregated(requested: int, given_: dict[int, Any]) -> Any:
    """The statistics over so many partitions, of which those at some positions have any."""
    gathered: ColumnAggregate | None = None
    for position, data in given_.items():
        statistics = column(data)
        gathered = gathered or ColumnAggregate(statistics)
        gathered.take(statistics, position)
    assert gathered is not None
    return kind_of(gathered.result(requested)).data


@pytest.mark.parametrize("asked", ANSWERS)
@pytest.mark.parametrize("which", range(8))
def test_hives_answers(asked: tuple[int, ...], which: int) -> None:
    known = {asked.index(number): PARTITIONS[number][which] for number in sorted(PARTITIONS) if number in asked}
    assert aggregated(len(asked), known) == ANSWERS[asked][which]


def test_statistics_of_another_kind_count_as_missing() -> None:
    one, two = LongColumnStatsData(0, 10, 4, 3), LongColumnStatsData(5, 20, 6, 4)
    with_other = aggregated(3, {0: one, 1: StringColumnStatsData(1, 1.0, 100, 100), 2: two})
    assert with_other == aggregated(3, {0: one, 2: two})


def test_what_grows_beyond_64_bits_stays_at_the_border() -> None:
    high, low = (1 << 63) - 1, -(1 << 63)
    answer = aggregated(9, {0: LongColumnStatsData(0, 0, high, 1), 1: LongColumnStatsData(low, high, high, 9)})
    assert (answer.lowValue, answer.highValue, answer.numNulls) == (low, high, high)


LONGS = st.builds(
    lambda low, width, nulls, distinct: LongColumnStatsData(low, low + width, nulls, distinct),
    st.integers(-(10**6), 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(1, 10**6),
)


@given(st.dictionaries(st.integers(0, 30), LONGS, min_size=1), st.integers(0, 10))
def test_the_whole_is_never_narrower_than_its_parts(known: dict[int, LongColumnStatsData], more: int) -> None:
    requested = max(known) + 1 + more
    answer = aggregated(requested, known)
    parts = list(known.values())
    assert answer.lowValue <= min(part.lowValue for part in parts if part.lowValue is not None)
    assert answer.highValue >= max(part.highValue for part in parts if part.highValue is not None)
    assert answer.numDVs <= answer.highValue - answer.lowValue + 1
    if requested == len(known):
        assert answer.numNulls == sum(part.numNulls or 0 for part in parts)
