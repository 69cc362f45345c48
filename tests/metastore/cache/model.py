"""The cache's protocol as a small machine, and a search through every order in which its steps can happen.

What the machine knows is what docs/cache.md says: Postgres gives out transaction ids and snapshots, writers leave
change rows, workers ask for them in polls and judge entries by one rule. Everything around takes its worst form:

- A write is acknowledged the moment it commits; a read may return the moment it may trust what it has.
- Somebody fills the cache at every snapshot that Postgres ever shows, and what was once filled is offered to every read
  for ever. So Redis may lose, evict, delay and restore what it likes, and another worker may do what it likes: they
  offer less than this. The memory of the worker offers less, too.
- A writer that has locked what it changes puts what it knows into the cache once it has committed (`Look`).
- Before a crash nothing reached the disk but commits: the ids of all other transactions are given out again.

A read is right if it returns what the objects were at some moment between its arrival and its return: that is
linearizability. The read that is hardest to serve is the one that arrived last; so for each worker the search keeps
one moment, the latest arrival that the worker may serve from what it knows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

Things = tuple[int, ...]
"""Objects, by number."""

REPLIES: dict[str, Things] = {"one": (0,), "both": (0, 1)}
"""What replies are made of."""


class Snapshot(NamedTuple):
    """`pg_current_snapshot()`: transactions from `xmax` on and those in `running` had not ended."""

    xmax: int
    running: frozenset[int]

    @property
    def xmin(self) -> int:
        return min(self.running, default=self.xmax)

    def sees(self, xid: int) -> bool:
        return xid < self.xmax and xid not in self.running

    def sees_all_of(self, other: "Snapshot") -> bool:
        return self.xmax >= other.xmax and all(xid in other.running or xid >= other.xmax for xid in self.running)

    def and_own(self, xid: int) -> "Snapshot":
        """What a transaction sees that has read in this snapshot: itself, too, but no other that began later."""
        xmax = max(self.xmax, xid + 1)
        return Snapshot(xmax, self.running.union(range(self.xmax, xmax)) - {xid})


class Incarnation(NamedTuple):
    row: int  # the random value in `cache_state`
    start: int  # when Postgres was started


class Entry(NamedTuple):
    """What was read at a snapshot: the values of all objects; a reply is made of some.

    `ahead`: the writer of one of them made it of what it had read before its commit.
    """

    values: tuple[int, ...]
    incarnation: Incarnation
    snapshot: Snapshot
    ahead: bool = False


class Look(NamedTuple):
    """A transaction has locked an object, and then read everything."""

    xid: int
    thing: int
    read: Entry


class Change(NamedTuple):
    xid: int
    thing: int


class Postgres(NamedTuple):
    values: tuple[int, ...] = (0, 0)
    next_xid: int = 1
    running: frozenset[int] = frozenset()
    ended: int = 0  # the greatest transaction id that has ended
    durable: int = 0  # the greatest that has committed
    changes: frozenset[Change] = frozenset()
    row: int | None = 0
    floor: int = 0
    start: int = 0

    @property
    def snapshot(self) -> Snapshot:
        xmax = self.ended + 1
        return Snapshot(xmax, frozenset(xid for xid in self.running if xid < xmax))

    @property
    def incarnation(self) -> Incarnation | None:
        return None if self.row is None else Incarnation(self.row, self.start)

    def end(self, xid: int) -> "Postgres":
        return self._replace(running=self.running - {xid}, ended=max(self.ended, xid))


class Answer(NamedTuple):
    """What a poll brings."""

    snapshot: Snapshot
    incarnation: Incarnation | None
    floor: int
    changes: frozenset[Change]


class Worker(NamedTuple):
    """What a worker knows since its last poll; `since`: the last arrival of a read that may trust this.

    It knows every change that a snapshot may miss which sees all transactions before `floor`. `proved` are entries that
    held after the last poll. `held` is for mutants: an entry used later than it was looked at.
    Moments are indexes of the history.
    """

    seen: Snapshot | None = None  # None: it knows nothing
    incarnation: Incarnation | None = None
    floor: int = 0
    changes: frozenset[Change] = frozenset()
    proved: frozenset[tuple[Entry, Things]] = frozenset()
    since: int = 0
    asked: int | None = None  # the moment at which the poll under way began
    answer: Answer | None = None
    lease: bool = False  # it holds one
    asked_under_lease: bool = False  # the poll under way began after that
    learnt_under_lease: bool = False  # and so did the last one
    held: Entry | None = None


class World(NamedTuple):
    """`pool` is the cache. `changing` are transactions that have ended all leases and keep others from beginning.

    `unrecorded` is for mutants: changes whose rows come later.
    """

    postgres: Postgres
    workers: tuple[Worker, ...]
    pool: frozenset[Entry] = frozenset()
    looks: frozenset[Look] = frozenset()
    history: tuple[tuple[int, ...], ...] = ((0, 0),)  # what the values have been
    copy: Postgres | None = None  # of the data directory, made while Postgres was down
    incarnations: int = 1
    changing: frozenset[int] = frozenset()
    transactions: int = 0
    crashes: int = 0
    purges: int = 0
    restores: int = 0
    restarts: int = 0
    leases: int = 0
    looked: int = 0
    unrecorded: frozenset[Change] = frozenset()

    def without_leases(self) -> "World":
        lost = {"lease": False, "asked_under_lease": False, "learnt_under_lease": False}
        return self._replace(workers=tuple(each._replace(**lost) for each in self.workers))

    def without_looks(self, xid: int | None = None) -> "World":
        """Without the locks of a transaction, or of all."""
        return self._replace(looks=frozenset(each for each in self.looks if xid not in (None, each.xid)))

    def with_worker(self, number: int, worker: Worker) -> "World":
        return self._replace(workers=(*self.workers[:number], worker, *self.workers[number + 1 :]))


@dataclass(frozen=True)
class Bounds:
    """How much may happen; polls and abandoned polls are not counted.

    `leases`: how many are taken. `looks`: how many writers put what they know into the cache.
    """

    transactions: int
    crashes: int = 0
    purges: int = 0
    restores: int = 0
    restarts: int = 0
    workers: int = 1
    leases: int = 0
    looks: int = 0


class Protocol:
    """What servers decide. Mutants override one of these."""

    def last_read_served(self, asked: int, now: int) -> int:
        """Of the moments from a poll's begin to its end, the latest at which a read may arrive that waits for it."""
        return asked

    def answer(self, postgres: Postgres, seen: Snapshot | None) -> Answer:
        """The one statement of a poll: which changes are there that the last poll didn't see."""
        new = frozenset(each for each in postgres.changes if seen is None or not seen.sees(each.xid))
        return Answer(postgres.snapshot, postgres.incarnation, postgres.floor, new)

    def goes_on(self, incarnation: Incarnation | None, seen: Snapshot, answer: Answer) -> bool:
        """Whether a poll tells of every change since the one before."""
        return incarnation == answer.incarnation and seen.xmin >= answer.floor

    def learn(self, worker: Worker, answer: Answer, pool: frozenset[Entry], *, too_many: bool) -> Worker:
        """The worker after a poll. Unless that goes on where the last one ended, nothing is known until the next.

        With too many changes, what is kept was read at this poll's snapshot or later.
        """
        if answer.incarnation is None:
            return self.forget(worker)
        if worker.seen is not None and not self.goes_on(worker.incarnation, worker.seen, answer):
            return self.forget(worker)
        learnt = worker._replace(seen=answer.snapshot, incarnation=answer.incarnation)
        if too_many:
            return self.begin_here(learnt, answer.snapshot)
        return learnt._replace(
            floor=max(worker.floor, answer.floor),
            changes=frozenset(each for each in worker.changes | answer.changes if each.xid >= answer.floor),
            proved=frozenset(
                (entry, things)
                for entry in pool
                for things in REPLIES.values()
                if self.good(worker, entry, things) and self.sees(entry, answer.changes, things)
            ),
        )

    def begin_here(self, worker: Worker, snapshot: Snapshot) -> Worker:
        return worker._replace(floor=snapshot.xmax, changes=frozenset(), proved=frozenset())

    def lose(self, worker: Worker, answer: Answer) -> Worker:
        """The worker after a poll whose answer did not arrive."""
        return worker

    def forget(self, worker: Worker) -> Worker:
        return worker._replace(seen=None, incarnation=None, floor=0, changes=frozenset(), proved=frozenset())

    def good(self, worker: Worker, entry: Entry, things: Things) -> bool:
        """The rule: whether a reply is what Postgres would have answered at the worker's last snapshot or later."""
        if (entry, things) in worker.proved:
            return True
        return (
            worker.seen is not None
            and entry.incarnation == worker.incarnation
            and (not entry.ahead or self.reaches(worker.seen, entry))
            and entry.snapshot.xmin >= worker.floor
            and self.sees(entry, worker.changes, things)
        )

    def reaches(self, seen: Snapshot, entry: Entry) -> bool:
        """Whether a poll tells of everything that happened until the entry that is ahead was committed."""
        return seen.sees_all_of(entry.snapshot)

    def renewed(self, look: Look, value: int, now: Snapshot) -> Entry:
        """What a writer puts into the cache that has committed a value, `now`."""
        values = tuple(value if each == look.thing else old for each, old in enumerate(look.read.values))
        return look.read._replace(values=values, snapshot=look.read.snapshot.and_own(look.xid), ahead=True)

    def sees(self, entry: Entry, changes: frozenset[Change], things: Things) -> bool:
        """Whether what an entry is made of was read with these changes in it."""
        return all(entry.snapshot.sees(each.xid) for each in changes if each.thing in things)

    def stamped_anew(self, worker: Worker, entry: Entry) -> Entry | None:
        """A good entry with a younger stamp."""
        if worker.seen is None or worker.seen.xmin < entry.snapshot.xmax or not self.good(worker, entry, (0, 1)):
            return None
        return entry._replace(snapshot=worker.seen, ahead=False)

    def commit(self, world: World, postgres: Postgres, changed: frozenset[Change]) -> World:
        """The change rows are of the transaction that changes."""
        return world._replace(postgres=postgres._replace(changes=postgres.changes | changed))

    def end_leases(self, world: World) -> World:
        """A transaction that is about to record a change ends all leases, and waits until they have ended."""
        return world.without_leases()

    def may_take_lease(self, world: World) -> bool:
        """No transaction has recorded a change that it hasn't committed yet."""
        return not world.changing

    def lose_connections(self, world: World) -> World:
        """Postgres crashes or is stopped: the sessions that hold leases end."""
        return world.without_leases()

    def reads_ask_nobody(self, worker: Worker) -> bool:
        """There is a lease, and a poll was made that began after it had been taken."""
        return worker.lease and worker.learnt_under_lease

    def polled(self, worker: Worker) -> Worker:
        """A worker that has learnt of a poll: whether that began under the lease that there is now."""
        return worker._replace(learnt_under_lease=worker.asked_under_lease, asked_under_lease=False)

    def crash(self, postgres: Postgres) -> Postgres:
        """Unlogged tables are empty afterwards, and nobody knows of ids that were not on the disk."""
        durable = postgres.durable
        return Postgres(
            postgres.values, next_xid=durable + 1, ended=durable, durable=durable, row=None, start=postgres.start
        )

    def more_steps(self, world: World) -> Iterator[tuple[str, World]]:
        """Steps that the protocol doesn't have."""
        return iter(())


def steps(world: World, protocol: Protocol, bounds: Bounds) -> Iterator[tuple[str, World]]:
    """Everything that can happen next, by name, and the world after it."""
    for what, then in (
        *database_steps(world, protocol, bounds),
        *worker_steps(world, protocol, bounds),
        *protocol.more_steps(world),
    ):
        yield what, filled(then)


def filled(world: World) -> World:
    """The world after somebody read everything at the present snapshot and put it into the cache."""
    postgres = world.postgres
    if postgres.incarnation is None:
        return world
    entry = Entry(postgres.values, postgres.incarnation, postgres.snapshot)
    return world if entry in world.pool else world._replace(pool=world.pool | {entry})


def database_steps(world: World, protocol: Protocol, bounds: Bounds) -> Iterator[tuple[str, World]]:
    postgres = world.postgres
    if world.transactions < bounds.transactions:
        xid = postgres.next_xid
        begun = postgres._replace(next_xid=xid + 1, running=postgres.running | {xid})
        yield f"{xid} begins", world._replace(postgres=begun, transactions=world.transactions + 1)
    for xid in postgres.running:
        ended = world._replace(changing=world.changing - {xid}).without_looks(xid)
        yield f"{xid} aborts", ended._replace(postgres=postgres.end(xid))
        yield from lock_steps(world, xid, bounds)
        if bounds.leases and xid not in world.changing:
            changing = protocol.end_leases(world)._replace(changing=world.changing | {xid})
            yield f"{xid} ends the leases", changing
            continue
        for thing in (0, 1):
            own = {each.thing: each for each in world.looks if each.xid == xid}
            if thing not in own and any(each.thing == thing for each in world.looks):
                continue  # another transaction has locked it
            changed = committed(ended, xid, thing, protocol)
            if thing in own:
                entry = protocol.renewed(own[thing], len(world.history), changed.postgres.snapshot)
                changed = changed._replace(pool=changed.pool | {entry})
            yield f"{xid} changes {thing} and commits", changed
    if postgres.row is None:
        made = postgres._replace(row=world.incarnations)
        yield "an incarnation begins", world._replace(postgres=made, incarnations=world.incarnations + 1)
    elif world.purges < bounds.purges:
        floor = postgres.snapshot.xmin
        left = frozenset(each for each in postgres.changes if each.xid >= floor)
        purged = postgres._replace(changes=left, floor=max(floor, postgres.floor))
        yield "old changes are purged", world._replace(postgres=purged, purges=world.purges + 1)
    if world.crashes < bounds.crashes:
        crashed = protocol.crash(postgres)
        down = protocol.lose_connections(world).without_looks()
        down = down._replace(unrecorded=frozenset(), changing=frozenset())
        yield "Postgres crashes", down._replace(postgres=crashed, crashes=world.crashes + 1)
    if world.restores < bounds.restores and world.copy is None and not postgres.running:
        yield "Postgres is copied while it is down", world._replace(copy=postgres)
    elif world.restores < bounds.restores and world.copy is not None:
        back = world.copy._replace(start=postgres.start + 1)
        down = protocol.lose_connections(world).without_looks()._replace(changing=frozenset())
        restored = down._replace(postgres=back, history=(*world.history, back.values), restores=world.restores + 1)
        yield "the copy is put back", restored


def lock_steps(world: World, xid: int, bounds: Bounds) -> Iterator[tuple[str, World]]:
    """A transaction locks an object, unless another has, and then reads everything."""
    postgres = world.postgres
    if world.looked >= bounds.looks or postgres.incarnation is None or any(each.xid == xid for each in world.looks):
        return
    for thing in (0, 1):
        if all(each.thing != thing for each in world.looks):
            look = Look(xid, thing, Entry(postgres.values, postgres.incarnation, postgres.snapshot))
            yield f"{xid} locks {thing} and looks", world._replace(looks=world.looks | {look}, looked=world.looked + 1)


def committed(world: World, xid: int, thing: int, protocol: Protocol) -> World:
    postgres = world.postgres
    version = len(world.history)
    values = tuple(version if each == thing else value for each, value in enumerate(postgres.values))
    after = postgres.end(xid)._replace(values=values, durable=max(postgres.durable, xid))
    return protocol.commit(
        world._replace(history=(*world.history, values)), after, changed=frozenset([Change(xid, thing)])
    )


def worker_steps(world: World, protocol: Protocol, bounds: Bounds) -> Iterator[tuple[str, World]]:
    now = len(world.history) - 1
    for number, worker in enumerate(world.workers):
        if worker.asked is None:
            asking = worker._replace(asked=now, asked_under_lease=worker.lease)
            yield f"worker {number} asks", world.with_worker(number, asking)
        elif worker.answer is None:
            answer = protocol.answer(world.postgres, worker.seen)
            yield f"worker {number} is answered", world.with_worker(number, worker._replace(answer=answer))
        else:
            idle = worker._replace(asked=None, answer=None)
            lost = protocol.lose(idle, worker.answer)
            yield f"the answer to worker {number} is lost", world.with_worker(number, lost)
            idle = idle._replace(since=protocol.last_read_served(worker.asked, now))
            idle = protocol.polled(idle)
            learnt = protocol.learn(idle, worker.answer, world.pool, too_many=False)
            yield f"worker {number} learns of changes", world.with_worker(number, learnt)
            flooded = protocol.learn(idle, worker.answer, world.pool, too_many=True)
            yield f"worker {number} gets too many changes", world.with_worker(number, flooded)
        if world.leases < bounds.leases and not worker.lease and protocol.may_take_lease(world):
            leased = world.with_worker(number, worker._replace(lease=True))
            yield f"worker {number} takes a lease", leased._replace(leases=world.leases + 1)
        for entry in world.pool:
            anew = protocol.stamped_anew(worker, entry)
            if anew is not None and anew not in world.pool:
                yield f"worker {number} stamps an entry anew", world._replace(pool=world.pool | {anew})
        if world.restarts < bounds.restarts:
            restarted = world._replace(restarts=world.restarts + 1)
            yield f"worker {number} is started anew", restarted.with_worker(number, Worker())


def wrong_reads(world: World, protocol: Protocol) -> Iterator[str]:
    """What reads could return now and must not."""
    for number, worker in enumerate(world.workers):
        for reply, things in REPLIES.items():
            # Under a lease a read may arrive at any moment, this one included.
            since = len(world.history) - 1 if protocol.reads_ask_nobody(worker) else worker.since
            right = {tuple(values[each] for each in things) for values in world.history[since:]}
            for entry in world.pool:
                value = tuple(entry.values[each] for each in things)
                if value not in right and protocol.good(worker, entry, things):
                    yield f"worker {number} answers {reply} with {value}, read at {entry.snapshot}; right is {right}"


@dataclass(frozen=True)
class Found:
    """The outcome of a search: how many states there are; the shortest way to a wrong read, if there is one."""

    states: int
    story: tuple[str, ...] | None


def search(protocol: Protocol, bounds: Bounds) -> Found:
    """Goes through all states that can be reached within `bounds`, breadth first, up to the first wrong read."""
    first = filled(World(Postgres(), tuple(Worker() for _ in range(bounds.workers))))
    came_from: dict[World, tuple[World, str] | None] = {first: None}
    edge = [first]
    while edge:
        further = []
        for world in edge:
            for what, then in steps(world, protocol, bounds):
                if then in came_from:
                    continue
                came_from[then] = (world, what)
                for wrong in wrong_reads(then, protocol):
                    return Found(len(came_from), (*way_to(then, came_from), wrong))
                further.append(then)
        edge = further
    return Found(len(came_from), None)


def way_to(world: World, came_from: dict[World, tuple[World, str] | None]) -> tuple[str, ...]:
    """The steps that led to `world`."""
    steps = []
    while (before := came_from[world]) is not None:
        world, what = before
        steps.append(what)
    return tuple(reversed(steps))
