"""Events in the structured JSON form of CloudEvents 1.0."""

import json
from datetime import UTC, datetime
from typing import Any

from lake.protocol.events.history import History
from lake.protocol.events.types import Event

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"


def body_of(event: Event, source: str, max_bytes: int, history: History | None) -> bytes:
    """Encodes an event as a CloudEvent. `source`: the CloudEvents `source` of this metastore.

    After a restore of the log numbers are given again. From then on the CloudEvents `id` includes the epoch. If the
    result is longer than `max_bytes`, the payload is left out and `truncated` is true; readers get it from the log.
    """
    body = _encoded(_cloud_event(event, source, history, {"payload": event.payload}))
    if len(body) > max_bytes:
        body = _encoded(_cloud_event(event, source, history, {"payload": None, "truncated": True}))
    return body


def subject_of(event: Event) -> str:
    """The CloudEvents `subject`: `catalog.database.table`, or the part of it that the event has."""
    return ".".join(part for part in (event.catalog, event.database, event.table) if part)


def _cloud_event(event: Event, source: str, history: History | None, rest: dict[str, Any]) -> dict[str, Any]:
    epoch = history.now if history is not None else None
    when = datetime.fromtimestamp(event.time / 1000, UTC)
    return {
        "specversion": "1.0",
        "id": f"{epoch.name}-{event.number}" if epoch is not None and epoch.id else str(event.number),
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
            "epoch": epoch.name if epoch is not None else None,
            **rest,
        },
    }


def _encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
