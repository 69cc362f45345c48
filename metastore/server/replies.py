"""Answers reads with replies that are kept, and keeps replies. In the event loop, except where a comment says other.

A request that may be answered so waits for a round (metastore.server.rounds). If the reply that is kept still holds it
is given; else one request reads it anew, be it from Redis or from the database, and those that want the same wait.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from metastore.api.registry import HANDLERS
from metastore.api.session import Session
from metastore.cache.changes import Changes
from metastore.cache.entry import Entry
from metastore.cache.memory import Memory
from metastore.cache.shared import SharedLevel
from metastore.cache.stamp import Stamp
from metastore.server import metrics
from metastore.server.rounds import Rounds
from metastore.server.threads import ThreadPool
from metastore.store import cache_changes
from metastore.store.footprint import Footprint
from metastore.wire.hive_versions import NEW_SINCE_2_3

log = structlog.get_logger(__name__)

_LARGEST_PART = 4  # of the memory that one reply may fill, as a divisor
_LONG_KEY = 256  # bytes; of longer requests the hash is kept
_WAITS = 3
_WAIT_SECONDS = 0.5
_RENEW_SECONDS = cache_changes.KEEP_SECONDS / 2


class Asker(Protocol):
    """Who waits for a reply."""

    def give(self, body: bytes) -> None:
        """Here it is."""

    def work(self) -> None:
        """It has to be read: in a request's thread."""


@dataclass(slots=True)
class Question:
    """A request that may be answered with a reply that is kept. `waits`: how often for another one's reading."""

    asker: Asker
    key: bytes
    asked_redis: bool = False
    waits: int = 0


class Replies:
    """The cache of one worker."""

    def __init__(self, url: str, capacity: int, shared: SharedLevel | None, begin_anew: Callable[[], None]) -> None:
        """`url` is SQLAlchemy's, `capacity` in bytes. `begin_anew`: called, in a thread, after a crash of Postgres."""
        self._begin_anew = begin_anew
        self._changes = Changes()
        self._rounds = Rounds(url, self._changes, self._begin_incarnation)
        self._memory = Memory(capacity)
        self._shared = shared
        self._methods = frozenset(name.encode() for name, handler in HANDLERS.items() if handler.cached)
        self._reading: dict[bytes, list[Question]] = {}  # who waits while somebody reads
        self.largest = capacity // _LARGEST_PART
        """Bytes of the longest reply that is kept."""

    def start(self, threads: ThreadPool) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = threads
        self._rounds.start()

    def stop(self) -> None:
        self._rounds.stop()
        if self._shared is not None:
            self._shared.close()

    def key_of(self, method: bytes, arguments: bytes, session: Session) -> bytes | None:
        """What a call asks for, arguments in the binary protocol; None if replies to it aren't kept."""
        if method not in self._methods:
            return None
        if method in _SINCE_HIVE_4:
            session.hive4 = True
        if len(arguments) > _LONG_KEY:
            arguments = hashlib.sha256(arguments).digest()
        return b"%s %d%d " % (method, session.hive4, session.include_uncommitted) + arguments

    def ask(self, asker: Asker, key: bytes) -> None:
        """Has an asker given what is kept, or sets it to work."""
        self._ask(Question(asker, key))

    def _ask(self, question: Question) -> None:
        if self._memory.get(question.key) is not None:
            self._rounds.join(partial(self._judge, question))
        else:
            self._read(question)

    def _judge(self, question: Question, known: bool) -> None:
        entry = self._memory.get(question.key)
        if not known or entry is None:
            self._read(question)
        elif self._changes.holds(entry):
            metrics.cache_answered("redis" if question.asked_redis else "memory")
            self._renew(question.key, entry)
            question.asker.give(entry.body)
        else:
            self._memory.remove(question.key)
            self._read(question)

    def _read(self, question: Question) -> None:
        """Waits for whoever reads the same already, a few times; what changes all the time is read at once."""
        waiting = self._reading.get(question.key)
        if waiting is None:
            self._reading[question.key] = []
            self._load(question)
        elif question.waits < _WAITS:
            question.waits += 1
            if not waiting:
                # Whoever reads may be long about it: its client takes the reply slowly.
                self._loop.call_later(_WAIT_SECONDS, self._stop_waiting, question.key, waiting)
            waiting.append(question)
        else:
            self._load(question)

    def _load(self, question: Question) -> None:
        if self._shared is not None and not question.asked_redis and self._changes.last is not None:
            question.asked_redis = True
            incarnation = self._changes.last.incarnation
            self._threads.submit(partial(self._ask_redis, question, incarnation))
        else:
            metrics.cache_answered("database")
            question.asker.work()

    def _ask_redis(self, question: Question, incarnation: str) -> None:
        """In a request's thread."""
        assert self._shared is not None
        entry = None
        try:
            entry = self._shared.get_or_read(incarnation, question.key)
        except Exception:  # whatever it is, the request must go on
            log.exception("a kept reply can't be read from Redis")
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._found, question, entry)

    def _found(self, question: Question, entry: Entry | None) -> None:
        if entry is None:
            self._load(question)
            return
        entry.sent_at = time.monotonic()
        self._memory.put(question.key, entry)
        self._settle(question.key)
        self._rounds.join(partial(self._judge, question))

    def loaded(self, key: bytes, body: bytes | None, footprint: Footprint | None) -> None:
        """A reply was read from the database, and sent; None: it can't be kept."""
        entry = _entry(body, footprint)
        if entry is not None:
            self._memory.put(key, entry)
            if self._shared is not None:
                self._shared.put(key, entry)
        elif self._shared is not None and self._changes.last is not None:
            self._shared.left(self._changes.last.incarnation, key)
        metrics.cache_filled(self._memory.size)
        self._settle(key)

    def _settle(self, key: bytes) -> None:
        """Those who waited for a reading ask again: it may be from before what they must see."""
        for question in self._reading.pop(key, ()):
            self._ask(question)

    def _stop_waiting(self, key: bytes, waiting: list[Question]) -> None:
        if self._reading.get(key) is waiting:
            self._settle(key)

    def _renew(self, key: bytes, entry: Entry) -> None:
        """Puts an entry that holds into Redis again before the changes since its snapshot are forgotten."""
        if self._shared is not None and time.monotonic() - entry.sent_at > _RENEW_SECONDS:
            self._shared.put(key, entry)

    def _begin_incarnation(self) -> None:
        self._threads.submit(self._begin_anew)


def _entry(body: bytes | None, read: Footprint | None) -> Entry | None:
    if body is None or read is None or read.snapshot is None or read.incarnation is None:
        return None
    if not read.whole or not read.objects:
        return None
    return Entry(body, Stamp.of(read.incarnation, read.snapshot), read.objects)


_SINCE_HIVE_4 = frozenset(name.encode() for name in NEW_SINCE_2_3)
