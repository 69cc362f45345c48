"""Following events in Redis Streams.

Consumer groups of Redis hand entries to whoever asks first, which would mix up the order of a table's events. So the
tables are divided into shards, each a consumer group of its own (`<group>#<shard>`), and the members of a group take
leases on shards: a member reads, and acknowledges, for the shards that it holds. When a member dies its leases end,
and who takes them claims what it has not acknowledged. `metastore:events:groups` is a hash that says after which event
each group began.
"""

import contextlib
import threading
import time
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

import redis
import structlog

from eventbus.events import Event
from eventbus.filters import Filter
from eventbus.streams import ALL, STATE, STREAMS, connect, event_of
from eventbus.subscription import Start, Subscription
from metastore.wire.lake import EventsGone

GROUPS = f"{ALL}:groups"
SHARDS = 8
LEASE_SECONDS = 10.0
"""A member that gives no sign of life for so long is taken for dead."""
_COUNT = 200
_BLOCK_SECONDS = 2.0  # less than the connection's time limit
_RETRY_SECONDS = 0.5

_LEASES = """
local function mine(key) return redis.call('GET', key) == ARGV[1] end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local busy, held = {}, {}
for n = 4, #ARGV do busy[tonumber(ARGV[n])] = true end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
for n = 2, #KEYS do
    if mine(KEYS[n]) then
        redis.call('PEXPIRE', KEYS[n], ARGV[2])
        table.insert(held, n)
    end
end
if ARGV[3] == 'renew' then return #held end
local share = math.ceil((#KEYS - 1) / redis.call('ZCARD', KEYS[1]))
local kept = {}
for _, n in ipairs(held) do
    if busy[n - 2] then table.insert(kept, n - 2) end
end
for _, n in ipairs(held) do
    if not busy[n - 2] then
        if #kept < share then table.insert(kept, n - 2) else redis.call('DEL', KEYS[n]) end
    end
end
for n = 2, #KEYS do
    if #kept < share and redis.call('SET', KEYS[n], ARGV[1], 'PX', ARGV[2], 'NX') then
        table.insert(kept, n - 2)
    end
end
return kept
"""
_RELEASE = """
redis.call('ZREM', KEYS[1], ARGV[1])
for n = 2, #KEYS do
    if redis.call('GET', KEYS[n]) == ARGV[1] then redis.call('DEL', KEYS[n]) end
end
"""

log = structlog.get_logger(__name__)

_Entry = tuple[str, Mapping[str, str] | None]


class _HandedOut(NamedTuple):
    stream: str
    shard: int
    id: str


class StreamSubscription(Subscription):
    """Redis may go away and come back. A group that it forgot meanwhile is begun anew with the oldest event."""

    def __init__(self, url: str, tables: Sequence[str], types: Sequence[str], group: str | None, start: Start) -> None:
        """See `eventbus.subscribe`."""
        super().__init__()
        self._wanted = Filter.parse(tables, types)
        self._group, self._start = group, start
        self._redis = connect(url)
        self._first: int | None = None  # the number after which this subscription began
        self._seen: dict[str, int] = {}  # without a group: how far each stream was read,
        self._upto = 0  # and after which event come all those of streams that were not there yet
        self._joined = False
        self._known: set[str] = set()  # streams in which the group was made
        self._lost = False  # events of the group were removed before it read them
        self._member = uuid.uuid4().hex
        self._held: set[int] = set()
        self._handed_out: dict[int, _HandedOut] = {}
        self._taken: dict[int, _HandedOut] = {}  # will be handed out unless something fails
        keys = [f"{GROUPS}:{group}:members", *(f"{GROUPS}:{group}:{shard}" for shard in range(SHARDS))]
        self._lease_keys = keys
        self._leases = self._redis.register_script(_LEASES)
        self._release = self._redis.register_script(_RELEASE)
        self._closed = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="leases", daemon=True)
        if group is not None:
            self._renewing.start()

    def acknowledge(self, event: Event | int | None = None) -> None:
        """Of the events that this member was given. After EventsGone: a number lets the whole group go on after it."""
        if self._group is None:
            raise ValueError("acknowledging needs a group: subscribe(..., group=...)")
        if self._lost and isinstance(event, int):
            self._go_on_after(event)
        upto = event.number if isinstance(event, Event) else event if event is not None else self.position
        done = [number for number in self._handed_out if upto is not None and number <= upto]
        if not done:
            return
        while True:
            try:
                with self._redis.pipeline(transaction=False) as pipeline:
                    for number in done:
                        place = self._handed_out[number]
                        pipeline.xack(place.stream, self._shard_group(place.shard), place.id)
                    pipeline.execute()
                break
            except (redis.ConnectionError, redis.TimeoutError) as error:
                self._wait_for_redis(error)
        for number in done:
            del self._handed_out[number]

    def poll(self, wait: float = 0.0) -> list[Event]:
        deadline = time.monotonic() + wait
        while True:
            left = deadline - time.monotonic()
            try:
                found = self._look(max(0.0, min(left, _BLOCK_SECONDS)))
            except (redis.ConnectionError, redis.TimeoutError) as error:
                self._held.clear()  # what was taken and not handed out is claimed again
                self._wait_for_redis(error)
                continue
            except EventsGone:
                self._held.clear()
                raise
            except redis.ResponseError as error:
                if "NOGROUP" not in str(error) and "no such key" not in str(error):
                    raise
                log.warning("Redis forgot a group", group=self._group)
                self._known.clear()
                self._held.clear()
                continue
            if found:
                self._position = max(self._position or 0, *(event.number for event in found))
            if found or left <= 0:
                return found

    def close(self) -> None:
        self._closed.set()
        if self._group is not None:
            self._renewing.join()
            with contextlib.suppress(redis.RedisError):
                self._release(keys=self._lease_keys, args=[self._member])
        self._redis.close()

    # -- both ways -------------------------------------------------------------------------------------------

    def _look(self, wait: float) -> list[Event]:
        """What there is now, or comes within some seconds."""
        state = cast(dict[str, str], self._redis.hgetall(STATE))
        if not state:  # nothing was ever published
            time.sleep(min(wait, _RETRY_SECONDS))
            return []
        streams, position = self._streams(state), int(state["position"])
        if self._first is None:
            self._first = self._upto = self._position = self._first_position(state, streams)
        complete_from = int(state["complete_from"])
        look = self._read if self._group is None else self._read_as_member
        found = look(streams, position, complete_from)
        if not found and wait > 0:
            if streams:
                self._redis.xread(dict.fromkeys(streams, f"{position}-0"), count=1, block=max(1, int(wait * 1000)))
            else:
                time.sleep(min(wait, _RETRY_SECONDS))
            found = look(streams, position, complete_from)
        return sorted(found, key=lambda event: event.number)

    def _streams(self, state: Mapping[str, str]) -> list[str]:
        if state["by_database"] == "0":
            return [ALL]
        return sorted(cast(set[str], self._redis.smembers(STREAMS)))

    def _first_position(self, state: Mapping[str, str], streams: Iterable[str]) -> int:
        """After which number a new subscription begins. Raises EventsGone."""
        oldest = int(state["complete_from"])
        if isinstance(self._start, datetime):
            since = int(self._start.timestamp() * 1000)
            first = [number for stream in streams if (number := self._first_since(stream, since)) is not None]
            return min(first) - 1 if first else int(state["position"])
        if self._start == "latest":
            return int(state["position"])
        return oldest - 1 if self._start == "earliest" else self._start

    def _first_since(self, stream: str, since: int) -> int | None:
        after = "-"
        while entries := cast(list[_Entry], self._redis.xrange(stream, after, "+", count=1000)):
            for id, entry in entries:
                if entry is not None and int(entry["time"]) >= since:
                    return _number(id)
            after = f"({entries[-1][0]}"
        return None

    def _wait_for_redis(self, error: Exception) -> None:
        log.warning("Redis doesn't answer", error=str(error), retry_seconds=_RETRY_SECONDS)
        time.sleep(_RETRY_SECONDS)

    def _wants(self, entry: Mapping[str, str]) -> bool:
        return self._wanted.lets_pass(
            entry["type"], entry["catalog"] or None, entry["database"] or None, entry["table"] or None
        )

    # -- without a group -------------------------------------------------------------------------------------

    def _read(self, streams: Sequence[str], position: int, complete_from: int) -> list[Event]:
        seen = {stream: self._seen.get(stream, self._upto) for stream in streams}
        if min(seen.values(), default=self._upto) + 1 < complete_from:
            raise _gone(min(seen.values(), default=self._upto), complete_from)
        if not seen:
            return []
        answer: Any = self._redis.xread({stream: f"{number}-0" for stream, number in seen.items()}, count=_COUNT)
        found, full = [], set()
        for stream, entries in answer:
            seen[stream] = _number(entries[-1][0])
            if len(entries) == _COUNT:
                full.add(stream)
            found += [event_of(entry) for _, entry in entries if self._wants(entry)]
        # A stream without news is read up to where all of them stand.
        self._seen = {stream: number if stream in full else max(number, position) for stream, number in seen.items()}
        self._upto = max(self._upto, position)
        if not full:
            self._position = max(self._position or 0, position)
        return found

    # -- as a member of a group ------------------------------------------------------------------------------

    def _read_as_member(self, streams: Sequence[str], position: int, complete_from: int) -> list[Event]:
        self._taken = {}
        self._join(streams, complete_from)
        busy = {place.shard for place in self._handed_out.values()}
        held = set(
            cast(
                list[int],
                self._leases(keys=self._lease_keys, args=[self._member, int(LEASE_SECONDS * 1000), "take", *busy]),
            )
        )
        found: list[Event] = []
        for shard in sorted(held):
            for stream in streams:
                if shard not in self._held:
                    self._check_complete(stream, shard, complete_from)
                    found += self._claim(stream, shard)
                found += self._read_shard(stream, shard, position)
        self._held = held
        self._handed_out.update(self._taken)
        return found

    def _join(self, streams: Sequence[str], complete_from: int) -> None:
        """Makes the group in streams where it isn't yet."""
        assert self._group is not None
        if self._known.issuperset(streams):
            return
        start = complete_from - 1 if self._joined else self._first
        self._redis.hsetnx(GROUPS, self._group, str(start))
        begin = cast(str, self._redis.hget(GROUPS, self._group)) + "-0"
        for stream in streams:
            if stream not in self._known:
                for shard in range(SHARDS):
                    try:
                        self._redis.xgroup_create(stream, self._shard_group(shard), begin, mkstream=True)
                    except redis.ResponseError as error:
                        if "BUSYGROUP" not in str(error):
                            raise
                self._known.add(stream)
        self._joined = True

    def _check_complete(self, stream: str, shard: int, complete_from: int) -> None:
        """Raises EventsGone if the group has not read what was removed from the stream."""
        name = self._shard_group(shard)
        groups: Any = self._redis.xinfo_groups(stream)
        for group in groups:
            if group["name"] == name:
                read = _number(group["last-delivered-id"])
                if group["pending"]:
                    pending: Any = self._redis.xpending(stream, name)
                    read = min(read, _number(pending["min"]) - 1)
                if read + 1 < complete_from:
                    self._lost = True
                    raise _gone(read, complete_from)

    def _go_on_after(self, number: int) -> None:
        for stream in self._known:
            groups: Any = self._redis.xinfo_groups(stream)
            for group in groups:
                name = group["name"]
                if name not in map(self._shard_group, range(SHARDS)):
                    continue
                pending: Any
                while pending := self._redis.xpending_range(stream, name, "-", f"{number}-0", _COUNT):
                    self._redis.xack(stream, name, *(each["message_id"] for each in pending))
                if _number(group["last-delivered-id"]) < number:
                    self._redis.xgroup_setid(stream, name, f"{number}-0")
        self._lost = False

    def _claim(self, stream: str, shard: int) -> list[Event]:
        """What was given to members, this one included, but is in nobody's hands."""
        group, found, after = self._shard_group(shard), [], "0-0"
        while True:
            answer: Any = self._redis.xautoclaim(stream, group, self._member, 0, after, count=_COUNT)
            after, entries = answer[0], [each for each in answer[1] if each[0] is not None]
            found += self._sorted_out(
                stream, shard, [each for each in entries if _number(each[0]) not in self._handed_out]
            )
            if after == "0-0":
                break
        members: Any = self._redis.xinfo_consumers(stream, group)
        for member in members:
            if member["name"] != self._member and not member["pending"]:
                self._redis.xgroup_delconsumer(stream, group, member["name"])
        return found

    def _read_shard(self, stream: str, shard: int, position: int) -> list[Event]:
        group = self._shard_group(shard)
        while True:
            answer: Any = self._redis.xreadgroup(group, self._member, {stream: ">"}, count=_COUNT)
            entries = answer[0][1] if answer else []
            found = self._sorted_out(stream, shard, entries)
            if not entries and stream != ALL:
                # Nothing up to here is for it: when that is removed one day it misses nothing.
                self._redis.xgroup_setid(stream, group, f"{position}-0")
            if found or len(entries) < _COUNT:
                return found

    def _sorted_out(self, stream: str, shard: int, entries: Iterable[_Entry]) -> list[Event]:
        """The events of the shard that are wanted; the others are done with."""
        found, others = [], []
        for id, entry in entries:
            if entry is not None and shard_of(entry) == shard and self._wants(entry):
                event = event_of(entry)
                self._taken[event.number] = _HandedOut(stream, shard, id)
                found.append(event)
            else:
                others.append(id)
        if others:
            self._redis.xack(stream, self._shard_group(shard), *others)
        return found

    def _shard_group(self, shard: int) -> str:
        return f"{self._group}#{shard}"

    def _renew(self) -> None:
        """While somebody works on an event for long, nobody polls."""
        while not self._closed.wait(LEASE_SECONDS / 3):
            with contextlib.suppress(redis.RedisError):
                self._leases(keys=self._lease_keys, args=[self._member, int(LEASE_SECONDS * 1000), "renew"])


def shard_of(entry: Mapping[str, str]) -> int:
    """In which shard a table's events are."""
    return zlib.crc32(f"{entry['catalog']}.{entry['database']}.{entry['table']}".encode()) % SHARDS


def _number(id: str) -> int:
    return int(id.partition("-")[0])


def _gone(after: int, oldest: int) -> EventsGone:
    return EventsGone(
        f"the events after {after} are no longer in the stream: it is complete from {oldest} on."
        f" Read the current state of the tables, then go on after {oldest - 1}",
        oldest,
    )
