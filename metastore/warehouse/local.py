"""Directories of the machine's own file system.

What is done once for each of thousands of partitions calls `os`: to make a Path takes longer than the call.

Spoken to directly: fsspec's local driver moves by `shutil.move`, which copies in silence where it can't
rename and goes into a directory that is there already, and it does not tell who made a directory.
"""

import errno
import hashlib
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR, S_ISLNK
from typing import Any

from metastore.warehouse.directories import MOVE_MARK, FileStatus, Kind, MoveMark, VisibleFile, is_hidden
from metastore.warehouse.permissions import make_directory

# To make a directory while others make and remove the same one, or those above it.
_ATTEMPTS = 100


class LocalDirectories:
    """Directories of the machine's own file system; paths are absolute."""

    # RuntimeError: links in a circle, or a tree deeper than Python calls.
    errors: tuple[type[Exception], ...] = (OSError, RuntimeError)

    def kind(self, path: str) -> Kind | None:
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return None
        return "directory" if S_ISDIR(mode) else "file"

    def is_gone(self, path: str) -> bool:
        return self.kind(path) is None

    def is_empty(self, path: str) -> bool:
        try:
            with os.scandir(path) as entries:
                return next(entries, None) is None
        except (FileNotFoundError, NotADirectoryError):
            return False

    def is_mount(self, path: str) -> bool:
        return Path(path).is_mount()

    def is_below(self, path: str, base: str) -> bool:
        # The last name is not followed: a link is removed or moved itself, not what it points to.
        place = Path(path)
        return Path(base).resolve() in (place.parent.resolve() / place.name).parents

    def holds(self, path: str, other: str) -> bool:
        """By comparing directories, not names: to resolve names costs more than deleting an empty directory."""
        try:
            itself, place = os.lstat(path), os.stat(path)  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return False
        try:
            link, found = os.lstat(other), os.stat(other)  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):  # it has still to be made
            return path == other or self.is_below(other, path)
        if os.path.samestat(itself, found) or _lies_in(f"{other}/..", place):
            return True
        return S_ISLNK(link.st_mode) and _lies_in(str(Path(other).parent), place)

    def files(self, path: str) -> set[str]:
        found: set[str] = set()
        pending = [""]
        while pending:
            above = pending.pop()
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(Path(path, above)) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(f"{above}{entry.name}/")
                    elif entry.is_file(follow_symlinks=False):
                        found.add(above + entry.name)
        return found

    def names(self, path: str) -> set[str]:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(path) as entries:
            return {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}
        return set()

    def sizes(self, path: str) -> dict[str, int]:
        found = {}
        for each in self.files(path):
            with suppress(FileNotFoundError):  # just deleted
                found[each] = Path(path, each).stat().st_size
        return found

    def statuses(self, path: str) -> dict[str, FileStatus]:
        found = {}
        for each in self.files(path):
            with suppress(FileNotFoundError):  # just deleted
                status = Path(path, each).lstat()
                found[each] = FileStatus(status.st_size, status.st_mtime_ns // 1_000_000)
        return found

    def children(self, path: str) -> set[str]:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(path) as entries:
            return {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
        return set()

    def visible_sizes(self, path: str) -> Iterator[int]:
        """Links are followed, as Hadoop's local file system does; a directory reached twice counts once."""
        try:
            entries = os.scandir(path)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            if (size := _size_of_file(path)) is not None:
                yield size
            return
        seen: set[tuple[int, int]] = set()
        pending: list[str] = []
        while True:
            with entries:
                for entry in entries:
                    if is_hidden(entry.name):
                        continue
                    try:
                        status = entry.stat()
                    except OSError as error:
                        if error.errno in (errno.ENOENT, errno.ELOOP):  # just deleted, or a link to nothing
                            continue
                        raise
                    if not S_ISDIR(status.st_mode):
                        yield status.st_size
                        continue
                    if not seen:  # most have no directories in them: only now it matters what the first one is
                        seen.add(_identity(os.stat(path)))  # noqa: PTH116
                    if _identity(status) not in seen:
                        seen.add(_identity(status))
                        pending.append(entry.path)
            if not pending:
                return
            entries = os.scandir(pending.pop())

    def visible_files(self, path: str) -> Iterator[VisibleFile]:
        pending = [""]
        while pending:
            above = pending.pop()
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(Path(path, above)) as entries:
                for entry in entries:
                    if is_hidden(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(f"{above}{entry.name}/")
                        continue
                    with suppress(FileNotFoundError):  # just deleted
                        status = entry.stat(follow_symlinks=False)
                        time = status.st_mtime_ns // 1_000_000
                        yield VisibleFile(above + entry.name, status.st_size, time, entry.is_symlink())

    def make(self, path: str) -> bool:
        attempts = 0
        while True:
            attempts += 1
            try:
                if attempts > 1:
                    _make_parents(Path(path))
                make_directory(path)
                return True
            except (FileExistsError, FileNotFoundError):
                if Path(path).is_dir():
                    return False
                if attempts == _ATTEMPTS:
                    raise

    def delete(self, path: str) -> None:
        if self.delete_empty(path):
            return
        place = Path(path)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, onerror=_raise_unless_gone)
        else:
            place.unlink(missing_ok=True)

    def delete_empty(self, path: str) -> bool:
        try:
            os.rmdir(path)  # noqa: PTH106
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
                return False
            raise
        return True

    def delete_empty_tree(self, path: str) -> None:
        for directory, _, _ in os.walk(path, topdown=False):
            self.delete_empty(directory)

    def move(self, source: str, target: str) -> bool:
        origin, goal = Path(source), Path(target)
        mark = goal / MOVE_MARK
        ours = _read_mark(mark) == MoveMark(source, copied=True)
        if not os.path.lexists(origin):
            if ours:
                mark.unlink()
            return ours
        if not origin.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "a file, not a directory", source)
        if os.path.lexists(origin / MOVE_MARK):
            raise OSError(errno.EBUSY, "an earlier move to it is unfinished", source)
        if not ours:
            if os.path.lexists(goal) and not _is_empty_directory(goal):
                raise FileExistsError(errno.EEXIST, "something else is there", target)
            goal.parent.mkdir(parents=True, exist_ok=True)
            try:
                _replace(origin, goal)
                return True
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
            _copy_to_other_device(origin, goal)
        self.delete(source)
        mark.unlink(missing_ok=True)
        return True

    def check_move(self, source: str, target: str) -> None:
        if not os.path.lexists(source):
            return
        if not Path(source).is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "a file, not a directory", source)
        if Path(target).is_symlink():  # to nothing, too
            raise FileExistsError(errno.EEXIST, "a link is there", target)
        above = Path(target).parent
        while not above.exists() and above != above.parent:
            above = above.parent
        for place in (Path(source).parent, above):
            # False for a file system that is mounted read-only, too.
            if not os.access(place, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "may not be written", str(place))

    def write_empty_file(self, path: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()

    def write_file(self, path: str, content: bytes) -> None:
        place = Path(path)
        _make_parents(place)
        hidden = place.with_name(f".{place.name}.{os.getpid()}-{threading.get_ident()}")
        try:
            with hidden.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.link(hidden, place)  # other than a rename it refuses to replace a file
        finally:
            hidden.unlink(missing_ok=True)
        directory = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def read_file(self, path: str, at_most: int) -> bytes | None:
        if not Path(path).is_file():
            return None
        with Path(path).open("rb") as file:
            return file.read(at_most)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        with Path(path).open("rb") as file:
            file.seek(start)
            return file.read(length)

    def delete_file(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        failed: dict[str, Exception] = {}
        for path in paths:
            try:
                self.delete_file(path)
            except OSError as error:
                failed[path] = error
        return failed

    def move_file(self, source: str, target: str) -> bool:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        try:
            Path(source).replace(target)
        except FileNotFoundError:
            if os.path.lexists(target):
                return False
            raise
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            hidden = Path(target).with_name(f".{Path(target).name}{MOVE_MARK}")
            shutil.copy2(source, hidden)
            hidden.replace(target)
            Path(source).unlink(missing_ok=True)
        return True


def _size_of_file(path: str) -> int | None:
    """The size of what is no directory; None if nothing is there."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if S_ISDIR(status.st_mode) else status.st_size


def _identity(status: os.stat_result) -> tuple[int, int]:
    """What tells a directory from others, whatever leads there."""
    return status.st_dev, status.st_ino


def true_path(path: str, known: dict[str, str], *, follow_last: bool) -> str:
    """A path with all links followed; those of the last name only with `follow_last`. A missing path stays as it is.

    `known` keeps what was found for directories above, for the next.
    """
    above, _, name = path.rpartition("/")
    if above not in known:
        known[above] = os.path.realpath(above or "/")
    found = f"{known[above].rstrip('/')}/{name}"
    return os.path.realpath(found) if follow_last and os.path.islink(found) else found  # noqa: PTH114


def _make_parents(path: Path) -> None:
    """Makes the directories above a path that aren't there."""
    missing = []
    for each in path.parents:
        if each.is_dir():
            break
        missing.append(each)
    for each in reversed(missing):
        with suppress(FileExistsError):
            make_directory(str(each))


def _lies_in(directory: str, place: os.stat_result) -> bool:
    """Whether a place is a directory, or one of those above it."""
    found = os.stat(directory)  # noqa: PTH116
    while not os.path.samestat(found, place):
        directory += "/.."
        above = os.stat(directory)  # noqa: PTH116
        if os.path.samestat(above, found):  # the root of all, which lies in itself
            return False
        found = above
    return True


def _raise_unless_gone(_function: object, _path: str, failure: tuple[Any, BaseException, Any]) -> None:
    """Others may be deleting the same tree: what they were quicker with is done."""
    if not isinstance(failure[1], FileNotFoundError):
        raise failure[1]


def _copy_to_other_device(origin: Path, goal: Path) -> None:
    """Copies beside the target, then renames: the target is there whole, with its mark, or not at all."""
    move = hashlib.sha256(f"{origin}\0{goal}".encode()).hexdigest()[:32]
    copy = goal.parent / f"{MOVE_MARK}-{move}"
    try:
        if copy.exists():  # of an earlier attempt, who knows how complete
            shutil.rmtree(copy)
        shutil.copytree(origin, copy, symlinks=True)
        (copy / MOVE_MARK).write_bytes(MoveMark(str(origin), copied=True).encode())
        os.sync()  # the copy is on disk before the source goes
        _replace(copy, goal)
    except OSError:
        shutil.rmtree(copy, ignore_errors=True)
        raise


def _is_empty_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _replace(source: Path, target: Path) -> None:
    """Renames a directory, over one that is empty if need be: others may be making that at this very moment."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR):
            raise FileExistsError(errno.EEXIST, "something else is there", str(target)) from None
        raise


def _read_mark(path: Path) -> MoveMark | None:
    try:
        return MoveMark.decode(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
