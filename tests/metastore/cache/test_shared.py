"""The second level, on a real Redis."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.cache import shared
from metastore.cache.entry import Entry
from metastore.cache.shared import SharedLevel
from metastore.cache.stamp import Stamp
from tests.support.redis import RedisServer
from tests.support.waiting import wait_until

HERE = "incarnation"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def servers(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[SharedLevel]]:
    """The level as two servers have it, patient with a Redis on a busy machine."""
    monkeypatch.setattr(shared, "TIMEOUT_SECONDS", 30.0)
    monkeypatch.setattr(shared, "SLOW_SECONDS", 30.0)
    with redis.client() as client:
        client.flushall()
    levels = [SharedLevel(redis.url, keep_seconds=60) for _ in range(2)]
    yield levels
    for level in levels:
        level.close()


def entry(body: bytes = b"reply") -> Entry:
    return Entry(body, Stamp.of(HERE, "10:12:11"), [("t", 1), ("p", 1)])


def test_what_one_puts_the_other_gets(servers: list[SharedLevel]) -> None:
    one, other = servers
    one.put(b"key", entry())
    wait_until(lambda: other.get(HERE, b"key"))
    found = other.get(HERE, b"key")
    assert found is not None
    assert (found.body, found.stamp, found.objects) == (b"reply", entry().stamp, entry().objects)
    assert other.get("another incarnation", b"key") is None


def test_one_reads_what_all_want(servers: list[SharedLevel], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_PAUSES", (0.01,) * 1000)
    monkeypatch.setattr(shared, "READING_SECONDS", 60)
    one, other = servers
    assert one.get_or_read(HERE, b"key") is None, "it is to read it"
    found: list[Entry | None] = []
    waiting = threading.Thread(target=lambda: found.append(other.get_or_read(HERE, b"key")))
    waiting.start()
    time.sleep(0.1)  # in which it may not return
    assert not found, "the other one waits"
    one.put(b"key", entry())
    waiting.join()
    assert found[0] is not None and found[0].body == b"reply"


def test_what_is_put_while_one_looks_is_found(
    redis: RedisServer, servers: list[SharedLevel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look for a reply and the question who reads it."""
    monkeypatch.setattr(shared, "READING_SECONDS", 60)
    one, other = servers
    assert one.get_or_read(HERE, b"key") is None
    ask, asked = other._is_ours, []

    def ask_late(name: str) -> bool:
        if asked:
            one.put(b"key", entry())
            with redis.client() as client:
                wait_until(lambda: client.exists(name) and not client.exists(shared._reading(name)))
        asked.append(name)
        return ask(name)

    monkeypatch.setattr(other, "_is_ours", ask_late)
    found = other.get_or_read(HERE, b"key")
    assert found is not None and found.body == b"reply"


def test_who_waits_reads_what_the_other_one_could_not_keep(servers: list[SharedLevel]) -> None:
    one, other = servers
    assert one.get_or_read(HERE, b"key") is None
    one.left(HERE, b"key")
    assert other.get_or_read(HERE, b"key") is None


def test_nobody_waits_for_long(servers: list[SharedLevel]) -> None:
    one, other = servers
    assert one.get_or_read(HERE, b"key") is None
    assert other.get_or_read(HERE, b"key") is None, "although the first one has died"


def test_what_somebody_else_put_there_is_nothing(redis: RedisServer, servers: list[SharedLevel]) -> None:
    name = shared._name(HERE, b"key")
    with redis.client() as client:
        for value in ("", "\x01", "\x02\x00\x00\x00\x02" + "\x00" * 8 + "[]", "x" * 10_000, "[" * 10_000):
            client.set(name, value)
            assert servers[0].get(HERE, b"key") is None


def test_a_redis_that_is_away_is_not_asked_for_a_while(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        level = SharedLevel(server.url, keep_seconds=60)
        level.put(b"key", entry())
        wait_until(lambda: level.get(HERE, b"key"))
        server.kill()
        for _ in range(shared.FAILURES):
            assert level.get_or_read(HERE, b"key") is None
        server.start()
        assert level.get(HERE, b"key") is None, "it isn't asked, although it is there again"
        wait_until(lambda: level.get(HERE, b"key"))
        level.close()


def test_a_redis_that_dawdles_is_not_asked_for_a_while(
    servers: list[SharedLevel], monkeypatch: pytest.MonkeyPatch
) -> None:
    level, _ = servers
    level.put(b"key", entry())
    wait_until(lambda: level.get(HERE, b"key"))
    monkeypatch.setattr(shared, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(shared, "SLOW_BYTES", 1 << 60)
    found = [level.get(HERE, b"key") for _ in range(shared.FAILURES)]
    assert all(each is not None and each.body == b"reply" for each in found), "what it says counts nevertheless"
    assert level.get(HERE, b"key") is None
