"""Values at the limits of types: what Arrow and Spark write, both read, and nothing is changed on the way."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed.files import read_rows
from lake.tables.keyed.schema import of_hive
from lake.tables.keyed.wide_types import narrowed
from lake.tables.lake import LakeTable
from tests.lake.spark.conftest import NUMBERS
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkSession

_DAY = 86_400_000_000  # microseconds

DAYS = [-(2**31), -1_000_000, -719_529, -719_162, -141_428, -1, 0, 2_932_896, 2_932_897, 2**31 - 1]
"""Of the beginning and the end of types, of years 1 and 10000, and before the calendar of 1582."""

MICROS = [-(2**63), *(day * _DAY + 1 for day in (-1_000_000, -719_162, -141_428, -25_568, -1, 0, 2_932_896, 2_932_897))]
MICROS += [2**63 - 1]

LEAVES: dict[str, list[Any]] = {
    "tinyint": [-128, 0, 127],
    "bigint": [-(2**63), 0, 2**63 - 1],
    "float": [float("nan"), float("-inf"), -0.0, 1.5],
    "double": [float("nan"), float("inf"), -0.0, 5e-324, 1.7976931348623157e308],
    "boolean": [True, False],
    "string": ["", "\0", "ä\U0001f600", "x" * 70_000],
    "binary": [b"", b"\0\xff", b"x" * 70_000],
    "date": DAYS,
    "timestamp": MICROS,
    "decimal(38,18)": [-(10**38) + 1, 0, 10**38 - 1],
    "decimal(5,2)": [-99_999, 99_999],
}


@pytest.fixture(scope="module", params=["4", pytest.param("3.5", marks=pytest.mark.long)], ids=["spark-4", "spark-3.5"])
def spark(request: pytest.FixtureRequest, hinting_session: Callable[[str], SparkSession]) -> Iterator[SparkSession]:
    """A session whose settings are those of Spark 3.5, which refuses old dates and times by default."""
    session = hinting_session(request.param)
    settings = [
        f"spark.sql.parquet.{kind}RebaseModeIn{way}" for kind in ("datetime", "int96") for way in ("Read", "Write")
    ]
    for each in settings:
        session.sql(f"SET {each}=EXCEPTION")
    yield session
    for each in settings:
        session.sql(f"RESET {each}")


@pytest.mark.parametrize("kind", ["copy-on-write", pytest.param("merge-on-read", marks=pytest.mark.long)])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_all_values_come_through(lake: Lake, kind: str, seed: int) -> None:
    rng = random.Random(seed)
    columns = {f"c{number}": column_type(rng, 0 if number < len(LEAVES) else 3) for number in range(26)}
    columns |= dict(zip(columns, LEAVES, strict=False))
    listed = ", ".join(["id BIGINT", *(f"{name} {each}" for name, each in columns.items())])
    properties = {"primary-key": "id", "bucket": "1", "table-type": kind}
    table = lake.table(f"e{next(NUMBERS)}", listed, **properties)
    first, second = batch(rng, columns, range(12)), batch(rng, columns, range(8, 12))
    table.upsert(first)
    table.upsert(second)
    wanted = texts(pa.concat_tables([first.slice(0, 8), second]))
    assert texts(table.scan().to_arrow()) == wanted
    assert by_spark(lake, f"read(spark, {table.name!r})", table) == wanted
    changed = f"read(spark, {table.name!r}, incremental=(1, None))"
    assert by_spark(lake, changed, table) == texts(second)
    if (plan := plan_compaction(table)).instant is not None:
        run_compaction(table, plan.instant.timestamp)
        assert texts(table.scan().to_arrow()) == wanted
        assert by_spark(lake, f"read(spark, {table.name!r})", table) == wanted
    # What Spark has read, it writes: by key, and as files of its own.
    copied = lake.table(f"e{next(NUMBERS)}", listed, **properties)
    lake.run(f"write(read(spark, {table.name!r}), {copied.name!r}, operation='upsert')")
    assert texts(copied.scan().to_arrow()) == wanted


@pytest.mark.long
@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS"])
def test_old_dates_and_times_of_plain_tables(lake: Lake, stored: str) -> None:
    columns = "id BIGINT, day DATE, at TIMESTAMP, l ARRAY<STRUCT<at: TIMESTAMP>>"
    table = lake.table(f"e{next(NUMBERS)}", columns)
    row = "SELECT {}L id, DATE'{} ' day, TIMESTAMP'{} 00:00:00' at, array(named_struct('at', TIMESTAMP'{} 00:00:00')) l"
    days = ["0001-01-01", "1582-10-10", "1899-12-31", "9999-12-31"]
    query = " UNION ALL ".join(row.format(number, *[day] * 3) for number, day in enumerate(days))
    lake.spark.sql(f"SET spark.sql.parquet.outputTimestampType={stored}")
    lake.run(f"""
for number in range(2):
    write(spark.sql({query!r}).coalesce(1), {table.name!r}, event_time="at")
from lake.spark.table_services import plan_clustering, run_plan
run_plan(spark, {table.name!r}, plan_clustering(spark, {table.name!r}).instant.timestamp)
""")
    lake.spark.sql("RESET spark.sql.parquet.outputTimestampType")
    shown = lake.ids(table, "string(id), string(day), string(at), string(l[0].at)")
    assert shown == [[str(number), day, *[f"{day} 00:00:00"] * 2] for number, day in enumerate(days) for _ in range(2)]
    [file] = table.snapshot()
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    found = read_rows(f"{table.location()}/{file.path}", schema)
    assert {str(each)[:4] for each in found.column("at").to_pylist()} <= {"0001", "1582", "1899", "1900", "9999"}


def column_type(rng: random.Random, depth: int) -> str:
    choice = rng.random() if depth else 0
    if choice < 0.3:
        return rng.choice(list(LEAVES))
    inner = [column_type(rng, depth - 1) for _ in range(3)]
    if choice < 0.55:
        return f"array<{inner[0]}>"
    if choice < 0.8:
        return "struct<" + ",".join(f"f{number}:{each}" for number, each in enumerate(inner)) + ">"
    return f"map<string,{inner[0]}>"


def batch(rng: random.Random, columns: dict[str, str], ids: range) -> pa.Table:
    values = {name: array(rng, of_hive(kind), kind, len(ids)) for name, kind in columns.items()}
    return pa.table({"id": pa.array(ids, pa.int64()), **values})


def array(rng: random.Random, kind: pa.DataType, text: str, count: int) -> pa.Array:
    """Random values of a type; `text`: Hive's, of leaves."""
    mask = pa.array([rng.random() < 0.2 for _ in range(count)], pa.bool_())
    if pa.types.is_struct(kind):
        fields = [array(rng, each.type, hive_text(each.type), count) for each in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        offsets = [0]
        for null in mask.to_pylist():
            offsets.append(offsets[-1] + (0 if null else rng.choice([0, 1, 3])))
        size = offsets[-1]
        starts = pa.array(offsets, pa.int32(), mask=[*mask.to_pylist(), False])
        if pa.types.is_map(kind):
            keys = pa.array([f"k{number}" for number in range(size)], pa.string())
            return pa.MapArray.from_arrays(starts, keys, array(rng, kind.item_type, hive_text(kind.item_type), size))
        return pa.ListArray.from_arrays(starts, array(rng, kind.value_type, hive_text(kind.value_type), size))
    known = [rng.choice(LEAVES[text]) for _ in range(count)]
    values = [None if null else each for null, each in zip(mask.to_pylist(), known, strict=True)]
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_decimal(kind):
        unscaled = [None if each is None else each.to_bytes(16, "little", signed=True) for each in values]
        data = pa.py_buffer(b"".join(each or bytes(16) for each in unscaled))
        valid = pa.array([each is not None for each in unscaled], pa.bool_()).buffers()[1]
        return pa.Array.from_buffers(kind, count, [valid, data])
    return pa.array(values, kind)


def hive_text(kind: pa.DataType) -> str:
    return next((text for text in LEAVES if of_hive(text) == kind), "")


def texts(rows: pa.Table) -> dict[str, list[str]]:
    """The values of columns in the order of the ids. Dates and times are numbers: Python doesn't have all of them."""
    rows = rows.take(pc.sort_indices(rows.column("id")))
    return {
        name: [repr(each) for each in column.cast(countable(column.type)).to_pylist()]
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }


def countable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(countable(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(countable(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, countable(kind.item_type))
    return {pa.date32(): pa.int32(), pa.timestamp("us", "UTC"): pa.int64()}.get(kind, kind)


def by_spark(lake: Lake, rows: str, table: LakeTable) -> dict[str, list[str]]:
    """The same of what Spark reads, by way of a file."""
    schema = narrowed(table.scan().to_arrow().slice(0, 0)).schema
    path = f"{table.location().removeprefix('file:')}/.from-spark-{next(NUMBERS)}"
    lake.run(f"""
import pyarrow as pa
frame = {rows}
batches = frame._collect_as_arrow()
found = pa.Table.from_batches(batches)
with pa.OSFile({path!r}, "wb") as target, pa.ipc.new_file(target, found.schema) as writer:
    writer.write_table(found)
""")
    with pa.memory_map(path) as source:
        found = pa.ipc.open_file(source).read_all()
    return texts(found.select(schema.names).cast(schema))
