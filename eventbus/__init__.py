"""The event bus: every committed change of metadata reaches the programs that subscribe to it."""

from eventbus.outlets.listeners import Listener
from eventbus.outlets.pre_events import PreEventListener, Veto
from lake.protocol.events.types import Event, EventType, NewEvent

__all__ = [
    "Event",
    "EventType",
    "Listener",
    "NewEvent",
    "PreEventListener",
    "Veto",
]
