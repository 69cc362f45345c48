"""The processes of a server that a test started: which they are, and their sudden death."""

import contextlib
from collections.abc import Iterable

import psutil

from tests.support.server import MetastoreServer


def everything(server: MetastoreServer) -> list[psutil.Process]:
    """Supervisor, workers, the embedded Postgres and its backends."""
    supervisor = psutil.Process(server.pid)
    return [supervisor, *supervisor.children(recursive=True)]


def workers(server: MetastoreServer) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(server.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            if child.name() != "postgres":
                found.append(child)
    return found


def postmaster(server: MetastoreServer) -> psutil.Process:
    """The first process of the embedded Postgres."""
    (found,) = (child for child in psutil.Process(server.pid).children() if child.name() == "postgres")
    return found


def clients_of(worker: psutil.Process) -> set[int]:
    """The ports from which a worker's clients are connected to it."""
    connections = worker.net_connections("tcp")
    return {each.raddr.port for each in connections if each.status == psutil.CONN_ESTABLISHED}


def kill(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL to each, in that order."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
