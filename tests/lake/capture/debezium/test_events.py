"""What Debezium's messages say."""

import base64
import json
from typing import Any

import pytest

from lake.capture.debezium.events import Event, message_of, record_of
from lake.capture.debezium.values import UNAVAILABLE, Placeholder, encoder, lake_type, parse
from lake.capture.errors import CaptureError
from tests.lake.capture.debezium.messages import ID, NOTE, change, envelope, order


def _decimal(unscaled: int, size: int = 16) -> str:
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


DEBEZIUM, CONNECT = "io.debezium", "org.apache.kafka.connect.data"
DECIMAL = {"type": "bytes", "name": f"{CONNECT}.Decimal"}
DECIMAL_12_2 = {**DECIMAL, "parameters": {"scale": "2", "connect.decimal.precision": "12"}}
DECIMAL_65_30 = {**DECIMAL, "parameters": {"scale": "30", "connect.decimal.precision": "65"}}
VARIABLE = {"type": "struct", "name": f"{DEBEZIUM}.data.VariableScaleDecimal"}
BITS = {"type": "bytes", "name": f"{DEBEZIUM}.data.Bits", "parameters": {"length": "10"}}
DATE = {"type": "int32", "name": f"{DEBEZIUM}.time.Date"}
MICROS = {"type": "int64", "name": f"{DEBEZIUM}.time.MicroTimestamp"}
NANOS = {"type": "int64", "name": f"{DEBEZIUM}.time.NanoTimestamp"}
ZONED = {"type": "string", "name": f"{DEBEZIUM}.time.ZonedTimestamp"}
TYPES: list[tuple[dict[str, Any], str, str, str]] = [
    ({"type": "boolean"}, "true", "boolean", "true"),
    ({"type": "int16"}, "255", "smallint", "255"),
    ({"type": "int64"}, "9223372036854775807", "bigint", "9223372036854775807"),
    ({"type": "double"}, "0.1000000000000000055", "double", "0.1000000000000000055"),
    ({"type": "double"}, '"NaN"', "double", '"NaN"'),
    ({"type": "float"}, "NaN", "float", '"NaN"'),
    ({"type": "string"}, '"ä\\u0000\\""', "string", '"ä\\u0000\\""'),
    ({"type": "string", "name": f"{DEBEZIUM}.data.Json"}, '"{\\"a\\": 1}"', "string", '"{\\"a\\": 1}"'),
    ({"type": "string", "name": f"{DEBEZIUM}.data.Enum"}, '"large"', "string", '"large"'),
    ({"type": "string", "name": f"{DEBEZIUM}.data.EnumSet"}, '"a,c"', "string", '"a,c"'),
    ({"type": "int32", "name": f"{DEBEZIUM}.time.Year"}, "2024", "int", "2024"),
    ({"type": "bytes"}, '"AP8="', "binary", '"\\\\x00ff"'),
    (BITS, '"AwI="', "string", '"1000000011"'),
    (DECIMAL_12_2, f'"{_decimal(-12345)}"', "decimal(12,2)", "-123.45"),
    (DECIMAL_12_2, f'"{_decimal(7, 1)}"', "decimal(12,2)", "0.07"),
    (DECIMAL_12_2, "123.450", "decimal(12,2)", "123.450"),
    (DECIMAL_65_30, f'"{_decimal(10**64 + 1, 32)}"', "string", f'"1{"0" * 34}.{"0" * 29}1"'),
    (VARIABLE, f'{{"scale": 3, "value": "{_decimal(1)}"}}', "string", '"0.001"'),
    ({"type": "string"}, '"123.45"', "string", '"123.45"'),
    (DATE, "19723", "date", '"2024-01-01"'),
    ({"type": "int32", "name": f"{CONNECT}.Date"}, "-1", "date", '"1969-12-31"'),
    (DATE, "2147483647", "date", '"2147483647"'),
    ({"type": "int64", "name": f"{DEBEZIUM}.time.Timestamp"}, "-1", "timestamp_ntz", '"1969-12-31 23:59:59.999"'),
    (MICROS, "1700000000000001", "timestamp_ntz", '"2023-11-14 22:13:20.000001"'),
    (NANOS, "1000000001", "timestamp_ntz", '"1970-01-01 00:00:01.000000001"'),
    ({"type": "int64", "name": f"{CONNECT}.Timestamp"}, "1500", "timestamp_ntz", '"1970-01-01 00:00:01.5"'),
    (ZONED, '"2024-01-01T01:00:00.123456700+01:00"', "timestamp", '"2024-01-01 00:00:00.1234567+00"'),
    (ZONED, '"2024-01-01T00:00:00Z"', "timestamp", '"2024-01-01 00:00:00+00"'),
    ({"type": "int64", "name": f"{DEBEZIUM}.time.MicroTime"}, "-3020399000000", "string", '"-838:59:59"'),
    ({"type": "int32", "name": f"{DEBEZIUM}.time.Time"}, "1001", "string", '"00:00:01.001"'),
    ({"type": "array"}, "[1, null, 2.50]", "string", '"[1,null,2.50]"'),
]  # fmt: skip


@pytest.mark.parametrize(("field", "sent", "type", "kept"), TYPES)
def test_values(field: dict[str, Any], sent: str, type: str, kept: str) -> None:
    assert lake_type(field) == type
    assert encoder(field)(parse(sent)) == kept
    json.loads(kept)


def event(message: Any) -> Event:
    found = message_of(json.dumps(message).encode(), Placeholder())
    assert found is not None
    return found


@pytest.mark.parametrize(("op", "expected"), [("r", "read"), ("c", "insert"), ("u", "update"), ("d", "delete")])
def test_changes(op: str, expected: str) -> None:
    found = event(order(op, 5, "x"))
    assert (found.table, found.op, found.key) == ("public.orders", expected, ("id",))
    assert found.before == ('{"id":5}' if op == "d" else None)
    assert found.after == (None if op == "d" else '{"id":5,"note":"x"}')
    assert [(each.name, each.type, each.key, each.large) for each in found.columns] == [
        ("id", "int", True, False),
        ("note", "string", False, True),
    ]
    assert (found.transaction_id, found.committed_at) == (77, 1_700_000_000_000_000)


def test_a_message_without_its_schema() -> None:
    found = event(change("u", {"id": 1, "x": 1.0}, {"id": 1, "x": 1.50}, connector="mysql", schema=None, txId=None))
    assert (found.table, found.before, found.transaction_id) == ("shop.orders", '{"id":1,"x":"1.0"}', None)
    assert {each.type for each in found.columns} == {"string"}
    assert found.key == ()


def test_truncations() -> None:
    found = event(change("t", None, None))
    assert (found.op, found.before, found.after, found.columns) == ("truncate", None, None, ())


def test_values_that_updates_leave_alone() -> None:
    message = envelope([ID, NOTE], change("u", None, {"id": 1, "note": UNAVAILABLE}))
    assert (event(message).after, event(message).unchanged) == ('{"id":1}', ["note"])
    message = envelope([ID, NOTE], change("u", {"id": 1, "note": "long"}, {"id": 1, "note": UNAVAILABLE}))
    assert (event(message).after, event(message).unchanged) == ('{"id":1,"note":"long"}', None)
    message = envelope([ID, NOTE], change("u", None, {"id": 1, "note": UNAVAILABLE}, connector="mysql"))
    assert event(message).unchanged is None, "MySQL's updates have all values"
    message = envelope([ID, NOTE], change("u", {"id": 1, "note": UNAVAILABLE}, {"id": 1, "note": UNAVAILABLE}))
    message["payload"]["source"]["connector"] = "oracle"
    assert event(message).unchanged == ["note"]


@pytest.mark.parametrize("text", [UNAVAILABLE, "nicht verfügbar"])
def test_forms_of_a_value_that_an_update_leaves_alone(text: str) -> None:
    sent = text.encode()
    in_base64 = base64.b64encode(sent).decode()
    bytes_of_java = [each if each < 128 else each - 256 for each in sent]
    for value in (text, in_base64, sent.hex(), [text], [in_base64], bytes_of_java, {text: text}):
        assert Placeholder(text).stands_in(value), value
    assert Placeholder(text).stands_in({"scale": 2, "value": in_base64})
    for value in (None, 1, "", "a", [], [1], {}, [text, "a"], f"{text}.", {"scale": 2, "value": "AQ=="}):
        assert not Placeholder(text).stands_in(value), value


def test_what_is_no_change() -> None:
    assert record_of(None, b'{"id": 1}', Placeholder()) is None
    for each in (
        None,
        {"ts_ms": 1},
        {"status": "END", "id": "571:53195829", "event_count": 2},
        {"source": {}, "databaseName": "shop", "ddl": "ALTER TABLE t ADD x int", "tableChanges": []},
        change("m", None, None),
        {"schema": None, "payload": None},
    ):
        assert message_of(json.dumps(each).encode(), Placeholder()) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nothing", "isn't JSON"),
        (b"\0\0\0\0\1abc", "set JsonConverter"),
        (b"[" * 100_000, "isn't JSON"),
        (b"[1]", "an object is expected"),
        (b'{"id": 1, "note": "x"}', "ExtractNewRecordState"),
        (b'{"op": "x", "source": {}}', "op must be"),
        (b'{"op": ["c"], "source": {}}', "op must be"),
        (b'{"op": "c", "source": {}}', "source must have table"),
        (b'{"op": "c", "source": {"connector": "mongodb"}}', "MongoDB"),
        (b'{"op": "c", "source": {"db": "a", "table": "t"}, "after": "{}"}', "after must be an object"),
        (b'{"op": "d", "source": {"db": "a", "table": "t"}}', "REPLICA IDENTITY FULL"),
        (json.dumps(envelope([DECIMAL_12_2 | {"field": "x"}], change("c", None, {"x": "?"}))).encode(), "column x"),
        (json.dumps(envelope([DECIMAL_12_2 | {"field": "x"}], change("c", None, {"x": 1}))).encode(), "column x"),
        (json.dumps(change("c", None, {"x": "DEEP"})).replace('"DEEP"', "[" * 700 + "]" * 700).encode(), "too deep"),
        (
            json.dumps(
                envelope([VARIABLE | {"field": "x"}], change("c", None, {"x": {"scale": -10**9, "value": "AQ=="}}))
            ).encode(),
            "out of bounds",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_captured(line: bytes, said: str) -> None:
    with pytest.raises(CaptureError, match=said):
        message_of(line, Placeholder())
