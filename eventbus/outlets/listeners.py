"""Listeners in Python, found through the entry point group `lake_metastore.listeners` or a setting.

    from eventbus import Event, Listener

    class Report(Listener):
        types = ["COMMIT_PARTITIONS"]

        def on_event(self, event: Event) -> None:
            print(event.table, "is ready")

A function that takes one event is a listener, too. `tables` and `types` may be set as its attributes.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any

from eventbus.outlets.base import Outlet
from lake.protocol.errors import UserError
from lake.protocol.events.filters import BadFilter, Filter
from lake.protocol.events.types import Event

ENTRY_POINTS = "lake_metastore.listeners"
"""The entry point group of installed listeners."""


class BadListener(UserError):
    """The named object can't be imported, or it isn't a listener."""


class Listener(ABC):
    """Receives committed events, one at a time, at least once and in order.

    Each listener runs in a process of its own. If `on_event` raises, the error is logged and the event comes again
    later.
    """

    tables: Sequence[str] = ()
    """Patterns `database.table` with `*`; empty: everything."""
    types: Sequence[str] = ()
    """Names of EventType; empty: all."""

    @abstractmethod
    def on_event(self, event: Event) -> None: ...


class ListenerOutlet(Outlet):
    """Calls one listener."""

    may_end_process = True

    def __init__(self, name: str, place: str, attempts: int) -> None:
        """`name`: the outlet's name. `place`: `package.module:object`. Raises BadListener."""
        found = load(place)
        if isinstance(found, type):
            found = found()
        self._tell: Callable[[Event], object] = _teller(found, place)
        self.name = name
        self.attempts = attempts
        self.wanted = wanted_by(found, place)

    def deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            try:
                self._tell(event)
            except SystemExit as error:  # would end the process
                raise RuntimeError(f"the listener called sys.exit: {error}") from error


def installed() -> dict[str, str]:
    """The listeners of installed packages: `package.module:object` by name."""
    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}


def load(place: str) -> Any:
    """The object at `package.module:object`. Raises BadListener, whatever importing it raises."""
    module, _, path = place.partition(":")
    if not module or not path:
        raise BadListener(f"{place!r} is no listener: expected package.module:object")
    try:
        found = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:
        raise BadListener(f"can't load the listener {place}: {type(error).__name__}: {error}") from error
    return found


def wanted_by(listener: Any, place: str) -> Filter:
    """The filter that a listener declares. Raises BadListener."""
    tables, types = getattr(listener, "tables", ()), getattr(listener, "types", ())
    try:
        return Filter.parse(_listed(tables), _listed(types))
    except BadFilter as error:
        raise BadListener(f"the listener {place}: {error}") from None


def _teller(found: Any, place: str) -> Callable[[Event], object]:
    if isinstance(found, Listener):
        return found.on_event
    if callable(found):
        return found  # type: ignore[no-any-return]
    raise BadListener(f"{place} is no listener: neither a Listener nor a function")


def _listed(value: str | Sequence[str]) -> Sequence[str]:
    return [value] if isinstance(value, str) else value
