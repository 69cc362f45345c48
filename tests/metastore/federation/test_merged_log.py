"""The merged notification log: all events of all followed backends, once, under the front's names, or it says so."""

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.codec import binary, json_transcoding
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    FireEventRequest,
    FireEventRequestData,
    InsertEventRequestData,
    MetaException,
    NotificationEvent,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    Partition,
    Table,
)
from tests.metastore.federation.stand_in import LogStandIn
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.postgres import Postgres, copy_data_directory
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

NUMBERS = itertools.count(1)
FOLLOW = "follow = true\npause_seconds = 0.3\nconnect_seconds = 1"


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    with postgres.fresh_database(upgraded=True) as database:
        yield database


@pytest.fixture
def eu() -> Iterator[LogStandIn]:
    with LogStandIn() as server:
        yield server


def more(url: str, **federation: Any) -> str:
    settings = {"log_readers": ["*"], **federation}
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
    return f"[server]\ndatabase_url = {json.dumps(url)}\n[federation]\n{lines}\n"


@contextmanager
def front(tmp_path: Path, url: str, backends: dict[str, str], **federation: Any) -> Iterator[FrontServer]:
    directory = tmp_path / f"front{next(NUMBERS)}"
    with FrontServer(directory, backends, more=more(url, **federation)) as server:
        yield server


@contextmanager
def connected(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        yield client


def main_and_eu(main: MetastoreServer, eu: LogStandIn) -> dict[str, str]:
    return {
        "main": f'uris = "{main.uri}"\nprimary = true\ndeny = ["hidden*"]\n{FOLLOW}',
        "eu": f'uris = "{eu.uri}"\nprefix = "eu_"\nnumber = 1\ndeny = ["hidden"]\n{FOLLOW}',
    }


def last(client: ThriftClient) -> int:
    found: int = client.get_current_notificationEventId().eventId
    return found


def after(client: ThriftClient, number: int, **asked: Any) -> list[NotificationEvent]:
    found: list[NotificationEvent] = client.get_next_notification(NotificationEventRequest(number, **asked)).events
    return found


def told(events: list[NotificationEvent]) -> list[tuple[str | None, str | None, str | None]]:
    return [(each.eventType, each.dbName, each.tableName) for each in events]


def test_one_log_of_several(tmp_path: Path, url: str, metastore_server: MetastoreServer, eu: LogStandIn) -> None:
    db = f"merged{next(NUMBERS)}"
    eu.add("sales")  # before it is followed
    backends = main_and_eu(metastore_server, eu)
    with front(tmp_path, url, backends) as server, connected(server) as client, connected(metastore_server) as ours:
        begin = last(client)
        ours.create_database(builders.database(db))
        ours.create_database(builders.database(f"hidden_{db}"))
        ours.create_table(builders.table(db, "t", keys=("a",)))
        assert last(client) == begin + 2  # who wrote sees its own event
        eu.add("sales", "u")
        eu.add("hidden", "u")
        assert last(client) == begin + 3
        client.add_partition(builders.partition(db, "t", "1"))
        assert last(client) == begin + 4
        eu.add(None, None, type="OPEN_TXN", txnIds=[4])
        assert last(client) == begin + 5
        events = after(client, begin)
        assert told(events) == [
            ("CREATE_DATABASE", db, None),
            ("CREATE_TABLE", db, "t"),
            ("DROP_TABLE", "eu_sales", "u"),
            ("ADD_PARTITION", db, "t"),
            ("OPEN_TXN", None, None),
        ]
        assert [each.eventId for each in events] == list(range(begin + 1, begin + 6))
        assert json.loads(events[2].message)["db"] == "eu_sales"

        assert told(after(client, begin, dbName="eu_sales")) == [("DROP_TABLE", "eu_sales", "u")]
        assert told(after(client, begin, eventTypeList=["ADD_PARTITION"])) == [("ADD_PARTITION", db, "t")]
        assert told(after(client, begin, dbName=db, tableNames=["t"], eventTypeSkipList=["CREATE_TABLE"])) == [
            ("ADD_PARTITION", db, "t")
        ]
        assert len(after(client, begin, maxEvents=2)) == 2 and after(client, begin + 5) == []
        assert after(client, begin, dbName="hidden") == []

        def count(name: str, **asked: Any) -> int:
            request = NotificationEventsCountRequest(begin, name, **asked)
            found: int = client.get_notification_events_count(request).eventsCount
            return found

        assert (count("*"), count(db), count("eu_sales"), count("sales"), count("hidden")) == (5, 3, 1, 0, 0)
        assert (count("*", toEventId=begin + 2), count("*", limit=2), count(db, tableNames=["t"])) == (2, 2, 2)
        status = client.getStatusDetails()
        assert "log: followed up to 4, 0 events and" in status
        ours.drop_database(f"hidden_{db}", True, True)
        ours.drop_database(db, True, True)


def test_names_are_mapped_everywhere_and_another_front_goes_on(
    tmp_path: Path, url: str, metastore_server: MetastoreServer
) -> None:
    """Ours under other names, with all that its messages hold."""
    db = f"named{next(NUMBERS)}"
    backends = {
        "x": f'uris = "{metastore_server.uri}"\nprefix = "x_"\nnumber = 1\ndeny = ["out"]\n{FOLLOW}',
    }
    with connected(metastore_server) as ours:
        ours.create_database(builders.database("out"))
        with front(tmp_path, url, backends) as server, connected(server) as client:
            begin = last(client)
            client.create_database(builders.database(f"x_{db}"))
            client.create_table(builders.table(f"x_{db}", "t", keys=("a",)))
            client.add_partitions([builders.partition(f"x_{db}", "t", str(each)) for each in range(3)])
            client.create_table(builders.table(f"x_{db}", "plain"))
            ours.alter_table(db, "plain", ours.get_table(db, "plain").replace(dbName="out"))
            ours.alter_table("out", "plain", ours.get_table("out", "plain").replace(dbName=db, tableName="back"))
            inserted = FireEventRequestData(insertData=InsertEventRequestData(filesAdded=["file:/f"]))
            request = FireEventRequest(True, inserted, dbName=f"x_{db}", tableName="back")
            [number] = client.fire_listener_event(request).eventIds
            client.drop_table(f"x_{db}", "back", True)
            events = after(client, begin)
            types = ["CREATE_DATABASE", "CREATE_TABLE", "ADD_PARTITION", "CREATE_TABLE", "DROP_TABLE", "CREATE_TABLE",
                     "INSERT", "DROP_TABLE"]  # fmt: skip
            assert [each.eventType for each in events] == types
            assert {each.dbName for each in events} == {f"x_{db}"}
            assert events[6].eventId == number
            for each in events:
                message = json.loads(each.message)
                assert message["db"] == f"x_{db}"
                for cls, texts in (
                    (Table, [message.get("tableObjJson")]),
                    (Partition, message.get("partitionListJson")),
                ):
                    for text in filter(None, texts or ()):
                        assert binary.decode(cls, json_transcoding.to_binary(text)).dbName == f"x_{db}"
        with front(tmp_path, url, backends) as server, connected(server) as client:
            ours.create_table(builders.table(db, "later"))
            assert told(after(client, events[-1].eventId)) == [("CREATE_TABLE", f"x_{db}", "later")]
            assert after(client, begin)[: len(events)] == events
        for each in (db, "out"):
            ours.drop_database(each, True, True)


@pytest.mark.long
def test_a_file_with_other_names(tmp_path: Path, url: str, eu: LogStandIn) -> None:
    """Events get the names of the file in force; those that have none any more keep their numbers."""

    def backends(prefix: str, deny: str) -> dict[str, str]:
        return {"eu": f'uris = "{eu.uri}"\nprefix = "{prefix}"\nnumber = 1\ndeny = ["{deny}"]\n{FOLLOW}'}

    with front(tmp_path, url, backends("eu_", "old")) as server, connected(server) as client:
        begin = last(client)
        eu.add("sales", "a")
        eu.add("old", "a")
        eu.add("people", "a")
        assert told(after(client, begin)) == [("DROP_TABLE", "eu_sales", "a"), ("DROP_TABLE", "eu_people", "a")]
        server.write(backends("e_", "sales"), more(url))
        wait_until(lambda: after(client, begin)[1].dbName == "e_people")
        eu.add("old", "b")
        assert told(after(client, begin)) == [
            ("HIDDEN", None, None),
            ("DROP_TABLE", "e_people", "a"),
            ("DROP_TABLE", "e_old", "b"),
        ]
        assert after(client, begin, dbName="e_sales") == []


def test_calls_don_t_fail_while_the_file_changes(tmp_path: Path, url: str, eu: LogStandIn) -> None:
    def backends(turn: int) -> dict[str, str]:
        return {"eu": f'uris = "{eu.uri}"\nprefix = "p{turn}_"\nnumber = 1\n{FOLLOW}'}

    with front(tmp_path, url, backends(0)) as server, connected(server) as client:
        position = last(client)
        seen: list[str | None] = []
        for turn in range(12):
            if turn % 3 == 1:
                server.write(backends(turn), more(url))
            eu.add("sales", f"t{turn}")
            events = after(client, position)
            seen += [each.tableName for each in events]
            position = events[-1].eventId
            time.sleep(0.2)
    assert seen == [f"t{turn}" for turn in range(12)]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("purged", "events 3 to 4 were removed there before the front read them"),
        pytest.param("all purged", "events 3 to 6 were removed there", marks=pytest.mark.long),
        pytest.param("restarted", "its numbers went back from 2 to 1", marks=pytest.mark.long),
        pytest.param(*("replaced", "event 2 is another one than it was: its log was replaced"), marks=pytest.mark.long),
    ],
)
def test_what_is_lost_is_said(tmp_path: Path, url: str, eu: LogStandIn, what: str, message: str) -> None:
    backends = {
        "eu": f'uris = "{eu.uri}"\nprefix = "eu_"\nnumber = 1\n{FOLLOW}',
        "us": f'uris = "{eu.uri}"\nprefix = "us_"\nnumber = 2',
    }
    with front(tmp_path, url, backends) as server, connected(server) as client:
        begin = last(client)
        for each in "ab":
            eu.add("sales", each)
        assert [each.tableName for each in after(client, begin)] == ["a", "b"]
        kept = list(eu.log)
        if what in ("purged", "all purged"):
            for each in "cdef":
                eu.log = []
                eu.last += 1 if each in "cd" else 0
                if each in "ef":
                    eu.add("sales", each)
            eu.log = kept + (eu.log if what == "purged" else [])
            if what == "purged":
                eu.log.insert(2, eu.log[-1].replace(eventId=5))
        elif what == "restarted":
            eu.log, eu.last = [], 0
            eu.add("sales", "x")
        else:
            eu.log, eu.last = [], 0
            for each in "xyz":
                eu.add("sales", each)
        wait_until(lambda: "lost before" in client.getStatusDetails(), seconds=20)
        assert message in client.getStatusDetails()
        assert [each.tableName for each in after(client, begin)] == ["a", "b"]
        with pytest.raises(TApplicationException, match=f"lost to this log: {message}.*then go on after {begin + 3}$"):
            after(client, begin + 2)
        with pytest.raises(TApplicationException, match="lost to this log"):
            after(client, begin + 2, dbName="eu_sales")
        with pytest.raises(TApplicationException, match=r"backends\.us\.follow"):
            after(client, begin + 2, dbName="us_sales")
        expected = 2 if what == "purged" else 0
        assert len(after(client, begin + 3)) == expected
        eu.add("sales", "new")
        assert [each.tableName for each in after(client, begin + 3)][expected:] == ["new"]


def test_a_backend_that_is_away(tmp_path: Path, url: str, metastore_server: MetastoreServer, eu: LogStandIn) -> None:
    """The log goes on without it; what it has is told later, and who waits for too long learns of it."""
    db = f"away{next(NUMBERS)}"
    backends = main_and_eu(metastore_server, eu)
    port = int(eu.uri.rpartition(":")[2])
    with front(tmp_path, url, backends, log_lag_seconds=3) as server, connected(server) as client:
        begin = last(client)
        eu.add("sales", "a")
        assert last(client) == begin + 1
        eu.__exit__()
        eu.close_connections()
        client.create_database(builders.database(db))
        assert told(after(client, begin + 1)) == [("CREATE_DATABASE", db, None)]
        wait_until(lambda: _refusal(client, begin), seconds=15)
        with pytest.raises(TApplicationException, match=r"the merged log is \d+ s behind it.*TTransportException"):
            last(client)
        assert told(after(client, begin, dbName=db)) == [("CREATE_DATABASE", db, None)]
        assert "log: followed up to 1, 0 events and" in client.getStatusDetails()
        server.write(backends, more(url, log_lag_seconds=3, unreachable="leave out"))
        wait_until(lambda: not _refusal(client, begin), seconds=15)
        with LogStandIn.at(port, eu) as again:
            again.add("sales", "b")
            wait_until(lambda: len(after(client, begin)) == 3, seconds=15)
            assert told(after(client, begin + 2)) == [("DROP_TABLE", "eu_sales", "b")]
        client.drop_database(db, True, True)


@pytest.mark.long
def test_a_backend_that_was_away_from_the_start(tmp_path: Path, url: str, eu: LogStandIn) -> None:
    """Nobody knows what it did meanwhile: nothing is read without it, or a loss is said."""
    with LogStandIn() as other:
        port = int(other.uri.rpartition(":")[2])
    backends = {
        "eu": f'uris = "{eu.uri}"\nprefix = "eu_"\nnumber = 1\n{FOLLOW}',
        "us": f'uris = "{other.uri}"\nprefix = "us_"\nnumber = 2\n{FOLLOW}',
    }
    with front(tmp_path, url, backends) as server, connected(server) as client:
        with pytest.raises(TApplicationException, match="the merged log has nothing of it yet"):
            last(client)
        server.write(backends, more(url, unreachable="leave out"))
        wait_until(lambda: not _refusal(client, 0))
        begin = last(client)
        eu.add("sales", "a")
        assert told(after(client, begin)) == [("DROP_TABLE", "eu_sales", "a")]
        other.add("sales", "unseen")
        with LogStandIn.at(port, other):
            wait_until(lambda: "us: up" in client.getStatusDetails() and _refusal(client, begin + 1))
            with pytest.raises(TApplicationException, match=rf"before its event 2.*go on after {begin + 2}$"):
                after(client, begin + 1)


def _refusal(client: ThriftClient, begin: int) -> bool:
    try:
        after(client, begin)
    except TApplicationException:
        return True
    return False


@pytest.mark.long
def test_what_a_lake_metastore_has_trimmed(tmp_path: Path, url: str) -> None:
    """While the front was away its backend has removed events, all of them."""
    keeps_one = ("--workers", "1", "--event-retention-count", "1", "--housekeeping-seconds", "0.2")
    with MetastoreServer(tmp_path / "own", *keeps_one) as own:
        backends = {"own": f'uris = "{own.uri}"\nprefix = "o_"\nnumber = 1\n{FOLLOW}'}
        with front(tmp_path, url, backends) as server, connected(server) as client:
            begin = last(client)
        with connected(own) as direct:
            for each in range(4):
                direct.create_database(builders.database(f"d{each}"))
            wait_until(lambda: len(after(direct, 0)) <= 1)
        with front(tmp_path, url, backends) as server, connected(server) as client:
            wait_until(lambda: "lost before" in client.getStatusDetails())
            with pytest.raises(TApplicationException, match=r"were removed there|can't be read any more"):
                after(client, begin)
            client.create_database(builders.database("o_new"))
            found = wait_until(lambda: after(client, begin + 1))
            assert ("CREATE_DATABASE", "o_new", None) in told(found)


@pytest.mark.long
def test_a_backend_that_hides_events_from_the_front(tmp_path: Path, url: str) -> None:
    """Readers learn that something happened, and the status why they don't learn what."""
    rights = ("--authorization", "sql-standard", "--trust-unproven-users", "--admins", "boss", "--workers", "1")
    with MetastoreServer(tmp_path / "own", *rights) as own, connected(own) as direct:
        direct.set_ugi("boss", [])
        text = f'uris = "{own.uri}"\nprefix = "o_"\nnumber = 1\nfollow_user = "nobody_special"\n{FOLLOW}'
        with front(tmp_path, url, {"own": text}) as server, connected(server) as client:
            begin = last(client)
            direct.create_database(builders.database("d"))
            assert told(after(client, begin)) == [("HIDDEN", None, None)]
            wait_until(lambda: "it hides events from nobody_special" in client.getStatusDetails())
        text = text.replace("nobody_special", "boss")
        with front(tmp_path, url, {"own": text}) as server, connected(server) as client:
            direct.create_table(builders.table("d", "t"))
            assert told(after(client, begin + 1)) == [("CREATE_TABLE", "o_d", "t")]


@pytest.mark.long
def test_events_that_do_not_fit_into_one_answer(tmp_path: Path, eu: LogStandIn) -> None:
    """In a front with a Postgres of its own."""
    directory = tmp_path / "front"
    copy_data_directory(directory / "data")
    federation = '[federation]\nlog_readers = "*"\nmax_reply_bytes = 1_000_000'
    text = f'uris = "{eu.uri}"\nprefix = "eu_"\nnumber = 1\n{FOLLOW}'
    with FrontServer(directory, {"eu": text}, more=federation) as server, connected(server) as client:
        begin = last(client)
        for each in range(30):
            eu.add("sales", f"t{each}", files=["x" * 150_000])
        wait_until(lambda: last(client) == begin + 30)
        names = []
        while len(names) < 30:
            names += [each.tableName for each in after(client, begin + len(names), maxEvents=5)]
        assert names == [f"t{each}" for each in range(30)]


def test_who_may_read(tmp_path: Path, url: str, eu: LogStandIn) -> None:
    backends = {"eu": f'uris = "{eu.uri}"\nprefix = "eu_"\nnumber = 1\n{FOLLOW}'}
    with front(tmp_path, url, backends, log_readers=["ann", "group:etl"]) as server:
        for user, groups, may in (("ann", [], True), ("bob", ["etl"], True), ("bob", ["sales"], False)):
            with connected(server) as client:
                client.set_ugi(user, groups)
                if may:
                    assert last(client) >= 0
                    continue
                for call in (lambda client=client: last(client), lambda client=client: after(client, 0)):
                    with pytest.raises((TApplicationException, MetaException), match="bob may not read"):
                        call()
    assert {name for _, name, _ in eu.calls} >= {"set_ugi"}


@pytest.mark.long
def test_two_fronts_have_one_log(tmp_path: Path, url: str, eu: LogStandIn) -> None:
    """One of them follows; if it is killed the other one does, and no event comes twice or is missed."""
    backends = {"eu": f'uris = "{eu.uri}"\nprefix = "eu_"\nnumber = 1\n{FOLLOW}'}
    with front(tmp_path, url, backends) as one, front(tmp_path, url, backends) as two:
        with connected(one) as client, connected(two) as other:
            begin = last(client)
            for each in range(20):
                eu.add("sales", f"t{each}")
                assert last([client, other][each % 2]) == begin + each + 1
            assert after(client, begin) == after(other, begin)
            one.kill()
            for each in range(20, 40):
                eu.add("sales", f"t{each}")
            events = after(other, begin)
            assert [each.tableName for each in events] == [f"t{each}" for each in range(40)]
            assert [each.eventId for each in events] == list(range(begin + 1, begin + 41))
            wait_until(lambda: "0 events and 0." in other.getStatusDetails(), seconds=15)
            one.start()
        with connected(one) as client:
            assert after(client, begin) == events
