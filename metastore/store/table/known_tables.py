"""The tables whose state a process knows, since it altered them last.

A writer that alters its table again and again, as streams do, need not look for it each time: `tables.assume`. A
table that others change as well would mostly be assumed to be what it isn't any more. So it is known after a few
alterations between which it didn't change.
"""

import threading

from lake.protocol.bounded_dict import BoundedDict
from metastore.store.engine.names import TableName
from metastore.store.table.tables import LockedTable

_TABLES = 256
_LARGEST = 65_536  # bytes
_IN_A_ROW = 3


class KnownTables:
    """Tables as they were committed, those altered last. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: BoundedDict[TableName, tuple[LockedTable, int]] = BoundedDict(_TABLES)

    def take(self, name: TableName) -> LockedTable | None:
        """The table as it was left, if it was altered here several times in a row. It is forgotten until `learn`."""
        with self._lock:
            table, alterations = self._tables.get(name, (None, 0))
            if alterations < _IN_A_ROW:
                return None
            del self._tables[name]
        return table

    def give_back(self, table: LockedTable) -> None:
        """A table that was taken, and of which nothing was made."""
        with self._lock:
            if len(self._tables) < _TABLES:
                self._tables.setdefault(table.row.name, (table, _IN_A_ROW))

    def learn(self, before: LockedTable, after: LockedTable) -> None:
        """A table was altered, and committed."""
        row = after.row
        if (
            after.incarnation is None
            or len(row.body) + len(row.descriptor) + sum(map(len, row.parameters.values())) > _LARGEST
        ):
            return
        with self._lock:
            last, alterations = self._tables.pop(row.name, (None, 0))
            if before.claim is not None:
                alterations = _IN_A_ROW
            elif last is None or (last.row.id, last.row.version) != (row.id, before.row.version):
                alterations = 0
            self._tables.put(row.name, (after, alterations + 1))
