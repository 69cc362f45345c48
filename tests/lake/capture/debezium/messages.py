"""Debezium's messages, as its connectors write them."""

import json
from typing import Any

ID = {"field": "id", "type": "int32", "optional": False}
NOTE = {"field": "note", "type": "string", "optional": True}


def envelope(fields: list[dict[str, Any]], payload: dict[str, Any]) -> dict[str, Any]:
    """A message with the schema that JsonConverter adds."""
    images = [{"type": "struct", "field": each, "fields": fields, "optional": True} for each in ("before", "after")]
    return {"schema": {"type": "struct", "name": "shop.Envelope", "fields": images}, "payload": payload}


def change(op: str, before: Any, after: Any, table: str = "orders", **source: Any) -> dict[str, Any]:
    """A payload of Postgres's connector."""
    about = {"connector": "postgresql", "db": "shop", "schema": "public", "table": table, "ts_ms": 1_700_000_000_000}
    return {"before": before, "after": after, "source": {**about, "txId": 77, **source}, "op": op, "ts_ms": 1}


def order(op: str, id: int, note: str | None = None) -> dict[str, Any]:
    """A change of an order, with its schema and its key."""
    before = {"id": id, "note": None} if op == "d" else None
    after = None if op == "d" else {"id": id, "note": note}
    return {"key": {"id": id}, "value": envelope([ID, NOTE], change(op, before, after))}


def line(message: Any) -> str:
    return json.dumps(message) + "\n"
