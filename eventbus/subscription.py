"""Following events from another program.

    from eventbus import subscribe

    with subscribe("thrift://metastore:9083", tables="ods.*", types=["COMMIT_PARTITIONS"], group="jobs") as events:
        for event in events:
            start_job(event.table, event.payload["partitions"])
            events.acknowledge(event)

Events come at least once, in the order in which they were committed; the members of a group share them by table. What
a member has not acknowledged comes again, whatever crashed in between.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Literal, Self

from eventbus.events import Event

Start = Literal["latest", "earliest"] | int | datetime

WAIT_SECONDS = 30.0
"""Of one long poll; the connection's own time limit is longer."""


class Subscription(ABC):
    """An endless iterator of events. Not thread-safe.

    Raises EventsGone, while iterating, if the position is older than the oldest event that is kept: read the tables'
    current state, then begin at `oldest - 1`.
    """

    def __init__(self) -> None:
        self._position: int | None = None
        self._pending: list[Event] = []

    @property
    def position(self) -> int | None:
        """The number of the last event that was seen, or passed over by the filter; None before the first read."""
        if self._pending:
            return self._pending[-1].number - 1
        return self._position

    @abstractmethod
    def acknowledge(self, event: Event | int | None = None) -> None:
        """Keeps under the group's name that everything up to an event is dealt with; without one, up to `position`.

        Raises ValueError without a group.
        """

    @abstractmethod
    def poll(self, wait: float = 0.0) -> list[Event]:
        """The next events, if there are some within `wait` seconds; an empty list is no end."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connection."""

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._pending:
            self._pending = self.poll(WAIT_SECONDS)[::-1]
        return self._pending.pop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


def subscribe(
    uri: str | Sequence[str],
    *,
    tables: str | Sequence[str] = (),
    types: Sequence[str] = (),
    group: str | None = None,
    start: Start = "latest",
) -> Subscription:
    """Follows events of some tables and types.

    `uri`: of one metastore server, `thrift://host:port`, or of several; or of Redis, `redis://host:port/database`.
    `tables`: patterns `database.table` with `*`;
    an event of a database matches where the table is `*`; by default everything. `types`: names of EventType. `group`:
    the name under which `acknowledge` keeps what is dealt with, and whose members share the work by table. `start`:
    where to begin if the group has not begun yet: after the `latest` event, at the `earliest` that is kept, after an
    event's number, or at a time.

    Raises BadFilter.
    """
    uris = uri.split(",") if isinstance(uri, str) else list(uri)
    patterns = [tables] if isinstance(tables, str) else tables
    if uris[0].startswith(("redis://", "rediss://", "unix://")):
        from eventbus.stream_subscription import StreamSubscription

        return StreamSubscription(uris[0], patterns, types, group, start)
    if group is not None:
        from eventbus.thrift_member import ThriftMember

        return ThriftMember(uris, patterns, types, group, start)
    from eventbus.thrift_subscription import ThriftSubscription

    return ThriftSubscription(uris, patterns, types, start)
