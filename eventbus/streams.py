"""Events in Redis Streams.

`metastore:events` holds all events, or `metastore:events:<catalog>.<database>` those of one database. An entry's id is
`<number>-0`, so that Redis itself refuses a duplicate. `metastore:events:state` is a hash that says how far the streams
have come (`position`), from which number on they hold every event (`complete_from`) and which streams there are
(`by_database`: 0 or 1). The names of the streams are the set `metastore:events:streams`.

What Redis says of its position counts, not what Postgres says: when Redis comes back from a disk that is behind, or
empty, events that the log still keeps are put into the streams anew. A script compares that position and adds entries
in one step; so no publisher, not even one that lost its turn, leaves a gap.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import redis
import structlog

from eventbus.events import Event, EventType, Origin
from eventbus.outlets import Outlet, OutOfStep

ALL = "metastore:events"
STATE = f"{ALL}:state"
STREAMS = f"{ALL}:streams"
TIMEOUT_SECONDS = 10.0

_PUBLISH = """
local position = redis.call('HGET', KEYS[1], 'position')
if position ~= ARGV[1] then return position or '' end
for n = 3, #KEYS do
    local entry = cjson.decode(ARGV[n])
    local id = table.remove(entry, 1)
    local answer = redis.pcall('XADD', KEYS[n], id, unpack(entry))
    if type(answer) == 'table' and answer.err and not string.find(answer.err, 'equal or smaller') then
        return redis.error_reply(answer.err)
    end
    redis.call('SADD', KEYS[2], KEYS[n])
end
redis.call('HSET', KEYS[1], 'position', ARGV[2])
return ARGV[1]
"""

log = structlog.get_logger(__name__)


class OtherEvents(Exception):
    """The streams hold the events of another metastore."""


class StreamOutlet(Outlet):
    """Puts events into one stream, or into one for each database. While Redis is down they wait in the log."""

    name = "redis"
    batch = 100
    longest_pause = 2.0
    from_oldest = True

    def __init__(self, url: str, *, by_database: bool = False) -> None:
        self._by_database = by_database
        self._redis = connect(url)
        self._publish = self._redis.register_script(_PUBLISH)
        self._position = 0

    def resume(self, position: int, last: int, trimmed: int) -> int:
        """Raises OtherEvents, redis' errors."""
        state = cast(dict[str, str], self._redis.hgetall(STATE))
        found = int(state.get("position", 0))
        by_database = str(int(self._by_database))
        if found > last:
            raise OtherEvents(
                f"the streams in Redis stand at event {found}, the log ends at {last}: they are not of it"
            )
        if state.get("by_database", by_database) != by_database:
            raise OtherEvents(f"the streams in Redis were made with another event_streams; delete {ALL}* to change it")
        if not state or found < trimmed:
            if state or position > trimmed:
                log.warning("the streams in Redis lost events", complete_from=trimmed + 1)
            found = max(found, trimmed)
            new: Any = {"position": found, "complete_from": found + 1, "by_database": by_database}
            self._redis.hset(STATE, mapping=new)
        elif found < position:
            log.warning("Redis forgot events, they are put into the streams again", after=found)
        self._position = found
        return found

    def deliver(self, events: Sequence[Event]) -> None:
        """Raises OutOfStep, redis' errors."""
        upto = events[-1].number
        answer = self._publish(
            keys=[STATE, STREAMS, *(self._stream(event) for event in events)],
            args=[self._position, upto, *(json.dumps([f"{event.number}-0", *_entry(event)]) for event in events)],
        )
        if answer != str(self._position):
            raise OutOfStep(f"the streams stand at {answer or 'nothing'} instead of {self._position}")
        self._position = upto

    def look(self) -> None:
        """Raises OutOfStep if Redis came back with less than it had, redis' errors."""
        found = cast(str | None, self._redis.hget(STATE, "position"))
        if found != str(self._position):
            raise OutOfStep(f"the streams stand at {found or 'nothing'} instead of {self._position}")

    def forget(self, trimmed: int) -> None:
        """Removes the entries of events that the log no longer has."""
        if trimmed + 1 <= int(cast(str | None, self._redis.hget(STATE, "complete_from")) or 0):
            return
        self._redis.hset(STATE, "complete_from", trimmed + 1)
        for stream in cast(set[str], self._redis.smembers(STREAMS)):
            self._redis.xtrim(stream, minid=f"{trimmed + 1}-0", approximate=False)

    def close(self) -> None:
        self._redis.close()

    def _stream(self, event: Event) -> str:
        if not self._by_database:
            return ALL
        return stream_of(event.catalog or "", event.database or "")


def connect(url: str) -> "redis.Redis":
    """Connects on first use. Raises ValueError for what is no URL of Redis."""
    return redis.Redis.from_url(
        url, decode_responses=True, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS
    )


def stream_of(catalog: str, database: str) -> str:
    """The stream of a database; that of no database holds what happens to the catalog."""
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


def _entry(event: Event) -> list[str]:
    """Fields and values by turns; "" stands for what is not there."""
    fields = {
        "number": str(event.number),
        "type": event.type.value,
        "time": str(event.time),
        "user": event.origin.user or "",
        "connection": event.origin.connection or "",
        "catalog": event.catalog or "",
        "database": event.database or "",
        "table": event.table or "",
        "payload": json.dumps(event.payload, separators=(",", ":")),
    }
    return [part for pair in fields.items() for part in pair]
