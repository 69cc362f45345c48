"""Takes a database back to the metastore that it came from, with all that was changed here since.

What was changed is found by comparing, so it doesn't matter how it was changed, or whether a log still knows it.
"""

import time
from collections.abc import Callable

from lake.protocol.errors import UserError
from metastore.migration.followed import Followed, Home
from metastore.migration.mapping import Renaming
from metastore.migration.mirroring import problems_text, some_of
from metastore.migration.objects import DatabaseKey, Remark
from metastore.migration.source import TakenOver
from metastore.migration.switching.cutting_over import (
    QUIET_SECONDS,
    Failed,
    Moved,
    check_way,
    compare,
    entries_since,
    holding,
    is_written_here,
    sorted_out,
    switch,
    thaw,
    wait_for_transactions,
)
from metastore.migration.switching.gate import Gate
from metastore.migration.switching.marks import Marks
from metastore.migration.switching.pointers import Pointers
from metastore.migration.switching.returning import Returner
from metastore.migration.thrift_source import ThriftSource
from metastore.migration.verifying import Comparison, Seen

_ROUNDS = 6  # of comparing and bringing, once it is frozen
_STILL_WRITTEN = 3  # rounds of that, if somebody still writes
_TIMES = ("createTime: ", "grantInfo.createTime: ")


class RollBack:
    """Takes databases back. `old` is reached by Thrift: it is changed by Hive's calls. `address`: where clients find
    the databases until then. `say` gets lines for people."""

    def __init__(
        self,
        old: ThriftSource,
        here: ThriftSource,
        followed: Followed,
        *,
        threads: int,
        address: str,
        say: Callable[[str], None],
    ) -> None:
        self._pointers = Pointers(old, here, address)
        self._marks = Marks(old, address, say)
        self._old = old
        self._here = here
        self._followed = followed
        self._seen = Seen()
        self._threads = threads
        self._say = say

    def run(self, key: DatabaseKey, gate: Gate, unfinished: Gate) -> Moved:
        """`key`: by its name there. `gate` leads back; `unfinished` is that of a cut-over that hasn't come to its end.

        Raises Failed, NotTaken, SourceFailed, TakenOver.
        """
        with holding(self._here, self._followed, f"the roll-back of {key}"):
            home = self._followed.state.home(key)
            if home is Home.THERE:
                raise Failed(f"{key} lives there: nothing is to be rolled back")
            check_way(self._followed, key, gate)
            if home is Home.CUTTING or (
                home is Home.SWITCHING
                and not (unfinished.is_switched() or is_written_here(self._here, self._followed, key))
            ):
                self._marks.clear(key)
                self._pointers.restore(key)
                thaw(unfinished, self._say)
                self._followed.settle(key, Home.THERE)
                self._say(f"{key}: its cut-over had not come to its end; it may be written there again")
                return Moved(str(key), 0.0, 0)
            if home is Home.RETURNING and (gate.is_switched() or self._is_written_there(key)):
                return self._finish(key, gate, time.monotonic(), 0, [])
            return self._move(key, gate)

    def _is_written_there(self, key: DatabaseKey) -> bool:
        """As `is_written_here`, of the metastore there."""
        _, position = self._followed.state.under_way.get(key, ("", 0))
        return bool(position and entries_since(self._old, key, position))

    def _move(self, key: DatabaseKey, gate: Gate) -> Moved:
        inverted(self._followed.state.renaming)  # before anything is changed
        self._followed.settle(key, Home.HERE)
        try:
            gate.check()
            self._marks.clear(key)  # what is changed there from here on is changed by this command
            self._say(f"{key}: takes back what was changed, while writers go on")
            self._bring(key, checked=False)
            began = time.monotonic()
            gate.freeze()
            self._say(f"{key}: frozen")
            wait_for_transactions(self._here, self._followed.state.renaming.database_key(key), "here")
            compared, notes, position = self._bring_the_rest(key)
            self._followed.settle(key, Home.RETURNING, gate.way, self._old.last_event() or 0)
        except BaseException as error:
            if not isinstance(error, TakenOver):
                self._give_up(key, gate)
            raise
        return self._finish(key, gate, began, compared, notes, position)

    def _give_up(self, key: DatabaseKey, gate: Gate) -> None:
        self._close_again(key)
        thaw(gate, self._say)
        self._say(f"{key}: it stays here, and may be written here again")
        self._followed.settle(key, Home.HERE)

    def _close_again(self, key: DatabaseKey) -> None:
        """The database there, and Iceberg's tables in it, which were opened while all was brought."""
        here = self._followed.state.renaming.database_key(key)
        # Pointers first: the mark lets nobody read the tables.
        ways: list[Callable[[], object]] = [lambda: self._pointers.block(key, here), lambda: self._marks.moved(key)]
        for close in ways:
            try:
                close()
            except UserError as error:  # the failure before matters more
                self._say(str(error))

    def _bring_the_rest(self, key: DatabaseKey) -> tuple[int, list[Remark], int]:
        """As `_bring`, once the log here is quiet about the database, and up to which of its entries that is."""
        own = self._followed.state.renaming.database_key(key)
        for _ in range(_STILL_WRITTEN):
            time.sleep(QUIET_SECONDS)  # requests that were under way end meanwhile
            position = self._here.last_event() or 0
            compared, notes = self._bring(key, checked=True)
            if not entries_since(self._here, own, position):
                return compared, notes, position
        raise Failed(f"{key} is still written here: who doesn't come through the front, or hasn't been stopped?")

    def _finish(
        self,
        key: DatabaseKey,
        gate: Gate,
        began: float,
        compared: int,
        notes: list[Remark],
        position: int | None = None,
    ) -> Moved:
        """`position`: of the log here when it was compared."""
        if position is None:  # a command before was killed
            position = self._here.last_event() or 0
        switch(gate, lambda _: self._give_up(key, gate))
        frozen = time.monotonic() - began
        self._followed.settle(key, Home.THERE)
        if (line := gate.said()) is not None:
            self._say(f"{key}: {line}")
        time.sleep(QUIET_SECONDS)  # for requests that were under way for long
        late = len(entries_since(self._here, self._followed.state.renaming.database_key(key), position))
        return Moved(str(key), frozen, compared, late, notes)

    def _bring(self, key: DatabaseKey, *, checked: bool) -> tuple[int, list[Remark]]:
        """How many objects are the same then, and what differs that is no reason to stay. Raises Failed.

        What the metastore there refuses may have been done all the same, and its database refuses some calls only
        because others write at that moment. So what counts is what is there then, until the same is refused twice.
        """
        renaming = self._followed.state.renaming
        here = renaming.database_key(key)
        own = self._here.database(here)
        if own is None:
            raise Failed(f"there is no database {here} here any more: drop it there yourself, without its data")
        problems: list[Remark] = []
        blocking: list[Remark] = []
        for _ in range(_ROUNDS):
            # Until it is frozen here, Iceberg's tables there stay closed.
            returner = Returner(self._here, self._old, renaming, inverted(renaming), closed=not checked)
            if returner.create(key, own):
                found = compare(self._old, self._here, key, renaming, self._threads, self._seen)
                blocking, notes = self._sorted_out(found)
                if not blocking:
                    return found.compared, notes
                returner.mend(key, here, found.affected)
            if returner.dropped:
                self._say(f"{key}: dropped there, since it isn't here: {some_of(returner.dropped)}")
            before, problems = problems, returner.problems
            if not checked:
                return 0, []  # writers go on: what they dropped meanwhile looks like a problem
            if problems and problems == before:
                break
            if problems:
                time.sleep(QUIET_SECONDS)
        raise Failed(f"{key} stays here: {problems_text(problems or blocking)}")

    def _sorted_out(self, found: Comparison) -> tuple[list[Remark], list[Remark]]:
        """Roles are changed on both sides. When something was made is Hive's own affair."""
        blocking, notes = sorted_out(found, lambda each: True)
        times = [each for each in blocking if _only_times(each)]
        return [each for each in blocking if each not in times], notes + times


def inverted(renaming: Renaming) -> Renaming:
    """From names and places here to those there. Raises Failed if two places there have become one here."""
    if renaming.merged:
        raise Failed("two --location have become one place: which of them it was can't be told any more")
    back = [(new, old) for old, new in renaming.locations]
    return Renaming({new: old for old, new in renaming.databases.items()}, sorted(back, key=lambda each: -len(each[0])))


def _only_times(remark: Remark) -> bool:
    return all(part.startswith(_TIMES) for part in remark.text.split("; "))
