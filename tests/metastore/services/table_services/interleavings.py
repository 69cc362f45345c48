"""Random interleavings of everything that meets a clean, statement by statement, in memory.

A transaction is a generator: it yields before each of its statements, or the lock that it needs first. Another one may
run in between. A statement sees what was committed before it, and what a transaction changes is seen at its end, as in
Postgres with READ COMMITTED. The steps and locks are those of `timeline.commit`, `timeline.service`,
`timeline.cleaning` and `snapshot.reader_leases`.

What each position holds is noted apart from the rows by which the rules decide. So a rule that is wrong is found when
a file goes that somebody reads.
"""

from collections.abc import Callable, Collection, Iterator
from random import Random
from typing import NamedTuple

from tests.metastore.services.table_services.cleaning_rules import (
    ALL,
    Group,
    Kept,
    Plan,
    Row,
    by_commits,
    by_versions,
    may_delete,
)

GROUPS: list[Group] = [("x", "a"), ("x", "b"), ("y", "a")]
READERS = ["one", "two"]
TRANSACTIONS = 20
"""Of one interleaving."""

AT_ONCE = 4
"""Transactions that are open at a time."""

OMISSIONS = {
    "looked at again": "a clean deletes what it planned, whatever came since",
    "leases": "leases don't count",
    "onwards": "a lease onwards keeps its own position alone",
    "savepoints": "savepoints don't count",
    "plans": "pending plans don't count",
    "uncommitted": "uncommitted partitions don't count",
    "a file is one": "the rows of a file that came back count each by itself",
    "cleans wait": "a clean doesn't wait for leases that are being taken",
    "leases wait": "a lease doesn't wait for a clean that goes on",
    "lease reads before it waits": "a lease looks at what is readable before it has waited",
    "lease is checked": "a lease is granted on what is gone",
    "lease onwards is checked": "a lease onwards is granted if its own position is readable",
    "savepoint is checked": "a savepoint is completed on what is gone",
    "rollback is checked": "a rollback goes back to what is gone",
    "completions wait": "a clean and other completions go on at once",
    "oldest": "the oldest readable position stays after a clean",
}
"""Rules that a faulty server might leave out, and what it would do."""


class Violation(Exception):
    """A file was deleted that somebody needs; the message has what led to it."""


class Lock(NamedTuple):
    name: str
    shared: bool = False


ENDED = Lock("")
"""What a transaction yields that has ended: it holds no lock any more, and another begins."""

Steps = Iterator[Lock | None]
Contents = dict[Group, tuple[str, ...]]


class World:
    """A table, as it is committed. `without`: names of OMISSIONS."""

    def __init__(self, random: Random, without: Collection[str] = ALL) -> None:
        self.random = random
        self.without = without
        self.rows: list[Row] = []
        self.contents: list[Contents] = [{}]
        self.changes: list[tuple[int, frozenset[Group]]] = []  # of completions that aren't undone, by position
        self.oldest = 0
        self.leases: dict[str, tuple[int, bool]] = {}
        self.saved: set[int] = set()
        self.plans: dict[int, Plan] = {}
        self.inputs: dict[int, set[str]] = {}
        self.uncommitted: set[str] = set()
        self.deleted: set[str] = set()
        self.trace: list[str] = []
        self._number = 0

    @property
    def position(self) -> int:
        return len(self.contents) - 1

    def number(self) -> int:
        self._number += 1
        return self._number

    # --- what must hold ---------------------------------------------------------------------------------------

    def whole(self, position: int, who: str) -> None:
        if not self.deleted:
            return
        for paths in self.contents[position].values():
            if gone := self.deleted.intersection(paths):
                self.fail(f"{who} at position {position} has lost {min(gone)}")

    def all_is_whole(self) -> None:
        """Everything that somebody needs is there."""
        self.whole(self.position, "the latest snapshot")
        for each in self.saved:
            self.whole(each, "a savepoint")
        for reader, (position, onwards) in self.leases.items():
            for each in range(position, self.position + 1) if onwards else (position,):
                self.whole(each, f"reader {reader}")
        for inputs in self.inputs.values():
            if gone := self.deleted & inputs:
                self.fail(f"a pending plan has lost {min(gone)}")

    def fail(self, what: str) -> None:
        raise Violation("\n".join([*self.trace, what]))

    # --- completions ------------------------------------------------------------------------------------------

    def changed_since(self, position: int, groups: Collection[Group]) -> bool:
        return any(at > position and not theirs.isdisjoint(groups) for at, theirs in self.changes)

    def complete(self, contents: Contents, added: list[Row], gone: Callable[[Row], bool], groups: set[Group]) -> None:
        position = self.position + 1
        for row in self.rows:
            if row.removed is None and gone(row):
                row.removed = position
        self.rows += added
        self.contents.append(contents)
        if groups:
            self.changes.append((position, frozenset(groups)))
        self.whole(position, "the latest snapshot")
        live = {each.path for each in self.rows if each.removed is None}
        assert live == {path for paths in contents.values() for path in paths}, "the model contradicts itself"


def commit(world: World) -> Steps:
    """Writes new base files."""
    groups = world.random.sample(GROUPS, world.random.randint(1, 2))
    yield Lock("timeline")
    read, number = world.position, world.number()
    yield ENDED
    yield Lock("completions")
    if world.changed_since(read, groups):
        return
    yield Lock("timeline")
    position = world.position + 1
    slice = f"{number:03}"
    added = [Row(f"{each[0]}{each[1]}{slice}", each, slice, position) for each in groups]
    contents = {**world.contents[-1], **{each.group: (each.path,) for each in added}}
    world.complete(contents, added, lambda row: row.group in groups, set(groups))


def append(world: World) -> Steps:
    """Adds a log file to a file group, or lets its last one grow."""
    group, grows = world.random.choice(GROUPS), world.random.random() < 0.5
    yield Lock("timeline")
    read, number = world.position, world.number()
    yield ENDED
    yield Lock("completions")
    files = world.contents[-1].get(group)
    if not files or world.changed_since(read, [group]):
        return
    yield Lock("timeline")
    position = world.position + 1
    slice = next(each.slice for each in world.rows if each.path == files[0])
    if grows and len(files) > 1:
        path, contents = files[-1], world.contents[-1]
    else:
        path = f"log{number}"
        contents = {**world.contents[-1], group: (*files, path)}
    world.complete(contents, [Row(path, group, slice, position)], lambda row: row.path == path, {group})


def plan(world: World) -> Steps:
    """Plans a compaction."""
    groups = world.random.sample(GROUPS, world.random.randint(1, 2))
    yield Lock("timeline")
    if not (inputs := {path for each in groups for path in world.contents[-1].get(each, ())}):
        return
    number = world.number()
    world.plans[number] = Plan(world.position, groups)
    world.inputs[number] = inputs
    world.all_is_whole()


def end_plan(world: World) -> Steps:
    """Completes a pending plan, or aborts it."""
    if not world.plans:
        return
    number = world.random.choice(list(world.plans))
    aborts = world.random.random() < 0.3
    yield None
    yield Lock("completions")
    if number not in world.plans:
        return
    read, groups = world.plans[number]
    if aborts or world.changed_since(read, groups):
        del world.plans[number], world.inputs[number]
        return
    if gone := world.deleted & world.inputs[number]:
        world.fail(f"a compaction can't read {min(gone)}")
    yield Lock("timeline")
    position = world.position + 1
    slice = f"{number:03}"
    added = [Row(f"{each[0]}{each[1]}{slice}", each, slice, position) for each in groups if each in world.contents[-1]]
    contents = {**world.contents[-1], **{each.group: (each.path,) for each in added}}
    del world.plans[number], world.inputs[number]
    world.complete(contents, added, lambda row: row.group in groups, set(groups))


def roll_back(world: World) -> Steps:
    """Undoes the last completions that changed files."""
    count = world.random.choice([1, 1, 2])
    yield Lock("completions")
    undone = world.changes[-count:]
    if len(undone) < count:
        return
    back_to = undone[0][0] - 1
    oldest = world.oldest
    yield None
    if "rollback is checked" not in world.without and back_to < oldest and back_to not in world.saved:
        return
    yield None
    before = [each for each in world.rows if each.is_in(back_to) and each.removed is not None]
    after = {id(each) for each in world.rows if each.removed is None and each.added > back_to}
    groups = {group for _, each in undone for group in each}
    yield Lock("timeline")
    position = world.position + 1
    del world.changes[-count:]
    again = [Row(each.path, each.group, each.slice, position) for each in before]
    contents = world.contents[back_to]
    if gone := world.deleted.intersection(path for paths in contents.values() for path in paths):
        world.fail(f"a rollback to position {back_to} brings {min(gone)} back, which is gone")
    world.complete(contents, again, lambda row: id(row) in after, groups)
    world.changes.pop()  # nothing undoes a rollback


def save(world: World) -> Steps:
    """Makes a savepoint on one of the last completions."""
    if not world.changes:
        return
    position = world.random.choice(world.changes[-3:])[0]
    yield Lock("timeline")
    if position < world.oldest:
        return
    yield ENDED
    yield Lock("completions")
    is_gone = position < world.oldest or position not in [at for at, _ in world.changes]
    if is_gone and "savepoint is checked" not in world.without:
        return
    yield None
    yield Lock("timeline")
    world.saved.add(position)
    world.whole(position, "a new savepoint")
    world.complete(world.contents[-1], [], lambda row: False, set())


def forget_savepoint(world: World) -> Steps:
    yield None
    if world.saved:
        world.saved.remove(world.random.choice(sorted(world.saved)))


def turn(world: World) -> Steps:
    """Makes a partition uncommitted, or ready again."""
    partition = world.random.choice("xy")
    yield Lock("completions")
    yield None
    yield Lock("timeline")
    world.uncommitted ^= {partition}
    world.complete(world.contents[-1], [], lambda row: False, set())


def lease(world: World) -> Steps:
    """Takes a lease, or moves it."""
    reader, onwards, back = world.random.choice(READERS), world.random.random() < 0.4, world.random.randint(0, 4)
    early = "lease reads before it waits" in world.without
    oldest = world.oldest
    if early:
        yield None
    if "leases wait" not in world.without:
        yield Lock("cleans", shared=True)
    position = max(0, world.position - back)
    oldest = oldest if early else world.oldest
    yield None
    if position < oldest and "lease is checked" not in world.without:
        if onwards and "lease onwards is checked" not in world.without:
            return
        if position not in world.saved:
            yield None
            if position not in [each for each, _ in world.leases.values()]:
                return
    yield None
    world.leases[reader] = position, onwards
    for each in range(position, world.position + 1) if onwards else (position,):
        world.whole(each, f"reader {reader}, whose lease is new,")


def release(world: World) -> Steps:
    """Ends a lease; it may as well have expired."""
    yield None
    world.leases.pop(world.random.choice(READERS), None)


def _planned_clean(world: World) -> set[str]:
    kept = _kept(world)
    if world.random.random() < 0.2:  # by a service that is wrong
        superseded = sorted({each.path for each in world.rows if each.removed is not None})
        return set(world.random.sample(superseded, min(len(superseded), 2)))
    keep = world.random.randint(1, 2)
    if world.random.random() < 0.3:
        return by_versions(world.rows, world.plans.values(), kept, keep)
    horizon = world.changes[-keep][0] if len(world.changes) >= keep else 0
    return by_commits(world.rows, world.plans.values(), kept, horizon)


def _kept(world: World) -> Kept:
    positions = {*world.saved, *(each for each, _ in world.leases.values())}
    since = min((each for each, onwards in world.leases.values() if onwards), default=None)
    return Kept(positions, since, set(world.uncommitted))


def clean(world: World) -> Steps:
    """Plans a clean, and runs it some time later."""
    without = world.without
    if not (paths := _planned_clean(world)):
        return
    for _ in range(world.random.randint(0, 3)):
        yield None
    if "completions wait" not in without:
        yield Lock("completions")
    oldest = world.oldest
    yield None
    if "cleans wait" not in without:
        yield Lock("cleans")
    saved = set() if "savepoints" in without else set(world.saved)
    yield None
    positions = set() if "leases" in without else {each for each, _ in world.leases.values()}
    yield None
    onwards = [] if {"leases", "onwards"} & {*without} else [each for each, is_on in world.leases.values() if is_on]
    yield None
    partitions = set() if "uncommitted" in without else set(world.uncommitted)
    yield None
    plans = () if "plans" in without else world.plans.values()
    kept = Kept(saved | positions, min(onwards, default=None), partitions)
    found, may = may_delete(world.rows, plans, kept, paths, without)
    if "looked at again" in without:
        found, may = [each for each in world.rows if each.path in paths and each.removed is not None], True
    if not may:
        return
    yield None
    yield Lock("timeline")
    rows = {id(each) for each in found}
    for row in found:
        if row.group[0] in world.uncommitted:
            world.fail(f"{row.path} of an uncommitted partition is deleted")
    world.rows = [each for each in world.rows if id(each) not in rows]
    world.deleted |= {each.path for each in found}
    if "oldest" not in without:
        world.oldest = max(oldest, world.oldest, *(each.removed or 0 for each in found), 0)
    world.all_is_whole()
    world.complete(world.contents[-1], [], lambda row: False, set())


WEIGHTS: dict[Callable[[World], Steps], int] = {
    commit: 10,
    append: 4,
    plan: 3,
    end_plan: 3,
    roll_back: 4,
    save: 3,
    forget_savepoint: 2,
    turn: 1,
    lease: 5,
    release: 3,
    clean: 12,
}


class _Open:
    """A transaction that is open, and the lock that it waits for."""

    def __init__(self, what: Callable[[World], Steps], world: World) -> None:
        self.what = what
        self.steps = what(world)
        self.waits: Lock | None = None


def explore(random: Random, without: Collection[str] = ALL) -> World:
    """One interleaving. Returns what the table is then. Raises Violation."""
    world = World(random, without)
    waiting = random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=TRANSACTIONS)
    held: dict[str, list[tuple[_Open, bool]]] = {"completions": [], "cleans": [], "timeline": []}
    opened: list[_Open] = []
    while waiting or opened:
        if waiting and len(opened) < AT_ONCE and (not opened or random.random() < 0.2):
            opened.append(_Open(waiting.pop(), world))
        able = [each for each in opened if each.waits is None or _is_free(held, each)]
        assert able or (waiting and len(opened) < AT_ONCE), "a deadlock"
        if not able:
            continue
        one = able[int(random.random() * len(able))]
        if one.waits is not None:
            held[one.waits.name].append((one, one.waits.shared))
            one.waits = None
        world.trace.append(one.what.__name__)
        try:
            wanted = next(one.steps)
        except StopIteration:
            opened.remove(one)
            wanted = ENDED
        if wanted is ENDED:
            for name, owners in held.items():
                held[name] = [each for each in owners if each[0] is not one]
        else:
            one.waits = wanted
    return world


def _is_free(held: dict[str, list[tuple[_Open, bool]]], one: _Open) -> bool:
    assert one.waits is not None
    return all(owner is one or (one.waits.shared and shared) for owner, shared in held[one.waits.name])
