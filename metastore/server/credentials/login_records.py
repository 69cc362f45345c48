"""What is written about logins: counts, lines of the server's log, records of the audit log. Thread-safe.

Strangers must not fill the disk by failing. So only some of the refused logins get a line of their own; the others are
counted, and a summary follows.
"""

import threading
from collections import Counter

import structlog

from metastore.server.credentials.fair_threads import shared_address
from metastore.server.credentials.identity import Denied, Identity
from metastore.server.monitoring import metrics
from metastore.server.monitoring.audit import AuditLog

WINDOW_SECONDS = 10.0
MOST_OF_ADDRESS = 10
"""Refused logins of one address in a window that get a line of their own."""

MOST_LINES = 100
"""The same of all addresses."""

_NAMED_ADDRESSES = 20
_LONGEST_NAME = 60

log = structlog.get_logger(__name__)


class LoginRecords:
    """Writes about successful and refused logins."""

    def __init__(self, audit_log: AuditLog | None, *, requests: bool = False) -> None:
        """`requests`: each request is a login of its own. Successful ones are recorded only where reads are."""
        self._audit_log = audit_log
        self._requests = requests
        self._lock = threading.Lock()
        self._lines: Counter[str] = Counter()  # in this window, by address
        self._others: Counter[str] = Counter()

    def succeeded(self, identity: Identity, peer: str, *, encrypted: bool) -> None:
        """Somebody has logged in. The server's own processes are counted only."""
        metrics.login(identity.mechanism, "ok")
        of_server = identity.mechanism == "server"
        facts = {"user": identity.user, "mechanism": identity.mechanism, "encrypted": encrypted}
        tell = log.debug if of_server or self._requests else log.info  # probes and scrapes come every few seconds
        tell("login", peer=peer, real_user=identity.real_user, **facts)
        audit = self._audit_log
        if audit is not None and not of_server and (audit.reads or not self._requests):
            details = [] if identity.token is None else [{"token": identity.token}]
            audit.record_login(identity.user, identity.real_user, identity.mechanism, peer, "ok", details=details)

    def refused(self, mechanism: str, denied: Denied, peer: str, user: str | None) -> None:
        """Somebody was refused, who perhaps said to be a user."""
        metrics.login(mechanism, denied.outcome)
        if not self._may_write(shared_address(peer)):
            return
        named = None if user is None else user[:_LONGEST_NAME]
        log.warning("login refused", peer=peer, mechanism=mechanism, user=named, cause=denied.cause)
        if self._audit_log is not None:
            self._audit_log.record_login(named, None, mechanism, peer, denied.outcome, denied.cause)

    def _may_write(self, address: str) -> bool:
        with self._lock:
            if not self._lines and not self._others:
                timer = threading.Timer(WINDOW_SECONDS, self._end_window)
                timer.daemon = True
                timer.start()
            if self._lines[address] < MOST_OF_ADDRESS and self._lines.total() < MOST_LINES:
                self._lines[address] += 1
                return True
            if len(self._others) < _NAMED_ADDRESSES or address in self._others:
                self._others[address] += 1
            else:
                self._others[""] += 1
            return False

    def _end_window(self) -> None:
        """Writes how many were left out, and from where."""
        with self._lock:
            others, self._others = self._others, Counter()
            self._lines = Counter()
        if not others:
            return
        addresses = [each for each, _ in others.most_common() if each]
        log.warning("logins refused", others=others.total(), addresses=addresses)
        if self._audit_log is not None:
            self._audit_log.record_refused_logins(others.total(), addresses)
