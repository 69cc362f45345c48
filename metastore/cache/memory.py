"""The first level of the cache: the memory of one worker."""

from collections import OrderedDict

from metastore.cache.entry import Entry

_OVERHEAD = 500  # bytes of an entry and its key beside the reply


class Memory:
    """Entries by key, bounded by bytes; the least recently used go first. For one thread."""

    def __init__(self, capacity: int) -> None:
        """`capacity` in bytes."""
        self._capacity = capacity
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self.size = 0
        """Bytes of all entries."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    def get(self, key: bytes) -> Entry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: bytes, entry: Entry) -> None:
        """Keeps an entry in place of what the key had; one that is larger than the capacity isn't kept."""
        self.remove(key)
        size = _size(entry)
        if size > self._capacity:
            return
        self._entries[key] = entry
        self.size += size
        while self.size > self._capacity:
            _, oldest = self._entries.popitem(last=False)
            self.size -= _size(oldest)

    def remove(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= _size(entry)


def _size(entry: Entry) -> int:
    return len(entry) + 50 * len(entry.objects) + _OVERHEAD
