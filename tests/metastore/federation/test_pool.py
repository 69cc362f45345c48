"""The connections to a backend: few, each for one caller at a time, none that nobody counts."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lake.protocol.codec import binary
from lake.protocol.hive import MetaException, Table
from lake.protocol.services import METHODS
from metastore.federation.configuration import Backend, Configuration
from metastore.federation.errors import Busy, Unreachable
from metastore.federation.front import Exchange, Front, Who
from metastore.federation.mapping import Mapping
from metastore.federation.pool import Identity, Pool
from tests.metastore.federation.stand_in import HangUp, StandIn

GET_TABLE = METHODS["get_table"]
LIMIT = 1 << 20


def pool(uri: str, **settings: Any) -> Pool:
    return Pool("it", Backend.model_validate({"uris": uri, **settings}), LIMIT)


def get_table(of: Pool, user: str, table: str) -> str | None:
    arguments: Any = GET_TABLE.args
    exchange = Exchange(of, Identity(user), GET_TABLE, binary.encode(arguments("d", table)), resend=True)
    _, body = exchange.whole(exchange.begin())
    result: Any = binary.decode(GET_TABLE.result, body)
    name: str | None = result.success.tableName
    return name


def test_many_callers_get_their_own_answers_over_few_connections() -> None:
    """Some connections break; each caller's name goes with its own calls."""
    rng = random.Random(1)
    wrong: list[str] = []

    def answer(db: str, table: str) -> Table:
        if rng.random() < 0.05:
            raise HangUp
        return Table(dbName=db, tableName=table)

    with StandIn({"get_table": answer}) as backend:
        tested = pool(backend.uri, connections=3, failures=1_000)

        def work(number: int) -> None:
            for turn in range(20):
                name = f"t{number}.{turn}"
                try:
                    found = get_table(tested, f"user{number % 4}", name)
                except Unreachable:  # the second connection broke, too
                    continue
                if found != name:
                    wrong.append(name)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
        assert not any(each.is_alive() for each in threads)
        assert wrong == []
        assert tested._open == len(tested._idle) <= 3
        users = {connection: values[0] for connection, name, values in backend.calls if name == "set_ugi"}
        for connection, name, values in backend.calls:
            if name == "get_table":
                assert users[connection] == f"user{int(values[1][1:].partition('.')[0]) % 4}"


def test_it_is_left_alone_and_then_tried_by_one() -> None:
    tested = pool("thrift://127.0.0.1:1", failures=2, pause_seconds=0.2)
    for _ in range(2):
        with pytest.raises(Unreachable, match="Could not connect"):
            tested.take(Identity(None))
    assert tested.state == "down"
    began = time.monotonic()
    with pytest.raises(Unreachable):
        tested.take(Identity(None))
    assert time.monotonic() - began < 0.1
    time.sleep(0.25)
    with StandIn({}) as backend:
        tested.settings = tested.settings.model_copy(update={"uris": (backend.uri,)})
        tested._uris = iter([backend.uri] * 9)  # type: ignore[assignment]
        relay = tested.take(Identity(None))
        with pytest.raises(Unreachable):
            tested.take(Identity(None))  # until the one has its answer
        tested.succeeded()
        tested.give_back(relay, Identity(None), usable=True)
        assert tested.take(Identity(None)) is relay


def test_nobody_waits_for_one_that_has_fallen_silent() -> None:
    with StandIn({}) as backend:
        tested = pool(backend.uri, connections=1, wait_seconds=60)
        tested.take(Identity(None))
        began = time.monotonic()
        with pytest.raises(Busy, match="answered nothing"):
            tested.take(Identity(None))
        assert 0.5 < time.monotonic() - began < 5


def test_a_busy_one_is_waited_for() -> None:
    with StandIn({}) as backend:
        tested = pool(backend.uri, connections=1)
        relay = tested.take(Identity("a"))
        threading.Timer(0.3, lambda: tested.give_back(relay, Identity("a"), usable=True)).start()
        other = tested.take(Identity("b"))  # it makes room for another caller
        assert other is not relay
        assert tested._open == 1


def test_a_backend_that_hangs_keeps_no_threads_of_others() -> None:
    """However many lists wait for it, and however many connections it may have."""
    ended = threading.Event()
    with (
        StandIn({"get_all_databases": lambda: ["a"]}) as good,
        StandIn({"get_all_databases": lambda: ended.wait(60) and []}) as bad,
    ):
        front = Front(
            Mapping(
                Configuration.model_validate(
                    {
                        "federation": {"list_seconds": 1, "unreachable": "leave out"},
                        "backends": {
                            "good": {"uris": good.uri},
                            "bad": {"uris": bad.uri, "prefix": "bad_", "connections": 100, "failures": 1_000},
                        },
                    }
                )
            ),
            lambda name: False,
            lambda backend: None,
        )
        request = front.begin(Who(Identity(None)))
        found: list[Any] = []

        def work() -> None:
            found.append(request.of_all(lambda each: request.ask(each, "get_all_databases"), ["good", "bad"]))

        threads = [threading.Thread(target=work) for _ in range(80)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        ended.set()
        assert found == [[("good", ["a"])]] * 80
        assert {each.backend: each.state for each in front.pools}["good"] == "up"
        front.close()


def test_who_is_not_taken_stops_no_others() -> None:
    """Hive ends the connection of who calls by a name that it can't use, such as one with a realm that it doesn't
    know. A server that takes nobody is down."""
    takes = True

    def set_ugi(user: str, groups: list[str]) -> list[str]:
        if not takes or "@" in user:
            raise HangUp
        return groups

    def get_meta_conf(key: str) -> Any:
        if not takes:
            raise HangUp
        return MetaException(f"{key} is unknown")

    def table(db: str, name: str) -> Table:
        if name == "crash":
            raise HangUp
        return Table(dbName=db, tableName=name)

    answers: dict[str, Callable[..., Any]] = {"get_table": table, "set_ugi": set_ugi, "getMetaConf": get_meta_conf}
    with StandIn(answers) as backend:
        tested = pool(backend.uri, failures=1, connections=1)
        for _ in range(3):
            with pytest.raises(MetaException, match="ends the connections of who calls as 'mallory@elsewhere'"):
                get_table(tested, "mallory@elsewhere", "t")
            with pytest.raises(Unreachable):
                get_table(tested, "mallory", "crash")
        assert get_table(tested, "ann", "t") == "t"
        takes = False
        with pytest.raises(Unreachable):
            get_table(tested, "bob", "t")
        assert tested.state == "down"
