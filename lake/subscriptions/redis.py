"""Follows events in Redis Streams.

A Redis consumer group gives each entry to the first consumer that asks, which would break the order of a table's
events. So tables are divided into shards. Each shard is a consumer group of its own. The members of a group share the
shards by the rules of `lake.protocol.events.assignment`, and read and acknowledge only for the shards that they hold.
The next owner of a shard claims the entries that the one before has not acknowledged. The hash
`metastore:events:subscribers` has the number after which each group began.
"""

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

import redis
import structlog

from lake.protocol.events import assignment
from lake.protocol.events.filters import Filter
from lake.protocol.events.in_redis import GROUPS, SEEN, Membership, ShardLost, Token, shard_group
from lake.protocol.events.shards import SHARDS, shard_of
from lake.protocol.events.streams import ALL, STATE, STREAMS, UNDONE, common_of, connect, event_of
from lake.protocol.events.types import Event
from lake.protocol.lake import EventsGone
from lake.subscriptions.base import PATIENCE_SECONDS, SourceUnavailable, Start, Subscription

_SEEN_SECONDS = 60.0
_COUNT = 200
_BLOCK_SECONDS = 2.0  # less than the connection's time limit
_RETRY_SECONDS = 0.5

log = structlog.get_logger(__name__)

_Entry = tuple[str, Mapping[str, str] | None]


class _HandedOut(NamedTuple):
    stream: str
    token: Token
    id: str


class _Signs:
    """Signs of life that a thread gives while nobody reads, and what this member holds according to the last one.

    What one says that began before or during a read doesn't count: the read knows better.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reads = 0  # odd while somebody reads
        self._held: frozenset[Token] | None = None

    @property
    def held(self) -> frozenset[Token] | None:
        """None: no sign of life was given since the last read."""
        with self._lock:
            return self._held

    def give(self, stay: Callable[[], Iterable[Token]]) -> None:
        """`stay` gives the sign, and says what this member holds."""
        with self._lock:
            before = self._reads
        found = frozenset(stay())
        with self._lock:
            if before == self._reads and before % 2 == 0:
                self._held = found

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """While the block reads, no sign of life counts."""
        self._begin_or_end()
        try:
            yield
        finally:
            self._begin_or_end()

    def _begin_or_end(self) -> None:
        with self._lock:
            self._reads += 1
            self._held = None


class StreamSubscription(Subscription):
    """A subscription through Redis; it survives Redis' restarts. A group that Redis lost begins at the oldest event."""

    def __init__(self, url: str, tables: Sequence[str], types: Sequence[str], group: str | None, start: Start) -> None:
        """See `eventbus.subscribe`."""
        super().__init__(start)
        self._wanted = Filter.parse(tables, types)
        self._group = group
        self._redis = connect(url)
        self._first: int | None = None  # the number after which this subscription began
        self._seen: dict[str, int] = {}  # without a group: the position in each stream
        self._upto = 0  # without a group: the position in streams that are still unknown
        self._joined = False
        self._known: set[str] = set()  # streams in which the consumer groups exist
        self._lost = False  # the group missed events that were removed
        self._seen_until = 0.0  # by time.monotonic()
        self._member = uuid.uuid4().hex
        self._held: set[Token] = set()
        self._signs = _Signs()
        self._handed_out: dict[int, _HandedOut] = {}
        self._taken: dict[int, _HandedOut] = {}  # read in this poll; handed out unless it fails
        self._membership = Membership(self._redis, group or "", self._member)
        self._closed = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="member", daemon=True)
        if group is not None:
            self._renewing.start()

    def acknowledge(self, event: Event | int | None = None) -> None:
        """Acknowledges events that this member received. After EventsGone, a number moves the whole group there."""
        if self._group is None:
            raise ValueError("acknowledging needs a group: subscribe(..., group=...)")
        if self._lost and isinstance(event, int):
            self._go_on_after(event)
        upto = event.number if isinstance(event, Event) else event if event is not None else self.position
        deadline = time.monotonic() + PATIENCE_SECONDS
        while done := [number for number in self._handed_out if upto is not None and number <= upto]:
            try:
                self._acknowledge(done)
            except (redis.ConnectionError, redis.TimeoutError) as error:
                self._wait_for_redis(error, deadline)

    def _acknowledge(self, done: Sequence[int]) -> None:
        """What was given of a shard that this member lost meanwhile goes to another member: it doesn't count."""
        ids: dict[tuple[Token, str], list[int]] = {}
        for number in done:
            place = self._handed_out[number]
            ids.setdefault((place.token, place.stream), []).append(number)
        for (token, stream), numbers in ids.items():
            for start in range(0, len(numbers), _COUNT):
                some = numbers[start : start + _COUNT]
                try:
                    self._membership.call(
                        token,
                        "XACK",
                        stream,
                        self._shard_group(token.shard),
                        *(self._handed_out[number].id for number in some),
                    )
                except ShardLost:
                    self._report_lost({token})
                for number in some:
                    del self._handed_out[number]

    def poll(self, wait: float = 0.0) -> list[Event]:
        deadline = time.monotonic() + wait
        while True:
            left = deadline - time.monotonic()
            try:
                found = self._look(max(0.0, min(left, _BLOCK_SECONDS)))
            except (redis.ConnectionError, redis.TimeoutError) as error:
                self._held.clear()  # so that entries that were read and not handed out are claimed again
                self._wait_for_redis(error, deadline)
                continue
            except EventsGone:
                self._held.clear()
                self._pending.clear()
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
                self._membership.leave()
        self._redis.close()

    # -- both ways -------------------------------------------------------------------------------------------

    def _look(self, wait: float) -> list[Event]:
        """The events that exist now, or arrive within `wait` seconds."""
        state = cast(dict[str, str], self._redis.hgetall(STATE))
        if not state:  # nothing was ever published
            time.sleep(min(wait, _RETRY_SECONDS))
            return []
        self._check_history(state)
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

    def _check_history(self, state: Mapping[str, str]) -> None:
        """Raises EventsGone if events that this subscription received are undone. Groups: see `_read_as_member`."""
        if "log" not in state:  # written by an older server
            return
        now = f"{state['log']}/{state['epoch']}"
        if self._history is not None and not f"{self._history}/".startswith(f"{now}/"):
            common = common_of(state, self._history)
            start = self._start if isinstance(self._start, int) else 0
            reached = max([self._upto, *self._seen.values()]) if self._first is not None else start
            if common is not None and self._group is None and reached > common:
                raise _restored(common)
            if common is not None:
                self._held.clear()
                self._handed_out = {number: each for number, each in self._handed_out.items() if number <= common}
        self._history = now

    def _streams(self, state: Mapping[str, str]) -> list[str]:
        if state["by_database"] == "0":
            return [ALL]
        return sorted(cast(set[str], self._redis.smembers(STREAMS)))

    def _first_position(self, state: Mapping[str, str], streams: Iterable[str]) -> int:
        """The number after which a new subscription begins. Raises EventsGone."""
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

    def _wait_for_redis(self, error: Exception, deadline: float) -> None:
        """Waits before the next attempt. Raises SourceUnavailable after the deadline."""
        log.warning("Redis doesn't answer", error=str(error), retry_seconds=_RETRY_SECONDS)
        left = deadline - time.monotonic()
        if left <= 0:
            raise SourceUnavailable(f"Redis doesn't answer: {error}") from error
        time.sleep(min(left, _RETRY_SECONDS))

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
        # A stream without new entries counts as read up to the streams' common position.
        self._seen = {stream: number if stream in full else max(number, position) for stream, number in seen.items()}
        self._upto = max(self._upto, position)
        if not full:
            self._position = max(self._position or 0, position)
        return found

    # -- as a member of a group ------------------------------------------------------------------------------

    def _read_as_member(self, streams: Sequence[str], position: int, complete_from: int) -> list[Event]:
        self._taken = {}
        self._join(streams, complete_from)
        undone = cast(str | None, self._redis.hget(UNDONE, self._group or ""))
        if undone is not None:
            self._lost = True
            raise _restored(int(undone))
        with self._signs.reading():
            return self._read_shards(streams, position, complete_from)

    def _read_shards(self, streams: Sequence[str], position: int, complete_from: int) -> list[Event]:
        held = self._membership.take({place.token for place in self._handed_out.values()})
        self._keep(held)
        found: list[Event] = []
        for token in held:
            try:
                for stream in streams:
                    if token not in self._held:
                        self._check_complete(stream, token.shard, complete_from)
                        found += self._claim(stream, token)
                    found += self._read_shard(stream, token, position)
            except ShardLost:  # this member stood still for too long
                found = [event for event in found if self._taken[event.number].token != token]
                self._taken = {number: place for number, place in self._taken.items() if place.token != token}
                held = [each for each in held if each != token]
        self._held = set(held)
        self._note_seen()
        self._handed_out.update(self._taken)
        return found

    def __next__(self) -> Event:
        while True:
            event = super().__next__()
            kept = self._signs.held
            if self._group is None or kept is None:
                return event
            self._keep(kept)
            if event.number in self._handed_out:
                return event

    def _keep(self, held: Iterable[Token]) -> None:
        """Forgets what was given of other shards: other members are given it."""
        kept = set(held)
        lost = {number for number, place in self._handed_out.items() if place.token not in kept}
        if lost:
            self._report_lost({self._handed_out[number].token for number in lost})
            self._handed_out = {number: each for number, each in self._handed_out.items() if number not in lost}
            self._pending = [event for event in self._pending if event.number not in lost]

    def _report_lost(self, tokens: Iterable[Token]) -> None:
        shards = sorted(each.shard for each in tokens)
        log.warning("events went to another member before they were acknowledged", group=self._group, shards=shards)

    def _note_seen(self) -> None:
        """Records that the group is in use. Unused groups are deleted after some time."""
        if time.monotonic() >= self._seen_until:
            self._redis.hset(SEEN, self._group or "", str(cast(Any, self._redis.time())[0]))
            self._seen_until = time.monotonic() + _SEEN_SECONDS

    def _join(self, streams: Sequence[str], complete_from: int) -> None:
        """Creates the consumer groups in streams that don't have them yet."""
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
        """Raises EventsGone if entries were removed before the group read them."""
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
        self._redis.hdel(UNDONE, self._group or "")
        self._lost = False

    def _claim(self, stream: str, token: Token) -> list[Event]:
        """Takes over entries that were delivered to a member, but that no live member works on."""
        group, found, after = self._shard_group(token.shard), [], "0-0"
        while True:
            answer = self._membership.call(token, "XAUTOCLAIM", stream, group, self._member, 0, after, "COUNT", _COUNT)
            after, entries = answer[0], _entries(answer[1])
            found += self._sorted_out(
                stream, token, [each for each in entries if _number(each[0]) not in self._handed_out]
            )
            if after == "0-0":
                break
        members: Any = self._redis.xinfo_consumers(stream, group)
        for member in members:
            if member["name"] != self._member and not member["pending"]:
                self._redis.xgroup_delconsumer(stream, group, member["name"])
        return found

    def _read_shard(self, stream: str, token: Token, position: int) -> list[Event]:
        group = self._shard_group(token.shard)
        while True:
            answer = self._membership.call(
                token, "XREADGROUP", "GROUP", group, self._member, "COUNT", _COUNT, "STREAMS", stream, ">"
            )
            entries = _entries(answer[0][1]) if answer else []
            found = self._sorted_out(stream, token, entries)
            if not entries and stream != ALL:
                # There is no entry for the group up to here. Moving on keeps later trimming from looking like a loss.
                self._membership.call(token, "XGROUP", "SETID", stream, group, f"{position}-0")
            if found or len(entries) < _COUNT:
                return found

    def _sorted_out(self, stream: str, token: Token, entries: Iterable[_Entry]) -> list[Event]:
        """The shard's events that the filter accepts. All other entries are acknowledged."""
        found, others = [], []
        for id, entry in entries:
            if entry is not None and _shard_of(entry) == token.shard and self._wants(entry):
                event = event_of(entry)
                self._taken[event.number] = _HandedOut(stream, token, id)
                found.append(event)
            else:
                others.append(id)
        if others:
            self._redis.xack(stream, self._shard_group(token.shard), *others)
        return found

    def _shard_group(self, shard: int) -> str:
        return shard_group(self._group or "", shard)

    def _renew(self) -> None:
        """Renews the leases between polls, while the program works on an event."""
        while not self._closed.wait(assignment.LEASE_SECONDS / 3):
            with contextlib.suppress(redis.RedisError):
                self._signs.give(self._membership.stay)


def _shard_of(entry: Mapping[str, str]) -> int:
    return shard_of(entry["catalog"], entry["database"], entry["table"])


def _entries(found: Sequence[Any]) -> list[_Entry]:
    """Entries as they stand on the wire, without those that were deleted."""
    return [(each[0], dict(zip(each[1][::2], each[1][1::2], strict=True))) for each in found if each and each[1]]


def _number(id: str) -> int:
    return int(id.partition("-")[0])


def _restored(common: int) -> EventsGone:
    return EventsGone(
        f"the metastore was restored from a backup: events after {common} are undone, and their numbers are given"
        f" again. Read the current state of the tables, then go on after {common}",
        common + 1,
        True,
    )


def _gone(after: int, oldest: int) -> EventsGone:
    return EventsGone(
        f"the events after {after} are no longer in the stream: it is complete from {oldest} on."
        f" Read the current state of the tables, then go on after {oldest - 1}",
        oldest,
    )
