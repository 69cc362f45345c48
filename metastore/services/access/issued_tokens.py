"""Delegation tokens that this metastore issues: jobs log in with them in the place of who began them.

The rules are those of Hadoop's `AbstractDelegationTokenSecretManager` and Hive's `HiveDelegationTokenManager`. A token
is an identifier signed with one of the metastore's keys (HMAC-SHA1). It is valid on every server of the database.
"""

import hmac
import os
from collections.abc import Callable, Collection, Mapping, Sequence

from lake.protocol.hive import MetaException
from lake.protocol.lake import DelegationToken
from lake.protocol.sasl import delegation_token
from lake.protocol.sasl.delegation_token import BadToken, Identifier, Token
from metastore.services.access.caller import Caller
from metastore.services.access.proxy_users import may_act_as
from metastore.services.model.client_texts import check_identity
from metastore.store import Database
from metastore.store.access import issued_tokens
from metastore.store.access.issued_tokens import TokenKey, TokenRow
from metastore.store.engine import clock
from metastore.store.engine.database import Transaction

DAY = 24 * 3600 * 1000
RENEW_MS = DAY
"""How long a token is valid without being renewed."""
MAX_MS = 7 * DAY
"""How long it can be renewed."""
KEY_MS = DAY
"""How long a key signs new tokens."""
MOST_OF_OWNER = 10_000
"""Tokens of one owner at the same time."""

PasswordVersion = Callable[[str], str | None]
"""Tells which version of a password a user has: a text that is another one after a change. None for who has none."""

_KEY_BYTES = 32
_LARGEST_NUMBER = (1 << 31) - 1
_UNPROVEN = ("none", "header", "server")


class TokenRefused(Exception):
    """A token is not valid. The text says why."""


class IssuedTokenService:
    """Issues, renews, cancels and checks tokens."""

    def __init__(
        self,
        database: Database,
        proxies: Mapping[str, Sequence[str]],
        *,
        enabled: bool,
        password_version: PasswordVersion = lambda user: None,
    ) -> None:
        """`proxies`: whom each proxy user may be; groups in it don't count for tokens.

        `enabled`: whether tokens are a way to log in. `password_version`: which version of a password a user has now.
        """
        self._database = database
        self._proxies = proxies
        self._password_version = password_version
        self.enabled = enabled

    def issue(self, caller: Caller, owner: str | None, renewer: str | None) -> str:
        """A new token of `owner`, as a text. Raises MetaException for who may not have one."""
        user = self._proven(caller)
        if any(self._password_version(name) != version for name, version in caller.passwords):
            raise MetaException(f"{user} was removed or has another password: log in again to get a delegation token")
        owner = _short(owner or "") or user
        renewer = _short(renewer or "")
        check_identity(owner, [renewer])
        if not may_act_as(self._proxies, user, owner, caller.peer, tuple):
            raise MetaException(f"User: {user} is not allowed to impersonate {owner}: proxy_users doesn't say so")
        with self._database.write() as tx:
            now = clock.now_ms(tx)
            if issued_tokens.count_of_owner(tx, owner) >= MOST_OF_OWNER:
                raise MetaException(f"{owner} has {MOST_OF_OWNER} delegation tokens already; cancel those not needed")
            key = self._signing_key(tx, now)
            real_user = caller.real_user or ("" if owner == user else user)
            row = TokenRow(
                sequence=0,
                owner=owner,
                renew_until=now + RENEW_MS,
                max_date=now + MAX_MS,
                renewer=renewer,
                real_user=real_user,
                issued=now,
                owner_password=self._password_version(owner),
                real_user_password=self._password_version(real_user) if real_user else None,
            )
            sequence = issued_tokens.add(tx, row)
            identifier = Identifier(owner, renewer, real_user, now, now + MAX_MS, sequence, key.id).encode()
        return delegation_token.to_text(Token(identifier, _sign(key.key, identifier)))

    def renew(self, caller: Caller, text: str | None) -> int:
        """Prolongs a token. Returns until when it is valid now, in milliseconds since 1970. Raises MetaException."""
        user = self._proven(caller)
        identifier = self._verified(text)
        if user != identifier.renewer:
            raise MetaException(f"{user} tries to renew a token with renewer {identifier.renewer or '(nobody)'}")
        with self._database.write() as tx:
            now = clock.now_ms(tx)
            if identifier.max_date < now:
                raise MetaException(f"{user} tried to renew an expired token")
            until = min(now + RENEW_MS, identifier.max_date)
            issued_tokens.renew(tx, identifier.sequence, until)
        return until

    def cancel(self, caller: Caller, text: str | None) -> None:
        """Ends a token: its owner or renewer may, also if they log in with one. Raises MetaException."""
        user = caller.user if caller.mechanism == "token" else self._proven(caller)
        identifier = self._verified(text)
        if user not in (identifier.owner, identifier.renewer):
            raise MetaException(f"{user} is not authorized to cancel the token")
        with self._database.write() as tx:
            issued_tokens.remove(tx, identifier.sequence)

    def password(self, data: bytes) -> tuple[Identifier, bytes]:
        """What a client must know to log in with the token of an identifier. Raises TokenRefused."""
        try:
            identifier = Identifier.decode(data)
        except BadToken as error:
            raise TokenRefused(str(error)) from None
        with self._database.at_once() as tx:
            known = issued_tokens.find(tx, identifier.sequence, identifier.key_id)
        if known is None or known.key is None:
            raise TokenRefused("the token was cancelled, or is not from this metastore")
        if known.row.renew_until < known.now:
            raise TokenRefused("the token has expired: it was not renewed")
        if not self._holds(known.row):
            raise TokenRefused("the user of the token was removed, or has another password")
        return identifier, _sign(known.key, data)

    def holding(self, sequences: Collection[int]) -> set[int]:
        """Which of these tokens were not cancelled, and belong to users who still have the password of then."""
        with self._database.read() as tx:
            found = issued_tokens.find_all(tx, None, sequences)
        return {row.sequence for row in found if self._holds(row)}

    def find(self, caller: Caller, owner: str | None, *, everybody: bool) -> list[DelegationToken]:
        """The tokens of an owner, or of everybody. Without either those of the caller. Raises MetaException."""
        whose = self._whose(caller, owner, everybody=everybody)
        with self._database.read() as tx:
            now = clock.now_ms(tx)
            found = issued_tokens.find_all(tx, whose)
        return [
            DelegationToken(
                id=row.sequence,
                owner=row.owner,
                renewer=row.renewer,
                realUser=row.real_user or None,
                issuedAt=row.issued,
                validUntil=row.renew_until,
                renewableUntil=row.max_date,
                valid=row.renew_until >= now and self._holds(row),
            )
            for row in found
        ]

    def cancel_all(
        self, caller: Caller, numbers: Collection[int] | None, owner: str | None, *, everybody: bool
    ) -> list[int]:
        """Ends tokens by their numbers, or all; of whom `find` says. Returns the numbers of those that ended.

        Raises MetaException.
        """
        whose = self._whose(caller, owner, everybody=everybody)
        if numbers is not None:
            numbers = [each for each in numbers if 0 < each <= _LARGEST_NUMBER]
        with self._database.write() as tx:
            return issued_tokens.remove_all(tx, whose, numbers)

    @staticmethod
    def _whose(caller: Caller, owner: str | None, *, everybody: bool) -> str | None:
        if caller.user is None or caller.mechanism in ("none", "header"):
            raise MetaException("delegation tokens are listed and cancelled by those who have proven who they are")
        return None if everybody else owner or caller.user

    def _holds(self, row: TokenRow) -> bool:
        """Whether the token's users still have the passwords that they had when it was issued."""
        users = ((row.owner, row.owner_password), (row.real_user or "", row.real_user_password))
        return all(version is None or self._password_version(user) == version for user, version in users)

    def sweep(self) -> None:
        """Makes a new key in time, and forgets tokens and keys that nobody needs any more."""
        if not self.enabled:
            return
        with self._database.write() as tx:
            now = clock.now_ms(tx)
            self._signing_key(tx, now)
            issued_tokens.forget(tx, now, now - MAX_MS - 2 * KEY_MS)

    def _signing_key(self, tx: Transaction, now: int) -> TokenKey:
        key = issued_tokens.newest_key(tx, now - KEY_MS)
        if key is None:
            issued_tokens.lock_keys(tx)
            key = issued_tokens.newest_key(tx, now - KEY_MS)
        return key or issued_tokens.add_key(tx, os.urandom(_KEY_BYTES), now)

    def _verified(self, text: str | None) -> Identifier:
        """The identifier of a token that this metastore issued. Raises MetaException."""
        try:
            token = delegation_token.from_text(text or "")
            identifier = Identifier.decode(token.identifier)
        except BadToken as error:
            raise MetaException(f"this is no delegation token: {error}") from None
        with self._database.at_once() as tx:
            known = issued_tokens.find(tx, identifier.sequence, identifier.key_id)
        right = known is not None and known.key is not None
        if not right or not hmac.compare_digest(token.password, _sign(known.key, token.identifier)):  # type: ignore[union-attr,arg-type]
            raise MetaException("the delegation token was cancelled, or is not from this metastore")
        return identifier

    def _proven(self, caller: Caller) -> str:
        """The user, who must have proven the name, and not by a token. Raises MetaException."""
        if caller.mechanism == "token":
            raise MetaException("Delegation Token can't be issued or renewed for those who log in with one")
        if caller.user is None or caller.mechanism in _UNPROVEN:
            raise MetaException("Delegation Token can be issued only to those who have proven who they are")
        return caller.user


def _sign(key: bytes, identifier: bytes) -> bytes:
    return hmac.digest(key, identifier, "sha1")


def _short(name: str) -> str:
    """The user of a Kerberos principal, `user/host@REALM`, as Hadoop keeps renewers."""
    return name.partition("@")[0].partition("/")[0]
