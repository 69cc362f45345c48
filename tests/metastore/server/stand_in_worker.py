"""A server whose workers speak lines of text instead of Thrift: the supervisor alone, without the metastore.

Run as a program: `python -m tests.metastore.server.stand_in_worker BEHAVIOUR SETTINGS_AS_JSON`. A worker understands
`pid`, `die` and `work SECONDS`.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

from lake.protocol import logging
from lake.protocol.errors import UserError
from metastore.server.monitoring import metrics
from metastore.server.supervisor import Supervisor
from metastore.settings import Settings


def _answer(connection: socket.socket, worker_id: int) -> None:
    """Answers a client's lines. What is not text is Thrift, from the HTTP process: its connection is closed."""
    metrics.connection_opened()
    try:
        with connection, connection.makefile("r") as lines, contextlib.suppress(UnicodeDecodeError):
            for line in lines:
                command, _, argument = line.strip().partition(" ")
                if command == "pid":
                    connection.sendall(f"{worker_id} {os.getpid()}\n".encode())
                elif command == "die":
                    os._exit(7)
                elif command == "work":
                    connection.sendall(b"begun\n")
                    time.sleep(float(argument))
                    connection.sendall(b"done\n")
    finally:
        metrics.connection_closed()


def serve(
    listeners: list[socket.socket],
    settings: Settings,
    *,
    worker_id: int,
    parent_alive: int,
    on_ready: Callable[[], None],
) -> int:
    stop_read, stop_write = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(stop_write, b"x"))
    listener = listeners[0]
    listener.setblocking(False)
    on_ready()
    threads = []
    while True:
        ready, _, _ = select.select([listener.fileno(), parent_alive, stop_read], [], [])
        if stop_read in ready or parent_alive in ready:
            break
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            continue
        connection.setblocking(True)
        threads.append(threading.Thread(target=_answer, args=(connection, worker_id), daemon=True))
        threads[-1].start()
    listener.close()
    deadline = time.monotonic() + settings.drain_seconds
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    return 0


def refuse(listeners: list[socket.socket], settings: Settings, **_: object) -> int:
    raise UserError("the stand-in refuses")


def fail(listeners: list[socket.socket], settings: Settings, **_: object) -> int:
    raise RuntimeError("the stand-in has a bug")


def hang(listeners: list[socket.socket], settings: Settings, *, on_ready: Callable[[], None], **_: object) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    on_ready()
    time.sleep(1000)
    return 0


def _migrate(url: str) -> None:
    if "refused" in url:
        raise UserError("the stand-in's schema is too new")


if __name__ == "__main__":
    logging.configure("debug", "text")
    behaviours = {"serve": serve, "refuse": refuse, "fail": fail, "hang": hang}
    settings = Settings(**json.loads(sys.argv[2]))
    try:
        sys.exit(Supervisor(settings, worker=behaviours[sys.argv[1]], migrate=_migrate).run())
    except UserError as error:
        sys.exit(f"Error: {error}")
