"""Follows events over the metastore's own port as a member of a group. Members share the events by table.

The metastore assigns shards to members (see `lake.protocol.events.assignment`), and stores the position of each. If a
member loses a shard, its unacknowledged events go to the new owner. They are no longer handed out here, and
acknowledging them has no effect.
"""

import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from lake.protocol.connection.login import Login
from lake.protocol.events.assignment import LEASE_SECONDS
from lake.protocol.events.filters import Filter
from lake.protocol.events.types import Event
from lake.protocol.lake import EventsGone, ReadGroupEventsRequest, ReadGroupEventsResponse, ShardPosition
from lake.subscriptions.base import PATIENCE_SECONDS, Start, Subscription
from lake.subscriptions.thrift_calls import Ask, ThriftCalls, event_of, first_position

_SIGN_SECONDS = LEASE_SECONDS / 4
"""Seconds between signs of life while the program works on an event and doesn't poll."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Shard:
    """A shard that this member owns. `read`: read up to this number. `last`: the number of its last event."""

    generation: int
    read: int
    acknowledged: int
    last: int = 0

    @property
    def done(self) -> int:
        """The number up to which no event remains to be acknowledged."""
        return self.read if self.last <= self.acknowledged else self.acknowledged


class ThriftMember(Subscription):
    """Like `ThriftSubscription`, as a member of a group. A thread gives signs of life between polls."""

    def __init__(
        self,
        uris: Sequence[str],
        tables: Sequence[str],
        types: Sequence[str],
        group: str,
        start: Start,
        login: Login | None = None,
    ) -> None:
        """See `eventbus.subscribe`."""
        super().__init__(start)
        Filter.parse(tables, types)
        self._tables, self._types = list(tables), [str(type) for type in types]
        self._group = group
        self._member = uuid.uuid4().hex
        self._first: int | None = None
        self._members = 0
        self._shards: dict[int, _Shard] = {}
        self._origins: dict[int, tuple[int, int]] = {}  # by number of the last events: shard and generation
        self._gone: EventsGone | None = None
        self._calls = ThriftCalls(uris, login)
        self._calling = threading.Lock()
        self._called = time.monotonic()
        self._kept_by_server: frozenset[tuple[int, int]] | None = None  # shards, by the last sign of life's response
        self._closed = threading.Event()
        self._living: threading.Thread | None = None

    def acknowledge(self, event: Event | int | None = None) -> None:
        """Acknowledges events that this member received, of shards that it still owns.

        After EventsGone, and before the first read, a number moves the whole group there.
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
                held = self._call(
                    lambda client: client.lake_acknowledge_shards(self._group, self._member, shards, self._history),
                    patience=PATIENCE_SECONDS,
                )
                self._called = time.monotonic()
            self._keep({(each.shard, each.generation) for each in held})

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
                self._calls.try_once(
                    lambda client: client.lake_leave_group(self._group, self._member, shards, self._history)
                )
            self._calls.close()

    def __next__(self) -> Event:
        while True:
            event = super().__next__()
            if self._kept_by_server is None or self._origins[event.number] in self._kept_by_server:
                return event
            # Another member may work on it. If this member gets the shard back, it reads the events again.
            self._keep(self._kept_by_server)

    def _read(self, wait: float) -> list[Event]:
        if self._first is None:
            self._first, history = first_position(self._calls, self._group, self._start, wait)
            self._history = self._history or history
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
            history=self._history,
        )
        with self._calling:
            self._kept_by_server = None
            answer = self._call(lambda client: client.lake_read_group_events(request), wait=wait, patience=wait)
            self._called = time.monotonic()
        return self._taken(answer)

    def _taken(self, answer: ReadGroupEventsResponse) -> list[Event]:
        assert answer.last is not None
        before, self._shards, self._origins = self._shards, {}, {}
        for each in answer.shards or ():
            assert each.shard is not None and each.generation is not None
            assert each.read is not None and each.done is not None
            shard = before.get(each.shard)
            if shard is None or shard.generation != each.generation:
                shard = _Shard(each.generation, each.read, each.done)
            shard.read = each.read
            self._shards[each.shard] = shard
        self._report_lost(before)
        self._members = answer.members or 1
        self._history = answer.history
        found = []
        for record in answer.events or ():
            assert record.shard is not None and record.number is not None
            shard = self._shards[record.shard]
            shard.last = record.number
            self._origins[record.number] = (record.shard, shard.generation)
            found.append(event_of(record))
        self._position = max([self._position or 0, *(shard.read for shard in self._shards.values())])
        return found

    def _go_on_after(self, number: int) -> None:
        if self._gone is not None and self._gone.oldest is not None:
            number = min(number, self._gone.oldest - 1)
        with self._calling:
            self._calls.call(
                lambda client: client.lake_acknowledge_events(self._group, number, False), patience=PATIENCE_SECONDS
            )
        self._gone = None

    def _call(self, ask: Ask, *, wait: float = 0.0, patience: float) -> Any:
        try:
            return self._calls.call(ask, wait=wait, patience=patience)
        except EventsGone as gone:
            self._gone = gone
            self._shards.clear()
            self._pending.clear()
            self._first = self._history = None  # they may belong to an undone epoch
            raise

    def _keep(self, held: Iterable[tuple[int, int]]) -> None:
        """Drops all other shards, and their events that have not been handed out."""
        kept, before = set(held), self._shards
        self._shards = {place: each for place, each in before.items() if (place, each.generation) in kept}
        self._pending = [event for event in self._pending if self._origins[event.number] in kept]
        self._report_lost(before)

    def _report_lost(self, before: dict[int, _Shard]) -> None:
        lost = [
            place
            for place, shard in before.items()
            if shard.done < shard.read
            and (place not in self._shards or self._shards[place].generation != shard.generation)
        ]
        if lost:
            log.warning("events went to another member before they were acknowledged", group=self._group, shards=lost)

    def _positions(self, places: Iterable[int]) -> list[ShardPosition]:
        return [
            ShardPosition(place, shard.generation, shard.read, shard.done)
            for place, shard in ((place, self._shards[place]) for place in places)
        ]

    def _live(self) -> None:
        """The thread that gives signs of life."""
        while not self._closed.wait(_SIGN_SECONDS):
            if time.monotonic() - self._called < _SIGN_SECONDS or not self._calling.acquire(blocking=False):
                continue
            try:
                held = self._calls.try_once(
                    lambda client: client.lake_acknowledge_shards(self._group, self._member, [], None)
                )
                if held is not None:
                    self._kept_by_server = frozenset((each.shard, each.generation) for each in held)
            finally:
                self._calling.release()
