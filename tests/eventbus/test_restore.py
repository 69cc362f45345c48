"""An older Postgres is put back: nobody goes on with events that never happened, and everybody is notified."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine

from eventbus.log import epochs
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.events.streams import ALL, STATE
from lake.protocol.hive import OpenTxnRequest
from lake.protocol.lake import EventsGone
from lake.subscriptions import Event, EventType, Subscription, subscribe
from tests.eventbus.changes import log_of, make
from tests.eventbus.hooks import Receiver
from tests.support import dump
from tests.support.command import output
from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

Restore = Callable[[str, Path], None]


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis") as server:
        yield server


def names(events: Any) -> list[tuple[int, str | None, str | None]]:
    return [(each.number, each.database, each.table) for each in events]


def in_stream(streams: RedisServer) -> list[tuple[int, str | None, str | None]]:
    with streams.client() as client:
        entries: Any = client.xrange(ALL)
    return [(int(entry["number"]), entry["database"] or None, entry["table"] or None) for _, entry in entries]


def settle(streams: RedisServer, client: ThriftClient) -> None:
    """Waits until Redis has what the log has."""

    def settled() -> bool:
        with streams.client() as found:
            return found.hget(STATE, "position") == str(log_of(client)[-1].number)

    wait_until(settled)


def take(subscription: Subscription, upto: int) -> list[Event]:
    """Events up to one."""
    found: list[Event] = []
    wait_until(lambda: found.extend(subscription.poll(0.2)) or (found and max(each.number for each in found) >= upto))
    return found


def gone_of(subscription: Subscription) -> EventsGone:
    """What a subscriber gets after the restore."""
    gone: list[EventsGone] = []

    def ask() -> bool:
        try:
            subscription.poll(0.2)
        except EventsGone as error:
            gone.append(error)
        return bool(gone)

    wait_until(ask)
    assert gone[0].restored
    return gone[0]


def ids_are_new(client: ThriftClient, last: int, database: str) -> bool:
    """Whether a table gets an id far beyond the last one, and a transaction, too."""
    opened = client.open_txns(OpenTxnRequest(num_txns=1, user="u", hostname="h")).txn_ids[0]
    return table_id(client, database) > last + 1_000_000 and opened > 1_000_000


def table_id(client: ThriftClient, database: str) -> int:
    found = client.get_table(database, "t0").id
    assert found is not None
    return found


@pytest.mark.long
@pytest.mark.parametrize("restore", [pytest.param(dump.restore, marks=pytest.mark.long), dump.restore_rows])
def test_redis_and_all_subscribers(postgres_url: str, tmp_path: Path, streams: RedisServer, restore: Restore) -> None:
    """With the tables made anew, which a server notices, and without a trace, which the outlet does."""
    options = ("--workers", "1", "--database-url", postgres_url, "--redis-url", streams.url)
    backup = tmp_path / "backup"
    server = MetastoreServer(tmp_path / "data", *options)
    with server, ThriftClient(server.host, server.port) as client:
        make(client, "kept", 5)
        settle(streams, client)
    dump.dump(postgres_url, backup)
    server.start()
    with ExitStack() as stack:
        stack.callback(server.kill)
        subscriptions = {
            (uri, group): stack.enter_context(subscribe(uri, start="earliest", group=group))
            for uri in (server.uri, streams.url)
            for group in (None, "g")
        }
        with ThriftClient(server.host, server.port) as client:
            make(client, "undone", 5)
            settle(streams, client)
            before, last = names(log_of(client)), table_id(client, "undone")
        bookmarks = {}
        for (uri, group), each in subscriptions.items():
            assert sorted(names(take(each, 10))) == before
            if group is None:
                bookmarks[uri] = each.bookmark
            else:
                each.acknowledge()
        server.kill()
        restore(postgres_url, backup)
        server.start()
        with ThriftClient(server.host, server.port) as client:
            wait_until(lambda: EventType.BEGIN_EPOCH in [each.type for each in log_of(client)])
            make(client, "new", 6)
            settle(streams, client)
            after = names(log_of(client))
            assert ids_are_new(client, last, "new")
            assert after[:5] == before[:5]
            assert "undone" not in {database for _, database, _ in after}
            assert in_stream(streams) == after

        for (uri, group), each in subscriptions.items():
            gone = gone_of(each)
            if group is None:
                with pytest.raises(EventsGone):  # as often as it asks
                    each.poll()
                assert uri in bookmarks
                with subscribe(uri, start=bookmarks[uri] or "") as later:
                    gone_of(later)
                with subscribe(uri, start=gone.oldest - 1) as anew:
                    found = take(anew, after[-1][0])
                    assert names(found) == [event for event in after if event[0] >= gone.oldest]
                    made = anew.bookmark or ""
                with subscribe(uri, start=made) as again:
                    assert again.poll() == []
            else:
                each.acknowledge(gone.oldest - 1)
                found = take(each, after[-1][0])
                assert {number for number, _, _ in after[5:]} <= {event.number for event in found}
                assert set(names(found)) <= set(after)
                each.acknowledge()
                assert each.poll() == []


@pytest.mark.long
def test_webhooks_learn_of_the_epoch(postgres_url: str, tmp_path: Path) -> None:
    """What has the number of an event that is undone has another id, and an event tells from where on."""
    backup = tmp_path / "backup"
    with Receiver() as receiver:
        options = ("--workers", "1", "--database-url", postgres_url, "--event-webhooks", f"w={receiver.url}")
        server = MetastoreServer(tmp_path / "data", *options)
        with server, ThriftClient(server.host, server.port) as client:
            make(client, "kept", 2)
            wait_until(lambda: len(receiver.requests) == 2)
        dump.dump(postgres_url, backup)
        with server.start(), ThriftClient(server.host, server.port) as client:
            make(client, "undone", 2)
            wait_until(lambda: len(receiver.requests) == 4)
            last = table_id(client, "undone")
        dump.restore(postgres_url, backup)
        with server.start(), ThriftClient(server.host, server.port) as client:
            make(client, "new", 2)
            wait_until(lambda: any(each.event["subject"] == "hive.new.t0" for each in receiver.requests))
            assert ids_are_new(client, last, "new")
        answer = [each.event for each in receiver.requests]
        [begin] = [each for each in answer if each["type"] == "lake.metastore.BEGIN_EPOCH"]
        assert (begin["data"]["payload"]["after"], begin["data"]["payload"]["lossy"]) == (2, True)
        new = [each for each in answer if each["data"]["database"] == "new"]
        assert {each["data"]["epoch"] for each in new} == {begin["data"]["payload"]["epoch"]}
        ids = [each["id"] for each in answer]
        assert len(set(ids)) == len(ids)
        assert ids[:4] == ["1", "2", "3", "4"]


@pytest.mark.long
def test_an_operator_declares_an_epoch(postgres_url: str, tmp_path: Path) -> None:
    """Groups are notified once; after a move that lost nothing nobody is."""
    server = MetastoreServer(tmp_path / "data", "--workers", "1", "--database-url", postgres_url)
    with server, ThriftClient(server.host, server.port) as client:
        make(client, "d", 3)
        with subscribe(server.uri, start="earliest", group="g") as group:
            take(group, 3)
            group.acknowledge()
            declared = json.loads(output("db", "new-epoch", "--database-url", postgres_url, "--json"))
            assert (declared["after"], declared["lossy"]) == (3, True)
            gone = gone_of(group)
            group.acknowledge(gone.oldest - 1)
            [event] = take(group, 4)
            assert (event.type, event.payload["epoch"]) == (EventType.BEGIN_EPOCH, declared["epoch"])
            group.acknowledge()
            make(client, "e", 2)
            assert ids_are_new(client, table_id(client, "d"), "e")
            assert len(take(group, 6)) == 2
            group.acknowledge()
            output("db", "new-epoch", "--nothing-lost", "--database-url", postgres_url)
            make(client, "f", 2)
            assert [each.database for each in take(group, 9)] == [None, "f", "f"]


@pytest.mark.long
def test_a_copy_that_lost_nothing(postgres_url: str, tmp_path: Path) -> None:
    """Where it was declared, the copy's servers find nothing to tell."""
    server = MetastoreServer(tmp_path / "data", "--workers", "1", "--database-url", postgres_url)
    with server, ThriftClient(server.host, server.port) as client:
        make(client, "d", 3)
    dump.dump(postgres_url, tmp_path / "backup")
    dump.restore(postgres_url, tmp_path / "backup")
    output("db", "new-epoch", "--nothing-lost", "--database-url", postgres_url)
    server.start().stop()
    engine = create_engine(postgres_url, poolclass=NullPool)
    with engine.begin() as tx:
        assert [each.lossy for each in epochs.history(tx).epochs] == [False, False]
    engine.dispose()
