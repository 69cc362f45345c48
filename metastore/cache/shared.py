"""The second level: a Redis that all servers share.

Redis may lose entries, evict them, or return old ones: its entries are checked like those in memory. After failures or
slow answers Redis is not used for some seconds.
"""

import contextlib
import hashlib
import queue
import threading
import time

import redis
import structlog
from circuitbreaker import CircuitBreaker, CircuitBreakerError
from redis.backoff import NoBackoff
from redis.retry import Retry

from metastore import __version__
from metastore.cache.entry import Entry

TIMEOUT_SECONDS = 0.25
FAILURES = 3
PAUSE_SECONDS = 5
"""Redis is not used for `PAUSE_SECONDS` after `FAILURES` failures in a row."""

SLOW_SECONDS = 0.05
SLOW_BYTES = 100 << 20  # in a second
"""An answer that takes longer than this counts as a failure: `SLOW_SECONDS`, and a second for each `SLOW_BYTES`."""

READING_SECONDS = 0.5
"""How long one server has the sole right to read a missing reply from the database."""

_PAUSES = (0.005, 0.01, 0.02, 0.04)  # seconds that others wait before they read the reply themselves
_UNSENT = 100  # entries that may wait to be sent; more are dropped

log = structlog.get_logger(__name__)


class _Slow(Exception):
    """Redis answered too slowly. `value` is its answer."""

    def __init__(self, value: object) -> None:
        super().__init__("it answers slowly")
        self.value = value


class SharedLevel:
    """Entries by key in Redis, each for `keep_seconds` after it was put. Thread-safe."""

    def __init__(self, url: str, *, keep_seconds: int) -> None:
        """Connects on first use. Raises ValueError for a bad URL."""
        self._redis = redis.Redis.from_url(
            url,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._keep_seconds = keep_seconds
        guarded = CircuitBreaker(
            FAILURES, PAUSE_SECONDS, expected_exception=(redis.RedisError, OSError, _Slow), name="cache"
        )
        # One breaker for all calls: when one fails, the others would fail too.
        self._get, self._set, self._keep = guarded(self._timed_get), guarded(self._redis.set), guarded(self._put)
        self._unsent: queue.Queue[tuple[str, Entry | None] | None] = queue.Queue(_UNSENT)
        threading.Thread(target=self._send, name="cache", daemon=True).start()

    def get(self, incarnation: str, key: bytes) -> Entry | None:
        """The entry of a key. None if there is none, or Redis can't be used now."""
        try:
            data = self._get(_name(incarnation, key))
        except CircuitBreakerError:
            return None
        except _Slow as slow:
            data = slow.value
        except (redis.RedisError, OSError) as error:
            log.warning("the cache works without Redis", error=str(error))
            return None
        if not isinstance(data, bytes):
            return None
        try:
            return Entry.from_bytes(data)
        except ValueError:
            return None

    def get_or_read(self, incarnation: str, key: bytes) -> Entry | None:
        """The entry of a key. If another server is reading it from the database, waits for that server briefly.

        If the result is None, the caller reads the reply itself, then calls `put`, or `left` if it can't be kept.
        """
        entry = self.get(incarnation, key)
        waited = False
        for pause in _PAUSES:
            if entry is not None:
                break
            if self._is_ours(_name(incarnation, key)):
                # The server that had the right until now may have put the entry meanwhile.
                return self.get(incarnation, key) if waited else None
            time.sleep(pause)
            waited = True
            entry = self.get(incarnation, key)
        return entry

    def _is_ours(self, name: str) -> bool:
        milliseconds = int(READING_SECONDS * 1000)
        try:
            return bool(self._set(_reading(name), b"", nx=True, px=milliseconds))
        except (CircuitBreakerError, redis.RedisError, OSError):
            return True

    def left(self, incarnation: str, key: bytes) -> None:
        """Release the right to read a key's reply, without an entry."""
        with contextlib.suppress(queue.Full):
            self._unsent.put_nowait((_name(incarnation, key), None))

    def _timed_get(self, name: str) -> object:
        began = time.monotonic()
        value = self._redis.get(name)
        size = len(value) if isinstance(value, bytes) else 0
        if time.monotonic() - began > SLOW_SECONDS + size / SLOW_BYTES:
            raise _Slow(value)
        return value

    def put(self, key: bytes, entry: Entry) -> None:
        """Put an entry in the background. Drops it if too many are waiting already."""
        entry.sent_at = time.monotonic()
        try:
            self._unsent.put_nowait((_name(entry.stamp.incarnation, key), entry))
        except queue.Full:
            entry.sent_at = 0.0

    def close(self) -> None:
        self._unsent.put(None)

    def _send(self) -> None:
        while (task := self._unsent.get()) is not None:
            name, entry = task
            try:
                self._keep(name, entry)
            except CircuitBreakerError:
                pass
            except (redis.RedisError, OSError) as error:
                log.warning("the cache works without Redis", error=str(error))

    def _put(self, name: str, entry: Entry | None) -> None:
        with self._redis.pipeline(transaction=False) as together:
            if entry is not None:
                together.set(name, entry.to_bytes(), ex=self._keep_seconds)
            together.delete(_reading(name))
            together.execute()


def _reading(name: str) -> str:
    return name + ":reading"


def _name(incarnation: str, key: bytes) -> str:
    # Another version of the server may have another reply.
    return f"metastore:cache:{__version__}:{incarnation}:{hashlib.sha256(key).hexdigest()}"
