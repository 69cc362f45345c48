"""The protocol of the cache, and whether the search through it would find an error."""

from collections.abc import Iterator

import pytest

from tests.metastore.cache.model import (
    Answer,
    Bounds,
    Change,
    Entry,
    Incarnation,
    Look,
    Postgres,
    Protocol,
    Snapshot,
    Things,
    Worker,
    World,
    search,
)

FEW = [
    Bounds(transactions=2, crashes=1),
    Bounds(transactions=2, purges=1),
    Bounds(transactions=2, restores=1),
    Bounds(transactions=2, restarts=1),
    Bounds(transactions=2, leases=2),
    Bounds(transactions=2, looks=2),
]
MANY = [
    Bounds(transactions=3),
    Bounds(transactions=3, crashes=1),
    Bounds(transactions=3, purges=1),
    Bounds(transactions=3, restores=1),
    Bounds(transactions=2, crashes=2),
    Bounds(transactions=2, crashes=1, purges=1, restarts=1),
    Bounds(transactions=2, restores=1, crashes=1),
    Bounds(transactions=3, purges=2),
    Bounds(transactions=2, purges=1, workers=2),
    Bounds(transactions=2, crashes=1, leases=2),
    Bounds(transactions=2, restores=1, leases=1),
    Bounds(transactions=2, purges=1, leases=2),
    Bounds(transactions=1, leases=2, workers=2),
    Bounds(transactions=2, leases=2, workers=2),
    Bounds(transactions=3, leases=2),
    Bounds(transactions=3, looks=1),
    Bounds(transactions=2, crashes=1, looks=2),
    Bounds(transactions=2, purges=1, looks=2),
    Bounds(transactions=2, restores=1, looks=1),
    Bounds(transactions=2, looks=2, workers=2),
    Bounds(transactions=2, leases=1, looks=2),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bounds", FEW, ids=str)
def test_no_read_is_wrong(bounds: Bounds) -> None:
    assert search(Protocol(), bounds).story is None


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("bounds", MANY, ids=str)
def test_no_read_is_wrong_in_longer_stories(bounds: Bounds) -> None:
    assert search(Protocol(), bounds).story is None


class JoinsRounds(Protocol):
    """A read goes with a poll that is under way."""

    def last_read_served(self, asked: int, now: int) -> int:
        return now


class ComparesLatestId(Protocol):
    """The greatest id of a change is compared, as if transactions committed in the order of their ids."""

    def sees(self, entry: Entry, changes: frozenset[Change], things: Things) -> bool:
        return max((each.xid for each in changes if each.thing in things), default=0) < entry.snapshot.xmax


class AsksFromLatestId(Protocol):
    """A poll asks for changes with greater ids than the last one saw."""

    def answer(self, postgres: Postgres, seen: Snapshot | None) -> Answer:
        new = frozenset(each for each in postgres.changes if seen is None or each.xid >= seen.xmax)
        return Answer(postgres.snapshot, postgres.incarnation, postgres.floor, new)


class StartsWithNothing(Protocol):
    """The first poll asks for no changes, though some of those it sees are not in snapshots that come after."""

    def answer(self, postgres: Postgres, seen: Snapshot | None) -> Answer:
        answer = super().answer(postgres, seen)
        return answer if seen is not None else answer._replace(floor=answer.snapshot.xmin, changes=frozenset())


class BeginsTooEarly(Protocol):
    """Where there are too many changes, snapshots are trusted that miss what this one sees of later transactions."""

    def begin_here(self, worker: Worker, snapshot: Snapshot) -> Worker:
        return super().begin_here(worker, snapshot)._replace(floor=snapshot.xmin)


class OverlooksPurges(Protocol):
    """A worker doesn't ask whether changes were purged since its last poll."""

    def goes_on(self, incarnation: Incarnation | None, seen: Snapshot, answer: Answer) -> bool:
        return incarnation == answer.incarnation


class TrustsOldEntries(Protocol):
    """Entries are not compared with the floor: changes they don't see may have been purged before anybody knew."""

    def good(self, worker: Worker, entry: Entry, things: Things) -> bool:
        return (
            worker.seen is not None
            and entry.incarnation == worker.incarnation
            and self.sees(entry, worker.changes, things)
        )


class TrustsAnyIncarnation(Protocol):
    """An entry's incarnation is not compared."""

    def good(self, worker: Worker, entry: Entry, things: Things) -> bool:
        return worker.incarnation is not None and super().good(
            worker, entry._replace(incarnation=worker.incarnation), things
        )


class OutlivesIncarnations(Protocol):
    """A worker goes on after a crash of Postgres as if nothing had happened."""

    def goes_on(self, incarnation: Incarnation | None, seen: Snapshot, answer: Answer) -> bool:
        return seen.xmin >= answer.floor


class LogsIncarnation(Protocol):
    """The table that holds the incarnation survives a crash."""

    def crash(self, postgres: Postgres) -> Postgres:
        return super().crash(postgres)._replace(row=postgres.row)


class IgnoresStarts(Protocol):
    """The incarnation is the row alone, which a copy of the data directory brings back."""

    def answer(self, postgres: Postgres, seen: Snapshot | None) -> Answer:
        answer = super().answer(postgres, seen)
        return answer._replace(incarnation=answer.incarnation and answer.incarnation._replace(start=0))

    def good(self, worker: Worker, entry: Entry, things: Things) -> bool:
        incarnation = Incarnation(entry.incarnation.row, 0)
        return super().good(worker, entry._replace(incarnation=incarnation), things)


class LosesAnswers(Protocol):
    """A worker believes to have seen what an answer held that never arrived."""

    def lose(self, worker: Worker, answer: Answer) -> Worker:
        return worker if worker.seen is None else worker._replace(seen=answer.snapshot)


class ForgetsDependency(Protocol):
    """A reply is made of an object that its entry doesn't name."""

    def sees(self, entry: Entry, changes: frozenset[Change], things: Things) -> bool:
        return super().sees(entry, changes, things[:1])


class StampsUnproved(Protocol):
    """An entry is given a younger stamp without having been judged."""

    def stamped_anew(self, worker: Worker, entry: Entry) -> Entry | None:
        if worker.seen is None or worker.incarnation != entry.incarnation:
            return None
        return entry._replace(snapshot=worker.seen)


class StampsLate(Protocol):
    """An entry is judged, and given the stamp of what is the last poll by then."""

    def more_steps(self, world: World) -> Iterator[tuple[str, World]]:
        (worker,) = world.workers
        if worker.held is not None and worker.seen is not None and worker.incarnation == worker.held.incarnation:
            anew = worker.held._replace(snapshot=worker.seen)
            yield "what was judged is stamped", world._replace(pool=world.pool | {anew})
        for entry in world.pool:
            if self.good(worker, entry, (0, 1)):
                yield "an entry is judged", world._replace(workers=(worker._replace(held=entry),))


class StampsAfterReading(Protocol):
    """The stamp is of a later transaction than what was read."""

    def more_steps(self, world: World) -> Iterator[tuple[str, World]]:
        (worker,) = world.workers
        postgres = world.postgres
        if postgres.incarnation is None:
            return
        read = Entry(postgres.values, postgres.incarnation, postgres.snapshot)
        yield "an entry is read", world._replace(workers=(worker._replace(held=read),))
        if worker.held is not None and worker.held.incarnation == postgres.incarnation:
            stamped = worker.held._replace(snapshot=postgres.snapshot)
            yield "what was read is stamped", world._replace(pool=world.pool | {stamped})


class RecordsLate(Protocol):
    """Change rows are written after the commit, in a transaction of their own."""

    def commit(self, world: World, postgres: Postgres, changed: frozenset[Change]) -> World:
        return world._replace(postgres=postgres, unrecorded=world.unrecorded | changed)

    def more_steps(self, world: World) -> Iterator[tuple[str, World]]:
        if world.unrecorded:
            recorded = world.postgres._replace(changes=world.postgres.changes | world.unrecorded)
            yield "changes are recorded", world._replace(postgres=recorded, unrecorded=frozenset())


class SharesLoads(Protocol):
    """A read takes what a load under way brings, without judging it."""

    def more_steps(self, world: World) -> Iterator[tuple[str, World]]:
        (worker,) = world.workers
        incarnation = world.postgres.incarnation
        if worker.held is None and incarnation is not None:
            load = Entry(world.postgres.values, incarnation, world.postgres.snapshot)
            yield "a load begins", world._replace(workers=(worker._replace(held=load),))

    def good(self, worker: Worker, entry: Entry, things: Things) -> bool:
        return entry == worker.held or super().good(worker, entry, things)


class CommitsUnderLeases(Protocol):
    """A change is committed while somebody holds a lease."""

    def end_leases(self, world: World) -> World:
        return world


class TakesLeasesDuringChanges(Protocol):
    """A lease begins while a transaction that has ended the others is about to commit."""

    def may_take_lease(self, world: World) -> bool:
        return True


class CountsEarlierPolls(Protocol):
    """A poll that began before the lease is taken for one that began after it."""

    def polled(self, worker: Worker) -> Worker:
        return worker._replace(learnt_under_lease=worker.lease, asked_under_lease=False)


class LeasesWithoutPolls(Protocol):
    """Reads ask nobody as soon as there is a lease."""

    def reads_ask_nobody(self, worker: Worker) -> bool:
        return worker.lease


class ConfusesLeases(Protocol):
    """What was polled under a lease counts for the next one."""

    def end_leases(self, world: World) -> World:
        return world._replace(workers=tuple(each._replace(lease=False) for each in world.workers))


class ConfusesLeasesOfPolls(Protocol):
    """A poll that began under a lease counts for the next one."""

    def end_leases(self, world: World) -> World:
        workers = (each._replace(lease=False, learnt_under_lease=False) for each in world.workers)
        return world._replace(workers=tuple(workers))


class KeepsLeasesOverCrashes(Protocol):
    """A worker doesn't notice that the session of its lease has ended with Postgres, which knows of no lease then."""

    def lose_connections(self, world: World) -> World:
        return world

    def end_leases(self, world: World) -> World:
        return world if world.crashes else super().end_leases(world)


class TrustsWriters(Protocol):
    """What a writer has put into the cache is judged by polls that don't know of its commit."""

    def reaches(self, seen: Snapshot, entry: Entry) -> bool:
        return True


class StampsCommits(Protocol):
    """What a writer knows is stamped with a snapshot from after its commit, though it was read before."""

    def renewed(self, look: Look, value: int, now: Snapshot) -> Entry:
        return super().renewed(look, value, now)._replace(snapshot=now)


class RenewsBeforeCommits(Protocol):
    """A writer puts what it knows into the cache before it has committed."""

    def more_steps(self, world: World) -> Iterator[tuple[str, World]]:
        for look in world.looks:
            early = self.renewed(look, len(world.history), world.postgres.snapshot)
            yield "a writer doesn't wait for its commit", world._replace(pool=world.pool | {early})


BROKEN = {
    TrustsWriters: Bounds(2, looks=1),
    StampsCommits: Bounds(2, looks=1),
    RenewsBeforeCommits: Bounds(2, looks=1),
    CommitsUnderLeases: Bounds(1, leases=1),
    TakesLeasesDuringChanges: Bounds(1, leases=1),
    CountsEarlierPolls: Bounds(2, leases=1),
    LeasesWithoutPolls: Bounds(2, leases=1),
    ConfusesLeases: Bounds(2, leases=2),
    ConfusesLeasesOfPolls: Bounds(2, leases=2),
    KeepsLeasesOverCrashes: Bounds(2, crashes=1, leases=1),
    JoinsRounds: Bounds(2),
    ComparesLatestId: Bounds(2),
    AsksFromLatestId: Bounds(2),
    StartsWithNothing: Bounds(2),
    BeginsTooEarly: Bounds(2),
    OverlooksPurges: Bounds(2, purges=1),
    TrustsOldEntries: Bounds(2, purges=1),
    TrustsAnyIncarnation: Bounds(2, crashes=1),
    OutlivesIncarnations: Bounds(2, crashes=1),
    LogsIncarnation: Bounds(2, crashes=1),
    IgnoresStarts: Bounds(2, restores=1),
    LosesAnswers: Bounds(2),
    ForgetsDependency: Bounds(2),
    StampsUnproved: Bounds(2),
    StampsLate: Bounds(2),
    StampsAfterReading: Bounds(2),
    RecordsLate: Bounds(2),
    SharesLoads: Bounds(2),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_an_error_is_found(broken: type[Protocol]) -> None:
    assert search(broken(), BROKEN[broken]).story is not None
