"""From a committed change to whoever wants to know of it."""

from eventbus.events import Event, EventType, NewEvent
from eventbus.listeners import Listener
from eventbus.pre_events import PreEventListener, Veto
from eventbus.subscription import Subscription, subscribe

__all__ = ["Event", "EventType", "Listener", "NewEvent", "PreEventListener", "Subscription", "Veto", "subscribe"]
