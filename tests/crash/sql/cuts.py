"""A relay between drivers of Spark and the metastore: there a call is cut off, or somebody killed, at a chosen step."""

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from tests.support.server import MetastoreServer

#: How a call begins in the binary protocol: its version, that it is a call, and the length of the name that follows.
_CALL = re.compile(rb"\x80\x01\x00\x01(\x00\x00[\x00-\xff]{2})", re.DOTALL)


class Step(StrEnum):
    """Where a call is when something happens to it."""

    ASKED = "before the server has the request"
    WORKING = "when the server has just got the request"
    ANSWERED = "before the driver has the answer"
    TOLD = "when the driver has just got the answer"


@dataclass
class Cut:
    """What happens to the `number`th call from now on whose method begins with `method`, in all to so many `times`.

    `act` runs at the step. If the call is `dropped`, its connection is closed.
    """

    method: str
    number: int
    step: Step
    act: Callable[[], None]
    dropped: bool
    times: int = 1
    seen: int = 0
    happened: threading.Event = field(default_factory=threading.Event)

    def meets(self, method: str) -> bool:
        """Counts a call. Whether it is one of those."""
        if not method.startswith(self.method):
            return False
        self.seen += 1
        return self.number <= self.seen < self.number + self.times


@dataclass
class _Connection:
    near: socket.socket
    far: socket.socket
    cut: Cut | None = None

    def close(self) -> None:
        for each in (self.near, self.far):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class CuttingRelay:
    """Listens on `uri` for a server that may be killed and started again meanwhile. `cut`: what happens next."""

    def __init__(self, server: MetastoreServer) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self.uri = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cut: Cut | None = None

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                near = self._listener.accept()[0]
                try:
                    far = socket.create_connection((self._server.host, self._server.port))
                except OSError:  # nobody listens, or not yet
                    near.close()
                    continue
                connection = _Connection(near, far)
                threading.Thread(target=self._requests, args=(connection,), daemon=True).start()
                threading.Thread(target=self._answers, args=(connection,), daemon=True).start()

    def _requests(self, connection: _Connection) -> None:
        with contextlib.suppress(OSError):
            while data := connection.near.recv(1 << 20):
                cut = self._cut(data)
                step = None if cut is None else cut.step
                if cut is not None and step is Step.ASKED:
                    self._happen(cut)
                    if cut.dropped:
                        break
                elif step in (Step.ANSWERED, Step.TOLD):
                    connection.cut = cut
                connection.far.sendall(data)
                if cut is not None and step is Step.WORKING:
                    time.sleep(0.002 * cut.seen)  # at another moment of the server's work each time
                    self._happen(cut)
                    if cut.dropped:
                        break
        connection.close()

    def _answers(self, connection: _Connection) -> None:
        with contextlib.suppress(OSError):
            while data := connection.far.recv(1 << 20):
                cut, connection.cut = connection.cut, None
                if cut is not None and cut.step is Step.ANSWERED:
                    self._happen(cut)
                    if cut.dropped:
                        break
                connection.near.sendall(data)
                if cut is not None and cut.step is Step.TOLD:
                    self._happen(cut)
                    if cut.dropped:
                        break
        connection.close()

    def _cut(self, data: bytes) -> Cut | None:
        """What happens to the call that a piece of a request begins; None if it begins none, or nothing happens."""
        begins = _CALL.match(data)
        if begins is None:
            return None
        method = data[8 : 8 + int.from_bytes(begins[1])].decode(errors="replace")
        with self._lock:
            cut = self.cut
            return cut if cut is not None and cut.meets(method) else None

    @staticmethod
    def _happen(cut: Cut) -> None:
        cut.act()
        cut.happened.set()
