"""What the connections of a worker share."""

import asyncio
from dataclasses import dataclass

from lake.protocol.codec.scanner import Limits
from metastore.server.connection.event_notifier import EventNotifier
from metastore.server.connection.open_connections import Connections
from metastore.server.credentials.logins import Logins
from metastore.server.dispatch import Dispatcher
from metastore.server.foreign_clients import ForeignClients
from metastore.server.memory_budget import MemoryBudget
from metastore.server.monitoring.metrics import Tally
from metastore.server.replies import Replies
from metastore.server.threads import ThreadPool


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds; 0 is no limit.

    `receive`: from the first byte of a message to its last. `write`: for the client to take a piece of its
    reply. `idle`: from a reply to the next message.
    """

    receive: float
    write: float
    idle: float


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What the connections of a worker share. `replies` is the cache, None if it is switched off.

    `logins` is None where everybody may come in, and nothing but plain Thrift is spoken.
    """

    loop: asyncio.AbstractEventLoop
    dispatcher: Dispatcher
    threads: ThreadPool
    connections: Connections
    limits: Limits
    timeouts: Timeouts
    event_notifier: EventNotifier
    memory: MemoryBudget
    foreign_clients: ForeignClients
    tally: Tally
    replies: Replies | None = None
    logins: Logins | None = None
