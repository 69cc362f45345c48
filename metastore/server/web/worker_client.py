"""How other processes of a server ask its workers."""

from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
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


def worker_client(settings: Settings, *, timeout: float, on_behalf_of: PassedOn | None = None) -> ThriftClient:
    """A connection to a worker of this server. `timeout` in seconds. Raises OSError, TException.

    Its calls are the server's own, which may do anything, unless they are made `on_behalf_of` somebody.
    """
    host = _EVERY_INTERFACE.get(settings.host, settings.host)
    login = _ServerProcess(on_behalf_of) if logins.needed(settings) else Login()
    return ThriftClient(host, settings.port, timeout=timeout, login=login)
