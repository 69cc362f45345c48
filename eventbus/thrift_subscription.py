"""Following events over the metastore's own port: nothing is needed but its address."""

from collections.abc import Sequence

from eventbus.events import Event
from eventbus.filters import Filter
from eventbus.subscription import Start, Subscription
from eventbus.thrift_calls import ThriftCalls, event_of, first_position
from metastore.wire.lake import ReadEventsRequest, ReadEventsResponse


class ThriftSubscription(Subscription):
    """Long polls. A server that goes away is waited for, the next of the given addresses tried.

    Raises InvalidOperationException for a position that doesn't exist.
    """

    def __init__(self, uris: Sequence[str], tables: Sequence[str], types: Sequence[str], start: Start) -> None:
        """See `eventbus.subscribe`."""
        super().__init__()
        Filter.parse(tables, types)
        self._tables, self._types = list(tables), [str(type) for type in types]
        self._start = start
        self._calls = ThriftCalls(uris)

    def acknowledge(self, event: Event | int | None = None) -> None:
        raise ValueError("acknowledging needs a group: subscribe(..., group=...)")

    def poll(self, wait: float = 0.0) -> list[Event]:
        if self._position is None:
            self._position = first_position(self._calls, None, self._start)
        request = ReadEventsRequest(
            after=self._position, tables=self._tables or None, types=self._types or None, maxWait=int(wait * 1000)
        )
        answer: ReadEventsResponse = self._calls.call(lambda client: client.lake_read_events(request))
        self._position = answer.position
        return [event_of(record) for record in answer.events or ()]

    def close(self) -> None:
        self._calls.close()
