"""Pages of events for a reader with rights to some of them: a limit counts the events that the reader sees."""

from collections.abc import Callable, Sequence

from eventbus.log.reader import Page
from lake.protocol.events.types import Event

Shown = Callable[[Sequence[Event]], list[bool]]
"""Says for each of several events whether the reader sees it. It has transactions of its own."""

MAX_EVENTS = 1_000
"""Events in one reply."""
MAX_BYTES = 8 << 20
"""Size limit of the compressed payloads in one reply. A single bigger one is returned all the same."""
MAX_SPAN = 20_000
"""Numbers of events that one call goes through, however few of the events the reader sees."""


def gather(read: Callable[[int, int], Page], after: int, limit: int, shown: Shown) -> Page:
    """The next events after a number that the reader sees: at most `limit`, and at most MAX_BYTES.

    `read(after, upto)`: returns a page of all events after a number, up to another. The position of the result follows
    from the events that the reader sees, and from the end of the log or of MAX_SPAN, but not from hidden events.
    """
    found: list[Event] = []
    size, position, upto = 0, after, after + MAX_SPAN
    while True:
        page = read(position, upto)
        for event, sees in zip(page.events, shown(page.events), strict=True):
            if not sees:
                continue
            size += page.sizes[event.number]
            if found and size > MAX_BYTES:
                return page._replace(events=found, position=found[-1].number)
            found.append(event)
            if len(found) == limit:
                return page._replace(events=found, position=event.number)
        position = page.position
        if position >= min(page.last, upto):
            return page._replace(events=found, position=position)
