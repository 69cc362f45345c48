"""Which kept replies an alteration of a table renews, so that the next read finds what the writer knows already.

A reply is renewed if it was read since it was made: writers that nobody reads after make no replies.
"""

from collections.abc import Iterable, Iterator

from lake.protocol.bounded_dict import BoundedDict
from metastore.cache.entry import Entry, Renew
from metastore.cache.stamp import Stamp
from metastore.store.engine.read_set import Kind
from metastore.store.table.tables import LockedTable

_TABLES = 4_000
_REPLIES_OF_TABLE = 8
_UNSEEN = 1_000  # transactions; after a longer wait for a table's lock the next reader asks the database


class Renewals:
    """What is to be renewed, by table. `add` belongs to the event loop; `of_tables` may be called in any thread."""

    def __init__(self) -> None:
        self._of_table: BoundedDict[int, tuple[tuple[bytes, Renew], ...]] = BoundedDict(_TABLES)

    def add(self, key: bytes, entry: Entry, renew: Renew) -> None:
        """A reply was read: it is renewed with the next alteration, if it is about one table and nothing else."""
        if len(entry.objects) != 1:
            return
        [(kind, table)] = entry.objects
        if kind != Kind.TABLE:
            return
        others = tuple(each for each in self._of_table.pop(table, ()) if each[0] != key)
        if len(others) < _REPLIES_OF_TABLE:
            others = (*others, (key, renew))
        self._of_table.put(table, others)

    def of_tables(self, altered: Iterable[LockedTable]) -> Iterator[tuple[bytes, Entry]]:
        """The replies about altered tables, by their keys. Each is renewed once, until it is read."""
        for table in altered:
            if table.incarnation is None:
                continue
            stamp = Stamp.of_writer(table.incarnation, table.snapshot, table.xid)
            if len(stamp.open_) > _UNSEEN:
                continue
            for key, renew in self._of_table.pop(table.row.id, ()):
                body = renew(table.row)
                if body is not None:
                    yield key, Entry(body, stamp, [(Kind.TABLE, table.row.id)], renew)
