"""What Hive's readers get for notifications that are no longer kept."""

from collections.abc import Iterator
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NotificationEventRequest
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

KEPT = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    options = ("--event-retention-count", str(KEPT), "--housekeeping-seconds", "0.2", "--workers", "1")
    with MetastoreServer(tmp_path_factory.mktemp("trimmed") / "data", *options) as running:
        yield running


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as connected:
        yield connected


def read(client: ThriftClient, after: int, **wanted: Any) -> list[int]:
    return [each.eventId for each in client.get_next_notification(NotificationEventRequest(after, **wanted)).events]


def make(client: ThriftClient, db: str) -> int:
    """A database and ten tables; the number of the last notification, once all but the last few are gone."""
    client.create_database(builders.database(db))
    for number in range(10):
        client.create_table(builders.table(db, f"t{number}"))
    last: int = client.get_current_notificationEventId().eventId
    wait_until(lambda: len(read(client, last - KEPT - 1)) <= KEPT and read(client, 0)[0] == last - KEPT + 1)
    return last


def test_a_reader_of_all_numbers_sees_the_hole(client: ThriftClient) -> None:
    """Hive's clients since version 3 look at the numbers, and throw what they throw with Hive's server."""
    last = make(client, "holes")
    assert read(client, last - 6) == list(range(last - KEPT + 1, last + 1))
    assert read(client, last - KEPT) == list(range(last - KEPT + 1, last + 1))


def test_who_could_not_see_it_is_told(client: ThriftClient) -> None:
    last = make(client, "filters")
    for wanted in ({"dbName": "filters"}, {"tableNames": ["t1"]}, {"eventTypeSkipList": ["INSERT"]}):
        with pytest.raises(TApplicationException, match=f"the oldest is {last - KEPT + 1}"):
            read(client, last - 6, **wanted)
        assert read(client, last - KEPT, **wanted) is not None


def test_nor_can_who_is_left_with_nothing(client: ThriftClient) -> None:
    """What is kept may be events that make no notifications."""
    last = make(client, "nothing")
    client.create_table(builders.table("nothing", "h", keys=("ds",)))
    for number in range(KEPT + 1):
        client.add_partition(builders.partition("nothing", "h", str(number), parameters={"commit": "false"}))

    def refused() -> bool:
        try:
            read(client, last - 6)
        except TApplicationException as error:
            return f"go on after {last + 1}" in str(error)
        return False

    wait_until(refused)
    assert read(client, last + 1) == []
