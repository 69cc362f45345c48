"""The first level of the cache: the memory of one worker."""

import contextlib

from cachetools import LRUCache

from metastore.cache.entry import Entry

_OVERHEAD = 500  # bytes of an entry and its key beside the reply


class Memory:
    """Entries by key, bounded by bytes; the least recently used go first. For one thread."""

    def __init__(self, capacity: int) -> None:
        """`capacity` in bytes."""
        self._entries: LRUCache[bytes, Entry] = LRUCache(capacity, getsizeof=_size)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return int(self._entries.currsize)

    def get(self, key: bytes) -> Entry | None:
        return self._entries.get(key)

    def put(self, key: bytes, entry: Entry) -> None:
        """Keeps an entry in place of what the key had; one that is larger than the capacity isn't kept."""
        self.remove(key)
        with contextlib.suppress(ValueError):  # too large
            self._entries[key] = entry

    def remove(self, key: bytes) -> None:
        self._entries.pop(key, None)


def _size(entry: Entry) -> int:
    return len(entry) + 50 * len(entry.objects) + _OVERHEAD
