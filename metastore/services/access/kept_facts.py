"""Facts about access that are kept in memory until the database reports a change of what they were read from.

The cache of replies works in the same way (docs/cache.md): a fact has the snapshot it was read in and the objects it
was read from, and holds as long as no later change of one of them is known.
"""

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from lake.protocol.bounded_dict import BoundedDict
from metastore.cache.changes import Changes
from metastore.cache.entry import Object
from metastore.cache.stamp import Stamp
from metastore.store import Database
from metastore.store.cache import cache_changes
from metastore.store.engine.database import Transaction
from metastore.store.engine.read_set import ReadSet, recording

T = TypeVar("T")

MAX_FACTS = 100_000
"""Facts that a worker keeps; a table, a database and a list of tables are one each."""


class Proof:
    """When a fact was known to hold, as `Changes` needs it; every `Changes` needs one of its own."""

    __slots__ = ("objects", "proved", "stamp")

    def __init__(self, stamp: Stamp, objects: tuple[Object, ...]) -> None:
        self.stamp = stamp
        self.objects = objects
        self.proved = 0


class Fact:
    """A value, with the proofs that it holds: one for requests' threads, one for the event loop.

    Without proofs it holds for the request alone that has read it.
    """

    __slots__ = ("loop_proof", "thread_proof", "value")

    def __init__(self, value: Any, read: ReadSet) -> None:
        self.value = value
        self.thread_proof: Proof | None = None
        self.loop_proof: Proof | None = None
        if read.snapshot is not None and read.incarnation is not None and read.objects:
            stamp, objects = Stamp.of(read.incarnation, read.snapshot), tuple(read.objects)
            self.thread_proof, self.loop_proof = Proof(stamp, objects), Proof(stamp, objects)


class KeptFacts:
    """Reads facts and keeps them. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changes = Changes()
        self._facts: BoundedDict[Hashable, Fact] = BoundedDict(MAX_FACTS)
        self._lock = threading.Lock()
        self._polling = threading.Lock()
        self._begun = self._done = 0  # polls of this object's, counted

    def refresh(self) -> None:
        """Learns of all changes that were committed before this call. Threads that come at once share a poll.

        Raises DatabaseUnavailable.
        """
        with self._lock:
            wanted = self._begun + 1  # one that begins from now on
        with self._polling:
            if self._done >= wanted:
                return
            with self._lock:
                self._begun += 1
                mine, last = self._begun, self._changes.last
            since = (last.begun, list(last.open_)) if last is not None else (0, [])
            with recording(), self._database.read() as tx:
                found = cache_changes.poll(tx, *since)
            with self._lock:
                if found is None:
                    self._changes.forget()
                else:
                    stamp = Stamp.of(found.incarnation, found.snapshot)
                    self._changes.add(stamp, found.floor, found.changes, complete=found.complete)
                self._done = mine

    def get(self, key: Hashable, read: Callable[[Transaction], T]) -> T:
        """The fact of a key, read anew if it doesn't hold as of the last `refresh`. Raises DatabaseUnavailable."""
        with self._lock:
            fact = self._facts.get(key)
            if fact is not None and fact.thread_proof is not None and self._changes.holds(fact.thread_proof):
                return cast(T, fact.value)
        with recording() as read_set, self._database.read() as tx:
            value = read(tx)
        with self._lock:
            self._facts.put(key, Fact(value, read_set))
        return value

    def peek(self, key: Hashable, holds: Callable[[Proof], bool]) -> tuple[Any, Proof]:
        """The fact of a key, and its proof for the event loop, if it is kept and `holds` says of that that it holds.

        Raises LookupError otherwise.
        """
        fact = self._facts.get(key)  # without the lock, for which the event loop would wait
        if fact is None or fact.loop_proof is None or not holds(fact.loop_proof):
            raise LookupError
        return fact.value, fact.loop_proof
