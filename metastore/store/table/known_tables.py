"""The tables whose state a process knows, since it altered them last.

A writer that alters its table again and again, as streams do, need not look for it each time: `tables.assume`. A
table that others alter as well would mostly be assumed to be what it isn't any more. So it is known after two
alterations in a row.
"""

import threading

from metastore.store.engine.names import TableName
from metastore.store.table.tables import LockedTable

_TABLES = 256
_LARGEST = 65_536  # bytes


class KnownTables:
    """Tables as they were committed, those altered last. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[TableName, tuple[LockedTable, bool]] = {}

    def take(self, name: TableName) -> LockedTable | None:
        """The table as it was left, if it was altered here twice in a row. It is forgotten until `learn`."""
        with self._lock:
            table, steady = self._tables.get(name, (None, False))
            if steady:
                del self._tables[name]
        return table if steady else None

    def learn(self, before: LockedTable, after: LockedTable) -> None:
        """A table was altered, and committed."""
        row = after.row
        if len(row.body) + len(row.descriptor) + sum(map(len, row.parameters.values())) > _LARGEST:
            return
        with self._lock:
            last, _ = self._tables.pop(row.name, (None, False))
            steady = before.claim is not None or (
                last is not None and (last.row.id, last.row.version) == (row.id, before.row.version)
            )
            if len(self._tables) >= _TABLES:
                del self._tables[next(iter(self._tables))]
            self._tables[row.name] = after, steady
