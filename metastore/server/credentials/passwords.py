"""Hashes of passwords, as the password file holds them: scrypt (RFC 7914) with the parameters in the text."""

import base64
import binascii
import hashlib
import hmac
import os
import re
from itertools import pairwise

MAX_PASSWORD_BYTES = 1024
"""Longer passwords are refused unread."""

MIN_CHARACTERS, MIN_DIFFERENT = 12, 5
"""A new password has at least so many characters, and so many different ones."""

_COMMON = {
    *("password", "passwort", "passwordpassword", "secret", "secretsecret", "metastore", "metastoremetastore", "hive"),
    *("hadoop", "spark", "admin", "administrator", "root", "adminadmin", "letmein", "welcome", "changeme", "default"),
    *("qwerty", "qwertyuiop", "qwertyuiopasdf", "asdfghjkl", "iloveyou", "test", "testtest"),
}
"""Words that make a weak password, also with digits and other signs around them."""

_LOG_N, _R, _P = 15, 8, 1  # 32 MB and some 80 ms for each guess
_SALT_BYTES = _KEY_BYTES = 16
_HASH = re.compile(r"scrypt:(\d{1,2}):(\d{1,2}):(\d{1,2}):([A-Za-z0-9_-]{8,64}):([A-Za-z0-9_-]{16,128})")
_MOST_MEMORY = 256 << 20


class BadHash(ValueError):
    """A text is no hash of a password, or one that costs too much to check."""


def check_strength(name: str, password: str) -> None:
    """Raises ValueError for a password that is guessed too soon, with the rule in its message."""
    word = "".join(each for each in password.lower() if each.isalpha())
    in_a_row = sum(abs(ord(after) - ord(before)) <= 1 for before, after in pairwise(password))
    is_row = in_a_row > 0.7 * len(password)
    trivial = word in _COMMON or word == name.lower() or len(set(password)) < MIN_DIFFERENT or is_row
    if len(password) < MIN_CHARACTERS or trivial:
        raise ValueError(
            f"the password is too weak: use at least {MIN_CHARACTERS} characters, {MIN_DIFFERENT} different ones, and"
            " more than a common word, the user's name or a row of characters"
        )


def hashed(password: str) -> str:
    """The text to keep of a password: `scrypt:log2(N):r:p:salt:key`. Raises ValueError for an empty or too long one."""
    secret = password.encode()
    if not 0 < len(secret) <= MAX_PASSWORD_BYTES:
        raise ValueError(f"a password has 1 to {MAX_PASSWORD_BYTES} bytes")
    salt = os.urandom(_SALT_BYTES)
    key = hashlib.scrypt(secret, salt=salt, n=1 << _LOG_N, r=_R, p=_P, maxmem=_MOST_MEMORY, dklen=_KEY_BYTES)
    return f"scrypt:{_LOG_N}:{_R}:{_P}:{_text(salt)}:{_text(key)}"


def check_hash(text: str) -> None:
    """Raises BadHash."""
    _parted(text)


def matches(password: str, text: str) -> bool:
    """Whether a hash was made of the password. Takes as long for every password. Raises BadHash."""
    log_n, r, p, salt, key = _parted(text)
    secret = password.encode()
    if not 0 < len(secret) <= MAX_PASSWORD_BYTES:
        return False
    found = hashlib.scrypt(secret, salt=salt, n=1 << log_n, r=r, p=p, maxmem=_MOST_MEMORY, dklen=len(key))
    return hmac.compare_digest(found, key)


def _parted(text: str) -> tuple[int, int, int, bytes, bytes]:
    found = _HASH.fullmatch(text)
    if found is None:
        raise BadHash("expected scrypt:N:r:p:salt:key, as `metastore users add` writes it")
    log_n, r, p = (int(each) for each in found.groups()[:3])
    if not (10 <= log_n <= 20 and 1 <= r <= 16 and 1 <= p <= 16 and (128 * r << log_n) * p < _MOST_MEMORY):
        raise BadHash(f"the parameters of scrypt, {log_n}:{r}:{p}, are outside the accepted range")
    try:
        return log_n, r, p, _bytes(found[4]), _bytes(found[5])
    except binascii.Error:
        raise BadHash("salt or key is no base64") from None


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
