"""Changes to make, and what the log says about them."""

import time
from collections.abc import Callable

from metastore.client.thrift_client import ThriftClient
from metastore.wire.lake import EventRecord, ReadEventsRequest
from tests.support import builders


def make(client: ThriftClient, database: str, count: int) -> None:
    """A database with tables, so many events in all."""
    client.create_database(builders.database(database))
    for number in range(count - 1):
        client.create_table(builders.table(database, f"t{number}"))


def log_of(client: ThriftClient) -> list[EventRecord]:
    """Everything that was committed and is kept."""
    found: list[EventRecord] = []
    position = client.lake_event_positions(None).oldest - 1
    while True:
        page = client.lake_read_events(ReadEventsRequest(after=position))
        if not page.events:
            return found
        found += page.events
        position = page.position


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Waits for something to be so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.02)


def first_seen(numbers: list[int]) -> list[int]:
    """Numbers in the order in which each came first."""
    return list(dict.fromkeys(numbers))
