"""Passwords and groups in an LDAP directory (RFC 4511). It needs the extra `ldap`.

A user's entry is where a pattern says (`ldap_user_dn`), or is searched for. Whoever can bind as that entry with the
password is the user; the name is taken as the directory writes it, for LDAP compares without regard to case.
"""

import hmac
import os
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, cast

import ldap
from cachetools import TTLCache
from circuitbreaker import CircuitBreaker, CircuitBreakerError
from ldap.dn import escape_dn_chars
from ldap.filter import escape_filter_chars

from lake.protocol.errors import UserError
from metastore.server.credentials.bounded_calls import BoundedCalls
from metastore.server.credentials.identity import Denied, Identity, Unavailable, checked
from metastore.server.credentials.passwords import MAX_PASSWORD_BYTES
from metastore.settings import Settings

Value = TypeVar("Value")

MAX_GROUPS = 1_000
"""Of a user. More are an error: it is safer than some of them."""

RETRY_SECONDS = 2
"""Time for which no login asks a directory that failed for several ones in a row."""

_FAILURES = 4
_MOST_CACHED = 10_000
_LONGEST_NAME = 256
_REFUSAL = "passwords can't be checked: the directory doesn't answer"
_WRONG = "wrong user or password"
_UNREACHABLE = (ldap.SERVER_DOWN, ldap.TIMEOUT, ldap.CONNECT_ERROR, ldap.BUSY, ldap.UNAVAILABLE)
_NO_BIND = (ldap.INVALID_CREDENTIALS, ldap.INVALID_DN_SYNTAX, ldap.NO_SUCH_OBJECT, ldap.INAPPROPRIATE_AUTH)


class BadDirectory(UserError):
    """The files for the encrypted connection to the directory can't be used."""


class _Entry(NamedTuple):
    dn: str
    user: str


class LdapDirectory:
    """Checks passwords, and finds groups. What was right is remembered for a short time. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        """Connects to nothing yet. Raises BadDirectory."""
        self._settings = settings
        if settings.ldap_ca is not None:
            try:
                ssl.create_default_context(cafile=settings.ldap_ca)
            except OSError as error:
                raise BadDirectory(f"ldap_ca {settings.ldap_ca} has no certificates in PEM: {error}") from None
        calls = BoundedCalls("the LDAP directory", _REFUSAL, settings.ldap_seconds)
        breaker = CircuitBreaker(
            failure_threshold=_FAILURES, recovery_timeout=RETRY_SECONDS, expected_exception=Unavailable, name="ldap"
        )
        self._guarded = breaker(calls.call)
        self._key = os.urandom(32)
        self._lock = threading.Lock()
        seconds = max(settings.ldap_cache_seconds, 1e-9)
        self._right: TTLCache[bytes, Identity] = TTLCache(_MOST_CACHED, seconds)
        self._groups: TTLCache[str, tuple[str, ...]] = TTLCache(_MOST_CACHED, seconds)

    def check(self, user: str, password: str, peer: str) -> Identity:
        """Who has this name and password. Raises Denied."""
        # An empty password is an anonymous bind, which succeeds (RFC 4513, 5.1.2).
        if not password or len(password.encode()) > MAX_PASSWORD_BYTES or not _is_name(user):
            raise Denied(_WRONG, "empty or too long a name or password")
        if (known := self.known(user, password)) is not None:
            return known
        found = self._ask(lambda: self._bind(user, password))
        with self._lock:
            self._right[self._digest(user, password)] = found
        return found

    def known(self, user: str, password: str) -> Identity | None:
        """Who has this name and password, if the directory has said so a short time ago; else None."""
        with self._lock:
            return self._right.get(self._digest(user, password))

    def _digest(self, user: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{user}\0{password}".encode(), "sha256")

    def groups(self, user: str) -> tuple[str, ...]:
        """The groups of a user, who needn't be in the directory. Raises Unavailable."""
        if not _is_name(user):
            return ()
        with self._lock:
            known = self._groups.get(user)
        if known is None:
            known = self._ask(lambda: self._look_up(user))
            with self._lock:
                self._groups[user] = known
        return known

    def _ask(self, function: Callable[[], Value]) -> Value:
        """Calls a function that asks the directory: not for long, and not while others found that it is away."""
        try:
            return cast(Value, self._guarded(function))
        except CircuitBreakerError:
            raise Unavailable(_REFUSAL, "the LDAP directory didn't answer just now") from None

    def _bind(self, user: str, password: str) -> Identity:
        with self._connected() as connection:
            dn = self._dn_of_pattern(user)
            if dn is None:
                self._bind_as_server(connection)
                entry = self._search(connection, user)
                if entry is None:
                    raise Denied(_WRONG, "no such user in the directory")
                dn = entry.dn
            try:
                connection.simple_bind_s(dn, password)
            except _NO_BIND as error:
                raise Denied(_WRONG, f"{dn}: {_text(error)}") from None
            entry = self._read(connection, dn, user)
            if entry is None:
                raise Denied(_WRONG, f"{dn} has no {self._settings.ldap_user_attribute} that is the user's name")
            if self._settings.ldap_bind_dn is not None:  # else users look for their groups themselves
                self._bind_as_server(connection)
            return checked(Identity(entry.user, "plain", self._groups_of(connection, entry)))

    def _look_up(self, user: str) -> tuple[str, ...]:
        with self._connected() as connection:
            self._bind_as_server(connection)
            dn = self._dn_of_pattern(user)
            entry = self._search(connection, user) if dn is None else self._read(connection, dn, user)
            return () if entry is None or entry.user != user else self._groups_of(connection, entry)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """A new connection, encrypted unless the settings say otherwise. Raises Unavailable."""
        settings = self._settings
        assert settings.ldap_url is not None
        connection = ldap.initialize(settings.ldap_url)
        for option, value in (
            (ldap.OPT_PROTOCOL_VERSION, 3),
            (ldap.OPT_REFERRALS, 0),  # it would send the password to whom the directory names
            (ldap.OPT_NETWORK_TIMEOUT, settings.ldap_seconds),
            (ldap.OPT_TIMEOUT, settings.ldap_seconds),
            (ldap.OPT_X_TLS_REQUIRE_CERT, ldap.OPT_X_TLS_DEMAND),
        ):
            connection.set_option(option, value)
        try:
            if settings.ldap_ca is not None:
                connection.set_option(ldap.OPT_X_TLS_CACERTFILE, str(settings.ldap_ca))
            connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)
            if settings.ldap_start_tls and not settings.ldap_url.startswith("ldaps:"):
                connection.start_tls_s()
            yield connection
        except ldap.LDAPError as error:
            away = "can't be reached" if isinstance(error, _UNREACHABLE) else "refuses what it is asked"
            raise Unavailable(_REFUSAL, f"the LDAP directory {settings.ldap_url} {away}: {_text(error)}") from None
        finally:
            connection.unbind_ext()

    def _bind_as_server(self, connection: Any) -> None:
        """As whom the server searches: nobody, unless the settings name an entry."""
        connection.simple_bind_s(self._settings.ldap_bind_dn or "", self._settings.ldap_bind_password or "")

    def _dn_of_pattern(self, user: str) -> str | None:
        pattern = self._settings.ldap_user_dn
        return None if pattern is None else _filled(pattern, user=escape_dn_chars(user))

    def _search(self, connection: Any, user: str) -> _Entry | None:
        """The entry of a user; None if there is none, or more than one."""
        text = _filled(self._settings.ldap_user_filter, user=escape_filter_chars(user))
        try:
            found = self._entries(connection, self._settings.ldap_user_base or "", ldap.SCOPE_SUBTREE, text, 2)
        except ldap.SIZELIMIT_EXCEEDED:
            return None
        return self._named(*found[0], user) if len(found) == 1 else None

    def _read(self, connection: Any, dn: str, user: str) -> _Entry | None:
        try:
            found = self._entries(connection, dn, ldap.SCOPE_BASE, "(objectClass=*)", 1)
        except (ldap.NO_SUCH_OBJECT, ldap.INSUFFICIENT_ACCESS):
            return None
        return self._named(*found[0], user) if found else None

    def _named(self, dn: str, attributes: dict[str, list[bytes]], user: str) -> _Entry | None:
        """An entry under the name that the directory writes, if it is the user's but for the case of letters."""
        values = _values(attributes, self._settings.ldap_user_attribute)
        names = [name for name in values if name.casefold() == user.casefold()]
        return _Entry(dn, names[0]) if len(names) == 1 else None

    def _groups_of(self, connection: Any, entry: _Entry) -> tuple[str, ...]:
        settings = self._settings
        if settings.ldap_group_base is None:
            return ()
        text = _filled(
            settings.ldap_group_filter, dn=escape_filter_chars(entry.dn), user=escape_filter_chars(entry.user)
        )
        try:
            found = self._entries(connection, settings.ldap_group_base, ldap.SCOPE_SUBTREE, text, MAX_GROUPS)
        except ldap.SIZELIMIT_EXCEEDED:
            raise Unavailable(_REFUSAL, f"{entry.dn} is in too many groups; at most {MAX_GROUPS} are read") from None
        names = (_values(attributes, settings.ldap_group_attribute) for _, attributes in found)
        return tuple(sorted({each[0] for each in names if each}))

    def _entries(
        self, connection: Any, base: str, scope: int, text: str, most: int
    ) -> list[tuple[str, dict[str, list[bytes]]]]:
        wanted = [self._settings.ldap_user_attribute, self._settings.ldap_group_attribute]
        found = connection.search_ext_s(base, scope, text, wanted, sizelimit=most)
        return [(dn, attributes) for dn, attributes in found if dn is not None]  # others are referrals


def _filled(template: str, **values: str) -> str:
    """A template with values, which must be escaped, in place of their names in braces."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)


def _is_name(user: str) -> bool:
    return 0 < len(user) <= _LONGEST_NAME and user.isprintable()


def _values(attributes: dict[str, list[bytes]], name: str) -> list[str]:
    for key, values in attributes.items():
        if key.casefold() == name.casefold():
            return [value.decode(errors="replace") for value in values]
    return []


def _text(error: ldap.LDAPError) -> str:
    """What the library says, without what may have been sent."""
    facts = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    texts = [str(facts[key]) for key in ("desc", "info") if facts.get(key)]
    return ": ".join(texts) or type(error).__name__
