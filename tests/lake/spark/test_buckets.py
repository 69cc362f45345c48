"""Spark and Arrow put the same key into the same bucket."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from lake.protocol.formats.keyed_table import BadKeyedTable, KeyedTable
from lake.tables.keyed.hashing import buckets_of
from lake.tables.keyed.schema import of_hive
from tests.lake.spark.lake import Lake

_KEYS: dict[str, list[Any]] = {
    "tinyint": [0, -128, 127],
    "smallint": [-32768, 7],
    "int": [0, -1, 2147483647, -2147483648],
    "bigint": [0, 9223372036854775807, -9223372036854775808],
    "string": ["", " ", "a", "ä", "\u0000", "a\u001fb", "\U0001f600", "x" * 1000],
    "varchar(10)": ["a", "ä "],
    "boolean": [True, False],
    "date": [date(1970, 1, 1), date(1, 1, 1), date(1582, 10, 4), date(9999, 12, 31), date(2026, 1, 31)],
    "timestamp": [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=UTC),
        datetime(1900, 1, 1, tzinfo=UTC) + timedelta(microseconds=1),
    ],
    "binary": [b"", b"\x00\xff\x1f", b"\xfe" * 20],
}


@pytest.mark.long
def test_buckets_are_the_same(lake: Lake) -> None:
    for kind, values in _KEYS.items():
        for key in (("k",), ("k", "other")):
            table = KeyedTable.of({"primary-key": ",".join(key), "bucket": "9973"}, {"k": kind, "other": "bigint"}, [])
            assert table is not None
            others = list(range(len(values)))
            rows = pa.table({"k": pa.array(values, of_hive(kind)), "other": pa.array(others, pa.int64())})
            assert lake.run(_by_spark(kind, values, key)) == buckets_of(rows, table).to_pylist(), (kind, key)


def _by_spark(kind: str, values: list[Any], key: tuple[str, ...]) -> str:
    """Spark's buckets of some keys, with the values in a form that needs no session's time zone."""
    plain = kind.partition("(")[0].replace("varchar", "string")
    shown = [
        value.hex()
        if isinstance(value, bytes)
        else str((value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))
        if isinstance(value, datetime)
        else str(value)
        for value in values
    ]
    casts = {"binary": "unhex(v)", "timestamp": "timestamp_micros(cast(v as bigint))"}
    cast = casts.get(plain, f"cast(v as {plain})")
    return f"""
import json
from tests.spark_extension.bucket_writes import Extension
spark.conf.set("spark.sql.session.timeZone", "America/New_York")
rows = spark.createDataFrame(list(enumerate(json.loads({json.dumps(shown)!r}))), "other bigint, v string")
rows = rows.selectExpr("other", {cast!r} + " AS k").orderBy("other")
extension, types = Extension(spark), dict(zip(rows.columns, [each.dataType() for each in rows._jdf.schema().fields()]))
result = []
for row in rows._jdf.queryExecution().executedPlan().executeCollect():
    hash = extension.new("KeyHash")
    for name in {key!r}:
        value = row.get(rows.columns.index(name), types[name])
        extension.call("KeyHash", "add", hash, extension.call("KeyHash", "text", None, value, types[name]))
    result.append(extension.call("KeyHash", "bucket", hash, 9973))
spark.conf.unset("spark.sql.session.timeZone")
"""


_DEFINITIONS: list[dict[str, str]] = [
    {"bucket": "8"},
    {"bucket-key": "b", "table-type": "merge-on-read+bucket-key"},
    {"bucket-key": "C, a", "table-type": "Copy-on-write + bucket-key"},
    {"bucket-key": "c,b,a", "table-type": "copy-on-write+bucket-key"},
    {"bucket-key": "a", "table-type": "merge-on-read"},
]
_LATER = ["merge-on-read+spirals", "merge-on-read+bucket-key+spirals", "spirals", "merge-on-read+"]


@pytest.mark.long
def test_both_find_buckets_by_the_same_columns(lake: Lake) -> None:
    types = {"a": "bigint", "b": "string", "c": "int"}
    key = {"primary-key": "a,b,c,dt"}
    for properties in _DEFINITIONS:
        table = KeyedTable.of({**key, **properties}, types, ["dt"])
        assert table is not None
        layout = {name: value for name, value in table.layout().items() if name != "column-ids"}
        of_spark = lake.run(_understood([{**key, **properties}]))
        assert of_spark == [[list(table.bucket_key), table.is_merge_on_read, layout, ""]]
    for type in _LATER:
        given = {**key, "bucket-key": "a", "table-type": type}
        with pytest.raises(BadKeyedTable, match="table-type="):
            KeyedTable.of(given, types, ["dt"])
        [[_, _, _, refused]] = lake.run(_understood([given]))
        assert "install the lake-metastore-client of the server's version" in refused


def _understood(definitions: list[dict[str, str]]) -> str:
    """What the extension makes of definitions: by what rows are placed, and why it refuses them."""
    return f"""
from tests.spark_extension.bucket_writes import Extension
extension, result = Extension(spark), []
for properties in {definitions!r}:
    given = spark._jvm.java.util.HashMap()
    for name, value in properties.items():
        given.put(name, value)
    table = extension.call("KeyedTable", "of", None, given, extension.list(["dt"]))
    try:
        extension.call("KeyedTable", "checkUnderstood", table, "t")
        refused = ""
    except Exception as error:
        refused = str(error)
    result.append([
        list(extension.field("KeyedTable", "bucketKey", table)),
        extension.field("KeyedTable", "isMergeOnRead", table),
        dict(extension.call("KeyedTable", "layout", table)),
        refused,
    ])
"""
