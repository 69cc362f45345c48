"""Changes to make, and what the log says about them."""

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import EventRecord, ReadEventsRequest
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


def first_seen(numbers: list[int]) -> list[int]:
    """Numbers in the order in which each came first."""
    return list(dict.fromkeys(numbers))
