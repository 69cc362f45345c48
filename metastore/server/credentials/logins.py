"""What a worker checks logins with: made of the settings when it starts."""

import contextlib
import hmac
import importlib.util
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from lake.protocol.errors import UserError
from lake.protocol.sasl.delegation_token import Identifier
from metastore.server.credentials.certificates import CertificateFiles
from metastore.server.credentials.failures import FailedLogins
from metastore.server.credentials.fair_threads import FairThreads, shared_address
from metastore.server.credentials.identity import Denied, Identity, Unavailable, checked
from metastore.server.credentials.json_web_tokens import JsonWebTokens
from metastore.server.credentials.login_records import LoginRecords
from metastore.server.credentials.password_file import PasswordFile
from metastore.server.credentials.password_hook import PasswordHook
from metastore.server.credentials.proxying import acting_as
from metastore.server.monitoring import metrics
from metastore.server.monitoring.audit import AuditLog
from metastore.settings import Settings
from metastore.store import DatabaseUnavailable

if TYPE_CHECKING:
    from metastore.server.credentials.kerberos import Kerberos

HANDSHAKE_THREADS = 2
PROOF_THREADS = 4
CHECK_THREADS = 4
"""Passwords that are checked at the same time in a worker. Each takes 32 MB while its hash is computed."""

SECRET_BYTES = 32
_SERVER_SECRET = secrets.token_bytes(
    SECRET_BYTES
)  # known to the processes that the supervisor forks, and to nobody else


class MissingExtra(UserError):
    """A way to log in needs a library that isn't installed."""


class Passwords(Protocol):
    """Whoever checks passwords, and knows groups."""

    def check(self, user: str, password: str, peer: str) -> Identity:
        """Who has this name and password. Raises `identity.Denied`."""

    def known(self, user: str, password: str) -> Identity | None:
        """The same if this password was right before and nothing has to be computed or asked; else None.

        Raises `identity.Unavailable`.
        """

    def groups(self, user: str) -> tuple[str, ...]:
        """The groups of a user who has not logged in; empty if they aren't known. Raises `identity.Unavailable`."""


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """A password that has to be checked by work that costs much: a slow hash, or a question to another server.

    `finish` does it, in a thread of `Logins.checks`. It raises `identity.Denied`.
    """

    user: str
    finish: Callable[[], Identity]


class Tokens(Protocol):
    """Whoever issues delegation tokens."""

    def password(self, data: bytes) -> tuple[Identifier, bytes]:
        """What a client must know to log in with the token of an identifier. Raises TokenRefused."""

    def holding(self, sequences: Collection[int]) -> set[int]:
        """Which tokens, by their numbers, were not cancelled, and belong to users with the password of then."""


def needed(settings: Settings) -> bool:
    """Whether a server asks who comes in, speaks more than plain Thrift, or must know its own processes by proof."""
    asks = settings.authentication != ("none",) or settings.authorization != "none"
    return asks or settings.tls_certificate is not None


def check_files(settings: Settings) -> None:
    """Raises UserError if the files of logins can't be used: before any process of the server needs them."""
    if settings.tls_certificate is not None:
        CertificateFiles(settings)
    _directory(settings)
    _kerberos(settings)


class Logins:
    """What logins are checked with, by the settings, and the threads that do it."""

    def __init__(self, settings: Settings, tokens: Tokens | None = None) -> None:
        """`tokens` issues delegation tokens, if it does. Starts no thread.

        Raises UserError for files and functions that can't be used.
        """
        self.settings = settings
        self.tokens = tokens if "token" in settings.authentication else None
        self.allowed = frozenset(settings.authentication)
        self.tls = None if settings.tls_certificate is None else CertificateFiles(settings)
        self.kerberos = _kerberos(settings)
        self._directory = _directory(settings)
        self.passwords = self._directory if "plain" in self.allowed else None
        self.bearer = JsonWebTokens(settings) if "jwt" in self.allowed else None
        self.failures = FailedLogins()
        """Of passwords, by address."""

    def start(self, audit_log: AuditLog | None = None, *, requests: bool = False) -> None:
        """Starts the threads. Handshakes, tokens, tickets and known passwords don't wait behind passwords' hashes.

        `audit_log`: where logins are recorded, too. `requests`: each request is a login of its own.
        """
        self.records = LoginRecords(audit_log, requests=requests)
        self.handshakes = FairThreads("handshake", HANDSHAKE_THREADS)
        self.proofs = FairThreads("proof", PROOF_THREADS)
        self.checks = FairThreads("password", CHECK_THREADS, self.failures)

    @property
    def waiting(self) -> int:
        """How many clients wait until a thread looks at what they sent."""
        return self.handshakes.waiting + self.proofs.waiting + self.checks.waiting

    def by_password(self, user: str, password: str, peer: str, acting_as: str = "") -> Identity | PasswordCheck:
        """Who has this name and password, in the place of whom that user acts; or how that is found out.

        `acting_as`: empty if the user acts for itself. `peer`: the client's address. Raises `identity.Denied`.
        """
        passwords = self.passwords
        if passwords is None:
            raise Unavailable("passwords can't be checked", "there is nothing to check them with")
        known = passwords.known(user, password)
        if known is not None:
            metrics.login_checked("password", "known")
            return self.acting_as(known, acting_as, peer)

        def finish() -> Identity:
            try:
                return self.acting_as(passwords.check(user, password, peer), acting_as, peer)
            except Unavailable:
                raise
            except Denied:
                self.failures.failed(shared_address(peer))
                raise

        return PasswordCheck(user, finish)

    @property
    def speaks_http(self) -> bool:
        return not self.allowed.isdisjoint(("jwt", "header"))

    def groups(self, user: str) -> tuple[str, ...]:
        """The groups of a user whose name was proven otherwise than by a password. Raises `identity.Unavailable`."""
        return () if self._directory is None else self._directory.groups(user)

    def owner(self, identifier: Identifier) -> Identity:
        """Who has proven a delegation token. Raises `identity.Denied`."""
        groups = self.groups(identifier.owner)
        return checked(Identity(identifier.owner, "token", groups, identifier.real_user or None, identifier.sequence))

    def acting_as(self, identity: Identity, user: str, peer: str) -> Identity:
        """The identity of a user for whom somebody logged in; "" is oneself. Raises `identity.Denied`."""
        found = acting_as(identity, user, peer, self.settings.proxy_users, self.groups)
        if found is identity or not isinstance(self._directory, PasswordFile):
            return found
        version = self._directory.version(found.user)
        return found if version is None else replace(found, passwords=(*found.passwords, (found.user, version)))

    def revoked(self, identities: Collection[Identity]) -> dict[Identity, str]:
        """Which of these may not come in any more, and why, because of changed passwords and cancelled tokens.

        While that can't be found out, nobody is named.
        """
        found: dict[Identity, str] = {}
        if isinstance(self._directory, PasswordFile):
            with contextlib.suppress(Unavailable):
                for identity in identities:
                    for user, version in identity.passwords:
                        if self._directory.version(user) != version:
                            found[identity] = f"{user} was removed from the password file, or has another password"
        tokens = {identity.token for identity in identities if identity.token is not None}
        if tokens and self.tokens is not None:
            with contextlib.suppress(DatabaseUnavailable):
                holding = self.tokens.holding(tokens)
                for identity in identities:
                    if identity.token is not None and identity.token not in holding:
                        found[identity] = f"the delegation token {identity.token} was cancelled, or its user removed"
        return found


def server_secret() -> bytes:
    """What processes of this server prove themselves with to its workers."""
    return _SERVER_SECRET


def is_server_secret(secret: bytes) -> bool:
    return hmac.compare_digest(secret, _SERVER_SECRET)


def _directory(settings: Settings) -> Passwords | None:
    """Who knows the users' passwords and groups, if anybody does. Raises UserError."""
    if settings.password_file is not None:
        return PasswordFile(settings.password_file)
    if settings.password_hook is not None:
        return PasswordHook(settings.password_hook, settings.password_hook_seconds)
    if settings.ldap_url is not None:
        _require("ldap", "ldap_url", "ldap")
        from metastore.server.credentials.ldap_directory import LdapDirectory

        return LdapDirectory(settings)
    return None


def _kerberos(settings: Settings) -> "Kerberos | None":
    """Raises UserError."""
    if "kerberos" not in settings.authentication:
        return None
    _require("gssapi", "authentication by kerberos", "kerberos")
    from metastore.server.credentials.kerberos import Kerberos

    return Kerberos(settings)


def _require(module: str, purpose: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(f"{purpose} needs the extra `{extra}`: pip install 'lake-metastore[{extra}]'")
