"""The queue before what a login costs: turns, pauses, bounds, and clients that have left."""

import contextlib
import threading
import time
import types
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from metastore.server.credentials import fair_threads, json_web_tokens
from metastore.server.credentials.failures import FREE, FailedLogins
from metastore.server.credentials.fair_threads import FairThreads, Job, shared_address
from metastore.server.credentials.identity import Denied, TooMany
from tests.support.waiting import wait_until


class Place(NamedTuple):
    """Two threads, of which one is held by each `hold` of an address; and what became of jobs, in order."""

    threads: FairThreads
    failures: FailedLogins
    told: list[str]
    free: threading.Event

    def add(self, peer: str, user: str = "", **more: object) -> None:
        name = f"{peer}/{user}"
        self.threads.submit(
            Job(
                f"{peer}:1",
                lambda: self.told.append(name),
                lambda refusal: self.told.append(f"refused {name}"),
                user=user,
                **more,  # type: ignore[arg-type]
            )
        )

    def hold(self, *peers: str) -> None:
        """Has a thread wait for `free` on behalf of each address."""
        for peer in peers:
            begun = threading.Event()

            def work(begun: threading.Event = begun) -> None:
                begun.set()
                self.free.wait(30)

            self.threads.submit(Job(f"{peer}:1", work, lambda refusal: None))
            assert begun.wait(30)


@pytest.fixture
def place() -> Iterator[Place]:
    failures = FailedLogins()
    found = Place(FairThreads("password", 2, failures), failures, [], threading.Event())
    yield found
    found.free.set()


def fail(place: Place, address: str) -> None:
    for _ in range(FREE + 1):
        place.failures.failed(address)


def test_an_address_has_half_of_the_threads_at_most(place: Place) -> None:
    place.hold("10.0.0.1")
    for user in ("a", "b", "c"):
        place.add("10.0.0.1", user)
    place.add("10.0.0.2", "d")
    wait_until(lambda: place.told == ["10.0.0.2/d"])
    place.free.set()
    wait_until(lambda: place.told == ["10.0.0.2/d", "10.0.0.1/a", "10.0.0.1/b", "10.0.0.1/c"])


def test_addresses_take_turns_and_so_do_users_of_one_address(place: Place) -> None:
    place.hold("10.0.0.8", "10.0.0.9")
    for user in ("a", "a", "a", "b"):
        place.add("10.0.0.1", user)
    place.add("10.0.0.2", "c")
    place.threads.submit(Job("10.0.0.3:1", place.free.clear, lambda refusal: None))  # one thread goes on alone
    place.free.set()
    wait_until(lambda: len(place.told) == 5)
    assert place.told.index("10.0.0.2/c") <= 2
    assert place.told.index("10.0.0.1/b") < 4


def test_a_client_that_left_costs_nothing(place: Place) -> None:
    place.hold("10.0.0.8", "10.0.0.9")
    place.add("10.0.0.1", "left", gone=lambda: True)
    place.add("10.0.0.1", "here")
    place.free.set()
    wait_until(lambda: "10.0.0.1/here" in place.told)
    assert "10.0.0.1/left" not in place.told


def test_a_client_that_sends_no_more_is_answered_unless_there_is_a_crowd(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.add("10.0.0.1", "calm", half_closed=lambda: True)
    wait_until(lambda: place.told == ["10.0.0.1/calm"])
    monkeypatch.setattr(fair_threads, "_HALF_CLOSED_SECONDS", -1)
    place.add("10.0.0.1", "crowded", half_closed=lambda: True)
    wait_until(lambda: place.told[1:] == ["refused 10.0.0.1/crowded"])


def test_an_address_where_logins_failed_has_a_short_queue_and_pauses(place: Place) -> None:
    fail(place, "10.0.0.1")
    assert 0 < place.failures.pause("10.0.0.1") <= 1
    for _ in range(fair_threads.MOST_OF_FAILING_ADDRESS + 3):
        place.add("10.0.0.1", "guesses")
    assert place.told == ["refused 10.0.0.1/guesses"] * 3
    place.add("10.0.0.1", "ann")  # takes the place of the user who has most
    assert place.told[3:] == ["refused 10.0.0.1/guesses"]
    place.add("10.0.0.2", "carl")
    wait_until(lambda: place.told[4:] == ["10.0.0.2/carl"])
    wait_until(lambda: "10.0.0.1/ann" in place.told)


def test_nobody_waits_for_long(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_threads, "LONGEST_WAIT_SECONDS", 0.05)
    place.hold("10.0.0.8", "10.0.0.9")
    place.add("10.0.0.1", "ann")
    time.sleep(0.1)
    place.free.set()
    wait_until(lambda: place.told == ["refused 10.0.0.1/ann"])


def test_the_queue_of_all_addresses_is_bounded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_threads, "MOST_WAITING", 4)
    place.hold("10.0.0.8", "10.0.0.9")
    for user in ("a", "b", "c"):
        place.add("10.0.0.1", user)
    place.add("10.0.0.2", "d")
    place.add("10.0.0.3", "e")
    assert place.told == ["refused 10.0.0.1/c"], "it is one of the busiest address that is refused"


def test_a_call_returns_what_its_function_does(place: Place) -> None:
    def fails() -> None:
        raise ValueError("no")

    assert place.threads.call("10.0.0.1:1", "ann", lambda: 7, lambda: False) == 7
    with pytest.raises(ValueError, match="no"):
        place.threads.call("10.0.0.1:1", "ann", fails, lambda: False)
    fail(place, "10.0.0.1")
    for _ in range(fair_threads.MOST_OF_FAILING_ADDRESS):
        place.add("10.0.0.1")
    with pytest.raises(TooMany, match="try again"):
        place.threads.call("10.0.0.1:1", "", lambda: 7, lambda: False)


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("10.1.2.3:4000", "10.1.2.3"),
        ("[2001:db8:1:2:3::4]:4000", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2:ffff::5]:4001", "2001:db8:1:2::/64"),
        ("[::ffff:10.1.2.3]:4000", "10.1.2.3"),
        ("[fe80::1%eth0]:4000", "fe80::/64"),
        ("unknown", ""),
    ],
)
def test_addresses_of_one_network_count_as_one(peer: str, address: str) -> None:
    assert shared_address(peer) == address


def test_failures_are_forgotten_one_address_at_a_time() -> None:
    failures = FailedLogins()
    for _ in range(FREE):
        failures.failed("10.0.0.1")
    assert not failures.is_failing("10.0.0.1") and failures.pause("10.0.0.1") == 0
    failures.failed("10.0.0.1")
    assert failures.is_failing("10.0.0.1")
    assert not failures.is_failing("10.0.0.2") and failures.pause("10.0.0.2") == 0


def test_tokens_with_known_keys_do_not_wait_for_a_fetch_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = json_web_tokens.KeySet("https://issuer.example/keys")
    known = types.SimpleNamespace(key_type="RSA", key_id="a", key="the key", _jwk_data={})
    monkeypatch.setattr(json_web_tokens, "_parsed", lambda data: [known])
    monkeypatch.setattr(json_web_tokens, "_fetch", lambda url: b"")
    assert keys.find("a", "RS256") == "the key"
    begun, free = threading.Event(), threading.Event()

    def slow(url: str) -> bytes:
        begun.set()
        free.wait(30)
        return b""

    def ask_for_another() -> None:
        with contextlib.suppress(Denied):
            keys.find("b", "RS256")

    monkeypatch.setattr(json_web_tokens, "_fetch", slow)
    monkeypatch.setattr(json_web_tokens, "REFETCH_SECONDS", 0)
    stranger = threading.Thread(target=ask_for_another)
    stranger.start()
    assert begun.wait(30)
    found: list[object] = []
    user = threading.Thread(target=lambda: found.append(keys.find("a", "RS256")))
    user.start()
    user.join(10)
    free.set()
    stranger.join()
    assert found == ["the key"]
