"""Moves the home of a database from the metastore that is left to ours.

What has been done is kept before each step that others see, so after a kill the same command goes on, and `roll-back`
leads back. Until clients are sent here, whatever fails lets them write there again.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lake.protocol.errors import UserError
from metastore.migration.changes import is_about
from metastore.migration.followed import (
    Followed,
    Home,
    all_of,
    brought_by_others,
    known_text,
    living_here,
    patterns_name,
    source_name,
    taken_by,
)
from metastore.migration.following import Follower, Standing, exactly
from metastore.migration.importing import came_from, is_transactional
from metastore.migration.mapping import Renaming, Selection
from metastore.migration.mirroring import problems_text
from metastore.migration.objects import DatabaseKey, Remark, TableKey
from metastore.migration.progress import Progress
from metastore.migration.source import Source, SourceFailed, TakenOver
from metastore.migration.switching.gate import Gate, NotTaken
from metastore.migration.switching.marks import Marks, claimed_by
from metastore.migration.switching.pointers import Pointers, of_iceberg
from metastore.migration.thrift_source import ThriftSource
from metastore.migration.verifying import EXTRA, Comparison, Seen, Verifier

QUIET_SECONDS = 1.0
"""How long the log must be quiet after the freeze: requests that were under way end meanwhile."""

ENTRIES_AT_ONCE = 1_000
"""Of a log, that are read together."""

OPEN_SECONDS = 60.0
"""How long is waited for transactions to end that write a database which is frozen."""

_ROUNDS = 3  # of draining and comparing, if somebody still writes
_TAKES = 3  # of what is followed, before a follower that takes it back each time is given in to
_SHARED = ("roles", "members")
_MADE_HERE = "What isn't there may have been made here: make it there, or drop it here without its data"
_ALTERED = "ALTER_DATABASE"  # a type of entries, which marks make


class Failed(UserError):
    """A database stays where it was."""


@dataclass
class Moved:
    """A database that has moved. `frozen`: seconds in which nobody could write it."""

    database: str
    frozen: float
    compared: int
    late: int = 0
    notes: list[Remark] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        return {
            "database": self.database,
            "frozen_seconds": round(self.frozen, 2),
            "compared": self.compared,
            "late": self.late,
            "notes": [each.plain() for each in self.notes],
        }


class CutOver:
    """Cuts databases over. `address`: where clients find them then. `say` gets lines for people."""

    def __init__(
        self,
        old: Source,
        here: ThriftSource,
        followed: Followed,
        *,
        threads: int,
        address: str,
        say: Callable[[str], None],
    ) -> None:
        self._old = old
        self._here = here
        self._pointers = Pointers(old, here, address) if isinstance(old, ThriftSource) else None
        self._marks = Marks(old, address, say) if isinstance(old, ThriftSource) else None
        self._followed = followed
        self._threads = threads
        self._address = address
        self._say = say
        self._follower = Follower(
            old,
            here,
            followed,
            threads=threads,
            patience=0,
            compare_every=float("inf"),
            say=lambda standing: None,
            warn=say,
        )
        self._seen = self._follower.seen = Seen()

    def run(self, key: DatabaseKey, gate: Gate) -> Moved:
        """`key`: by its name there. Raises Failed, NotTaken, SourceFailed, TakenOver."""
        with holding(self._here, self._followed, f"the cut-over of {key}"):
            home = self._followed.state.home(key)
            if home in (Home.HERE, Home.RETURNING):
                raise Failed(f"{key} lives here already: roll it back first, if that is wanted")
            check_way(self._followed, key, gate)
            self._check_alone(key)
            if home is Home.SWITCHING and (gate.is_switched() or is_written_here(self._here, self._followed, key)):
                # A command before was killed. What it has altered there after all was brought:
                marked = int(self._marks is not None and self._marks.has_moved(key))
                marked += self._mark_moving(key)  # so that its tables can be read
                closed = 0 if self._pointers is None else self._pointers.count(key)
                return self._finish(key, gate, time.monotonic(), 0, [], closed, marked)
            return self._move(key, gate)

    def _check_alone(self, key: DatabaseKey) -> None:
        """What lives here isn't made what another metastore has under the same name. Raises Failed."""
        here = self._followed.state.renaming.database_key(key)
        if (other := taken_by(self._old, self._followed, key)) is not None:
            raise Failed(
                f"{other} has its name here, by --rename: give it another name there, so that it can be brought"
            )
        others = brought_by_others(all_of(self._here), self._followed.source)
        if here in others and key not in self._followed.state.brought:
            raise Failed(came_from(here, others[here]))
        for each in _others(self._here, self._followed):
            if here in living_here([each]):
                raise Failed(f"{here} lives here already: it was brought from {each.source} ({each.databases})")

    def _move(self, key: DatabaseKey, gate: Gate) -> Moved:
        database = self._old.database(key)
        if database is None:
            raise Failed(f"there is no database {key}")
        other = claimed_by(database)
        # One with our own address is of a request of a killed command, which came late.
        if self._followed.state.home(key) is Home.THERE and other not in (None, self._address):
            raise Failed(f"{key} goes, or has gone, to another metastore: {other}. Only one of both may have it")
        self._open_again(key)  # a command before may have been killed
        self._followed.settle(key, Home.CUTTING, gate.way)
        try:
            gate.check()
            self._say(f"{key}: compares while writers go on")
            self._catch_up(key)
            began = time.monotonic()
            gate.freeze()
            self._mark_moving(key)
            self._say(f"{key}: frozen")
            compared, notes = self._bring_the_rest(key)
            # All of it is here as it is there, so nothing in it is of others: that matters once it is rolled back.
            self._followed.state.mirrored.add(key)
            self._followed.state.brought.add(key)
            # From here on no follower changes it here.
            self._followed.settle(key, Home.SWITCHING, gate.way, self._here.last_event() or 0)
            fence_others(self._here, self._followed)
            closed = self._close(key, notes)
        except BaseException as error:
            self._give_up(key, gate, error)
            raise
        return self._finish(key, gate, began, compared, notes, closed)

    def _bring_the_rest(self, key: DatabaseKey) -> tuple[int, list[Remark]]:
        for _ in range(_ROUNDS):
            self._drain(key)
            wait_for_transactions(self._old, key, "there")
            found = self._check(key)
            if not entries_since(self._old, key, self._followed.position):
                return found
        raise Failed(f"{key} is still written there: who doesn't come through the front, or hasn't been stopped?")

    def _finish(
        self,
        key: DatabaseKey,
        gate: Gate,
        began: float,
        compared: int,
        notes: list[Remark],
        closed: int,
        marked: int = 0,
    ) -> Moved:
        """`closed`: tables that were changed there after all was brought, and `marked`: how often the database was."""
        position = self._followed.position
        switch(gate, lambda error: self._give_up(key, gate, error))
        frozen = time.monotonic() - began
        if self._marks is not None:
            marked += self._marks.moved(key)
        self._followed.settle(key, Home.HERE)
        if (line := gate.said()) is not None:
            self._say(f"{key}: {line}")
        if self._marks is not None and not self._marks.is_guarded():
            self._say(f"{key}: who goes past the front can still write Hive's tables there: no listener prevents it")
        time.sleep(QUIET_SECONDS)  # for requests that were under way for long
        entries = entries_since(self._old, key, position)
        altered = entries.count(_ALTERED)  # Hive 2.3 has no such entries
        late = max(0, altered - marked) + max(0, len(entries) - altered - closed)
        return Moved(str(key), frozen, compared, late, notes)

    def _mark_moving(self, key: DatabaseKey) -> bool:
        """Has a listener there, if one is installed, let nobody change a database past the front."""
        return self._marks is not None and self._marks.moving(key)

    def _open_again(self, key: DatabaseKey) -> None:
        """Takes back what was done there so that nobody changes a database."""
        home = self._followed.state.home(key)
        if self._marks is not None and home is not Home.THERE:
            self._marks.clear(key)
        if self._pointers is not None and home is Home.SWITCHING:
            self._pointers.restore(key)

    def _close(self, key: DatabaseKey, notes: list[Remark]) -> int:
        """Has Iceberg's tables there take no commits any more. How many there are. Raises Committed."""
        here = self._followed.state.renaming.database_key(key)
        if self._pointers is not None:
            return self._pointers.block(key, here)
        if some := sum(1 for _ in of_iceberg(self._here, here)):
            text = f"{some:,} of Iceberg's tables can still be committed there: only a SOURCE of thrift:// prevents it"
            notes.append(Remark("tables", str(key), text, serious=True))
        return 0

    def _give_up(self, key: DatabaseKey, gate: Gate, error: BaseException) -> None:
        """Lets writers write there again. If that fails, too, the state says that it is under way."""
        if isinstance(error, TakenOver):
            self._say(f"{key}: another command has taken over. If it is about another database, do this one again")
            return
        try:
            self._open_again(key)
        finally:
            thaw(gate, self._say)
        self._say(f"{key}: it stays where it was, and may be written there again")
        self._followed.settle(key, Home.THERE)

    # --- bringing what is left --------------------------------------------------------------------------------

    def _catch_up(self, key: DatabaseKey) -> None:
        """All but what is written from here on."""
        self._until_current()
        self._follower.mend([key])

    def _drain(self, key: DatabaseKey) -> None:
        """What the log there has, until it is quiet about a database. Without a log, requests get time to end."""
        self._until_current()
        while True:
            position = self._followed.position
            time.sleep(QUIET_SECONDS)
            self._until_current()
            if not entries_since(self._old, key, position):
                return

    def _until_current(self) -> None:
        if not self._old.last_event():
            return
        standing: Standing = self._follower.step()
        while not standing.is_current:
            standing = self._follower.step()

    # --- comparing --------------------------------------------------------------------------------------------

    def _check(self, key: DatabaseKey) -> tuple[int, list[Remark]]:
        """How many objects are the same, and what differs that is no reason to stay. Raises Failed."""
        found = self._compare(key)
        blocking, notes = self._sorted_out(found)
        problems: list[Remark] = []
        if blocking:
            # What the log doesn't tell, and was changed since the comparison before.
            problems = self._follower.mend([key])
            found = self._compare(key)
            blocking, notes = self._sorted_out(found)
        if blocking:
            alone = any(each.text == EXTRA and each.kind in ("tables", "functions") for each in blocking)
            more = f". {_MADE_HERE}" if alone else ""
            more += f". {problems_text(problems)}" if problems else ""
            raise Failed(f"{key} differs, so it stays: {problems_text(blocking)}{more}")
        return found.compared, notes

    def _compare(self, key: DatabaseKey) -> Comparison:
        return compare(self._old, self._here, key, self._followed.state.renaming, self._threads, self._seen)

    def _sorted_out(self, found: Comparison) -> tuple[list[Remark], list[Remark]]:
        """What keeps a database there, and notes.

        Roles, members and grants on everything that are here alone may be of others; a member of a role that came over
        may be one whose membership has ended there. Once a database lives here, roles are changed on both sides. A
        catalog itself only says where new databases lie.
        """
        lives = any(home is Home.HERE for each in all_of(self._here) for home in each.state.homes.values())
        own = {each.name for each in found.differences if each.kind == "roles" and each.text == EXTRA}
        own |= {"admin", "public"}

        def is_note(each: Remark) -> bool:
            if lives or each.kind == "catalogs":
                return True
            if each.text != EXTRA:
                return False
            return each.kind != "members" or any(each.name.startswith(f"{role} ") for role in own)

        return sorted_out(found, is_note)


def entries_since(side: Source, key: DatabaseKey, position: int) -> list[str]:
    """The types of entries of a side's log about a database, by its name there, after a position.

    There are none without a log. Raises SourceFailed if there was one, and it can't be read any more.
    """
    found: dict[tuple[Any, ...], str] = {}
    newest = side.last_event()
    if newest is None and position:
        raise SourceFailed("the notification log can't be read any more, so nobody knows what was written meanwhile")
    if not newest:
        return []
    last = position
    while True:
        # From one number before: servers of Hive 2.3 give some numbers twice.
        events = side.events(max(position, last - 1), ENTRIES_AT_ONCE)
        for each in events:
            if is_about(each, key):
                found[each.eventId, each.eventType, each.tableName, each.message] = each.eventType or ""
        newest = max((each.eventId or 0 for each in events), default=last)
        if newest <= last:
            return list(found.values())
        last = newest


def compare(
    old: Source, here: ThriftSource, key: DatabaseKey, renaming: Renaming, threads: int, seen: Seen
) -> Comparison:
    """How a database, by its name there, differs, and roles."""
    progress = Progress(lambda line: None, "compared")
    one = exactly([key])
    return Verifier(old, here, selection=one, renaming=renaming, progress=progress, threads=threads, seen=seen).run()


def check_way(followed: Followed, key: DatabaseKey, gate: Gate) -> None:
    """What a command has begun is ended by the same options: others don't know where it has sent clients.

    Raises Failed.
    """
    way, _ = followed.state.under_way.get(key, (gate.way, 0))
    if way != gate.way:
        raise Failed(f"{key} is being moved by a command with {way}, which hasn't come to its end: give {way} again")


def is_written_here(here: ThriftSource, followed: Followed, key: DatabaseKey) -> bool:
    """Whether somebody has changed a database here since a command before was about to send clients here."""
    _, position = followed.state.under_way.get(key, ("", 0))
    return bool(position and entries_since(here, followed.state.renaming.database_key(key), position))


def wait_for_transactions(side: Source, key: DatabaseKey, where: str) -> None:
    """Whoever has a write id may still commit, also of what is frozen.

    `key`: by its name at a side, and `where` that is, in words. Raises Failed.
    """
    tables = [TableKey(*key, name) for name in side.tables(key)]
    parts = (side.bare_table(each) for each in tables)
    written = [each.key for each in parts if each is not None and is_transactional(each.table)]
    since = time.monotonic()
    for table in written:
        while (ids := side.write_ids(table, side.positions())) is not None and ids.open:
            if time.monotonic() - since > OPEN_SECONDS:
                raise Failed(f"transactions that write {table} are open {where}: wait for them, or abort them")
            time.sleep(1)


def sorted_out(found: Comparison, shared_is_note: Callable[[Remark], bool]) -> tuple[list[Remark], list[Remark]]:
    """Differences that keep a database where it is, and notes. Of what is shared by databases, some are notes."""
    blocking: list[Remark] = []
    notes: list[Remark] = []
    for each in found.differences:
        shared = each.kind in (*_SHARED, "catalogs") or (each.kind == "grants" and " on global" in each.name)
        (notes if shared and shared_is_note(each) else blocking).append(each)
    return blocking, notes


def _hold(followed: Followed, what: str) -> None:
    """Takes what is followed, and says what for. A follower that was slow to look may take it back in between."""
    for attempt in range(1, _TAKES + 1):
        followed.take()
        followed.state.held = what
        try:
            followed.keep()
            return
        except TakenOver:
            if attempt == _TAKES:
                raise


@contextmanager
def holding(here: ThriftSource, followed: Followed, what: str) -> Iterator[None]:
    """Takes what is followed, so that its follower changes nothing meanwhile, also one that is late."""
    _hold(followed, what)
    try:
        yield
    except TakenOver:
        raise
    except BaseException:
        followed.state.held = None
        followed.keep()
        raise
    followed.state.held = None
    followed.keep()


def switch(gate: Gate, give_up: Callable[[UserError], None]) -> None:
    """Sends clients to the other side. What fails before they may be there is given up.

    Raises what `Gate.switch` does.
    """
    try:
        gate.switch()
    except NotTaken:
        raise
    except UserError as error:
        give_up(error)
        raise


def thaw(gate: Gate, say: Callable[[str], None]) -> None:
    """Has a database be written again after something has failed. A front that is slow isn't waited for for ever."""
    try:
        gate.thaw()
    except NotTaken as error:
        say(str(error))


def fence_others(here: ThriftSource, followed: Followed) -> None:
    """Takes all else that is followed here: its followers begin again, and see first which databases live here."""
    others = ThriftSource(here.uri)
    try:
        for each in _others(others, followed):
            each.take()
    finally:
        others.close()


def _others(here: ThriftSource, followed: Followed) -> list[Followed]:
    """What else is followed here."""
    own = followed.source, followed.databases
    return [each for each in all_of(here) if (each.source, each.databases) != own]


def chosen(here: ThriftSource, source: str, key: DatabaseKey, databases: str | None) -> Followed:
    """The import that a database came by. `databases`: its patterns. Raises UserError if there is none, or several."""
    of_source = [each for each in all_of(here, source) if each.state.imported and each.selection.includes(key)]
    if databases is not None:
        name = patterns_name(Selection.parse(databases).patterns)
        of_source = [each for each in of_source if each.databases == name]
    if not of_source:
        raise UserError(
            f"{key} of {source_name(source)} was not imported here: import it first, or name all as before"
            f" ({known_text(here)})"
        )
    living = [each for each in of_source if each.state.home(key) is not Home.THERE]
    if len(living) == 1:
        return living[0]
    if len(of_source) > 1:
        names: Sequence[str] = [each.databases for each in of_source]
        raise UserError(f"{key} was imported by several selections ({'; '.join(names)}): name one by --databases")
    return of_source[0]
