"""The process of the HTTP port, which is optional. Having one of its own, it answers while every worker is busy."""

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable

from metastore.server.web.application import Roots, application
from metastore.server.web.connections import Port
from metastore.server.web.request_logins import RequestLogins, request_logins
from metastore.settings import Settings


def run(
    listener: socket.socket,
    settings: Settings,
    *,
    parent_alive: int,
    on_ready: Callable[[], None],
    roots: Roots | None = None,
) -> int:
    """Serve `listener` until the supervisor is gone (end of file on `parent_alive`); the exit code.

    SIGTERM says that the server is draining: from then on it is not ready, but still answers. `roots`: see
    `application`.
    """
    logins = request_logins(settings)
    asyncio.run(_serve(listener, settings, logins, parent_alive, on_ready, roots))
    if logins is not None and logins.audit_log is not None:
        logins.audit_log.close()
    return 0


async def _serve(
    listener: socket.socket,
    settings: Settings,
    logins: RequestLogins | None,
    parent_alive: int,
    on_ready: Callable[[], None],
    roots: Roots | None,
) -> None:
    loop = asyncio.get_running_loop()
    draining = threading.Event()
    port = Port(application(settings, logins, draining, roots), settings, None if logins is None else logins.tls)
    accepting = loop.create_task(port.serve(listener))

    def drain() -> None:
        draining.set()
        port.drain()

    loop.add_signal_handler(signal.SIGTERM, drain)
    loop.add_reader(parent_alive, accepting.cancel)
    on_ready()
    with contextlib.suppress(asyncio.CancelledError):
        await accepting
    loop.remove_reader(parent_alive)
    await port.finish()
