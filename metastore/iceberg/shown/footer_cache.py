"""Footers that a process has read."""

import marshal
import threading
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache

from metastore.iceberg.shown.footers import ORC, PARQUET, Figures, Footer, Kind
from metastore.iceberg.shown.orc_footers import orc_footer
from metastore.iceberg.shown.parquet_footers import parquet_footer
from metastore.warehouse import Warehouse

_KEPT_BYTES = 64 << 20
_READERS = {PARQUET: parquet_footer, ORC: orc_footer}


@dataclass
class Footers:
    """Reads footers, and keeps what they say: a file of one size and version doesn't change. Thread-safe."""

    _warehouse: Warehouse
    _kept: LRUCache[tuple[str, int, int], bytes] = field(
        default_factory=lambda: LRUCache(_KEPT_BYTES, getsizeof=lambda each: len(each) + 300)
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, location: str, size: int, version: int = 0, format: str = PARQUET) -> Footer:
        """That of a file of `size` bytes. `version`: another one for each content that a location had.

        Raises RestError: 503 if it can't be read, 400 if it is none.
        """
        key = (location, size, version)
        with self._lock:
            known = self._kept.get(key)
        if known is not None:
            return _unpacked(known)
        found = _READERS[format](self._warehouse, location, size)
        packed = marshal.dumps(_plain(found))
        with self._lock:
            if len(packed) < _KEPT_BYTES // 4:
                self._kept[key] = packed
        return found

    def has(self, location: str, size: int, version: int = 0) -> bool:
        """Whether a footer is kept."""
        with self._lock:
            return (location, size, version) in self._kept


def _plain(footer: Footer) -> Any:
    figures = tuple((*each[:2], tuple(each.kind), *each[3:]) for each in footer.figures)
    return (*footer[:3], figures, footer.parts)


def _unpacked(packed: bytes) -> Footer:
    rows, columns, has_ids, figures, parts = marshal.loads(packed)
    some = tuple(Figures(name, id, Kind(*kind), *rest) for name, id, kind, *rest in figures)
    return Footer(rows, columns, has_ids, some, parts)
