"""The audit log: who did what, from where, and what was decided about it.

A record is one line. Without a file of its own it is a line of the server's log, by the logger `audit`. An outlet may
bring records to a webhook, a Redis stream or a topic of Kafka, too.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Literal, NamedTuple

import structlog

from eventbus.outlets.records import Destination, RecordOutlet, StreamDestination, WebhookDestination
from lake.protocol.errors import UserError
from metastore.api.methods import HANDLERS
from metastore.api.rights.guard import Verdict
from metastore.server.monitoring import metrics
from metastore.services.access.caller import Caller
from metastore.services.access.rights import Decision
from metastore.settings import Settings

STREAM = "metastore:audit"
"""The stream of records in Redis."""

_LOOK_SECONDS = 1.0  # between looks whether the file was moved away
_MAX_TEXT = 1_000
_MOST_DETAILS = 100  # in one record
_GATHER_SECONDS = 0.01

log = structlog.get_logger("audit")


class About(NamedTuple):
    """What a call was about. `details`: what it gives to whom, one item for each; most calls have none."""

    objects: str
    details: Sequence[Mapping[str, object]] = ()


class AuditLog:
    """Writes a record for calls that change something, or for all. Thread-safe."""

    def __init__(self, calls: Literal["changes", "all"], path: Path | None, outlet: RecordOutlet | None = None) -> None:
        """`path`: a file that records are appended to; several processes may do so. `outlet`: where they go, too.

        Raises OSError.
        """
        self.reads = calls == "all"
        """Whether calls that change nothing are recorded, too."""
        self._outlet = outlet
        self._file = None if path is None else _File(path)
        self._later: Callable[[float, Callable[[], None]], object] | None = None
        self._waiting: list[str] = []

    def gather(self, later: Callable[[float, Callable[[], None]], object]) -> None:
        """From now on records of cached replies are written together, those of ten milliseconds at a time.

        `later` is `call_later` of the event loop that calls `record_cached`.
        """
        self._later = later

    def record(
        self, method: str, caller: Caller, about: Callable[[], About], outcome: str, verdict: Verdict | None
    ) -> None:
        """Records a call, if it is one of those. `about` says what it was about, and is called for these alone.

        A call with many details has several records.
        """
        handler = HANDLERS.get(method)
        if not self.reads and (handler is None or not handler.rule.changes):
            return
        allowed, reason = (None, None) if verdict is None else (verdict.allowed, verdict.reason)
        found = about()
        parts = (beginning(method, found.objects), _of_caller(caller), _ending(allowed, reason, outcome))
        pieces = [found.details[at : at + _MOST_DETAILS] for at in range(0, len(found.details), _MOST_DETAILS)]
        self._write([_line(*parts, _members(details=piece)) for piece in pieces] or [_line(*parts)])

    def record_cached(self, beginning: str, caller: Caller, decision: Decision | None) -> None:
        """Records a call that was answered from the cache. `beginning`: as the function of this name returns it."""
        allowed, reason = (None, None) if decision is None else (decision.allowed, decision.reason)
        line = _line(beginning, _of_caller(caller), _ending(allowed, reason, "cached"))
        if self._later is None:
            self._write([line])
            return
        if not self._waiting:
            self._later(_GATHER_SECONDS, self.write_gathered)
        self._waiting.append(line)

    def record_login(
        self,
        user: str | None,
        real_user: str | None,
        mechanism: str,
        peer: str,
        outcome: str,
        reason: str | None = None,
        details: Sequence[Mapping[str, object]] = (),
    ) -> None:
        """Records a login. `reason`: why it was refused. `details`: what it was proven with."""
        who = _members(user=user, real_user=real_user, mechanism=mechanism, peer=peer)
        ending = _ending(outcome == "ok", reason, outcome)
        self._write([_line(_LOGIN, who, ending, _members(details=details) if details else None)])

    def record_refused_logins(self, others: int, addresses: Sequence[str]) -> None:
        """Records how many refused logins got no record of their own."""
        who = _members(user=None, real_user=None, mechanism=None, peer=None)
        more = _members(others=others, details=[{"address": each} for each in addresses])
        self._write([_line(_LOGIN, who, _ending(False, "too many for a record each", "refused"), more)])

    def write_gathered(self) -> None:
        """Writes what waits; see `gather`."""
        lines, self._waiting = self._waiting, []
        if lines:
            self._write(lines)

    def close(self) -> None:
        """Gives the outlet a moment to deliver what waits."""
        if self._outlet is not None:
            self._outlet.close()

    def _write(self, lines: Sequence[str]) -> None:
        """Each line is whole."""
        if self._file is None:
            for line in lines:
                log.warning("audit", **_facts(line))
        else:
            self._file.append(lines)
        if self._outlet is not None:
            for line in lines:
                self._outlet.add(line)


# A record is put together of parts, each of which is the same for many of them.


def beginning(method: str, object: str) -> str:
    """The part of a record that says which call it was, and its object."""
    return _members(method=method, object=object)


@lru_cache(maxsize=1_000)
def _of_caller(caller: Caller) -> str:
    return _members(user=caller.user, real_user=caller.real_user, mechanism=caller.mechanism, peer=caller.peer)


@lru_cache(maxsize=1_000)
def _ending(allowed: bool | None, reason: str | None, outcome: str) -> str:
    return _members(allowed=allowed, reason=reason, outcome=outcome)


def _members(**facts: object) -> str:
    """Members of a JSON object, without its braces."""
    for name, value in facts.items():
        if isinstance(value, str) and len(value) > _MAX_TEXT:  # clients choose names of any length
            facts[name] = value[:_MAX_TEXT]
    return json.dumps(facts, separators=(",", ":"))[1:-1]


_LOGIN = beginning("login", "")


def _line(beginning: str, caller: str, ending: str, more: str | None = None) -> str:
    """`more`: members that few records have."""
    end = ending if more is None else f"{ending},{more}"
    return f'{{"time":"{_moment(int(time.time() * 1000))}",{beginning},{caller},{end}}}'


@lru_cache(maxsize=2)
def _moment(milliseconds: int) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
    return f"{seconds}.{milliseconds % 1000:03d}Z"


def _facts(line: str) -> dict[str, object]:
    """A record without its time, which the server's log gives to each of its lines."""
    facts: dict[str, object] = json.loads(line)
    del facts["time"]
    return facts


class _File:
    """A file of JSON lines, opened anew when it was moved away."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._looked = 0.0
        self._open: IO[bytes] = self._opened()

    def append(self, lines: Sequence[str]) -> None:
        with self._lock:
            try:
                self._look(time.time())
                self._open.write(("\n".join(lines) + "\n").encode())
            except OSError as error:  # the calls were answered already: the records go where somebody sees them
                for line in lines:
                    facts = {"path": str(self._path), "error": str(error), **_facts(line)}
                    log.error("the audit log can't be written", **facts)

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
        # Unbuffered and appended: lines are written by one system call, so that those of several processes don't mix.
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
