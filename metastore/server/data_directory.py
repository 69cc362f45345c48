"""A server's data directory: what is where, and that one server at a time owns it."""

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path

import psutil

from lake.protocol.errors import UserError

_POLL_SECONDS = 0.1


class DataDirectoryError(UserError):
    """The data directory can't be used."""


class DataDirectoryInUse(DataDirectoryError):
    """Another server owns the data directory."""


class DataDirectory:
    """A server's data directory and the lock on it.

    The lock is an flock on `server.lock`. The kernel drops it when the last process that inherited it is
    gone, so a lock that can be had proves that no process of an earlier server is at work, however it ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    def lock(self, *, wait_seconds: float = 0) -> None:
        """Make the directory if need be and become its owner.

        Waits up to `wait_seconds` if its owner is dead but workers of the owner still finish their requests;
        doesn't wait for a living owner. Raises DataDirectoryInUse, and DataDirectoryError if it isn't
        writable.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / "server.lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise DataDirectoryError(f"can't use {self.path} as data directory: {error.strerror}") from None
        deadline = time.monotonic() + wait_seconds
        while not self._try_lock(lock):
            owner = self._owner(lock)
            if _is_alive(owner) or time.monotonic() > deadline:
                os.close(lock)
                raise DataDirectoryInUse(
                    f"the data directory {self.path} is in use by another server{_description(owner)}"
                )
            time.sleep(_POLL_SECONDS)
        self._lock = lock
        self.describe_owner("")

    def describe_owner(self, uri: str) -> None:
        """Tell those who find the directory locked who has it: this process, serving `uri`."""
        assert self._lock is not None
        me = psutil.Process()
        text = json.dumps({"pid": me.pid, "started": me.create_time(), "uri": uri})
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, text.encode(), 0)

    def unlock(self) -> None:
        """Give the directory up."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _try_lock(self, lock: int) -> bool:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            os.close(lock)
            raise DataDirectoryError(f"can't lock the data directory {self.path}: {error.strerror}") from None
        return True

    def _owner(self, lock: int) -> dict[str, object]:
        with contextlib.suppress(ValueError):  # empty: its new owner hasn't signed yet
            owner = json.loads(os.pread(lock, 4096, 0))
            if isinstance(owner, dict):
                return owner
        return {}


def _is_alive(owner: dict[str, object]) -> bool:
    try:
        process = psutil.Process(int(str(owner["pid"])))
        # The start time tells the owner from a later process with its number.
        return process.create_time() == owner["started"] and process.status() != psutil.STATUS_ZOMBIE
    except (KeyError, ValueError, psutil.Error):
        return False


def _description(owner: dict[str, object]) -> str:
    if not owner:
        return ""
    return f" (process {owner.get('pid')}{', ' if owner.get('uri') else ''}{owner.get('uri') or ''})"
