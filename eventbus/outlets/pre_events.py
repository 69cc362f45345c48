"""Listeners that are called before a change is committed, and may veto it.

from eventbus import NewEvent, PreEventListener, Veto

class NamesInEnglish(PreEventListener):
    types = ["CREATE_TABLE"]

    def before_event(self, event: NewEvent) -> None:
        if not event.table.isascii():
            raise Veto("names of tables are in English here")
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import structlog

from eventbus.log import payloads
from eventbus.outlets.listeners import BadListener, load, wanted_by
from lake.protocol.events.filters import Filter
from lake.protocol.events.types import NewEvent

MOST_AT_ONCE = 16
"""Concurrent calls of one listener in a process. A call that hangs counts until it returns."""

log = structlog.get_logger(__name__)


class Veto(Exception):
    """Rejects the change. The client receives the message."""


class PreEventListener(ABC):
    """Is called during a client's call, once per event, from several threads at a time.

    Raises Veto to reject the change. Any other exception rejects it, too.
    """

    tables: Sequence[str] = ()
    """Patterns `database.table` with `*`; empty: everything."""
    types: Sequence[str] = ()
    """Names of EventType; empty: all."""

    @abstractmethod
    def before_event(self, event: NewEvent) -> None: ...


@dataclass(frozen=True, slots=True)
class _Guard:
    place: str
    wanted: Filter
    ask: Callable[[NewEvent], object]
    slots: threading.Semaphore


class PreEvents:
    """Calls the pre-event listeners, each with a time limit."""

    def __init__(self, guards: Sequence[_Guard] = (), seconds: float = 0) -> None:
        self._guards = guards
        self._seconds = seconds

    @classmethod
    def load(cls, places: Sequence[str], seconds: float) -> Self:
        """Loads listeners from `package.module:object`. `seconds`: the time limit of a call. Raises BadListener."""
        guards = []
        for place in places:
            found = load(place)
            if isinstance(found, type):
                found = found()
            ask: Any = found.before_event if isinstance(found, PreEventListener) else found
            if not callable(ask):
                raise BadListener(f"{place} is no listener: neither a PreEventListener nor a function")
            guards.append(_Guard(place, wanted_by(found, place), ask, threading.Semaphore(MOST_AT_ONCE)))
        return cls(guards, seconds)

    def ask(self, events: Sequence[NewEvent]) -> None:
        """Calls the listeners for new events. Raises Veto if one rejects an event, exceeds its time limit, or fails."""
        for guard in self._guards:
            for event in events:
                if guard.wanted.lets_pass(event.type, event.catalog, event.database, event.table):
                    self._ask(guard, event)

    def _ask(self, guard: _Guard, event: NewEvent) -> None:
        """Calls one listener in a thread of its own: a thread that hangs can't be ended, but the caller can go on."""
        if not guard.slots.acquire(timeout=self._seconds):
            raise Veto(f"the listener {guard.place} hangs: {MOST_AT_ONCE} calls of it have not returned")
        answered = threading.Event()
        raised: list[BaseException] = []
        own = replace(event, payload=payloads.read_ahead(event.payload))

        def call() -> None:
            try:
                guard.ask(own)
            except BaseException as error:
                raised.append(error)
            finally:
                guard.slots.release()
                answered.set()

        threading.Thread(target=call, name=f"pre-event {guard.place}", daemon=True).start()
        if not answered.wait(self._seconds):
            raise Veto(f"the listener {guard.place} did not answer within {self._seconds:g} s")
        for error in raised:
            if isinstance(error, Veto):
                raise error
            log.error("a pre-event listener failed", listener=guard.place, type=event.type, exc_info=error)
            raise Veto(f"the listener {guard.place} failed: {type(error).__name__}: {error}")
