"""Follows a metastore that is left, by its notification log.

An entry only names what has changed; the object is read again and becomes here what it is there. The position is kept
here once all up to it is done. After a kill the entries since then are dealt with again, which changes nothing.

Where the log doesn't say all, databases are compared: where it has holes, was emptied or replaced, and where there is
none.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from thrift.Thrift import TApplicationException

from lake.protocol.errors import UserError
from lake.protocol.hive import NotificationEvent
from lake.protocol.struct import ExceptionStruct
from metastore.migration.changes import Changes, TableChange, changes_of
from metastore.migration.followed import (
    HIDDEN,
    Followed,
    all_of,
    brought_by_others,
    check_free,
    digest,
    living_here,
    mark_at,
    taken_by,
)
from metastore.migration.importing import came_from, gone_to
from metastore.migration.mapping import Selection, database_key
from metastore.migration.mirroring import Mirror, some_of
from metastore.migration.objects import DatabaseKey, Remark, TableKey
from metastore.migration.progress import Progress, described
from metastore.migration.source import Source, SourceFailed, TakenOver, error_text
from metastore.migration.thrift_source import ThriftSource
from metastore.migration.verifying import Affected, Seen, Verifier

POLL_SECONDS = 1.0
SURE_SECONDS = 3.0
"""How long a hole must last: several servers of Hive 2.3 write entries in another order than their numbers."""

RETRY_SECONDS = 30.0
"""Between two tries of what couldn't be brought."""

OVERLAP = 100
"""Entries that are read again: several servers of Hive 2.3 give one number twice, and the later one may come late."""

_AT_ONCE = 500
_SAY_SECONDS = 60.0  # that a command holds what is followed, before the follower says so
_LATE_SECONDS = 10.0  # between two looks for late entries while there are no new ones
_TAKEN = "{} has its name here, by --rename: give it another name there, so that it can be brought"
NO_LOG = (
    "it keeps no notification log that can be read (hive.metastore.transactional.event.listeners with"
    " DbNotificationListener, and hive.metastore.event.db.notification.api.auth)"
)


class Halted(UserError):
    """The follower can't go on. What it has done is kept."""


@dataclass
class Standing:
    """How far a follower is. `behind_seconds`: how old the oldest entry is that isn't dealt with, by both clocks.

    `counts`: what was brought or dropped; `compared`: why databases were compared; `elsewhere`: entries about databases
    that live here by now: somebody has changed them there.
    """

    position: int = 0
    behind_events: int = 0
    behind_seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[Remark] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
    elsewhere: int = 0
    is_current: bool = False

    def plain(self) -> dict[str, Any]:
        return {
            "position": self.position,
            "behind_events": self.behind_events,
            "behind_seconds": round(self.behind_seconds, 1),
            "current": self.is_current,
            "counts": self.counts,
            "problems": [each.plain() for each in self.problems],
            "compared": self.compared,
            "elsewhere": self.elsewhere,
        }

    def text(self) -> str:
        lag = "current" if self.is_current else f"{self.behind_events:,} behind, {self.behind_seconds:,.0f} s"
        parts = [f"at {self.position:,} ({lag})", described(self.counts)]
        parts += [f"compared: {each}" for each in self.compared]
        if self.elsewhere:
            parts.append(f"{self.elsewhere:,} entries there about databases that live here: who writes them there?")
        if self.problems:
            parts.append(f"{len(self.problems):,} problems")
        return "; ".join(parts)


class Follower:
    """`say` gets a standing whenever something was done. `patience`: seconds without an answer of either metastore, or
    in which ours takes no changes, before it halts. `compare_every`: seconds between two comparisons without a log."""

    def __init__(
        self,
        old: Source,
        here: ThriftSource,
        followed: Followed,
        *,
        threads: int,
        patience: float,
        compare_every: float,
        say: Callable[[Standing], None],
        warn: Callable[[str], None],
    ) -> None:
        self._old = old
        self._here = here
        self._followed = followed
        self._threads = threads
        self._patience = patience
        self._compare_every = compare_every
        self._say = say
        self._warn = warn
        self._own = secrets.token_hex(8)
        self._seen: set[tuple[int, str]] | None = None
        self._hole_since: float | None = None
        self._looked_late = 0.0
        self._compared_at = float("-inf")
        self._tried_at = float("-inf")
        self._problems: list[Remark] = []
        self._elsewhere = 0
        self._counts: dict[str, int] = {}
        self._reasons: list[str] = []
        self._living: set[DatabaseKey] = set()
        self._taken: dict[DatabaseKey, Remark] = {}
        self._others: dict[DatabaseKey, str] = {}
        self._looked_at_names = float("-inf")
        self.seen: Seen | None = None
        """What comparisons leave for later ones of the same databases."""

    # --- the loop ---------------------------------------------------------------------------------------------

    def run(self, *, until_current: bool) -> Standing:
        """Follows, for ever or until all is here that the log had. Raises Halted, TakenOver for another follower."""
        self._patiently(self._take)
        if self._patiently(lambda: self._old.last_event() and self._old.says_no_log()):
            self._warn(f"its log may have ended: {NO_LOG}")
        while True:
            try:
                standing: Standing = self._patiently(self.step)
            except TakenOver:
                self._patiently(self._take_again)
                continue
            if standing.counts or standing.compared or standing.problems != self._problems:
                self._problems = standing.problems
                self._say(standing)
            for kind, count in standing.counts.items():
                self._counts[kind] = self._counts.get(kind, 0) + count
            self._reasons += standing.compared
            if standing.is_current:
                if until_current:
                    return replace(standing, counts=self._counts, compared=self._reasons)
                time.sleep(POLL_SECONDS)

    def _patiently(self, action: Callable[[], Any]) -> Any:
        since = None
        while True:
            try:
                done = action()
            except TakenOver:
                raise
            except (SourceFailed, ExceptionStruct, TApplicationException) as error:
                text = error_text(error)
                now = time.monotonic()
                if since is None:
                    since = now
                    self._warn(f"waits: {text}")
                if now - since >= self._patience:
                    raise Halted(
                        f"halted at {self._followed.position:,}, after {self._patience:,.0f} s: {text}"
                    ) from None
                time.sleep(min(2.0, self._patience))
            else:
                if since is not None:
                    self._warn("goes on")
                return done

    def _take(self) -> None:
        check_free(self._followed, "follow")
        self._followed.take()
        self._followed.state.follower = self._own
        self._followed.keep()

    def _take_again(self) -> None:
        """After a command has taken it, or another follower."""
        self._here.let_go()
        since: float | None = time.monotonic()
        while True:
            time.sleep(POLL_SECONDS)  # a command that takes it says so with its next call
            now = self._followed.look()
            if since is not None and time.monotonic() - since > _SAY_SECONDS:
                self._warn(f"waits: {now.state.held} has not come to its end. If it isn't under way, do it again")
                since = None
            if now.state.follower != self._own:
                raise TakenOver("another follower has taken over: this one ends")
            if now.state.held is None:
                break
        self._followed.take()
        self._followed.keep()

    # --- one step ---------------------------------------------------------------------------------------------

    def step(self) -> Standing:
        """Does what the next entries say, as many as are read together.

        Raises SourceFailed, TakenOver, and what a server raises that takes no changes.
        """
        self._look_around()
        self._look_at_names()
        standing = Standing()
        last = self._old.last_event()
        if not last:
            self._without_log(standing)
        elif self._followed.state.compare:
            self._compare(standing, "what was left to compare", last)
        else:
            self._next(standing, last)
        self._try_again(standing)
        standing.problems += [each for each in self._taken.values() if each not in standing.problems]
        standing.position = self._followed.position
        standing.elsewhere = self._elsewhere
        return standing

    def _without_log(self, standing: Standing) -> None:
        if time.monotonic() - self._compared_at >= self._compare_every:
            self._compare(standing, NO_LOG, 0)
        standing.is_current = True

    def _next(self, standing: Standing, last: int) -> None:
        position = self._followed.position
        if last < position:
            self._compare(standing, f"the log's numbers went back from {position:,} to {last:,}", last)
            return
        if last == position and self._seen is not None and time.monotonic() - self._looked_late < _LATE_SECONDS:
            standing.is_current = True
            return
        self._looked_late = time.monotonic()
        if not position and self._followed.state.mark is None and last:
            # There was no log, or an empty one: what was changed before it was kept isn't in it.
            self._compare(standing, "there was no log before", last)
            return
        events = self._old.events(max(0, position - OVERLAP), OVERLAP + _AT_ONCE)
        if any(each.eventType == HIDDEN for each in events):
            raise Halted("the log hides entries from this user: follow as one who may see all (METASTORE_SOURCE_USER)")
        known = [each for each in events if _number(each) <= position]
        fresh = _dense([each for each in events if _number(each) > position], position)
        at = {digest(each) for each in known if each.eventId == position}
        if at and self._followed.state.mark is not None and self._followed.state.mark not in at:
            self._compare(standing, f"entry {position:,} is another one than it was: the log was replaced", last)
            return
        if not fresh and last > position and self._is_lost():
            following = [number for each in events if (number := _number(each)) > position]
            end = min(following, default=last + 1) - 1
            self._compare(standing, f"entries {position + 1:,} to {end:,} are missing in the log", last)
            return
        if fresh or last == position:
            self._hole_since = None
        self._do(standing, known, fresh)
        left = last - self._followed.position
        standing.behind_events = max(0, left)
        standing.is_current = left <= 0
        if left > 0:
            at_time = next((each.eventTime for each in events if _number(each) > self._followed.position), None)
            standing.behind_seconds = max(0.0, time.time() - (at_time or (fresh[-1].eventTime if fresh else 0) or 0))
            if not fresh:
                time.sleep(POLL_SECONDS)

    def _is_lost(self) -> bool:
        """Whether a hole has lasted."""
        now = time.monotonic()
        self._hole_since = self._hole_since or now
        return now - self._hole_since >= SURE_SECONDS

    def _do(self, standing: Standing, known: Sequence[NotificationEvent], fresh: Sequence[NotificationEvent]) -> None:
        """Deals with new entries, and with late ones among those before."""
        marked = [((_number(each), digest(each)), each) for each in known]
        first, seen = self._seen is None, self._seen or set()
        late = [each for mark, each in marked if mark not in seen]
        if late or fresh:
            changes = changes_of(fresh)
            self._count_elsewhere(changes)  # late ones may be of before
            changes.add(changes_of(late, again=first))
            self._apply(standing, changes)
        if fresh:
            self._followed.position = _number(fresh[-1])
            self._followed.state.mark = digest(fresh[-1])
        if fresh or standing.problems:
            self._followed.keep()
        self._seen = {mark for mark, _ in marked} | {(_number(each), digest(each)) for each in fresh}

    def _count_elsewhere(self, changes: Changes) -> None:
        """Notes changes there of databases that live here."""
        chosen, renaming = self._followed.selection, self._followed.state.renaming
        living = {
            key
            for key in changes.named()
            if chosen.includes(key) and renaming.database_key(key) in self._living and not self._is_of_another(key)
        }
        inside = replace(changes, databases=set()).named()
        self._elsewhere += sum(key in inside or not self._is_marked(key) for key in living)

    def _is_marked(self, key: DatabaseKey) -> bool:
        """Whether a cut-over has altered a database there."""
        database = self._old.database(key)
        return database is not None and gone_to(database) is not None

    def _apply(self, standing: Standing, changes: Changes) -> None:
        renaming = self._followed.state.renaming
        wanted = changes.only(self._follows)
        homes = wanted.functions | {key.of_database for key in wanted.tables}
        wanted.databases |= {key for key in homes if self._here.database(renaming.database_key(key)) is None}
        new = {key for key in wanted.databases if self._here.database(renaming.database_key(key)) is None}
        self._keep_new(new)
        mirror = self._mirror()
        mirror.apply(wanted)
        left = {key for key in wanted.compared | wanted.remade if self._old.database(key) is not None}
        if wanted.everything:
            left |= set(self._chosen())
        if left:
            self._mend(mirror, sorted(left))
        if left - wanted.remade:
            standing.compared.append(f"entries that don't say what has changed, of {len(left):,} databases")
        self._note(standing, mirror, wanted)

    def _keep_new(self, keys: set[DatabaseKey]) -> None:
        """Notes databases that aren't here, before they are made."""
        state = self._followed.state
        if not keys <= state.mirrored & state.brought:
            state.mirrored |= keys
            state.brought |= keys
            self._followed.keep()

    def _say_dropped(self, mirror: Mirror) -> None:
        if mirror.dropped:
            self._warn(f"dropped here, since it isn't there: {some_of(mirror.dropped)}")

    def _note(self, standing: Standing, mirror: Mirror, changes: Changes) -> None:
        self._say_dropped(mirror)
        for kind, count in mirror.counts.items():
            standing.counts[kind] = standing.counts.get(kind, 0) + count
        standing.problems += mirror.problems
        unfinished = self._followed.state.unfinished
        unfinished -= set(changes.tables)
        unfinished -= {TableKey(*home, "") for home in changes.databases}
        if changes.catalogs:
            unfinished -= {each for each in unfinished if not each.database}
        unfinished |= mirror.unfinished(changes)
        self._followed.state.ungranted |= mirror.ungranted

    def _try_again(self, standing: Standing) -> None:
        """What couldn't be brought before."""
        state = self._followed.state
        if not state.unfinished and not state.ungranted:
            return
        if time.monotonic() - self._tried_at < RETRY_SECONDS:
            standing.problems += [each for each in self._problems if each not in standing.problems]
            return
        self._tried_at = time.monotonic()
        renaming = state.renaming
        state.unfinished, ungranted = (
            {key for key in keys if renaming.database_key(key.of_database) not in self._living}
            for keys in (state.unfinished, state.ungranted)
        )
        wanted = Changes()
        for key in state.unfinished:
            if key.table:
                wanted.tables[key] = TableChange.whole()
            elif key.database:
                wanted.databases.add(key.of_database)
                wanted.functions.add(key.of_database)
            else:
                wanted.catalogs = True
        mirror = self._mirror()
        mirror.apply(wanted, compared=True)
        mirror.grants(ungranted)
        state.ungranted = set()
        standing.problems.clear()
        self._note(standing, mirror, wanted)
        self._followed.keep()

    # --- comparing --------------------------------------------------------------------------------------------

    def _compare(self, standing: Standing, why: str, last: int) -> None:
        """Compares all databases; what the log says up to `last` is here then."""
        state = self._followed.state
        if not state.compare:
            state.compare = True
            self._followed.keep()
        mark = mark_at(self._old, last)
        self._warn(f"compares all databases: {why}")
        mirror = self._mirror()
        chosen = self._chosen()
        found = self._mend(mirror, chosen)
        renaming = state.renaming
        for key in sorted(state.mirrored - set(chosen)):
            if renaming.database_key(key) not in self._living and self._old.database(key) is None:
                mirror.drop_database(key, compared=True)
        self._say_dropped(mirror)
        standing.compared.append(why)
        standing.counts = mirror.counts
        standing.problems = mirror.problems
        state.compare, state.unfinished, state.mark = False, mirror.unfinished(found), mark
        state.ungranted = mirror.ungranted
        self._tried_at = time.monotonic()
        self._followed.position = last
        self._followed.keep()
        self._seen, self._hole_since = None, None
        self._compared_at = time.monotonic()

    def _chosen(self) -> list[DatabaseKey]:
        """The databases there that are followed, and don't live here."""
        catalogs = [each.name or "" for each in self._old.catalogs()] or ["hive"]
        found = [database_key(each) for name in catalogs for each in self._old.databases(name)]
        return [key for key in found if self._follows(key)]

    def _look_around(self) -> None:
        """What others have here by now."""
        every = all_of(self._here)
        self._living = set(living_here(every))
        self._others = brought_by_others(every, self._followed.source)

    def _look_at_names(self) -> None:
        """Whether a database there can't be brought because another one has its name here."""
        names = self._followed.state.renames.values()
        if not (names or self._others) or time.monotonic() - self._looked_at_names < RETRY_SECONDS:
            return
        self._looked_at_names = time.monotonic()
        self._taken.clear()
        renaming = self._followed.state.renaming
        keys = {renaming.key_there(here) for here in self._others}
        if names:
            catalogs = [each.name or "" for each in self._old.catalogs()] or ["hive"]
            keys |= {DatabaseKey(catalog, name) for catalog in catalogs for name in names}
        for key in sorted(each for each in keys if each is not None):
            self._follows(key)

    def _is_of_another(self, key: DatabaseKey) -> bool:
        """Whether what has this name here came from another metastore."""
        state = self._followed.state
        return state.renaming.database_key(key) in self._others and key not in state.brought

    def _follows(self, key: DatabaseKey) -> bool:
        """Whether a database there is brought here."""
        here = self._followed.state.renaming.database_key(key)
        if not self._followed.selection.includes(key):
            return False
        if self._is_of_another(key):
            why = came_from(here, self._others[here])
        elif here in self._living:
            return False
        elif (other := taken_by(self._old, self._followed, key)) is not None:
            why = _TAKEN.format(other)
        else:
            return True
        if self._old.database(key) is not None:
            self._taken[key] = Remark("databases", str(key), why, serious=True)
        return False

    def _mend(self, mirror: Mirror, chosen: Sequence[DatabaseKey]) -> Changes:
        """Compares databases, and makes them here what they are there. What differed."""
        state = self._followed.state
        new = {key for key in chosen if self._here.database(state.renaming.database_key(key)) is None}
        self._keep_new(new)
        found = Changes(databases=set(chosen))
        mirror.apply(found)
        if chosen:
            affected = self._differing(chosen)
            mirror.mend(affected)
            found.functions |= affected.databases
            found.tables = {key: TableChange.whole() for key in affected.tables | set(affected.partitions)}
        return found

    def mend(self, keys: Sequence[DatabaseKey]) -> list[Remark]:
        """Compares databases, and makes them here what they are there, as far as it goes. What couldn't be done.

        What the log there has was done before. So a table or function that is here alone isn't one that was dropped
        there: somebody has made it here, and it stays.
        """
        self._look_around()
        mirror = self._mirror(keeps=bool(self._old.last_event()))
        self._mend(mirror, keys)
        self._say_dropped(mirror)
        return mirror.problems

    def _differing(self, chosen: Iterable[DatabaseKey]) -> Affected:
        """Where databases differ."""
        return (
            Verifier(
                self._old,
                self._here,
                selection=exactly(chosen),
                renaming=self._followed.state.renaming,
                progress=Progress(lambda line: None, "compared"),
                threads=self._threads,
                seen=self.seen,
            )
            .run()
            .affected
        )

    def _mirror(self, *, keeps: bool = False) -> Mirror:
        state = self._followed.state
        return Mirror(
            self._old,
            self._here,
            renaming=state.renaming,
            progress=Progress(lambda line: None, "brought"),
            threads=self._threads,
            mirrored=state.mirrored,
            brought=state.brought,
            others=lambda: self._others,
            keeps=keeps,
        )


def exactly(keys: Iterable[DatabaseKey]) -> Selection:
    """These databases and no others."""
    return Selection([f"{key.catalog}.{key.database}" for key in keys])


def _dense(events: Sequence[NotificationEvent], position: int) -> list[NotificationEvent]:
    """Entries up to the first hole in their numbers; several may have one number."""
    found: list[NotificationEvent] = []
    for each in events:
        number = _number(each)
        if number > position + 1:
            break
        position = max(position, number)
        found.append(each)
    return found


def _number(event: NotificationEvent) -> int:
    return event.eventId or 0
