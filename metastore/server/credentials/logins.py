"""What a worker checks logins with: made of the settings when it starts."""

import hmac
import secrets
from typing import Protocol

from metastore.server.credentials.certificates import CertificateFiles
from metastore.server.credentials.failures import FailedLogins
from metastore.server.credentials.identity import Identity
from metastore.server.credentials.json_web_tokens import JsonWebTokens
from metastore.server.credentials.password_file import PasswordFile
from metastore.server.credentials.password_hook import PasswordHook
from metastore.server.threads import ThreadPool
from metastore.settings import Settings
from metastore.wire.delegation_token import Identifier

HANDSHAKE_THREADS = 2
CHECK_THREADS = 4
"""Passwords that are checked at the same time in a worker. Each takes 32 MB while its hash is computed."""

_SERVER_SECRET = secrets.token_bytes(32)  # known to the processes that the supervisor forks, and to nobody else


class Passwords(Protocol):
    """Whoever checks passwords."""

    def check(self, user: str, password: str, peer: str) -> Identity:
        """Who has this name and password. Raises `identity.Denied`."""

    def groups(self, user: str) -> tuple[str, ...]:
        """The groups of a user who has not logged in; empty if they aren't known."""


class Tokens(Protocol):
    """Whoever issues delegation tokens."""

    def password(self, data: bytes) -> tuple[Identifier, bytes]:
        """What a client must know to log in with the token of an identifier. Raises TokenRefused."""


def needed(settings: Settings) -> bool:
    """Whether a server asks who comes in, speaks more than plain Thrift, or must know its own processes by proof."""
    asks = settings.authentication != ("none",) or settings.authorization != "none"
    return asks or settings.tls_certificate is not None


def check_files(settings: Settings) -> None:
    """Raises UserError if the files of logins can't be used: before any process of the server needs them."""
    if settings.tls_certificate is not None:
        CertificateFiles(settings)
    if settings.password_file is not None and "plain" in settings.authentication:
        PasswordFile(settings.password_file)


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
        self.passwords = _passwords(settings) if "plain" in self.allowed else None
        self.bearer = JsonWebTokens(settings) if "jwt" in self.allowed else None
        self.failures = FailedLogins()

    def start(self) -> None:
        """Starts the threads. Handshakes don't wait behind passwords."""
        self.handshakes = ThreadPool(HANDSHAKE_THREADS)
        self.checks = ThreadPool(CHECK_THREADS)

    @property
    def speaks_http(self) -> bool:
        return not self.allowed.isdisjoint(("jwt", "header"))


def server_secret() -> bytes:
    """What processes of this server prove themselves with to its workers."""
    return _SERVER_SECRET


def is_server_secret(secret: bytes) -> bool:
    return hmac.compare_digest(secret, _SERVER_SECRET)


def _passwords(settings: Settings) -> Passwords:
    if settings.password_file is not None:
        return PasswordFile(settings.password_file)
    assert settings.password_hook is not None
    return PasswordHook(settings.password_hook, settings.password_hook_seconds)
