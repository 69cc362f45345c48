"""The audit log: who did what, from where, and what was decided about it.

A record is one line. Without a file of its own it is a line of the server's log, by the logger `audit`.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Literal

import structlog

from metastore.api.rights.classification import rules
from metastore.api.rights.guard import Verdict
from metastore.services.access.caller import Caller
from metastore.settings import Settings

_LOOK_SECONDS = 1.0  # between looks whether the file was moved away
_MAX_TEXT = 1_000

log = structlog.get_logger("audit")


class AuditLog:
    """Writes a record for calls that change something, or for all. Thread-safe."""

    def __init__(self, calls: Literal["changes", "all"], path: Path | None) -> None:
        """`path`: a file that records are appended to; several processes may do so. Raises OSError."""
        self._all = calls == "all"
        self._changing = frozenset(name for name, rule in rules().items() if rule.changes)
        self._file = None if path is None else _File(path)

    def record(
        self, method: str, caller: Caller, about: Callable[[], str], outcome: str, verdict: Verdict | None
    ) -> None:
        """Records a call, if it is one of those. `about` names its object, and is called for these alone."""
        if not self._all and method not in self._changing:
            return
        facts: dict[str, object] = {
            "method": method,
            "object": about(),
            "user": caller.user,
            "real_user": caller.real_user,
            "mechanism": caller.mechanism,
            "peer": caller.peer,
            "allowed": None if verdict is None else verdict.allowed,
            "reason": None if verdict is None else verdict.reason,
            "outcome": outcome[:_MAX_TEXT],
        }
        if self._file is None:
            log.warning("audit", **facts)
        else:
            self._file.append(facts)


class _File:
    """A file of JSON lines, opened anew when it was moved away."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._looked = 0.0
        self._open: IO[bytes] = self._opened()

    def append(self, facts: dict[str, object]) -> None:
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
        line = json.dumps({"time": stamp, **facts}, separators=(",", ":")) + "\n"
        with self._lock:
            try:
                self._look(now)
                self._open.write(line.encode())
            except OSError as error:  # the call was answered already: the record goes where somebody sees it
                log.error("the audit log can't be written", path=str(self._path), error=str(error), **facts)

    def _look(self, now: float) -> None:
        if abs(now - self._looked) < _LOOK_SECONDS:
            return
        self._looked = now
        try:
            there = self._path.stat()
            own = os.fstat(self._open.fileno())
            moved = (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino)
        except FileNotFoundError:
            moved = True
        if moved:
            self._open.close()
            self._open = self._opened()

    def _opened(self) -> IO[bytes]:
        # Unbuffered and appended: a line is one system call, so that those of several processes don't mix.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        return os.fdopen(descriptor, "ab", buffering=0)


def audit_log(settings: Settings) -> AuditLog | None:
    """The audit log that the settings ask for. Raises OSError for a file that can't be written."""
    calls = settings.audit or ("off" if settings.authorization == "none" else "changes")
    return None if calls == "off" else AuditLog(calls, settings.audit_log)
