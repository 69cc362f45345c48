"""What a user of the operating system may do with a local directory: owners, modes, access control lists.

It is decided as POSIX says it for processes of that user, by looking at the directories. Nobody is above that: what
`root` may do follows from modes, too.

Lists look at thousands of directories, so it calls `os`: to make a Path takes longer than the call.
"""
# ruff: noqa: PTH119, PTH120, PTH208

import errno
import grp
import os
import pwd
import stat
import struct
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

READ, WRITE, SEARCH = 4, 2, 1
"""Bits of modes. To list a directory takes READ and SEARCH, to put something into it WRITE and SEARCH."""

_ACL = "system.posix_acl_access"
_ACL_HEAD, _ACL_ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_ACL_VERSION = 2
_NAMED_USER, _OWNING_GROUP, _NAMED_GROUP, _MASK = 0x02, 0x04, 0x08, 0x10
_NO_LISTS = (errno.ENODATA, errno.EOPNOTSUPP)

_NAMES = {READ: "read", WRITE: "write", SEARCH: "search"}


class FileUser(NamedTuple):
    """A user of the operating system by numbers. `uid`: None for a name that it doesn't know."""

    uid: int | None
    gid: int | None = None
    groups: frozenset[int] = frozenset()


def file_user(name: str | None, groups: Collection[str]) -> FileUser:
    """The user of a name, in the system's groups of that user and in those that are named."""
    known = {gid for each in groups if (gid := _gid(each)) is not None}
    try:
        found = pwd.getpwnam(name or "")
    except KeyError:
        return FileUser(None, None, frozenset(known))
    return FileUser(found.pw_uid, found.pw_gid, frozenset({*known, *os.getgrouplist(found.pw_name, found.pw_gid)}))


def _gid(group: str) -> int | None:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        return None


class Permissions:
    """Looks at directories for one decision, or for several at one time: each directory is looked at once."""

    def __init__(self) -> None:
        self._status: dict[str, os.stat_result | OSError] = {}
        self._reachable: dict[tuple[str, FileUser], str | None] = {}
        self._real: dict[str, str] = {}

    def refusal(self, path: str, user: FileUser, wanted: int) -> str | None:
        """Why a user may not do with a directory what the bits say; None if it may.

        A path where nothing is stands for the directory that it would be made in, or the next one above.
        """
        return self._each(path, lambda place, status: self._lacking(place, status, user, wanted | SEARCH), user)

    def refusal_to_delete(self, path: str, user: FileUser) -> str | None:
        """Why a user may not delete a directory with its files; None if it may.

        It takes the right to write in it and in the one above, and where that one is sticky, to own one of the two.
        """

        def look(place: str, status: os.stat_result) -> str | None:
            if why := self._lacking(place, status, user, WRITE | SEARCH):
                return why
            parent = os.path.dirname(place)
            above = self._look(parent)
            if isinstance(above, OSError):
                return _unseen(parent, above)
            if why := self._lacking(parent, above, user, WRITE | SEARCH):
                return why
            if above.st_mode & stat.S_ISVTX and user.uid not in (status.st_uid, above.st_uid):
                return f"{parent} is sticky, and {place} is somebody else's"
            return None

        return self._each(path, look, user)

    def refusal_to_empty(self, path: str, user: FileUser) -> str | None:
        """Why a user may not delete whatever is in a directory; None if it may.

        In one that is sticky only its owner deletes what is somebody else's.
        """

        def look(place: str, status: os.stat_result) -> str | None:
            if why := self._lacking(place, status, user, WRITE | SEARCH):
                return why
            if status.st_mode & stat.S_ISVTX and user.uid != status.st_uid:
                return f"{place} is sticky, and somebody else's"
            return None

        return self._each(path, look, user)

    def _each(self, path: str, look: Callable[[str, os.stat_result], str | None], user: FileUser) -> str | None:
        """What `look` says of the directory at a path, once the way there was walked."""
        place = self._without_links(path)
        while isinstance(status := self._look(place), OSError):
            if status.errno not in (errno.ENOENT, errno.ENOTDIR) or place == "/":
                return _unseen(place, status)
            place = os.path.dirname(place)
        return self._unreachable(os.path.dirname(place), user) or look(place, status)

    def _without_links(self, path: str) -> str:
        """As `os.path.realpath`, with one look at what is in a directory whose own path is known."""
        parent, name = os.path.split(path)
        if name in ("", os.curdir, os.pardir):
            return os.path.realpath(path)
        real = self._real.get(parent)
        if real is None:
            real = self._real[parent] = os.path.realpath(parent)
        place = os.path.join(real, name)  # noqa: PTH118
        if place not in self._status:
            try:
                found: os.stat_result | OSError = os.lstat(place)
            except OSError as error:
                found = error
            if not isinstance(found, OSError) and stat.S_ISLNK(found.st_mode):
                return os.path.realpath(place)
            self._status[place] = found
        return place

    def _unreachable(self, place: str, user: FileUser) -> str | None:
        """Why a user can't get into a directory: it or one above can't be searched."""
        key = place, user
        if key not in self._reachable:
            above = None if place == "/" else self._unreachable(os.path.dirname(place), user)
            status = self._look(place)
            if above is None:
                above = (
                    _unseen(place, status)
                    if isinstance(status, OSError)
                    else self._lacking(place, status, user, SEARCH)
                )
            self._reachable[key] = above
        return self._reachable[key]

    def _look(self, place: str) -> os.stat_result | OSError:
        found = self._status.get(place)
        if found is None:
            try:
                found = os.stat(place)  # noqa: PTH116
            except OSError as error:
                found = error
            self._status[place] = found
        return found

    def _lacking(self, place: str, status: os.stat_result, user: FileUser, wanted: int) -> str | None:
        try:
            granted = _granted(place, status, user, wanted)
        except OSError as error:
            return _unseen(place, error)
        if granted:
            return None
        words = " and ".join(word for bit, word in _NAMES.items() if wanted & bit)
        return f"no right to {words} {place}, which has the mode {stat.filemode(status.st_mode)}"


def _unseen(place: str, error: OSError) -> str:
    return f"the server can't look at {place}: {error.strerror}"


def _granted(place: str, status: os.stat_result, user: FileUser, wanted: int) -> bool:
    """Whether a directory grants all bits, by the first of its entries that is about a user (POSIX 1003.1e, 23.1.5)."""
    mode = status.st_mode
    if user.uid == status.st_uid:
        return (mode >> 6) & wanted == wanted
    entries = _access_list(place) if mode & 0o070 else []  # Linux doesn't look at a list that its mask empties
    mask = next((bits for kind, bits, _ in entries if kind == _MASK), 7)
    for kind, bits, number in entries:
        if kind == _NAMED_USER and number == user.uid:
            return bits & mask & wanted == wanted
    # Without a list the group's bits are in the mode; with one, the mode has the mask in their place.
    owning = next((bits for kind, bits, _ in entries if kind == _OWNING_GROUP), (mode >> 3) & 7)
    of_groups = [owning] if status.st_gid in user.groups else []
    of_groups += [bits for kind, bits, number in entries if kind == _NAMED_GROUP and number in user.groups]
    if of_groups:
        return any(bits & mask & wanted == wanted for bits in of_groups)
    return mode & wanted == wanted


def _access_list(place: str) -> list[tuple[int, int, int]]:
    """The entries of a directory's access control list, as (kind, bits, uid or gid); none if it has no such list.

    Raises OSError, also for a list in another form than Linux has had since 2002.
    """
    try:
        content = os.getxattr(place, _ACL)
    except OSError as error:
        if error.errno in _NO_LISTS:
            return []
        raise
    if len(content) % _ACL_ENTRY.size != _ACL_HEAD.size or _ACL_HEAD.unpack_from(content)[0] != _ACL_VERSION:
        raise OSError(errno.EINVAL, "its access control list is in an unknown form")
    return list(_ACL_ENTRY.iter_unpack(content[_ACL_HEAD.size :]))


# --- who owns what is made ------------------------------------------------------------------------------------

_maker: ContextVar[FileUser | None] = ContextVar("maker", default=None)


@contextmanager
def made_for(user: FileUser) -> Iterator[None]:
    """Directories that this thread makes meanwhile belong to a user, as far as the server's own user may do that."""
    token = _maker.set(user if user.uid is not None else None)
    try:
        yield
    finally:
        _maker.reset(token)


def make_directory(path: str) -> None:
    """As `os.mkdir`: makes a directory, for whom `made_for` says."""
    user = _maker.get()
    if user is None or user.uid is None:
        os.mkdir(path)  # noqa: PTH102
        return
    # Nothing on the way may be exchanged between the two steps for what the user must not get.
    above = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    try:
        name = os.path.basename(path)
        os.mkdir(name, dir_fd=above)
        _give(name, above, user)
    finally:
        os.close(above)


def _give(name: str, above: int, user: FileUser) -> None:
    try:
        made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    except OSError:  # somebody was quicker, and it isn't what was made
        return
    try:
        if os.fstat(made).st_uid == os.geteuid() and not os.listdir(made):
            of_parent = os.fstat(above).st_mode & stat.S_ISGID  # the directory above says which group it is
            assert user.uid is not None
            os.fchown(made, user.uid, -1 if of_parent or user.gid is None else user.gid)
    except PermissionError:  # the server may not give away what it makes: it stays its own
        pass
    finally:
        os.close(made)
