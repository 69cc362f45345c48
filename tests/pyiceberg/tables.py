"""A table with a bit of everything, and rows for it."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

SCHEMA = Schema(
    NestedField(1, "id", IntegerType(), required=True, doc="who"),
    NestedField(2, "country", StringType()),
    NestedField(3, "price", DecimalType(9, 2)),
    NestedField(4, "ratio", FloatType()),
    NestedField(5, "weight", DoubleType()),
    NestedField(6, "big", LongType()),
    NestedField(7, "good", BooleanType()),
    NestedField(8, "day", DateType()),
    NestedField(9, "at", TimestampType()),
    NestedField(10, "seen", TimestamptzType()),
    NestedField(11, "tags", ListType(14, StringType(), element_required=False)),
    NestedField(12, "counts", MapType(15, StringType(), 16, IntegerType(), value_required=False)),
    NestedField(
        13,
        "place",
        StructType(
            NestedField(17, "city", StringType()),
            NestedField(18, "path", ListType(19, DoubleType(), element_required=False)),
        ),
    ),
)

HIVE_TYPES = {
    "id": "int",
    "country": "string",
    "price": "decimal(9,2)",
    "ratio": "float",
    "weight": "double",
    "big": "bigint",
    "good": "boolean",
    "day": "date",
    "at": "timestamp",
    "seen": "timestamp with local time zone",
    "tags": "array<string>",
    "counts": "map<string,int>",
    "place": "struct<city:string,path:array<double>>",
}

BY_COUNTRY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "country"))


def row(number: int, country: str = "de") -> dict[str, Any]:
    noon = datetime.datetime(2024, 1, 1 + number % 28, 12, 30)
    return {
        "id": number,
        "country": country,
        "price": Decimal(number) / 4,
        "ratio": number / 2,
        "weight": number / 8,
        "big": number << 40,
        "good": number % 2 == 0,
        "day": noon.date(),
        "at": noon,
        "seen": noon.replace(tzinfo=datetime.UTC),
        "tags": [f"tag{number}", country],
        "counts": {"a": number},
        "place": {"city": country.upper(), "path": [float(number), 0.5]},
    }


def rows(numbers: range, country: str = "de") -> pa.Table:
    return pa.Table.from_pylist([row(number, country) for number in numbers], schema=SCHEMA.as_arrow())


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """A result in Python's values, in the order of its ids."""
    found = table.to_pylist()
    for each in found:
        if "counts" in each:
            each["counts"] = dict(each["counts"])
    return sorted(found, key=lambda each: int(each["id"]))
