"""Events in the structured JSON form of CloudEvents 1.0."""

import json
from datetime import UTC, datetime
from typing import Any

from eventbus.events import Event

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"


def body_of(event: Event, source: str, max_bytes: int) -> bytes:
    """An event in this form; `source` is CloudEvents' name for this metastore.

    A payload for which it is too long is left out: `truncated`; it can be read from the log.
    """
    body = _encoded(_cloud_event(event, source, {"payload": event.payload}))
    if len(body) > max_bytes:
        body = _encoded(_cloud_event(event, source, {"payload": None, "truncated": True}))
    return body


def subject_of(event: Event) -> str:
    """What an event is about: `catalog.database.table`, as far as it names them."""
    return ".".join(part for part in (event.catalog, event.database, event.table) if part)


def _cloud_event(event: Event, source: str, rest: dict[str, Any]) -> dict[str, Any]:
    when = datetime.fromtimestamp(event.time / 1000, UTC)
    return {
        "specversion": "1.0",
        "id": str(event.number),
        "source": source,
        "type": f"lake.metastore.{event.type}",
        "subject": subject_of(event),
        "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": {
            "number": event.number,
            "type": event.type,
            "user": event.origin.user,
            "connection": event.origin.connection,
            "catalog": event.catalog,
            "database": event.database,
            "table": event.table,
            **rest,
        },
    }


def _encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
