"""Metadata files of tables and views: written once, never changed, read with a bound on their size."""

import gzip
import io
import json
import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog
from cachetools import LRUCache

from metastore.iceberg.errors import RestError, bad_request, unavailable
from metastore.warehouse import Warehouse, WarehouseError

MAX_BYTES = 64 << 20
"""Of a metadata file, uncompressed."""

LARGE = 4 << 20
"""Requests with more bytes than this, of metadata or in the body, take turns: parsed, they are many times as large."""

_AT_ONCE = 2  # large ones; Python parses one at a time in any case
_TURN_SECONDS = 30.0
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
        content = self.read(location, key)
        self.take_turn(len(content))
        value: dict[str, Any] = json.loads(content)
        return value

    def read(self, location: str, key: str) -> bytes:
        """The bytes of a metadata file, uncompressed. `key`: `table-uuid` or `view-uuid`, which it must have.

        Raises RestError: 404 if it isn't there, 400 for a file that is none of Iceberg's, 503 if it can't be read now.
        """
        content = self.kept(location, key)
        if content is not None and location.startswith("file:") and not self._is_there(location):
            content = None  # to look costs nothing here, other than on a storage that is reached over a network
        if content is None:
            content = self._read(location, LARGE + 1)
            if len(content) > LARGE:
                self.take_turn(len(content))
                content = self._read(location, MAX_BYTES + 1)
            _check(content, location, key)
            self.keep(location, key, content)
        return content

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
            self._warehouse.write_file(location, gzip.compress(content) if packed else content)
        except WarehouseError as error:
            raise unavailable(f"the metadata file can't be written: {error}") from None
        self.keep(location, key, content)

    def remove(self, locations: Sequence[str]) -> None:
        """Removes files. One that can't be removed stays: nothing refers to it."""
        for each in locations:
            try:
                self._warehouse.delete_file(each)
            except WarehouseError as error:
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
            content = self._warehouse.read_file(location, at_most)
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


def _check(content: bytes, location: str, key: str) -> None:
    try:
        found = json.loads(content)
        good = isinstance(found, dict) and all(
            isinstance(found.get(each), type) for each, type in ((key, str), ("location", str), ("format-version", int))
        )
    except (ValueError, RecursionError):
        good = False
    if not good:
        raise bad_request(f"{location} is no {_NEEDED[key]} metadata file of Iceberg's")
