"""Messages in files of JSON lines, below a directory or one by one. Files may grow, and be added and removed."""

import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import fsspec

from lake.capture.debezium.events import message_of
from lake.capture.debezium.inputs import MAX_MESSAGE_BYTES, Arrived, Input
from lake.capture.debezium.state import Offset
from lake.capture.debezium.values import parse
from lake.capture.errors import CaptureError

MAX_FILES: Final = 10_000
"""Files that a directory may have: the offset of each is in every instant."""

_HEAD_BYTES: Final = 1024
_BATCH_LINES: Final = 1_000
_BATCH_BYTES: Final = 16 << 20
_PAUSE_SECONDS: Final = 0.2


class FileInput(Input):
    """Reads the files in the order of their names. A line that isn't complete yet waits for its end."""

    def __init__(self, url: str) -> None:
        """`url`: a file or a directory, as a path or as a URL of fsspec's. Raises CaptureError if there is none."""
        self._storage, root = fsspec.url_to_fs(url)
        self._root = root.rstrip("/")
        self.source = f"files {self._root}"
        if not self._storage.exists(self._root):
            raise CaptureError(f"there is no file and no directory {url}")
        self._is_file = bool(self._storage.isfile(self._root))
        self._offsets: dict[str, Offset] = {}
        self._unread: list[str] = []
        self._names: frozenset[str] = frozenset()
        self._first_round = True

    def close(self) -> None:
        """Does nothing: each file is closed once it is read."""

    def begin(self, offsets: Mapping[str, Offset]) -> None:
        self._offsets = dict(offsets)
        self._list()

    def _list(self) -> None:
        """Looks which files there are. Raises CaptureError for too many."""
        self._storage.invalidate_cache()
        if self._is_file:
            found = {self._root.rpartition("/")[2]}
        else:
            listed = self._storage.ls(self._root, detail=True)
            names = (each["name"].rpartition("/")[2] for each in listed if each["type"] == "file")
            found = {each for each in names if not each.startswith((".", "_"))}
        if len(found) > MAX_FILES:
            raise CaptureError(f"{self._root} has more than {MAX_FILES:,} files: move those away that were read")
        self._names = frozenset(found)
        self._unread = sorted(found, reverse=True)

    def gone(self) -> Sequence[str]:
        return [each for each in self._offsets if each not in self._names]

    def read(self, seconds: float) -> Sequence[Arrived]:
        deadline = time.monotonic() + seconds
        while True:
            while self._unread:
                name = self._unread[-1]
                if arrived := self._read_file(name):
                    return arrived
                self._unread.pop()
            self._first_round = False
            left = deadline - time.monotonic()
            if left <= 0:
                return ()
            time.sleep(min(left, _PAUSE_SECONDS))
            self._list()

    @property
    def has_caught_up(self) -> bool:
        return not self._first_round

    def look_again(self) -> None:
        self._first_round = True
        self._list()

    def _read_file(self, name: str) -> list[Arrived]:
        """The next lines of a file."""
        path = self._root if self._is_file else f"{self._root}/{name}"
        try:
            opened = self._storage.open(path, "rb")
        except FileNotFoundError:
            return []  # removed since the directory was listed
        known = self._offsets.get(name, Offset(0))
        with opened:
            self._check(opened, path, known)
            opened.seek(known.at)
            return self._lines(opened, name, path, known)

    def _check(self, opened: Any, path: str, known: Offset) -> None:
        """Raises CaptureError if the file isn't the one that was read."""
        head = opened.read(min(known.at, _HEAD_BYTES))
        size = opened.seek(0, 2)
        if size < known.at or zlib.crc32(head) != known.head:
            raise CaptureError(
                f"{path} was replaced, or is shorter than what was read of it: give the new file a name of its own"
            )

    def _lines(self, opened: Any, name: str, path: str, known: Offset) -> list[Arrived]:
        found: list[Arrived] = []
        at, head = known.at, known.head
        while len(found) < _BATCH_LINES and at - known.at < _BATCH_BYTES:
            line = opened.readline(MAX_MESSAGE_BYTES + 1)
            if len(line) > MAX_MESSAGE_BYTES:
                raise CaptureError(f"{path}, byte {at}: the line is longer than {MAX_MESSAGE_BYTES:,} bytes")
            if not line.endswith(b"\n") and not _is_whole(line):
                break
            try:
                event = message_of(line, self.placeholder) if line.strip() else None
            except CaptureError as error:
                raise CaptureError(f"{path}, byte {at}: {error}") from None
            if at < _HEAD_BYTES:
                head = zlib.crc32(line[: _HEAD_BYTES - at], head)
            at += len(line)
            found.append(Arrived(name, Offset(at, head), event))
        if found:
            self._offsets[name] = found[-1].next
        return found


def _is_whole(line: bytes) -> bool:
    """Whether the last line of a file is a message although nothing ends it: the beginning of an object isn't JSON."""
    try:
        return isinstance(parse(line), dict)
    except ValueError:
        return False
