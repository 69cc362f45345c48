"""Debezium's messages: what they say of a row, with or without the schema that JsonConverter adds."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from lake.capture.debezium.state import Follows
from lake.capture.debezium.values import (
    Field,
    Placeholder,
    as_text,
    encoded,
    encoder,
    lake_type,
    may_be_unavailable,
    parse,
)
from lake.capture.errors import CaptureError

_OPS = {"r": "read", "c": "insert", "u": "update", "d": "delete", "t": "truncate"}
_FOLLOWS = {
    **dict.fromkeys((True, "true", "first", "first_in_data_collection"), Follows.ROWS),
    "last_in_data_collection": Follows.TABLES,
}
"""By `source.snapshot`. The last row of a whole snapshot has `last`."""

_MESSAGE = "m"  # of pg_logical_emit_message
_POSTGRES = "postgresql"
_WHOLE_ROWS = frozenset(["mysql", "mariadb", "sqlserver", "db2"])
"""Connectors whose updates have all values."""

_INTEGERS = 1 << 63


class Column(NamedTuple):
    """A column as a `schema` row of the raw table describes it.

    `large`: updates may leave it out. `is_null_before`: rows that are older than the column have NULL there, since it
    may be NULL and has no default.
    """

    name: str
    type: str
    source_type: str
    key: bool
    large: bool
    is_null_before: bool


@dataclass(frozen=True)
class Event:
    """A change. `table`: with its schema, or its database where there are no schemas. Rows are JSON texts.

    `key`: the columns of the row's key, empty if the message doesn't say. `committed_at`: microseconds since 1970.
    `sent_at`: when Debezium made the message, in milliseconds since 1970; 0 if it doesn't say. `follows`: what follows
    in Debezium's output.
    """

    table: str
    op: str
    before: str | None
    after: str | None
    unchanged: list[str] | None
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    transaction_id: int | None
    committed_at: int
    sent_at: int
    follows: Follows


@dataclass(frozen=True)
class Statement:
    """A statement that changed tables. `text`: as the source ran it. `changes`: what the connector says of each table,
    by the table's name."""

    text: str
    changes: Mapping[str, Mapping[str, Any]]
    committed_at: int


def event_of(value: Any, key: Any, placeholder: Placeholder) -> Event | Statement | None:
    """The change in a message, whose value and key were read by `values.parse`.

    None for what is no change: tombstones, heartbeats, ends of transactions. Raises CaptureError for anything else.
    """
    schema, payload = _unwrapped(value)
    if payload is None:
        return None
    if not isinstance(payload, dict):
        raise CaptureError("it isn't a message of Debezium's: an object is expected")
    if "op" not in payload:
        _check_other(payload)
        return _statement(payload)
    if payload["op"] == _MESSAGE:
        return None
    op = _OPS.get(payload["op"]) if isinstance(payload["op"], str) else None
    source = payload.get("source")
    if op is None or not isinstance(source, dict):
        raise CaptureError("it isn't a message of Debezium's: op must be r, c, u, d, t or m, and source an object")
    table = _table(source)
    key_names = _key_names(key)
    before, after = _image(payload, "before"), _image(payload, "after")
    if (after is None and op in ("read", "insert", "update")) or (op == "delete" and before is None):
        raise CaptureError(
            f"{table}: the row of a change is missing; a table without a key needs REPLICA IDENTITY FULL in Postgres"
        )
    fields = _fields(schema, "after") or _fields(schema, "before")
    is_postgres = source.get("connector") == _POSTGRES
    may_leave_out = source.get("connector") not in _WHOLE_ROWS
    columns = _columns(fields, after or before or {}, key_names, may_leave_out=may_leave_out)
    unchanged = None
    if after is not None and may_leave_out:
        after = _filled(after, before, placeholder)
        unchanged = [name for name, each in after.items() if placeholder.stands_in(each)] or None
    if op == "delete" and is_postgres and before is not None and key_names:
        before = _key_alone(before, key_names)
    return Event(
        table,
        op,
        None if before is None else _row(before, fields),
        None if after is None else _row({n: v for n, v in after.items() if n not in (unchanged or ())}, fields),
        unchanged,
        columns,
        key_names,
        _transaction(source),
        _time(source, payload),
        _time(payload) // 1_000,
        _follows(source.get("snapshot")),
    )


def _unwrapped(message: Any) -> tuple[Mapping[str, Any] | None, Any]:
    """Schema and payload; a message without a schema is the payload."""
    if isinstance(message, dict) and message.keys() == {"schema", "payload"}:
        schema = message["schema"]
        return (schema if isinstance(schema, dict) else None), message["payload"]
    return None, message


def _check_other(payload: Mapping[str, Any]) -> None:
    """Raises CaptureError unless a message without `op` is one that Debezium has beside changes."""
    is_schema_change = "ddl" in payload or "tableChanges" in payload
    is_transaction = "status" in payload and "id" in payload
    if not (is_schema_change or is_transaction or payload.keys() == {"ts_ms"}):
        raise CaptureError(
            "it has no op: messages must be Debezium's own, without the transformation ExtractNewRecordState"
        )


def _statement(payload: Mapping[str, Any]) -> Statement | None:
    """The statement in a message of a connector's topic, or file, of schema changes; None in other messages."""
    text, sent, source = payload.get("ddl"), payload.get("tableChanges"), payload.get("source")
    changes = {}
    for each in sent if isinstance(sent, list) else ():
        if isinstance(each, dict) and isinstance(each.get("id"), str):
            changes[_table_of_id(each["id"])] = each
            if isinstance(each.get("previousId"), str):
                changes[_table_of_id(each["previousId"])] = each
    places = [source, payload] if isinstance(source, dict) else [payload]
    return Statement(text if isinstance(text, str) else "", changes, _time(*places)) if changes else None


def _table_of_id(text: str) -> str:
    """The name of a table, with its schema or database, in an id such as `"shop"."public"."orders"`."""
    parts = [quoted.replace('""', '"') or plain for quoted, plain in _PART_OF_ID.findall(text)]
    return ".".join(parts[-2:])


_PART_OF_ID = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def _table(source: Mapping[str, Any]) -> str:
    if source.get("connector") == "mongodb":
        raise CaptureError("messages of MongoDB's connector have no columns: they can't be captured")
    within, table = source.get("schema") or source.get("db"), source.get("table")
    if not isinstance(table, str) or not table or not isinstance(within, str):
        raise CaptureError("it isn't a message of Debezium's: source must have table, and schema or db")
    return f"{within}.{table}"


def _key_names(key: Any) -> tuple[str, ...]:
    _, payload = _unwrapped(key)
    return tuple(payload) if isinstance(payload, dict) else ()


def _image(payload: Mapping[str, Any], which: str) -> dict[str, Any] | None:
    image = payload.get(which)
    if image is not None and not isinstance(image, dict):
        raise CaptureError(f"{which} must be an object: MongoDB's and other connectors' texts can't be captured")
    return image


def _fields(schema: Mapping[str, Any] | None, which: str) -> dict[str, Field]:
    """The fields of a row's schema, by name."""
    fields = (schema or {}).get("fields")
    for each in fields if isinstance(fields, list) else ():
        if isinstance(each, dict) and each.get("field") == which and isinstance(each.get("fields"), list):
            return {str(field.get("field")): field for field in each["fields"] if isinstance(field, dict)}
    return {}


def _columns(
    fields: Mapping[str, Field], image: Mapping[str, Any], key: tuple[str, ...], *, may_leave_out: bool
) -> tuple[Column, ...]:
    """Columns with their types; without a schema they are strings, since their values may mean anything."""
    if not fields:
        return tuple(Column(name, "string", "", name in key, may_leave_out, False) for name in image)
    return tuple(
        Column(
            name,
            lake_type(each),
            _source_type(each),
            name in key,
            may_leave_out and may_be_unavailable(each),
            bool(each.get("optional")) and each.get("default") is None,
        )
        for name, each in fields.items()
    )


def _source_type(field: Field) -> str:
    """The source's own type, if the connector has `column.propagate.source.type`; else that of the schema."""
    parameters = field.get("parameters") or {}
    return str(parameters.get("__debezium.source.column.type") or field.get("name") or field.get("type"))


def _filled(after: dict[str, Any], before: Mapping[str, Any] | None, placeholder: Placeholder) -> dict[str, Any]:
    """Values that an update left alone, from the row before if that has them."""
    known, stands_in = before or {}, placeholder.stands_in
    return {
        name: known[name] if stands_in(each) and not stands_in(known.get(name, each)) else each
        for name, each in after.items()
    }


def _key_alone(before: dict[str, Any], key: tuple[str, ...]) -> dict[str, Any]:
    """Without REPLICA IDENTITY FULL a deleted row has its key alone: the other columns are null, or nought."""
    others = [each for name, each in before.items() if name not in key]
    return before if any(each not in (None, 0, "", False) for each in others) else {n: before[n] for n in key}


def _row(image: Mapping[str, Any], fields: Mapping[str, Field]) -> str:
    parts = []
    for name, value in image.items():
        field = fields.get(name)
        encode = as_text if field is None else encoder(field)
        parts.append(f"{encode_basestring(name)}:{'null' if value is None else encoded(name, value, encode)}")
    return "{" + ",".join(parts) + "}"


def _transaction(source: Mapping[str, Any]) -> int | None:
    """The number of the transaction, where the source numbers them."""
    found = source.get("txId")
    if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) < 19:
        return int(found)
    return found if isinstance(found, int) and abs(found) < _INTEGERS else None


def _time(*places: Mapping[str, Any]) -> int:
    for sent in places:
        for name, factor in (("ts_us", 1), ("ts_ms", 1_000)):
            found = sent.get(name)
            if isinstance(found, int) and abs(found * factor) < _INTEGERS:
                return found * factor
    return 0


def _follows(snapshot: Any) -> Follows:
    return _FOLLOWS.get(snapshot, Follows.CHANGES) if isinstance(snapshot, str | bool) else Follows.CHANGES


def message_of(line: bytes, placeholder: Placeholder) -> Event | Statement | None:
    """The change in a line of a file: a message's value, or an object of its `key` and `value`. Raises CaptureError."""
    read = _parsed(line)
    if isinstance(read, dict) and read.keys() == {"key", "value"}:
        return event_of(read["value"], read["key"], placeholder)
    return event_of(read, None, placeholder)


def record_of(value: bytes | None, key: bytes | None, placeholder: Placeholder) -> Event | Statement | None:
    """The change in a record of Kafka. Raises CaptureError."""
    if value is None:
        return None
    return event_of(_parsed(value), None if key is None else _parsed(key), placeholder)


def _parsed(text: bytes) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        of_avro = " (Avro? set JsonConverter)" if text.startswith(b"\0") else ""
        raise CaptureError(f"it isn't JSON{of_avro}: {error}") from None
