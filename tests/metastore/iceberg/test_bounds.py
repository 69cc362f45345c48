"""Bounds and counts of columns, from files as their writers make them."""

import datetime
import decimal
import io
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.conversions import from_bytes
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from metastore.iceberg.errors import RestError
from metastore.iceberg.shown.bounds import LONGEST_TEXT, Metrics, lower_text, metrics, upper_binary, upper_text
from metastore.iceberg.shown.footer_cache import Footers
from metastore.iceberg.shown.footers import Footer
from metastore.warehouse import Warehouse

TYPES: dict[str, IcebergType] = {
    "int": IntegerType(),
    "long": LongType(),
    "date": DateType(),
    "string": StringType(),
    "binary": BinaryType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "decimal(9,2)": DecimalType(9, 2),
    "decimal(20,3)": DecimalType(20, 3),
    "decimal(38,10)": DecimalType(38, 10),
}
TIMES = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
UTC = datetime.UTC


def decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    most = 10**precision - 1
    return st.integers(-most, most).map(lambda each: decimal.Decimal(each).scaleb(-scale, decimal.Context(prec=38)))


VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    "long": (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    "date": (pa.date32(), st.dates()),
    "string": (pa.string(), TEXTS),
    "binary": (pa.binary(), st.binary(max_size=40)),
    "timestamp": (pa.timestamp("us"), TIMES),
    "timestamptz": (pa.timestamp("us", tz="UTC"), TIMES.map(lambda each: each.replace(tzinfo=UTC))),
    "decimal(9,2)": (pa.decimal128(9, 2), decimals(9, 2)),
    "decimal(20,3)": (pa.decimal128(20, 3), decimals(20, 3)),
    "decimal(38,10)": (pa.decimal128(38, 10), decimals(38, 10)),
}


def footer_of(content: bytes, folder: Path) -> Footer:
    file = folder / f"{hash(content) & 0xFFFFFFFF:x}.parquet"
    file.write_bytes(content)
    return Footers(Warehouse(f"file:{folder}")).of(f"file:{file}", len(content))


def parquet(table: pa.Table, **options: Any) -> bytes:
    target = io.BytesIO()
    pq.write_table(table, target, **options)
    return target.getvalue()


def of_column(content: bytes, folder: Path, type: str) -> Metrics:
    return metrics(footer_of(content, folder), {1: type}, lambda each: 1 if each.name == "c" else None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("footers")


def check(found: Metrics, type: str, values: list[Any]) -> None:
    """Bounds hold for all values, and are these wherever nothing is truncated."""
    present = [each for each in values if each is not None]
    assert found.values == ({1: len(values)} if values else {1: 0})
    assert found.nulls == {1: len(values) - len(present)}
    if not present:
        assert (found.lower, found.upper) == ({}, {})
        return
    lower = from_bytes(TYPES[type], found.lower[1])
    assert lower == exact(type, min(present)) if type not in ("string", "binary") else lower <= min(present)
    if 1 not in found.upper:
        assert type in ("string", "binary") and len(max(present)) > LONGEST_TEXT
        return
    upper = from_bytes(TYPES[type], found.upper[1])
    assert upper == exact(type, max(present)) if type not in ("string", "binary") else upper >= max(present)
    if type in ("string", "binary") and len(max(present)) <= LONGEST_TEXT:
        assert upper == max(present)


def exact(type: str, value: Any) -> Any:
    """A value as PyIceberg has it."""
    if type == "date":
        return (value - datetime.date(1970, 1, 1)).days
    if type.startswith("timestamp"):
        since = value.replace(tzinfo=UTC) - datetime.datetime(1970, 1, 1, tzinfo=UTC)
        return since // datetime.timedelta(microseconds=1)
    return value


@pytest.mark.parametrize("type", VALUES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_bounds_hold(folder: Path, type: str, data: st.DataObject) -> None:
    kind, one = VALUES[type]
    values = data.draw(st.lists(st.none() | one, max_size=8))
    table = pa.table({"c": pa.array(values, kind)})
    options: dict[str, Any] = {"row_group_size": data.draw(st.integers(1, 8))}
    if type.startswith("decimal"):
        options["store_decimal_as_integer"] = data.draw(st.booleans())
    check(of_column(parquet(table, **options), folder, type), type, values)


@pytest.mark.parametrize("type", VALUES)
def test_files_of_another_writer(folder: Path, tmp_path: Path, type: str) -> None:
    kind, _ = VALUES[type]
    sample = {"int": [3, -3, None], "long": [1 << 40, None], "string": ["ü" * 30, "b", None], "binary": [b"\xff" * 3]}
    some = {
        **{each: [decimal.Decimal("-1.25"), decimal.Decimal("3.5")] for each in VALUES if each.startswith("decimal")},
        "date": [datetime.date(1960, 2, 3), datetime.date(2026, 1, 31)],
        "timestamp": [datetime.datetime(1960, 2, 3, 4, 5, 6, 7)],
        "timestamptz": [datetime.datetime(2026, 2, 3, 4, 5, 6, 7, UTC)],
        **sample,
    }[type]
    rows = pa.table({"c": pa.array(some, kind)})
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (len(rows),)
        connection.execute(f"COPY rows TO '{tmp_path}/a.parquet'")
    found = of_column((tmp_path / "a.parquet").read_bytes(), folder, type)
    if found.lower:
        check(found, type, some)
    else:
        assert type in ("binary", "decimal(38,10)", "decimal(20,3)", "string"), "no bounds of a simple type"


@pytest.mark.parametrize(
    ("kind", "values", "type"),
    [
        (pa.int64(), [1, 2], "int"),  # narrower than the file
        (pa.uint32(), [1, (1 << 32) - 1], "long"),
        (pa.uint64(), [1, (1 << 64) - 1], "long"),
        (pa.int64(), [1], "date"),
        (pa.int32(), [1], "date"),
        (pa.int64(), [1], "timestamptz"),
        (pa.time64("us"), [datetime.time(1)], "long"),
        (pa.timestamp("us"), [datetime.datetime(2026, 1, 1)], "timestamptz"),
        (pa.timestamp("us", tz="UTC"), [datetime.datetime(2026, 1, 1)], "timestamp"),
        (pa.timestamp("ns", tz="UTC"), [datetime.datetime(2026, 1, 1)], "timestamptz"),
        (pa.decimal128(9, 3), [decimal.Decimal("1.125")], "decimal(9,2)"),
        (pa.decimal128(9, 0), [decimal.Decimal(1)], "long"),
        (pa.int64(), [1], "decimal(9,2)"),
        (pa.decimal128(20, 2), [decimal.Decimal(10**15)], "decimal(9,2)"),  # doesn't fit
        (pa.string(), ["a"], "binary"),
        (pa.binary(), [b"\xff\xfe"], "string"),  # no text
        (pa.int32(), [1], "string"),
        (pa.float64(), [1.0, float("nan")], "double"),
        (pa.float32(), [1.0], "float"),
        (pa.bool_(), [True], "boolean"),
        (pa.int64(), [None, None], "long"),
    ],
)
def test_what_is_not_exact_has_no_bounds(folder: Path, kind: pa.DataType, values: list[Any], type: str) -> None:
    found = of_column(parquet(pa.table({"c": pa.array(values, kind)})), folder, type)
    assert (found.lower, found.upper) == ({}, {})


def test_wider_types_keep_their_bounds(folder: Path) -> None:
    rows = pa.table({"c": pa.array([-5, 7], pa.int32())})
    found = of_column(parquet(rows), folder, "long")
    assert [from_bytes(LongType(), each[1]) for each in (found.lower, found.upper)] == [-5, 7]
    rows = pa.table({"c": pa.array([datetime.datetime(1969, 12, 31, 23, 59, 59, 5_000)], pa.timestamp("ms", tz="UTC"))})
    found = of_column(parquet(rows), folder, "timestamptz")
    assert from_bytes(TimestamptzType(), found.lower[1]) == -995_000


def test_ninety_six_bits_have_no_bounds(folder: Path) -> None:
    rows = pa.table({"c": pa.array([datetime.datetime(2026, 1, 1)], pa.timestamp("us", tz="UTC"))})
    found = of_column(parquet(rows, use_deprecated_int96_timestamps=True), folder, "timestamptz")
    assert (found.lower, found.upper) == ({}, {})


def test_bounds_that_were_cut_off_are_not_read(folder: Path) -> None:
    """A writer that keeps the first bytes of long values: of a decimal these are another number."""
    rows = pa.table({"c": pa.array([decimal.Decimal("-12345678901234567.125")], pa.decimal128(20, 3))})
    content = parquet(rows)
    value = (-12345678901234567125).to_bytes(9, "big", signed=True)
    assert of_column(content, folder, "decimal(20,3)").lower
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # A binary field of 8 bytes, as Thrift's compact protocol has it, instead of 9.
    footer = content[start:-8].replace(b"\x18\x09" + value, b"\x18\x08" + value[:8])
    assert len(footer) < len(content) - 8 - start
    cut = content[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    found = of_column(cut, folder, "decimal(20,3)")
    assert found.values == {1: 1} and (found.lower, found.upper) == ({}, {})


def test_without_statistics_nothing_is_said(folder: Path) -> None:
    rows = pa.table({"c": pa.array([1, None], pa.int64())})
    assert of_column(parquet(rows, write_statistics=False), folder, "long") == Metrics({1: 2}, {}, {}, {})


def test_columns_that_might_be_others(folder: Path) -> None:
    nested = pa.table({"s": pa.array([{"c": 1}]), "l": pa.array([[1, 2]]), "c": pa.array([7], pa.int64())})
    found = of_column(parquet(nested), folder, "long")
    assert from_bytes(LongType(), found.lower[1]) == 7
    twice = pa.table([pa.array([1], pa.int64()), pa.array([2], pa.int64())], names=["c", "C"])
    both = metrics(footer_of(parquet(twice), folder), {1: "long"}, lambda each: 1)
    assert both == Metrics({}, {}, {}, {})


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_texts_are_truncated_upwards(text: str) -> None:
    lower, upper = lower_text(text.encode()[:72]), upper_text(text.encode()[:72])
    assert lower is not None and lower <= text.encode() and len(lower.decode()) <= LONGEST_TEXT
    assert upper is None or (upper >= text.encode() and len(upper.decode()) <= LONGEST_TEXT)
    if upper is None:
        assert text.startswith("\U0010ffff" * LONGEST_TEXT)


@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("a" * 17, "a" * 15 + "b"),
        ("a" * 15 + "\ud7ff" + "x", "a" * 15 + "\ue000"),
        ("a" * 15 + "\U0010ffff" + "x", "a" * 14 + "b"),
        ("\U0010ffff" * 17, None),
        ("a" * 16, "a" * 16),
    ],
)
def test_the_last_character_is_raised(text: str, upper: str | None) -> None:
    assert upper_text(text.encode()) == (None if upper is None else upper.encode())


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40) | st.integers(0, 40).map(lambda each: b"\xff" * each))
def test_bytes_are_truncated_upwards(value: bytes) -> None:
    upper = upper_binary(value[:72])
    assert (upper is None and value.startswith(b"\xff" * LONGEST_TEXT)) or (upper is not None and upper >= value)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damaged_footers_say_nothing_or_are_refused(folder: Path, data: st.DataObject) -> None:
    """Whatever bytes are there, the answer is a footer or a refusal."""
    content = bytearray(DAMAGED)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(start, len(content) - 9))] = data.draw(st.integers(0, 255))
    try:
        found = footer_of(bytes(content), folder)
    except RestError as error:
        assert error.status == 400
    else:
        metrics(found, {1: "long", 2: "string"}, lambda each: 1 if each.name == "c" else 2)


DAMAGED = parquet(pa.table({"c": pa.array([1, 2, None], pa.int64()), "d": ["a", "b" * 100, None]}), row_group_size=2)
