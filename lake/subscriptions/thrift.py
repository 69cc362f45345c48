"""Follows events over the metastore's own port, without a group."""

from collections.abc import Sequence

from lake.protocol.connection.login import Login
from lake.protocol.events.filters import Filter
from lake.protocol.events.types import Event
from lake.protocol.lake import ReadEventsRequest, ReadEventsResponse
from lake.subscriptions.base import Start, Subscription
from lake.subscriptions.thrift_calls import ThriftCalls, event_of, first_position


class ThriftSubscription(Subscription):
    """A subscription by long polls. If a server can't be reached, the next address is tried.

    Reading raises InvalidOperationException for a position that doesn't exist.
    """

    def __init__(
        self, uris: Sequence[str], tables: Sequence[str], types: Sequence[str], start: Start, login: Login | None = None
    ) -> None:
        """See `eventbus.subscribe`."""
        super().__init__(start)
        Filter.parse(tables, types)
        self._tables, self._types = list(tables), [str(type) for type in types]
        self._calls = ThriftCalls(uris, login)

    def acknowledge(self, event: Event | int | None = None) -> None:
        raise ValueError("acknowledging needs a group: subscribe(..., group=...)")

    def poll(self, wait: float = 0.0) -> list[Event]:
        if self._position is None:
            self._position, history = first_position(self._calls, None, self._start, wait)
            self._history = self._history or history
        request = ReadEventsRequest(
            after=self._position,
            tables=self._tables or None,
            types=self._types or None,
            maxWait=int(wait * 1000),
            history=self._history,
        )
        answer: ReadEventsResponse = self._calls.call(
            lambda client: client.lake_read_events(request), wait=wait, patience=wait
        )
        self._position, self._history = answer.position, answer.history
        return [event_of(record) for record in answer.events or ()]

    def close(self) -> None:
        self._calls.close()
