"""Column statistics as Hive's database keeps them: one row for each column, whatever its type is."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal as Number
from typing import Any

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
    Timestamp,
    TimestampColumnStatsData,
)
from metastore.migration.hive_rows import Row
from metastore.services.statistics import column_values

_DOUBLES = frozenset({"double", "float"})


def grouped(rows: Iterable[Row]) -> dict[tuple[Any, str], list[Row]]:
    """Rows by their table or partition, and the engine."""
    found: dict[tuple[Any, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.get("PART_ID", row.get("TBL_ID")), row.get("ENGINE") or "hive"].append(row)
    return found


def of_row(row: Row) -> ColumnStatisticsObj:
    """The statistics that a row holds."""
    kind = (row["COLUMN_TYPE"] or "").lower()
    return ColumnStatisticsObj(row["COLUMN_NAME"], kind, _data(kind, row))


def _data(kind: str, row: Row) -> ColumnStatisticsData:
    base = kind.partition("(")[0]
    common: dict[str, Any] = {
        "numNulls": row["NUM_NULLS"] or 0,
        "numDVs": row["NUM_DISTINCTS"] or 0,
        "bitVectors": _bits(row.get("BIT_VECTOR")),
    }
    sketches = {**common, "histogram": _bits(row.get("HISTOGRAM"))}
    low, high = row["LONG_LOW_VALUE"], row["LONG_HIGH_VALUE"]
    lengths: dict[str, Any] = {"maxColLen": row["MAX_COL_LEN"] or 0, "avgColLen": float(row["AVG_COL_LEN"] or 0)}
    if base == "boolean":
        return ColumnStatisticsData(
            booleanStats=BooleanColumnStatsData(
                numTrues=row["NUM_TRUES"] or 0,
                numFalses=row["NUM_FALSES"] or 0,
                numNulls=common["numNulls"],
                bitVectors=common["bitVectors"],
            )
        )
    if base in ("string", "varchar", "char"):
        return ColumnStatisticsData(stringStats=StringColumnStatsData(**lengths, **common))
    if base == "binary":
        del common["numDVs"]
        return ColumnStatisticsData(binaryStats=BinaryColumnStatsData(**lengths, **common))
    if base == "timestamp":
        times = [None if each is None else Timestamp(each) for each in (low, high)]
        return ColumnStatisticsData(timestampStats=_bounded(TimestampColumnStatsData, times, sketches))
    if base == "date":
        days = [None if each is None else Date(each) for each in (low, high)]
        return ColumnStatisticsData(dateStats=_bounded(DateColumnStatsData, days, sketches))
    if base == "decimal":
        ends = [_decimal(row[f"BIG_DECIMAL_{end}_VALUE"]) for end in ("LOW", "HIGH")]
        return ColumnStatisticsData(decimalStats=_bounded(DecimalColumnStatsData, ends, sketches))
    if base in _DOUBLES:
        numbers = [row[f"DOUBLE_{end}_VALUE"] for end in ("LOW", "HIGH")]
        floats = [None if each is None else float(each) for each in numbers]
        return ColumnStatisticsData(doubleStats=_bounded(DoubleColumnStatsData, floats, sketches))
    return ColumnStatisticsData(longStats=_bounded(LongColumnStatsData, [low, high], sketches))


def _bounded(struct: Any, bounds: list[Any], values: dict[str, Any]) -> Any:
    """Data of a kind that has bounds, with those values that it has fields for."""
    own = {name: value for name, value in values.items() if name in struct.field_names()}
    return struct(lowValue=bounds[0], highValue=bounds[1], **own)


def _bits(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else bytes(value)


def _decimal(text: str | None) -> Decimal | None:
    """A decimal of its text, with the scale that it is written with."""
    if text is None or text == "":
        return None
    number = Number(text)
    whole = Number(f"{number:f}")  # 1E+3 is written as 1000
    value: Decimal = column_values.bound("decimalStats", whole)
    return value
