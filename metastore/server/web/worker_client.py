"""How other processes of a server ask its workers."""

import select
from typing import Any

from thrift.Thrift import TApplicationException

from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.struct import ExceptionStruct
from metastore.server.credentials import logins
from metastore.server.login.mechanisms import SERVER_MECHANISM
from metastore.server.login.passing_on import PassedOn
from metastore.settings import Settings

_EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class _ServerProcess(Login):
    """Proves that the client was forked by the supervisor that forked the workers."""

    name = SERVER_MECHANISM
    protection = None

    def __init__(self, on_behalf_of: PassedOn | None) -> None:
        super().__init__()
        self.on_behalf_of = on_behalf_of

    def sasl(self, host: str) -> "_ServerProcess":
        return self

    def respond(self, challenge: bytes) -> bytes:
        return logins.server_secret() + (b"" if self.on_behalf_of is None else self.on_behalf_of.encode())

    def finish(self, last: bytes) -> None:
        """The workers have the same secret, and nobody else listens on the port."""


class WorkerClient(ThriftClient):
    """A connection to a worker, which may be kept for later calls of the same caller."""

    def __init__(self, host: str, port: int, *, timeout: float, login: Login) -> None:
        super().__init__(host, port, timeout=timeout, login=login)
        self._whole = True

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        self._whole = False
        try:
            found = super().call(name, *args, **named)
        except (ExceptionStruct, TApplicationException):  # an answer, too
            self._whole = True
            raise
        self._whole = True
        return found

    @property
    def is_usable(self) -> bool:
        """Whether another call may be made: all answers were read to their ends, and the worker hasn't hung up."""
        handle = self._socket.handle
        if not self._whole or handle is None:
            return False
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return not poll.poll(0)  # the end of the connection is something to read, too


def worker_client(settings: Settings, *, timeout: float, on_behalf_of: PassedOn | None = None) -> WorkerClient:
    """A connection to a worker of this server. `timeout` in seconds. Raises OSError, TException.

    Its calls are the server's own, which may do anything, unless they are made `on_behalf_of` somebody.
    """
    host = _EVERY_INTERFACE.get(settings.host, settings.host)
    login = _ServerProcess(on_behalf_of) if logins.needed(settings) else Login()
    return WorkerClient(host, settings.port, timeout=timeout, login=login)
