"""Reading the event log, for subscribers."""

import re
from collections.abc import Callable, Sequence

from eventbus import dead_letters, groups, log, members, reader
from eventbus.filters import BadFilter, Filter
from eventbus.reader import Page
from eventbus.sequencer import Sequencer
from metastore.clock import now_ms
from metastore.services.event_waits import EventWaits
from metastore.store import Database
from metastore.wire.hive import InvalidOperationException
from metastore.wire.lake import DeadEvent, EventGroup, EventPositions, EventsGone

MAX_EVENTS = 1_000
"""In one reply."""
MAX_BYTES = 8 << 20
"""Of payloads in one reply, compressed; a single greater one goes out all the same."""

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class EventReads:
    """What subscribers ask of the log."""

    def __init__(self, database: Database, sequencer: Sequencer) -> None:
        self._database = database
        self._sequencer = sequencer
        self._waits = EventWaits(database)

    def read(self, after: int, limit: int | None, tables: Sequence[str] | None, types: Sequence[str] | None) -> Page:
        """The next events after a number, everything included that was committed before the call.

        Raises EventsGone, InvalidOperationException for a filter that is none or a number that wasn't given yet.
        """
        wanted = filter_of(tables, types)
        self._sequencer.catch_up()
        with self._database.read() as tx:
            last = log.positions(tx).last
            if not 0 <= after <= last:
                raise InvalidOperationException(f"there is no event {after}: the last one is {last}")
            try:
                return reader.read(tx, after, wanted, limit=limit_of(limit), max_bytes=MAX_BYTES)
            except log.Trimmed as gone:
                raise EventsGone(str(gone), gone.oldest) from None

    def concerned(self, after: int, tables: Sequence[str] | None, types: Sequence[str] | None) -> Callable[[int], bool]:
        """For a reader that waits: whether events are there that it wants; see `EventWaits.concern`."""
        return self._waits.concern(filter_of(tables, types), after)

    def positions(self, group: str | None, since: int | None) -> EventPositions:
        """The first and the last event there are, where a group stands, and after which event a time begins."""
        self._sequencer.catch_up()
        with self._database.read() as tx:
            now = log.positions(tx)
            found = groups.find(tx, group) if group else None
            first = reader.first_since(tx, since) if since is not None else None
        before = None if since is None else (first - 1 if first else now.last)
        return EventPositions(now.trimmed + 1, now.last, found.position if found else None, before)

    def groups(self) -> list[EventGroup]:
        """Every group and where it stands."""
        with self._database.read() as tx:
            return [EventGroup(*group) for group in groups.all_groups(tx)]

    def acknowledge(self, group: str | None, position: int | None, *, back: bool) -> None:
        """Keeps that a group as a whole has dealt with the events up to one. Raises InvalidOperationException.

        Once it went `back`, its members begin anew with the events after it.
        """
        name = group_name(group)
        with self._database.write() as tx:
            members.lock(tx, name)
            last = log.positions(tx).last
            if position is None or not 0 <= position <= last:
                raise InvalidOperationException(f"there is no event {position}: the last one is {last}")
            groups.move(tx, name, position, now_ms(), back=back)
            members.move_all(tx, name, position, back=back)

    def dead(self, outlet: str | None) -> list[DeadEvent]:
        """What an outlet, or any, did not take."""
        with self._database.read() as tx:
            return [DeadEvent(*letter) for letter in dead_letters.listed(tx, outlet)]

    def resend(self, outlet: str | None, numbers: Sequence[int] | None) -> list[int]:
        """Has what an outlet did not take, or some of it, sent again; returns the numbers.

        Raises InvalidOperationException for an event that is not set aside.
        """
        with self._database.write() as tx:
            found = dead_letters.ask_again(tx, outlet or "", numbers)
            if missing := sorted(set(numbers or ()) - set(found)):
                raise InvalidOperationException(
                    f"{outlet} has set aside no event {missing[0]} that could be sent again"
                )
        return found


def filter_of(tables: Sequence[str] | None, types: Sequence[str] | None) -> Filter:
    """What a reader wants. Raises InvalidOperationException for a filter that is none."""
    try:
        return Filter.parse(tables or (), types or ())
    except BadFilter as error:
        raise InvalidOperationException(str(error)) from None


def limit_of(limit: int | None) -> int:
    """How many events a reader may have at once."""
    return max(1, min(limit or MAX_EVENTS, MAX_EVENTS))


def group_name(name: str | None) -> str:
    """A group's name. Raises InvalidOperationException for what is none."""
    if not name or not _NAME.fullmatch(name):
        raise InvalidOperationException(f"{name!r} is no name for a group: A-Z a-z 0-9 _ . : -, at most 128")
    return name
