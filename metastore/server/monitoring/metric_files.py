"""The files in which prometheus-client counts, so that a full disk ends no process.

They are mapped into memory. Writing to a part of a mapped file that has no place on the disk yet, when there is none
left, is no error that can be caught: the kernel ends the process (SIGBUS). So every file has all its place before it is
mapped. What there is no place for is counted in memory, and shown once there is.
"""

import contextlib
import os
from pathlib import Path

import structlog
from prometheus_client.mmap_dict import _INITIAL_MMAP_SIZE, MmapedDict

log = structlog.get_logger(__name__)


class AllocatedFile(MmapedDict):
    """Values by key in a mapped file that has its place on the disk. Not for several threads at once."""

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        self._beside: dict[str, tuple[float, float]] = {}
        if not read_mode and not Path(filename).exists():
            filename = _allocated(filename)
        super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

    def read_value(self, key: str) -> tuple[float, float]:
        if not self._has(key):
            return self._beside.get(key, (0.0, 0.0))
        value: tuple[float, float] = super().read_value(key)  # type: ignore[no-untyped-call]
        return value

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        if self._has(key):
            super().write_value(key, value, timestamp)  # type: ignore[no-untyped-call]
        else:
            self._beside[key] = value, timestamp

    def _has(self, key: str) -> bool:
        """Whether the file has a place for a value, by now."""
        if key in self._positions:
            return True
        length = 4 + len(key.encode()) + 8 + 16  # as it is written, or a little more
        capacity = self._capacity
        while self._used + length > capacity:
            capacity *= 2
        try:
            if capacity > self._capacity:
                os.posix_fallocate(self._f.fileno(), 0, capacity)
            self._init_value(key)  # type: ignore[no-untyped-call]
        except OSError as error:
            if not self._beside:
                log.warning("counts can't be shown", file=str(self._fname), error=str(error))
            self._beside.setdefault(key, (0.0, 0.0))
            return False
        self._beside.pop(key, None)
        return True


def _allocated(filename: str) -> str:
    """Makes a file and returns its name, or, if there is no place for it, that of a file in memory for this process."""
    new = Path(f"{filename}.new")  # a reader must not see it without its place
    try:
        with new.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _INITIAL_MMAP_SIZE)
        new.replace(filename)
        return filename
    except OSError as error:
        log.warning("counts of this process can't be shown", file=filename, error=str(error))
    with contextlib.suppress(OSError):  # it wasn't even made
        new.unlink()
    return f"/proc/self/fd/{os.memfd_create('metrics')}"
