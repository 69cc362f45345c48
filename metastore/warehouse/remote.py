"""Directories of storages that are reached through fsspec's drivers: object stores and HDFS.

Object stores have no directories. A directory exists while an object's key begins with its path. Hadoop's connectors
for S3 and Google write a placeholder for an empty directory: an empty object whose key ends in a slash. So does this
module.
"""

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from metastore.warehouse.directories import MOVE_MARK, FileStatus, Kind, MoveMark, VisibleFile, is_hidden

_COPIES_PER_CALL = 1_000
_DELETES_PER_CALL = 1_000


class RemoteDirectories:
    """Directories of one fsspec file system.

    `has_directories`: the storage knows empty directories; `keeps_placeholders`: empty objects stand in for
    them; `renames`: moving a directory is one atomic step.
    """

    # Every driver has exceptions of its own beside OSError, and they have no base in common.
    errors: tuple[type[Exception], ...] = (Exception,)

    def __init__(self, fs: Any, *, has_directories: bool, keeps_placeholders: bool, renames: bool) -> None:
        self._fs = fs
        self._has_directories = has_directories
        self._keeps_placeholders = keeps_placeholders
        self._renames = renames

    def kind(self, path: str) -> Kind | None:
        try:
            return "directory" if self._fs.info(path)["type"] == "directory" else "file"
        except (FileNotFoundError, NotADirectoryError):
            return None

    def is_gone(self, path: str) -> bool:
        return (self._has_directories or self._keeps_placeholders) and self.kind(path) is None

    def is_empty(self, path: str) -> bool:
        if self.kind(path) != "directory":
            return False
        return not any(_below(entry["name"], path) for entry in self._fs.ls(path, detail=True))

    def is_mount(self, path: str) -> bool:
        return False

    def is_below(self, path: str, base: str) -> bool:
        return bool(_below(path, base))

    def holds(self, path: str, other: str) -> bool:
        return other == path or bool(_below(other, path))

    def files(self, path: str) -> set[str]:
        files, _ = self._tree(path)
        return set(files)

    def names(self, path: str) -> set[str]:
        try:
            entries = self._fs.ls(path, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return set()
        files = {_below(entry["name"], path) for entry in entries if entry["type"] == "file"}
        return {name for name in files if name and "/" not in name}

    def sizes(self, path: str) -> dict[str, int]:
        files, _ = self._tree(path)
        return files

    def statuses(self, path: str) -> dict[str, FileStatus]:
        found = {}
        for name, entry in self._fs.find(path, detail=True).items():
            relative = _below(name, path)
            if relative and entry["type"] == "file" and not name.endswith("/"):
                found[relative] = FileStatus(int(entry["size"]), _modified_at(entry))
        return found

    def children(self, path: str) -> set[str]:
        try:
            entries = self._fs.ls(path, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return set()
        names = {_below(entry["name"].rstrip("/"), path) for entry in entries if entry["type"] == "directory"}
        return {name for name in names if name and "/" not in name}

    def visible_sizes(self, path: str) -> Iterator[int]:
        kind = self.kind(path)
        if kind == "file":
            yield int(self._fs.info(path)["size"])
        elif kind == "directory":
            files, _ = self._tree(path)
            for relative, size in files.items():
                if not any(map(is_hidden, relative.split("/"))):
                    yield size

    def visible_files(self, path: str) -> Iterator[VisibleFile]:
        for relative, status in self.statuses(path).items():
            if not any(map(is_hidden, relative.split("/"))):
                yield VisibleFile(relative, *status)

    def make(self, path: str) -> bool:
        kind = self.kind(path)
        if kind == "file":
            raise FileExistsError(errno.EEXIST, "a file is there", path)
        if kind is None:
            self._make(path)
        return kind is None

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm(path, recursive=True)
        # Bulk deletes of some drivers leave out in silence what they may not delete.
        if self.kind(path) is not None:
            raise OSError(errno.EBUSY, "the storage kept some of it, or somebody writes to it", path)

    def delete_empty(self, path: str) -> bool:
        if not self.is_empty(path):
            return False
        if self._has_directories:
            self._fs.rmdir(path)
        elif self._keeps_placeholders:
            self._fs.rm_file(path + "/")
        return True

    def delete_empty_tree(self, path: str) -> None:
        if self._has_directories:
            _, directories = self._tree(path)
            for relative in sorted(directories, reverse=True):
                self.delete_empty(f"{path}/{relative}".rstrip("/"))
        else:
            self.delete_empty(path)

    def move(self, source: str, target: str) -> bool:
        if self._renames:
            return self._rename(source, target)
        mark_path = f"{target}/{MOVE_MARK}"
        mark = self._read_mark(mark_path)
        ours = mark is not None and mark.source == source
        kind = self.kind(source)
        if kind is None:
            if ours:
                self._remove_mark(target)
            return ours
        if kind == "file":
            raise NotADirectoryError(errno.ENOTDIR, "a file, not a directory", source)
        if self._read_mark(f"{source}/{MOVE_MARK}"):
            raise OSError(errno.EBUSY, "an earlier move to it is unfinished", source)
        if not ours:
            if self.kind(target) is not None:
                raise FileExistsError(errno.EEXIST, "something else is there", target)
            self._fs.pipe_file(mark_path, MoveMark(source, copied=False).encode())
        if mark is None or not mark.copied:
            self._copy_tree(source, target)
            self._fs.pipe_file(mark_path, MoveMark(source, copied=True).encode())
        self.delete(source)
        self._remove_mark(target)
        return True

    def _rename(self, source: str, target: str) -> bool:
        if self.kind(source) is None:
            return False
        if self.kind(target) is not None:
            raise FileExistsError(errno.EEXIST, "something else is there", target)
        self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        self._fs.mv(source, target)
        return True

    def check_move(self, source: str, target: str) -> None:
        """Only the move itself shows whether it fails."""

    def write_empty_file(self, path: str) -> None:
        if self.kind(path) is None:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(path, b"")

    def write_file(self, path: str, content: bytes) -> None:
        if self.kind(path) is not None:
            raise FileExistsError(errno.EEXIST, "a file is there", path)
        if self._has_directories:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(path, content)

    def read_file(self, path: str, at_most: int) -> bytes | None:
        if self.kind(path) != "file":
            return None
        with self._fs.open(path, "rb") as file:
            found: bytes = file.read(at_most)
            return found

    def read_range(self, path: str, start: int, length: int) -> bytes:
        found: bytes = self._fs.cat_file(path, start=start, end=start + length)
        return found

    def delete_file(self, path: str) -> None:
        if self.kind(path) == "file":
            self._fs.rm_file(path)

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        failed: dict[str, Exception] = {}
        for start in range(0, len(paths), _DELETES_PER_CALL):
            some = list(paths[start : start + _DELETES_PER_CALL])
            if self._has_directories:  # one by one anyway
                failed.update(self._delete_one_by_one(some))
                continue
            try:
                gone = self._fs.rm(some)
            except Exception:  # one of the files failed, and the error doesn't say which
                gone = []
            if isinstance(gone, list):  # S3's driver returns the deleted paths, others raise
                failed.update(self._delete_one_by_one([each for each in some if each not in set(gone)]))
        return failed

    def _delete_one_by_one(self, paths: Sequence[str]) -> dict[str, Exception]:
        failed: dict[str, Exception] = {}
        for path in paths:
            try:
                self.delete_file(path)
            except Exception as error:
                failed[path] = error
        return failed

    def move_file(self, source: str, target: str) -> bool:
        if self.kind(source) is None:
            if self.kind(target) is None:
                raise FileNotFoundError(errno.ENOENT, "no such file", source)
            return False
        self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        self._fs.mv(source, target)
        return True

    def _copy_tree(self, source: str, target: str) -> None:
        """Copies what the target does not have yet, and makes sure that it has all of it afterwards."""
        files, directories = self._tree(source)
        arrived, _ = self._tree(target)
        missing = [relative for relative, size in files.items() if arrived.get(relative) != size]
        for start in range(0, len(missing), _COPIES_PER_CALL):
            some = missing[start : start + _COPIES_PER_CALL]
            self._fs.copy([f"{source}/{name}" for name in some], [f"{target}/{name}" for name in some])
        for relative in _leaves(files, directories):
            self._make(f"{target}/{relative}".rstrip("/"))
        arrived, _ = self._tree(target)
        for relative, size in files.items():
            if arrived.get(relative) != size:  # Azure may answer before a large copy is complete
                raise OSError(errno.EAGAIN, "its copy is not complete yet", f"{source}/{relative}")

    def _tree(self, path: str) -> tuple[dict[str, int], set[str]]:
        """Sizes of the files below a directory, and all directories, by their path from it ("": itself)."""
        files: dict[str, int] = {}
        directories = {""}
        for name, entry in self._fs.find(path, withdirs=True, detail=True).items():
            relative = _below(name, path)
            if entry["type"] == "directory" or name.endswith("/"):
                directories.add(relative)
            elif relative and relative != MOVE_MARK:
                files[relative] = int(entry["size"])
        return files, directories

    def _make(self, path: str) -> None:
        if self._has_directories:
            self._fs.makedirs(path, exist_ok=True)
            return
        if self._keeps_placeholders:
            self._fs.pipe_file(path + "/", b"")
        else:
            self._fs.info(path.partition("/")[0])  # a missing container is an error now, not at the first file

    def _read_mark(self, path: str) -> MoveMark | None:
        try:
            return MoveMark.decode(self._fs.cat_file(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _remove_mark(self, target: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm_file(f"{target}/{MOVE_MARK}")


def _modified_at(entry: Mapping[str, Any]) -> int | None:
    """When a file was written, in milliseconds since 1970, as one of fsspec's drivers says it."""
    value = next((entry[key] for key in _TIMES if entry.get(key) is not None), None)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1_000)
    return int(value * 1_000) if isinstance(value, int | float) else None


_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")
"""How drivers call a file's time: S3's, Azure's, Hadoop's, Google's, and that in memory."""


def _below(name: str, path: str) -> str:
    """The path from a directory to an entry that a driver listed, "" for the directory and for strangers."""
    prefix = path + "/"
    return name[len(prefix) :].rstrip("/") if name.startswith(prefix) else ""


def _leaves(files: dict[str, int], directories: set[str]) -> set[str]:
    """The directories with nothing in them: copying files alone would lose these."""
    parents = set()
    for name in (*files, *directories):
        while name:
            name = name.rpartition("/")[0]
            parents.add(name)
    return directories - parents
