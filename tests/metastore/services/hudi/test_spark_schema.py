"""The columns of Hudi's tables as Spark keeps them, from Avro schemas."""

import json
from typing import Any

import pytest

from lake.protocol.formats.spark_schema import MAX_PROPERTY, SCHEMA, joined
from metastore.services.hudi.spark_schema import spark_properties


def schema(*fields: tuple[str, Any]) -> str:
    made = [{"name": name, "type": kind} for name, kind in fields]
    return json.dumps({"type": "record", "name": "r", "fields": made})


def fields(properties: dict[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(joined(properties) or "")["fields"]
    return found


@pytest.mark.parametrize(
    ("avro", "spark"),
    [
        ("int", "integer"),
        ({"type": "long"}, "long"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz"),
        (
            {"type": "fixed", "name": "f", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2},
            "decimal(10,2)",
        ),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "string"),
        ("bytes", "binary"),
        (
            {"type": "array", "items": ["null", "int"]},
            {"type": "array", "elementType": "integer", "containsNull": True},
        ),
        (
            {"type": "map", "values": "float"},
            {"type": "map", "keyType": "string", "valueType": "float", "valueContainsNull": False},
        ),
        (
            {"type": "record", "name": "n", "fields": [{"name": "x", "type": "double"}]},
            {"type": "struct", "fields": [{"name": "x", "type": "double", "nullable": False, "metadata": {}}]},
        ),
        (["int", "long"], "long"),
    ],
)
def test_types(avro: Any, spark: Any) -> None:
    for given, nullable in ((avro, False), (["null", *(avro if isinstance(avro, list) else [avro])], True)):
        (column,) = fields(spark_properties(schema(("c", given)), [], meta_columns=False))
        assert (column["type"], column["nullable"]) == (spark, nullable)


def test_keys_are_last_and_hudis_columns_first() -> None:
    found = spark_properties(schema(("Day", "int"), ("id", "int")), ["day", "hr"], meta_columns=True)
    assert [each["name"] for each in fields(found)][-4:] == ["_hoodie_file_name", "id", "Day", "hr"]
    assert [found[f"{SCHEMA}.partCol.{number}"] for number in range(int(found[f"{SCHEMA}.numPartCols"]))] == [
        "Day",
        "hr",
    ]


def test_long_ones_are_in_parts() -> None:
    found = spark_properties(schema(*((f"column_{number}", "string") for number in range(100))), [], meta_columns=False)
    assert int(found[f"{SCHEMA}.numParts"]) > 1
    assert all(len(value) <= MAX_PROPERTY for value in found.values())
    assert len(fields(found)) == 100


@pytest.mark.parametrize(
    "wrong",
    [
        "5",
        '{"type": "record"}',
        '"int"',
        schema(("c", "nothing")),
        schema(("c", {"type": "record", "name": "n", "fields": [{"name": "x", "type": "n"}]})),
        '{"type": "record", "name": "r", "fields": [{"name": "a", "type": '
        + '{"type": "array", "items": ' * 60
        + '"int"'
        + "}" * 60
        + "}]}",
    ],
)
def test_what_is_no_schema(wrong: str) -> None:
    with pytest.raises(ValueError, match="schema"):
        spark_properties(wrong, [], meta_columns=False)
