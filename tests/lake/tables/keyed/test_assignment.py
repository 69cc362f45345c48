"""Which values become those of a table's columns, and which are refused with the column's name."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lake.tables.keyed.assignment import assigned
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.schema import of_hive
from lake.tables.keyed.wide_types import narrow_schema, wide

BAD_TEXT = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())

REFUSED: dict[str, tuple[pa.Array, str]] = {
    "an overflow": (pa.array([300]), "tinyint"),
    "an unsigned overflow": (pa.array([2**64 - 1], pa.uint64()), "bigint"),
    "an overflow in a struct": (pa.array([{"a": 300}]), "struct<a:tinyint>"),
    "an overflow in a list": (pa.array([[300]]), "array<tinyint>"),
    "an overflow in a map": (pa.array([[("k", 300)]], pa.map_(pa.string(), pa.int64())), "map<string,tinyint>"),
    "a decimal that is too large": (pa.array([Decimal("123456.78")]), "decimal(5,2)"),
    "a decimal with too many digits behind the point": (pa.array([Decimal("1.234")]), "decimal(5,2)"),
    "a whole number for a short decimal": (pa.array([12345]), "decimal(5,2)"),
    "a double beyond a float": (pa.array([1e300]), "float"),
    "a double beyond a float in a list": (pa.array([[1.0, 1e300]]), "array<float>"),
    "a text for a number": (pa.array(["12"]), "int"),
    "a text for a date": (pa.array(["2026-01-31"]), "date"),
    "a number for a date": (pa.array([1], pa.int32()), "date"),
    "a number for a time": (pa.array([1]), "timestamp"),
    "a boolean for a number": (pa.array([True]), "int"),
    "a float for a text": (pa.array([1.0]), "string"),
    "a time of day": (pa.array([1], pa.time64("us")), "timestamp"),
    "a duration": (pa.array([1], pa.duration("us")), "bigint"),
    "a text that isn't UTF-8": (BAD_TEXT, "string"),
    "a nested text that isn't UTF-8": (pa.StructArray.from_arrays([BAD_TEXT], ["a"]), "struct<a:string>"),
    "bytes that aren't UTF-8": (pa.array([b"\xff"]), "string"),
    "nanoseconds": (pa.array([1], pa.timestamp("ns")), "timestamp"),
    "seconds beyond microseconds": (pa.array([2**60], pa.timestamp("s")), "timestamp"),
    "a date beyond timestamps": (pa.array([2**31 - 1], pa.date32()), "timestamp"),
    "a text that is too long": (pa.array(["ab", "abcd"]), "varchar(3)"),
    "a CHAR that is too long": (pa.array(["äöüß"]), "char(3)"),
    "a text that is too long in a struct": (pa.array([{"a": "abcd"}]), "struct<a:varchar(3)>"),
    "a text that is too long in a list": (pa.array([["abcd"]]), "array<varchar(3)>"),
    "a text that is too long in a map": (
        pa.array([[("k", "abcd")]], pa.map_(pa.string(), pa.string())),
        "map<string,varchar(3)>",
    ),
    "a field that the table doesn't have": (pa.array([{"a": 1, "b": 1}]), "struct<a:int>"),
    "lists by views": (pa.array([[1]], pa.list_view(pa.int64())), "array<int>"),
    "a list for a struct": (pa.array([[1]]), "struct<a:int>"),
}

TAKEN: dict[str, tuple[pa.Array, str, list[Any]]] = {
    "unsigned numbers": (pa.array([7], pa.uint64()), "int", [7]),
    "a dictionary": (pa.array(["a", None, "a"]).dictionary_encode(), "string", ["a", None, "a"]),
    "a dictionary in a list": (
        pa.ListArray.from_arrays([0, 2], pa.array(["a", "b"]).dictionary_encode()),
        "array<string>",
        [["a", "b"]],
    ),
    "large texts": (pa.array(["a\0b"], pa.large_string()), "string", ["a\0b"]),
    "texts by views": (pa.array(["a" * 20], pa.string_view()), "string", ["a" * 20]),
    "bytes by views": (pa.array([b"\0"], pa.binary_view()), "binary", [b"\0"]),
    "half floats": (pa.array(np.array([1.5, float("inf")], np.float16)), "float", [1.5, float("inf")]),
    "negative zero": (pa.array([-0.0]), "double", [-0.0]),
    "whole numbers for decimals": (pa.array([12, None]), "decimal(5,2)", [Decimal("12.00"), None]),
    "whole numbers for nested decimals": (pa.array([[12]]), "array<decimal(5,2)>", [[Decimal("12.00")]]),
    "decimals of 38 digits": (pa.array([Decimal("9" * 38)]), "decimal(38,0)", [Decimal("9" * 38)]),
    "decimals with a negative scale": (
        pa.array([Decimal("1E+3")], pa.decimal128(3, -3)),
        "decimal(5,0)",
        [Decimal(1000)],
    ),
    "wide decimals": (pa.array([Decimal("1.23")], pa.decimal256(50, 2)), "decimal(5,2)", [Decimal("1.23")]),
    "nulls": (pa.nulls(2), "struct<a:int>", [None, None]),
    "lists of a fixed size": (pa.array([[1]], pa.list_(pa.int64(), 1)), "array<int>", [[1]]),
    "nulls in lists": (pa.array([[None], None, []], pa.list_(pa.null())), "array<int>", [[None], None, []]),
    "a struct in another order": (pa.array([{"b": 1, "a": "x"}]), "struct<a:string,b:int>", [{"a": "x", "b": 1}]),
    "CHAR is filled": (pa.array(["a", "ä", None, "abc  "]), "char(3)", ["a  ", "ä  ", None, "abc"]),
    "spaces that are cut off": (pa.array(["abc   ", "a    "]), "varchar(3)", ["abc", "a  "]),
    "nested CHAR": (
        pa.array([None, [{"a": "x"}, None], []]),
        "array<struct<a:char(2)>>",
        [None, [{"a": "x "}, None], []],
    ),
    "CHAR in a map": (
        pa.array([None, [("k", "v")]], pa.map_(pa.string(), pa.string())),
        "map<char(2),char(3)>",
        [None, [("k ", "v  ")]],
    ),
    "whole numbers of 64 bits": (pa.array([-(2**63), 2**63 - 1]), "bigint", [-(2**63), 2**63 - 1]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_values_that_do_not_fit_are_refused(what: str) -> None:
    values, kind = REFUSED[what]
    with pytest.raises(UnfitRows, match="c1"):
        given(values, kind)


@pytest.mark.parametrize("what", TAKEN)
def test_values_that_fit_are_converted(what: str) -> None:
    values, kind, wanted = TAKEN[what]
    found = given(values, kind)
    assert found.to_pylist() == wanted
    # Where a batch is a slice of another, or comes in several chunks.
    some = pa.chunked_array([values.slice(0, 1), values.slice(1)])
    assert given(some, kind).to_pylist() == wanted


def given(values: pa.Array | pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    schema = pa.schema([("c1", wide(of_hive(kind)))])
    found = assigned(pa.table({"c1": values}), schema, {"c1": kind})
    found.validate(full=True)
    return found.cast(narrow_schema(schema)).column("c1")
