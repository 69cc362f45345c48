"""Hive's notification calls over the merged log of all followed backends.

Each of them first has the log take what the backends have by now. Events are kept with the names of their backends, and
get the front's when they are read, by the file of then: a name in an event leads to what the event is about.
"""

import time
import zlib
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import structlog
from thrift.Thrift import TApplicationException

from eventbus.outlets import hive_messages
from eventbus.outlets.hive_messages import HIDDEN
from lake.protocol.codec import binary
from lake.protocol.hive import (
    MetaException,
    NotificationEvent,
    NotificationEventRequest,
    NotificationEventsCountRequest,
)
from metastore.federation import messages, translation
from metastore.federation.errors import Unreachable
from metastore.federation.fields import Hidden
from metastore.federation.following import Following, digest
from metastore.federation.front import Front
from metastore.federation.mapping import Mapping
from metastore.federation.names import DEFAULT_CATALOG, Name, normal
from metastore.federation.routing import Refused
from metastore.federation.translation import EVERY
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.federation import merged_log
from metastore.store.federation.merged_log import About, Count, Event

T = TypeVar("T")

FRESH_SECONDS = 2.0
"""How long a call waits for what is new in the backends' logs; what comes later is in later answers."""

FILE_SECONDS = 5.0
"""How long a call waits until this front and the one that follows the logs have the same file."""

_LOOK_SECONDS = 0.1
_COUNTED = 1_000  # events that are read together to be counted

Shown = Callable[[Sequence[NotificationEvent]], list[bool]]

log = structlog.get_logger(__name__)


class _Filter(NamedTuple):
    """Which notifications a request wants; names are the front's."""

    skipped: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()
    catalog: str | None = None
    database: str | None = None
    tables: frozenset[str] = frozenset()

    @property
    def chooses(self) -> bool:
        """Whether types, a database or tables are chosen: then not even the number of another event is told."""
        return bool(self.skipped or self.only or self.tables) or self.database is not None

    def takes(self, event: NotificationEvent) -> bool:
        if event.eventType in self.skipped or (self.only and event.eventType not in self.only):
            return False
        if event.eventType == HIDDEN:
            return True
        if self.catalog is not None and normal(event.catName or DEFAULT_CATALOG) != self.catalog:
            return False
        if self.database is not None and normal(event.dbName or "") != self.database:
            return False
        return not self.tables or normal(event.tableName or "") in self.tables


class Notifications:
    """Thread-safe. `left_out(backend)` is called when an answer comes although the log is far behind a backend."""

    def __init__(self, front: Front, database: Database, following: Following, left_out: Callable[[str], None]) -> None:
        self._front = front
        self._database = database
        self._following = following
        self._left_out = left_out

    def check_reader(self, user: str | None, groups: Sequence[str]) -> None:
        """Raises Refused for who may not read the log: it has the events of all databases."""
        if not self._front.mapping.configuration.federation.may_read_log(user, groups):
            raise Refused(
                f"{user or 'a caller without a name'} may not read the merged notification log: federation.log_readers"
                " in the front's file says who may"
            )

    def last(self) -> int:
        """The number of the last notification. What was done before the call has a number by now, as far as backends
        answer in time."""

        def find(mapping: Mapping, names: str, about: About | None) -> int:
            with self._database.read() as tx:
                return _state(tx, names).last

        return self._under_one_file(find, None) or 0

    def read(self, asked: NotificationEventRequest, shown: Shown | None = None) -> list[NotificationEvent]:
        """The notifications after a number, as many as fit into a reply.

        `shown`: says of events whether the caller may see them; None if it may see all. Of others only number and time
        are left, and nothing where types, a database or tables are chosen. Raises TApplicationException where events
        are lost, and where they are no longer kept and the client could not see it; Refused, BackendError.
        """
        name = translation.parsed(asked.catName, None, asked.dbName) if asked.dbName else None
        return self._under_one_file(partial(self._read, asked, shown), name) or []

    def _read(
        self,
        asked: NotificationEventRequest,
        sees: Shown | None,
        mapping: Mapping,
        names: str,
        about: About | None,
    ) -> list[NotificationEvent]:
        wanted, after = _filter(asked), asked.lastEvent or 0
        limit = asked.maxEvents if asked.maxEvents and asked.maxEvents > 0 else None
        found: list[NotificationEvent] = []
        size = 0
        with self._database.read() as tx:
            now = _state(tx, names)
            filtered = wanted.chooses or wanted.catalog is not None
            hive_messages.check_kept(after, now.last, now.trimmed, filtered=filtered)
            for event in merged_log.read(tx, after, about):
                if event.body is None and _concerns(event, mapping, about):
                    if found:
                        return found
                    raise _lost(event)
                shown = _shown(event, mapping)
                if sees is not None and shown.eventType != HIDDEN and not sees([shown])[0]:
                    shown = hive_messages.without_content(event.number, shown.eventTime, shown.messageFormat)
                if not wanted.takes(shown) or (shown.eventType == HIDDEN and wanted.chooses):
                    continue
                size += len(shown.message or "")
                if found and size > hive_messages.MAX_BYTES:
                    return found
                found.append(shown)
                if len(found) == limit:
                    return found
        return found

    def count(self, asked: NotificationEventsCountRequest, shown: Shown | None = None) -> int:
        """How many notifications are about a database (`*`: all), or tables of it, after a number, up to another.

        `shown`: as in `read`. Raises MetaException without a database, Refused, BackendError.
        """
        if not asked.dbName:
            raise MetaException("the database whose notifications are to be counted is missing; * means all of them")
        name = translation.parsed(asked.catName, None, asked.dbName)
        only = None if name.database == EVERY else name
        tables = frozenset(normal(each) for each in asked.tableNames or ())

        if shown is not None:
            return self._count_shown(asked, None if only is None else asked.dbName, shown)

        def count(mapping: Mapping, names: str, about: About | None) -> int:
            with self._database.read() as tx:
                _state(tx, names)
                counts = merged_log.count(tx, asked.fromEventId or 0, asked.toEventId, about)
            return sum(
                each.events
                for each in counts
                if _is_counted(each, mapping, only) and (not tables or normal(each.table or "") in tables)
            )

        found = self._under_one_file(count, only) or 0
        return found if asked.limit is None else min(found, max(asked.limit, 0))

    def _count_shown(self, asked: NotificationEventsCountRequest, database: str | None, shown: Shown) -> int:
        after, found = asked.fromEventId or 0, 0
        while True:
            wanted = NotificationEventRequest(
                after, _COUNTED, catName=asked.catName, dbName=database, tableNames=asked.tableNames
            )
            events = self.read(wanted, shown)
            for each in events:
                after = each.eventId or 0
                if asked.toEventId is not None and after > asked.toEventId:
                    return found
                found += each.eventType != HIDDEN
                if asked.limit is not None and found >= asked.limit:
                    return max(asked.limit, 0)
            if not events:
                return found

    def numbers_of(self, backend: str, numbers_there: Sequence[int]) -> list[int]:
        """The numbers of events of a backend, by those that they have there; none if they aren't in the log by now."""
        self._following.latest([backend], FRESH_SECONDS)
        with self._database.read() as tx:
            found = merged_log.numbers_of(tx, backend, numbers_there)
        return [found[each] for each in numbers_there] if len(found) == len(set(numbers_there)) else []

    def described(self) -> dict[str, str]:
        """By backend how far its log is followed, in words."""
        mapping = self._front.mapping
        with self._database.read() as tx:
            known = merged_log.followed(tx)
            lost = merged_log.losses(tx)
        lines = {}
        for backend in mapping.followed:
            it = known.get(backend)
            if it is None or it.position == merged_log.UNKNOWN:
                lines[backend] = "log: not followed yet" + (f", {it.trouble}" if it and it.trouble else "")
                continue
            missing = max(it.last_there - it.position, 0)
            text = f"log: followed up to {it.position}, {missing} events and {it.seconds_behind:.1f} s behind"
            text += f"; {it.trouble}" if it.trouble else ""
            if own := [f"; lost before {number}: {loss}" for number, whose, loss in lost if whose == backend]:
                text += own[-1]
            lines[backend] = text
        return lines

    # -- within --------------------------------------------------------------------------------------------------

    def _under_one_file(self, question: Callable[[Mapping, str, About | None], T], name: Name | None) -> T | None:
        """The answer of a function to a mapping, the digest of its names, and the database that is asked about.

        The log has what there is by now, and takes events under the same names. None for a database that there isn't.
        Raises Refused, Unreachable if the log is too far behind.
        """
        deadline = time.monotonic() + FILE_SECONDS
        while True:
            mapping = self._front.mapping
            names = digest(mapping)
            try:
                with self._database.read() as tx:
                    _state(tx, names)
                about = None
                if name is not None:
                    place = mapping.place(name)
                    if place is None:
                        return None
                    about = About(place.backend, place.name.database)
                self._catch_up(mapping, about)
                return question(mapping, names, about)
            except _OtherFile:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_LOOK_SECONDS)

    def _catch_up(self, mapping: Mapping, about: About | None) -> None:
        if about is not None and about.backend not in mapping.followed:
            raise Refused(
                f"the notification log of backend {about.backend} is not followed, so its events are not in this"
                f" front's log: set backends.{about.backend}.follow"
            )
        backends = mapping.followed if about is None else (about.backend,)
        self._check_lag(mapping, set(backends) - self._following.latest(backends, FRESH_SECONDS))

    def _check_lag(self, mapping: Mapping, backends: Collection[str]) -> None:
        """Raises Unreachable if the log is too far behind one of some backends."""
        if not backends:
            return
        settings = mapping.configuration.federation
        with self._database.read() as tx:
            known = merged_log.followed(tx)
        for backend in backends:
            it = known.get(backend)
            seconds = None if it is None or it.position == merged_log.UNKNOWN else it.seconds_behind
            if seconds is not None and seconds <= settings.log_lag_seconds:
                continue
            behind = "has nothing of it yet" if seconds is None else f"is {seconds:.0f} s behind it"
            reason = f"the merged log {behind}: {it.trouble if it and it.trouble else 'it was not read in time'}"
            if settings.unreachable == "fail":
                raise Unreachable(backend, reason)
            if it is None:  # whoever follows it later has to say that the log was read without it
                with self._database.write() as tx:
                    merged_log.failed(tx, backend, reason)
            log.warning("the merged log is read without the latest of a backend", backend=backend, reason=reason)
            self._left_out(backend)


class _OtherFile(Refused):
    """This front and the one that follows the logs have other names."""

    def __init__(self) -> None:
        super().__init__(
            "the names of databases in this front's file are not those of the front that follows the logs, so events"
            " could be missing: wait until all fronts have the same file (TTransportException)"
        )


def _state(tx: Transaction, names: str) -> merged_log.State:
    """How far the log is. Raises _OtherFile if it is taken under other names."""
    now = merged_log.state(tx)
    if now.names != names:
        raise _OtherFile
    return now


def _filter(asked: NotificationEventRequest) -> _Filter:
    name = None
    if asked.dbName:
        name = translation.parsed(asked.catName, None, asked.dbName)
    return _Filter(
        frozenset(asked.eventTypeSkipList or ()),
        frozenset(asked.eventTypeList or ()),
        name.catalog if name is not None else normal(asked.catName) if asked.catName else None,
        None if name is None else name.database,
        frozenset(normal(each) for each in asked.tableNames or ()),
    )


def _concerns(event: Event, mapping: Mapping, about: About | None) -> bool:
    """Whether a loss has to be told."""
    return event.backend in mapping.followed and (about is None or about.backend == event.backend)


def _shown(event: Event, mapping: Mapping) -> NotificationEvent:
    """An event as the front shows it; of one that has no name there by now only number and time."""
    if event.body is None:
        return hive_messages.without_content(event.number, 0, None)
    kept = binary.decode_preserving(NotificationEvent, zlib.decompress(event.body))
    if event.backend in mapping.backends:
        try:
            return messages.to_front(kept, mapping, event.backend).replace(eventId=event.number)
        except (Hidden, messages.NotUnderstood, MetaException):
            pass
    return hive_messages.without_content(event.number, kept.eventTime, kept.messageFormat)


def _is_counted(each: Count, mapping: Mapping, wanted: Name | None) -> bool:
    if each.type == HIDDEN or each.backend not in mapping.backends:
        return False
    catalog = mapping.backends[each.backend].backend_catalog
    names = [
        mapping.name(each.backend, Name(catalog, there))
        for there in (each.database, each.other_database)
        if there is not None
    ]
    if not names:
        return wanted is None and each.type in messages.OF_TRANSACTIONS
    shown = next((name for name in names if name is not None), None)
    return shown is not None and wanted in (None, shown)


def _lost(event: Event) -> TApplicationException:
    return TApplicationException(
        TApplicationException.INTERNAL_ERROR,
        f"events of backend {event.backend} are lost to this log: {event.loss}. Read the current state of its"
        f" databases, then go on after {event.number}",
    )
