"""A dict that forgets, for what is remembered of earlier calls: clients decide how much that would be."""

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """Keeps the entries that were `put` last, up to a number of them.

    Threads may `put`, `get` and `pop` at the same time.
    """

    def __init__(self, most: int) -> None:
        """`most`: entries, one at least."""
        super().__init__()
        self._most = most

    def put(self, key: K, value: V) -> None:
        """Adds an entry, or replaces that of the same key. What was put first is forgotten if there are too many."""
        self.pop(key, None)  # replaced, it would keep its place
        self[key] = value
        if len(self) > self._most:
            with suppress(KeyError):  # others took all meanwhile
                self.popitem(last=False)
