"""Sorts rows into files of about equal size, along the columns themselves or along a space-filling curve.

Where files begin is decided by a sample of each partition's rows, as for Spark's own ranges. The curve is the z-order:
each column is cut into ranges with about as many rows each, and the bits of the ranges' numbers are interleaved. So
columns of any type and spread count alike. Samples stay with the executors; only the bounds reach the driver.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from lake.protocol.formats.spark_names import quoted

PLACE = "_metastore_place"
"""The column with the number of a row's partition."""

FILE = "_metastore_file"
"""The column with the number of a row's file in its partition."""

KEY = "_metastore_key"
"""The column by which the rows of a file are sorted."""

_BOUNDS, _FILES, _RANGE = "_metastore_bounds", "_metastore_files", "_metastore_range"

_BITS = 8
"""Bits of a range's number: a column is cut into 256 ranges."""

_SEED = 20_220_222
_SAMPLED = 20_000
"""Rows of a partition's sample."""

_SAMPLED_TOGETHER = 2_000_000
"""Rows of all samples, about."""


def along(rows: DataFrame, order_by: Sequence[str], curve: str, parts: Sequence[tuple[int, int | None]]) -> DataFrame:
    """Rows with the columns KEY and FILE. They have the column PLACE, a number from 0.

    `parts`: of each place the number of its files, and that of its rows if it is known.
    """
    most = max(1_000, min(_SAMPLED, _SAMPLED_TOGETHER // max(1, len(parts))))
    fractions = {place: min(1.0, most / rows_of) if rows_of else 0.01 for place, (_, rows_of) in enumerate(parts)}
    if curve == "z-order":
        rows = _with_curve(rows, order_by, fractions)
    else:
        rows = rows.withColumn(KEY, sf.struct(*(sf.col(quoted(each)) for each in order_by)))
    files = [count for count, _ in parts]
    if max(files) == 1:
        return rows.withColumn(FILE, sf.lit(0))
    values = _values_of_sample(rows, {KEY: sf.col(KEY)}, fractions)
    counts = rows.sparkSession.createDataFrame(list(enumerate(files)), f"{PLACE} int, {_FILES} int")
    bounds = values.join(sf.broadcast(counts), PLACE).select(
        PLACE, sf.when(sf.col(_FILES) > 1, _bounds(KEY, sf.col(_FILES))).alias(_BOUNDS)
    )
    with_bounds = rows.join(sf.broadcast(bounds), PLACE, "left")
    return with_bounds.withColumn(FILE, _range_of(sf.col(KEY), _BOUNDS, max(files))).drop(_BOUNDS)


def _with_curve(rows: DataFrame, order_by: Sequence[str], fractions: dict[int, float]) -> DataFrame:
    """Rows with KEY: their place on the curve, and for those at the same place the columns themselves."""
    columns = {f"_metastore_column{number}": sf.col(quoted(each)) for number, each in enumerate(order_by)}
    bounds = _values_of_sample(rows, columns, fractions).select(
        PLACE, *(_bounds(name, sf.lit(1 << _BITS)).alias(name) for name in columns)
    )
    rows = rows.join(sf.broadcast(bounds), PLACE, "left")
    ranges = [_range_of(value, name, 1 << _BITS) for name, value in columns.items()]
    for number, each in enumerate(ranges):
        rows = rows.withColumn(f"{_RANGE}{number}", each)
    numbers = [sf.col(f"{_RANGE}{number}") for number in range(len(ranges))]
    key = sf.struct(_interleaved(numbers).alias("place"), *columns.values())
    return rows.withColumn(KEY, key).drop(*columns, *(f"{_RANGE}{number}" for number in range(len(ranges))))


def _values_of_sample(rows: DataFrame, columns: dict[str, Column], fractions: dict[int, float]) -> DataFrame:
    """Of each place the sorted values of columns in a sample of its rows, without nulls."""
    sampled = rows.select(PLACE, *(column.alias(name) for name, column in columns.items()))
    sampled = sampled.sampleBy(PLACE, fractions, _SEED)
    return sampled.groupBy(PLACE).agg(*(sf.sort_array(sf.collect_list(name)).alias(name) for name in columns))


def _bounds(values: str, ranges: Column) -> Column:
    """The values at which ranges begin, other than the first one; none without values."""
    size = sf.size(values)
    starts = sf.transform(
        sf.sequence(sf.lit(1), (ranges - 1).cast("int")),
        lambda number: sf.get(sf.col(values), sf.floor(number * size / ranges).cast("int")),
    )
    return sf.when(size > 0, starts)


def _range_of(value: Column, bounds: str, ranges: int) -> Column:
    """The number of a value's range, from 0: how many ranges begin at it or before. Nulls are in the first one."""
    steps = [1 << bit for bit in reversed(range(max(1, (ranges - 1).bit_length())))]

    def step(found: Column, width: Column) -> Column:
        # Beyond the last bound there is null, which nothing is greater than.
        return sf.when(value >= sf.get(sf.col(bounds), found + width - 1), found + width).otherwise(found)

    return sf.aggregate(sf.array(*map(sf.lit, steps)), sf.lit(0), step)


def _interleaved(numbers: Sequence[Column]) -> Column:
    """A number of the bits of several: of each the highest bit, then of each the next."""
    found = sf.lit(0).cast("long")
    for bit in range(_BITS):
        for place, number in enumerate(numbers):
            to = bit * len(numbers) + len(numbers) - 1 - place
            one = sf.shiftright(number, bit).bitwiseAND(sf.lit(1)).cast("long")
            found = found.bitwiseOR(sf.shiftleft(one, to))
    return found
