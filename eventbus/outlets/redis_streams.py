"""Publishes events to Redis Streams.

`metastore:events` holds all events; or `metastore:events:<catalog>.<database>` holds those of one database. The set
`metastore:events:streams` has the names of all streams. An entry's id is `<number>-0`, so that Redis rejects
duplicates. The hash `metastore:events:state` describes the streams:

- `position`, `mark`: number and mark of the last event.
- `complete_from`: from this number on the streams hold every event.
- `by_database`: 0 for one stream, 1 for a stream per database.
- `log`, `epoch`: the log's identity, and the epoch in which the streams are written.
- `epochs`: JSON; earlier epochs, each with the last number up to which its events are still valid.

The position in Redis decides, not the one in Postgres. If Redis restarts with older data, or with none, the events that
the log still has are published again. One script compares the position and adds the entries atomically, so that even a
publisher that has lost its lock leaves no gap.

If Postgres is restored from a backup, the streams have events that the log doesn't have. They are recognised by their
marks, and removed. Groups that have read them are reset and recorded in `metastore:events:undone`. Then the streams
continue in the log's new epoch.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import redis
import structlog

from eventbus.outlets.base import Diverged, LogState, Outlet, OutOfStep
from lake.protocol.events.history import History
from lake.protocol.events.in_redis import GROUPS, SEEN, group_of, keys_of
from lake.protocol.events.streams import ALL, STATE, STREAMS, UNDONE, connect, stream_of
from lake.protocol.events.types import Event

TOO_LARGE = "invalid bulk length"
"""Redis' error for a value longer than its `proto-max-bulk-len`. It then closes the connection.

Who is still sending finds a broken connection instead of the error.
"""
NEVER = timedelta(days=36_500)
_BULK_BYTES = 512 << 20  # Redis' default
_LEAST_BULK_BYTES = 1 << 20  # the lowest limit that Redis accepts
_FRAME_BYTES = 10_000  # the bytes of an entry beside its payload
_BATCH_BYTES = 32 << 20
_COUNT = 1_000
_MOST_EPOCHS = 100

_PUBLISH = """
local position = redis.call('HGET', KEYS[1], 'position')
if position ~= ARGV[1] or redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[3] then return position or '' end
for n = 3, #KEYS do
    local entry = cjson.decode(ARGV[n + 2])
    local id = table.remove(entry, 1)
    local answer = redis.pcall('XADD', KEYS[n], id, unpack(entry))
    if type(answer) == 'table' and answer.err and not string.find(answer.err, 'equal or smaller') then
        return redis.error_reply(answer.err)
    end
    redis.call('SADD', KEYS[2], KEYS[n])
end
redis.call('HSET', KEYS[1], 'position', ARGV[2], 'mark', ARGV[4])
return ARGV[1]
"""

TRUNCATED = {"version": 1, "truncated": True}
"""Replaces a payload that is too long for the streams. Readers get the payload from the log."""

log_lines = structlog.get_logger(__name__)


class OtherEvents(Exception):
    """The streams hold events of another metastore."""


class StreamOutlet(Outlet):
    """Publishes events to one stream, or to a stream per database. While Redis is down, events wait in the log."""

    name = "redis"
    batch = 100
    longest_pause = 2.0
    from_oldest = True

    def __init__(
        self, url: str, *, by_database: bool = False, max_bytes: int = 32 << 20, silence: timedelta = NEVER
    ) -> None:
        """`url`: of Redis. `by_database`: a stream per database. `max_bytes`: of one entry, whatever Redis allows.

        `silence`: a group without a reader for this long is deleted.
        """
        self._silence = silence
        self._by_database = by_database
        self._max_bytes = max_bytes
        self._room = max_bytes
        self._redis = connect(url)
        self._publish = self._redis.register_script(_PUBLISH)
        self._position = 0

    def resume(self, position: int, log: LogState) -> int:
        """Brings the streams in line with the log. Raises Diverged, OtherEvents, redis' errors."""
        self.history = log.history
        self._room = min(self._max_bytes, self._longest_value()) - _FRAME_BYTES
        state = cast(dict[str, str], self._redis.hgetall(STATE))
        found = int(state.get("position", 0))
        by_database = str(int(self._by_database))
        if state.get("log", log.history.identity) != log.history.identity or (found > log.last and "log" not in state):
            raise OtherEvents(
                f"the streams in Redis are at event {found}, but the log ends at {log.last}: they belong to another"
                f" metastore. Give this one a Redis database of its own, or delete {ALL}* if nobody needs these streams"
            )
        if state.get("by_database", by_database) != by_database:
            raise OtherEvents(f"the streams in Redis were made with another event_streams; delete {ALL}* to change it")
        if state and log.differs(found, state.get("mark")):
            common = self._common(state, log)
            if state.get("epoch") == log.history.now.name:
                raise Diverged(common)
            state = self._go_back(state, common, log)
            found = common
        if not state or found < log.trimmed:
            if state or position > log.trimmed:
                log_lines.warning("the streams in Redis lost events", complete_from=log.trimmed + 1)
            found = max(found, log.trimmed)
            new: Any = {
                "position": found,
                "complete_from": found + 1,
                "by_database": by_database,
                "mark": log.marks([found]).get(found, ""),
            }
            self._redis.hset(STATE, mapping=new)
        elif found < position:
            log_lines.warning("Redis forgot events, they are put into the streams again", after=found)
        if state.get("epoch") != log.history.now.name:
            self._redis.hset(STATE, mapping=_epoch(state, found, log.history))
        self._position = found
        return found

    def deliver(self, events: Sequence[Event]) -> None:
        """Raises OutOfStep, redis' errors."""
        some: list[tuple[Event, str]] = []
        size = 0
        for event in events:
            entry = self._encoded(event)
            if some and size + len(entry) > _BATCH_BYTES:
                self._add(some)
                some, size = [], 0
            some.append((event, entry))
            size += len(entry)
        self._add(some)

    def _add(self, entries: Sequence[tuple[Event, str]]) -> None:
        assert self.history is not None
        last = entries[-1][0]
        try:
            answer = self._publish(
                keys=[STATE, STREAMS, *(self._stream(event) for event, _ in entries)],
                args=[
                    *(self._position, last.number, self.history.now.name, last.mark or ""),
                    *(entry for _, entry in entries),
                ],
            )
        except redis.RedisError as error:
            if self._refused(error, max(len(entry) for _, entry in entries)):
                # Its limit can't be asked for, or was lowered meanwhile: the next attempt sends less.
                self._room = min(self._room, max(self._room // 2, _LEAST_BULK_BYTES - _FRAME_BYTES))
            raise
        if answer != str(self._position):
            raise OutOfStep(f"the streams are at {answer or 'nothing'} instead of {self._position}")
        self._position = last.number

    def _refused(self, error: redis.RedisError, longest: int) -> bool:
        """Whether Redis doesn't take an entry of `longest` bytes, although it answers."""
        if TOO_LARGE in str(error):
            return True
        if longest < _LEAST_BULK_BYTES - _FRAME_BYTES or isinstance(error, redis.ResponseError):
            return False
        try:
            return bool(self._redis.ping())
        except redis.RedisError:
            return False

    def _encoded(self, event: Event) -> str:
        """An entry in JSON: the id, then fields and values alternately. A payload that is too long is replaced."""
        encoded = json.dumps([f"{event.number}-0", *_entry(event, event.payload)])
        if len(encoded) > self._room:
            encoded = json.dumps([f"{event.number}-0", *_entry(event, TRUNCATED)])
        return encoded

    def _longest_value(self) -> int:
        try:
            found: Any = self._redis.config_get("proto-max-bulk-len")
            return int(found.get("proto-max-bulk-len", _BULK_BYTES))
        except redis.ResponseError:  # the user may not read the configuration
            return _BULK_BYTES

    def _common(self, state: Mapping[str, str], log: LogState) -> int:
        """The last number whose event is surely the same in the streams and in the log."""
        common = max(int(state["complete_from"]) - 1, log.trimmed)
        for stream in cast(set[str], self._redis.smembers(STREAMS)):
            before = "+"
            while entries := cast(Any, self._redis.xrevrange(stream, before, f"{common + 1}-0", count=_COUNT)):
                marks = {int(id.partition("-")[0]): entry.get("mark") for id, entry in entries}
                known = log.marks(list(marks))
                if same := [number for number, mark in marks.items() if mark and known.get(number) == mark]:
                    common = max(same)
                    break
                before = f"({entries[-1][0]}"
        return min(common, log.last)

    def _go_back(self, state: Mapping[str, str], common: int, log: LogState) -> dict[str, str]:
        """Removes entries that the log doesn't have, and resets groups that have read them. Returns the new state."""
        for stream in cast(set[str], self._redis.smembers(STREAMS)):
            for group in cast(Any, self._redis.xinfo_groups(stream)):
                if int(group["last-delivered-id"].partition("-")[0]) > common:
                    self._redis.hset(UNDONE, group_of(group["name"]), str(common))
                    self._redis.xgroup_setid(stream, group["name"], f"{common}-0")
                self._take_back(stream, group["name"], common)
            while entries := cast(Any, self._redis.xrange(stream, f"{common + 1}-0", "+", count=_COUNT)):
                self._redis.xdel(stream, *(id for id, _ in entries))
            self._redis.execute_command("XSETID", stream, f"{common}-0")  # type: ignore[no-untyped-call]
        log_lines.error(
            "the event log was restored from a backup: the streams in Redis go back with it",
            after=common,
            undone=int(state["position"]) - common,
        )
        complete = min(int(state["complete_from"]), common + 1)
        new: Any = {
            **_epoch(state, common, log.history),
            "position": str(common),
            "mark": log.marks([common]).get(common, ""),
            "complete_from": str(max(complete, log.trimmed + 1)),
        }
        self._redis.hset(STATE, mapping=new)  # last: a crash before this repeats all steps
        return {**state, **new}

    def _take_back(self, stream: str, group: str, common: int) -> None:
        """Acknowledges a group's pending entries after `common`: their numbers will be given to other events."""
        while pending := cast(Any, self._redis.xpending_range(stream, group, f"{common + 1}-0", "+", _COUNT)):
            self._redis.xack(stream, group, *(each["message_id"] for each in pending))

    def look(self) -> None:
        """Raises OutOfStep if Redis restarted with older data, and redis' errors."""
        found = cast(str | None, self._redis.hget(STATE, "position"))
        if found != str(self._position):
            raise OutOfStep(f"the streams are at {found or 'nothing'} instead of {self._position}")

    def forget(self, trimmed: int) -> None:
        """Removes the entries of events that were trimmed from the log."""
        if trimmed + 1 <= int(cast(str | None, self._redis.hget(STATE, "complete_from")) or 0):
            return
        self._redis.hset(STATE, "complete_from", trimmed + 1)
        for stream in cast(set[str], self._redis.smembers(STREAMS)):
            self._redis.xtrim(stream, minid=f"{trimmed + 1}-0", approximate=False)
        self._forget_groups()

    def _forget_groups(self) -> None:
        """Deletes groups without readers: a group's state takes memory in each stream."""
        now = int(cast(Any, self._redis.time())[0])
        seen = cast(dict[str, str], self._redis.hgetall(SEEN))
        for group in cast(list[str], self._redis.hkeys(GROUPS)):
            if group not in seen:
                self._redis.hsetnx(SEEN, group, str(now))  # an older client's
            elif int(seen[group]) < now - self._silence.total_seconds():
                self._forget_group(group)

    def _forget_group(self, group: str) -> None:
        for stream in cast(set[str], self._redis.smembers(STREAMS)):
            for each in cast(Any, self._redis.xinfo_groups(stream)):
                if group_of(each["name"]) == group:
                    self._redis.xgroup_destroy(stream, each["name"])
        for place in (GROUPS, UNDONE, SEEN):
            self._redis.hdel(place, group)
        self._redis.delete(*keys_of(group))
        log_lines.warning("an unused group in Redis was deleted", group=group)

    def close(self) -> None:
        self._redis.close()

    def _stream(self, event: Event) -> str:
        if not self._by_database:
            return ALL
        return stream_of(event.catalog or "", event.database or "")


def _epoch(state: Mapping[str, str], after: int, history: History) -> Any:
    """The fields of STATE for the log's current epoch. Events of earlier epochs are valid up to number `after`."""
    earlier = json.loads(state.get("epochs", "[]"))
    epochs = json.dumps([*earlier, [history.now.name, after]][-_MOST_EPOCHS:])
    return {"log": history.identity, "epoch": history.now.name, "epochs": epochs}


def _entry(event: Event, payload: Mapping[str, Any]) -> list[str]:
    """Fields and values alternately; "" stands for None."""
    fields = {
        "number": str(event.number),
        "type": event.type.value,
        "time": str(event.time),
        "user": event.origin.user or "",
        "connection": event.origin.connection or "",
        "catalog": event.catalog or "",
        "database": event.database or "",
        "table": event.table or "",
        "payload": json.dumps(payload, separators=(",", ":")),
        "mark": event.mark or "",
    }
    return [part for pair in fields.items() for part in pair]
