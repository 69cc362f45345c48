"""The directory of the counters that the processes of a server share: in memory, if the system has a place for that.

On a disk, a process that counts would wait now and then: the kernel lets nobody write to a page of a mapped file while
it writes that to the disk.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_LOCK = "lock"


class MetricsDirectory:
    """A new directory for each server, removed at its end.

    A server that is killed leaves it behind, and the next one of the same user removes it. Its file `lock` is locked
    until the last process that inherited the lock is gone.
    """

    def __init__(self, otherwise: Path) -> None:
        """`otherwise`: the directory on a disk, where there is none in memory."""
        self._otherwise = otherwise
        self._path: Path | None = None
        self._lock: int | None = None

    def make(self) -> Path:
        """Makes the directory, which nobody else may enter."""
        prefix = f"metastore-{os.geteuid()}-"
        try:
            _remove_abandoned(prefix)
            self._path = Path(tempfile.mkdtemp(prefix=prefix, dir=_MEMORY))
            self._lock = os.open(self._path / "new", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (self._path / "new").rename(self._path / _LOCK)  # the lock is never seen unlocked
        except OSError:
            self.remove()
            self._otherwise.mkdir(parents=True, exist_ok=True)
            return self._otherwise
        return self._path

    def remove(self) -> None:
        """Removes the directory, unless it is on a disk. Nobody may count there any more."""
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._path = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _remove_abandoned(prefix: str) -> None:
    """Removes the directories of this user's servers that are gone."""
    for path in _MEMORY.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid != os.geteuid():
                continue
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(lock)
