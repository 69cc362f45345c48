"""The event bus: every committed change of metadata reaches the programs that subscribe to it."""

from eventbus.log.types import Event, EventType, NewEvent
from eventbus.outlets.listeners import Listener
from eventbus.outlets.pre_events import PreEventListener, Veto
from eventbus.subscription import subscribe
from eventbus.subscription.base import SourceUnavailable, Subscription

__all__ = [
    "Event",
    "EventType",
    "Listener",
    "NewEvent",
    "PreEventListener",
    "SourceUnavailable",
    "Subscription",
    "Veto",
    "subscribe",
]
