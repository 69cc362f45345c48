"""Backends that are down, hang or lose answers: others are unhurt, nothing is missing in silence or done twice."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    Database,
    GetProjectionsSpec,
    GetTablesRequest,
    GetTablesResult,
    MetaException,
    ShowLocksRequest,
    ShowLocksResponse,
    Table,
    UnknownDBException,
)
from tests.metastore.federation.stand_in import HangUp, StandIn
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.waiting import wait_until

DEAD = "thrift://127.0.0.1:1"  # nobody listens there
QUICK = "connect_seconds = 1\nreply_seconds = 1\npause_seconds = 0.5"


def answers(*databases: str, **more: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {
        "get_all_databases": lambda: list(databases),
        "get_database": lambda name: Database(name=name),
        "get_table": lambda db, table: Table(dbName=db, tableName=table),
        "create_table": lambda table: None,
        **more,
    }


@pytest.fixture
def good() -> Iterator[StandIn]:
    with StandIn(answers("default", "sales")) as server:
        yield server


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=100)) as listener:
        yield f"thrift://127.0.0.1:{listener.getsockname()[1]}"


def front(tmp_path: Path, good: StandIn, bad: str, *, more: str = "", settings: str = QUICK) -> FrontServer:
    backends = {
        "good": f'uris = "{good.uri}"\nprimary = true',
        "bad": f'uris = "{bad}"\nprefix = "bad_"\n{settings}',
    }
    return FrontServer(tmp_path / "front", backends, more=more)


def test_a_backend_that_is_down(tmp_path: Path, good: StandIn) -> None:
    with front(tmp_path, good, DEAD) as server, ThriftClient(server.host, server.port) as client:
        for _ in range(5):  # before and after the front leaves it alone
            with pytest.raises(MetaException, match=r"backend bad of this front can't be reached.*TTransportException"):
                client.get_table("bad_sales", "t")
            with pytest.raises(MetaException, match="can't be reached"):
                client.get_database("bad_sales")
            with pytest.raises(MetaException, match="can't be reached"):
                client.get_all_databases()
            assert client.get_table("sales", "t").tableName == "t"
        assert "bad: down" in client.getStatusDetails()
        assert "a backend is down" in server.log.read_text()


def test_lists_may_come_without_it_and_say_so(tmp_path: Path, good: StandIn) -> None:
    more = '[federation]\nunreachable = "leave out"'
    with front(tmp_path, good, DEAD, more=more) as server, ThriftClient(server.host, server.port) as client:
        assert client.get_all_databases() == ["default", "sales"]
        with pytest.raises(MetaException, match="can't be reached"):
            client.get_database("bad_sales")
        assert "a list comes without a backend" in server.log.read_text()


@pytest.mark.long
def test_it_comes_back(tmp_path: Path, good: StandIn) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as place:
        port = place.getsockname()[1]
    with (
        front(tmp_path, good, f"thrift://127.0.0.1:{port}") as server,
        ThriftClient(server.host, server.port) as client,
    ):
        for _ in range(4):
            with pytest.raises(MetaException):
                client.get_database("bad_x")
        with StandIn(answers("x"), port=port):
            wait_until(lambda: _answers(client), 5)
            assert "bad: up" in client.getStatusDetails()


def _answers(client: ThriftClient) -> bool:
    try:
        return bool(client.get_database("bad_x").name == "bad_x")
    except MetaException:
        return False


def test_others_dont_wait_for_one_that_hangs(tmp_path: Path, good: StandIn, silent: str) -> None:
    settings = "reply_seconds = 60\nconnections = 4\nfailures = 100"
    more = "[federation]\nlist_seconds = 1\n[server]\nthreads = 16\ndrain_seconds = 1"
    with front(tmp_path, good, silent, settings=settings, more=more) as server:
        hanging = [ThriftClient(server.host, server.port) for _ in range(30)]
        for each in hanging:
            each._transport.write(_call("get_database", "bad_x"))
            each._transport.flush()
        time.sleep(1.5)
        with ThriftClient(server.host, server.port) as client:
            started = time.monotonic()
            for _ in range(50):
                client.get_table("sales", "t")
            assert time.monotonic() - started < 5  # of a minute that the other would take
            with pytest.raises(MetaException, match="bad"):
                client.get_all_databases()
            assert time.monotonic() - started < 10
        for each in hanging:
            each.close()


def _call(name: str, *values: Any) -> bytes:
    from lake.protocol.codec import binary
    from lake.protocol.services import METHODS

    cls: Any = METHODS[name].args
    return binary.message_header(name, binary.CALL, 1) + binary.encode(cls(*values))


def test_a_change_is_never_sent_twice(tmp_path: Path, good: StandIn) -> None:
    def hang_up(*_: Any) -> None:
        raise HangUp

    with (
        StandIn(answers("x", create_table=hang_up, get_table=hang_up)) as bad,
        front(tmp_path, good, bad.uri) as server,
        ThriftClient(server.host, server.port) as client,
    ):
        with pytest.raises(MetaException, match="nobody knows whether the change was made") as refused:
            client.create_table(builders.table("bad_x", "t"))
        assert "TTransportException" not in str(refused.value)  # or Hive's clients would send it again
        assert bad.names() == ["create_table"]
        with pytest.raises(MetaException, match="TTransportException"):
            client.get_table("bad_x", "t")
        assert bad.names() == ["create_table", "get_table", "get_table"]


@pytest.mark.long
def test_a_change_goes_over_a_connection_that_is_open(tmp_path: Path, good: StandIn) -> None:
    """An idle connection that the backend has closed is not used: nothing has left by then."""
    with front(tmp_path, good, DEAD) as server, ThriftClient(server.host, server.port) as client:
        client.get_table("sales", "t")
        good.close_connections()
        client.create_table(builders.table("sales", "t"))
        assert good.names() == ["get_table", "create_table"]


@pytest.mark.long
def test_callers_go_by_their_own_names(tmp_path: Path, good: StandIn) -> None:
    with front(tmp_path, good, DEAD) as server:
        for user in ("ann", "bob", "ann"):
            with ThriftClient(server.host, server.port) as client:
                client.set_ugi(user, [f"{user}s"])
                client.get_table("sales", user)
        by_connection: dict[int, list[tuple[str, list[Any]]]] = {}
        for connection, name, values in good.calls:
            if name == "getMetaConf":  # asked of each new connection
                continue
            by_connection.setdefault(connection, []).append((name, values))
        ann, bob = by_connection.values()
        assert ann == [("set_ugi", ["ann", ["anns"]]), ("get_table", ["sales", "ann"]), ("get_table", ["sales", "ann"])]
        assert bob == [("set_ugi", ["bob", ["bobs"]]), ("get_table", ["sales", "bob"])]


@pytest.mark.long
def test_few_connections_carry_many_callers(tmp_path: Path, good: StandIn) -> None:
    with FrontServer(tmp_path / "front", {"good": f'uris = "{good.uri}"\nconnections = 2'}) as server:
        clients = [ThriftClient(server.host, server.port) for _ in range(20)]
        for number, client in enumerate(clients):
            client.set_ugi(f"user{number % 5}", [])
        for client in clients:
            assert client.get_table("sales", "t").dbName == "sales"
            client.close()
        assert good.open <= 2


@pytest.mark.long
def test_reads_go_to_a_copy_until_the_connection_writes(tmp_path: Path, good: StandIn) -> None:
    settings = "prefix = 'c_'\nread_after_write_seconds = 2\nfailures = 1\npause_seconds = 0.1"
    with StandIn(answers("sales")) as copy:
        backends = {"it": f'uris = "{good.uri}"\nread_uris = "{copy.uri}"\n{settings}'}
        with FrontServer(tmp_path / "front", backends) as server, ThriftClient(server.host, server.port) as client:
            client.get_table("c_sales", "t")
            assert (good.names(), copy.names()) == ([], ["get_table"])
            client.create_table(builders.table("c_sales", "t"))
            client.get_table("c_sales", "t")
            assert (good.names(), copy.names()) == (["create_table", "get_table"], ["get_table"])
            with ThriftClient(server.host, server.port) as other:
                other.get_table("c_sales", "t")
            assert copy.names() == ["get_table"] * 2
            time.sleep(2)
            client.get_table("c_sales", "t")
            assert copy.names() == ["get_table"] * 3
            copy.__exit__()
            copy.close_connections()
            assert client.get_table("c_sales", "t").dbName == "c_sales"  # the backend itself is there
            assert good.names()[2:] == ["get_table"]


def test_what_is_read_only(tmp_path: Path, good: StandIn) -> None:
    with (
        StandIn(answers("x", "y")) as other,
        front(tmp_path, good, other.uri, settings='read_only = ["x*"]') as server,
        ThriftClient(server.host, server.port) as client,
    ):
        with pytest.raises(MetaException, match=r"read-only here \(backends\.bad\.read_only\)"):
            client.create_table(builders.table("bad_x", "t"))
        assert client.get_table("bad_x", "t").dbName == "bad_x"
        client.create_table(builders.table("bad_y", "t"))
        assert other.names() == ["get_table", "create_table"]


def test_the_file_is_taken_again(tmp_path: Path, good: StandIn) -> None:
    one = {"good": f'uris = "{good.uri}"'}
    with FrontServer(tmp_path / "front", one) as server, ThriftClient(server.host, server.port) as client:
        assert client.get_all_databases() == ["default", "sales"]
        server.write({**one, "more": f'uris = "{good.uri}"\nprefix = "more_"'})
        wait_until(lambda: "more_sales" in client.get_all_databases(), 5)
        assert client.get_database("more_sales").name == "more_sales"
        assert good.connections == 2  # the first one went on
        server.write({**one, "more": f'uris = "{good.uri}"'})
        wait_until(lambda: "can't be used" in server.log.read_text(), 5)
        assert client.get_database("more_sales").name == "more_sales"


def test_requests_for_another_backend_than_the_first(tmp_path: Path, good: StandIn) -> None:
    """By the id that they name, by what the connection has selected, and by a pattern of databases."""
    shown: dict[str, Callable[..., Any]] = {
        "show_locks": lambda asked: ShowLocksResponse([]),
        "get_table_objects_by_name_req": lambda asked: GetTablesResult([Table(tableName=asked.dbName)]),
        "get_config_value": lambda name, default: "there",
    }
    with (
        StandIn(answers("default", "sales", "people", **shown)) as own,
        StandIn(answers("sales", "secret", **shown)) as other,
    ):
        first = {"own": f'uris = "{own.uri}"\nprimary = true\ndeny = "people"'}
        second = {"bad": f'uris = "{other.uri}"\nprefix = "bad_"\nnumber = 1\ndeny = "secret"'}
        with (
            FrontServer(tmp_path / "front", first | second) as server,
            ThriftClient(server.host, server.port) as client,
        ):
            # Hive reads no more of it, and takes the rest for the next call.
            incomplete = ColumnStatistics(ColumnStatisticsDesc(True, "bad_sales", None), [])
            with pytest.raises(TApplicationException, match="tableName"):
                client.update_table_column_statistics(incomplete)
            client.show_locks(ShowLocksRequest(txnid=1 << 48 | 7))
            assert (own.names(), other.names()) == ([], ["show_locks"])
            assert other.calls[-1][2][0].txnid == 7
            request = GetTablesRequest("*", tablesPattern="*", projectionSpec=GetProjectionsSpec(["tableName"]))
            found = [each.tableName for each in client.get_table_objects_by_name_req(request).tables]
            assert found == ["sales", "default", "sales"]  # of bad_sales first, and of none that is hidden
            request.dbName = "*ople|bad_se*|people|*cret"
            with pytest.raises(UnknownDBException):
                client.get_table_objects_by_name_req(request)
            client.setMetaConf("federation.backend", "bad")
            assert client.get_config_value("x", "") == "there"
            assert "get_config_value" not in own.names()
            server.write(first)
            for call in (lambda: client.get_config_value("x", ""), lambda: client.show_locks(ShowLocksRequest())):
                wait_until(lambda call=call: "has it no more" in _refusal(call), 5)  # type: ignore[misc]
            assert {"get_config_value", "show_locks"}.isdisjoint(own.names())
            client.setMetaConf("federation.backend", "")
            assert client.get_config_value("x", "") == "there"


def _refusal(call: Callable[[], Any]) -> str:
    try:
        call()
    except (MetaException, TApplicationException) as error:
        return error.message or ""
    return ""


@pytest.mark.long
def test_an_answer_with_a_name_that_is_hidden(tmp_path: Path) -> None:
    with (
        StandIn(answers("sales", get_table=lambda db, table: Table(dbName="secret", tableName=table))) as server,
        FrontServer(tmp_path / "front", {"it": f'uris = "{server.uri}"\nprefix = "x_"\ndeny = "secret"'}) as front,
        ThriftClient(front.host, front.port) as client,
        pytest.raises(MetaException, match="hides it"),
    ):
        client.get_table("x_sales", "t")
