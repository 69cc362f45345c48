"""The streams in Redis that hold events: their names and their entries."""

import json
from collections.abc import Mapping

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lake.protocol.events.types import Event, EventType, Origin

ALL = "metastore:events"
STATE = f"{ALL}:state"
STREAMS = f"{ALL}:streams"
UNDONE = f"{ALL}:undone"
"""A hash: by group that received undone events, the last number that is still valid."""

TIMEOUT_SECONDS = 10.0


def connect(url: str) -> "redis.Redis":
    """A client that connects on first use. Raises ValueError if `url` is no Redis URL."""
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),  # callers retry by themselves
    )


def stream_of(catalog: str, database: str) -> str:
    """The name of a database's stream. With an empty database: the stream of events about the catalog."""
    return f"{ALL}:{catalog}.{database}"


def event_of(entry: Mapping[str, str]) -> Event:
    """The event in a stream's entry."""
    return Event(
        number=int(entry["number"]),
        type=EventType(entry["type"]),
        time=int(entry["time"]),
        origin=Origin(entry["user"] or None, entry["connection"] or None),
        catalog=entry["catalog"] or None,
        database=entry["database"] or None,
        table=entry["table"] or None,
        payload=json.loads(entry["payload"]),
    )


def common_of(state: Mapping[str, str], history: str) -> int | None:
    """The last number up to which a reader's events are still valid; None if all of them are.

    `state`: the hash STATE. `history`: the reader's `identity/epoch`.
    """
    identity, epoch = (history + "/").split("/")[:2]
    epochs = json.loads(state.get("epochs", "[]"))
    names = [name for name, _ in epochs]
    if identity != state.get("log") or epoch not in names:
        return 0
    return min((after for _, after in epochs[names.index(epoch) + 1 :]), default=None)
