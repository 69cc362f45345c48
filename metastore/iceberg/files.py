"""Metadata files of tables and views: written once, never changed, read with a bound on their size."""

import gzip
import io
import json
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import structlog
from cachetools import LRUCache

from metastore.iceberg.errors import RestError, bad_request, unavailable
from metastore.iceberg.patience import Patience
from metastore.warehouse import Warehouse, WarehouseError

T = TypeVar("T")

MAX_BYTES = 64 << 20
"""Of a metadata file, uncompressed."""

LARGE = 4 << 20
"""Requests with more bytes than this, of metadata or in the body, take turns: parsed, they are many times as large."""

MAX_TOGETHER = 96 << 20
"""Of the metadata that one transaction changes, in bytes, uncompressed. Together they are in memory at once."""

_AT_ONCE = 2  # large ones; Python parses one at a time in any case
_TURN_SECONDS = 30.0
_STORAGE_SECONDS = 60.0  # that the storage may take while a request has a turn
_HANGING = 8  # calls of a storage that doesn't answer, beyond which large requests are refused
_KEPT_BYTES = 64 << 20
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VERSION = re.compile(r"(\d{1,9})-")
_NEEDED = {"table-uuid": "a table's", "view-uuid": "a view's"}

log = structlog.get_logger(__name__)


class MetadataFiles:
    """Reads and writes metadata files. Thread-safe.

    A file whose name has a UUID is never changed by anybody, so its bytes are kept in memory, up to `_KEPT_BYTES` for
    all of them together.
    """

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._kept: LRUCache[tuple[str, str], bytes] = LRUCache(_KEPT_BYTES, getsizeof=len)
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._patience = Patience(_HANGING)
        self._own = threading.local()

    @contextmanager
    def request(self) -> Iterator[None]:
        """One request, in its thread. At most `_AT_ONCE` requests have something large in memory."""
        self._own.has_turn, self._own.bytes = False, 0
        try:
            yield
        finally:
            if self._own.has_turn:
                self._turns.release()
            del self._own.has_turn

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is parsed within the block is in memory at once: at most `MAX_TOGETHER` bytes of it."""
        self._own.together = 0
        try:
            yield
        finally:
            del self._own.together

    def take_turn(self, size: int) -> None:
        """Waits until the thread's request may have a further number of bytes in memory. Raises RestError (503)."""
        if getattr(self._own, "has_turn", True):  # outside of requests there are no turns
            return
        self._own.bytes += size
        if self._own.bytes <= LARGE:
            return
        if not self._turns.acquire(timeout=_TURN_SECONDS):
            raise unavailable("the server is busy with other large requests: try again")
        self._own.has_turn = True

    def parsed(self, location: str, key: str) -> dict[str, Any]:
        """The value of a metadata file, a copy of its own for each caller. As `read`."""
        content = self._still_kept(location, key)
        if content is None:
            content, fresh = self._fresh(location, key)
            self._count(len(content))
            return fresh
        self._count(len(content))
        self.take_turn(len(content))
        value: dict[str, Any] = json.loads(content)
        return value

    def read(self, location: str, key: str) -> bytes:
        """The bytes of a metadata file, uncompressed. `key`: `table-uuid` or `view-uuid`, which it must have.

        Raises RestError: 404 if it isn't there, 400 for a file that is none of Iceberg's, 503 if it can't be read now.
        """
        content = self._still_kept(location, key)
        return self._fresh(location, key)[0] if content is None else content

    def _count(self, size: int) -> None:
        if not hasattr(self._own, "together"):
            return
        self._own.together += size
        if self._own.together > MAX_TOGETHER:
            text = (
                f"the tables of a transaction have more than {MAX_TOGETHER:,} bytes of metadata: change fewer at once"
            )
            raise bad_request(text)

    def _still_kept(self, location: str, key: str) -> bytes | None:
        """What is kept of a file, as far as it can be seen at no cost that the file is still there."""
        content = self.kept(location, key)
        if content is not None and location.startswith("file:") and not self._is_there(location):
            return None  # on a storage that is reached over a network nobody looks
        return content

    def _fresh(self, location: str, key: str) -> tuple[bytes, dict[str, Any]]:
        """A file's bytes and their value, which are large in memory for as long as the request has its turn."""
        content = self._read(location, LARGE + 1)
        self.take_turn(len(content))
        if len(content) > LARGE:
            content = self._read(location, MAX_BYTES + 1)
        value = _checked(content, location, key)
        self.keep(location, key, content)
        return content, value

    def _at_storage(self, action: Callable[[], T], what: str) -> T:
        """Does something with the storage. One that hangs doesn't keep a turn.

        Raises RestError (503), WarehouseError.
        """
        if not getattr(self._own, "has_turn", False):
            return action()
        try:
            return self._patience.wait(action, _STORAGE_SECONDS)
        except TimeoutError:
            raise unavailable(f"the storage doesn't answer: {what}") from None

    def kept(self, location: str, form: str) -> bytes | None:
        """What is kept in memory of a file. `form`: which form of it."""
        with self._lock:
            found: bytes | None = self._kept.get((location, form))
        return found

    def keep(self, location: str, form: str, content: bytes) -> None:
        if _UUID.search(location.rpartition("/")[2]) and len(content) <= _KEPT_BYTES // 4:
            with self._lock:
                self._kept[location, form] = content

    def write(self, location: str, metadata: dict[str, Any], key: str) -> None:
        """Writes a new file, and keeps it: it is read next. `key`: as in `read`.

        Raises RestError: 400 for a size that can't be used, 503 for the storage.
        """
        content = json.dumps(metadata, separators=(",", ":")).encode()
        if len(content) > MAX_BYTES:
            raise bad_request(
                f"the metadata would have {len(content):,} bytes, more than {MAX_BYTES:,}: expire snapshots"
            )
        packed = location.endswith((".gz.metadata.json", ".metadata.json.gz"))
        try:
            stored = gzip.compress(content) if packed else content
            self._at_storage(lambda: self._warehouse.write_file(location, stored), f"{location} isn't written")
        except WarehouseError as error:
            raise unavailable(f"the metadata file can't be written: {error}") from None
        self.keep(location, key, content)

    def remove(self, locations: Sequence[str]) -> None:
        """Removes files. One that can't be removed stays: nothing refers to it."""
        for each in locations:
            try:
                self._at_storage(partial(self._warehouse.delete_file, each), f"{each} isn't deleted")
            except (WarehouseError, RestError) as error:
                log.warning("a metadata file stays", location=each, reason=str(error))

    def make_directory(self, location: str) -> None:
        """Makes a directory. Raises RestError (503)."""
        try:
            self._warehouse.make_directories([location], set())
        except WarehouseError as error:
            raise unavailable(str(error)) from None

    def _is_there(self, location: str) -> bool:
        try:
            return self._warehouse.exists(location)
        except WarehouseError:
            return False

    def _read(self, location: str, at_most: int) -> bytes:
        try:
            content = self._at_storage(
                lambda: self._warehouse.read_file(location, at_most), f"{location} can't be read"
            )
        except WarehouseError as error:
            raise unavailable(f"the metadata file can't be read: {error}") from None
        if content is None:
            raise RestError(
                404, "NotFoundException", f"Failed to open input stream for file: {location}, which isn't there"
            )
        if len(content) < at_most and content[:2] == b"\x1f\x8b":
            try:
                with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                    content = file.read(at_most)
            except (OSError, EOFError, zlib.error):
                raise bad_request(f"{location} is no metadata file of Iceberg's") from None
        if len(content) > MAX_BYTES:
            raise bad_request(f"{location} has more than {MAX_BYTES:,} bytes")
        return content


def next_location(base: str, metadata: dict[str, Any], name: str) -> str:
    """Where the next metadata file goes. `base`: the location of the one before, "" for none; `name`: a new UUID."""
    found = _VERSION.match(base.rpartition("/")[2])
    version = int(found[1]) + 1 if found else 0
    properties = metadata.get("properties") or {}
    directory = properties.get("write.metadata.path") or f"{metadata['location'].rstrip('/')}/metadata"
    ending = (
        ".gz.metadata.json"
        if properties.get("write.metadata.compression-codec", "").lower() == "gzip"
        else ".metadata.json"
    )
    return f"{directory.rstrip('/')}/{version:05d}-{name}{ending}"


def _checked(content: bytes, location: str, key: str) -> dict[str, Any]:
    found: Any = None
    try:
        found = json.loads(content)
        good = isinstance(found, dict) and all(
            isinstance(found.get(each), type) for each, type in ((key, str), ("location", str), ("format-version", int))
        )
    except (ValueError, RecursionError):
        good = False
    if not good:
        raise bad_request(f"{location} is no {_NEEDED[key]} metadata file of Iceberg's")
    value: dict[str, Any] = found
    return value
