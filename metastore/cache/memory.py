"""The first level: the memory of one worker."""

from collections import OrderedDict

from metastore.cache.entry import Entry

_OVERHEAD = 500  # bytes of a key and an entry beside the reply


class Memory:
    """Entries by key, as many as have room; those that nobody asked for the longest go first. For one thread."""

    def __init__(self, capacity: int) -> None:
        """`capacity` in bytes."""
        self.capacity = capacity
        self.size = 0
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> Entry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: bytes, entry: Entry) -> None:
        self.remove(key)
        size = _size(key, entry)
        if size > self.capacity:
            return
        self._entries[key] = entry
        self.size += size
        while self.size > self.capacity:
            oldest, gone = self._entries.popitem(last=False)
            self.size -= _size(oldest, gone)

    def remove(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= _size(key, entry)


def _size(key: bytes, entry: Entry) -> int:
    return len(entry) + len(key) + 50 * len(entry.objects) + _OVERHEAD
