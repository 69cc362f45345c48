"""Per-worker response cache. Event loop only unless stated.

A cacheable request waits for an invalidation poll (`metastore.server.invalidation_polls`) and is then answered with the
cached reply if that is still valid. Otherwise one request reads the reply, from Redis or from the database, and other
requests for the same wait for it. docs/cache.md describes the protocol.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from lake.protocol.hive_versions import NEW_SINCE_2_3
from metastore.api.methods import HANDLERS
from metastore.api.rights.naming import Requirement
from metastore.api.session import Session
from metastore.cache.changes import Changes, Kept
from metastore.cache.entry import Entry, Renew
from metastore.cache.memory import Memory
from metastore.cache.shared import SharedLevel
from metastore.cache.stamp import Stamp
from metastore.server.invalidation_polls import InvalidationPolls
from metastore.server.monitoring import metrics
from metastore.server.renewals import Renewals
from metastore.server.threads import ThreadPool
from metastore.store.cache import cache_changes
from metastore.store.engine.read_set import ReadSet
from metastore.store.table.tables import LockedTable

log = structlog.get_logger(__name__)

_LARGEST_PART = 4  # one reply may take this part of the memory, as a divisor
_LONG_KEY = 256  # bytes; longer arguments are hashed
_RECOGNISED = 4_000  # messages, for each kind of session
_RECOGNISED_BYTES = 1_024  # of the longest of them
_WAITS = 3  # of a request, for the same read by another one
_WAIT_SECONDS = 0.5
_RENEW_SECONDS = cache_changes.KEEP_SECONDS / 2  # valid entries are sent to Redis again so often


class Waiter(Protocol):
    """A connection that waits for a reply. One of the two methods is called."""

    def give(self, body: bytes, *, from_redis: bool) -> None:
        """Sends a cached reply. `from_redis`: it had to be fetched from there."""

    def work(self) -> None:
        """Reads the reply from the database, in a request's thread, and passes it to `Replies.loaded`."""


@dataclass(slots=True)
class CacheableCall:
    """What is known of a call whose replies are cached: its key in the cache, and the rights that a caller needs.

    `audited`: how records of the audit log begin about such calls, once there was one.
    """

    method: bytes
    key: bytes
    needs: tuple[Requirement, ...] = ()
    audited: str = ""


@dataclass(slots=True)
class CacheRequest:
    """A cacheable request. `waits`: how often it has waited for another request that reads the same."""

    waiter: Waiter
    key: bytes
    asked_redis: bool = False
    waits: int = 0


class Replies:
    """The response cache of one worker: its memory, and Redis behind it."""

    def __init__(self, url: str, capacity: int, shared: SharedLevel | None, begin_anew: Callable[[], None]) -> None:
        """`url` is SQLAlchemy's, `capacity` in bytes; `shared` is Redis, if there is one.

        `begin_anew` starts an incarnation after a crash of Postgres; it is called in a thread.
        """
        self._begin_anew = begin_anew
        self._changes = Changes()
        self._polls = InvalidationPolls(url, self._changes, self._begin_incarnation)
        self._memory = Memory(capacity)
        self._shared = shared
        self._renewals = Renewals()
        self._methods = frozenset(name.encode() for name, handler in HANDLERS.items() if handler.cached)
        # By what a message is but for its number. Sessions are of four kinds: a key depends on that.
        self._recognised: tuple[dict[bytes, CacheableCall], ...] = ({}, {}, {}, {})
        self._reading: dict[bytes, list[CacheRequest]] = {}  # by key that is being read: who waits
        self.largest = capacity // _LARGEST_PART
        """Bytes of the longest reply that is cached."""

    def start(self, threads: ThreadPool) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = threads
        self._polls.start()

    def stop(self) -> None:
        self._polls.stop()
        if self._shared is not None:
            self._shared.close()

    def key_of(self, method: bytes, arguments: bytes, session: Session) -> bytes | None:
        """The cache key of a call whose arguments are in the binary protocol; None if its replies aren't cached."""
        if method not in self._methods:
            return None
        if method in _SINCE_HIVE_4:
            session.hive4 = True
        if len(arguments) > _LONG_KEY:
            arguments = hashlib.sha256(arguments).digest()
        return b"%s %d%d " % (method, session.hive4, session.include_uncommitted) + arguments

    def recognise(self, message: bytes, arguments: int, session: Session, call: CacheableCall) -> None:
        """Remembers a whole message in the unframed binary protocol, so that `recognised` finds it.

        `arguments`: where they begin in it.
        """
        if len(message) > _RECOGNISED_BYTES or not message.startswith(_STRICT_CALL):
            return
        of_session = self._recognised[2 * session.hive4 + session.include_uncommitted]
        if len(of_session) >= _RECOGNISED:
            of_session.clear()
        of_session[message[7 : arguments - 4] + message[arguments:]] = call

    def recognised(self, data: bytes, session: Session) -> tuple[CacheableCall, int] | None:
        """What is known of bytes that are exactly one message which came before, and where its arguments begin.

        Messages are the same if all is but the number that the client gives to a call.
        """
        if not data.startswith(_STRICT_CALL):
            return None
        end = 8 + data[7] if len(data) > 8 else 8
        known = self._recognised[2 * session.hive4 + session.include_uncommitted].get(data[7:end] + data[end + 4 :])
        return None if known is None else (known, end + 4)

    def at_once(self, key: bytes) -> bytes | None:
        """The kept reply that is the truth at this moment; None if only Postgres can say what is."""
        entry = self._memory.get(key)
        if entry is None or not self._polls.leased() or not self._changes.holds(entry):
            return None
        self._renew(key, entry)
        return entry.body

    def holds(self, kept: Kept) -> bool:
        """Whether something that was read from the database still holds, as of the last poll."""
        return self._changes.holds(kept)

    def ask(self, waiter: Waiter, key: bytes) -> None:
        """Calls the waiter's `give` with a valid cached reply, or `work`: sooner or later, perhaps at once."""
        self._ask(CacheRequest(waiter, key))

    def _ask(self, request: CacheRequest) -> None:
        if request.key in self._memory:
            self._polls.join(partial(self._judge, request))
        else:
            self._read(request)

    def _judge(self, request: CacheRequest, known: bool) -> None:
        entry = self._memory.get(request.key)
        if not known or entry is None:
            self._read(request)
        elif self._changes.holds(entry):
            self._renew(request.key, entry)
            request.waiter.give(entry.body, from_redis=request.asked_redis)
        else:
            self._memory.remove(request.key)
            self._read(request)

    def _read(self, request: CacheRequest) -> None:
        """Reads a reply, or waits for a request that reads the same already.

        It waits a few times at most: a reply that changes all the time is never valid after the wait.
        """
        waiting = self._reading.get(request.key)
        if waiting is None:
            self._reading[request.key] = []
            self._load(request)
        elif request.waits < _WAITS:
            request.waits += 1
            if not waiting:
                # The other request may take long: its client may read the reply slowly.
                self._loop.call_later(_WAIT_SECONDS, self._stop_waiting, request.key, waiting)
            waiting.append(request)
        else:
            self._load(request)

    def _load(self, request: CacheRequest) -> None:
        if self._shared is not None and not request.asked_redis and self._changes.last is not None:
            request.asked_redis = True
            incarnation = self._changes.last.incarnation
            self._threads.submit(partial(self._ask_redis, request, incarnation))
        else:
            metrics.cache_missed()
            request.waiter.work()

    def _ask_redis(self, request: CacheRequest, incarnation: str) -> None:
        """In a request's thread."""
        assert self._shared is not None
        entry = None
        try:
            entry = self._shared.get_or_read(incarnation, request.key)
        except Exception:  # whatever it is, the request must go on
            log.exception("a cached reply can't be read from Redis")
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._found, request, entry)

    def _found(self, request: CacheRequest, entry: Entry | None) -> None:
        if entry is None:
            self._load(request)
            return
        entry.sent_at = time.monotonic()
        self._memory.put(request.key, entry)
        self._settle(request.key)
        self._polls.join(partial(self._judge, request))

    def loaded(self, key: bytes, body: bytes | None, read_set: ReadSet | None, renew: Renew | None) -> None:
        """A reply was read from the database and sent. `body` is None if it can't be cached."""
        entry = _entry(body, read_set)
        if entry is not None:
            self._memory.put(key, entry)
            if renew is not None:
                self._renewals.add(key, entry, renew)
            if self._shared is not None:
                self._shared.put(key, entry)
        elif self._shared is not None and self._changes.last is not None:
            self._shared.left(self._changes.last.incarnation, key)
        metrics.cache_filled(self._memory.size)
        self._settle(key)

    def renewed(self, altered: Iterable[LockedTable]) -> list[tuple[bytes, Entry]]:
        """Replies that tables have by what a request has committed, for `keep`. In a request's thread."""
        try:
            return [*self._renewals.of_tables(altered)]
        except Exception:  # whatever it is, what was committed must be acknowledged
            log.exception("replies about an altered table can't be renewed")
            return []

    def keep(self, renewed: Iterable[tuple[bytes, Entry]]) -> None:
        """Keeps what `renewed` returned. Redis gets it with the first read."""
        for key, entry in renewed:
            self._memory.put(key, entry)

    def _settle(self, key: bytes) -> None:
        """Starts anew the requests that waited for a read: it may be older than what they must see."""
        for request in self._reading.pop(key, ()):
            self._ask(request)

    def _stop_waiting(self, key: bytes, waiting: list[CacheRequest]) -> None:
        if self._reading.get(key) is waiting:
            self._settle(key)

    def _renew(self, key: bytes, entry: Entry) -> None:
        """Sends a valid entry to Redis again, with its later snapshot, before the changes since are purged.

        An entry that an alteration has renewed is renewed by the next one, too, since it was read.
        """
        if entry.renew is not None:
            self._renewals.add(key, entry, entry.renew)
            entry.renew = None
        if self._shared is not None and time.monotonic() - entry.sent_at > _RENEW_SECONDS:
            self._shared.put(key, entry)

    def _begin_incarnation(self) -> None:
        self._threads.submit(self._begin_anew)


def _entry(body: bytes | None, read: ReadSet | None) -> Entry | None:
    if body is None or read is None or read.snapshot is None or read.incarnation is None:
        return None
    if not read.whole or not read.objects:
        return None
    return Entry(body, Stamp.of(read.incarnation, read.snapshot), read.objects)


# A call's version and type, and the first three of the four bytes of its name's length.
_STRICT_CALL = b"\x80\x01\x00\x01\x00\x00\x00"
_SINCE_HIVE_4 = frozenset(name.encode() for name in NEW_SINCE_2_3)
