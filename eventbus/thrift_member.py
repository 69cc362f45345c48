"""Following events over the metastore's own port as a member of a group, which shares its work by table.

The metastore says which shards of the events are this member's (`sharing`), and keeps how far each of them is dealt
with. What a member was given of a shard that it then lost comes to another: it is not handed out any more, and
acknowledging it has no effect.
"""

import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import structlog

from eventbus.events import Event
from eventbus.filters import Filter
from eventbus.sharing import LEASE_SECONDS
from eventbus.subscription import Start, Subscription
from eventbus.thrift_calls import ThriftCalls, event_of, first_position
from metastore.wire.lake import EventsGone, ReadGroupEventsRequest, ReadGroupEventsResponse, ShardPosition

_SIGN_SECONDS = LEASE_SECONDS / 4
"""Between signs of life while the program works on an event for long, and nobody polls."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Shard:
    """A shard that this member holds. Its events were read up to `read`, the last of them was `last`."""

    tenure: int
    read: int
    acknowledged: int
    last: int = 0

    @property
    def done(self) -> int:
        """Up to where nothing is left to be acknowledged."""
        return self.read if self.last <= self.acknowledged else self.acknowledged


class ThriftMember(Subscription):
    """Like `ThriftSubscription`. Gives signs of life in a thread while nobody polls."""

    def __init__(
        self, uris: Sequence[str], tables: Sequence[str], types: Sequence[str], group: str, start: Start
    ) -> None:
        """See `eventbus.subscribe`."""
        super().__init__()
        Filter.parse(tables, types)
        self._tables, self._types = list(tables), [str(type) for type in types]
        self._group, self._start = group, start
        self._member = uuid.uuid4().hex
        self._first: int | None = None
        self._members = 0
        self._shards: dict[int, _Shard] = {}
        self._origins: dict[int, tuple[int, int]] = {}  # of the events that were read last: shard and tenure
        self._gone: EventsGone | None = None
        self._calls = ThriftCalls(uris)
        self._calling = threading.Lock()
        self._called = time.monotonic()
        self._told: frozenset[tuple[int, int]] | None = None  # what a sign of life said this member holds
        self._closed = threading.Event()
        self._living: threading.Thread | None = None

    def acknowledge(self, event: Event | int | None = None) -> None:
        """Of the events that this member was given and still has.

        After EventsGone, and before the first read, a number lets the whole group go on after it.
        """
        if isinstance(event, int) and (self._gone is not None or self._position is None):
            self._go_on_after(event)
            return
        number = event.number if isinstance(event, Event) else event if event is not None else self.position
        if number is None:
            return
        if self._pending:
            number = min(number, self._pending[-1].number - 1)
        moved = []
        for place, shard in self._shards.items():
            if shard.acknowledged < min(number, shard.read):
                shard.acknowledged = min(number, shard.read)
                moved.append(place)
        if moved:
            shards = self._positions(moved)
            with self._calling:
                held = self._calls.call(
                    lambda client: client.lake_acknowledge_shards(self._group, self._member, shards)
                )
                self._called = time.monotonic()
            self._keep({(each.shard, each.tenure) for each in held})

    def poll(self, wait: float = 0.0) -> list[Event]:
        deadline = time.monotonic() + wait
        while True:
            left = deadline - time.monotonic()
            found = self._read(max(0.0, left))
            if found or left <= 0:
                return found

    def close(self) -> None:
        self._closed.set()
        with self._calling:
            if self._living is not None:
                shards = self._positions(self._shards)
                self._calls.try_once(lambda client: client.lake_leave_group(self._group, self._member, shards))
            self._calls.close()

    def __next__(self) -> Event:
        while True:
            event = super().__next__()
            if self._told is None or self._origins[event.number] in self._told:
                return event
            # It may be at work elsewhere. Should the shard be ours again, its events are read again.
            self._keep(self._told)

    def _read(self, wait: float) -> list[Event]:
        if self._first is None:
            self._first = first_position(self._calls, self._group, self._start)
        if self._living is None:
            self._living = threading.Thread(target=self._live, name="member", daemon=True)
            self._living.start()
        request = ReadGroupEventsRequest(
            group=self._group,
            member=self._member,
            start=self._first,
            shards=self._positions(self._shards),
            members=self._members,
            tables=self._tables or None,
            types=self._types or None,
            maxWait=int(wait * 1000),
        )
        with self._calling:
            self._told = None
            try:
                answer = self._calls.call(lambda client: client.lake_read_group_events(request))
            except EventsGone as gone:
                self._gone = gone
                self._shards.clear()
                raise
            self._called = time.monotonic()
        return self._taken(answer)

    def _taken(self, answer: ReadGroupEventsResponse) -> list[Event]:
        assert answer.last is not None
        before, self._shards, self._origins = self._shards, {}, {}
        for each in answer.shards or ():
            assert each.shard is not None and each.tenure is not None
            assert each.read is not None and each.done is not None
            shard = before.get(each.shard)
            if shard is None or shard.tenure != each.tenure:
                shard = _Shard(each.tenure, each.read, each.done)
            shard.read = each.read
            self._shards[each.shard] = shard
        self._report_lost(before)
        self._members = answer.members or 1
        found = []
        for record in answer.events or ():
            assert record.shard is not None and record.number is not None
            shard = self._shards[record.shard]
            shard.last = record.number
            self._origins[record.number] = (record.shard, shard.tenure)
            found.append(event_of(record))
        self._position = max([self._position or 0, *(shard.read for shard in self._shards.values())])
        return found

    def _go_on_after(self, number: int) -> None:
        if self._gone is not None and self._gone.oldest is not None:
            number = min(number, self._gone.oldest - 1)
        with self._calling:
            self._calls.call(lambda client: client.lake_acknowledge_events(self._group, number, False))
        self._gone = None

    def _keep(self, held: Iterable[tuple[int, int]]) -> None:
        """Forgets the other shards, and what was to be handed out of them."""
        kept, before = set(held), self._shards
        self._shards = {place: each for place, each in before.items() if (place, each.tenure) in kept}
        self._pending = [event for event in self._pending if self._origins[event.number] in kept]
        self._report_lost(before)

    def _report_lost(self, before: dict[int, _Shard]) -> None:
        lost = [
            place
            for place, shard in before.items()
            if shard.done < shard.read and (place not in self._shards or self._shards[place].tenure != shard.tenure)
        ]
        if lost:
            log.warning("events went to another member before they were acknowledged", group=self._group, shards=lost)

    def _positions(self, places: Iterable[int]) -> list[ShardPosition]:
        return [
            ShardPosition(place, shard.tenure, shard.read, shard.done)
            for place, shard in ((place, self._shards[place]) for place in places)
        ]

    def _live(self) -> None:
        """In a thread of its own."""
        while not self._closed.wait(_SIGN_SECONDS):
            if time.monotonic() - self._called < _SIGN_SECONDS or not self._calling.acquire(blocking=False):
                continue
            try:
                held = self._calls.try_once(
                    lambda client: client.lake_acknowledge_shards(self._group, self._member, [])
                )
                if held is not None:
                    self._told = frozenset((each.shard, each.tenure) for each in held)
            finally:
                self._calling.release()
