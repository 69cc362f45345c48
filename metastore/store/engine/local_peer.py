"""Whether Postgres is a process of this machine, with nothing in between."""

import os
import socket
import struct

import psutil
from sqlalchemy.engine import make_url

_CREDENTIALS = struct.Struct("3i")  # process, user, group


def through_unix_socket(url: str) -> bool:
    """Whether a database, by its SQLAlchemy URL, is reached through a Unix socket."""
    parsed = make_url(url)
    host = parsed.host or parsed.query.get("host")
    return isinstance(host, str) and host.startswith("/")


def is_backend(descriptor: int, backend: int) -> bool:
    """Whether a socket's other end is the Postgres process `backend` on this machine, and not a pooler or a proxy.

    `descriptor` is the socket's. It is a Unix socket, and who listened for it is the process's parent. What such a
    process sends can be read here as soon as its system call has returned, and its end can be seen before anybody
    else learns of it.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return False
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        if connection.family != socket.AF_UNIX:
            return False
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    listener, _, _ = _CREDENTIALS.unpack(found)
    try:
        process = psutil.Process(backend)
        return process.ppid() == listener and process.name().startswith("postgres")
    except psutil.Error:
        return False
