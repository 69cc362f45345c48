"""The audit log: who did what, from where, and what was decided about it.

A record is one line. Without a file of its own it is a line of the server's log, by the logger `audit`. An outlet may
bring records to a webhook, a Redis stream or a topic of Kafka, too.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Literal

import structlog

from eventbus.outlets.records import Destination, RecordOutlet, StreamDestination, WebhookDestination
from metastore.api.rights.classification import rules
from metastore.api.rights.guard import Verdict
from metastore.errors import UserError
from metastore.server import metrics
from metastore.services.access.caller import Caller
from metastore.settings import Settings

STREAM = "metastore:audit"
"""The stream of records in Redis."""

_LOOK_SECONDS = 1.0  # between looks whether the file was moved away
_MAX_TEXT = 1_000

log = structlog.get_logger("audit")


class AuditLog:
    """Writes a record for calls that change something, or for all. Thread-safe."""

    def __init__(self, calls: Literal["changes", "all"], path: Path | None, outlet: RecordOutlet | None = None) -> None:
        """`path`: a file that records are appended to; several processes may do so. `outlet`: where they go, too.

        Raises OSError.
        """
        self._outlet = outlet
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
            "outcome": outcome,
        }
        for name, value in facts.items():
            if isinstance(value, str) and len(value) > _MAX_TEXT:  # clients choose names of any length
                facts[name] = value[:_MAX_TEXT]
        line = json.dumps({"time": _now(), **facts}, separators=(",", ":"))
        if self._file is None:
            log.warning("audit", **facts)
        else:
            self._file.append(line, facts)
        if self._outlet is not None:
            self._outlet.add(line)

    def close(self) -> None:
        """Gives the outlet a moment to deliver what waits."""
        if self._outlet is not None:
            self._outlet.close()


def _now() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


class _File:
    """A file of JSON lines, opened anew when it was moved away."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._looked = 0.0
        self._open: IO[bytes] = self._opened()

    def append(self, line: str, facts: dict[str, object]) -> None:
        with self._lock:
            try:
                self._look(time.time())
                self._open.write(f"{line}\n".encode())
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
    """The audit log that the settings ask for. Raises OSError for a file that can't be written, UserError."""
    decides = settings.authorization != "none" or settings.audit_url is not None
    calls = settings.audit or ("changes" if decides else "off")
    return None if calls == "off" else AuditLog(calls, settings.audit_log, _outlet(settings))


def _outlet(settings: Settings) -> RecordOutlet | None:
    if settings.audit_url is None:
        return None
    return RecordOutlet("audit", _destination(settings.audit_url, settings), lost=metrics.audit_records_lost)


def _destination(url: str, settings: Settings) -> Destination:
    scheme, _, rest = url.partition("://")
    if scheme == "kafka":
        servers, _, topic = rest.partition("/")
        return _topic(servers, topic, settings.kafka_options)
    if scheme in ("http", "https"):
        return WebhookDestination(url, settings.event_webhook_secret)
    return StreamDestination(url, STREAM)


def _topic(servers: str, topic: str, options: Mapping[str, str]) -> Destination:
    try:
        from eventbus.outlets.kafka_records import TopicDestination
    except ImportError as error:
        raise UserError(
            f"audit_url is Kafka's, but there is no client of it ({error}). Run: pip install 'lake-metastore[kafka]'"
        ) from None
    return TopicDestination(servers, topic, options)
