"""The event calls that don't depend on a group's members: read events, positions, groups, dead letters."""

import re
from collections.abc import Callable, Sequence

from eventbus.groups import members
from eventbus.log import epochs, group_positions, log, reader
from eventbus.log.reader import Page
from eventbus.log.sequencer import Sequencer
from eventbus.outlets import dead_letters
from lake.protocol.clock import now_ms
from lake.protocol.events.filters import BadFilter, Filter
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import DeadEvent, EventGroup, EventPositions, EventsGone
from metastore.services.subscriptions.shown_pages import MAX_BYTES, MAX_EVENTS, Shown, gather
from metastore.services.subscriptions.wakeups import EventWaits
from metastore.store import Database
from metastore.store.engine.database import Transaction

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class EventReads:
    """The event calls of subscribers and of operators."""

    def __init__(self, database: Database, sequencer: Sequencer) -> None:
        self._database = database
        self._sequencer = sequencer
        self._waits = EventWaits(database)

    def read(
        self,
        after: int,
        limit: int | None,
        tables: Sequence[str] | None,
        types: Sequence[str] | None,
        history: str | None = None,
        shown: Shown | None = None,
    ) -> tuple[Page, str]:
        """The next events after a number, and the history text of their position (see `epochs.text_of`).

        Sees everything that was committed before the call. `history`: the text that came with `after`. `shown`: says
        which events the reader sees; None if it sees all. Raises EventsGone if events were trimmed, or if events that
        the reader has received are undone. Raises InvalidOperationException for an invalid filter, or a number that
        doesn't exist yet.
        """
        wanted, most = filter_of(tables, types), limit_of(limit)
        self._sequencer.catch_up()
        with self._database.read() as tx:
            check_history(tx, history, after)
            last = log.positions(tx).last
            if not 0 <= after <= last:
                raise InvalidOperationException(f"there is no event {after}: the last one is {last}")
            if shown is None:
                page = _page(tx, after, wanted, most)
                return page, epochs.text_of(tx, page.position)

        def read(position: int, upto: int) -> Page:
            with self._database.read() as tx:
                return _page(tx, position, wanted, MAX_EVENTS, upto)

        page = gather(read, after, most, shown)
        with self._database.read() as tx:
            return page, epochs.text_of(tx, page.position)

    def predicate(self, after: int, tables: Sequence[str] | None, types: Sequence[str] | None) -> Callable[[int], bool]:
        """A function that says whether there is an event that a waiting reader wants; see `EventWaits.predicate`."""
        return self._waits.predicate(filter_of(tables, types), after)

    def positions(self, group: str | None, since: int | None) -> EventPositions:
        """The first and the last event's numbers, a group's position, and the last event before a time.

        `since`: in milliseconds since 1970.
        """
        self._sequencer.catch_up()
        with self._database.read() as tx:
            now = log.positions(tx)
            found = group_positions.find(tx, group) if group else None
            first = reader.first_since(tx, since) if since is not None else None
            history = epochs.text_of(tx, now.last)
        before = None if since is None else (first - 1 if first else now.last)
        return EventPositions(now.trimmed + 1, now.last, found.position if found else None, before, history)

    def groups(self) -> list[EventGroup]:
        """All groups and outlets with their positions."""
        self._sequencer.catch_up()
        with self._database.read() as tx:
            return [
                EventGroup(
                    each.name,
                    each.position,
                    each.updated_at,
                    each.members,
                    each.behind,
                    each.dead_letters,
                    each.seen_at,
                )
                for each in group_positions.all_groups(tx)
            ]

    def acknowledge(self, group: str | None, position: int | None, *, back: bool) -> None:
        """Moves a whole group to a position, with all its shards. Raises InvalidOperationException.

        With `back`, also backward: its members then receive the events after the position again.
        """
        name = group_name(group)
        with self._database.write() as tx:
            members.lock(tx, name)
            last = log.positions(tx).last
            if position is None or not 0 <= position <= last:
                raise InvalidOperationException(f"there is no event {position}: the last one is {last}")
            group_positions.move(tx, name, position, now_ms(), back=back)
            group_positions.see(tx, name)
            members.move_all(tx, name, position, back=back)
            epochs.mark_known(tx, name)

    def delete_group(self, name: str | None) -> None:
        """Deletes a group, or an outlet's position.

        Raises NoSuchObjectException, and InvalidOperationException while the group has members: they would silently
        create it again.
        """
        group = group_name(name)
        with self._database.write() as tx:
            members.lock(tx, group)
            found = group_positions.find(tx, group)
            if found is None:
                raise NoSuchObjectException(f"there is no group {group}")
            if found.members:
                raise InvalidOperationException(f"{found.members} members read for {group}: stop them first")
            group_positions.delete(tx, group)

    def dead(self, outlet: str | None) -> list[DeadEvent]:
        """The dead letters of an outlet, or of all."""
        with self._database.read() as tx:
            return [DeadEvent(*letter) for letter in dead_letters.listed(tx, outlet)]

    def resend(self, outlet: str | None, numbers: Sequence[int] | None) -> list[int]:
        """Requests that an outlet's dead letters, all or some, are sent again. Returns their numbers.

        Raises InvalidOperationException if there is no such dead letter.
        """
        with self._database.write() as tx:
            found = dead_letters.ask_again(tx, outlet or "", numbers)
            if missing := sorted(set(numbers or ()) - set(found)):
                raise InvalidOperationException(f"{outlet} has no dead letter {missing[0]} that could be sent again")
        return found

    def discard(self, outlet: str | None, numbers: Sequence[int] | None) -> list[int]:
        """Deletes an outlet's dead letters, all or some. Returns their numbers.

        Raises InvalidOperationException if there is no such dead letter.
        """
        with self._database.write() as tx:
            found = dead_letters.discard(tx, outlet or "", numbers)
            if missing := sorted(set(numbers or ()) - set(found)):
                raise InvalidOperationException(f"{outlet} has no dead letter {missing[0]}")
        return found


def _page(tx: Transaction, after: int, wanted: Filter, limit: int, upto: int | None = None) -> Page:
    """Raises EventsGone if events were trimmed."""
    try:
        return reader.read(tx, after, wanted, limit=limit, max_bytes=MAX_BYTES, upto=upto)
    except log.Trimmed as gone:
        raise EventsGone(str(gone), gone.oldest) from None


def check_history(tx: Transaction, history: str | None, reached: int) -> None:
    """Raises EventsGone if events that a reader has received are undone by a restore of the log.

    `history`: the text of the reader's last response. `reached`: the greatest number that it has received. Raises
    InvalidOperationException for a text that no response contained.
    """
    if history is None:
        return
    try:
        common = epochs.undone_after(tx, history, reached)
    except epochs.BadHistory as error:
        raise InvalidOperationException(str(error)) from None
    if common is not None:
        raise restored(tx, common)


def restored(tx: Transaction, common: int) -> EventsGone:
    """The exception for a reader whose events after `common` are undone."""
    oldest = max(common, log.positions(tx).trimmed) + 1
    return EventsGone(
        f"the metastore was restored from a backup: events after {common} may be undone, and their numbers are given"
        f" again. Read the current state of the tables, then go on after {oldest - 1}",
        oldest,
        True,
    )


def filter_of(tables: Sequence[str] | None, types: Sequence[str] | None) -> Filter:
    """A reader's filter. Raises InvalidOperationException for an invalid one."""
    try:
        return Filter.parse(tables or (), types or ())
    except BadFilter as error:
        raise InvalidOperationException(str(error)) from None


def limit_of(limit: int | None) -> int:
    """The number of events to return: the requested limit within 1 and MAX_EVENTS."""
    return max(1, min(limit or MAX_EVENTS, MAX_EVENTS))


def group_name(name: str | None) -> str:
    """Checks a group's name and returns it. Raises InvalidOperationException."""
    if not name or not _NAME.fullmatch(name):
        raise InvalidOperationException(
            f"{name!r} is no valid name of a group: use A-Z a-z 0-9 _ . : -, at most 128 characters"
        )
    return name
