"""Connections to workers that are kept between requests, each for the caller on whose behalf it was opened."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from metastore.server.login.passing_on import PassedOn
from metastore.server.web.worker_client import WorkerClient

MOST_KEPT = 256
"""Connections that wait for another request of their caller. The one that has waited longest makes room."""

KEPT_SECONDS = 10.0
"""How long a connection waits at most."""


class KeptConnections:
    """Gives each request a connection to a worker, in the name of its caller. Thread-safe.

    Who the caller is has been proven by the request itself. A connection that is kept saves opening one, and proves
    nothing: it is for requests whose identity is the same by value, with its groups, its token, the versions of its
    passwords, and its address.
    """

    def __init__(self, connect: Callable[[PassedOn], WorkerClient], seconds: float = KEPT_SECONDS) -> None:
        """`connect`: opens a connection; raises OSError, TException. `seconds`: how long one is kept at most."""
        self._connect = connect
        self._seconds = seconds
        self._kept: OrderedDict[PassedOn, tuple[float, WorkerClient]] = OrderedDict()  # since when by time.monotonic()
        self._lock = threading.Lock()
        self._sweeper: threading.Thread | None = None

    @contextmanager
    def connection(self, caller: PassedOn) -> Iterator[WorkerClient]:
        """A connection for one request, which nobody else has. Raises OSError, TException if none can be opened.

        Nothing that was sent is sent again: where the worker hung up before, another connection is opened, and where it
        hangs up later, the call fails.
        """
        client = self._taken(caller) or self._connect(caller)
        try:
            yield client
        finally:
            self._give_back(caller, client)

    def close(self) -> None:
        """Ends all connections that wait."""
        self._end_older(time.monotonic() + 1)

    def _taken(self, caller: PassedOn) -> WorkerClient | None:
        with self._lock:
            since, client = self._kept.pop(caller, (0.0, None))
        if client is None:
            return None
        if since >= time.monotonic() - self._seconds and client.is_usable:
            return client
        client.close()
        return None

    def _give_back(self, caller: PassedOn, client: WorkerClient) -> None:
        ended = [client]
        if client.is_usable:
            ended = []
            with self._lock:
                if caller in self._kept:  # of another request at the same time
                    ended.append(self._kept.pop(caller)[1])
                self._kept[caller] = time.monotonic(), client
                if len(self._kept) > MOST_KEPT:
                    ended.append(self._kept.popitem(last=False)[1][1])
                if self._sweeper is None:
                    self._sweeper = threading.Thread(target=self._sweep, name="kept connections", daemon=True)
                    self._sweeper.start()
        for each in ended:
            each.close()

    def _sweep(self) -> None:
        while True:
            time.sleep(self._seconds / 2)
            self._end_older(time.monotonic() - self._seconds)

    def _end_older(self, than: float) -> None:
        ended = []
        with self._lock:
            while self._kept:
                caller = next(iter(self._kept))
                since, client = self._kept[caller]
                if since > than:
                    break
                del self._kept[caller]
                ended.append(client)
        for each in ended:
            each.close()
