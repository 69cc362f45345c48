"""The open connections of a worker."""

from collections.abc import Iterator
from typing import Protocol

from metastore.server.credentials.identity import Identity
from metastore.server.monitoring import metrics


class OpenConnection(Protocol):
    """What the worker asks of a connection."""

    identity: Identity | None

    def revoke(self, detail: str) -> None:
        """Ends the connection, now or after the reply that is under way: who has logged in may not come in any more."""

    def drain(self) -> None:
        """Ends the connection: now, or after the reply that is under way."""

    def abort(self) -> None:
        """Ends the connection at once."""

    def close_if_idle(self, since: float) -> None:
        """Ends the connection if it has had no request since a moment of the loop's clock."""


class Connections:
    """The open connections of a worker. Event loop only, but for `len()` and `accepted`."""

    def __init__(self) -> None:
        self._open: set[OpenConnection] = set()
        self.accepted = 0
        """How many there have been since the worker started."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenConnection]:
        return iter(list(self._open))

    def add(self, connection: OpenConnection) -> None:
        self._open.add(connection)
        self.accepted += 1
        metrics.connection_opened()

    def remove(self, connection: OpenConnection) -> None:
        self._open.remove(connection)
        metrics.connection_closed()
