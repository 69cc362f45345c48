"""Avro schemas of Hudi's tables as Hive's columns."""

import json
from typing import Any

import pytest

from lake.protocol.hive import FieldSchema
from metastore.services.hudi.avro_schema import hive_columns
from metastore.services.model.validation import check_columns


def schema(**fields: Any) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields.items()]})


POINT = {
    "type": "record",
    "name": "point",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "long"]}],
}
TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}


@pytest.mark.parametrize(
    ("avro", "hive"),
    [
        *TYPES.items(),
        (["null", "string"], "string"),
        (["int", "null"], "int"),
        ({"type": "string", "avro.java.string": "String"}, "string"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "int", "logicalType": "time-millis"}, "int"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "bigint"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "bigint"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, "decimal(10,2)"),
        ({"type": "fixed", "name": "d", "size": 5, "logicalType": "decimal", "precision": 10}, "decimal(10,0)"),
        ({"type": "fixed", "name": "f", "size": 16}, "binary"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "string"),
        ({"type": "array", "items": ["null", "int"]}, "array<int>"),
        ({"type": "map", "values": "double"}, "map<string,double>"),
        (POINT, "struct<x:int,y:bigint>"),
        ({"type": "array", "items": POINT}, "array<struct<x:int,y:bigint>>"),
        (["null", "int", "string"], "struct<member0:int,member1:string>"),
    ],
)
def test_types(avro: Any, hive: str) -> None:
    assert hive_columns(schema(c=avro)) == [("c", hive)]
    check_columns([FieldSchema(name="c", type=hive)])


def test_a_named_type_is_used_again() -> None:
    assert hive_columns(schema(a=POINT, b="point")) == [
        ("a", "struct<x:int,y:bigint>"),
        ("b", "struct<x:int,y:bigint>"),
    ]


def test_timestamps_where_the_sync_is_configured_so() -> None:
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    assert hive_columns(schema(c=["null", micros]), timestamps=True) == [("c", "timestamp")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        '"int"',
        '{"type": "int"}',
        '{"type": "record", "fields": 1}',
        '{"type": "record", "fields": [{"type": "int"}]}',
        schema(c="point"),
        schema(c={"type": "record", "name": "p", "fields": [{"name": "f", "type": ["null", "p"]}]}),
        "[" * 100_000,
    ],
)
def test_what_is_no_schema_of_a_record(text: str) -> None:
    with pytest.raises(ValueError):
        hive_columns(text)


def test_few_types_do_not_become_many() -> None:
    named: Any = {"type": "record", "name": "r0", "fields": [{"name": "f", "type": "int"}]}
    fields = {"f0": named}
    for number in range(1, 40):
        twice = [{"name": name, "type": f"r{number - 1}"} for name in ("a", "b")]
        fields[f"f{number}"] = {"type": "record", "name": f"r{number}", "fields": twice}
    with pytest.raises(ValueError, match="too large"):
        hive_columns(schema(**fields))
