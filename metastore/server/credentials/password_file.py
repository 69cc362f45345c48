"""The file of users with hashed passwords and groups: one line `user|hash|group,group` each; `#` begins a comment."""

import contextlib
import fcntl
import hashlib
import hmac
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cachetools import LRUCache

from lake.protocol.errors import UserError
from metastore.server.credentials import passwords
from metastore.server.credentials.identity import Denied, Identity, Unavailable, checked

_SEPARATORS = "|,\r\n"
_MOST_VERIFIED = 10_000
_VERSION_DIGITS = 32


class BadPasswordFile(UserError):
    """The password file can't be read or written, or one of its lines means nothing."""


@dataclass(frozen=True, slots=True)
class User:
    """One line of the file."""

    name: str
    hash: str
    groups: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """A text that tells passwords of this user apart, and nothing about them."""
        return hashlib.sha256(self.hash.encode()).hexdigest()[:_VERSION_DIGITS]

    def __str__(self) -> str:
        return f"{self.name}|{self.hash}|{','.join(self.groups)}"


class PasswordFile:
    """Checks passwords with a file that may change at any time. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Raises BadPasswordFile."""
        self._path = path
        self._seen = _state(path)
        self._users = read(path)
        self._verified: LRUCache[bytes, str] = LRUCache(_MOST_VERIFIED)
        self._key = os.urandom(32)
        self._lock = threading.Lock()

    def check(self, user: str, password: str, peer: str) -> Identity:
        """Who has this name and password. Raises Denied, after as much time for a name that doesn't exist."""
        known = self._current().get(user)
        if not self._matches(password, known.hash if known else _hash_of_nobody()) or known is None:
            raise Denied("wrong user or password", "wrong password" if known else "no such user")
        return _identity(known)

    def known(self, user: str, password: str) -> Identity | None:
        """Who has this name and password, if the password was right before; else None. Raises Unavailable."""
        known = self._current().get(user)
        if known is None or not self._was_right(password, known.hash):
            return None
        return _identity(known)

    def version(self, user: str) -> str | None:
        """Which version of a password a user has: it is another one after each change. None for who isn't in the file.

        Raises Unavailable.
        """
        known = self._current().get(user)
        return None if known is None else known.version

    def _was_right(self, password: str, text: str) -> bool:
        digest = hmac.digest(self._key, password.encode(), "sha256")
        with self._lock:
            return hmac.compare_digest(self._verified.get(digest, ""), text)

    def _matches(self, password: str, text: str) -> bool:
        """Whether a hash was made of the password. One that was right once is told at once the next time."""
        if self._was_right(password, text):
            return True
        digest = hmac.digest(self._key, password.encode(), "sha256")
        fits = passwords.matches(password, text)
        if fits:
            with self._lock:
                self._verified[digest] = text
        return fits

    def groups(self, user: str) -> tuple[str, ...]:
        """The groups of a user, who needn't be in the file."""
        known = self._current().get(user)
        return known.groups if known else ()

    def _current(self) -> dict[str, User]:
        """The users as the file has them now. A file that can't be read lets nobody in."""
        state = _state(self._path)
        if state != self._seen:
            try:
                self._users = read(self._path)
            except BadPasswordFile as error:
                raise Unavailable("passwords can't be checked", str(error)) from None
            self._seen = state
        return self._users


def _identity(user: User) -> Identity:
    """Raises Denied."""
    return checked(Identity(user.name, "plain", user.groups, passwords=((user.name, user.version),)))


def password_version(path: Path | None) -> Callable[[str], str | None]:
    """A function that tells which version of a password a user has in a file; see `PasswordFile.version`.

    While the file can't be read it tells a version that nobody has. Raises BadPasswordFile.
    """
    if path is None:
        return lambda user: None
    file = PasswordFile(path)

    def version(user: str) -> str | None:
        try:
            return file.version(user)
        except Unavailable:
            return ""

    return version


def read(path: Path) -> dict[str, User]:
    """The users of a file by name. Raises BadPasswordFile."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadPasswordFile(f"can't read {path}: {reason}") from None
    users: dict[str, User] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("|")
        try:
            name, text, groups = parts
            passwords.check_hash(text)
        except ValueError as error:
            reason = str(error) if len(parts) == 3 else "expected user|hash|group,group"
            raise BadPasswordFile(f"line {number} of {path}: {reason}") from None
        if name in users:
            raise BadPasswordFile(f"line {number} of {path}: {name} is there twice")
        users[name] = User(name, text, tuple(group for group in groups.split(",") if group))
    return users


def add(path: Path, name: str, password: str, groups: tuple[str, ...], *, allow_weak: bool = False) -> bool:
    """Adds a user, or replaces one. Returns whether there was none. Creates the file, for its owner alone.

    `allow_weak`: take a password that is easy to guess. Raises BadPasswordFile, and ValueError for a name or password
    that can't be used.
    """
    if not allow_weak:
        passwords.check_strength(name, password)
    for text in (name, *groups):
        if not text or not text.isprintable() or text.startswith("#") or any(each in text for each in _SEPARATORS):
            raise ValueError(f"{text!r} can't be the name of a user or group: it is empty or has one of | , # in it")
    known = read(path).get(name) if path.exists() else None
    same = known is not None and passwords.matches(password, known.hash)
    # The same password keeps its hash: logins end with another one, not with other groups.
    user = User(name, known.hash if same and known else passwords.hashed(password), groups)
    with _changing(path) as lines:
        kept = [line for line in lines if not line.startswith(f"{name}|")]
        new = len(kept) == len(lines)
        lines[:] = [*kept, str(user)]
    return new


def remove(path: Path, name: str) -> bool:
    """Removes a user. Returns whether there was one. Raises BadPasswordFile."""
    with _changing(path) as lines:
        kept = [line for line in lines if not line.startswith(f"{name}|")]
        found = len(kept) < len(lines)
        lines[:] = kept
    return found


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[list[str]]:
    """The lines of a file, to be changed in place. The file is replaced as a whole; two such changes take turns."""
    try:
        with _locked(path.parent):
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            if path.exists():
                read(path)  # a file of something else is not to be written into
            yield lines
            _replace(path, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        raise BadPasswordFile(f"can't write {path}: {error.strerror}") from None


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        Path(name).rename(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@cache
def _hash_of_nobody() -> str:
    return passwords.hashed("a password that nobody has")


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
