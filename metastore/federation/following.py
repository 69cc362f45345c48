"""Follows the notification logs of backends into one log.

A backend's log is read from the position that the merged log has. The last event that is known is read again with what
is new: if it is another one by now, or its numbers went back, the log is not the same any more. Such a finding, and a
hole in the numbers, becomes a loss in the merged log once it has lasted for some seconds. A loss has a number, and
readers can't pass it without being told.
"""

import getpass
import hashlib
import json
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import structlog
from thrift.Thrift import TApplicationException

from eventbus.outlets.hive_messages import HIDDEN
from lake.protocol.codec import binary
from lake.protocol.hive import MetaException, NotificationEvent, NotificationEventRequest
from lake.protocol.struct import ExceptionStruct
from metastore.federation import messages
from metastore.federation.errors import BackendError
from metastore.federation.fields import Hidden
from metastore.federation.front import Front, Request, Who
from metastore.federation.mapping import Mapping
from metastore.federation.pool import Identity
from metastore.federation.routing import Refused
from metastore.store import Database, DatabaseUnavailable
from metastore.store.federation import merged_log
from metastore.store.federation.merged_log import Followed, Row

POLL_SECONDS = 0.5
"""Between two looks at the logs."""

SURE_SECONDS = 3.0
"""How long a finding must last that means a loss: a copy of a metastore's database may be behind for a moment."""

LOSS = "LOSS"
"""The type of rows that say what is lost."""

_MOST_EVENTS = 500  # that are read together
_THREADS = 64
_LONGEST_SECONDS = 60.0  # that the one that leads waits for another thread's look
_HANGS_SECONDS = 1.0  # a look that takes longer is not waited for
_FORGOTTEN_SECONDS = 30.0  # a finding that was not looked at for so long
_HIDES = "it hides events"
_EMPTY = (
    "it has no events at all: a metastore of Hive keeps a log only with hive.metastore.transactional.event.listeners="
    "org.apache.hive.hcatalog.listener.DbNotificationListener"
)

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Finding:
    """When something that looks like a loss was found first, and last."""

    since: float
    last: float


class Following:
    """Thread-safe. `lost(backend)` is called whenever a loss is recorded."""

    def __init__(self, front: Front, database: Database, lost: Callable[[str], None]) -> None:
        self._front = front
        self._database = database
        self._lost = lost
        self._threads = ThreadPoolExecutor(_THREADS, "following")
        self._asking = ThreadPoolExecutor(_THREADS, "catching up")
        self._running: set[str] = set()
        self._busy_since: dict[str, float] = {}
        self._findings: dict[str, _Finding] = {}
        self._limits: dict[str, int] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self._looked: dict[str, float] = {}

    def close(self) -> None:
        for threads in (self._threads, self._asking):
            threads.shutdown(wait=False, cancel_futures=True)

    # -- the one that leads --------------------------------------------------------------------------------------

    def follow(self) -> dict[str, float]:
        """Has the logs of all followed backends looked at, by threads, and waits for none of them. By backend by how
        many seconds the merged log is behind.

        For the one front that leads: the names of its file are those under which events are taken.
        """
        mapping = self._front.mapping
        names = digest(mapping)
        with self._database.write() as tx:
            if merged_log.state(tx).names != names:
                merged_log.take_names(tx, names)
            known = merged_log.followed(tx)
        for backend in mapping.followed:
            with self._guard:
                if backend in self._running:
                    continue
                self._running.add(backend)
            self._threads.submit(self._look, backend)
        return {backend: known[backend].seconds_behind for backend in mapping.followed if backend in known}

    def _look(self, backend: str) -> None:
        try:
            while self._catch_up(backend, time.monotonic(), _LONGEST_SECONDS, records=True) is False:
                pass
        except DatabaseUnavailable as error:
            log.warning("a log can't be followed, the front's database is away", backend=backend, error=str(error))
        except Exception:
            log.exception("a log can't be followed", backend=backend)
        finally:
            with self._guard:
                self._running.discard(backend)

    # -- anybody -------------------------------------------------------------------------------------------------

    def latest(self, backends: Sequence[str], seconds: float) -> set[str]:
        """Has the merged log take what some backends' logs have by now; of which ones it has all. Others took longer,
        or can't be reached. Raises DatabaseUnavailable."""
        since = time.monotonic()
        futures = {
            each: self._asking.submit(self._until_caught_up, each, since, since + seconds)
            for each in backends
            if since - self._busy_since.get(each, since) < _HANGS_SECONDS
        }
        found = set()
        for backend, future in futures.items():
            try:
                if future.result(max(0.0, since + seconds - time.monotonic())):
                    found.add(backend)
            except TimeoutError:
                future.cancel()
        return found

    def _until_caught_up(self, backend: str, since: float, deadline: float) -> bool:
        found: bool | None = False
        while found is False and (left := deadline - time.monotonic()) > 0:
            found = self._catch_up(backend, since, left, records=False)
        return bool(found)

    def _catch_up(self, backend: str, since: float, seconds: float, *, records: bool) -> bool | None:
        """Takes the next events of a backend's log. Whether these were all; None if it can't go on now.

        If somebody has looked after the moment `since` (`time.monotonic`), that is enough. `seconds`: how long is
        waited for who looks now. `records`: writes down what was found, and losses; one does so for all.
        """
        with self._guard:
            lock = self._locks.setdefault(backend, threading.Lock())
        if not lock.acquire(timeout=seconds):
            return None
        try:
            if self._looked.get(backend, float("-inf")) >= since and not records:
                return True
            began = self._busy_since[backend] = time.monotonic()
            try:
                found = self._step(backend, records)
            except (BackendError, Refused, ExceptionStruct, TApplicationException, UnicodeDecodeError) as error:
                if records:
                    with self._database.write() as tx:
                        merged_log.failed(tx, backend, _text(error))
                return None
            if found:
                self._looked[backend] = began
            return found
        finally:
            self._busy_since.pop(backend, None)
            lock.release()

    def _step(self, backend: str, records: bool) -> bool | None:
        request = self._front.begin(Who(Identity(follower(self._front.mapping, backend), front=True)))
        if backend not in request.mapping.followed:
            return None
        names = digest(request.mapping)
        with self._database.read() as tx:
            if merged_log.state(tx).names != names:
                return None  # the one that leads has another file, for now
            known = merged_log.followed(tx).get(backend)
        last: int = request.ask(backend, "get_current_notificationEventId").eventId
        if known is None:
            with self._database.write() as tx:
                merged_log.begin(tx, backend, last)
            log.info("follows a backend's log", backend=backend, after=last)
            return True
        if known.position == merged_log.UNKNOWN:
            return self._begin_late(backend, last, names)
        if last == known.position:
            self._findings.pop(backend, None)
            if records:
                with self._database.write() as tx:
                    trouble = _EMPTY if last == 0 else _kept_trouble(known)
                    merged_log.looked(tx, backend, last, current=True, trouble=trouble)
            return True
        batch = self._read(request, backend, known, last)
        if batch.finding is None:
            self._findings.pop(backend, None)
        elif not self._is_sure(backend, records):
            if records:
                with self._database.write() as tx:
                    merged_log.looked(tx, backend, last, current=False, trouble=f"it may be that {batch.finding}")
            return None
        return self._append(request.mapping, backend, known, last, batch, records=records, names=names)

    def _begin_late(self, backend: str, last: int, names: str) -> bool:
        """Follows a backend that didn't answer when it was to be followed. What it did meanwhile is not known."""
        reason = f"what happened there before its event {last + 1}: the front could not reach it before"
        rows = [Row(last, LOSS, None, None, None, None, reason)]
        with self._database.write() as tx:
            taken = merged_log.append(
                tx, backend, names=names, before=merged_log.UNKNOWN, after=last, mark=None, rows=rows
            )
            if taken:
                merged_log.looked(tx, backend, last, current=True, trouble=None)
        if taken:
            self._lost(backend)
        return taken

    def _append(
        self, mapping: Mapping, backend: str, known: Followed, last: int, batch: "_Batch", *, records: bool, names: str
    ) -> bool | None:
        rows = _rows(batch, mapping, backend)
        hidden = sum(row.type == HIDDEN for row in rows)
        trouble = None
        if hidden:
            trouble = f"{_HIDES} from {follower(mapping, backend) or 'the front'}, as whom the front follows it"
            log.warning("a backend hides events from the front", backend=backend, events=hidden)
        if batch.finding is not None:
            rows.insert(0, Row(batch.begins - 1, LOSS, None, None, None, None, batch.finding))
        after = batch.events[-1].number if batch.events else batch.begins - 1
        mark = _mark(batch.events[-1]) if batch.events else None
        done = after >= last
        with self._database.write() as tx:
            taken = merged_log.append(
                tx, backend, names=names, before=known.position, after=after, mark=mark, rows=rows
            )
            if taken and (records or done):
                merged_log.looked(tx, backend, max(last, after), current=done, trouble=trouble)
        if not taken:
            return False
        if batch.finding is not None:
            self._findings.pop(backend, None)
            log.error("events of a backend are lost to the merged log", backend=backend, reason=batch.finding)
            self._lost(backend)
        return done

    def _read(self, request: Request, backend: str, known: Followed, last: int) -> "_Batch":
        if last < known.position:
            return _Batch([], last + 1, f"its numbers went back from {known.position} to {last}")
        after = known.position if known.mark is None else known.position - 1
        try:
            events = self._ask(request, backend, after)
        except TApplicationException as error:
            self._ask(request, backend, last)  # raises the same if it is not about these events
            text = f"events {known.position + 1} to {last} can't be read any more there ({error.message})"
            return _Batch([], last + 1, text)
        again = [each for each in events if each.number == known.position]
        if again and known.mark is not None and not any(_is_marked(each, known.mark) for each in again):
            return _Batch([], last + 1, f"event {known.position} is another one than it was: its log was replaced")
        fresh = [each for each in events if each.number > known.position]
        if not fresh:
            text = f"events {known.position + 1} to {last} were removed there before the front read them"
            return _Batch([], last + 1, text)
        first = fresh[0].number
        if first > known.position + 1:
            text = f"events {known.position + 1} to {first - 1} were removed there before the front read them"
            return _Batch(_dense(fresh), first, text)
        return _Batch(_dense(fresh), first, None)

    def _ask(self, request: Request, backend: str, after: int) -> "list[_Event]":
        """Events of a log, as many as fit into an answer. Raises Refused if not even one does."""
        limit = self._limits.get(backend, _MOST_EVENTS)
        while True:
            try:
                asked = NotificationEventRequest(lastEvent=after, maxEvents=limit)
                found = request.ask(backend, "get_next_notification", asked).events or ()
                return [_Event(each.eventId, each) for each in found]
            except Refused:
                if limit <= 2:  # the last known one, and the next
                    raise
                limit = self._limits[backend] = limit // 2

    def _is_sure(self, backend: str, records: bool) -> bool:
        """Whether a finding has lasted. It counts for the one that leads alone, which looks all the time."""
        if not records:
            return False
        now = time.monotonic()
        before = self._findings.get(backend)
        if before is None or now - before.last > _FORGOTTEN_SECONDS:
            self._findings[backend] = _Finding(now, now)
            return False
        before.last = now
        return now - before.since >= SURE_SECONDS


class _Event(NamedTuple):
    """An event of a backend's log and its number there."""

    number: int
    event: NotificationEvent


@dataclass(frozen=True, slots=True)
class _Batch:
    """Events of a log from a number on, all of them up to the last one. `finding`: what is missing before them."""

    events: "list[_Event]"
    begins: int
    finding: str | None


def _dense(events: "list[_Event]") -> "list[_Event]":
    """Events up to the first hole in their numbers: what follows is read by itself, and the hole is found then."""
    for place, (one, other) in enumerate(pairwise(events), 1):
        if other.number > one.number + 1:
            return events[:place]
    return events


def _rows(batch: _Batch, mapping: Mapping, backend: str) -> list[Row]:
    """What is kept of events: all but those that are about nothing in the front."""
    found = []
    for number, event in batch.events:
        try:
            messages.to_front(event, mapping, backend)
        except Hidden:
            continue
        except (messages.NotUnderstood, MetaException) as error:
            log.warning(
                "an event can't be understood, it is shown without what it says", backend=backend,
                event=number, type=event.eventType, reason=str(error),
            )  # fmt: skip
        database, other = messages.databases(event)
        body = zlib.compress(binary.encode(event), 1)
        found.append(Row(number, event.eventType or "", database, other, event.tableName, body, None))
    return found


def digest(mapping: Mapping) -> str:
    """What decides which events are in the merged log: it is the same where the names of two files are."""
    named = {"prefix", "catalog", "backend_catalog", "rename", "allow", "deny", "follow"}
    facts = {
        backend: settings.model_dump(mode="json", include=named)
        | {"number": mapping.number(backend), "allow": sorted(settings.allow), "deny": sorted(settings.deny)}
        for backend, settings in mapping.backends.items()
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def follower(mapping: Mapping, backend: str) -> str | None:
    """As whom the front follows a backend's log; None: as who it logs in as."""
    settings = mapping.backends.get(backend)
    if settings is None or settings.proves:
        return None
    if settings.follow_user is not None:
        return settings.follow_user
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        return "metastore"


def _mark(numbered: "_Event") -> bytes:
    """By what an event is known again. Its message is not part of it: lake metastores write it when it is read."""
    number, event = numbered
    what = b"" if event.eventType == HIDDEN else _digest(event.eventType, event.dbName, event.tableName)
    return _digest(number, event.eventTime) + what


def _is_marked(event: "_Event", mark: bytes) -> bool:
    """Whether an event is the one with a mark. Of one that is, or was, hidden, only number and time are compared."""
    now = _mark(event)
    length = min(len(now), len(mark))
    return now[:length] == mark[:length]


def _digest(*facts: object) -> bytes:
    return hashlib.sha256(repr(facts).encode()).digest()


def _kept_trouble(known: Followed) -> str | None:
    """That a backend hides events is said until others come."""
    return known.trouble if known.trouble is not None and known.trouble.startswith(_HIDES) else None


def _text(error: BaseException) -> str:
    return str(getattr(error, "message", None) or error)
