"""Wakes long polls when there are new events."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Protocol

from metastore.server.threads import ThreadPool

EventPredicate = Callable[[int], bool]
"""Whether a long poll asks for any of the events up to a generation. Called in a request's thread."""


class EventWaiter(Protocol):
    """A long poll that waits for events."""

    def ask_again(self) -> None:
        """Runs the call again. It calls `EventNotifier.discard` first."""


class EventNotifier:
    """The long polls of a worker that wait for events. Event loop only, but for `generation`.

    A generation is the number of notifications so far. Predicates read the database, so one thread at a time
    evaluates those of all waiters; a waiter without a predicate runs again at every notification.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: ThreadPool) -> None:
        self.generation = 0
        self._loop = loop
        self._threads = threads
        self._last_for_all = 0  # the last generation in which all waiters had to run again
        self._waiting: dict[EventWaiter, EventPredicate | None] = {}
        self._looking = False
        self._look_again = False

    def notify(self, everybody: bool = False) -> None:
        """Reports new events: the waiters that ask for them run again. `everybody`: all waiters do."""
        self.generation += 1
        if everybody:
            self._last_for_all = self.generation
        for waiter in [each for each, predicate in self._waiting.items() if everybody or predicate is None]:
            waiter.ask_again()
        self._look()

    def add(self, waiter: EventWaiter, predicate: EventPredicate | None, generation: int) -> None:
        """Adds a waiter that has seen the events up to a generation. It may run again at once."""
        self._waiting[waiter] = predicate
        if generation != self.generation:
            if predicate is None or generation < self._last_for_all:
                waiter.ask_again()
            else:
                self._look()

    def discard(self, waiter: EventWaiter) -> None:
        self._waiting.pop(waiter, None)

    def _look(self) -> None:
        """Has a thread evaluate the predicates; if one does so already, once more when it is done."""
        waiting = [(each, predicate) for each, predicate in self._waiting.items() if predicate is not None]
        if self._looking:
            self._look_again = True
        elif waiting:
            self._looking = True
            self._threads.submit(partial(self._evaluate, waiting, self.generation))

    def _evaluate(self, waiting: list[tuple[EventWaiter, EventPredicate]], generation: int) -> None:
        """In a request's thread."""
        try:
            found = [waiter for waiter, predicate in waiting if predicate(generation)]
        except Exception:  # all of them run again: the call itself reports what is wrong
            found = [waiter for waiter, _ in waiting]
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._evaluated, found)

    def _evaluated(self, found: list[EventWaiter]) -> None:
        for waiter in found:
            waiter.ask_again()
        self._looking = False
        if self._look_again:
            self._look_again = False
            self._look()
