"""Servers, commands and a follower that are killed at random moments while a database comes over and goes back."""

import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from thrift.Thrift import TException

from lake.protocol.errors import UserError
from metastore.migration.followed import Home, all_of
from metastore.migration.objects import MOVED_TO, MOVING_TO
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.places import Going, Killable, Place
from tests.metastore.migration.random_changes import Tables
from tests.support import builders

ATTEMPTS = 20
"""Of a command, before a test fails. The first ones are killed early."""


class Repeated:
    """Does something again and again in a thread of its own."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on)
        self._error: BaseException | None = None

    def _go_on(self) -> None:
        try:
            while not self._ended.is_set():
                self._action()
        except BaseException as error:
            self._error = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        assert self._error is None, self._error


class Storm(Repeated):
    """Kills servers, one at a time, and starts them again, a few times. `kills`: which."""

    def __init__(self, servers: Mapping[str, Killable], rng: random.Random) -> None:
        super().__init__(self._kill_one)
        self._servers = servers
        self._rng = rng
        self._most = rng.randint(2, 5)
        self.kills: list[str] = []

    def _kill_one(self) -> None:
        if self._ended.wait(self._rng.uniform(3, 15)) or len(self.kills) == self._most:
            return
        name = self._rng.choice(sorted(self._servers))
        self.kills.append(name)
        self._servers[name].kill()
        time.sleep(self._rng.uniform(0, 2))
        self._servers[name].start()


def over_and_back(place: Place, directory: Path, seed: int) -> None:
    """A database comes over and goes back: no acknowledged write is lost or doubled."""
    rng = random.Random(seed)
    name = f"kill_{seed}"
    options = ("--databases", f"{name}*")
    answered(lambda: place.tables("default"))  # a front is slow to forget that a backend was down
    with place.client() as client:
        client.create_database(builders.database(name, locationUri=f"file:{directory}/{name}"))
    kept: Tables = {}
    kills: list[str] = []
    changes = unsure = 0

    def followed() -> None:
        place.killed(rng.uniform(2, 10), "follow", *options, "--patience", "5")
        time.sleep(0.5)

    for turn, (what, home, server) in enumerate((("cut-over", Home.HERE, "ours"), ("roll-back", Home.THERE, "old"))):
        storm = Storm(place.servers, random.Random(seed * 10 + turn))
        with Going(place, name, directory, seed * 10 + turn, kept) as going, storm:
            if turn == 0:
                insisted(place, rng, "import", *options, done=lambda: is_imported(place, options[1]))
            with Repeated(followed):
                insisted(place, rng, what, name, *options, done=lambda home=home: place.home(name) is home)
            time.sleep(rng.uniform(0.5, 2))
        kept = going.writer.kept
        kills += storm.kills
        changes, unsure = changes + going.writer.done, unsure + going.writer.unsure
        with place.client(server) as client:
            going.check(client)
        with place.client("old") as client:
            marked = (client.get_database(name).parameters or {}).keys() & {MOVING_TO, MOVED_TO}
            assert marked == ({MOVED_TO} if home is Home.HERE else set())
    print(f"seed {seed}: {changes} changes, {unsure} of them without an answer; killed: {', '.join(kills)}")
    assert changes > 20


def insisted(place: Place, rng: random.Random, what: str, *words: str, done: Callable[[], bool]) -> None:
    """A command is started again until it is done; the first times it is killed soon."""
    for attempt in range(ATTEMPTS):
        place.killed(rng.uniform(1, 8) if attempt < 2 else 120, what, *words)
        if answered(done):
            return
    raise AssertionError(f"{what} {words} doesn't end, see {place.said}: {place.said.read_text()[-3000:]}")


def is_imported(place: Place, databases: str) -> bool:
    here = ThriftSource(place.ours.uri)
    try:
        return any(each.state.imported for each in all_of(here, place.old) if each.databases == databases)
    finally:
        here.close()


def answered(question: Callable[[], Any]) -> Any:
    """The answer of a server that may be down just now."""
    deadline = time.monotonic() + 120
    while True:
        with suppress(UserError, TException, OSError):
            return question()
        assert time.monotonic() < deadline
        time.sleep(0.2)
